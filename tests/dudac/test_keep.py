# SPDX-License-Identifier: Apache-2.0
"""Values of responses that later steps of a check use."""

import http.client

import pytest
from dudac import DudacError
from dudac.check_file import Place, make_check, read_checks
from dudac.checks import find_mistake
from dudac.events import Events
from dudac.expect import Answer
from dudac.keep import fill_row, read_kept
from dudac.monitor import Monitor

from running import make_folder, make_source, run_dudac

# Responds with what it gets: path, body and a header, as JSON and as headers.
ROUTES = 'router->get("/*path", say) && router->post("/*path", say)'
ECHO = make_source().replace('router->get("/", say)', ROUTES).replace(
    'response->printf(dr, "%s\\n", "one");',
    """const char *token = request->header_get(dr, "X-Token"), *path = param->get(dr, "path");
    size_t len = 0;
    const char *sent = request->body(dr, &len);
    response->header(dr, "Location", "/other/%s", path);
    response->printf(dr, "{\\"path\\": \\"%s\\", \\"token\\": \\"%s\\", \\"n\\": 7, \\"sent\\": [%s]}", path,
                     token ? token : "", sent ? sent : "");""")

CHECKS = r"""
[[check]]
name = "keeps values"

[[check.step]]
get = "/a b/c"
matches = '"path": "(?P<path>[^"]*)"'
headers = {Location = {matches = "^/other/(?P<first>.)"}}
json_has = {n = {keep = "n"}, path = {matches = "(?P<last>.)$"}, sent = {keep = "sent"}}

[[check.step]]
post = "/${path}-${n}"
send_headers = {X-Token = "$${n} ${first}"}
send_json = {n = "${n}", text = "n ${n}", all = ["${sent}", "${last}"]}
headers = {Location = "/other/${path}-7"}
contains = "${path}"
json_has = {path = "a b/c-7", token = "$${n} a", n = "${n}", sent = [{n = 7, text = "n 7", all = [[], "c"]}]}

[[check]]
name = "keeps values of one of several"

[[check.step]]
at_once = [
    {get = "/a", json_has = {path = {keep = "path"}}},
    {get = "/b", json_has = {path = {keep = "path"}}, times = 3},
]

[[check.step]]
get = "/c"
send_headers = {X-Token = "${path}"}
json_has = {token = "b"}

[[check]]
name = "shows what is missing"

[[check.step]]
get = "/"
headers = {X-Other = {keep = "other"}}

[[check.step]]
get = "/${other}"
"""


def test_values_of_earlier_steps(tmp_path):
    done = run_dudac("test", make_folder(tmp_path, files={"apple.c": ECHO, "checks.toml": CHECKS}))
    assert "passed   keeps values\npassed   keeps values of one of several\nfailed   shows what" in done.stdout, \
        done.stdout + done.stderr
    assert "GET /: X-Other is missing instead of a value to keep as other\n" in done.stdout
    assert done.returncode == 1 and done.stdout.endswith("2 of 3 checks passed\n")


STEP = '[[check]]\nname = "a"\n[[check.step]]\n'


@pytest.mark.parametrize("text, sentence", [
    ('[[check]]\nget = "/${id}"\n', '2: no step before keeps "id", as {keep = "id"} in json_has or (?P<id>...)'),
    ('[[check]]\nget = "/"\njson_has = {id = {keep = "id"}, a = "${id}"}\n', '3: no step before keeps "id"'),
    (f'{STEP}get = "/"\nmatches = "(?P<id>.)"\n[[check.step]]\nget = "/${{id}}"\nsend_json = [{{a = "${{other}}"}}]',
     '8: no step before keeps "other"'),
    ('[[check]]\nget = "/"\njson_has = {id = {keep = 7}}\n', "3: json_has: keep must be a name of letters"),
    ('[[check]]\nget = "/"\nheaders = {A = {keep = "a-b"}}\n', "3: headers: keep must be a name"),
])
def test_wrong_checks(tmp_path, text, sentence):
    path = tmp_path / "checks.toml"
    path.write_text(text)
    with pytest.raises(DudacError) as error:
        read_checks(path)
    assert f"{path}:{sentence}" in str(error.value)


def test_what_has_no_references(tmp_path):
    """Regular expressions, and what is no name."""
    path = tmp_path / "checks.toml"
    path.write_text("[[check]]\nget = '/$${a}'\ncontains = '${}${1}$a'\nmatches = '^x${a}'\n"
                    "headers = {A = {matches = '${a}'}}\n")
    [check] = read_checks(path)
    [[request]] = check.steps
    filled = request.fill({})
    assert (filled.path, filled.expected["contains"], filled.expected["matches"]) == ("/${a}", "${}${1}$a", "^x${a}")
    assert filled.expected["headers"] == {"A": {"matches": "${a}"}}


def test_types():
    row = {"get": "/${n}", "send": "${n}", "json": {"a": ["${n}", "${t}", "${n}${t}"]}, "times": 2}
    filled = {"get": "/7", "send": "7", "json": {"a": [7, True, "7true"]}, "times": 2}
    assert fill_row(row, {"n": 7, "t": True}) == filled


def compare_kept(monkeypatch, body, **row):
    """Returns what is wrong in a second step, which has a value of the first one."""
    monkeypatch.setattr("dudac.checks.ask", lambda *_: Answer(200, http.client.HTTPMessage(), body))
    steps = [{"get": "/", "json_has": {"a": {"keep": "a"}}}, {"get": "/", **row}]
    return find_mistake("http://here/", make_check({"name": "a", "step": steps}, Place("here", {})), Monitor(Events()))


@pytest.mark.parametrize("value", [b'{"any": "other"}', b'{"matches": "("}', b'[{"absent": true}]', b'{"keep": "b"}'])
def test_objects_that_look_like_patterns(monkeypatch, value):
    body = b'{"a": %s, "b": 1}' % value
    assert compare_kept(monkeypatch, body, json_has={"a": "${a}"}) is None
    assert "missing instead of" in compare_kept(monkeypatch, body, json_has={"b": 1, "c": "${a}"})


@pytest.mark.parametrize("body, row, sentence", [
    (b'{"a": "\\ud800"}', {"send": "${a}"}, "step 2, line 1, GET /: 'utf-8' codec can't encode"),
    (b'{"a": %s%s}' % (b"[" * 900, b"]" * 900), {"json_has": {"a": "${a}"}}, "maximum recursion depth"),
])
def test_values_that_cannot_be_sent_or_compared(monkeypatch, body, row, sentence):
    assert sentence in compare_kept(monkeypatch, body, **row)


def test_a_group_that_has_no_part():
    answer = Answer(200, http.client.HTTPMessage(), b"a")
    assert read_kept(answer, {"matches": "(?P<x>a)|(?P<y>b)"}) == {"x": "a", "y": ""}
