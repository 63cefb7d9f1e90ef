#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how the sources are divided: files, functions, headers, includes and lines of code.

Lines of code are those that are neither empty nor only a comment; Markdown is not counted. The table of functions has
those of lib, plugins, duda, include, bin and tools.

    tests/hops/sizes.py [TREE...]     TREE: other checkouts, each a column of its own
"""

import collections
import os
import pathlib
import re
import statistics
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "lint"))
from source import read_tree  # noqa: E402
from style import functions, table_lines  # noqa: E402

SERVER = ("lib", "plugins", "bin")
CODE = ("lib", "plugins", "duda", "include", "bin", "tools")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
BLOCK_COMMENTS = {".html": ("<!--", "-->"), ".css": ("/*", "*/"), ".svg": ("<!--", "-->")}
NO_COMMENTS = (".json", ".txt", ".md")  # and the last is left out


def is_c(source):
    return source.path.endswith((".c", ".h"))


def count_code_lines(source):
    """Lines that are neither empty nor a comment."""
    suffix = os.path.splitext(source.path)[1]
    if suffix == ".md":
        return 0
    if source.kind == "c":
        return sum(bool(line.strip()) for line in source.code)
    text = source.text
    if suffix in BLOCK_COMMENTS:
        begin, end = map(re.escape, BLOCK_COMMENTS[suffix])
        text = re.sub(f"(?s){begin}.*?{end}", lambda match: "\n" * match[0].count("\n"), text)
    mark = "//" if suffix in (".js", ".mjs", ".rs") else None if suffix in NO_COMMENTS else "#"
    if suffix == ".css":
        mark = None
    if source.kind == "python":  # a string alone is a comment
        text = re.sub(r'(?ms)^\s*"""(?:.*?)"""\s*$', "", text)
    lines = (line.strip() for line in text.split("\n"))
    return sum(bool(line) and not (mark and line.startswith(mark)) for line in lines)


def find_users(sources):
    """{header that is no public one: files that include it, but for its own source}"""
    headers = {each.path for each in sources if each.path.endswith(".h") and not each.path.startswith("include/")}
    by_suffix = collections.defaultdict(set)
    for path in headers:
        parts = path.split("/")
        for first in range(len(parts)):
            by_suffix["/".join(parts[first:])].add(path)
    users = {path: set() for path in headers}
    for source in sources:
        for name in INCLUDE.findall(source.text):
            beside = os.path.normpath(os.path.join(os.path.dirname(source.path), name))
            found = {beside} if beside in headers else by_suffix.get(name, set())
            for path in found:
                if os.path.splitext(path)[0] != os.path.splitext(source.path)[0]:
                    users[path].add(source.path)
    return users


def measure_functions(sources):
    """Lines of each function from its name to its closing brace, without the rows of tables in it."""
    for source in sources:
        rows = table_lines(source.bare)
        for name, first, last in functions(source):
            if name != "?":  # a struct
                yield sum(number not in rows for number in range(first, last + 1))


def count(tree):
    every = read_tree(tree)
    code = [source for source in every if source.is_in(*CODE)]
    c = [source for source in code if is_c(source) and source.kind == "c"]
    lengths = sorted(measure_functions(c))
    lines = sum(len(source.lines) - 1 for source in c)
    users = find_users([source for source in c])
    includes = sum(len(INCLUDE.findall(source.text)) for source in c)
    counts = {
        "files `.c` and `.h` in lib, plugins, bin": sum(source.is_in(*SERVER) for source in c),
        "the same with duda, include, tools": len(c),
        "functions": len(lengths),
        "functions per 1,000 lines": f"{1000 * len(lengths) / lines:.1f}",
        "lines of a function: median": int(statistics.median(lengths)),
        "lines of a function: 90th percentile": lengths[len(lengths) * 9 // 10],
        "private headers": len(users),
        "private headers with one user but their source": sum(len(each) == 1 for each in users.values()),
        "lines of `#include`, %": f"{100 * includes / lines:.1f}",
    }
    for folder in CODE:
        counts[f"lines of code: {folder}"] = sum(count_code_lines(each) for each in code if each.is_in(folder))
    counts["lines of code"] = sum(map(count_code_lines, code))
    return counts


def main():
    columns = [count(pathlib.Path(tree).resolve()) for tree in sys.argv[1:] or [TOP]]
    print("| |" + " |" * len(columns) + "\n|---|" + "--:|" * len(columns))
    for name in columns[0]:
        values = (column[name] for column in columns)
        print(f"| {name} |" + "".join(f" {value:,} |" if isinstance(value, int) else f" {value} |" for value in values))


if __name__ == "__main__":
    main()
