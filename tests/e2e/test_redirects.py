# SPDX-License-Identifier: Apache-2.0
"""Redirects: rules of a host, the whole host, and what the operator gets wrong."""

import pytest

from harness.messages import request
from harness.server import Server, run

FILES = {"a.txt": b"a\n", "new/index.html": b"new\n", "articles/x.html": b"x\n"}

RULES = """
[REDIRECT]
    Match       =/exact
    To          /new/
    Status      302
    KeepPath    Off

[REDIRECT]
    Match       /blog
    To          /articles
    Status      308

[REDIRECT]
    Match       *.php
    To          https://example.org/gone?from=php
    KeepPath    On

[REDIRECT]
    Match       /two
    To          /first

[REDIRECT]
    Match       /two/never
    To          /second
"""


@pytest.fixture
def rules(host_conf):
    return lambda text: host_conf(text, FILES)


@pytest.fixture
def client(rules):
    server = Server("-c", rules(RULES))
    yield server.connect()
    server.stop()


@pytest.mark.parametrize(
    "target, status, location",
    [
        ("/exact", 302, "/new/"),
        ("/exact?q=1", 302, "/new/"),
        ("/exact/", 404, None),
        ("/blog", 308, "/articles"),
        ("/blog/", 308, "/articles"),
        ("/blog/2013/x.html?a=b&c", 308, "/articles/2013/x.html?a=b&c"),
        ("/blogger", 404, None),
        ("/%62log/y", 308, "/articles/y"),
        ("/x/../blog//y", 308, "/articles/y"),
        ("/blog/a%20b%0d%0aSet-Cookie:x", 308, "/articles/a%20b%0D%0ASet-Cookie:x"),
        ("/blog/%2e%2e/%2e%2e/evil", 404, None),
        ("/sub/any.php?id=1", 301, "https://example.org/gone?from=php&id=1"),
        ("/two/never", 301, "/first/never"),
        ("/a.txt", 200, None),
    ],
)
def test_rules(client, target, status, location):
    answer = client.ask(target)
    assert (answer.status, answer["Location"]) == (status, location)
    client.close()


def test_other_methods_are_redirected_as_well(client):
    client.send(request("/blog/form", "Content-Length: 4", method="POST") + b"body" + request("/a.txt"))
    answer = client.response()
    assert (answer.status, answer["Location"]) == (308, "/articles/form")
    assert client.response().body == b"a\n"
    client.close()


def test_whole_host(rules):
    server = Server("-c", rules("    Redirect https://example.org/base\n"))
    client = server.connect()
    assert client.ask("/")["Location"] == "https://example.org/base"
    answer = client.ask("/a%3Fb/c?d=e")
    assert (answer.status, answer["Location"]) == (301, "https://example.org/base/a%3Fb/c?d=e")
    client.close()
    server.stop()


@pytest.mark.parametrize(
    "text, message",
    [
        ("[REDIRECT]\n    Match /a\n    To /a/b\n", "never ends"),
        ("[REDIRECT]\n    Match /a\n    To /b\n[REDIRECT]\n    Match /b\n    To /a\n", "never ends"),
        ("[REDIRECT]\n    Match /a\n", "To"),
        ("[REDIRECT]\n    To /a\n", "Match"),
        ("[REDIRECT]\n    Match a/b\n    To /c\n", "starts with one"),
        ("[REDIRECT]\n    Match /a\n    To elsewhere\n", "whole URI"),
        ('[REDIRECT]\n    Match /a\n    To "/b c"\n', "without blanks"),
        ("[REDIRECT]\n    Match /a\n    To /b\n    Status 200\n", "301, 302"),
    ],
)
def test_mistakes(rules, text, message):
    result = run("-c", rules(text), "-t")
    assert result.returncode == 1 and message in result.stderr and "sites/default:" in result.stderr


def test_no_loop_where_another_host_is_meant(rules):
    assert run("-c", rules("[REDIRECT]\n    Match /\n    To https://localhost/\n"), "-t").returncode == 0
