# SPDX-License-Identifier: Apache-2.0
"""Logins of `Type Forward`: what the server that is asked gets, what answers change, and that no failure lets in."""

import re

import pytest

from harness import build
from harness.backend import Backend, answer, echo_websocket, replay, reset_at_once, stay_silent
from harness.certificates import Authority
from harness.content import populate
from harness.few_descriptors import fail_each_descriptor
from harness.failing_memory import fail_each, only_sanitized
from harness.groups import GROUPS, backends, group  # noqa: F401
from harness.messages import lines, request
from harness.metrics import needs_status, scrape, status_of, status_section, total
from harness.names import needs_localhost
from harness.proxies import TEXT, proxy_section
from harness.server import await_true, free_port, run, section, write_config
from harness.services import reload
from harness.websocket import BINARY, frame
from test_concurrent import in_parallel

LOGIN = 'WWW-Authenticate: Cookie realm="app"'
COPY = {"CopyHeaders": "Remote-User Remote-Groups", "UserHeader": "Remote-User"}
FILES = {"index.html": b"home\n", "app/secret.txt": b"secret\n", "app/new.txt": b"new\n", "open/x.txt": b"open\n"}
ADA = "Cookie: session=ada"
KEPT = {"ForwardCache": "1h"}

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in ("auth", "proxy", "upstream")),
        reason="the preset has no plugins auth, proxy and upstream",
    ),
]


def verify(peer):
    """Lets requests with a session pass, and answers with its user."""
    got = peer.request()
    found = re.search(r"session=(\w+)", got["Cookie"] or "")
    if found:
        groups = ["Remote-Groups: staff", "Remote-Groups: admins"]
        peer.respond(b"", f"Remote-User: {found[1]}", *groups, "Set-Cookie: s=1")
    else:
        peer.respond(b"log in\n", LOGIN, TEXT, "Set-Cookie: a=1", "Set-Cookie: b=2", "X-Own: 1", status=401)


@pytest.fixture
def protect(serve, tmp_path):
    """A server that asks `auth`, a Backend or a target, about /app, which is files or a backend."""

    def start(auth, keys=None, app=None, settings=None, more="", limits=None, **rest):
        to = auth if isinstance(auth, str) else f"{auth.url}/verify"
        text = section("AUTH", {"Match": "/app", "Type": "Forward", "To": to, **(keys or {})}) + more
        if app:
            text += proxy_section(app, {"Match": "/app"})
        files = {"plugins/auth/auth.conf": section("AUTH_LIMITS", limits)} if limits else {}
        root = populate(tmp_path / "root", FILES)
        settings = {"LogLevel": "debug", **(settings or {})}
        return serve(settings, text=text, root=root, config={**files, **rest.pop("config", {})}, **rest)

    return start


def ask(server, *fields, target="/app/secret.txt", **rest):
    with server.connect() as client:
        return client.ask(target, *fields, **rest)


# ── questions and answers ──


def test_files(protect):
    with Backend(verify) as auth:
        server = protect(auth, COPY)
        with server.connect() as client:
            refused = client.ask("/app/secret.txt")
            assert (refused.status, refused.body, refused["X-Own"]) == (401, b"log in\n", None)
            assert refused["WWW-Authenticate"] == LOGIN.split(": ")[1] and refused["Content-Type"] == "text/plain"
            assert [value for name, value in refused.fields if name == "Set-Cookie"] == ["a=1", "b=2"]
            passed = client.ask("/app/secret.txt", ADA)
            assert (passed.status, passed.body, passed["Set-Cookie"]) == (200, b"secret\n", None)
            assert client.ask("/open/x.txt").body == b"open\n"
        assert len(auth.requests) == 2


