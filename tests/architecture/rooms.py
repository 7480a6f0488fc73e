"""The table "who may know whom" of docs/design.md, and what the sources include."""
import re

# Libraries by how their headers are spelled. What is none of these is libc's or the kernel's.
LIBRARIES = (
    ("kj", r"kj/"),
    ("capnp", r"capnp/|timeslice\.capnp\.h$"),
    ("libevent", r"event2/"),
    ("toml++", r"toml\+\+/"),
    ("sqlite", r"sqlite3\.h$"),
    ("zlib", r"zlib\.h$"),
    ("JSON", r"nlohmann/"),
    ("CLI11", r"CLI/"),
    ("libarchive", r"archive(_entry)?\.h$"),
    ("munge", r"munge\.h$"),
    ("slurm/spank.h", r"slurm/"),
    ("catch2", r"catch2/"),
    ("the C ABI header", r"timeslice/timeslice\.hp?p?$"),
    ("the driver's header", r"cuda\.h$|nvml\.h$"),
)
# Who knows one of these rooms speaks its language.
COMES_WITH = {"reactor": {"kj", "libevent"}, "wire": {"kj", "capnp"}}


def read_table(markdown):
    """{room: set of what it may know} from the fenced block whose first word is `core`."""
    block = re.search(r"```\n(core .*?)```", markdown, re.S)
    if not block:
        raise ValueError("docs/design.md has no fenced table that begins with `core`")
    table = {}
    for line in block.group(1).splitlines():
        left, right = re.split(r"\s{2,}", line.strip(), maxsplit=1)
        right = re.sub(r"\(one .*?\)|\(history.*?\)|;.*", "", right)
        words = {w.strip() for w in re.split(r",|\(and|\)", right) if w.strip()}
        words = {w for w in words if w not in ("nothing", "std", "libc", "what they dlopen")}
        for room in left.split(","):
            table[room.strip()] = words
    return table


def expand(words):
    return words.union(*(COMES_WITH.get(word, set()) for word in words))


INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def includes_of(text):
    """[(line number, is quoted, name)]"""
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1) == '"', m.group(2))
            for m in INCLUDE.finditer(text)]


def what_is(name, quoted, rooms):
    """A room, a library, "std", "libc", or "own" for a neighbour in the same folder."""
    for library, pattern in LIBRARIES:
        if re.match(pattern, name):
            return library
    head, _, rest = name.partition("/")
    if quoted:
        return head if rest and head in rooms else "own"
    return "libc" if name.endswith(".h") else "std"


def violations(room, text, table):
    """Sentences about what `text`, a file of `room`, must not include."""
    allowed = expand(table[room]) | {room, "own", "std"}
    if room not in ("core", "sim"):
        allowed.add("libc")
    found = []
    for line, quoted, name in includes_of(text):
        if name.rsplit("/", 1)[-1] == "main.cpp":
            found.append(f"{line}: nothing includes a main.cpp")
        what = what_is(name, quoted, table)
        if what not in allowed:
            found.append(f"{line}: {room} must not know {what} ({name}); "
                         f"it may know {', '.join(sorted(table[room])) or 'nothing'}")
    return found
