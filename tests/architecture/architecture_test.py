#!/usr/bin/env python3
"""Who may know whom, and the rules of the house, over every source file.

usage: architecture_test.py PROJECT_ROOT
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import house_rules  # noqa: E402
import report  # noqa: E402
import rooms  # noqa: E402

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
SOURCES = {".c", ".cpp", ".h", ".hpp"}
TEXTS = SOURCES | {".py", ".sh", ".capnp"}
# A stand-in for hardware and the work of a demo take time on purpose.
MAY_SLEEP = ("src/simgpu/",)


def files(folder, suffixes):
    return sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in suffixes and p.is_file())


def name_of(path):
    return path.relative_to(ROOT).as_posix()


class Architecture(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.table = rooms.read_table((ROOT / "docs" / "design.md").read_text())

    def test_rooms_include_only_whom_they_may_know(self):
        found = []
        for path in files("src", SOURCES) + files("spank-plugin", SOURCES):
            name = name_of(path)
            room = "spank-plugin" if name.startswith("spank-plugin/") else name.split("/")[1]
            if room not in self.table:
                found.append(f"{name}: the room {room} is not in the table of docs/design.md")
                continue
            found += [f"{name}:{v}" for v in rooms.violations(room, path.read_text(), self.table)]
        self.assertEqual(found, [])

    def test_the_table_names_every_room_and_no_other(self):
        there = {p.name for p in (ROOT / "src").iterdir() if p.is_dir()}
        named = set(self.table)
        self.assertEqual(there - named, set())
        self.assertEqual(named - there, {"spank-plugin"} & (named - there))

    def test_house_rules_hold_in_every_file(self):
        found = []
        for path in files("src", TEXTS) + files("tests", TEXTS) + files("include", SOURCES):
            name = name_of(path)
            if name.startswith("tests/architecture/"):
                continue  # spells out what it looks for
            may_sleep = name.startswith(MAY_SLEEP)
            found += [f"{name}:{v}"
                      for v in house_rules.violations(name, path.read_text(), may_sleep)]
        self.assertEqual(found, [])


class TheCheckItself(unittest.TestCase):
    """Planted violations: a check that cannot fail proves nothing."""

    TABLE = rooms.read_table("```\ncore     std\nwire     core, capnp, kj\n"
                             "local    nothing (one header that C can read)\n"
                             "config   toml++\n"
                             "node     wire, reactor, local\nreactor  kj, libevent\n"
                             "client, preload   local, the C ABI header, libc (and slurm/spank.h)\n```")

    def check(self, room, text, *expected):
        found = rooms.violations(room, text, self.TABLE)
        self.assertEqual(len(found), len(expected), found)
        for sentence, part in zip(found, expected):
            self.assertIn(part, sentence)

    def test_core_knows_the_standard_library_only(self):
        self.check("core", '#include <vector>\n#include "core/ids.h"\n#include "ids.h"\n')
        self.check("core", '#include <unistd.h>\n', "1: core must not know libc")
        self.check("core", '\n#include <kj/async.h>\n', "2: core must not know kj")

    def test_a_room_outside_the_list_is_refused(self):
        self.check("node", '#include "wire/link.h"\n#include <capnp/rpc.h>\n#include <event2/event.h>\n')
        self.check("node", '#include "core/ids.h"\n', "node must not know core")
        self.check("wire", '#include "node/node.h"\n', "wire must not know node")
        self.check("local", '#include "core/ids.h"\n', "it may know nothing")

    def test_libraries_are_known_by_their_headers(self):
        self.check("config", '#include <toml++/toml.h>\n')
        self.check("wire", '#include <toml++/toml.h>\n', "wire must not know toml++")
        self.check("client", '#include <timeslice/timeslice.h>\n#include <slurm/spank.h>\n')
        self.check("config", '#include <timeslice/timeslice.h>\n', "the C ABI header")

    def test_nothing_includes_a_main(self):
        self.check("node", '#include "node/main.cpp"\n', "nothing includes a main.cpp")

    def test_house_rules_find_what_is_planted(self):
        good = "// What it is.\n#pragma once\n"
        self.assertEqual(house_rules.violations("a.h", good, False), [])
        for bad, path in (("#pragma once\n", "a.h"), ("// What it is.\n", "a.h"),
                          (good + "int x;  // TODO: y\n", "a.h"), (good * 400, "a.h"),
                          ("void f() { usleep(3); }\n", "a.cpp"),
                          ("std::this_thread::sleep_for(1s);\n", "a.cpp"),
                          ("time.sleep(1)\n", "a.py"), ("if x; then\n  sleep 1\nfi\n", "a.sh")):
            self.assertEqual(len(house_rules.violations(path, bad, False)), 1, bad)
        self.assertEqual(house_rules.violations("a.cpp", "// never sleep(3)\n", False), [])
        self.assertEqual(house_rules.violations("a.cpp", "usleep(3);\n", True), [])


if __name__ == "__main__":
    report.main()
