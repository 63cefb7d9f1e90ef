# SPDX-License-Identifier: Apache-2.0
"""
Conditional compilation: what a build leaves out is left out as whole files, by the lists of CMake
(lib/core/core.cmake). No source asks a constant what the build has, but for sanitizers and allocations that tests make
fail; tests of the preprocessor are few, and none stands in a function.
"""

import re

from source import Finding
from style import functions

TESTS_MAX = 8
TEST = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b(.*)")
GUARD = re.compile(r"^\s*#\s*ifndef (\w+_H)$")
ALLOWED = r"(?:ASAN|MSAN|TSAN|COUNTDOWN)\b"
BUILD = re.compile(r"\b(?:MK_SMALL|MK_LEAN|MK_EXPORT|MK_MANUAL|MK__EXTRAS|MK_HAS_(?!" + ALLOWED + r")\w+)\b")


def tests_of(source):
    """The numbers of lines with a test, without the guard of a header."""
    for number, line in enumerate(source.code, 1):
        if TEST.match(line) and not GUARD.match(line):
            yield number


def constants_of(source):
    """The constants of builds that the source reads."""
    for number, line in enumerate(source.bare, 1):
        match = BUILD.search(line)
        if match:
            yield Finding(source.path, number, f"{match[0]}: a build is a list of files (lib/core/core.cmake)")


def check(sources):
    total = []
    for source in sources:
        if source.kind != "c" or not source.is_in("lib", "plugins", "bin", "duda", "include"):
            continue
        yield from constants_of(source)
        if source.is_in("duda", "include"):
            continue
        found = list(tests_of(source))
        total += [(source.path, number) for number in found]
        for name, first, last in functions(source):
            for number in found:
                if first <= number <= last:
                    text = f"a preprocessor test in {name}(): leave out a file"
                    yield Finding(source.path, number, text)
    if len(total) > TESTS_MAX:
        path, number = total[-1]
        yield Finding(path, number, f"{len(total)} preprocessor tests in lib, plugins and bin, more than {TESTS_MAX}")
