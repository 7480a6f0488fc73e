#include "node/owner.h"

namespace ts::node {
namespace {

const std::string kRecord = "name";

}  // namespace

std::string ownRecords(Records& records, const std::string& name) {
  auto owner = records.all().find(kRecord);
  if (owner != records.all().end() && owner->second == name) return "";
  unsigned jobs = 0;
  records.each("job/", [&](const std::string&, const std::string&) { ++jobs; });
  if (owner == records.all().end() || jobs == 0) {
    records.put(kRecord, name);
    return "";
  }
  return records.place() + " holds " + std::to_string(jobs) + " jobs of node \"" + owner->second +
         "\", and this node is named \"" + name +
         "\": the master would have them on both; set name = \"" + owner->second +
         "\" in node.toml to go on with them, and change it when they have ended; " +
         "a node beside it needs its own state_dir";
}

}  // namespace ts::node
