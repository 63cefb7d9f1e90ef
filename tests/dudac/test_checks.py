# SPDX-License-Identifier: Apache-2.0
"""`dudac test`: the checks of checks.toml and test_*.py, and `dudac new`, whose templates have some."""

import http.client
import json

import pytest
from dudac import DudacError
from dudac.checks import Answer, find_mistake, make_check, read_checks
from dudac.new import TEMPLATES, list_templates

from running import make_folder, make_source, run_dudac

JSON = make_source().replace('"%s\\n", "one"', '"{\\"a\\": [1, true]}"')
PASSES = '[[check]]\nget = "/"\nbody = "one\\n"\n'


def run_checks(tmp_path, checks, **files):
    files = {"apple.c": files.pop("source", make_source()), "checks.toml": checks, **files}
    return run_dudac("test", make_folder(tmp_path, files=files))


@pytest.mark.parametrize("expectation", [
    "", "status = 200", 'body = "one\\n"', 'contains = "n"', 'matches = "^o.e$"',
    'headers = {Content-Length = "4"}', 'name = "its name"', 'send_headers = {Accept = "*/*"}',
])
def test_a_check_that_passes(tmp_path, expectation):
    done = run_checks(tmp_path, f'[[check]]\nget = "/"\n{expectation}\n')
    assert done.returncode == 0, done.stdout + done.stderr
    name = "its name" if "name" in expectation else "GET /"
    assert f"passed   {name}\n1 of 1 checks passed\n" in done.stdout


@pytest.mark.parametrize("expectation, sentence", [
    ("status = 404", "the status is 200 instead of 404: 'one\\n'"),
    ('body = "one"', "the body is 'one\\n' instead of 'one'"),
    ('contains = "two"', "the body 'one\\n' does not contain 'two'"),
    ('matches = "^two$"', "the body 'one\\n' does not match ^two$"),
    ('json = 1', "the body 'one\\n' is no JSON: "),
    ('headers = {Content-Type = "text/html"}', "Content-Type is missing instead of 'text/html'"),
    ('headers = {content-length = "5"}', "content-length is '4' instead of '5'"),
])
def test_a_check_that_fails(tmp_path, expectation, sentence):
    done = run_checks(tmp_path, PASSES + f'[[check]]\nname = "second"\nget = "/"\n{expectation}\n' + PASSES)
    assert done.returncode == 1
    assert f"failed   second\n         {sentence}" in done.stdout
    assert done.stdout.endswith("passed   GET /\n2 of 3 checks passed\n")


def test_json(tmp_path):
    done = run_checks(tmp_path, '[[check]]\nget = "/"\njson = {a = [1, true]}\n', source=JSON)
    assert done.returncode == 0, done.stdout
    done = run_checks(tmp_path, '[[check]]\nget = "/"\njson = {a = [2, true]}\n', source=JSON)
    assert '{"a": [1, true]} instead of {"a": [2, true]}' in done.stdout


def test_without_an_expectation_the_status_is_200(tmp_path):
    done = run_checks(tmp_path, '[[check]]\nget = "/nothing"\n')
    assert done.returncode == 1 and "the status is 404 instead of 200" in done.stdout


def test_what_a_check_sends():
    check = make_check({"post": "/x?a=b", "send_json": {"a": 1}, "send_headers": {"X-A": "b"}}, "here")
    assert (check.method, check.path, json.loads(check.send)) == ("POST", "/x?a=b", {"a": 1})
    assert check.send_headers == {"X-A": "b", "Content-Type": "application/json"}
    assert make_check({"put": "/", "send": "é"}, "here").send == "é".encode()


def test_a_header_that_is_sent_twice():
    headers = http.client.HTTPMessage()
    headers["Set-Cookie"], headers["Set-Cookie"] = "a=1", "b=2"
    from dudac.checks import expect_headers

    assert expect_headers(Answer(200, headers, b""), {"Set-Cookie": "b=2"}) is None


def test_no_answer():
    mistake = find_mistake("http://127.0.0.1:1/x/", make_check({"get": "/"}, "here"))
    assert mistake.startswith("no answer: ")


@pytest.mark.parametrize("text, sentence", [
    ("", "it must have sections [[check]], and nothing else"),
    ("check = 1", "it must have sections [[check]], and nothing else"),
    ("x = 1\n" + PASSES, "it must have sections [[check]], and nothing else"),
    ("[[check]]\nget = ", "Invalid value"),
    ("[[check]]\n", 'check 1: it must have one request, such as get = "/"'),
    (PASSES + '[[check]]\nget = "/"\nput = "/"', "check 2: it must have one request"),
    ('[[check]]\nget = "x"', "whose path begins with a slash"),
    ('[[check]]\nget = "/"\nstats = 1', 'check 1: there is no "stats"; it can have name, send'),
    ('[[check]]\nget = "/"\nstatus = "200"', "status must be a number"),
    ('[[check]]\nget = "/"\nstatus = true', "status must be a number"),
    ('[[check]]\nget = "/"\nheaders = {a = 1}', "the values of headers must be texts"),
    ('[[check]]\nget = "/"\nmatches = "("', "matches: missing ), unterminated subpattern"),
    ('[[check]]\nget = "/"\nsend = "a"\nsend_json = 1', "it can have send or send_json, not both"),
    ('[[check]]\nget = "/"\nsend_json = 1979-05-27', "send_json: Object of type date"),
])
def test_wrong_checks(tmp_path, text, sentence):
    path = tmp_path / "checks.toml"
    path.write_text(text)
    with pytest.raises(DudacError) as error:
        read_checks(path)
    assert sentence in str(error.value) and str(path) in str(error.value)


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


# ── dudac new ──


@pytest.mark.parametrize("template", list_templates())
def test_a_template_passes_its_own_checks(tmp_path, template):
    done = run_dudac("new", "my-service.2", "-t", template, cwd=tmp_path)
    assert done.returncode == 0 and f"made {tmp_path}/my-service.2; " in done.stdout
    made = {path.name for path in (tmp_path / "my-service.2").iterdir()}
    assert len(made) == len(list((TEMPLATES / template).iterdir())) and "my-service.2.c" in made
    done = run_dudac("test", "my-service.2", cwd=tmp_path)
    assert done.returncode == 0 and "checks passed" in done.stdout, done.stdout + done.stderr
    assert "warning" not in done.stderr
    assert not any("NEW_SERVICE" in path.read_text() for path in (tmp_path / "my-service.2").glob("*.*"))


def test_a_folder_that_exists_is_not_changed(tmp_path):
    folder = make_folder(tmp_path)
    done = run_dudac("new", "apple", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        1, "dudac: apple exists already, and is not changed; choose another name\n")
    assert [path.name for path in folder.iterdir()] == ["apple.c"]


@pytest.mark.parametrize("name, status", [("-x", 2), ("a b", 1), ("é", 1), ("x" * 65, 1), ("", 1)])
def test_a_name_that_a_service_cannot_have(tmp_path, name, status):
    done = run_dudac("new", name, cwd=tmp_path / "..")
    assert done.returncode == status and "Traceback" not in done.stderr


def test_an_unknown_template(tmp_path):
    done = run_dudac("new", "x", "-t", "gopher", cwd=tmp_path)
    assert done.returncode == 2 and "'hello'" in done.stderr and not (tmp_path / "x").exists()
