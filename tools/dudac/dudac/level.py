# SPDX-License-Identifier: Apache-2.0
"""Which level of the API sources are written for, and how a service of that level is compiled.

3 is <duda/duda.h>. 0, 1 and 2 are levels of the original API, "webservice.h"; None is the original API without a mark
of one level, for which the header takes all forms that a compiler can tell apart. docs/internals/duda-compat.md
describes the rules and the flags.
"""

import re

NEW_LEVEL = 3

# What compilers before GCC 14 and Clang 16 only warn of: the call of an undeclared function cuts a pointer to the size
# of an int, and a function of another type than the framework calls reads arguments that were not passed.
TYPE_MISTAKES = ("implicit-function-declaration", "implicit-int", "int-conversion", "incompatible-pointer-types")
# They are errors for new services, and so is a function that ends without its result. The originals were written in
# this dialect, which newer compilers take only if they are told so.
NEW_FLAGS = ("-std=gnu17", "-Wall", "-Wextra", *(f"-Werror={name}" for name in (*TYPE_MISTAKES, "return-type")),
             "-pthread", "-fPIC", "-D_GNU_SOURCE=")
OLD_FLAGS = ("-std=gnu17", "-fgnu89-inline", "-fcommon", "-fno-strict-aliasing", "-w",
             *(f"-Wno-error={name}" for name in TYPE_MISTAKES), "-pthread", "-fPIC", "-D_GNU_SOURCE=",
             "-DDUDA_OLD_SERVICE=1")
LINK_FLAGS = ("-shared", "-pthread", "-Wl,-Bsymbolic", "-Wl,-z,noseparate-code")

NEW_HEADER = re.compile(r'^[ \t]*#[ \t]*include[ \t]+["<]duda/duda\.h[">]', re.M)
OLD_HEADER = re.compile(r'^[ \t]*#[ \t]*include[ \t]+["<](?:duda/)?webservice\.h[">]', re.M)
COMMENT_OR_TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)

EVENT_MODE = re.compile(r"\b(?:DUDA_EVENT|MK_EPOLL)_(?:READ|WRITE|RW|SLEEP|WAKEUP)\b")
REQUEST = re.compile(r"\bdr\b|duda_request_t")

CALL = re.compile(r"\b(\w+)\s*->\s*(\w+)\s*\(")

# Marks in the order of their weight: the first level that has one is taken; None if both 1 and 2 have one.
MARKS = (
    (2, {
        ("router", "map"): lambda args: True,
        ("router", "root"): lambda args: True,
        ("param", "get"): lambda args: len(args) == 2 and args[1].startswith('""'),
        ("param", "get_number"): lambda args: len(args) == 3 and args[1].startswith('""'),
        ("event", "loop_create"): lambda args: True,
        ("worker", "pre_loop"): lambda args: True,
        ("console", "dashboard"): lambda args: True,
    }),
    (0, {
        ("event", "add"): lambda args: len(args) == 9 and bool(REQUEST.search(args[1]) or EVENT_MODE.search(args[2])),
        ("global", "init"): lambda args: len(args) == 2,
        ("params", "get"): lambda args: len(args) == 2,
        ("websocket", "handshake"): lambda args: len(args) in (1, 6),
        ("websocket", "broadcast"): lambda args: len(args) == 4,
        ("websocket", "broadcast_all"): lambda args: len(args) == 3,
    }),
    (1, {
        ("websocket", "handshake"): lambda args: len(args) == 2,
        ("websocket", "broadcast"): lambda args: len(args) == 5,
        ("websocket", "broadcast_all"): lambda args: len(args) == 4,
        ("param", "get"): lambda args: len(args) == 2 and args[1].isdigit(),
        ("param", "get_number"): lambda args: len(args) == 3 and args[1].isdigit(),
    }),
)


def strip(text: str) -> str:
    """The code without comments, and with empty string literals."""
    return COMMENT_OR_TEXT.sub(lambda found: '""' if found[0][0] == '"' else " " if found[0][0] == "/" else "' '", text)


def split_arguments(code: str, start: int) -> list:
    """The arguments of a call behind its opening parenthesis at `start` - 1."""
    args, depth, begin = [], 0, start
    for at in range(start, len(code)):
        letter = code[at]
        if letter in "([{":
            depth += 1
        elif letter in ")]}" and depth:
            depth -= 1
        elif letter == ")" or (letter == "," and not depth):
            args.append(code[begin:at].strip())
            begin = at + 1
            if letter == ")":
                return [] if args == [""] else args
    return []


def find_calls(code: str):
    """Yields ((object, function), arguments) of the calls by an object's pointer."""
    for found in CALL.finditer(code):
        yield (found[1], found[2]), split_arguments(code, found.end())


def detect_level(texts) -> int | None:
    """The level of the sources and headers of one service, given by their texts."""
    texts = list(texts)
    if any(NEW_HEADER.search(text) for text in texts) or not any(OLD_HEADER.search(text) for text in texts):
        return NEW_LEVEL
    calls = [call for text in texts for call in find_calls(strip(text))]
    found = {level for level, marks in MARKS for name, args in calls if name in marks and marks[name](args)}
    return None if {1, 2} <= found else next((level for level, _ in MARKS if level in found), None)


def compile_flags(level: int | None, include) -> list:
    """The compiler's flags, which come before those of the service; `include` is the folder that has duda/."""
    if level == NEW_LEVEL:
        return [*NEW_FLAGS, f"-I{include}"]
    return [*OLD_FLAGS, *([] if level is None else [f"-DDUDA_API_LEVEL={level}"]), f"-I{include}", f"-I{include}/duda"]
