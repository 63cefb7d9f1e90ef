# SPDX-License-Identifier: Apache-2.0
"""The request head: line forms, versions, methods, Host, field syntax and limits. Each case goes over a fresh
connection
and is followed by a good request, so that the table also says what becomes of the connection."""

import re

import pytest

from harness.messages import CLOSE, LAST, lines, request
from harness.server import HTTP1_ONLY

HOST = "Host: localhost"


def get(target, *fields):
    return lines(f"GET {target} HTTP/1.1", HOST, *fields)


ACCEPTED = {
    "origin-form": get("/hello.txt"),
    "origin-form with a query": get("/hello.txt?a=b&c=/../d?e"),
    "origin-form with an empty query": get("/hello.txt?"),
    "percent-encoded letters": get("/%68ell%6F.txt"),
    "percent-encoded dot": get("/hello%2etxt"),
    "dot segment": get("/./hello.txt"),
    "double dot segment": get("/dir/../hello.txt"),
    "encoded double dot segment": get("/dir/%2e%2e/hello.txt"),
    "double dot beyond the root": get("/../../hello.txt"),
    "double slash": get("/dir//../hello.txt"),
    "absolute-form": get("http://localhost/hello.txt"),
    "absolute-form with a port": get("http://localhost:8080/hello.txt"),
    "absolute-form with a query": get("http://localhost/hello.txt?q"),
    "absolute-form with an upper-case scheme": get("HTTP://localhost/hello.txt"),
    "absolute-form with IPv6": get("http://[::1]:80/hello.txt"),
    "absolute-form wins over another Host": lines("GET http://localhost/hello.txt HTTP/1.1", "Host: other.example"),
    "leading empty line": b"\r\n" + get("/hello.txt"),
    "two leading empty lines": b"\r\n\r\n" + get("/hello.txt"),
    "minor version above ours": lines("GET /hello.txt HTTP/1.2", HOST),
    "minor version nine": lines("GET /hello.txt HTTP/1.9", HOST),
    "Host in lower case": lines("GET /hello.txt HTTP/1.1", "host: localhost"),
    "Host in upper case": lines("GET /hello.txt HTTP/1.1", "HOST: LOCALHOST"),
    "Host without space": lines("GET /hello.txt HTTP/1.1", "Host:localhost"),
    "Host within spaces and tabs": lines("GET /hello.txt HTTP/1.1", "Host: \t localhost \t "),
    "Host with a port": lines("GET /hello.txt HTTP/1.1", "Host: localhost:8080"),
    "Host with an empty port": lines("GET /hello.txt HTTP/1.1", "Host: localhost:"),
    "Host is IPv4": lines("GET /hello.txt HTTP/1.1", "Host: 127.0.0.1:2001"),
    "Host is IPv6": lines("GET /hello.txt HTTP/1.1", "Host: [::1]"),
    "Host is IPv6 with a port": lines("GET /hello.txt HTTP/1.1", "Host: [2001:db8::1]:443"),
    "Host is mapped IPv6": lines("GET /hello.txt HTTP/1.1", "Host: [::ffff:192.0.2.1]"),
    "Host with a trailing dot": lines("GET /hello.txt HTTP/1.1", "Host: localhost."),
    "Host unknown": lines("GET /hello.txt HTTP/1.1", "Host: nobody.example"),
    "empty field value": get("/hello.txt", "X-Empty:"),
    "blank field value": get("/hello.txt", "X-Blank:  \t "),
    "tab within a value": get("/hello.txt", "X-Tab: a\tb"),
    "obs-text in a value": get("/hello.txt", b"X-Text: gr\xc3\xbc\xc3\x9f\xff"),
    "every token character in a name": get("/hello.txt", "!#$%&'*+-.^_`|~09azAZ: x"),
    "unknown field twice": get("/hello.txt", "X-Twice: 1", "X-Twice: 2"),
    "long field value": get("/hello.txt", "X-Long: " + "v" * 7000),
    "Expect in capitals": get("/hello.txt", "Expect: 100-Continue"),
    "Upgrade is ignored": get("/hello.txt", "Connection: upgrade", "Upgrade: websocket"),
    "h2c upgrade is ignored": get(
        "/hello.txt", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"
    ),
    "proxy field (httpoxy)": get("/hello.txt", "Proxy: http://evil.example"),
}

