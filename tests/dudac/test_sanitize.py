# SPDX-License-Identifier: Apache-2.0
"""`--sanitize`: mistakes of a service are reported with the names of its functions, and make a test fail."""

import contextlib
import re

import pytest
from dudac import DudacError
from dudac.installation import Installation
from dudac.sanitize import Reports, find_thread_server, parse_kinds
from dudac.screen import Screen

from harness import build
from running import ask, make_folder, make_source, run_dudac

# With a mistake that the compiler does not see.
MISTAKES = {
    "overflow": "kept = malloc(40); n = kept[10 + zero]; free(kept);",
    "freed": "kept = malloc(4); free(kept); n = *kept;",
    "print": "kept = malloc(4); free(kept); response->print(dr, (char *)kept, 4);",
    "print_ref": "kept = malloc(4); response->print_ref(dr, kept, 4); free(kept);",
    "sum": "n = 0x7fffffff + zero + (zero ? 0 : 1);",
}
# The parts of a report, in the order in which they are shown; a dthread does not begin in the handler.
FRAMES = r" +say apple.c:12\n(?: +handle apple.c:\d+\n)?"
SAID = {
    "overflow": rf"heap-buffer-overflow .*\n{FRAMES} +allocated by .*\n{FRAMES}",
    "freed": rf"heap-use-after-free .*\n{FRAMES} +freed by .*\n{FRAMES} +previously allocated .*\n{FRAMES}",
    "print": rf"heap-use-after-free .*\n{FRAMES} +freed by .*\n{FRAMES} +previously allocated .*\n{FRAMES}",
    "print_ref": rf"heap-use-after-free .*\n +freed by .*\n{FRAMES} +previously allocated .*\n{FRAMES}",
    "sum": rf"apple.c:12:\d+: runtime error: signed integer overflow: .*\n{FRAMES}",
}
CHECK = '[[check]]\nget = "/"\n'


def make_mistake(name, in_dthread=False):
    handler = "dthread->handle(dr, say, NULL)" if in_dthread else "say(dr, NULL)"
    return f"""#include <duda/duda.h>
#include <stdlib.h>

DUDA_REGISTER("test", "test");

static volatile int zero;
static int *volatile kept;

__attribute__((noinline)) static void say(duda_request_t *dr, void *data)
{{
    int n = 0;
    {MISTAKES[name]}
    (void)data;
    (void)kept;
    response->printf(dr, "%d\\n", n);
    response->end(dr, NULL);
}}

static void handle(duda_request_t *dr)
{{
    {handler};
}}

int duda_main(void)
{{
    return router->get("/", handle) ? 0 : -1;
}}
"""


def run_test(tmp_path, source, *options, env=None):
    folder = make_folder(tmp_path, files={"apple.c": source, "checks.toml": CHECK})
    return run_dudac("test", folder, *options, env={"CC": None, **(env or {})})


