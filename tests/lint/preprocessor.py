# SPDX-License-Identifier: Apache-2.0
"""
Conditional compilation: what a build leaves out is left out as whole files and by constants (`if (MK_HAS_RELOAD)`), so
tests of the preprocessor are few, and none stands in a function.
"""

import re

from source import Finding
from style import functions

TESTS_MAX = 30
TEST = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b(.*)")
GUARD = re.compile(r"^\s*#\s*ifndef (\w+_H)$")


def tests_of(source):
    """The numbers of lines with a test, without the guard of a header."""
    for number, line in enumerate(source.code, 1):
        if TEST.match(line) and not GUARD.match(line):
            yield number


def check(sources):
    total = []
    for source in sources:
        if source.kind != "c" or not source.is_in("lib", "plugins", "bin"):
            continue
        found = list(tests_of(source))
        total += [(source.path, number) for number in found]
        for name, first, last in functions(source):
            for number in found:
                if first <= number <= last:
                    text = f"a preprocessor test in {name}(): leave out a file, or use a constant"
                    yield Finding(source.path, number, text)
    if len(total) > TESTS_MAX:
        path, number = total[-1]
        yield Finding(path, number, f"{len(total)} preprocessor tests in lib, plugins and bin, more than {TESTS_MAX}")