# The connection stays usable: the answer, then the next request's.
ANSWERED = {
    "unknown method": (lines("FOO /hello.txt HTTP/1.1", HOST), 501),
    "method in lower case": (lines("get /hello.txt HTTP/1.1", HOST), 501),
    "method with every token character": (lines("!#$%&'*+-.^_`|~ /hello.txt HTTP/1.1", HOST), 501),
    "missing file": (get("/nowhere.txt"), 404),
    "encoded slash": (get("/dir%2Ffile.txt"), 404),
    "encoded slash in lower case": (get("/dir%2ffile.txt"), 404),
    "traversal to a system file": (get("/../../../../etc/passwd"), 404),
    "encoded traversal": (get("/%2e%2e/%2e%2e/%2e%2e/etc/passwd"), 404),
    "half-encoded traversal": (get("/.%2e/%2e./etc/passwd"), 404),
    "doubly encoded traversal": (get("/%252e%252e/%252e%252e/etc/passwd"), 404),
    "encoded-slash traversal": (get("/..%2f..%2f..%2fetc/passwd"), 404),
    "backslash traversal": (get("/..%5c..%5cetc%5cpasswd"), 404),
    "overlong UTF-8 traversal": (get("/%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd"), 404),
    "traversal through a file": (get("/hello.txt/../../etc/passwd"), 404),
    "traversal through a missing folder": (get("/nowhere/../../../etc/passwd"), 404),
    "encoded NUL": (get("/hello.txt%00"), 400),
    "encoded NUL before an extension": (get("/hello.txt%00.html"), 400),
    "escape cut short": (get("/hello.txt%"), 400),
    "escape of one digit": (get("/hello.txt%4"), 400),
    "escape that is not hexadecimal": (get("/hello%zz.txt"), 400),
    "encoded CRLF in a path": (get("/a%0d%0aSet-Cookie:%20x=1"), 404),
}

