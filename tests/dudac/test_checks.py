# SPDX-License-Identifier: Apache-2.0
"""`dudac test`: the checks of checks.toml and test_*.py, and `dudac new`, whose templates have some."""

import contextlib
import http.client
import json
import os
import re
import shlex
import socket
import threading
import time

import pytest
from click.testing import CliRunner
from dudac import DudacError
from dudac.check_file import Place, make_check, read_checks
from dudac.checks import find_mistake
from dudac.cli import group
from dudac.events import Events
from dudac.expect import Answer, compare, expect_headers
from dudac.monitor import Monitor
from dudac.new import TEMPLATES, list_templates

from running import DUDAC, make_folder, make_source, run_dudac

JSON = make_source().replace('"%s\\n", "one"', '"{\\"a\\": [1, true]}"')
PASSES = '[[check]]\nget = "/"\nbody = "one\\n"\n'


HERE = Place("here", {})


def run_checks(tmp_path, checks, **files):
    files = {"apple.c": files.pop("source", make_source()), "checks.toml": checks, **files}
    return run_dudac("test", make_folder(tmp_path, files=files))


RIGHT = ["", "status = 200", 'body = "one\\n"', 'contains = "n"', 'matches = "^o.e$"',
         'headers = {Content-Length = "4"}', 'send_headers = {Accept = "*/*"}']
WRONG = {
    "status = 404": "the status is 200 instead of 404: 'one\\n'",
    'body = "one"': "the body is 'one\\n' instead of 'one'",
    'contains = "two"': "the body 'one\\n' does not contain 'two'",
    'matches = "^two$"': "the body 'one\\n' does not match ^two$",
    'json = 1': "the body 'one\\n' is no JSON: ",
    'headers = {Content-Type = "text/html"}': "Content-Type is missing instead of 'text/html'",
    'headers = {content-length = "5"}': "content-length is '4' instead of '5'",
}


def test_checks_that_pass(tmp_path):
    checks = [f'[[check]]\nget = "/"\n{expectation}\n' for expectation in [*RIGHT, 'name = "its name"']]
    done = run_checks(tmp_path, "".join(checks))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed   GET /\n" * len(RIGHT) + "passed   its name\n8 of 8 checks passed\n" in done.stdout


def test_checks_that_fail(tmp_path):
    """Each between two that pass."""
    checks = [f'[[check]]\nname = "number {number}"\nget = "/"\n{expectation}\n' + PASSES
              for number, expectation in enumerate(WRONG)]
    done = run_checks(tmp_path, PASSES + "".join(checks))
    assert done.returncode == 1
    for number, sentence in enumerate(WRONG.values()):
        assert f"passed   GET /\nfailed   number {number}\n         {sentence}" in done.stdout
    assert done.stdout.endswith("passed   GET /\n8 of 15 checks passed\n")


def test_one_check_that_fails(tmp_path):
    done = run_checks(tmp_path, '[[check]]\nget = "/"\nstatus = 404\n')
    assert done.returncode == 1 and done.stdout.endswith("0 of 1 checks passed\n")


def test_json(tmp_path):
    done = run_checks(tmp_path, '[[check]]\nget = "/"\njson = {a = [1, true]}\n', source=JSON)
    assert done.returncode == 0, done.stdout
    done = run_checks(tmp_path, '[[check]]\nget = "/"\njson = {a = [2, true]}\n', source=JSON)
    assert '{"a": [1, true]} instead of {"a": [2, true]}' in done.stdout


def test_without_an_expectation_the_status_is_200(tmp_path):
    done = run_checks(tmp_path, '[[check]]\nget = "/nothing"\n')
    assert done.returncode == 1 and "the status is 404 instead of 200" in done.stdout


