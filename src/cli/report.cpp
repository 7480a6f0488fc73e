#include "cli/report.h"

#include <fcntl.h>
#include <kj/io.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/doctor.h"
#include "cli/failure.h"
#include "cli/mask.h"
#include "cli/master.h"
#include "cli/master_commands.h"
#include "cli/places.h"
#include "cli/since.h"
#include "cli/tar_file.h"
#include "cli/words.h"
#include "config/config.h"
#include "timeslice/timeslice.h"
#include "wire/status_json.h"
#include "wire/translate.h"

namespace ts::cli {
namespace {

constexpr const char* kReadMe =
    "A report of timeslice, written by tsctl report.\n"
    "\n"
    "versions.txt  tsctl, tsmasterd, the kernel\n"
    "status.json   groups, jobs, nodes\n"
    "events.txt    the last day as tsmasterd told it\n"
    "doctor.txt    what works on this machine\n"
    "master.txt    the effective configuration of tsmasterd, if its file is on this machine\n"
    "node.txt      the same of tsnoded\n"
    "metrics.txt   of both, if they serve any\n"
    "\n"
    "Jobs are called job-1, job-2 and so on; labels, users, accounts and the environment of jobs "
    "are\n"
    "left out. Names of groups, nodes and devices, addresses and process ids are as they are.\n";

struct Part {
  std::string name;
  std::string content;
};

// What it says, or why it cannot.
std::string told(const std::function<std::string()>& what) {
  try {
    return what();
  } catch (const std::exception& e) {
    return std::string("not there: ") + e.what() + "\n";
  } catch (const kj::Exception& e) {
    return "not there: " + std::string(e.getDescription().cStr()) + "\n";
  }
}

std::string kernel() {
  utsname name{};
  ::uname(&name);
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

template <class Config>
std::string configuration(const std::string& path, Loaded<Config> (*load)(const std::string&)) {
  if (::access(path.c_str(), R_OK) != 0)
    return "not there: " + path + ": " + std::strerror(errno) + "\n";
  auto loaded = load(path);
  if (loaded.ok()) return maskedConfig(loaded.value);
  // Its sentences show values that are where they do not belong.
  return path + ": " + counted(loaded.errors.size(), "mistake") + "; --check-config names each\n";
}

std::string metricsAt(Loop& loop, const Options& options, const std::string& address) {
  constexpr kj::StringPtr request = "GET /metrics HTTP/1.0\r\n\r\n"_kj;
  auto answer =
      loop.io->getNetwork()
          .parseAddress(address)
          .then([](kj::Own<kj::NetworkAddress> to) { return to->connect().attach(kj::mv(to)); })
          .then([&](kj::Own<kj::AsyncIoStream> stream) {
            auto& s = *stream;
            return s.write(request.begin(), request.size())
                .then([&s] { return s.readAllText(); })
                .attach(kj::mv(stream));
          });
  std::string text = within(loop, options.timeout, kj::mv(answer)).cStr();
  auto body = text.find("\r\n\r\n");
  return body == std::string::npos ? "an answer without a body\n" : text.substr(body + 4);
}

template <class Config>
std::string metrics(Loop& loop, const Options& options, const std::string& path,
                    Loaded<Config> (*load)(const std::string&)) {
  bool isThere = ::access(path.c_str(), R_OK) == 0;
  std::string address = isThere ? load(path).value.http : Config().http;
  std::string head = "# of " + (address.empty() ? "nobody: no http in " + path : address) + "\n";
  if (address.empty()) return head;
  return head + told([&]() -> std::string {
           try {
             return metricsAt(loop, options, address);
           } catch (const Late&) {
             return "not there: no answer within " +
                    showDuration(std::uint64_t(options.timeout.count()));
           }
         });
}

// Structured, so that what belongs to users is known as such.
std::string status(wire::OperatorSession::StatusResults::Reader results, Mask& mask) {
  auto json = toJson(results);
  for (auto& job : json["jobs"]) {
    mask.job(job["name"].get<std::string>());
    job["uid"] = nullptr;
    job["label"] = job["label"] == "" ? "" : "masked";
  }
  return textOf(json, 2) + "\n";
}

struct Asked {
  std::string version;
  std::string status;
  std::string events;
};

Asked ask(Loop& loop, const Options& options, Mask& mask) {
  Asked asked;
  auto all = told([&] {
    Master master(loop, findPlaces(options), options.timeout);
    auto results = master.call(master.session().statusRequest());
    asked.version = text(results.getVersion());
    asked.status = status(results, mask);
    Options day = options;
    day.sinceUs = parseSince("24h");
    asked.events = told([&] {
      std::string lines;
      readEvents(loop, master, day, [&](wire::EventLine::Reader line) {
        mask.learnEvents(text(line.getText()));
        lines += showTime(line.getUnixUs()) + "  " + text(line.getText()) + "\n";
      });
      return lines;
    });
    return std::string();
  });
  for (auto* part : {&asked.version, &asked.status, &asked.events}) {
    if (part->empty()) *part = all;
  }
  return asked;
}

std::vector<Part> parts(Loop& loop, const Options& options) {
  Mask mask;
  Asked asked = ask(loop, options, mask);
  std::vector<Part> all{
      {"versions.txt", std::string("tsctl ") + ts_version() + "\ntsmasterd " + asked.version +
                           "\n" + kernel() + "\n"},
      {"status.json", asked.status},
      {"events.txt", asked.events},
      {"doctor.txt", told([&] { return showFindings(examine(loop, options)); })},
      {"master.txt", configuration(options.masterConfig, loadMasterConfig)},
      {"node.txt", configuration(options.nodeConfig, loadNodeConfig)},
      {"metrics.txt", metrics(loop, options, options.masterConfig, loadMasterConfig) +
                          metrics(loop, options, options.nodeConfig, loadNodeConfig)}};
  for (Part& part : all) part.content = mask.apply(part.content);
  all.insert(all.begin(), {"README.txt", kReadMe});
  return all;
}

std::string defaultName() {
  std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char name[64];
  std::strftime(name, sizeof name, "timeslice-report-%Y%m%dT%H%M%SZ.tar", &utc);
  return name;
}

// Never over a file that is there, and for nobody else to read.
void write(const std::string& path, const std::string& bytes) {
  kj::AutoCloseFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  auto failed = [&] {
    return Failure(Exit::Failed,
                   path + ": " + std::strerror(errno) + "; choose another place with --output");
  };
  if (file.get() < 0) throw failed();
  for (std::size_t at = 0; at < bytes.size();) {
    ssize_t n = ::write(file, bytes.data() + at, bytes.size() - at);
    if (n < 0) throw failed();
    at += std::size_t(n);
  }
}

}  // namespace

std::string report(Loop& loop, const Options& options) {
  std::string path = options.output.empty() ? defaultName() : options.output;
  TarFile tar;
  for (const Part& part : parts(loop, options)) {
    tar.add("timeslice-report/" + part.name, part.content);
  }
  write(path, tar.finish());
  if (options.json) return textOf(nlohmann::ordered_json{{"file", path}}, 2) + "\n";
  return path + "; its README.txt says what is in it and what is not\n";
}

}  // namespace ts::cli
