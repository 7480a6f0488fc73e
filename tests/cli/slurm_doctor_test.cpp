#include "cli/slurm_doctor.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "cli/plugstack.h"
#include "cli/slurm_partition.h"
#include "support/temp_dir.h"

using namespace ts;
using namespace ts::cli;

namespace {

std::string recorded(const std::string& name) {
  std::ifstream in(std::string(SLURM_SAMPLES) + "/" + name + ".txt");
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE(text.str().size() > 100);
  return text.str();
}

// What scontrol said of a site that follows a recipe, and what it would say of one that strays.
struct Said {
  explicit Said(const std::string& version = "22.05")
      : config(recorded(version + "/config")),
        partition(recorded(version + "/partition")),
        node(recorded(version + "/node")) {}
  std::string config;
  std::string partition;
  std::string node;

  Said& change(std::string Said::*where, const std::string& old, const std::string& text) {
    std::string& in = this->*where;
    REQUIRE(in.find(old) != std::string::npos);
    for (std::size_t at = 0; (at = in.find(old, at)) != std::string::npos; at += text.size())
      in.replace(at, old.size(), text);
    return *this;
  }
  SlurmSite site() const {
    return {parseSlurmConfig(config), parseSlurmRecords(partition), parseSlurmRecords(node)};
  }
  Findings findings(const std::string& which = "") const { return examineSite(site(), which); }
};

Said shards() {
  return Said("24.11");
}

// All but the good news.
std::string troubles(const Findings& findings) {
  std::string text;
  for (const Finding& f : findings) {
    if (f.verdict == Verdict::Ok) continue;
    text += std::string(nameOf(f.verdict)) + ": " + f.what + " -> " + f.cure + "\n";
    CHECK_FALSE(f.cure.empty());
  }
  return text;
}

bool tells(const Said& said, const std::string& sentence) {
  std::string text = troubles(said.findings());
  INFO(text);
  return text.find(sentence) != std::string::npos && std::ranges::count(text, '\n') == 1;
}

}  // namespace

TEST_CASE("a site that follows the recipe has nothing to mend", "[cli]") {
  CHECK(troubles(Said().findings()).empty());
  CHECK(troubles(shards().findings()).empty());
  CHECK(showFindings(Said().findings()) ==
        "ok    Slurm 22.05.8, cluster test\n"
        "ok    partition rl: up to 2 jobs share its 2 nodes\n");
}

TEST_CASE("a partition in which jobs wait for each other's end is told", "[cli]") {
  for (const char* how : {"OverSubscribe=NO", "OverSubscribe=EXCLUSIVE", "OverSubscribe=FORCE:1"}) {
    Said said;
    said.change(&Said::partition, "OverSubscribe=FORCE:2", how);
    CHECK(tells(said, std::string("fail: partition rl: ") + how +
                          ": a second job waits until the first has ended"));
  }
  Said asks;
  asks.change(&Said::partition, "OverSubscribe=FORCE:2", "OverSubscribe=YES:2");
  CHECK(tells(asks, "fail: partition rl: OverSubscribe=YES:2 lets only jobs share that say"));
  Said none;
  none.change(&Said::partition, "OverSubscribe=FORCE:2", "OverSubscribe=NO")
      .change(&Said::node, "tslot:2", "(null)");
  CHECK(tells(none, "fail: in no partition jobs share nodes"));
  CHECK(troubles(none.findings("rl")).starts_with("fail: partition rl: OverSubscribe=NO"));
  CHECK(troubles(Said().findings("nix")).starts_with("fail: no partition is called nix"));
}

TEST_CASE("FF-G11: what would stop a job with SIGSTOP in its turn is told", "[cli]") {
  Said gang;
  gang.change(&Said::config, "= OFF", "= GANG,SUSPEND");
  CHECK(
      tells(gang, "fail: partition rl: PreemptMode=GANG,SUSPEND of the site keeps its jobs apart"));
  Said suspend;
  suspend.change(&Said::partition, "PreemptMode=OFF", "PreemptMode=SUSPEND");
  CHECK(tells(suspend, "fail: partition rl: PreemptMode=SUSPEND stops jobs with SIGSTOP"));
  Said requeue;  // a job that is ended gives its turn back
  requeue.change(&Said::partition, "PreemptMode=OFF", "PreemptMode=REQUEUE");
  CHECK(troubles(requeue.findings()).empty());
}