def test_question(protect):
    """What is about the connection, the body or another response stays; what the client says of itself is replaced."""
    kept = ["Cookie: a=b", "Authorization: Basic YTpi", "Accept: text/html", "X-Any: 1", "X-Any: 2"]
    dropped = [
        "Range: bytes=0-1",
        "If-None-Match: *",
        "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT",
        "Accept-Encoding: gzip",
        "TE: trailers",
        "Connection: X-Gone, TE",
        "X-Gone: 1",
        "Content-Type: text/plain",
        "Proxy-Authorization: x",
        "X-Forwarded-User: eve",
        "X_Forwarded_Uri: /public",
        "X-Original-URL: /public",
        "X-Real-IP: 10.0.0.1",
        "Forwarded: for=10.0.0.1",
        "X-Forwarded-For: 10.0.0.1",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-Method: GET",
    ]
    with Backend(verify) as auth:
        server = protect(auth)
        ask(server, *kept, *dropped, target="/x/../app/a%20b?c=%20d", method="POST", body=b"x" * 5000)
        got = auth.requests[0]
        host, names = f"127.0.0.1:{server.port}", {name.lower() for name, _ in got.fields}
        assert (got.method, got.target, got.length, got["Host"]) == ("GET", "/verify", 0, auth.address)
        assert got["Cookie"] == "a=b" and got.all("X-Any") == ["1", "2"] and got["Accept"] == "text/html"
        assert got["Authorization"] == "Basic YTpi" and got["Connection"] is None
        assert got["X-Forwarded-Method"] == got["X-Original-Method"] == "POST"
        assert (got["X-Forwarded-Proto"], got["X-Forwarded-Uri"]) == ("http", "/app/a%20b?c=%20d")
        assert got["X-Forwarded-Host"] in (host, "localhost")
        assert got["X-Original-URL"] == f"http://{got['X-Forwarded-Host']}/app/a%20b?c=%20d"
        assert got["X-Forwarded-For"] == got["X-Real-IP"] == "127.0.0.1"
        assert not names & {"range", "if-none-match", "if-modified-since", "accept-encoding", "te", "x-gone"}
        assert not names & {"forwarded", "x-forwarded-user", "x_forwarded_uri", "proxy-authorization"}


def test_question_behind_a_trusted_proxy(protect):
    fields = ["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https", "X-Forwarded-Host: shop.example"]
    with Backend(verify) as auth:
        server = protect(auth, settings={"TrustedProxies": "127.0.0.1"})
        ask(server, *fields)
        got = auth.requests[0]
        assert (got["X-Forwarded-Proto"], got["X-Forwarded-Host"]) == ("https", "shop.example")
        assert (got["X-Forwarded-For"], got["X-Real-IP"]) == ("192.0.2.7, 127.0.0.1", "192.0.2.7")
        assert got["X-Original-URL"] == "https://shop.example/app/secret.txt"


def test_headers_for_the_backend(protect):
    """What the client sends in these names is removed, also if there is no such header in the answer."""
    forged = ["Remote-User: root", "remote_user: root", "REMOTE_GROUPS: wheel", "X-Email: eve@example.org"]
    with Backend(verify) as auth, Backend(answer(b"app", TEXT)) as app:
        server = protect(auth, {"CopyHeaders": ["Remote-User Remote-Groups", "X-Email"]}, app)
        assert ask(server, ADA, *forged).body == b"app"
        got = app.requests[0]
        assert (got["Remote-User"], got["Remote-Groups"], got["X-Email"]) == ("ada", "staff, admins", None)
        assert not {"remote_user", "REMOTE_GROUPS"} & {name for name, _ in got.fields}
        assert got["Cookie"] == "session=ada"
        asked = {name.lower() for name, _ in auth.requests[0].fields}
        assert not asked & {"remote-user", "remote_user", "remote_groups", "x-email"}
        for option in ("Remote-User", "close, remote_groups"):
            assert ask(server, ADA, f"Connection: {option}").status == 400
            assert ask(server, ADA, f"Trailer: {option}").status == 400
        assert len(app.requests) == 1


def test_body_for_the_backend(protect):
    """The body waits until there is an answer."""
    body = bytes(range(256)) * 3000
    with Backend(verify) as auth, Backend(lambda peer: peer.respond(peer.request().body, TEXT)) as app:
        server = protect(auth, app=app)
        assert ask(server, ADA, method="POST", body=body).body == body
        assert ask(server, method="POST", body=body).status == 401
        assert auth.requests[0].length == 0 and len(app.requests) == 1


def test_http2(protect):
    with Backend(verify) as auth, Backend(answer(b"app", TEXT)) as app:
        server = protect(auth, COPY, app)
        with server.connect_h2() as client:
            assert client.ask("/app/a?b", "cookie: session=ada", "remote-user: root").body == b"app"
            refused = client.ask("/app/a?b")
            assert (refused.status, refused.body) == (401, b"log in\n")
            numbers = [client.begin(f"/app/{n}", "cookie: session=bob") for n in range(20)]
            assert {client.response(number).status for number in numbers} == {200}
        assert app.requests[0]["Remote-User"] == "ada" and auth.requests[0]["X-Forwarded-Uri"] == "/app/a?b"
        assert {got["Remote-User"] for got in app.requests[1:]} == {"bob"}


def test_websocket(protect):
    fields = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
    with Backend(verify) as auth, Backend(echo_websocket) as app:
        server = protect(auth, COPY, app)
        with server.connect() as client:
            client.send(request("/app/", ADA, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *fields))
            assert client.interim().status == 101
            client.send(frame(BINARY, b"hello"))
            assert client.exactly(7) == b"\x82\x05hello"
        assert app.peers[0].last["Remote-User"] == "ada" and auth.requests[0]["Upgrade"] is None