def test_what_a_check_sends():
    [[request]] = make_check({"post": "/x?a=b", "send_json": {"a": 1}, "send_headers": {"X-A": "b"}}, HERE).steps
    assert (request.method, request.path, json.loads(request.send)) == ("POST", "/x?a=b", {"a": 1})
    assert request.send_headers == {"X-A": "b", "Content-Type": "application/json"}
    assert make_check({"put": "/", "send": "é"}, HERE).steps[0][0].send == "é".encode()
    [[request]] = make_check({"put": "/", "send_json": 1, "send_headers": {"content-type": "x/y"}}, HERE).steps
    assert request.send_headers == {"content-type": "x/y"}


def test_a_header_that_is_sent_twice():
    headers = http.client.HTTPMessage()
    headers["Set-Cookie"], headers["Set-Cookie"] = "a=1", "b=2"
    answer = Answer(200, headers, b"")
    assert expect_headers(answer, {"Set-Cookie": "b=2"}) is None
    assert expect_headers(answer, {"set-cookie": {"matches": "^b="}, "X-A": {"absent": True}}) is None
    assert expect_headers(answer, {"Set-Cookie": {"matches": "^c="}}) == (
        "Set-Cookie is 'a=1', 'b=2' which does not match ^c=")
    assert expect_headers(answer, {"Set-Cookie": {"absent": True}}) == (
        "Set-Cookie is 'a=1', 'b=2' instead of absent")
    assert expect_headers(answer, {"X-A": {"any": "value"}}) == "X-A is missing instead of any value"


VALUE = {"id": 7, "name": "apple", "ok": True, "none": None, "list": [1, {"a": 2, "b": 3}], "half": 0.5}


@pytest.mark.parametrize("wanted, sentence", [
    ({}, None), ({"id": 7, "name": "apple"}, None), (VALUE, None), ({"list": [1, {"b": 3}]}, None),
    ({"name": {"matches": "^ap+le$"}, "id": {"any": "integer"}, "half": {"any": "number"}}, None),
    ({"ok": {"any": "boolean"}, "none": {"any": "value"}, "list": {"any": "array"}, "other": {"absent": True}}, None),
    ({"list": [{"any": "number"}, {"any": "object"}]}, None),
    ({"id": 8}, "the body.id is 7 instead of 8"),
    ({"ok": 1}, "the body.ok is true instead of 1"),
    ({"other": 1}, "the body.other is missing instead of 1"),
    ({"name": {"matches": "^p"}}, 'the body.name is "apple", which does not match ^p'),
    ({"id": {"matches": "7"}}, "the body.id is 7, which does not match 7"),
    ({"half": {"any": "integer"}}, "the body.half is 0.5, instead of any integer"),
    ({"ok": {"any": "number"}}, "the body.ok is true, instead of any number"),
    ({"other": {"any": "value"}}, "the body.other is missing, instead of any value"),
    ({"id": {"absent": True}}, "the body.id is 7, instead of absent"),
    ({"list": [1]}, 'the body.list has 2 elements instead of 1: [1, {"a": 2, "b": 3}]'),
    ({"list": [1, {"a": 3}]}, "the body.list[1].a is 2 instead of 3"),
    ({"list": {"a": 1}}, 'the body.list is [1, {"a": 2, "b": 3}] instead of {"a": 1}'),
    ([], "instead of []"),
])
def test_parts_of_json(wanted, sentence):
    mistake = compare(VALUE, wanted, "the body")
    assert mistake is None if sentence is None else sentence in mistake


def test_json_has(tmp_path):
    check = '[[check]]\nget = "/"\njson_has = {a = [{any = "%s"}, true]}\n'
    done = run_checks(tmp_path, check % "number" + check % "string", source=JSON)
    assert "passed   GET /\nfailed   GET /\n         the body.a[0] is 1, instead of any string\n" in done.stdout