@pytest.mark.parametrize("in_dthread", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_fails_the_test(tmp_path, name, in_dthread):
    done = run_test(tmp_path, make_mistake(name, in_dthread))
    assert done.returncode == 1
    [said] = re.findall(r"^dudac: a sanitizer reports:\n(.*)^the whole report:", done.stderr, re.S | re.M)
    assert re.search(SAID[name], said), done.stderr
    assert "nested bug" not in done.stderr
    if build.SANITIZED:  # a release's duda.so has no names
        assert not re.search(r"0x[0-9a-f]+ +\(/proc/self/fd", done.stderr), done.stderr


# ── leaks ──

# The last pointer is lost; what is kept in a variable, and what the framework frees, is no leak.
LEAKS = """#include <duda/duda.h>
#include <duda/packages/json/json.h>
#include <stdlib.h>
#include <string.h>

DUDA_REGISTER("test", "test");

static char *kept;
static void *volatile lost;

__attribute__((noinline, unused)) static void lose(void *pointer)
{
    lost = pointer;
    lost = NULL;
}

static void in_dthread(duda_request_t *dr, void *data)
{
    (void)data;
    LOSE_IN_DTHREAD
    response->end(dr, NULL);
}

static void say(duda_request_t *dr)
{
    gc->add(dr, malloc(9));
    LOSE_IN_HANDLER
    response->printf(dr, "%d", worker->index());
    dthread->handle(dr, in_dthread, NULL);
}

int duda_main(void)
{
    duda_load_package(json, "json");
    kept = malloc(100);
    LOSE_IN_MAIN
    return router->get("/", say) ? 0 : -1;
}

void duda_exit(void)
{
    LOSE_IN_EXIT
}
"""
LEAK_ROWS = {
    "HANDLER": ("lose(strdup(kept ? \"a\" : \"b\"));", "say"),
    "DTHREAD": ("lose(malloc(9));", "in_dthread"),
    "MAIN": ("lose(malloc(9));", "duda_main"),
    "EXIT": ("lose(malloc(9));", "duda_exit"),
}


def make_leaks(**codes):
    source = LEAKS
    for name in LEAK_ROWS:
        source = source.replace(f"LOSE_IN_{name}", codes.get(name, ""))
    return source


@pytest.mark.parametrize("place, code", [*((name, code) for name, (code, _) in LEAK_ROWS.items()),
                                         ("HANDLER", "lose(json->create_object());")])
def test_a_leak_fails_the_test(tmp_path, place, code):
    source = make_leaks(**{place: code})
    line = source[:source.index(code)].count("\n") + 1
    done = run_test(tmp_path, source)
    assert done.returncode == 1 and "1 of 1 checks passed" in done.stdout
    said = done.stderr.partition("the whole report:")[0]
    assert re.search(r"^dudac: a sanitizer reports:\n +LeakSanitizer: detected memory leaks\n"
                     rf" +Direct leak of \d+ byte.*\n +{LEAK_ROWS[place][1]} apple.c:{line}\n", said, re.M), done.stderr
    assert "its code stays in memory" not in done.stderr


def test_what_the_framework_frees_is_no_leak(tmp_path):
    done = run_test(tmp_path, make_leaks())
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_only_leaks_of_services_are_reported(tmp_path):
    (tmp_path / "a.c").touch()
    own, foreign = f"    #1 0x1 in say {tmp_path}/a.c:3", "    #1 0x1 in say /other/a.c:3"
    head = "=" * 65, "==7==ERROR: LeakSanitizer: detected memory leaks", ""
    leak, end = "Direct leak of 9 byte(s) in 1 object(s) allocated from:", "SUMMARY: AddressSanitizer: 9 byte(s) leaked"

    def read(*lines):
        reports = Reports([str(tmp_path)])
        assert all([reports.take(line) for line in lines])
        return reports

    reports = read(*head, leak, foreign, "", end)
    assert reports.lines == [] and reports.explains(1) and not reports.explains(-11)
    assert read(*head, leak, foreign, "", leak, own, "", end).lines == [*head, leak, own, ""]
    assert read(*head, *[leak, foreign, ""] * 500, leak, own, "", end).lines == [*head, leak, own, ""]
    reports = read("==7==LeakSanitizer has encountered a fatal error.", "==7==HINT: LeakSanitizer does not work under "
                   "ptrace (strace, gdb, etc)")
    assert reports.lines == [] and reports.cannot_find_leaks and reports.explains(1)


def test_without_a_mistake(tmp_path):
    done = run_test(tmp_path, make_source())
    assert done.returncode == 0 and "Sanitizer" not in done.stderr
    assert (tmp_path / "apple/build/address-undefined/apple.duda").exists()


def test_without_sanitizers(tmp_path):
    done = run_test(tmp_path, make_mistake("sum"), "--sanitize", "none")
    assert done.returncode == 0 and "runtime error" not in done.stderr
    assert (tmp_path / "apple/build/apple.duda").exists()


def test_run_shows_reports(tmp_path, start):
    folder = make_folder(tmp_path, files={"apple.c": make_mistake("sum")})
    program = start("run", folder, "-p", 0, "--sanitize", "undefined")
    assert ask(program.wait_url())[0] == 200
    program.wait_line(r"^ +#0 .* in say .*apple.c:12")
    assert program.stop() == 130
    program.lines.clear()  # of the report, which is not one of the server


def test_build(tmp_path):
    folder = make_folder(tmp_path)
    done = run_dudac("build", folder, "--sanitize", "undefined,address", cwd=tmp_path)
    assert "apple/build/address-undefined/apple.duda: built in" in done.stdout, done.stderr
    assert run_dudac("build", folder, cwd=tmp_path).returncode == 0 and (folder / "build/apple.duda").exists()


@pytest.mark.parametrize("text, kinds", [("none", ()), ("undefined,address", ("address", "undefined")),
                                         (" thread , undefined", ("undefined", "thread"))])
def test_lists_of_sanitizers(text, kinds):
    assert parse_kinds(text) == kinds


@pytest.mark.parametrize("text, sentence", [
    ("leak", 'there is no sanitizer "leak"; --sanitize takes address,'),
    ("address,thread", "address and thread cannot be combined"), ("", "there is no"),
])
def test_wrong_lists(tmp_path, text, sentence):
    with pytest.raises(DudacError, match=re.escape(sentence)):
        parse_kinds(text)
    done = run_dudac("build", make_folder(tmp_path), "--sanitize", text)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_a_compiler_without_the_runtime(tmp_path):
    """The message says what to do. It is asked only if the server has no sanitizer of its own."""
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ncase $* in *print-file-name*) echo libasan.so;; *) exec gcc "$@";; esac\n')
    compiler.chmod(0o755)
    done = run_test(tmp_path, make_source(), env={"CC": compiler})
    if "address" in build.PRESET or build.PRESET == "asan":
        assert done.returncode == 0
    else:
        assert done.returncode == 1 and "has no libasan.so, which --sanitize needs; use gcc, or" in done.stderr