TEST_CASE("nodes that other partitions use, too, are named", "[cli]") {
  Said said;
  said.change(&Said::node, "Partitions=rl", "Partitions=rl,gpu");
  CHECK(tells(said,
              "fail: partition rl: nodes in other partitions, too (n1, n2): jobs there use GPUs"));
  Said many;
  many.node.clear();
  for (int i = 1; i <= 5; ++i)
    many.node +=
        "NodeName=n" + std::to_string(i) + " Gres=tslot:2 RealMemory=2048 Partitions=gpu,rl\n";
  CHECK(tells(many, "(n1, n2, n3 and 2 more)"));
  Said empty;
  empty.node = "NodeName=x Gres=(null) Partitions=other\n";
  CHECK(tells(empty, "fail: partition rl has no nodes"));
}

TEST_CASE("counts that do not fit each other are told", "[cli]") {
  Said slots;
  slots.change(&Said::node, "tslot:2", "tslot:3");
  CHECK(tells(slots, "another number of tslot than the 2 of OverSubscribe (n1, n2)"));
  Said none;
  none.change(&Said::node, "tslot:2", "(null)");
  CHECK(tells(none, "warn: partition rl: nothing counts the jobs that share a GPU"));
  Said few = shards();
  few.change(&Said::node, "shard:4", "shard:2");
  CHECK(tells(few, "another number of shards than 2 for each GPU (n1, n2)"));
}

TEST_CASE("a GPU that Slurm denies, or gives away beside the turn, is told", "[cli]") {
  Said both;
  both.change(&Said::node, "tslot:2", "gpu:a100:8(S:0-1),tslot:2");
  CHECK(tells(both,
              "fail: partition rl: nodes with tslot and gpu (n1, n2): with ConstrainDevices=yes"));
  both.change(&Said::config, "ConstrainDevices        = yes", "ConstrainDevices        = no");
  CHECK(tells(both,
              "warn: partition rl: nodes with tslot and gpu (n1, n2): a job that asks for gpu"));
}

TEST_CASE("shards want a Slurm that gives a job more than one GPU's", "[cli]") {
  Said old = shards();
  old.change(&Said::config, "24.11.5", "23.02.7");
  CHECK(tells(old,
              "fail: partition rl: shards on Slurm 23.02.7, where a job gets shards of one GPU"));
  Said plain = shards();
  plain.change(&Said::config, ",MULTIPLE_SHARING_GRES_PJ", "");
  CHECK(tells(plain, "fail: partition rl: SelectTypeParameters is CR_CORE_MEMORY: a job gets"));
  Said own = shards();  // a partition's own parameters count, not the site's
  own.change(&Said::partition, "SelectTypeParameters=NONE", "SelectTypeParameters=CR_CORE_MEMORY");
  CHECK(tells(own, "add MULTIPLE_SHARING_GRES_PJ"));
}

TEST_CASE("memory that nobody counts, and a default that keeps the second job out, are told",
          "[cli]") {
  Said uncounted;
  uncounted.change(&Said::config, "CR_CORE_MEMORY", "CR_CORE");
  CHECK(tells(uncounted,
              "warn: partition rl: SelectTypeParameters is CR_CORE: nobody counts memory"));
  Said all;
  all.change(&Said::partition, "DefMemPerNode=1024", "DefMemPerNode=UNLIMITED");
  CHECK(tells(all,
              "fail: partition rl: no DefMemPerNode: a job that names no --mem takes all memory"));
  all.change(&Said::config, "DefMemPerNode           = UNLIMITED", "DefMemPerCPU            = 100");
  CHECK(troubles(all.findings()).empty());
  Said tight;
  tight.change(&Said::partition, "DefMemPerNode=1024", "DefMemPerNode=1500");
  CHECK(tells(tight, "DefMemPerNode=1500 times 2 is more than RealMemory of n1, n2"));
}

TEST_CASE("what the site has for all partitions is looked at", "[cli]") {
  struct Row {
    const char* old;
    const char* text;
    const char* sentence;
  };
  for (const Row& row :
       {Row{"select/cons_tres", "select/linear", "warn: SelectType is select/linear"},
        Row{"proctrack/cgroup", "proctrack/pgid", "warn: ProctrackType is proctrack/pgid"},
        Row{"PrologFlags             = Alloc", "PrologFlags             = (null)",
            "warn: PrologFlags has no Alloc"},
        Row{"KillOnBadExit           = 1", "KillOnBadExit           = 0",
            "warn: KillOnBadExit is 0"},
        Row{"UnkillableStepTimeout   = 300 sec", "UnkillableStepTimeout   = 60 sec",
            "warn: UnkillableStepTimeout is 60 sec: Slurm drains the node"},
        Row{"22.05.8", "21.08.8-2", "warn: Slurm 21.08.8-2: nothing here is tested with it"}}) {
    Said said;
    said.change(&Said::config, row.old, row.text);
    CHECK(tells(said, row.sentence));
  }
  Said contain;  // brings Alloc along
  contain.change(&Said::config, "PrologFlags             = Alloc",
                 "PrologFlags             = Contain");
  CHECK(troubles(contain.findings()).empty());
}