# Counts in a cookie, and in a variable of all workers; says which of them it was.
COUNTS = """#include <duda/duda.h>

#include <stdatomic.h>
#include <stdlib.h>

DUDA_REGISTER("test", "test");

static atomic_int total;

static void count(duda_request_t *dr)
{
    const char *name = cookie->get(dr, "n");
    int own = name ? atoi(name) + 1 : 1;
    cookie->set(dr, &(struct duda_cookie){.name = "n", .value = own % 2 ? "1" : "2", .secure = true});
    response->printf(dr, "%d %d", own, atomic_fetch_add(&total, 1) + 1);
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", count) ? 0 : -1;
}
"""

STEPS = """
[[check]]
name = "has cookies between its steps"

[[check.step]]
get = "/"
body = "1 1"

[[check.step]]
get = "/"
body = "2 2"

[[check.step]]
get = "/"
send_headers = {Cookie = "n=5"}
body = "6 3"

[[check.step]]
get = "/"
send_headers = {cookie = "other=1"}
body = "1 4"

[[check]]
name = "begins without them"
get = "/"
times = 50
matches = "^1 "

[[check]]
name = "was asked each time"

[[check.step]]
at_once = [
    {get = "/", times = 3, matches = "^1 5[5-7]$"},
    {get = "/nothing", status = 404},
]

[[check.step]]
get = "/"
matches = " 58$"

[[check]]
name = "fails in a step"

[[check.step]]
get = "/"

[[check.step]]
[[check.step.at_once]]
get = "/"
times = 2
body = "x"

[[check.step.at_once]]
get = "/nothing"
status = 404
"""


def test_steps(tmp_path):
    done = run_checks(tmp_path, STEPS, source=COUNTS)
    assert "passed   has cookies between its steps\npassed   begins without them\npassed   was asked" in done.stdout
    line = STEPS[:STEPS.index("[[check.step.at_once]]")].count("\n") + 1
    assert (f"failed   fails in a step\n         step 2, line {line}, GET /: 2 of 3 at once: the body is '2 "
            in done.stdout)
    assert done.returncode == 1 and done.stdout.endswith("3 of 4 checks passed\n")


# Appends a byte to a file of its data, and says how many it has.
WRITES = """#include <duda/duda.h>

#include <stdio.h>

DUDA_REGISTER("test", "test");

static void append(duda_request_t *dr)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/x", data->get_path());
    FILE *file = fopen(path, "a");
    fputc('x', file);
    response->printf(dr, "%ld", ftell(file));
    fclose(file);
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", append) ? 0 : -1;
}
"""


def test_data_of_its_own(tmp_path):
    """Each test begins with the same; the folder data is not changed."""
    checks = '[[check]]\nget = "/"\nbody = "3"\n'
    for _ in range(2):
        done = run_checks(tmp_path, checks, source=WRITES, **{"data/x": "ab"})
        assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path / "apple"
    assert (folder / "data/x").read_text() == "ab"
    done = run_checks(tmp_path, checks, source=WRITES, **{"test-data/x": "abcd"})
    assert done.returncode == 1 and "the body is '5' instead of '3'" in done.stdout
    built = folder / "build/address-undefined"
    assert sorted(path.name for path in built.iterdir()) == [".gitignore", "apple.duda", "obj"]
    done = run_dudac("test", folder, "--keep", cwd=tmp_path)
    assert done.returncode == 1
    assert "the data of the test is in apple/build/address-undefined/test-data\n" in done.stderr
    assert (built / "test-data/apple/x").read_text() == "abcdx"


def test_data_that_is_too_large(tmp_path):
    folder = make_folder(tmp_path, files={"apple.c": WRITES, "checks.toml": PASSES, "data/x": ""})
    os.truncate(folder / "data/x", 1 << 27)
    done = run_dudac("test", folder)
    assert done.returncode == 1 and "has more than 10000 files or 64 MB" in done.stderr
    assert "make a folder test-data" in done.stderr


def test_no_answer():
    mistake = find_mistake("http://127.0.0.1:1/x/", make_check({"get": "/"}, HERE), Monitor(Events()))
    assert mistake.startswith("no answer: ")