def test_redirect(protect):
    location = "https://auth.example/?rd=%2Fapp"
    with Backend(answer(b"", f"Location: {location}", count=1, status=302)) as auth:
        refused = ask(protect(auth))
        assert (refused.status, refused["Location"]) == (302, location)
        assert b"302" in refused.body


def test_user(protect):
    """Require, and the log."""
    keys = {**COPY, "Require": "user ada"}
    with Backend(verify) as auth:
        server = protect(auth, keys)
        assert ask(server, ADA).status == 200
        assert ask(server, "Cookie: session=eve").status == 403
        server.wait_log(r'auth: client 127\.0\.0\.1, user "eve": 403, because "Require"')


def test_cookies(protect):
    with Backend(verify) as auth:
        assert ask(protect(auth, {"ForwardSetCookie": "On"}), ADA)["Set-Cookie"] == "s=1"


def collect_cookies(response):
    return sorted(value for name, value in response.fields if name.lower() == "set-cookie")


COOKIES = ("Set-Cookie: s=1; Path=/", "Set-Cookie: t=2", "Set-Cookie: both=auth")


@pytest.mark.parametrize("passes", ["On", "Off"])
@pytest.mark.parametrize("status", [200, 404, 302])
def test_cookies_of_both(protect, passes, status):
    """Those of the application stay, as with add_header of nginx and its auth_request, also one of the same name, which
    comes last."""
    own = ("Set-Cookie: app=3", "Set-Cookie: both=app", *(["Location: /"] if status == 302 else []))
    with Backend(answer(b"", *COOKIES)) as auth, Backend(answer(b"app", TEXT, *own, status=status)) as app:
        response = ask(protect(auth, {"ForwardSetCookie": passes}, app))
    theirs = ["both=auth", "s=1; Path=/", "t=2"] if passes == "On" else []
    assert response.status == status
    assert collect_cookies(response) == sorted(["app=3", "both=app", *theirs])
    assert [value for name, value in response.fields if name == "Set-Cookie"][-1] == "both=app"


def test_cookies_of_a_refusal(protect):
    """They are those of a login, so they are sent always; the application has not been asked."""
    with Backend(answer(b"", *COOKIES, "Location: /login", status=302)) as auth:
        assert len(collect_cookies(ask(protect(auth)))) == 3


def test_cookies_of_kept_answers(protect):
    """A cookie is that of one response."""
    with Backend(answer(b"", *COOKIES)) as auth:
        server = protect(auth, {"ForwardSetCookie": "On", "ForwardCache": "60s"})
        assert [len(collect_cookies(ask(server, ADA))) for _ in range(3)] == [3, 0, 0]


def test_head(protect):
    with Backend(verify) as auth:
        server = protect(auth)
        assert ask(server, ADA, method="HEAD").status == 200
        assert ask(server, method="HEAD").status == 401
        assert [got["X-Forwarded-Method"] for got in auth.requests] == ["HEAD", "HEAD"]


@pytest.mark.skipif(not (build.PLUGINS / "mandril.so").exists(), reason="the preset has no plugin mandril")
def test_paths_without_a_question(protect):
    """A preflight, an open section with CopyHeaders, and a client that an access rule allows."""
    rules = section("RULES", {"Match": "/app/new.txt", "Network": "127.0.0.1", "Action": "allow"})
    first = {"Match": "/app/open", "Type": "Off", "CopyHeaders": "Remote-User"}
    keys = {**COPY, "AllowPreflight": "On", "Satisfy": "any"}
    with Backend(verify) as auth, Backend(answer(b"app", TEXT)) as app:
        text = section("AUTH", first) + section("AUTH", {"Match": "/app", "Type": "Forward", "To": auth.url, **keys})
        to = proxy_section(app, {"Match": "/app"})
        server = protect(auth, {"Match": "/none"}, more=text + rules + to)
        for target in ("/app/open/x", "/app/new.txt"):
            assert ask(server, "Remote-User: root", target=target).body == b"app"
        preflight = ["Origin: https://a.example", "Access-Control-Request-Method: PUT", "Remote-User: root"]
        assert ask(server, *preflight, target="/app/x", method="OPTIONS").body == b"app"
        assert [got["Remote-User"] for got in app.requests] == [None] * 3
        assert ask(server, "Connection: remote-user", target="/app/open/x").status == 400
        assert not auth.requests


# ── failures ──

