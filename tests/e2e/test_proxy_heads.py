# SPDX-License-Identifier: Apache-2.0
"""The plugin proxy: headers that a section changes on their way to a backend and back, and what they bring about."""

import base64
import re

import pytest

from harness import build
from harness.backend import Backend, answer, echo
from harness.certificates import Authority, TlsClient
from harness.groups import backends, serve_group  # noqa: F401
from harness.messages import chunked, lines, request
from harness.proxies import TEXT, proxy_section
from harness.server import await_true, run, section, write_config
from harness.services import CONTROL_THREAD, reload

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


@pytest.mark.single_protocol
@pytest.mark.skipif(not build.speaks("tls"), reason="the preset has no tls")
def test_the_certificate_of_a_client(proxy, tmp_path):
    ca = Authority(tmp_path / "ca")
    pair = ca.make("ada", subject="/CN=ada/O=Test", use="clientAuth")
    tls = {**ca.make("localhost", "localhost").keys(), "ClientCertificate": "Optional", "ClientCA": ca.cert}
    with Backend(answer(b"hello", TEXT)) as backend:
        keys = {"RequestSet": 'X-Client-Certificate "$tls_client"'}
        server = proxy(backend, keys, text=section("TLS", tls), settings={"Listen": "127.0.0.1:0 tls"})
        for each in (pair, None):
            with TlsClient(server.addresses[0], ca.context(pair=each)) as client:
                assert client.ask("/", "X-Client-Certificate: CN=root").status == 200
    assert [got["X-Client-Certificate"] for got in backend.requests] == ["O=Test,CN=ada", None]


def test_the_user_of_a_login(proxy, tmp_path):
    (tmp_path / "users").write_text("joe:{SHA}" + base64.b64encode(bytes.fromhex(
        "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8")).decode() + "\n")  # fmt: skip
    login = section("AUTH", {"Match": "/", "Realm": "x", "Users": tmp_path / "users"})
    basic = "Authorization: Basic " + base64.b64encode(b"joe:password").decode()
    keys = {"RequestSet": "X-User $user", "RequestRemove": "Authorization"}
    sent = sent_by(proxy, keys, basic, "X-User: root", text=login)
    assert (sent["X-User"], sent["Authorization"]) == ("joe", None)


TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALID = f"00-{TRACE}-{SPAN}-00"
UUID = "0123ABCD-4567-89ab-cdef-0123456789ab"
IDS = ["mine", UUID, "0" * 32, "a" * 16 + "0" * 16, "x" * 36, UUID[:-1] + "x", "1" * 128, TRACE, TRACE.upper()]


def trace_of(sent):
    return re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])", sent["traceparent"]).groups()


def test_no_trace_is_made(proxy):
    """Without TraceSample the applications decide, which would take a trace for one that is not to be recorded."""
    sent = sent_by(proxy, {})
    assert (sent["traceparent"], sent["tracestate"]) == (None, None)
    for given in (VALID, "00-1-2-00", "x"):
        sent = sent_by(proxy, {}, f"traceparent: {given}", "tracestate: a=b")
        assert (sent["traceparent"], sent["tracestate"]) == (given, "a=b")


@pytest.mark.parametrize("given", IDS)
def test_a_trace_has_the_request_id(proxy, given):
    """The ID is passed on as it is, and the trace is valid: the digits of the ID if they can be one, else others."""
    sent = sent_by(proxy, {"TraceSample": "100%"}, f"X-Request-Id: {given}")
    assert sent["X-Request-Id"] == given
    trace, span, flags = trace_of(sent)
    assert int(span, 16) and trace.endswith(span) and flags == "01"
    assert (trace == given.replace("-", "").lower()) == (given in (UUID, TRACE))


def test_the_share_of_traces_that_are_sampled(proxy):
    with Backend(echo) as backend:
        for share, wanted in (("0", {"00"}), ("100", {"01"}), ("50%", {"00", "01"})):
            del backend.requests[:]
            with proxy(backend, {"TraceSample": share}).connect() as client:
                for _ in range(64):  # all alike by chance: once in 2 ** 63 runs
                    assert client.ask("/").status == 200
            assert {trace_of(sent)[2] for sent in backend.requests} == wanted