TEST_CASE("what a node has of a GRES is counted over its types", "[cli]") {
  auto count = [](const std::string& gres, const char* name) {
    return countOfGres({{"Gres", gres}}, name);
  };
  CHECK(count("gpu:a100:4(S:0),gpu:h100:2(S:1),tslot:3", "gpu") == 6);
  CHECK(count("gpu:a100:4(S:0-1),tslot:3", "tslot") == 3);
  CHECK(count("gpu,tslot", "gpu") == 1);
  CHECK(count("gpus:3", "gpu") == 0);
  CHECK(count("(null)", "gpu") == 0);
}

TEST_CASE("a value with spaces is one value, and what is no key is no key", "[cli]") {
  auto node = parseSlurmRecords(recorded("22.05/node"));
  REQUIRE(node.size() == 2);
  CHECK(valueOf(node[1], "NodeName") == "n2");
  CHECK(valueOf(node[1], "OS").starts_with("Linux 6.1"));
  CHECK(valueOf(node[1], "RealMemory") == "2048");
  CHECK(parseSlurmRecords("\nnonsense\n=x\n").empty());
  CHECK(valueOf(parseSlurmConfig("Epilog = (null)\nodd\n"), "Epilog").empty());
}

TEST_CASE("FF-G2: plugstack.conf names the plugin, by an include, too", "[cli]") {
  test::TempDir dir;
  auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(dir / name) << text;
    return dir / name;
  };
  std::string main = dir / "plugstack.conf";
  SlurmRecord config{{"PlugStackConfig", main},
                     {"PluginDir", "/nowhere:" + dir.path()},
                     {"SLURM_VERSION", "22.05.8"}};
  CHECK(examinePlugstack(config).what.find("plugstack.conf: No such file") != std::string::npos);

  write("plugstack.conf",
        "# optional spank_timeslice.so\nrequired other.so\ninclude conf.d/*.conf\n");
  Finding unnamed = examinePlugstack(config);
  CHECK(unnamed.verdict == Verdict::Fail);
  CHECK(unnamed.what.find("names no spank_timeslice.so") != std::string::npos);

  std::filesystem::create_directory(dir / "conf.d");
  write("conf.d/timeslice.conf", "optional " + dir / "spank_timeslice.so" + " timeout_ms=1000\n");
  Finding gone = examinePlugstack(config);
  CHECK(gone.verdict == Verdict::Fail);
  CHECK(gone.what.ends_with("which is not there"));

  write("spank_timeslice.so", "a library");
  Finding fine = examinePlugstack(config);
  CHECK(fine.verdict == Verdict::Ok);
  CHECK(fine.what == dir / "spank_timeslice.so is loaded: " + dir / "conf.d/timeslice.conf");

  config["SlurmctldParameters"] = "enable_configless";
  CHECK(examinePlugstack(config).what.find("before 23.11 sends to no node") != std::string::npos);
  config["SLURM_VERSION"] = "23.11.1";
  CHECK(examinePlugstack(config).verdict == Verdict::Ok);

  write("conf.d/timeslice.conf", "required spank_timeslice.so\n");
  Finding required = examinePlugstack(config);
  CHECK(required.verdict == Verdict::Fail);
  CHECK(required.cure.starts_with("write optional"));
}

TEST_CASE("a node that is sent its configuration has it elsewhere", "[cli]") {
  test::TempDir dir;
  SlurmRecord config{{"PlugStackConfig", "/nowhere/plugstack.conf"},
                     {"SlurmctldParameters", "enable_configless"},
                     {"SLURM_VERSION", "22.05.8"}};
  Finding elsewhere = examinePlugstack(config, dir.path());
  CHECK(elsewhere.verdict == Verdict::Warn);
  CHECK(elsewhere.what.ends_with("this machine has none of its own"));

  std::ofstream(dir / "spank_timeslice.so") << "a library";
  std::ofstream(dir / "plugstack.conf") << "optional " << dir / "spank_timeslice.so"
                                        << "\n";
  CHECK(examinePlugstack(config, dir.path()).verdict == Verdict::Ok);
  config.erase("SlurmctldParameters");
  CHECK(examinePlugstack(config, dir.path()).verdict == Verdict::Warn);
}

TEST_CASE("a plugstack.conf that includes itself comes to an end", "[cli]") {
  test::TempDir dir;
  std::ofstream(dir / "plugstack.conf") << "include plugstack.conf\n";
  CHECK(examinePlugstack({{"PlugStackConfig", dir / "plugstack.conf"}}).verdict == Verdict::Fail);
}
