"""Rules of the house that a machine can check: length, first sentences, no sleeping."""
import re

MAX_LINES = 600
SLEEP = re.compile(
    r"\b(?:sleep|usleep|nanosleep|clock_nanosleep|sleep_for|sleep_until)\s*\(|^\s*sleep\s+[\d.$]", re.M)
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX)\b")


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def without_comments(text):
    # Newlines stay, so that line numbers do.
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def violations(path, text, may_sleep):
    found = []
    lines = text.count("\n")
    if lines > MAX_LINES:
        found.append(f"{lines}: longer than {MAX_LINES} lines; one concept per file")
    code = without_comments(text) if path.endswith((".c", ".cpp", ".h", ".hpp")) else text
    if not may_sleep:
        for match in SLEEP.finditer(code):
            found.append(f"{line_of(code, match)}: sleeps; wait for a condition")
    for match in UNFINISHED.finditer(text):
        found.append(f"{line_of(text, match)}: {match.group(0)}; do it or file it")
    if path.endswith((".h", ".hpp")):
        first = text.split("\n", 1)[0]
        if not re.match(r"(//|/\*) \S+", first):
            found.append("1: a header's first line is a sentence about what it is")
        if "#pragma once" not in text and not re.search(r"#ifndef \w+_H(?:PP)?\b", text):
            found.append("1: no #pragma once")
    return found
