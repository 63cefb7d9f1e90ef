# SPDX-License-Identifier: Apache-2.0
"""The plugin proxy: headers that a section changes on their way to a backend and back, and what they bring about."""

import base64
import re

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.proxies import TEXT, proxy_section
from harness.server import run, section, write_config

pytestmark = pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins")


@pytest.fixture
def proxy(serve):
    """A server whose default host passes requests to a backend."""

    def start(backend, keys=None, text="", **rest):
        return serve({"Workers": 1, **rest.pop("settings", {})}, text=proxy_section(backend, keys) + text, **rest)

    return start


# ── RequestSet and RequestRemove ──


def sent_by(proxy, keys, *fields, target="/", **rest):
    """What a backend gets."""
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend, keys, **rest).connect() as client:
            assert client.ask(target, *fields).status == 200
        return backend.requests[0]


def test_request_set(proxy):
    text = 'X-Text "$method $path?$query from $client"'
    keys = {"RequestSet": ["X-Own one $$ two", text, "X-Agent $header_user_agent", "X-Id $(request_id)"]}
    sent = sent_by(proxy, keys, "X-Own: mine", "User-Agent: me", "X-Request-Id: 7", target="/a%20b?c")
    assert (sent["X-Own"], sent["X-Agent"], sent["X-Id"]) == ("one $ two", "me", "7")
    assert sent["X-Text"] == "GET /a b?c from 127.0.0.1"


def test_request_remove(proxy):
    sent = sent_by(proxy, {"RequestRemove": ["Cookie", "x-own"]}, "Cookie: a=b", "X-Own: 1", "X_Own: 2", "X-Owner: 3")
    assert (sent["Cookie"], sent["X-Own"], sent["X_Own"], sent["X-Owner"]) == (None, None, None, "3")


def test_an_empty_value_removes_the_header(proxy):
    keys = {"RequestSet": ["X-User $user", 'X-Cert " $tls_client "', 'X-Empty ""', "X-Kept -$user-"]}
    lies = ["X-User: root", "X_User: root", "x_user: root", "X-Cert: root", "X-Empty: 1"]
    sent = sent_by(proxy, keys, *lies)
    assert "root" not in str(sent.fields) and sent["X-Empty"] is None
    assert sent["X-Kept"] == "--"


def test_the_user_of_a_login(proxy, tmp_path):
    (tmp_path / "users").write_text("joe:{SHA}" + base64.b64encode(bytes.fromhex(
        "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8")).decode() + "\n")  # fmt: skip
    login = section("AUTH", {"Match": "/", "Realm": "x", "Users": tmp_path / "users"})
    basic = "Authorization: Basic " + base64.b64encode(b"joe:password").decode()
    keys = {"RequestSet": "X-User $user", "RequestRemove": "Authorization"}
    sent = sent_by(proxy, keys, basic, "X-User: root", text=login)
    assert (sent["X-User"], sent["Authorization"]) == ("joe", None)


def test_traceparent_of_the_section(proxy):
    assert sent_by(proxy, {"RequestSet": "traceparent 00-1-2-00"})["traceparent"] == "00-1-2-00"
    assert sent_by(proxy, {"RequestRemove": "Traceparent"}, "traceparent: 1")["traceparent"] is None


@pytest.mark.parametrize("byte", ["%0a", "%0d%0aX-Admin:%201", "%01", "%7f"])
def test_a_value_cannot_begin_a_line(proxy, byte):
    with Backend(answer(b"hello", TEXT)) as backend:
        server = proxy(backend, {"RequestSet": "X-Path $path"})
        with server.connect() as client:
            assert client.ask(f"/a{byte}b").status == 400
        with server.connect() as client:
            assert client.ask("/a%09%c3%a9").status == 200
        assert len(backend.requests) == 1
        assert backend.requests[0]["X-Path"].encode("latin-1") == b"/a\t\xc3\xa9"


@pytest.mark.single_protocol
def test_connection_must_not_name_them(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        server = proxy(backend, {"RequestSet": "X-User $client"})
        for option, status in (("X-User", 400), ("x_user", 400), ("X-Other", 200)):
            with server.connect() as client:
                assert client.ask("/", f"Connection: {option}").status == status


# ── cookies ──

PATH = {"Match": "/api", "StripPrefix": "On"}
COOKIES = [
    ({}, "a=b; Path=/x; Domain={host}", "a=b; Path=/x; Domain=site.example"),
    ({}, "a=b;domain = .{host} ;Secure", "a=b;domain = site.example ;Secure"),
    ({}, "a=b; Domain=other.example", "a=b; Domain=other.example"),
    ({"HostHeader": "app.example:8080"}, "a=b; Domain=app.example", "a=b; Domain=site.example"),
    (PATH, "a=b; Path=/x; HttpOnly;  SameSite=Lax", "a=b; Path=/api/x; HttpOnly;  SameSite=Lax"),
    (PATH, "a=b; path=/", "a=b; path=/api"),
    (PATH, "Path=/; Path=/a; Path=/b", "Path=/; Path=/a; Path=/api/b"),
    (PATH, "__Host-a=b; Path=/; Secure", "__Host-a=b; Path=/; Secure"),
    ({"Match": "/api", "To": "{url}/v2"}, "a=b; Path=/v2; Max-Age=5", "a=b; Path=/api; Max-Age=5"),
    ({"Match": "/api", "To": "{url}/v2"}, "a=b; Path=/v2x", "a=b; Path=/v2x"),
    ({**PATH, "RewriteLocation": "Off"}, "a=b; Path=/; Domain={host}", "a=b; Path=/; Domain={host}"),
]


@pytest.mark.parametrize("keys, sent, wanted", COOKIES)
def test_cookies(proxy, keys, sent, wanted):
    with Backend(answer(b"hello", TEXT, "Set-Cookie: " + sent.format(host="127.0.0.1"), "Set-Cookie: x=y")) as backend:
        keys = {key: value.format(url=backend.url) for key, value in keys.items()}
        with proxy(backend, keys).connect() as client:
            got = client.ask("/api/a", host="site.example:81")
    cookies = [value for name, value in got.fields if name.lower() == "set-cookie"]
    assert cookies == [wanted.format(host="127.0.0.1"), "x=y"]


# ── the configuration ──


MISTAKES = {
    "RequestSet Host a": "HostHeader chooses the Host",
    "RequestSet X-Forwarded-For a": "Forwarded chooses it",
    "RequestRemove Forwarded": "Forwarded chooses it",
    "RequestSet Content-Length 5": "the proxy itself decides about this header",
    "RequestSet transfer_encoding chunked": "the proxy itself decides about this header",
    "RequestRemove Connection": "the proxy itself decides about this header",
    "RequestSet Sec-WebSocket-Key a": "the handshake of WebSocket",
    "RequestSet X-User": "a header needs a name and a value",
    "RequestSet X-User: a": "the name of a header has letters, digits and dashes only",
    "RequestRemove X-User a": "it takes the name of one header",
    "RequestSet X-User $usr": 'requests have no variable "usr"; did you mean "user"?',
    "RequestSet X-User $status": 'requests have no variable "status"',
    "RequestSet X-User $": "a dollar needs the name of a variable",
    "RequestSet X-User a\n    RequestSet x_user b": "a line before this one has the same name",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(tmp_path, site_root, text):
    write_config(tmp_path / "conf", site_root, text=f"[PROXY]\n    To http://a\n    {text}\n")
    got = run("-c", tmp_path / "conf", "--test")
    assert got.returncode == 1
    assert MISTAKES[text] in got.stderr and re.search(r"sites/default:\d", got.stderr)