class Peer:
    """Answers one request with bytes, again and again until the client closes."""

    def __init__(self, head, piece):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/x/"
        self.thread = threading.Thread(target=self.answer, args=(head, piece), daemon=True)
        self.thread.start()

    def answer(self, head, piece):
        connection, _ = self.listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(4096)
            connection.sendall(head)
            while piece:
                connection.sendall(piece)
                time.sleep(0.01)
            while connection.recv(4096):
                pass

    def close(self):
        self.thread.join(30)
        assert not self.thread.is_alive()
        self.listener.close()


@pytest.mark.parametrize("head, piece", [
    (b"HTTP/1.1 200 OK\r\n\r\n", b"x"), (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), (b"HTTP/1.1 200 OK\r\nX: ", b"y"), (b"", b""),
])
def test_an_answer_that_never_ends(monkeypatch, head, piece):
    monkeypatch.setattr("dudac.checks.SECONDS", 0.3)
    with contextlib.closing(Peer(head, piece)) as peer:
        assert find_mistake(peer.url, make_check({"get": "/"}, HERE), Monitor(Events())).startswith("no answer: ")


def test_another_protocol_gets_no_further_request():
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    check = make_check({"get": "/", "send_headers": {"Upgrade": "websocket"}, "status": 101}, HERE)
    monitor = Monitor(Events())
    with contextlib.closing(Peer(head, b"")) as peer:
        assert find_mistake(peer.url, check, monitor) is None
    assert not monitor.has_lost


def test_a_body_that_is_too_long(monkeypatch):
    monkeypatch.setattr("dudac.checks.BODY_BYTES_MAX", 10_000)
    with contextlib.closing(Peer(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 5_000)) as peer:
        mistake = find_mistake(peer.url, make_check({"get": "/"}, HERE), Monitor(Events()))
    assert mistake == "no answer: the body has more than 10000 bytes"


@pytest.mark.parametrize("body, expectation, sentence", [
    (b"\xff\x1b[31m\x00", 'contains = "x"', "the body '\ufffd\\x1b[31m\\x00' does not contain 'x'"),
    (b"[" * 50_000, "json = 1", "is no JSON: maximum recursion depth"),
    (b"[" + b"1, " * 1000 + b"1]", "json = 1", "... (3003 characters) instead of 1"),
    (b"x" * 1000, 'body = "x"', "xxx... (1000 characters) instead of 'x'"),
    (b"\xff", "json = 1", "is no JSON: "),
])
def test_odd_bodies(tmp_path, body, expectation, sentence):
    path = tmp_path / "checks.toml"
    path.write_text(f'[[check]]\nget = "/"\n{expectation}\n')
    [check] = read_checks(path)
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    with contextlib.closing(Peer(head + body, b"")) as peer:
        assert sentence in find_mistake(peer.url, check, Monitor(Events()))


@pytest.mark.parametrize("times", [1, 2])
def test_a_regular_expression_without_end(monkeypatch, times):
    monkeypatch.setattr("dudac.checks.SECONDS", 0.3)
    monkeypatch.setattr("dudac.checks.ask", lambda *_: Answer(200, http.client.HTTPMessage(), b"a" * 60 + b"b"))
    check = make_check({"get": "/", "matches": "^(a+)+$", "times": times}, HERE)
    mistake = find_mistake("http://here/", check, Monitor(Events()))
    assert "comparing the response takes more than" in mistake


def test_paths_are_encoded(tmp_path):
    """What a URL cannot contain; %2F stays."""
    source = make_source().replace('router->get("/", say)', 'router->get("/*path", say)').replace(
        '"one"', 'param->get(dr, "path")')
    done = run_checks(tmp_path, '[[check]]\nget = "/a b/é/%41?x=y z"\nbody = "a b/é/A\\n"\n', source=source)
    assert done.returncode == 0, done.stdout


STEP = '[[check]]\nname = "a"\n[[check.step]]\n'


