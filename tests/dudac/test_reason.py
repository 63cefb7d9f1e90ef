# SPDX-License-Identifier: Apache-2.0
"""Why a service does not compile or start, or has crashed, in one line."""

import pathlib
import types

import pytest
from dudac.reason import describe_build, describe_crash, describe_start

SERVICES = [types.SimpleNamespace(folder=pathlib.Path("/top/apple"))]
CRASH = 'error the service "apple" has crashed: '
FRAMES = ["error     #0 libc.so.6+0x1 (abort)", "error     #1 apple.duda+0x1a (show_item, /top/apple/sub/a.c:31)",
          "error     #2 apple.duda+0x2a (say, /top/apple/apple.c:8)"]


def describe(*lines):
    return describe_crash([f"2026-11-23T14:29:58.283Z {line}" for line in lines], SERVICES)


@pytest.mark.parametrize("headline, before, behind", [
    ("SIGSEGV at address 0x0 in worker 0", "SIGSEGV", ""),
    ("SIGSEGV at address 0x0 in worker 0, in the dthread apple.duda+0x1 (f, a.c:1), whose stack has overflowed",
     "SIGSEGV", ""),
    ("SIGABRT in worker 0: free(): invalid pointer", "SIGABRT", ": free(): invalid pointer"),
    ("SIGABRT in the task apple.duda+0x1 (f, a.c:1): a.c:2: f: Assertion `x' failed.", "SIGABRT",
     ": a.c:2: f: Assertion `x' failed."),
])
def test_crashes(headline, before, behind):
    assert describe("warn  service apple: before", CRASH + headline, *FRAMES) == \
        f"{before} in show_item(), sub/a.c:31{behind}"
    assert describe(CRASH + headline, FRAMES[0]) == before + behind


def test_crashes_of_other_kinds():
    called = 'the service "apple" has called exit(3), which would end the server: a service must return'
    assert describe(f"error {called}", f"{CRASH}SIGABRT in worker 0", *FRAMES) == called
    ended = CRASH.replace("has ", "has ended, but a thread of it ran on and has ")
    assert describe(f"{ended}SIGSEGV") == "SIGSEGV"
    assert describe("warn  service apple: " + CRASH + "SIGSEGV") == describe() == ""


@pytest.mark.parametrize("output, reason", [
    ("a.c: In function ‘f’:\n\x1b[01ma.c:3:5:\x1b[K warning: x\na.c:13:5: \x1b[31merror: \x1b[Ky\na.c:14:1: error: z\n",
     "a.c:13: error: y"),
    ("a.c:1:10: fatal error: x.h: No such file or directory\n", "a.c:1: fatal error: x.h: No such file or directory"),
    ("/usr/bin/ld: /top/a.o: in function `f':\n/top/apple/a.c:13: undefined reference to `g'\n",
     "a.c:13: undefined reference to `g'"),
    ("collect2: error: ld returned 1 exit status\n", ""),
])
def test_builds(output, reason):
    assert describe_build(output, SERVICES) == reason


@pytest.mark.parametrize("problem, said, reason", [
    ('the service "a" cannot be used, and its last version stays in use: duda_main() has returned -1',
     ["2026Z warn  service a: first", "2026Z error service a: no table: x"],
     "duda_main() has returned -1: no table: x"),
    ('the service "a" cannot be used: it is no service', ["2026Z warn  of the server"], "it is no service"),
    ("the new configuration cannot be used at all", [], "the new configuration cannot be used at all"),
])
def test_starts(problem, said, reason):
    assert describe_start(problem, said) == reason