GIVEN_TRACES = [
    # lines of the client, and whether they stay
    ([f"traceparent: {VALID}", "tracestate: a=b"], True),
    ([f"traceparent: 00-{TRACE}-{SPAN}-01"], True),
    ([f"traceparent: 01-{TRACE}-{SPAN}-01-later"], True),
    ([f"traceparent: {VALID}", f"traceparent: {VALID}", "tracestate: a=b"], False),
    ([f"traceparent: {VALID.upper()}", "tracestate: a=b"], False),
    (["traceparent: 00-1-2-00", "tracestate: a=b"], False),
    (["traceparent: ", "tracestate: a=b"], False),
    (["tracestate: a=b"], False),
]


@pytest.mark.parametrize("fields, stays", GIVEN_TRACES)
def test_a_trace_of_the_client(proxy, fields, stays):
    """An invalid one is replaced, and its state goes with it (W3C Trace Context, section 3.2 and 3.3)."""
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend, {"TraceSample": "100"}).connect() as client:
            client.ask("/", *fields)
    (sent,) = backend.requests
    got = [f"{name}: {value}" for name, value in sent.fields if name.lower().startswith("trace")]
    if stays:
        assert got == fields
    else:
        assert len(got) == 1 and trace_of(sent)[0] == sent["X-Request-Id"]


def test_all_tries_have_one_trace(proxy, tmp_path):
    """And the headers of a section and the log have it, too."""

    def respond_once(peer):
        peer.request()
        peer.respond(b"1", TEXT)
        peer.request()

    keys = {"TraceSample": "50", "RequestSet": "X-Trace $traceparent"}
    log = section("LOGGER", {"AccessLog": tmp_path / "access.log", "Format": '"$status $traceparent"'})
    flush = {"plugins/logger/logger.conf": section("LOGGER", {"Flush": "20ms"})}
    with Backend([respond_once, answer(b"2", TEXT)]) as backend:
        with proxy(backend, keys, text=log, config=flush).connect() as client:
            for _ in range(2):
                assert client.ask("/", "X-Request-Id: mine").status == 200
        traces = [sent["traceparent"] for sent in backend.requests]
    assert traces == [sent["X-Trace"] for sent in backend.requests]
    assert len(traces) == 3 and traces[0] != traces[1] == traces[2]
    wanted = "".join(f"200 {trace}\n" for trace in traces[:2])
    await_true(lambda: (tmp_path / "access.log").read_text() == wanted, 60, "the log")


def test_traceparent_of_the_section(proxy):
    every = {"TraceSample": "100"}
    assert sent_by(proxy, {**every, "RequestSet": "traceparent 00-1-2-00"})["traceparent"] == "00-1-2-00"
    sent = sent_by(proxy, {**every, "RequestRemove": "traceparent"}, f"traceparent: {VALID}")
    assert trace_of(sent)[0] == sent["X-Request-Id"]
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


# ── SendFile ──


@pytest.fixture
def folder(tmp_path):
    """Files that only a backend may give out, next to one that it must not."""
    files = tmp_path / "private"
    (files / "sub").mkdir(parents=True)
    (files / "a.txt").write_bytes(b"0123456789")
    (files / "sub" / "b c%.bin").write_bytes(b"binary")
    (files / "out").symlink_to("../secret.txt")
    (files / "in").symlink_to("a.txt")
    (tmp_path / "secret.txt").write_bytes(b"secret")
    return files


def named_by(proxy, keys, *fields, asks=(), **rest):
    """What the client gets when a backend sends these header fields."""
    with Backend(answer(b"ignored", *fields, **rest)) as backend:
        with proxy(backend, keys).connect() as client:
            return client.ask("/download", *asks)


@pytest.mark.parametrize(
    "header, body",
    [
        ("X-Accel-Redirect: /a.txt", b"0123456789"),
        ("X-Accel-Redirect: a.txt?x=1", b"0123456789"),
        ("X-Accel-Redirect: {}/a.txt", b"0123456789"),
        ("X-Accel-Redirect: /sub/b%20c%25.bin", b"binary"),
        ("X-Accel-Redirect: /sub/../in", b"0123456789"),
        ("X-Sendfile: {}/a.txt", b"0123456789"),
        ("X-Sendfile: {}//sub/b c%.bin", b"binary"),
    ],
)
def test_send_file(proxy, folder, header, body):
    got = named_by(proxy, {"SendFile": folder}, header.format(folder))
    assert (got.status, got.body, got.length) == (200, body, len(body))
    assert got["ETag"] and got["Last-Modified"] and got["Accept-Ranges"] == "bytes"
    assert got["X-Accel-Redirect"] is None and got["X-Sendfile"] is None