HUGE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Long: " + b"a" * 40_000 + b"\r\n\r\n"
MANY = lines("HTTP/1.1 103 Early Hints") * 1000 + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
SCRIPTS = {
    "reset": reset_at_once,
    "end": replay(b""),
    "cut head": replay(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "cut body": replay(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
    "garbage": replay(b"\x00\x01\x02\r\n\r\n"),
    "two lengths": replay(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n"),
    "other protocol": replay(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    "huge head": replay(HUGE),
    "1,000 interim responses": replay(MANY),
    "500": answer(b"", status=500, count=1),
    "503": answer(b"", status=503, count=1),
    "304": replay(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "300": answer(b"", status=300, count=1),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_failure(protect, script):
    with Backend(SCRIPTS[script]) as auth:
        server = protect(auth)
        refused = ask(server, ADA)
        assert refused.status == 503 and refused["Retry-After"]
        server.wait_log(rf"auth: {re.escape(auth.url)}/verify decides nothing, and the request gets 503: .+")
        assert ask(server, target="/open/x.txt").status == 200


def test_no_server(protect):
    with Backend(verify) as auth:
        auth.refuse()
        server = protect(auth)
        assert ask(server, ADA).status == 503
        server.wait_log("decides nothing, and the request gets 503: Connection refused")


def test_silent_server(protect):
    with Backend(stay_silent) as auth:
        server = protect(auth, {"ForwardTimeout": "50ms"})
        assert ask(server, ADA).status == 503
        server.wait_log("decides nothing, and the request gets 503: no response in 50ms")


def test_huge_body(protect):
    """A refusal has at most 64 KB; a body that is longer is left out. Of one that passes nothing is needed."""
    body = b"x" * 1_000_000
    scripts = [answer(body, TEXT, status=403, count=1), answer(body, TEXT, count=1)]
    with Backend(scripts) as auth:
        server = protect(auth)
        refused = ask(server, ADA)
        assert refused.status == 403 and b"xxx" not in refused.body
        assert ask(server, ADA).status == 200


def test_longest_body(protect):
    body = b"x" * 65_536
    with Backend(answer(body, TEXT, status=403, count=1)) as auth:
        assert ask(protect(auth)).body == body


@only_sanitized
def test_each_allocation_fails_once(protect):
    with Backend(verify) as auth, Backend(answer(b"app", TEXT)) as app:
        server = protect(auth, {**COPY, "ForwardSetCookie": "On"}, app)
        assert fail_each(server, lambda: ask(server, ADA, "Remote-User: root").status) > 3
        assert {got["Remote-User"] for got in app.requests} == {"ada"}


def test_each_descriptor_fails_once(protect, backends):  # noqa: F811
    """What is missing here says nothing of the servers."""
    servers = backends(2, answer(b"", count=1))
    server = protect("http://auth/verify", config={GROUPS: group(servers, "auth", EjectAfter=1, MaxConnections=1)})
    assert fail_each_descriptor(server, server.connect, lambda client: client.ask("/app/secret.txt").status) >= 1
    assert "gets no requests" not in server.log


# ── limits and clients that leave ──


def hold(peer):
    peer.request()
    peer.wait("go")
    peer.respond(b"")


def test_limit(protect):
    with Backend(hold) as auth:
        server = protect(auth, {"ForwardTimeout": "50s"}, limits={"ForwardRequests": 2})
        held = [server.connect() for _ in range(2)]
        for client in held:
            client.send(request("/app/secret.txt"))
        auth.wait_requests(2)
        assert ask(server).status == 503
        server.wait_log("503, because ForwardRequests are under way")
        auth.tell("go")
        assert {client.response().status for client in held} == {200}
        assert ask(server).status == 200


@pytest.mark.parametrize("protocol", ["http1", "http2"])
def test_client_that_leaves(protect, protocol):
    """Its question is cancelled, and counts no more."""
    with Backend([stay_silent, verify]) as auth:
        server = protect(auth, {"ForwardTimeout": "50s"}, limits={"ForwardRequests": 1})
        if protocol == "http1":
            client = server.connect()
            client.send(request("/app/secret.txt"))
            auth.wait_accepted(1)
            client.reset()
        else:
            client = server.connect_h2()
            number = client.begin("/app/secret.txt")
            auth.wait_accepted(1)
            client.cancel(number)
        auth.wait_open(0)
        assert ask(server, ADA).status == 200
        client.close()


def test_handler_timeout(protect):
    """The 503 of the server ends the question."""
    with Backend([stay_silent, verify]) as auth:
        short = section("LIMITS", {"Match": "/app/secret.txt", "HandlerTimeout": "1"})
        server = protect(auth, {"ForwardTimeout": "50s"}, more=short)
        assert ask(server).status == 503
        auth.wait_open(0)
        assert ask(server, ADA, target="/app/new.txt").status == 200


def test_reload_amid_a_question(protect):
    """The request ends as it began."""
    with Backend(hold) as auth, Backend(verify) as other:
        server = protect(auth, {"ForwardTimeout": "50s"})
        held = server.connect()
        held.send(request("/app/secret.txt"))
        auth.wait_requests(1)
        site = server.conf / "sites/default"
        site.write_text(site.read_text().replace(auth.address, other.address))
        reload(server)
        assert ask(server).status == 401
        auth.tell("go")
        assert held.response().body == b"secret\n"
        held.close()
        assert (len(auth.requests), len(other.requests)) == (1, 1)


# ── the cache ──


def test_cache(protect):
    """The same question is asked once; what decides makes another one."""
    with Backend(verify) as auth, Backend(answer(b"app", TEXT)) as app:
        server = protect(auth, {**COPY, **KEPT, "ForwardCacheBy": "Cookie X-Key"}, app)
        questions = [
            {},
            {"fields": ["Cookie: session=bob"]},
            {"fields": [ADA, "X-Key: 1"]},
            {"fields": [ADA, "X-Key: 2"]},
            {"target": "/app/new.txt"},
            {"target": "/app/secret.txt?a"},
            {"method": "HEAD"},
            {"host": "other"},
        ]
        for count, each in enumerate(questions, 1):
            rest = {"target": "/app/secret.txt", "fields": [ADA], **each}
            target, fields = rest.pop("target"), rest.pop("fields")
            for _ in range(3):
                assert ask(server, *fields, target=target, **rest).status == 200
            assert len(auth.requests) == count, each
        assert [got["Remote-User"] for got in app.requests] == ["ada"] * 3 + ["bob"] * 3 + ["ada"] * 18
        assert {got["Remote-Groups"] for got in app.requests} == {"staff, admins"}


def test_cache_keeps_no_refusal(protect):
    with Backend(verify) as auth:
        server = protect(auth, KEPT)
        assert [ask(server).status for _ in range(3)] == [401] * 3
        assert len(auth.requests) == 3


def test_cache_ends(protect):
    with Backend(verify) as auth:
        server = protect(auth, {"ForwardCache": "20ms"})

        def is_asked_again():
            assert ask(server, ADA).status == 200
            return len(auth.requests) > 1

        await_true(is_asked_again)


def test_cache_of_sections(protect):
    """Sections share nothing, and a reload begins anew."""
    with Backend(verify) as auth:
        first = section("AUTH", {"Match": "=/app/new.txt", "Type": "Forward", "To": auth.url, **KEPT})
        server = protect(auth, {"Match": "/none"}, more=first + section(
            "AUTH", {"Match": "/app", "Type": "Forward", "To": auth.url, **KEPT}))
        for _ in range(2):
            assert ask(server, ADA).status == ask(server, ADA, target="/app/new.txt").status == 200
        assert len(auth.requests) == 2
        reload(server)
        assert ask(server, ADA).status == 200
        assert len(auth.requests) == 3


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="the preset has no plugin dirlisting")
def test_listing(protect):
    """A listing has the paths that the cache lets pass: nothing is asked for it."""
    listing = section("DIRLISTING", {"Match": "/"})
    with Backend(verify) as auth:
        server = protect(auth, {**KEPT, "Match": "/app/secret.txt"}, more=listing)
        assert b"secret.txt" not in ask(server, ADA, target="/app/").body
        assert ask(server, ADA).status == 200
        assert b"secret.txt" in ask(server, ADA, target="/app/").body
        assert b"secret.txt" not in ask(server, target="/app/").body
        assert len(auth.requests) == 1


# ── groups and TLS ──


def test_group(protect, backends):  # noqa: F811
    """A server that is dead, or responds with 503, is not the last one that is asked."""
    dead, busy, fine = backends(3, verify)
    dead.refuse()
    busy.scripts[:] = [answer(b"", status=503, count=1)]
    keys = {"Balance": "First", "EjectAfter": 0, "Retry": "Connect 503"}
    server = protect("http://auth/verify", config={GROUPS: group([dead, busy, fine], "auth", **keys)})
    assert ask(server, ADA).status == 200
    assert ask(server).status == 401
    assert (len(busy.requests), len(fine.requests)) == (2, 2)
    assert fine.requests[0]["Host"] == "auth"
    fine.refuse()
    assert ask(server, ADA).status == 503
    server.wait_log(r"auth: http://auth/verify, server \S+ decides nothing")


def test_group_without_a_server(protect, backends):  # noqa: F811
    (one,) = backends(1, verify)
    server = protect("http://auth", config={GROUPS: group([f"{one.address} down"], "auth")})
    assert ask(server, ADA).status == 503
    server.wait_log("no server of the group can be used")


def test_group_that_is_full(protect, backends):  # noqa: F811
    """A question waits for a place, but not longer than ForwardTimeout."""
    (one,) = backends(1, hold)
    keys = {"MaxConnections": 1, "Queue": 10, "QueueTimeout": "50s"}
    server = protect("http://auth", {"ForwardTimeout": "1s"}, config={GROUPS: group([one], "auth", **keys)})
    client = server.connect()
    client.send(request("/app/secret.txt") * 1)
    one.wait_requests(1)
    assert ask(server, ADA).status == 503
    assert client.response().status == 503
    client.close()
    one.tell("go")
    await_true(lambda: ask(server, ADA).status == 200, what="an answer in time")


@needs_localhost
@pytest.mark.skipif(not build.speaks("tls"), reason="the preset has no tls")
def test_tls(protect, tmp_path):
    """A server that the authority does not vouch for decides nothing."""
    ca = Authority(tmp_path / "ca")
    pair = ca.make("auth", "localhost")
    with Backend(verify, tls=pair) as auth:
        to = f"https://localhost:{auth.address.rpartition(':')[2]}/verify"
        server = protect(to, {"TlsCA": ca.cert})
        assert ask(server, ADA).status == 200
        assert auth.peers[0].server_name == "localhost"
        site = server.conf / "sites/default"
        site.write_text(site.read_text().replace("TlsCA", "TlsName other.example\n    TlsCA"))
        reload(server)
        assert ask(server, ADA).status == 503
        server.wait_log("decides nothing, and the request gets 503: the certificate")


def test_unix(protect, tmp_path):
    with Backend(verify, path=tmp_path / "auth.sock") as auth:
        server = protect(f"{auth.url} /check?x=1")
        assert ask(server, ADA).status == 200
        assert (auth.requests[0].target, auth.requests[0]["Host"]) == ("/check?x=1", "localhost")


# ── connections ──


def verify_all(peer):
    while True:
        verify(peer)


def ask_some(server, n, *fields, status=200):
    with server.connect() as client:
        assert [client.ask("/app/secret.txt", *fields).status for _ in range(n)] == [status] * n


@pytest.mark.parametrize("kind", ["plain", pytest.param("name", marks=needs_localhost), "tls"])
def test_one_connection_for_all_questions(protect, tmp_path, kind):
    if kind == "tls" and not build.speaks("tls"):
        pytest.skip("the preset has no tls")
    ca = Authority(tmp_path / "ca")
    with Backend(verify_all, tls=ca.make("auth", "IP:127.0.0.1") if kind == "tls" else None) as auth:
        host = auth.url.replace("127.0.0.1", "localhost") if kind == "name" else auth.url
        server = protect(f"{host}/verify", {"TlsCA": ca.cert} if kind == "tls" else None)
        for client in range(3):
            ask_some(server, 5, f"Cookie: session=user{client}")
        ask_some(server, 2, status=401)
        assert (len(auth.peers), len(auth.requests)) == (1, 17)
        reload(server)
        ask_some(server, 5, ADA)
        assert len(auth.peers) == 2
        await_true(lambda: auth.open == 1, what="the end of the connection of the former configuration")


def test_connections_of_questions_at_once(protect):
    """One for each question that is under way; all of them are used again."""
    with Backend(hold_all) as auth:
        server = protect(auth, limits={"ForwardRequests": 8})
        for _ in range(2):
            clients = [server.connect() for _ in range(8)]
            before = len(auth.requests)
            for client in clients:
                client.send(request("/app/secret.txt", ADA))
            auth.wait_requests(before + 8)
            for _ in range(8):
                auth.tell("go")
            assert [client.response().status for client in clients] == [200] * 8
            for client in clients:
                client.close()
        assert len(auth.peers) == 8


def hold_all(peer):
    while True:
        hold(peer)


def answer_and_end(peer):
    """Reads a second request, and ends the connection instead of a response, as a server that is just closing it."""
    verify(peer)
    peer.request()


def test_lost_connection(protect):
    """A kept one that ends under a question is followed by a new one: no client sees it."""
    with Backend(answer_and_end) as auth:
        server = protect(auth)
        ask_some(server, 6, ADA)
        assert (len(auth.peers), len(auth.requests)) == (6, 11)  # each but the last has got a request that it lost


def answer_twice(peer):
    """Sends a second answer that was not asked for: one that would let the next client in."""
    peer.request()
    refusal, grant = (b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n" % line for line in (b"403 No", b"200 OK"))
    peer.send(refusal + grant)
    peer.rest()


def test_answer_without_a_question(protect):
    with Backend(answer_twice) as auth:
        server = protect(auth)
        ask_some(server, 4, ADA, status=403)
        assert len(auth.peers) == 4


def log_connections_in(peer):
    """A server that takes a login for all requests of its connection, as NTLM has it."""
    user = None
    while True:
        given = peer.request()["Authorization"]
        if given and given.split()[0].upper() in ("NTLM", "NEGOTIATE"):
            user = given.split()[1]
        if user:
            peer.respond(b"", f"Remote-User: {user}")
        else:
            peer.respond(b"", "WWW-Authenticate: Basic realm=x, NTLM", status=401)


@pytest.mark.parametrize("scheme", ["NTLM", "negotiate"])
def test_login_of_a_connection(protect, scheme):
    """It is not that of the next client, nor is a connection on which one has begun."""
    with Backend(log_connections_in) as auth:
        server = protect(auth)
        for n in range(4):
            ask_some(server, 1, f"Authorization: {scheme} ada")
            ask_some(server, 2, status=401)
        assert len(auth.peers) == 12


@needs_status
def test_figures(protect, backends):  # noqa: F811
    """They are those of each server of the group, and what its server has counted."""
    busy, fine = backends(2, verify_all)
    busy.scripts[:] = [answer(b"", status=503, count=1), verify_all]
    keys = {"Balance": "First", "EjectAfter": 0, "Retry": "503"}
    config = {GROUPS: group([busy, fine], "auth", **keys), "plugins/status/status.conf": status_section()}
    server = protect("http://auth/verify", config=config)
    ask_some(server, 1, ADA)
    busy.refuse()
    ask_some(server, 3, ADA)
    ask_some(server, 1, status=401)
    with server.connect() as client:
        samples = scrape(client)

        def count(name, one, **labels):
            name = f"monkey_auth_backend_{name}"
            return total(samples, name, backend="http://auth", server=one.address, **labels)

        assert (count("requests_total", busy), count("requests_total", fine)) == (5, 5)
        assert count("responses_total", busy, status="5xx") == 1
        assert count("responses_total", fine, status="2xx") == 4
        assert count("responses_total", fine, status="4xx") == 1
        assert count("retries_total", busy, reason="status") == 1
        assert count("retries_total", busy, reason="not_reached") == 4
        assert count("failures_total", busy) == 4
        assert count("opened_connections_total", fine) == len(fine.peers) == 1
        assert count("sent_bytes_total", fine) == sum(len(peer.raw) for peer in fine.peers)
        assert count("received_bytes_total", fine) == sum(peer.sent for peer in fine.peers)
        assert count("connections", fine, state="idle") == 1 and count("connections", fine, state="busy") == 0
        assert count("head_duration_seconds_count", fine) == 5 and count("duration_seconds_count", fine) == 5
        assert count("connect_duration_seconds_count", fine) == 1
        rows = {row.get("server"): row for row in status_of(client)["backends"] if row["plugin"] == "auth"}
        assert rows[fine.address]["requests"] == 5 and rows[fine.address]["status"]["4xx"] == 1


# ── loops ──


@needs_status
@pytest.mark.parametrize("servers", [1, 2])
def test_a_question_that_comes_back(serve, servers):
    """The path of the question is below the section that asks, here or in the other server: each server asks once,
    whatever the group says of retries."""
    ports = [free_port() for _ in range(servers)]
    hosts = [f"127.0.0.{n}" for n in (1, 2, 3)]
    keys = {"Retry": "Idempotent 500-599", "RetryMost": 5, "RetryBudget": 100, "EjectAfter": 0}
    text = section("AUTH", {"Match": "/x", "Type": "Forward", "To": "http://itself/x/verify"})
    started = []
    for own, other in zip(ports, ports[1:] + ports[:1]):
        addresses = [f"{host}:{other}" for host in hosts]
        config = {GROUPS: group(addresses, "itself", **keys), "plugins/status/status.conf": status_section()}
        started.append(serve({"Workers": 2, "Listen": [f"{host}:{own}" for host in hosts]}, text=text, config=config))
    assert ask(started[0], target="/x/y").status == 508
    advice = 'must not be below a section with "Type Forward": write "Type Off" for its path'
    started[0].wait_log(f"a loop: the question about a request comes back to this server, .*{advice}")
    started[-1].wait_log(rf"http://itself/x/verify, server 127\.0\.0\.\d:{ports[0]} responds with 508: .*{advice}")
    asked = 0
    for server in started:
        with server.connect() as client:
            asked += total(scrape(client), "monkey_auth_backend_requests_total")
    assert asked == servers


# ── many at once ──


def show_user(peer):
    while True:
        peer.respond(peer.request()["Remote-User"].encode(), TEXT)


@pytest.mark.load
@pytest.mark.concurrent
def test_many_workers(protect):
    """Each request has the user of its own session, over all workers and reloads."""
    with Backend(verify) as auth, Backend(show_user) as app:
        server = protect(auth, {**COPY, **KEPT}, app, settings={"Workers": 4})

        def ask_as(number):
            for turn in range(20):
                user = f"user{number}"
                with server.connect() as client:
                    got = client.ask(f"/app/{turn % 3}", f"Cookie: session={user}", "Remote-User: root")
                    assert (got.status, got.body.decode()) == (200, user)

        in_parallel(8, ask_as)
        reload(server)
        in_parallel(4, ask_as)
        assert len(auth.requests) <= 4 * (8 + 4) * 3


# ── mistakes ──

MISTAKES = {
    "To": ('"To" is missing', {"Type": "Forward"}),
    "URL": ("the server is http://HOST:PORT/PATH", {"Type": "Forward", "To": "ftp://a"}),
    "two words": ("the server is http://HOST:PORT/PATH", {"Type": "Forward", "To": "http://127.0.0.1:1 /x"}),
    "no host": ("the URL has no host", {"Type": "Forward", "To": "http:///x"}),
    "user": ("a URL with a user cannot be used", {"Type": "Forward", "To": "http://a@b/"}),
    "path": ("behind the host may stand a path", {"Type": "Forward", "To": "http://127.0.0.1:1?x"}),
    "port": ("is no address of a server", {"Type": "Forward", "To": "http://127.0.0.1:0x"}),
    "other type": ('only "Type Forward" asks another server', {"Type": "Off", "To": "http://127.0.0.1:1"}),
    "Host": ('the header "Host" is about', {"Type": "Forward", "To": "http://127.0.0.1:1", "CopyHeaders": "A Host"}),
    "hop": ('"keep_alive" is about', {"Type": "Forward", "To": "http://127.0.0.1:1", "CopyHeaders": "keep_alive"}),
    "name": ("letters, digits and dashes only", {"Type": "Forward", "To": "http://127.0.0.1:1", "CopyHeaders": "a:b"}),
    "twice": ("have the same name", {"Type": "Forward", "To": "http://127.0.0.1:1", "CopyHeaders": "a-b A_B"}),
    "user header": ("it takes the name of one header", {"Type": "Forward", "To": "http://a:1", "UserHeader": "a b"}),
    "groups": ("knows the groups", {"Type": "Forward", "To": "http://127.0.0.1:1", "Require": "group a"}),
    "user names": ('"UserHeader" is missing', {"Type": "Forward", "To": "http://127.0.0.1:1", "Require": "user a"}),
    "users": ("knows the users and groups", {"Type": "Forward", "To": "http://127.0.0.1:1", "Users": "/dev/null"}),
    "tls": ("To must begin with https://", {"Type": "Forward", "To": "http://127.0.0.1:1", "TlsName": "a"}),
    "ca": ("/nowhere/ca.pem", {"Type": "Forward", "To": "https://127.0.0.1:1", "TlsCA": "/nowhere/ca.pem"}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake(tmp_path, site_root, mistake):
    sentence, keys = MISTAKES[mistake]
    folder = write_config(tmp_path / "conf", site_root, text=section("AUTH", keys))
    checked = run("-t", "-c", folder)
    assert checked.returncode != 0
    assert re.search(rf"sites/default:\d+.*{re.escape(sentence)}", checked.stdout + checked.stderr), checked


WARNINGS = {
    "group": ('no [UPSTREAM] has the name "nobody"', {"To": "http://nobody/"}),
    "timeout": ("is not shorter than HandlerTimeout", {"To": "http://127.0.0.1:1", "ForwardTimeout": "1h"}),
    "verify": ("the certificate of the server is not verified", {"To": "https://127.0.0.1:1", "TlsVerify": "Off"}),
}


@pytest.mark.parametrize("warning", WARNINGS)
def test_warning(tmp_path, site_root, warning):
    sentence, keys = WARNINGS[warning]
    text = section("AUTH", {"Type": "Forward", **keys})
    checked = run("-t", "-c", write_config(tmp_path / "conf", site_root, text=text))
    assert checked.returncode == 0 and sentence in checked.stdout + checked.stderr, checked
