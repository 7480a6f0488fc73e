// fake_node SOCKET: a FakeNode for tests in other languages. Says "ready", then a line for each
// message that comes; obeys the commands on its standard input, saying "done COMMAND", and ends
// with it.
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>

#include "support/fake_node.h"

namespace {

using ts::test::FakeNode;

tsl_type typeOf(const std::string& word) {
  static const std::map<std::string, tsl_type> kTypes = {
      {"hello", TSL_HELLO}, {"join", TSL_JOIN},     {"acquire", TSL_ACQUIRE},
      {"yield", TSL_YIELD}, {"cancel", TSL_CANCEL}, {"leave", TSL_LEAVE}};
  return kTypes.at(word);
}

// "answer TYPE STATUS DETAIL…", "hold TYPE", "ignore TYPE", "refuse STATUS DETAIL…", or one word.
void obey(FakeNode& node, const std::string& line) {
  std::istringstream words(line);
  std::string verb, type, detail;
  int status = 0;
  words >> verb;
  if (verb == "answer" || verb == "hold" || verb == "ignore") words >> type;
  if (verb == "answer" || verb == "refuse") words >> status >> std::ws;
  if (verb == "answer" || verb == "refuse") std::getline(words, detail);
  if (verb == "answer") return node.answer(typeOf(type), status, detail);
  if (verb == "hold") return node.hold(typeOf(type));
  if (verb == "ignore") return node.ignore(typeOf(type));
  if (verb == "refuse") return node.refuse(status, detail);
  const std::map<std::string, void (FakeNode::*)()> kVerbs = {
      {"grant", &FakeNode::grant}, {"ask", &FakeNode::askYield},  {"close", &FakeNode::closeAll},
      {"away", &FakeNode::goAway}, {"back", &FakeNode::comeBack}, {"freeze", &FakeNode::freeze},
      {"thaw", &FakeNode::thaw}};
  (node.*kVerbs.at(verb))();
}

void say(const std::string& line) {
  std::fprintf(stdout, "%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fake_node SOCKET\n");
    return 2;
  }
  FakeNode node(argv[1]);
  node.onSeen(say);
  say("ready");
  for (std::string line; std::getline(std::cin, line);) {
    obey(node, line);
    say("done " + line);
  }
  return 0;
}
