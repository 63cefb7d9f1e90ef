# SPDX-License-Identifier: Apache-2.0
"""What fails a check besides its responses: wrong calls of the API, and a crash."""

import http.client
import re
import types

import pytest
from dudac.check_file import Place, make_check
from dudac.checks import run_checks
from dudac.events import Events
from dudac.expect import Answer
from dudac.monitor import Monitor

from running import make_folder, run_dudac

SOURCE = """#include <duda/duda.h>
#include <stdlib.h>

DUDA_REGISTER("test", "test");

static volatile int *volatile nowhere;

static void good(duda_request_t *dr)
{
    msg->warn("response is good");
    response->printf(dr, "good");
    response->end(dr, NULL);
}

static void bad(duda_request_t *dr)
{
    BAD
}

int duda_main(void)
{
    MAIN
    return router->get("/", good) && router->get("/bad", bad) ? 0 : -1;
}

void duda_exit(void)
{
    EXIT
}
"""
RESPOND = 'response->printf(dr, "bad"); response->end(dr, NULL);'
CHECKS = "".join(f'[[check]]\nname = "{name}"\nget = "{path}"\nstatus = 200\n'
                 for name, path in [("first", "/"), ("second", "/bad"), ("third", "/"), ("fourth", "/")])


def run_test(tmp_path, *options, bad=RESPOND, main="", at_exit="", files=None):
    source = SOURCE.replace("BAD", bad).replace("MAIN", main).replace("EXIT", at_exit)
    folder = make_folder(tmp_path, files={"apple.c": source, "checks.toml": CHECKS, **(files or {})})
    return run_dudac("test", folder, *options)


def passed(done, *names):
    return all(f"passed   {name}\n" in done.stdout for name in names)


def test_nothing_is_wrong(tmp_path):
    done = run_test(tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("4 of 4 checks passed\n"), done.stdout


@pytest.mark.parametrize("bad, sentence", [
    ('response->http_header(dr, "wrong"); ' + RESPOND, r"response->http_header\(\): its name or value is wrong"),
    (RESPOND + ' response->printf(dr, "late");', r"response->printf\(\): the response has ended already"),
    ("response->sse_send(dr, NULL, NULL, NULL); " + RESPOND, r"response->sse_send\(\): response->sse_begin\(\) must "),
    ('router->get("/late", good); ' + RESPOND, r"router->get\(\): it works only in duda_main\(\)"),
])
@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_wrong_call_fails_its_check(tmp_path, bad, sentence, times):
    checks = CHECKS.replace('get = "/bad"\n', f'get = "/bad"\ntimes = {times}\n')
    done = run_test(tmp_path, bad=bad, files={"checks.toml": checks})
    assert done.returncode == 1 and passed(done, "first", "third", "fourth")
    line = rf"{sentence}.*\(bad, \S*/apple\.c:17\)"
    assert re.search(rf"^failed   second\n         {line}$", done.stdout, re.M), done.stdout
    assert done.stdout.endswith("3 of 4 checks passed\n")


FIRST = CHECKS[:CHECKS.index("[[check]]", 1)]
PYTEST = ("import os, urllib.request\n\n\ndef test_it():\n"
          "    urllib.request.urlopen(os.environ['DUDA_URL'] + '/bad').read()\n")


@pytest.mark.parametrize("codes, sentence", [
    ({"main": 'router->get("wrong", good);'}, r'router->get\("wrong"\) adds no route: '),
    ({"at_exit": "response->end(NULL, NULL);"}, r"response->end\(\): "),
    ({"bad": "dthread->sleep(1); " + RESPOND, "files": {"test_it.py": PYTEST, "checks.toml": FIRST}},
     r"dthread->sleep\(\): only a dthread can wait"),
])
def test_a_wrong_call_outside_of_checks_fails_the_test(tmp_path, codes, sentence):
    done = run_test(tmp_path, **codes)
    assert done.returncode == 1 and "failed   " not in done.stdout
    assert re.search(rf"^dudac: calls of the API outside of checks were wrong:\n    {sentence}", done.stderr, re.M)


@pytest.mark.parametrize("bad", ["*nowhere = 1; " + RESPOND, RESPOND + " *nowhere = 1;", "exit(3);"])
@pytest.mark.parametrize("sanitize", ["none", "address,undefined"])
def test_a_crash_is_one_of_its_check(tmp_path, bad, sanitize):
    """The checks behind it are not run."""
    done = run_test(tmp_path, "--sanitize", sanitize, bad=bad)
    assert done.returncode == 1 and passed(done, "first")
    lines = (r"^failed   second\n +no answer: Remote end closed connection without response\n"
             r" +the server has ended: .*(?:apple\.c:17|exit\(3\)).*\n"
             r"not run  third\nnot run  fourth\n1 of 4 checks passed\n")
    assert re.search(lines, done.stdout, re.M), done.stdout


def test_a_server_that_is_gone_was_ended_by_the_check_before(monkeypatch):
    """A thread of the service has crashed after the response."""
    events, said, asked = Events(), [], []
    monitor = Monitor(events, types.SimpleNamespace(flush=lambda: events.put(("flushed", None))))
    names = "first", "second", "third", "last"
    checks = [make_check({"name": name, "get": "/"}, Place("here", {})) for name in names]
    server = types.SimpleNamespace(reports=types.SimpleNamespace(lines=[]), lines=[])
    session = types.SimpleNamespace(urls=lambda: ["http://here/"], server=server, services=[])
    screen = types.SimpleNamespace(say=lambda text, **_: said.append(text))

    def ask(*_):
        asked.append(True)
        if len(asked) == 3:
            events.put(("ended", -11))
            raise ConnectionRefusedError("Connection refused")
        return Answer(200, http.client.HTTPMessage(), b"")

    monkeypatch.setattr("dudac.checks.ask", ask)
    assert run_checks(session, checks, monitor, screen) == 3
    assert said == ["passed   first", "passed   second", "failed   second",
                    "         after its responses the server has ended: SIGSEGV (Segmentation fault)",
                    "not run  third", "not run  last", "1 of 4 checks passed"]


def test_other_lines_are_no_mistakes():
    monitor = Monitor(Events())
    time = "2026-11-29T11:24:38.860Z"
    monitor.note_lines([f"{time} warn  service rt: asked x", f"{time} warn  a->b(): c",
                        f"{time} info  service rt: event->add(): x"])
    assert monitor.take_mistakes() == []
    monitor.note_lines([f"{time} error service rt: event->add(): x"] * 2)
    assert monitor.take_mistakes() == ["event->add(): x"] and monitor.take_mistakes() == []