@pytest.mark.parametrize(
    "header, status",
    [
        ("X-Accel-Redirect: /none", 404),
        ("X-Accel-Redirect: /sub", 404),
        ("X-Accel-Redirect: /", 404),
        ("X-Accel-Redirect: /a.txt%00", 404),
        ("X-Accel-Redirect: /%2e%2e/secret.txt", 403),
        ("X-Accel-Redirect: /../secret.txt", 403),
        ("X-Accel-Redirect: {}/../secret.txt", 403),
        ("X-Accel-Redirect: /out", 403),
        ("X-Accel-Redirect: {long}", 404),
        ("X-Sendfile: {}/none", 404),
        ("X-Sendfile: {}/../secret.txt", 403),
        ("X-Sendfile: {}2/a.txt", 403),
        ("X-Sendfile: a.txt", 403),
        ("X-Sendfile: /etc/passwd", 403),
    ],
)
def test_send_file_outside(proxy, folder, header, status):
    with Backend(answer(b"ignored", TEXT, header.format(folder, long="/a" * 3000))) as backend:
        server = proxy(backend, {"SendFile": folder})
        with server.connect() as client:
            got = client.ask("/download")
        name = header.split(":")[0]
        assert (got.status, b"secret" in got.body) == (status, False)
        server.wait_log(f"proxy: cannot send what {name} names: ")


def test_send_file_off(proxy, folder):
    got = named_by(proxy, {}, TEXT, f"X-Sendfile: {folder}/a.txt", "X-Accel-Redirect: /a.txt")
    assert (got.status, got.body, got["X-Sendfile"], got["X-Accel-Redirect"]) == (200, b"ignored", None, None)


