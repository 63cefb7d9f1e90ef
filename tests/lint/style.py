# SPDX-License-Identifier: Apache-2.0
"""
The rules of the project that a program can check: one function per rule, each yields (line, text). RULES says which
kinds of files a rule is for. The layers have their own file, and so have the programs of others (tools.py).
"""

import re

from source import Finding

LINE_LENGTH_MAX = 120
FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 800

BANNED = {
    "strcpy": "it knows no limit", "strcat": "it knows no limit", "stpcpy": "it knows no limit",
    "sprintf": "it knows no limit; snprintf does", "vsprintf": "it knows no limit; vsnprintf does",
    "gets": "it knows no limit", "strtok": "it keeps state; mk_str_next does not", "atoi": "it hides errors",
    "system": "it runs a shell", "popen": "it runs a shell", "alloca": "the stack has no limit to ask",
}
ALLOCATORS = "malloc calloc realloc reallocarray free strdup strndup asprintf vasprintf aligned_alloc posix_memalign"
ALLOCATOR_HOME = "lib/core/base/arena.c"
SERVICES_HEAP = "duda/core/common/mem.c"  # what services free themselves
SHELL = "bin/shell/"  # passes memory to libedit, and frees what that returns

BANNED_CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
ALLOCATOR_CALL = re.compile(r"(?<![\w.>])(" + "|".join(ALLOCATORS.split()) + r")\s*\(")
LEFT_OVER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~})/-])/(?:home|work|root)/[\w.-]")
REGISTRY = re.compile(
    r"(?i)\b(?:deb\.debian\.org|pypi\.org|pythonhosted\.org|registry\.npmjs\.org|crates\.io|proxy\.golang\.org"
    r"|rubygems\.org|docker\.io|ghcr\.io|quay\.io)\b")
TABLE_BEGIN = re.compile(r"^(\s*)(?:static )?(?:const )?.*=\s*\{$")


# Its text is that of an article, without a change.
PUBLISHED = "docs/examples/services/12-wschat/wschat.c"


def licence(source):
    if source.path == PUBLISHED:
        return
    first = source.lines[1] if source.lines[0].startswith("#!") and len(source.lines) > 1 else source.lines[0]
    if "SPDX-License-Identifier: Apache-2.0" not in first:
        yield 1, "the file does not begin with its SPDX-License-Identifier"


def banned_functions(source):
    for number, line in enumerate(source.bare, 1):
        for match in BANNED_CALL.finditer(line):
            yield number, f"{match[1]}() is not used here: {BANNED[match[1]]}"


def allocation(source):
    if source.path in (ALLOCATOR_HOME, SERVICES_HEAP) or source.path.startswith(SHELL):
        return
    if not source.is_in("lib", "plugins", "bin", "include", "duda"):
        return
    for number, line in enumerate(source.bare, 1):
        for match in ALLOCATOR_CALL.finditer(line):
            yield number, f"{match[1]}() belongs to {ALLOCATOR_HOME}; use an account, an arena or a buffer"


def table_lines(lines):
    """The numbers of the lines that are rows of a table: initializers, whose length is no complexity."""
    rows, closing = set(), None
    for number, line in enumerate(lines, 1):
        if closing is None:
            begin = TABLE_BEGIN.match(line)
            closing = begin[1] + "};" if begin else None
        elif line.startswith(closing):
            closing = None
        else:
            rows.add(number)
    return rows


def functions(source):
    """(name, line of the name, line of the closing brace); the style puts both braces at the margin."""
    for number, line in enumerate(source.bare, 1):
        if line != "{":
            continue
        first = number - 1
        while first > 1 and source.bare[first - 1].startswith((" ", "\t")):
            first -= 1
        last = number
        while last < len(source.bare) and not source.bare[last - 1].startswith("}"):
            last += 1
        name = re.search(r"(\w+)\s*\(", source.bare[first - 1])
        yield name[1] if name else "?", first, last


def function_name(source):
    if not source.is_in("lib", "plugins", "bin", "include", "duda", "tools") or "/data/" in source.path:
        return
    for name, first, _ in functions(source):
        if "_" not in name and name not in ("main", "?"):  # the latter is a struct
            yield first, f"{name}() does not say what it acts on: a verb and an object, for backtraces"


def function_length(source):
    rows = table_lines(source.bare)
    for name, first, last in functions(source):
        length = sum(number not in rows for number in range(first, last + 1))
        if length > FUNCTION_LINES_MAX:
            yield first, f"{name}() has {length} lines, more than {FUNCTION_LINES_MAX}"


def file_length(source):
    length = len(source.lines) - 1 - len(table_lines(source.bare))
    if length > FILE_LINES_MAX and not source.is_in("include"):  # contracts are as long as what they declare
        yield 1, f"the file has {length} lines without its tables, more than {FILE_LINES_MAX}"


def trailing_space(source):
    for number, line in enumerate(source.lines, 1):
        if line != line.rstrip():
            yield number, "space or carriage return at the end of the line"


def last_line(source):
    if source.text and (not source.text.endswith("\n") or source.text.endswith("\n\n")):
        yield len(source.lines), "the file does not end with one newline"


def tabs(source):
    for number, line in enumerate(source.lines, 1):
        if "\t" in line:
            yield number, "a tab"


def line_length(source):
    for number, line in enumerate(source.lines, 1):
        if len(line) > LINE_LENGTH_MAX:
            yield number, f"{len(line)} characters, more than {LINE_LENGTH_MAX}"


def left_over(source):
    for number, line in enumerate(source.lines, 1):
        match = LEFT_OVER.search(line)
        if match:
            yield number, f"{match[1]}: do it, or open an issue"


def machine_path(source):
    for number, line in enumerate(source.lines, 1):
        match = MACHINE_PATH.search(line)
        if match:
            yield number, f"a path of one machine: {match[0]}..."


def registry(source):
    for number, line in enumerate(source.lines, 1):
        match = REGISTRY.search(line)
        if match:
            yield number, f"the host of a package registry: {match[0]}"


CODE = ("c", "python", "shell", "cmake", "template")
EVERY = CODE + ("text",)
RULES = {
    licence: CODE,
    banned_functions: ("c",),
    allocation: ("c",),
    function_name: ("c",),
    function_length: ("c",),
    file_length: ("c",),
    trailing_space: EVERY,
    last_line: CODE,
    tabs: ("c", "python", "shell", "cmake"),
    line_length: CODE,
    left_over: CODE,
    machine_path: EVERY,
    registry: EVERY,
}


def check(sources):
    for source in sources:
        for rule, kinds in RULES.items():
            if source.kind in kinds and source.path != "LICENSE":
                for line, text in rule(source):
                    yield Finding(source.path, line, text)