@pytest.mark.parametrize("text, sentence", [
    ("", "1: it must have sections [[check]], and nothing else"),
    ("check = 1", "1: it must have sections [[check]], and nothing else"),
    ("\nx = 1\n" + PASSES, "2: it must have sections [[check]], and nothing else"),
    ("[[check]]\nget = /", '2:7: Invalid value; a text must be in quotes: "text"'),
    ("[[check]]\n", '1: it must have one request, such as get = "/"'),
    (PASSES + '[[check]]\nget = "/"\nput = "/"', "4: it must have one request"),
    ('[[check]]\nget = "x"', "1: it must have one request, such as get = \"/\", whose path begins with a slash"),
    ('[[check]]\nget = "/"\nstats = 1', '3: there is no "stats"; did you mean "status"?'),
    ('[[check]]\nget = "/"\n\nxyz = 1', '4: there is no "xyz"; it can have name, get'),
    ('[[check]]\nsend = """\nstatus = 1\n"""\nget = "/"\nstatus = "200"',
     "6: status must be a number, as in status = 200"),
    ('[[check]]\nget = "/"\nstatus = true', "3: status must be a number"),
    ('[[check]]\nget = "/"\nsend_headers = {a = 1}', "3: the values of send_headers must be texts"),
    ('[[check]]\nget = "/"\n[check.headers]\na = 1', "3: the values of headers must be texts or patterns"),
    ('[[check]]\nget = "/"\nheaders = {a = {any = "x"}}', "3: headers: any must be one of value, string"),
    ('[[check]]\nget = "/"\nheaders = {a = {any = ["x"]}}', "3: headers: any must be one of value, string"),
    ('[[check]]\nget = "/"\nmatches = "("', "3: matches: missing ), unterminated subpattern"),
    ('[[check]]\nget = "/"\nmatches = "a{99999999999}"', "3: matches: the repetition number is too large"),
    (f'[[check]]\nget = "/"\nmatches = "{"(" * 5000}{")" * 5000}"', "3: matches: maximum recursion depth"),
    ('[[check]]\nget = "/"\njson_has = [{a = {matches = 1}}]', "3: json_has: matches must be a regular expression"),
    ('[[check]]\nget = "/"\njson_has = {a = {absent = false}}', "3: json_has: absent can only be true"),
    ('[[check]]\nget = "/"\nsend = "a"\nsend_json = 1', "3: it can have send or send_json, not both"),
    ('[[check]]\nget = "/"\nsend_json = 1979-05-27', "3: send_json: Object of type date"),
    ('[[check]]\nget = "/"\njson = 1979-05-27', "3: json: Object of type date"),
    ('[[check]]\nget = "/"\ntimes = 0', "3: times must be 1 to 100"),
    ('[[check]]\nget = "/"\ntimes = 101', "3: times must be 1 to 100"),
    ('[[check]]\nget = "/"\n[[check.step]]\nget = "/"', "2: get must be below a [[check.step]]"),
    ('[[check]]\n[[check.step]]\nget = "/"', "1: a check with steps must have a name and a step"),
    ('[[check]]\nname = "a"\nstep = []', "1: a check with steps must have a name and a step"),
    ('[[check]]\nname = "a"\nstep = 1', "3: step must be a list of tables, as in [[check.step]]"),
    ('[[check]]\nname = "a"\nstep = [1]', '3: it must be a request, as in {get = "/"}'),
    (STEP + 'get = "/"\n[[check.step]]\nname = "b"', '6: there is no "name"; it can have get'),
    (STEP + "at_once = []", '4: at_once must have requests, as in at_once = [{get = "/"}'),
    (STEP + 'get = "/"\nat_once = [{get = "/"}]', "4: get must be in one of the requests of at_once"),
    (STEP + '[[check.step.at_once]]\nget = "/"\n[[check.step.at_once]]\nstatus = 2', "6: it must have one request"),
    (STEP + 'at_once = [\n{get = "/", times = 51}, {get = "/", times = 50}]',
     "3: it can send 100 requests at once at most"),
])
def test_wrong_checks(tmp_path, text, sentence):
    path = tmp_path / "checks.toml"
    path.write_text(text)
    with pytest.raises(DudacError) as error:
        read_checks(path)
    assert f"{path}:{sentence}" in str(error.value)


