# SPDX-License-Identifier: Apache-2.0
"""Files and functions that a document names in backticks must exist."""

import os
import re

from source import Finding

FILE = re.compile(r"`([\w./-]*\w\.(?:c|h|py|cmake|md))`")
FUNCTION = re.compile(r"`(\w+)\(\)`")
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
NOT_OURS = re.compile(r"CHANGELOG\.md$")  # it names what was

# Calls of the system and of libraries that documents may name.
FOREIGN = set("""
    accept4 bind calloc close connect dlclose dlopen epoll_ctl epoll_wait exec execv fchown fork free fstat getaddrinfo
    io_uring_enter kill listen malloc malloc_trim mmap mprotect open openat openat2 poll pread preadv2 prctl pwrite
    read readlink recv send sendfile setuid shutdown sigwait sleep splice stat statx syscall timerfd_create tcache write
    writev
    """.split())


def names_of(sources):
    words, paths, bases = set(), set(), set()
    for source in sources:
        paths.add(source.path)
        bases.add(os.path.basename(source.path))
        if source.kind in ("c", "python", "shell", "cmake", "template"):
            words.update(IDENTIFIER.findall(source.text))
    return words, paths, bases


def has_path(name, paths, bases):
    return name in bases if "/" not in name else any(path == name or path.endswith("/" + name) for path in paths)


def check(sources):
    words, paths, bases = names_of(sources)
    for source in sources:
        if not source.path.endswith(".md") or NOT_OURS.search(source.path):
            continue
        for number, line in enumerate(source.lines, 1):
            for name in FILE.findall(line):
                if not has_path(name.removeprefix("./"), paths, bases):
                    yield Finding(source.path, number, f"there is no file {name}")
            for name in FUNCTION.findall(line):
                if name not in words and name not in FOREIGN and not name.startswith(("SSL_", "nghttp2_", "pcre2_")):
                    yield Finding(source.path, number, f"there is no function {name}()")