AT = "#0 0x1 in print (/proc/self/fd//5+0x1)", "#1 0x2 in say {0}/ref.c:11", "#2 0x3 in handle {0}/ref.c:20:4"
ASAN = "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x602 at pc 0x5 bp 0x6 sp 0x7"
FREED = "0x602 is located 0 bytes inside of 4-byte region", "freed by thread T3 here:"
ALLOCATED = "previously allocated by thread T3 here:"
RACE_BY = "  Write of size 4 at 0x7 by thread T2 (mutexes: write M1):"


@pytest.mark.parametrize("lines, title", [
    ([ASAN, *AT, *FREED, *AT], "AddressSanitizer: heap-use-after-free in say(), ref.c:11"),
    ([ASAN, AT[0], *FREED, *AT, ALLOCATED, *AT], "AddressSanitizer: heap-use-after-free, freed in say(), ref.c:11"),
    ([ASAN, AT[0], *FREED, AT[0], ALLOCATED, AT[2]],
     "AddressSanitizer: heap-use-after-free, allocated in handle(), ref.c:20"),
    ([ASAN, AT[0], "Thread T3 created by T0 here:", AT[2]], "AddressSanitizer: heap-use-after-free"),
    ([ASAN, AT[0], ASAN, *AT], "AddressSanitizer: heap-use-after-free"),
    (["WARNING: ThreadSanitizer: data race (pid=7)", RACE_BY, *AT], "ThreadSanitizer: data race in say(), ref.c:11"),
    (["ref.c:11:3: runtime error: division by zero", *AT], "ref.c:11:3: runtime error: division by zero"),
    ([], ""),
])
def test_titles_of_reports(tmp_path, lines, title):
    (tmp_path / "ref.c").touch()
    reports = Reports([str(tmp_path)])
    for line in lines:
        reports.take(("    " if line in AT else "") + line.format(tmp_path))
    assert reports.describe_first() == title


@pytest.mark.parametrize("status", [0, 1])
def test_the_server_with_threads_is_brought_up_to_date(tmp_path, monkeypatch, capsys, status):
    """Also if it is there: it may be older than the headers."""
    dev, server = tmp_path / "dev", tmp_path / "build/tsan/bin/monkey"
    server.parent.mkdir(parents=True)
    for program in (dev, server):
        program.write_text(f'#!/bin/sh\necho "[$*]" | tee -a {tmp_path}/calls\nexit {status}\n')
        program.chmod(0o755)
    monkeypatch.setattr("dudac.sanitize.list_tops", lambda: (tmp_path, tmp_path))
    installation, sentence = Installation(tmp_path, server), f"run {re.escape(str(dev))} build tsan$"
    with contextlib.nullcontext() if status == 0 else pytest.raises(DudacError, match=sentence):
        assert find_thread_server(installation, Screen()) == server
    assert (tmp_path / "calls").read_text() == "[--build]\n[build tsan programs]\n"
    assert "up to date" in (said := capsys.readouterr().err) and ("[build" in said) == (status != 0)


def test_without_sources_there_is_no_server_with_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("dudac.sanitize.list_tops", lambda: (tmp_path, tmp_path))
    monkeypatch.setattr("dudac.sanitize.read_built", lambda server: set())
    with pytest.raises(DudacError, match="run dudac of a checkout"):
        find_thread_server(Installation(tmp_path, tmp_path / "monkey"), Screen())


def test_reports_are_bounded():
    reports = Reports([])
    assert not reports.take("2026-11-20T05:04:03.123Z info  service: text") and not reports.take("text")
    for _ in range(10_000):
        assert reports.take("a.c:1:2: runtime error: x")
    assert not reports.take("2026-11-20T05:04:03.123Z info  service: text") and len(reports.lines) == 500