# The framing is uncertain (or, after a refused expectation, whether a body will come): one answer, then the end.
REFUSED = {
    "Host missing": (lines("GET /hello.txt HTTP/1.1"), 400),
    "Host missing in absolute-form": (lines("GET http://localhost/hello.txt HTTP/1.1"), 400),
    "Host twice": (lines("GET /hello.txt HTTP/1.1", HOST, HOST), 400),
    "Host twice and different": (lines("GET /hello.txt HTTP/1.1", HOST, "Host: other.example"), 400),
    "Host with a space": (lines("GET /hello.txt HTTP/1.1", "Host: local host"), 400),
    "Host with a slash": (lines("GET /hello.txt HTTP/1.1", "Host: localhost/x"), 400),
    "Host with user information": (lines("GET /hello.txt HTTP/1.1", "Host: user@localhost"), 400),
    "Host with a query": (lines("GET /hello.txt HTTP/1.1", "Host: localhost?x"), 400),
    "Host with a fragment": (lines("GET /hello.txt HTTP/1.1", "Host: localhost#x"), 400),
    "Host with a backslash": (lines("GET /hello.txt HTTP/1.1", "Host: localhost\\x"), 400),
    "Host with a word as port": (lines("GET /hello.txt HTTP/1.1", "Host: localhost:http"), 400),
    "Host with a port too large": (lines("GET /hello.txt HTTP/1.1", "Host: localhost:65536"), 400),
    "Host with a negative port": (lines("GET /hello.txt HTTP/1.1", "Host: localhost:-1"), 400),
    "Host with two ports": (lines("GET /hello.txt HTTP/1.1", "Host: localhost:80:80"), 400),
    "Host with an open bracket": (lines("GET /hello.txt HTTP/1.1", "Host: [::1"), 400),
    "Host with empty brackets": (lines("GET /hello.txt HTTP/1.1", "Host: []"), 400),
    "Host with bad IPv6": (lines("GET /hello.txt HTTP/1.1", "Host: [::g]"), 400),
    "Host with text after the bracket": (lines("GET /hello.txt HTTP/1.1", "Host: [::1]x"), 400),
    "Host is only a port": (lines("GET /hello.txt HTTP/1.1", "Host: :80"), 400),
    "Host with obs-text": (lines("GET /hello.txt HTTP/1.1", b"Host: loc\xe4lhost"), 400),
    "absolute-form without a host": (get("http:///hello.txt"), 400),
    "absolute-form with user information": (get("http://user@localhost/hello.txt"), 400),
    "absolute-form with a bad port": (get("http://localhost:x/hello.txt"), 400),
    "authority-form with GET": (get("localhost:80"), 400),
    "asterisk-form with GET": (get("*"), 400),
    "target without a slash": (get("hello.txt"), 400),
    "target with a fragment": (get("/hello.txt#top"), 400),
    "target with raw obs-text": (lines(b"GET /gr\xc3\xbc\xc3\x9fe.txt HTTP/1.1", HOST), 400),
    "target with a NUL": (lines(b"GET /hello.txt\0 HTTP/1.1", HOST), 400),
    "target with a control byte": (lines(b"GET /hello\x01.txt HTTP/1.1", HOST), 400),
    "target with DEL": (lines(b"GET /hello\x7f.txt HTTP/1.1", HOST), 400),
    "target with a tab": (lines("GET /hello.txt\t HTTP/1.1", HOST), 400),
    "two spaces before the target": (lines("GET  /hello.txt HTTP/1.1", HOST), 400),
    "two spaces before the version": (lines("GET /hello.txt  HTTP/1.1", HOST), 400),
    "space before the method": (lines(" GET /hello.txt HTTP/1.1", HOST), 400),
    "space after the version": (lines("GET /hello.txt HTTP/1.1 ", HOST), 400),
    "tab between method and target": (lines("GET\t/hello.txt HTTP/1.1", HOST), 400),
    "space in the target": (lines("GET /with space.txt HTTP/1.1", HOST), 400),
    "no target": (lines("GET HTTP/1.1", HOST), 400),
    "no method": (lines("/hello.txt HTTP/1.1", HOST), 400),
    "method with a bad character": (lines("G@T /hello.txt HTTP/1.1", HOST), 400),
    "method with a control byte": (lines(b"G\x01T /hello.txt HTTP/1.1", HOST), 400),
    "version in lower case": (lines("GET /hello.txt http/1.1", HOST), 400),
    "version without a dot": (lines("GET /hello.txt HTTP/11", HOST), 400),
    "version with two digits": (lines("GET /hello.txt HTTP/1.10", HOST), 400),
    "version cut short": (lines("GET /hello.txt HTTP/1.", HOST), 400),
    "version of another protocol": (lines("GET /hello.txt ICAP/1.0", HOST), 400),
    "version with a letter": (lines("GET /hello.txt HTTP/1.x", HOST), 400),
    "Expect unknown": (get("/hello.txt", "Expect: foo"), 417),
    "version two": (lines("GET /hello.txt HTTP/2.0", HOST), 505),
    "version three": (lines("GET /hello.txt HTTP/3.0", HOST), 505),
    "bare LF after the line": (b"GET /hello.txt HTTP/1.1\nHost: localhost\r\n\r\n", 400),
    "bare LF after a field": (b"GET /hello.txt HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n", 400),
    "bare LF at the end": (b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n\n", 400),
    "bare LF everywhere": (b"GET /hello.txt HTTP/1.1\nHost: localhost\n\n", 400),
    "bare CR in the line": (b"GET /hello.txt\r HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "bare CR in a value": (get("/hello.txt", b"X: a\rb"), 400),
    "CR CR LF": (b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\r\n\r\n", 400),
    "NUL in a value": (get("/hello.txt", b"X: a\0b"), 400),
    "control byte in a value": (get("/hello.txt", b"X: a\x1bb"), 400),
    "DEL in a value": (get("/hello.txt", b"X: a\x7fb"), 400),
    "NUL in a name": (get("/hello.txt", b"X\0Y: a"), 400),
    "space before the colon": (get("/hello.txt", "X-Space : a"), 400),
    "tab before the colon": (get("/hello.txt", "X-Tab\t: a"), 400),
    "space in a name": (get("/hello.txt", "X Space: a"), 400),
    "field without a colon": (get("/hello.txt", "X-Nothing"), 400),
    "empty field name": (get("/hello.txt", ": a"), 400),
    "name with a bad character": (get("/hello.txt", "X(Y): a"), 400),
    "name with obs-text": (get("/hello.txt", b"X\xe4: a"), 400),
    "obs-fold with a space": (get("/hello.txt", "X-Fold: a", " b"), 400),
    "obs-fold with a tab": (get("/hello.txt", "X-Fold: a", "\tb"), 400),
    "obs-fold that hides a field": (get("/hello.txt", "X-Fold: a", " Content-Length: 5"), 400),
    "space before the first field": (lines("GET /hello.txt HTTP/1.1", " X: y", HOST), 400),
    "blank after the line": (lines("GET /hello.txt HTTP/1.1", " ", HOST), 400),
}


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_accepted(site, case):
    first, last = site.talk(ACCEPTED[case] + LAST)
    assert (first.status, first.body) == (200, b"Hello, world\n")
    assert (last.status, last.body) == (200, b"last\n")


@pytest.mark.parametrize("case", ANSWERED, ids=str)
def test_answered_and_kept_open(site, case):
    data, status = ANSWERED[case]
    assert site.statuses(data + LAST) == [status, 200]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused_and_closed(site, case):
    data, status = REFUSED[case]
    answers = site.talk(data + LAST)
    assert [answer.status for answer in answers] == [status]
    assert answers[0].closes


@pytest.mark.parametrize("case", [*ACCEPTED][:12] + [*REFUSED][::6], ids=str)
def test_byte_by_byte(site, case):
    """However the bytes arrive, the answer is the same."""
    data = ACCEPTED.get(case) or REFUSED[case][0]
    whole = site.talk(data + LAST)
    with site.connect() as client:
        for i in range(len(data)):
            if not client.send_all_you_can(data[i : i + 1]):
                break
        client.send_all_you_can(LAST)
        pieces = client.responses()
    assert [(p.status, p.body) for p in pieces] == [(w.status, w.body) for w in whole]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE"])
def test_known_method_not_allowed(site, method):
    first, last = site.talk(request(method=method) + LAST)
    assert first.status == 405
    assert [m.strip() for m in first["Allow"].split(",")] == ["GET", "HEAD", "OPTIONS"]
    assert last.status == 200


def test_connect_is_no_proxy(site):
    assert site.talk(lines("CONNECT example.com:443 HTTP/1.1", "Host: example.com:443") + LAST)[0].status in (
        405,
        501,
    )
    assert site.talk(lines("CONNECT /hello.txt HTTP/1.1", HOST) + LAST)[0].status in (400, 405)


def test_trace_echoes_nothing(site):
    """Cross-site tracing: the request's fields never come back."""
    answer = site.talk(request("/hello.txt", "Cookie: secret=1", CLOSE, method="TRACE"))[0]
    assert b"secret" not in answer.body


def test_head_is_get_without_body(connect):
    client = connect()
    for target in ("/hello.txt", "/large.bin", "/empty.txt", "/nowhere", "/dir", "/"):
        whole, head = client.ask(target), client.ask(target, method="HEAD")
        assert head.status == whole.status and head.body == b""
        assert head.length == len(whole.body)
        without_date = [[f for f in r.fields if f[0] != "Date"] for r in (whole, head)]
        assert without_date[0] == without_date[1]


@pytest.mark.parametrize("target", ["/hello.txt", "/", "/nowhere", "*"])
def test_options(connect, target):
    client = connect()
    answer = client.ask(target, method="OPTIONS")
    assert answer.status in (200, 204) or (target == "/nowhere" and answer.status == 404)
    if answer.status != 404:
        assert [m.strip() for m in answer["Allow"].split(",")] == ["GET", "HEAD", "OPTIONS"]
    assert answer.body == b""
    client.assert_open()


def test_options_asterisk_in_absolute_form(site):
    """An absolute-form without a path names the server as a whole (RFC 9112 §3.2.4)."""
    assert site.talk(lines("OPTIONS http://localhost HTTP/1.1", HOST) + LAST)[0].status in (200, 204)


def test_http_0_9_gets_an_answer_of_1_1(site):
    answers = site.talk(b"GET /hello.txt\r\n")
    assert [a.status for a in answers] in ([400], [505])
    assert answers[0].closes


def test_preface_of_http_2(serve):
    """One answer, once, in the form that the client can at least show to its user."""
    site = serve(config=HTTP1_ONLY)
    answers = site.talk(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000"))
    assert [a.status for a in answers] == [505]
    assert answers[0].closes


def test_tls_hello_on_a_plain_port(site):
    hello = bytes.fromhex("1603010100010000fc0303") + bytes(range(1, 200)) * 2
    answers = site.talk(hello)
    assert [a.status for a in answers] in ([], [400])


def test_many_leading_empty_lines_end(site):
    assert site.statuses(b"\r\n" * 5000 + LAST) in ([400], [431], [])


# ── limits ──


def line_of(length):
    """A request line of exactly `length` bytes, without its CRLF."""
    return "GET /hello.txt?" + "q" * (length - len("GET /hello.txt?" + " HTTP/1.1")) + " HTTP/1.1"


@pytest.mark.parametrize(
    "length, status", [(1000, 200), (8000, 200), (8192 + 2, 414), (8192 + 1000, 414), (60_000, 414)]
)
def test_request_line_limit(site, length, status):
    answers = site.talk(lines(line_of(length), HOST, CLOSE))
    assert [a.status for a in answers] == [status]


def test_request_line_limit_is_seen_before_its_end(connect):
    client = connect()
    client.send("GET /" + "a" * 9000)
    assert client.response().status == 414
    client.assert_closed()


@pytest.mark.parametrize("target", ["/a\\b", "/..\\..\\etc", "\\", "/?a\\b", "http://localhost\\@evil/"])
def test_backslashes_are_refused(site, target):
    """No URI has them; some clients and proxies read them as slashes (RFC 3986 section 2)."""
    answers = site.talk(lines(f"GET {target} HTTP/1.1", HOST, CLOSE))
    assert [a.status for a in answers] == [400]


def test_endless_method(connect):
    client = connect()
    client.send("A" * 9000)
    assert client.response().status == 501
    client.assert_closed()


@pytest.mark.parametrize("count, status", [(99, 200), (100, 431), (1000, 431)])
def test_header_count_limit(site, count, status):
    """MaxHeaders is 100; Host is one of them."""
    data = lines("GET /hello.txt HTTP/1.1", HOST, *(f"X{i}: {i}" for i in range(count - 1)), CLOSE)
    assert site.statuses(data) == [status]


@pytest.mark.parametrize("size, status", [(15_000, 200), (17_000, 431), (40_000, 431), (200_000, 431)])
def test_head_size_limit(site, size, status):
    fields = [f"X{i}: " + "v" * 995 for i in range(size // 1000)]
    assert site.statuses(lines("GET /hello.txt HTTP/1.1", HOST, *fields, CLOSE)) == [status]


def test_one_endless_field(connect):
    client = connect()
    client.send_all_you_can("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + "v" * 20_000)
    assert client.response().status == 431
    client.assert_closed()


def test_endless_name(connect):
    client = connect()
    client.send_all_you_can("GET / HTTP/1.1\r\nHost: localhost\r\n" + "N" * 20_000)
    assert client.response().status == 431
    client.assert_closed()


def test_limits_are_settings(serve):
    server = serve({"MaxRequestLine": "100", "MaxHeadSize": "400", "MaxHeaders": "5"})
    assert server.statuses(lines(line_of(90), HOST, CLOSE)) == [200]
    assert server.statuses(lines(line_of(110), HOST, CLOSE)) == [414]
    assert server.statuses(request("/hello.txt", "A: 1", "B: 2", "C: 3", CLOSE)) == [200]
    assert server.statuses(request("/hello.txt", "A: 1", "B: 2", "C: 3", "D: 4", CLOSE)) == [431]
    assert server.statuses(request("/hello.txt", "A: " + "a" * 400, CLOSE)) == [431]


def test_collision_of_field_names(site):
    """A flood of names costs no more than its bytes (hash collisions): bounded by MaxHeaders, quick at the limit."""
    fields = [f"{'aA' * i + 'Aa' * (12 - i)}{i}: x" for i in range(13)] * 7
    answers = site.talk(lines("GET /hello.txt HTTP/1.1", HOST, *fields, CLOSE))
    assert [a.status for a in answers] == [200]


# ── error pages ──


@pytest.mark.parametrize(
    "target", ["/<script>alert(1)</script>", "/&quot;><b>", "/%3Cscript%3Ealert(1)%3C/script%3E", "/'onload='x"]
)
def test_error_pages_escape(site, target):
    answers = site.talk(lines(f"GET {target} HTTP/1.1", HOST, CLOSE))
    body = answers[0].body.lower()
    assert answers[0].status in (400, 404)
    assert b"<script>" not in body and b"<b>" not in body and b"onload='" not in body


def test_error_page_is_small_html(connect):
    answer = connect().ask("/nowhere.txt")
    assert answer.status == 404
    assert answer["Content-Type"].startswith("text/html")
    assert b"404" in answer.body and len(answer.body) < 1024


def test_server_field(serve, connect):
    assert re.fullmatch(r"[Mm]onkey/\d+\.\d+\.\d+", connect().ask()["Server"])
    assert re.fullmatch(r"[Mm]onkey", serve({"HideVersion": "On"}).connect().ask()["Server"])
    assert serve({"ServerHeader": "Off"}).connect().ask()["Server"] is None