def test_values_that_are_nested_too_deeply(tmp_path):
    (tmp_path / "checks.toml").write_text("x = " + "[" * 5000)
    with pytest.raises(DudacError, match="checks.toml: the values are nested too deeply"):
        read_checks(tmp_path / "checks.toml")


def test_no_checks(tmp_path):
    done = run_dudac("test", make_folder(tmp_path))
    assert done.returncode == 1 and "apple has no checks: neither checks.toml nor test_*.py" in done.stderr


@pytest.mark.parametrize("wanted, status", [("one", 0), ("two", 1)])
def test_tests_in_python(tmp_path, wanted, status):
    text = ("import os, urllib.request\n\n\ndef test_it():\n    url = os.environ['DUDA_URL'] + '/'\n"
            f"    assert urllib.request.urlopen(url).read() == b'{wanted}\\n'\n")
    done = run_checks(tmp_path, PASSES, **{"test_apple.py": text})
    assert done.returncode == status, done.stdout
    assert "1 of 1 checks passed" in done.stdout and f"1 {'failed' if status else 'passed'}" in done.stdout


@pytest.mark.parametrize("top", ["-a b'c::d[e]", *(pytest.param(top, marks=pytest.mark.slow)
                                                  for top in ("a::b", "a[b]", "-x", "a b'c"))])
def test_tests_in_a_folder_that_pytest_would_take_apart(tmp_path, top):
    """A file next to them that is named like a module of Python is not imported in its place."""
    files = {"apple.c": make_source(), "test_apple.py": "def test_it():\n    pass\n", "random.py": "1 / 0\n"}
    make_folder(tmp_path / top, files=files)
    done = run_dudac("test", f"./{top}/apple", cwd=tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_test_that_prints_bytes(tmp_path):
    text = "import sys\n\n\ndef test_it():\n    sys.stdout.buffer.write(b'\\xff\\x00')\n    assert False\n"
    done = run_checks(tmp_path, PASSES, **{"test_apple.py": text})
    assert done.returncode == 1 and "1 failed" in done.stdout and "Traceback" not in done.stderr


def test_a_service_that_crashes_in_a_check(tmp_path):
    source = make_source().replace("response->end", "__builtin_trap(); response->end")
    done = run_checks(tmp_path, PASSES, source=source)
    assert done.returncode == 1 and "no answer: " in done.stdout
    assert "dudac: the server has ended: " in done.stderr


def test_a_service_that_crashes_at_its_end(tmp_path):
    source = make_source() + "\nvoid duda_exit(void)\n{\n    __builtin_trap();\n}\n"
    done = run_checks(tmp_path, PASSES, source=source)
    assert done.returncode == 1 and "1 of 1 checks passed" in done.stdout
    assert "dudac: the server has ended: " in done.stderr


STREAM = """import http.client, os, subprocess, urllib.parse


def test_stream():
    url = urllib.parse.urlsplit(os.environ["DUDA_URL"])
    connection = http.client.HTTPConnection(url.netloc, timeout=60)
    connection.request("GET", url.path + "/")
    assert connection.getresponse().status == 200
    subprocess.Popen(["cat"], stdin=connection.sock, stdout=subprocess.DEVNULL)
"""


def test_a_stream_that_is_open_at_the_end(tmp_path, monkeypatch):
    """dudac would kill a server that waits for it for the time of other commands."""
    source = re.sub(r" +response->printf.*\n.*", "    response->sse_begin(dr, 0);", make_source())
    folder = make_folder(tmp_path, files={"apple.c": source, "test_apple.py": STREAM})
    monkeypatch.setattr("dudac.config.SHUTDOWN_SECONDS", 600)
    monkeypatch.setattr("sys.argv", [str(DUDAC)])
    done = CliRunner().invoke(group, ["test", str(folder)])
    assert done.exit_code == 0, done.output


# ── dudac new ──


@pytest.mark.parametrize("template", list_templates())
def test_a_template_passes_its_own_checks(tmp_path, template):
    done = run_dudac("new", "my-service.2", "-t", template, cwd=tmp_path)
    assert done.returncode == 0 and f"made {tmp_path}/my-service.2; " in done.stdout
    made = {path.name for path in (tmp_path / "my-service.2").iterdir()}
    assert len(made) == len(list((TEMPLATES / template).iterdir())) and "my-service.2.c" in made
    assert not any(b"NEW_SERVICE" in path.read_bytes() for path in (tmp_path / "my-service.2").rglob("*")
                   if path.is_file())
    done = run_dudac("test", "my-service.2", cwd=tmp_path)
    assert done.returncode == 0 and "checks passed" in done.stdout, done.stdout + done.stderr
    assert "warning" not in done.stderr


def test_a_folder_that_exists_is_not_changed(tmp_path):
    folder = make_folder(tmp_path)
    done = run_dudac("new", "apple", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        1, "dudac: apple exists already, and is not changed; choose another name\n")
    assert [path.name for path in folder.iterdir()] == ["apple.c"]


@pytest.mark.parametrize("path", ["01-hello", "a b/hello", "a b/7.hello"])
def test_the_name_of_a_new_service(tmp_path, path):
    """The number before it is not part of it, as in `dudac build`; the command that is proposed can be typed."""
    done = run_dudac("new", path, cwd=tmp_path)
    assert done.returncode == 0 and shlex.split(done.stdout.partition("next: ")[2]) == ["dudac", "run", "--watch", path]
    [source] = (tmp_path / path).glob("*.c")
    assert source.name == "hello.c" and "http://localhost:2001/hello/" in source.read_text()
    assert run_dudac("test", tmp_path / path).returncode == 0


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "apple").mkdir()
    assert run_dudac("new", ".", cwd=tmp_path / "apple").returncode == 0
    assert (tmp_path / "apple/apple.c").exists()