def test_send_file_in_several_folders(proxy, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.txt").write_bytes(b"c")
    got = named_by(proxy, {"SendFile": f"{folder} {other}"}, "X-Accel-Redirect: /c.txt")
    assert got.body == b"c"


def test_send_file_keeps_headers(proxy, folder):
    fields = ["Content-Type: image/x-own", 'Content-Disposition: attachment; filename="x"', "Set-Cookie: a=b; Path=/",
              "Cache-Control: private", "Expires: 0", 'ETag: "1"', "X-Own: 1", "Content-Encoding: gzip"]  # fmt: skip
    got = named_by(proxy, {"SendFile": folder, **PATH, "Match": "/download"}, *fields, "X-Accel-Redirect: /a.txt")
    assert (got["Content-Type"], got["Cache-Control"], got["Expires"]) == ("image/x-own", "private", "0")
    assert (got["Content-Disposition"], got["Set-Cookie"]) == ('attachment; filename="x"', "a=b; Path=/download")
    assert (got["ETag"] != '"1"', got["X-Own"], got["Content-Encoding"]) == (True, None, None)


def test_send_file_type_by_name(proxy, folder):
    assert named_by(proxy, {"SendFile": folder}, "X-Accel-Redirect: /a.txt")["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_send_file_for_methods(proxy, folder, method):
    with Backend(answer(b"ignored", TEXT, "X-Accel-Redirect: /a.txt", status=201)) as backend:
        with proxy(backend, {"SendFile": folder}).connect() as client:
            for _ in range(3):
                got = client.ask("/", method=method, body=b"up" if method == "POST" else b"")
                assert (got.status, got.body, got.length) == (200, b"" if method == "HEAD" else b"0123456789", 10)
        assert len(backend.peers) == (3 if method == "HEAD" else 1)


def test_send_file_conditions_and_ranges(proxy, folder):
    with Backend(answer(b"ignored", TEXT, "X-Accel-Redirect: /a.txt")) as backend:
        with proxy(backend, {"SendFile": folder}).connect() as client:
            tag = client.ask("/")["ETag"]
            assert client.ask("/", f"If-None-Match: {tag}").status == 304
            assert client.ask("/", 'If-Match: "x"').status == 412
            part = client.ask("/", "Range: bytes=2-4")
            assert (part.status, part.body, part["Content-Range"]) == (206, b"234", "bytes 2-4/10")
            assert client.ask("/", "Range: bytes=20-").status == 416
            assert client.ask("/", "If-None-Match: *", method="POST", body=b"x").status == 200  # it was performed
    got = named_by(proxy, {"SendFile": folder}, TEXT, "Accept-Ranges: none", "X-Accel-Redirect: /a.txt",
                   asks=["Range: bytes=2-4"])  # fmt: skip
    assert (got.status, got.body, got["Accept-Ranges"]) == (200, b"0123456789", None)


def test_send_file_ends_an_incomplete_response(proxy, folder):
    """The rest of the backend's body is not waited for, and its connection is closed."""

    def respond(peer):
        peer.request()
        peer.send(lines("HTTP/1.1 200 OK", "X-Accel-Redirect: /a.txt", "Content-Length: 1000000") + b"x" * 100)
        peer.wait_end()

    with Backend(respond) as backend:
        with proxy(backend, {"SendFile": folder}).connect() as client:
            for count in (1, 2):
                assert client.ask("/").body == b"0123456789"
                backend.wait_accepted(count)
        backend.wait_open(0)


def test_send_file_follows_the_folder(proxy, tmp_path):
    """A link that is put in place of another one is followed without a reload."""
    link = tmp_path / "current"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    link.symlink_to("one")
    with Backend(answer(b"ignored", TEXT, "X-Accel-Redirect: /f")) as backend:
        with proxy(backend, {"SendFile": link}).connect() as client:
            assert client.ask("/").body == b"one"
            (tmp_path / "new").symlink_to("two")
            (tmp_path / "new").rename(link)
            assert client.ask("/").body == b"two"


# ── InterceptErrors ──

PAGES = section("ERROR_PAGES", {"404": '"our own page"'})


@pytest.mark.parametrize(
    "value, sent, is_ours",
    [("On", 400, True), ("On", 404, True), ("On", 503, True), ("On", 599, True), ("On", 302, False),
     ("Off", 404, False), ("404 502", 404, True), ("404 502", 502, True), ("404 502", 503, False), (None, 500, False)],
)  # fmt: skip
def test_intercept_errors(proxy, value, sent, is_ours):
    body = b"theirs" * 2000  # more than is read with the head

    def respond(peer):
        while True:
            peer.request()
            peer.respond(body, TEXT, "X-Own: 1", "Location: /x", status=sent)

    with Backend(respond) as backend:
        with proxy(backend, {"InterceptErrors": value} if value else {}, text=PAGES).connect() as client:
            for _ in range(2):
                got = client.ask("/")
                assert (got.status, got.body != body, got["X-Own"] is None) == (sent, is_ours, is_ours)
                assert not is_ours or sent != 404 or b"our own page" in got.body
        assert len(backend.peers) == 1


def test_intercepted_errors_keep_what_they_need(proxy):
    fields = ['WWW-Authenticate: Basic realm="x"', "Allow: PUT", "Retry-After: 7", "Set-Cookie: a=b"]
    for status in (401, 405, 503):
        got = named_by(proxy, {"InterceptErrors": "On"}, TEXT, *fields, status=status)
        assert (got.status, got.body != b"ignored", got["Set-Cookie"]) == (status, True, None)
        assert (got["WWW-Authenticate"], got["Allow"], got["Retry-After"]) == ('Basic realm="x"', "PUT", "7")


# ── Max-Forwards ──


@pytest.mark.parametrize(
    "method, value, status, sent",
    [
        ("OPTIONS", "1", 200, "0"),
        ("OPTIONS", "18446744073709551615", 200, "18446744073709551614"),
        ("OPTIONS", "0", 204, None),
        ("OPTIONS", "-1", 400, None),
        ("OPTIONS", "x", 400, None),
        ("TRACE", "7", 405, None),
        ("TRACE", "0", 405, None),
        ("GET", "0", 200, "0"),
        ("POST", "x", 200, "x"),
    ],
)
def test_max_forwards(proxy, method, value, status, sent):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            got = client.ask("/", f"Max-Forwards: {value}", method=method)
        assert got.status == status
        assert [request["Max-Forwards"] for request in backend.requests] == ([sent] if sent else [])
        assert status not in (204, 405) or "OPTIONS" in got["Allow"]


def test_trace(proxy):
    """A response with the request in it would show its cookies to scripts: no backend gets one."""
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            got = client.ask("/", "Cookie: secret", method="TRACE")
            assert (got.status, b"secret" in got.body) == (405, False) and "TRACE" not in got["Allow"]
            assert client.ask("/").status == 200
        assert [request.method for request in backend.requests] == ["GET"]


def test_two_max_forwards(proxy):
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/", "Max-Forwards: 5", "Max-Forwards: 6", method="OPTIONS").status == 400
            assert client.ask("/", method="OPTIONS").status == 200
        assert len(backend.requests) == 1


# ── trailers of requests ──

FIELDS = ["Checksum: 1", "X-Other: 2", "Content-Length: 3", "Host: evil", "X-Forwarded-For: 192.0.2.1", "X_User: root",
          "Transfer-Encoding: chunked", "Authorization: Basic x"]  # fmt: skip
NAMES = ", ".join(field.partition(":")[0] for field in FIELDS if field != "X-Other: 2")


def check_trailers(backend, announced):
    sent = backend.requests[-1]
    assert (sent.body, sent.length) == (b"hello", "chunked")
    assert [name.lower() for name, _ in sent.trailers] == (["checksum"] if announced else [])
    assert (sent["Trailer"] or "").lower() == ("checksum" if announced else "")
    assert sent["X-User"] != "root"


@pytest.mark.single_protocol
@pytest.mark.parametrize("announced", [True, False])
def test_trailers_of_requests(proxy, announced):
    trailer = "".join(f"{field}\r\n" for field in FIELDS).encode()
    with Backend(answer(b"ok", TEXT)) as backend:
        server = proxy(backend, {"RequestSet": "X-User $client"})
        head = lines("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked",
                     *([f"Trailer: {NAMES}"] if announced else []))  # fmt: skip
        with server.connect() as client:
            for cut in (len(head), len(head) + 7, None):
                message = head + chunked(b"he", b"llo", trailer=trailer)
                client.send(message[:cut])
                client.send(message[cut:] if cut else b"")
                assert client.response("POST").status == 200
                check_trailers(backend, announced)
        assert len(backend.peers) == 1


@pytest.mark.single_protocol
@pytest.mark.parametrize("announced", [True, False])
def test_trailers_of_requests_over_http2(proxy, announced):
    fields = [tuple(field.lower().split(": ")) for field in FIELDS if not field.startswith(("Host", "Transfer"))]
    with Backend(answer(b"ok", TEXT)) as backend:
        with proxy(backend, {"RequestSet": "X-User $client"}).connect_h2() as client:
            for pieces in ([b"he", b"llo"], [b"hello"]):
                number = client.begin("/", *([f"trailer: {NAMES}"] if announced else []), method="POST", end=False)
                for piece in pieces:
                    client.more(number, piece)
                client.more(number, end=True, trailers=[row for row in fields if row[0] != "content-length"])
                assert client.response(number).status == 200
                check_trailers(backend, announced)


@pytest.mark.single_protocol
def test_cookies_of_requests_over_http2(proxy):
    """Browsers send each cookie as a field; backends expect one (RFC 9113 section 8.2.3)."""
    with Backend(answer(b"hello", TEXT)) as backend:
        with proxy(backend).connect_h2() as client:
            assert client.ask("/", "Cookie: a=1", "X-Own: 1", "Cookie: b=2").status == 200
        assert backend.requests[0]["Cookie"] == "a=1; b=2"


# ── logins of a connection ──


def login(scheme, statuses=(401, 200)):
    """A backend whose first responses on a connection are these; each has the number of its connection as its body."""

    def script(peer):
        for status in (*statuses, *[200] * 100):
            peer.request()
            peer.respond(f"{peer.number}", TEXT, f"WWW-Authenticate: {scheme}", status=status)

    return script


@pytest.mark.parametrize("scheme", ["NTLM", "negotiate", "Negotiate YII=", 'Basic realm="a, b", NTLM TlR='])
def test_a_login_binds_the_connection(proxy, scheme):
    with Backend(login(scheme)) as backend:
        server = proxy(backend)
        with server.connect() as one, server.connect() as two:
            assert [one.ask("/").body for _ in range(3)] == [b"0"] * 3
            assert [two.ask("/").body for _ in range(3)] == [b"1"] * 3
            assert one.ask("/", method="POST", body=b"x").body == b"0"
        backend.wait_open(0)
        with server.connect() as three:
            assert three.ask("/").body == b"2"


@pytest.mark.single_protocol
def test_a_bound_connection_outlives_reloads(proxy):
    with Backend(login("NTLM")) as backend:
        server = proxy(backend)
        with server.connect() as client:
            for _ in range(3):
                assert client.ask("/").body == b"0"
                reload(server)
    server.baseline += CONTROL_THREAD


def test_credentials_bind_the_connection(proxy):
    """A client may send them before it was asked."""
    with Backend(login("Basic", statuses=[200])) as backend:
        server = proxy(backend)
        with server.connect() as client:
            assert client.ask("/", "Authorization: Negotiate YII=").body == b"0"
            with server.connect() as other:
                assert other.ask("/").body == b"1"
            assert client.ask("/").body == b"0"


def test_other_logins_bind_nothing(proxy):
    with Backend(login('Basic realm="NTLM", Digest realm="x"')) as backend:
        server = proxy(backend)
        for _ in range(3):
            with server.connect() as client:
                assert client.ask("/", "Authorization: Basic x").body == b"0"


def test_a_bound_connection_that_ends(proxy):
    def script(peer):
        peer.request()
        peer.respond(f"{peer.number}", TEXT, "WWW-Authenticate: NTLM", status=401)
        if not peer.number:
            peer.wait("end")
        else:
            peer.wait_end()

    with Backend(script) as backend:
        with proxy(backend).connect() as client:
            assert client.ask("/").body == b"0"
            backend.tell("end")
            backend.wait_open(0)
            assert client.ask("/").body == b"1"


@pytest.mark.single_protocol
@pytest.mark.parametrize("balance", ["LeastLoaded", "RoundRobin", "Hash", "Sticky"])
def test_a_login_binds_the_server_of_a_group(serve_group, backends, balance):  # noqa: F811
    """A login is complete after several requests; another server would begin anew."""

    def script(peer):
        for status in (401, *[200] * 100):
            peer.request()
            peer.respond(peer.backend.address, TEXT, "WWW-Authenticate: NTLM", status=status)

    servers = backends(4, script)
    server = serve_group(servers, {"Balance": balance, "HashBy": "Path"} if balance == "Hash" else {"Balance": balance})
    found = set()
    for _ in range(8):
        with server.connect() as client:
            answers = [client.ask(f"/{number}") for number in range(6)]
            assert [each.status for each in answers] == [401] + [200] * 5
            assert len({each.body for each in answers}) == 1
            found.add(answers[0].body)
    assert len(found) > 1 or balance == "Hash"


@pytest.mark.single_protocol
def test_a_login_gives_way(serve_group, backends):  # noqa: F811
    """Its server has no room: another one, where the login begins anew, is better than 503."""

    def script(peer):
        for status in (401, 200, 200):
            if peer.request().target == "/slow":
                peer.wait("go")
            peer.respond(peer.backend.address, TEXT, "WWW-Authenticate: NTLM", status=status)

    one, two = servers = backends(2, script)
    server = serve_group(servers, {"Balance": "First", "MaxConnections": 1})
    with server.connect() as client, server.connect() as other:
        assert [client.ask("/").body for _ in range(2)] == [one.address.encode()] * 2
        other.send(request("/slow"))
        one.wait_requests(3)
        got = client.ask("/")
        assert (got.status, got.body) == (401, two.address.encode())
        one.tell("go")
        assert other.response().body == one.address.encode()


@pytest.mark.single_protocol
def test_a_login_outlives_the_timeout_of_idle_connections(proxy):
    with Backend([login("NTLM"), login("Basic", statuses=[200])]) as backend:
        server = proxy(backend, {"KeepAliveTimeout": "50ms", "KeepAlive": 1})
        with server.connect() as client:
            assert client.ask("/").status == 401
            with server.connect() as other:
                assert other.ask("/").body == b"1"
            backend.wait_open(1)
            assert client.ask("/").body == b"0"


def test_clients_of_a_trusted_proxy_share_no_login(proxy):
    with Backend(login("NTLM")) as backend:
        with proxy(backend, settings={"TrustedProxies": "127.0.0.1"}).connect() as client:
            assert [client.ask("/").body for _ in range(3)] == [b"0", b"1", b"2"]
        backend.wait_open(0)


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
    "SendFile /no/such/folder": "cannot open the folder /no/such/folder: No such file",
    "SendFile /etc/passwd": "cannot open the folder /etc/passwd: Not a directory",
    "InterceptErrors 399": "it takes On, Off, or statuses from 400 to 599",
    "InterceptErrors 404 all": "it takes On, Off, or statuses from 400 to 599",
    "RequestSet X-User a\n    RequestSet x_user b": "a line before this one has the same name",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(tmp_path, site_root, text):
    write_config(tmp_path / "conf", site_root, text=f"[PROXY]\n    To http://a\n    {text}\n")
    got = run("-c", tmp_path / "conf", "--test")
    assert got.returncode == 1
    assert MISTAKES[text] in got.stderr and re.search(r"sites/default:\d", got.stderr)