def test_a_template_is_a_folder(tmp_path, monkeypatch):
    """With folders and files of bytes in it."""
    from dudac import new

    for name, data in {"a/NEW_SERVICE.c": b"NEW_SERVICE\r\n", "html/x/NEW_SERVICE.bin": b"\xff\0NEW_SERVICE",
                       ".hidden": b"", "__pycache__/x.pyc": b""}.items():
        path = tmp_path / "templates/other" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    monkeypatch.setattr(new, "TEMPLATES", tmp_path / "templates")
    assert new.list_templates() == ["other"]
    folder = new.make_service(str(tmp_path / "apple"), "other")
    assert {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == {
        "a/apple.c": b"apple\r\n", "html/x/apple.bin": b"\xff\0apple", ".hidden": b""}


@pytest.mark.parametrize("name", [b"a\xffb", b"a\nb", b"a\x1b[31m", "é".encode(), b"a'b\"c", b"01-", b"..", b"/"])
def test_bytes_that_a_name_cannot_have(tmp_path, name):
    before = os.listdir(tmp_path)
    done = run_dudac("new", os.fsdecode(name), cwd=tmp_path)
    assert done.returncode == 1 and "\x1b" not in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.startswith("dudac: ") and os.listdir(tmp_path) == before


@pytest.mark.parametrize("name, status", [("-x", 2), ("a b", 1), ("é", 1), ("x" * 65, 1), ("", 1)])
def test_a_name_that_a_service_cannot_have(tmp_path, name, status):
    done = run_dudac("new", name, cwd=tmp_path / "..")
    assert done.returncode == status and "Traceback" not in done.stderr


def test_an_unknown_template(tmp_path):
    done = run_dudac("new", "x", "-t", "gopher", cwd=tmp_path)
    assert done.returncode == 2 and "'hello'" in done.stderr and not (tmp_path / "x").exists()
