# SPDX-License-Identifier: Apache-2.0
"""One test for each class of attack that servers have fallen to, named after its class, with an example in its
docstring. Other files try each mechanism in breadth; here the attacker's question is put, and its whole answer is
compared. A smuggled request asks for /one.txt: its body, `1`, may never be seen."""

import ctypes
import itertools
import os
import resource
import select
import threading
import time

import pytest

from harness import build
from harness.content import FILES, HELLO, HUNDRED, LARGE
from harness.fastcgi import Application, fastcgi_section
from harness.messages import CLOSE, LAST, chunked, lines, octets, request, sized
from harness.server import await_true
import test_compress as compress
import test_fastcgi as fastcgi
import test_h2_attacks as h2_attacks
import test_h2_messages as h2_messages
import test_proxy as proxy
import test_proxy_payloads as proxy_payloads
import test_proxy_smuggling as proxy_smuggling
import test_proxy_websocket as proxy_websocket
import test_rewrites as rewrites
import test_sources as sources
import test_tls as tls
import test_tls_scanners as tls_scanners
import test_upstream_names as upstream_names
import test_websocket as websocket
import test_websocket_deflate as websocket_deflate
import test_websocket_hostile as websocket_hostile
import test_websocket_sizes as websocket_sizes
from test_log import LINE

pytestmark = pytest.mark.single_protocol

# Each class of attack: the tests that try it, or why it does not concern this server yet.
CLASSES = {
    "overlapping Range DoS": ("test_overlapping_ranges_dos", "test_range_integer_overflow"),
    "chunk size overflow / signedness": ("test_chunk_size_overflow", "test_chunk_size_overflow_while_read"),
    "CL.TE, TE.CL, TE.TE": ("test_cl_te", "test_te_cl", "test_te_te", "test_field_name_length_overflow"),
    "CL.0, 0.CL, Expect-based desync": ("test_cl_0", "test_0_cl", "test_expect_desync"),
    "TE.0; chunk extension TERM.EXT / bare LF": (
        "test_te_0",
        "test_chunk_extension_and_bare_lf",
        "test_chunk_extension_and_bare_lf_while_read",
    ),
    "obs-fold, space before colon, bare CR/LF": ("test_obs_fold_and_space_before_colon", "test_bare_cr_and_lf"),
    "empty header names dropping Content-Length": ("test_empty_header_names",),
    "header injection / response splitting": ("test_response_splitting", "test_header_injection_by_a_plugin"),
    # Backends are spoken to over HTTP/1.1.
    "request injection into an h2 upstream": (
        proxy_smuggling.test_http1,
        proxy_smuggling.test_http2,
        proxy_payloads.test_what_is_forwarded_is_well_formed,
    ),
    "path traversal, encoded dots": ("test_path_traversal_encoded_dots", "test_range_at_file_size", "test_long_host"),
    "NUL byte, UTF-8 overlong, backslash": (
        "test_nul_byte",
        "test_overlong_utf8",
        "test_backslash",
        "test_space_in_the_target",
    ),
    "alias off-by-slash": ("test_alias_off_by_slash",),
    "symlink races": ("test_symlink_race",),
    "PATH_INFO to FastCGI": ("test_path_info", "test_path_info_of_scripts", "test_line_feed_in_path_info"),
    "source of scripts": ("test_other_names_of_scripts", "test_letters_of_other_lengths", sources.test_document_root),
    "httpoxy": (proxy.test_headers_of_a_connection_stay, "test_httpoxy"),
    "CGI response splitting, X-Sendfile abuse": (
        proxy.test_headers_of_the_backend_stay,
        sources.test_send_file_of_an_application,
    ),
    "FastCGI/SCGI/uwsgi record parsing": (fastcgi.test_garbage, fastcgi.test_records_in_pieces),
    "rewrite buffer overflow": (rewrites.test_long_paths, rewrites.test_captures_do_not_leave_their_folder),
    "slowloris, slow POST, slow read": ("test_slowloris", "test_slow_post", "test_slow_read"),
    "hash collision": ("test_hash_collision",),
    "too many / too large headers": ("test_too_many_headers", "test_too_large_headers"),
    "h2 rapid reset": ("test_rapid_connection_resets", h2_attacks.test_rapid_reset),
    "h2 CONTINUATION flood": (
        h2_attacks.test_continuation_flood,
        h2_attacks.test_empty_continuations,
        h2_attacks.test_so_many_continuations_of_one_head,
    ),
    "MadeYouReset": (h2_attacks.test_made_you_reset, h2_attacks.test_malformed_requests_count),
    "h2 ping/settings/empty/priority floods, dribble": (
        h2_attacks.test_ping_flood,
        h2_attacks.test_settings_flood,
        h2_attacks.test_empty_data_flood,
        h2_attacks.test_priority_flood,
        h2_attacks.test_windows_of_a_byte,
        h2_attacks.test_useless_windows,
    ),
    "HPACK bomb": (h2_attacks.test_hpack_bomb,),
    "h2 downgrade injection (CRLF in pseudo headers, TE over h2)": (
        h2_messages.test_malformed_fields,
        h2_messages.test_malformed_request_line,
        proxy_smuggling.test_http2,
    ),
    "h2c upgrade tunnelling": (
        "test_http2_preface_and_h2c_upgrade_are_not_tunnels",
        proxy_websocket.test_upgrades_that_are_not_passed_on,
        proxy_websocket.test_choice_of_several,
    ),
    "WebSocket frame length overflow, unmasked frames, mask": (
        websocket.test_sections,
        websocket_sizes.test_the_limit_holds_before_the_message_has_come,
        websocket_hostile.test_noise,
    ),
    "WebSocket bad-version tunnel": (
        "test_websocket_upgrade_is_not_a_tunnel",
        proxy_websocket.test_refused_upgrade,
        proxy_websocket.test_unasked_upgrade,
    ),
    "decompression / permessage-deflate bomb": (websocket_deflate.test_bombs,),
    # TLS compresses nothing. Whether a page mixes secrets with the text of others, only its author knows: BREACH is
    # for the operator to prevent (plugins/compress/compress.md), and these are his means.
    "BREACH / CRIME": (
        tls.test_neither_compression_nor_early_data,
        compress.test_a_host_without_a_section,
        compress.test_paths,
        compress.test_no_transform,
    ),
    "TLS renegotiation, ROBOT, POODLE, Heartbleed": (
        tls.test_renegotiation_is_refused,
        tls.test_old_versions_are_refused,
        tls.test_ciphers_of_tls_1_2,
        tls_scanners.test_testssl,
    ),
    "ALPACA, cross-protocol, SNI/Host mismatch": (
        "test_other_protocols_get_nowhere",
        tls.test_a_client_that_wants_another_protocol_is_refused,
        tls.test_plain_http_at_the_port_of_tls,
        tls.test_421_for_a_name_that_the_certificate_does_not_cover,
        tls.test_421_where_the_certificate_shown_does_not_cover_the_name,
        tls.test_421_where_other_certificates_of_clients_are_asked_for,
        tls.test_421_where_the_connection_speaks_a_version_that_the_host_refuses,
    ),
    "session resumption across virtual hosts": (
        tls.test_sessions_stay_with_their_host,
        tls.test_a_session_without_a_certificate_is_no_way_in,
        tls.test_no_session_outlives_the_certificate_of_its_client,
    ),
    "OCSP/resolver use after free": (
        upstream_names.test_reloads_amid_lookups,
        upstream_names.test_name_servers_are_away,
    ),
    "log injection, terminal escapes": ("test_log_injection_and_terminal_escapes",),
    "Expect handling": ("test_expect_handling",),
    "Host confusion, absolute-form, two Hosts, port junk": (
        "test_host_confusion",
        "test_absolute_form_host",
        "test_two_hosts",
    ),
    "SIGBUS on truncated mmap, sendfile loop": ("test_sigbus_on_truncated_file", "test_sendfile_loop"),
    "descriptor or memory exhaustion spin": ("test_descriptor_exhaustion_spin", "test_memory_exhaustion"),
    "mp4/flv and other content parsers in the server": "the content of files is never parsed",
    "WebDAV": ("test_webdav_methods_do_nothing",),
    "HTTP/3": "there is no HTTP/3 yet",
    # What well-known servers showed in comparison
    "a FIFO in the document root hangs a worker": ("test_fifo_in_document_root",),
    "1,000 idle connections starve everyone else": ("test_1000_idle_connections_do_not_starve",),
    "200 slow readers cost much": ("test_200_slow_readers_cost_little",),
    "a long pipeline stops": ("test_pipeline_of_a_thousand",),
    "Connection: close is ignored on errors": ("test_close_on_errors",),
}

HOST = "Host: localhost"
TE = "Transfer-Encoding: chunked"
SMUGGLED = request("/one.txt")
NEVER = "60s"


def test_every_class_has_its_tests():
    """The table and the file agree, in both directions."""
    tests = {test for tests in CLASSES.values() if isinstance(tests, tuple) for test in tests}
    named = {test for test in tests if isinstance(test, str)}  # the others stand in files of their own
    written = {name for name in globals() if name.startswith("test_")} - {"test_every_class_has_its_tests"}
    assert named == written
    assert all(globals()[name].__doc__ for name in written)


def post(*fields, body=b"", target="/hello.txt"):
    return lines(f"POST {target} HTTP/1.1", HOST, *fields) + body


def assert_refused(server, data, status=400):
    """One answer that says close, and nothing of what follows is read as a request."""
    answers = server.talk(data + SMUGGLED + LAST)
    assert [(a.status, a.closes) for a in answers] == [(status, True)], data


def assert_nothing_behind(server, data):
    """405 before the body was looked at, or its refusal, or both: the connection ends, and nothing else is read."""
    answers = server.talk(data + SMUGGLED + LAST)
    assert [a.status for a in answers] in ([405], [400], [413], [405, 400], [405, 413]), data


def assert_missing(server, *targets):
    """404 for each, over one connection that stays good."""
    with server.connect() as client:
        for target in targets:
            answer = client.ask(target)
            assert answer.status == 404 and b"root:" not in answer.body, target
        client.assert_open()


@pytest.fixture
def many_descriptors():
    """Room for more than a thousand connections of the test itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("the hard limit of descriptors is too low")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Meanwhile:
    """Calls `work` again and again in a thread for as long as its block runs."""

    def __init__(self, work):
        self.work, self.over = work, threading.Event()
        self.thread = threading.Thread(target=self.repeat)

    def repeat(self):
        while not self.over.is_set():
            self.work()

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


# ── ranges ──


def test_overlapping_ranges_dos(site):
    """Hundreds of overlapping ranges make a small request cost memory and traffic (CVE-2011-3192)."""
    value = "Range: bytes=" + ",".join(f"{i}-" for i in range(1500))
    before = site.cpu_seconds()
    answers = site.talk(request("/large.bin", value) * 3 + LAST)
    assert [(a.status, a.length) for a in answers] == [(200, len(LARGE))] * 3 + [(200, 5)]
    assert answers[0].body == LARGE and answers[0]["Content-Range"] is None
    for count in (2, 16, 60):
        answer = site.talk(request("/large.bin", "Range: bytes=" + ",".join(["0-"] * count), CLOSE))[0]
        assert answer.status in (200, 206) and answer.body == LARGE, "many times the same is once the same"
    assert site.cpu_seconds() - before < 0.5


OVERFLOWING_RANGES = {
    "-9223372036854775608,-9223372036854775608": ((200, 206), HUNDRED),
    "0-0,-9223372036854775808": ((200, 206), HUNDRED),
    "-9223372036854775608": ((206,), HUNDRED),
    "-18446744073709551615": ((206,), HUNDRED),
    "-18446744073709551617": ((206,), HUNDRED),
    "0-18446744073709551615": ((206,), HUNDRED),
    "0-18446744073709551616": ((206,), HUNDRED),
    "1-" + "9" * 300: ((206,), HUNDRED[1:]),
}


def test_range_integer_overflow(connect):
    """Suffixes so large that their sum wraps once read what lay before the file in a cache (CVE-2017-7529)."""
    client = connect()
    for value, (statuses, body) in OVERFLOWING_RANGES.items():
        answer = client.ask("/hundred.bin", "Range: bytes=" + value)
        assert answer.status in statuses and answer.body == body, value


def test_range_at_file_size(connect):
    """A range that begins exactly at the end of the file crashed this project's ancestor (CVE-2013-2163)."""
    client = connect()
    for value in ("100-", "100-100", "100-200", "101-", "-0", "18446744073709551615-", "18446744073709551616-"):
        answer = client.ask("/hundred.bin", "Range: bytes=" + value)
        assert (answer.status, answer["Content-Range"]) == (416, "bytes */100"), value
    assert client.ask("/hundred.bin", "Range: bytes=99-").body == HUNDRED[99:]
    client.assert_open()


# ── where a message ends ──

WRONG_SIZES = {
    "-5": 400,
    "+5": 400,
    "0x5": 400,
    "5_0": 400,
    "": 400,
    "10000000000000000": 400,
    "10000000000000005": 400,
    "0" * 80 + "f" * 20: 400,
    "7fffffffffffffff": 413,
    "8000000000000000": 413,
    "fffffffffffffff0": 413,
    "ffffffffffffffff": 413,
}


def test_chunk_size_overflow(site):
    """A size taken for negative, or one that wraps, overran a buffer (CVE-2013-2028, CVE-2002-0392)."""
    for size in WRONG_SIZES:
        assert_nothing_behind(site, post(TE, body=octets(size) + b"\r\nhello\r\n0\r\n\r\n"))


def test_chunk_size_overflow_while_read(probe):
    """The same for a handler that takes the body (CVE-2013-2028): a huge size is too large, never negative."""
    server = probe()
    for size, status in WRONG_SIZES.items():
        body = octets(size) + b"\r\nhello\r\n0\r\n\r\n"
        assert_refused(server, post(TE, body=body, target="/probe/collect"), status)


def test_cl_te(site):
    """One reader ends the body by its length, the other by its chunks; what is left is smuggled (CVE-2022-26377)."""
    assert_refused(site, post("Content-Length: 4", TE, body=b"0\r\n\r\n" + SMUGGLED))
    assert_refused(site, post("Content-Length: 0", TE, body=chunked(SMUGGLED)))
    assert_refused(site, post("content-length:4", "transfer-encoding:chunked", body=chunked(SMUGGLED)))


def test_te_cl(site):
    """As CL.TE, with the readers exchanged: no order of the fields makes it right (CVE-2022-26377)."""
    assert_refused(site, post(TE, "Content-Length: 4", body=b"%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n0\r\n\r\n"))
    assert_refused(site, post(TE, "Content-Length: 4, 4", body=chunked(SMUGGLED)))


OBFUSCATED = {
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked": 400,
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity": 400,
    b"Transfer-Encoding: chunked, chunked": 400,
    b"Transfer-Encoding: chunked, gzip": 400,
    b"Transfer-Encoding : chunked": 400,
    b"Transfer-Encoding:\r\n chunked": 400,
    b"Transfer-Encoding: \x0bchunked": 400,
    b"Transfer-Encoding: chunked\0": 400,
    b"X: y\nTransfer-Encoding: chunked": 400,
    b"Transfer-Encoding: xchunked": 501,
    b'Transfer-Encoding: "chunked"': 501,
    b"Transfer-Encoding: identity": 501,
    b"Transfer-Encoding: foo, chunked": 501,
}


def test_te_te(site):
    """A coding written so that only one of two readers knows it, as by a vertical tab (CVE-2019-18277)."""
    for field, status in OBFUSCATED.items():
        assert_refused(site, post(field, body=chunked(SMUGGLED)), status)


def test_field_name_length_overflow(site):
    """A name of 270 bytes whose length wraps to that of Content-Length counted as one (CVE-2021-40346)."""
    for length in (256, 270, 256 + 14 + 256):
        fake = "Content-Length" + "a" * (length - 14)
        answers = site.talk(lines("GET /hello.txt HTTP/1.1", HOST, f"{fake}: {len(LAST)}") + LAST)
        assert [a.body for a in answers] == [HELLO, b"last\n"], length


def test_cl_0(connect):
    """A server that forgets a body it does not need takes it for the next request (CVE-2022-29361)."""
    for method, status in (("GET", 200), ("POST", 405), ("OPTIONS", 204), ("FROB", 501)):
        client = connect()
        client.send(lines(f"{method} /hello.txt HTTP/1.1", HOST, sized(SMUGGLED)))
        assert client.response(method).status == status, method
        client.send(SMUGGLED)
        client.send(LAST)
        assert [a.body for a in client.responses()] == [b"last\n"], method


def test_0_cl(connect):
    """An answer before the body came lets a front end believe that the body is over (2025, "HTTP/1.1 must die")."""
    client = connect()
    body = request("/one.txt", "X: " + "y" * 3000) * 3
    client.send(request("/nowhere", sized(body)))
    assert client.response().status == 404
    for at in range(0, len(body), 1000):
        client.send(body[at : at + 1000])
    client.send(LAST)
    assert [a.body for a in client.responses()] == [b"last\n"]


def test_expect_desync(site):
    """A final answer to `Expect: 100-continue` leaves open whether the body still comes (CVE-2024-24791)."""
    expect = "Expect: 100-continue"
    assert_refused(site, post(expect, sized(SMUGGLED), body=SMUGGLED), 405)
    assert_refused(site, post(expect, TE, body=chunked(SMUGGLED)), 405)
    assert_refused(site, lines("GET /hello.txt HTTP/1.1", HOST, expect, sized(SMUGGLED)) + SMUGGLED, 200)
    assert_refused(site, post("Expect: y 100-continue", sized(SMUGGLED), body=SMUGGLED), 417)


def test_te_0(site):
    """A coding field that says nothing, or that one side ignores, leaves the chunks as a request (TE.0, 2024)."""
    assert_refused(site, post("Transfer-Encoding:", sized(SMUGGLED), body=SMUGGLED))
    assert_refused(site, post("Transfer-Encoding:", body=chunked(SMUGGLED)))
    assert_refused(site, lines("OPTIONS / HTTP/1.0", HOST, TE) + chunked(SMUGGLED))
    answers = site.talk(lines("OPTIONS /hello.txt HTTP/1.1", HOST, TE) + chunked(SMUGGLED) + LAST, ["OPTIONS"])
    assert [a.body for a in answers] == [b"", b"last\n"]


FUNKY_CHUNKS = (
    b"5;\nhello\r\n0\r\n\r\n",
    b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    b"5;a=\0\r\nhello\r\n0\r\n\r\n",
    b"5\nhello\r\n0\r\n\r\n",
    b"5\rhello\r\n0\r\n\r\n",
    b"5\r\nhello\n0\r\n\r\n",
    b"5\r\nhelloXX0\r\n\r\n",
    b"0\n\n",
)


def test_chunk_extension_and_bare_lf(site):
    """Extensions that a bare line end cuts short, and chunks that any two bytes end (CVE-2025-22871)."""
    for body in FUNKY_CHUNKS:
        assert_nothing_behind(site, post(TE, body=body))


def test_chunk_extension_and_bare_lf_while_read(probe):
    """The same for a handler that takes the body (CVE-2025-22871): it never sees a half-understood one."""
    server = probe()
    for body in FUNKY_CHUNKS:
        assert_refused(server, post(TE, body=body, target="/probe/collect"))


# ── fields ──


def test_obs_fold_and_space_before_colon(site):
    """Folded lines and blanks around names are read differently by each (CVE-2022-32215, CVE-2016-8743)."""
    for field in (
        "X: a\r\n b",
        "X: a\r\n\tb",
        "X: a\r\n Content-Length: 38",
        "X: a\r\n \r\nY: b",
        "Content-Length : 38",
        "Content-Length\t: 38",
        "Transfer-Encoding\x0b: chunked",
        "X Y: z",
    ):
        assert_refused(site, lines("GET /hello.txt HTTP/1.1", HOST, field))
    assert_refused(site, lines("GET /hello.txt HTTP/1.1", " X: y", HOST))


def test_bare_cr_and_lf(site):
    """Half a line end hides a field from one reader and shows it to the other (CVE-2022-32214)."""
    for head in (
        b"GET /hello.txt HTTP/1.1\nHost: localhost\n\n",
        b"GET /hello.txt HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n",
        b"GET /hello.txt HTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n",
        b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\r\n\r\n",
        b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n\n",
        b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nX: a\r\n\rContent-Length: 38\r\n\r\n",
    ):
        assert_refused(site, head)


def test_empty_header_names(site):
    """A field without a name made the fields behind it disappear, the length among them (CVE-2023-25725)."""
    assert_refused(site, post(": x", sized(SMUGGLED), body=SMUGGLED))
    assert_refused(site, post(":", sized(SMUGGLED), body=SMUGGLED))
    assert_refused(site, post(" : x", sized(SMUGGLED), body=SMUGGLED))
    assert_refused(site, post(sized(SMUGGLED), ":x", body=SMUGGLED))


def test_response_splitting(serve):
    """An encoded line end that reaches Location decoded begins a field or an answer of its own (CVE-2023-25690)."""
    evil = "a\r\nSet-Cookie: x=1\r\n\r\n<b>"
    server = serve(files={evil + "/index.html": b"odd\n", "dir/index.html": b"dir\n"})
    with server.connect() as client:
        answer = client.ask("/a%0d%0aSet-Cookie:%20x=1%0d%0a%0d%0a%3cb%3e")
        assert answer.status == 301 and answer["Set-Cookie"] is None
        assert answer["Location"].lower() == "/a%0d%0aset-cookie:%20x=1%0d%0a%0d%0a%3cb%3e/"
        answer = client.ask("/dir?x=%0d%0aSet-Cookie:%20x=1")
        assert (answer.status, answer["Location"]) == (301, "/dir/?x=%0d%0aSet-Cookie:%20x=1")
        assert client.ask("/%0d%0aSet-Cookie:%20x=1")["Set-Cookie"] is None
        assert client.ask("//evil.example/..//dir")["Location"] == "/dir/"
    assert_refused(server, b"GET /dir?x=\rSet-Cookie:y HTTP/1.1\r\nHost: localhost\r\n\r\n")


def test_header_injection_by_a_plugin(probe):
    """What a plugin copies from a request into a field stays one field (the `return 302 $uri` class)."""
    with probe().connect() as client:
        answer = client.ask("/probe/inject")
        assert answer.body == b"refused\n" and answer["Injected"] is None and answer["X-Probe"] is None


# ── names ──


def test_path_traversal_encoded_dots(site):
    """Dots that are decoded after the check, once or twice, lead out of the root (CVE-2021-41773, CVE-2021-42013)."""
    ups = ("..", "%2e%2e", ".%2e", "%2E.", "%252e%252e", "%%32%65%%32%65", "..;", "...")
    targets = ["/" + f"{up}/" * 12 + "etc/passwd" for up in ups if "%%" not in up]
    targets += ["/dir" + f"/{up}" * 12 + "/etc/passwd" for up in ups if "%%" not in up]
    assert_missing(
        site, *targets, "/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd", "/dir/..%2f..%2fetc/passwd", "//etc/passwd"
    )
    with site.connect() as client:
        assert client.ask("/" + "%%32%65%%32%65/" * 12 + "etc/passwd").status == 400
        client.assert_open()


def test_nul_byte(site):
    """A NUL cuts the name for the system but not for the check (CVE-2013-3724)."""
    for target in ("/hello.txt%00", "/hello.txt%00.html", "/%00", "/.secret%00.txt", "/dir/%00/../file.txt"):
        answers = site.talk(request(target) + LAST)
        assert [a.status for a in answers] == [400, 200], target
    assert_refused(site, lines(b"GET /hello.txt\0.html HTTP/1.1", HOST))


def test_overlong_utf8(site):
    """A dot or a slash in more bytes than it needs, accepted by a lenient decoder (CVE-2000-0884)."""
    dots = ("%c0%ae", "%e0%80%ae", "%f0%80%80%ae", "%c0%2e", "%uff0e", "%u002e")
    assert_missing(site, *("/" + f"{dot}{dot}/" * 8 + "etc/passwd" for dot in dots[:4]))
    assert_missing(site, "/..%c0%af..%c0%af..%c0%afetc/passwd", "/..%e0%80%af..%e0%80%afetc/passwd")
    for dot in dots[4:]:
        assert site.statuses(request(f"/{dot}{dot}/etc/passwd") + LAST) == [400, 200]
    assert_refused(site, lines(b"GET /\xc0\xae\xc0\xae/etc/passwd HTTP/1.1", HOST))


def test_backslash(site):
    """An encoded backslash is part of a name; a raw one is in no URI, and refused (CVE-2000-0884)."""
    assert_missing(site, "/..%5c..%5c..%5cetc%5cpasswd", "/dir%5cfile.txt", "/dir/..%5c..%5chello.txt")
    for target in (b"/..\\..\\..\\etc\\passwd", b"/dir\\file.txt"):
        assert_refused(site, lines(b"GET " + target + b" HTTP/1.1", HOST))
    with site.connect() as client:
        assert client.ask("/back%5cslash.txt").body == FILES["back\\slash.txt"]


def test_space_in_the_target(site):
    """A raw space ended the check of the name, not the name (CVE-2013-4547)."""
    for target in (b"/with space.txt", b"/hello.txt \0.html", b"/dir /../.secret", b"/hello.txt "):
        assert_refused(site, lines(b"GET " + target + b" HTTP/1.1", HOST))
    assert_missing(site, "/hello.txt%20", "/dir%20/../.secret")


def test_alias_off_by_slash(serve):
    """A root compared as text also fits its sibling of a longer name (the class of the alias without its slash)."""
    for policy in ("Off", "Inside"):
        server = serve({"SymLink": policy}, files={"a.txt": b"inside\n", "dir/b.txt": b"inside\n"})
        evil = server.root.parent / "root-evil"
        evil.mkdir()
        (evil / "secret.txt").write_text("outside\n")
        (server.root / "link.txt").symlink_to("../root-evil/secret.txt")
        (server.root / "full.txt").symlink_to(evil / "secret.txt")
        (server.root / "folder").symlink_to(evil)
        assert_refused(server, request("-evil/secret.txt"))
        with server.connect() as client:
            for target in (
                "/../root-evil/secret.txt",
                "/%2e%2e/root-evil/secret.txt",
                "/..%2froot-evil/secret.txt",
                "/dir../root-evil/secret.txt",
                "/dir/../../root-evil/secret.txt",
                "/-evil/secret.txt",
                "/link.txt",
                "/full.txt",
                "/folder/secret.txt",
            ):
                assert client.ask(target).status == 404, target
            assert client.ask("/a.txt").body == b"inside\n"


LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def exchange(one, other):
    """Two names change places; there is no moment at which one of them is missing."""
    if LIBC.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


@pytest.mark.parametrize("policy", ["Off", "Inside"])
def test_symlink_race(serve, policy):
    """A name checked as a file and opened as a link to elsewhere (the class of SymLinksIfOwnerMatch)."""
    inside, outside = b"inside\n", b"OUTSIDE\n"
    files = {"f.txt": inside, "d/f.txt": inside, "k.txt": inside}
    server = serve({"SymLink": policy, "MaxKeepAliveRequest": 0}, files=files)
    elsewhere = server.root.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "f.txt").write_bytes(outside)
    (server.root / "link.txt").symlink_to(elsewhere / "f.txt")
    (server.root / "l").symlink_to("../elsewhere")

    def swap():
        exchange(server.root / "f.txt", server.root / "link.txt")
        exchange(server.root / "d", server.root / "l")

    both = {("file", 200), ("file", 404), ("folder", 200), ("folder", 404)}
    seen, start = set(), time.monotonic()
    with Meanwhile(swap), server.connect() as client:
        while time.monotonic() - start < 0.8 or (not seen >= both and time.monotonic() - start < 60):
            client.send(request("/f.txt") + request("/d/f.txt") + request("/l/../k.txt"))
            for name in ("file", "folder", "beside"):
                answer = client.response()
                assert outside not in answer.body
                assert answer.status == 404 or answer.body == inside, answer
                seen.add((name, answer.status))
    assert seen >= both, "the race did not take place"
    assert ("beside", 404) not in seen


def test_path_info(site):
    """A name behind a file's name turned an upload into a script (the class of cgi.fix_pathinfo)."""
    assert_missing(site, "/hello.txt/x", "/hello.txt/x.php", "/hello.txt/", "/dir/file.txt/../../hello.txt/x")


SCRIPTS = {"x.php": b"<?php secret", "foo.jpg": b"picture", "index.html": b"home"}
SHRINKING = "\u023a" * 4 + "x.php.txt"  # letters of two bytes, whose small form has three
SCRIPTS |= {SHRINKING: b"an upload", SHRINKING + ".php": b"<?php secret"}
needs_fastcgi = pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugins")


@pytest.fixture
def ask_script(serve):
    """Asks a server with scripts; returns the response, and the variables that the application got or None."""
    with Application(fastcgi.echo) as application:
        server = serve(files=SCRIPTS, text=fastcgi_section(application))

        def ask(target, *fields):
            before = len(application.requests)
            with server.connect() as client:
                got = client.ask(target, *fields)
            assert b"secret" not in got.body
            return got, application.requests[-1].params if len(application.requests) > before else None

        yield ask
        server.drop_clients()


@needs_fastcgi
def test_path_info_of_scripts(ask_script):
    """PHP ran an uploaded picture, since the name behind it did not exist (cgi.fix_pathinfo)."""
    for target in ("/foo.jpg/x.php", "/foo.jpg/none.php", "/none.php/x.php", "/foo.jpg%00.php", "/foo.jpg/.php"):
        got, variables = ask_script(target)
        assert (got.status in (400, 404), variables) == (True, None), target


@needs_fastcgi
def test_line_feed_in_path_info(ask_script):
    """A line feed left PATH_INFO empty, which php-fpm took for a length (CVE-2019-11043)."""
    got, variables = ask_script("/x.php/%0a" + "a" * 3000)
    if variables:
        assert variables["PATH_INFO"] == "/\n" + "a" * 3000
    else:
        assert got.status in (400, 404)


@needs_fastcgi
@pytest.mark.parametrize(
    "target",
    [
        "/x.PHP",
        "/x.php.",
        "/x.php%20",
        "/x.php::$DATA",
        "/x.php%00",
        "/x.php%00.html",
        "/x.%e2%93%9fhp",
        "/%e2%84%aa.php",
        "/..;/x.php",
        "/x.php;.html",
        "/x.php~",
        "/x.phps",
    ],
)
def test_other_names_of_scripts(ask_script, target):
    """Names that one part of a server takes for a script, and another one for a file."""
    got, variables = ask_script(target)
    assert (got.status in (400, 404), variables) == (True, None)


@needs_fastcgi
def test_letters_of_other_lengths(ask_script):
    """The place of .php in the path with small letters was used in the other one (GHSA-3g8v-8r37-cgjm)."""
    path = "/" + "".join(f"%{byte:02x}" if byte > 127 else chr(byte) for byte in SHRINKING.encode())
    got, variables = ask_script(path)
    assert (got.body, variables) == (b"an upload", None)
    for info in ("", "/info"):
        got, variables = ask_script(path + ".php" + info)
        assert variables["SCRIPT_NAME"].encode("latin-1").decode() == f"/{SHRINKING}.php"
        assert variables.get("PATH_INFO", "") == info


@needs_fastcgi
def test_httpoxy(ask_script):
    """The header Proxy became HTTP_PROXY, by which clients chose the proxy of a script (CVE-2016-5385)."""
    for name in ("Proxy", "PROXY", "proxy"):
        got, variables = ask_script("/x.php", f"{name}: http://attacker.example", "X-Good: 1")
        assert got.status == 200 and variables["HTTP_X_GOOD"] == "1" and "HTTP_PROXY" not in variables


# ── slow, many, large ──


def test_slowloris(serve):
    """Heads that never end, a field at a time, hold connections for ever (CVE-2007-6750)."""
    server = serve({"Timeout": "400ms", "KeepAliveTimeout": NEVER, "LingerTimeout": NEVER})
    slow = {client.sock: client for client in (server.connect() for _ in range(30))}
    for client in slow.values():
        client.send("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n")
    waiting, start = set(slow), time.monotonic()
    while waiting:
        assert time.monotonic() - start < 60, f"{len(waiting)} heads were let live"
        waiting -= set(select.select(list(waiting), [], [], 0.03)[0])
        for sock in waiting:
            slow[sock].send_all_you_can("X: y\r\n")
    assert time.monotonic() - start >= 0.3
    assert [client.response().status for client in slow.values()] == [408] * 30
    with server.connect() as client:
        client.assert_open()


def test_slow_post(serve):
    """Bodies that are announced and never come (CVE-2012-5568)."""
    server = serve({"Timeout": NEVER, "KeepAliveTimeout": NEVER, "BodyTimeout": "300ms", "LingerTimeout": "100ms"})
    slow, start = [server.connect() for _ in range(20)], time.monotonic()
    for client in slow:
        client.send(post("Content-Length: 50000", body=b"x"))
        assert client.response().status == 405
    for client in slow:
        client.assert_closed()
    assert time.monotonic() - start >= 0.29  # the clock of a loop is that of its turn


def test_slow_read(serve):
    """A tiny window keeps the answer, its file and its memory in the server (CVE-2012-5568, from the other side)."""
    server = serve({"SendTimeout": "3s", "KeepAliveTimeout": NEVER})
    slow = [server.connect(rcvbuf=4096) for _ in range(10)]
    for client in slow:
        client.send(request("/large.bin") * 4)
        assert client.head().status == 200
    await_true(lambda: server.descriptors() <= server.baseline, 30, "the end of the connections")
    for client in slow:
        client.assert_gone()


COLLIDING = {
    "the same letters": lambda n: ["".join(p) for p in itertools.islice(itertools.permutations("content-length"), n)],
    "the same beginning": lambda n: [f"{'Content-Length' * 2}{i:04}" for i in range(n)],
    "the same end": lambda n: [f"{i:04}{'Content-Length' * 2}" for i in range(n)],
    "pairs of equal sums": lambda n: [
        "".join(p) for p in itertools.islice(itertools.product(["Aa", "BB"], repeat=10), n)
    ],
    "one name": lambda n: ["X-Again"] * n,
}


def test_hash_collision(serve):
    """Names that fall into one bucket make a table quadratic (oCERT-2011-003, CVE-2011-4885)."""
    server = serve({"MaxHeaders": 1000, "MaxHeadSize": 65535})
    with server.connect() as client:
        for case, names in COLLIDING.items():
            fields = [f"{name}: x" for name in names(999) if name.lower() != "content-length"][:998]
            before = server.cpu_seconds()
            for _ in range(20):
                assert client.ask("/hello.txt", *fields).status == 200, case
            assert server.cpu_seconds() - before < (1.0 if build.SANITIZED else 0.1), case


def test_too_many_headers(site):
    """Small fields without number, each with its own overhead (CVE-2011-4415)."""
    for count, status in ((99, 200), (100, 431), (20_000, 431)):
        fields = [f"X{i}: {i}" for i in range(count - 1)]
        assert site.statuses(lines("GET /hello.txt HTTP/1.1", HOST, *fields, CLOSE)) == [status], count
    assert_refused(site, lines("GET /hello.txt HTTP/1.1", HOST, *["a:"] * 100), 431)


def test_too_large_headers(connect):
    """A head that never ends, in any of its parts (CVE-2023-45288)."""
    for data, status in (
        ("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + "v" * 20_000, 431),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n" + "N" * 20_000, 431),
        ("GET / HTTP/1.1\r\nHost: " + "h" * 20_000, 431),
        ("GET /" + "a" * 20_000, 414),
        ("GET / HTTP/1.1\r\n" + "X: y\r\n" * 4000, 431),
    ):
        client = connect()
        client.send_all_you_can(data)
        answer = client.response()
        assert answer.status == status and answer.closes, data[:40]
        client.assert_closed()


def test_1000_idle_connections_do_not_starve(serve, many_descriptors):
    """Connections without a request, and idle ones, do not delay others (the simplest form of CVE-2007-6750)."""
    server = serve({"KeepAliveTimeout": NEVER, "Timeout": NEVER})
    idle = [server.connect() for _ in range(1000)]
    for client in idle[::2]:
        client.send(request())
    assert all(client.response().body == HELLO for client in idle[::2])
    start = time.monotonic()
    for _ in range(20):
        with server.connect() as client:
            client.assert_open()
    assert time.monotonic() - start < 30  # of a loaded machine
    idle[0].assert_open()
    idle[1].assert_open()


def test_200_slow_readers_cost_little(serve):
    """A buffer for each download that its client does not read uses up the memory (the idea of CVE-2019-9511)."""
    server = serve({"SendTimeout": NEVER})
    with server.connect() as client:
        assert client.ask("/large.bin").body == LARGE
    before = server.memory_kb()
    readers = [server.connect(rcvbuf=4096) for _ in range(200)]
    for reader in readers:
        reader.send(request("/large.bin") * 4)
        assert reader.head().length == len(LARGE)
    with server.connect() as client:
        for _ in range(20):
            client.assert_open()
    grown = server.memory_kb() - before
    assert not build.OPTIMISED or grown < 4_000, f"{grown} KB for 200 slow readers"


def test_rapid_connection_resets(serve):
    """Work that is asked for and cancelled at once must end at once (CVE-2023-44487, in the form of HTTP/1.1)."""
    server = serve()
    before = server.cpu_seconds()
    for i in range(300):
        client = server.connect()
        client.send((request("/large.bin") * 10, request("/hello.txt"), b"GET /hel")[i % 3])
        client.reset()
    with server.connect() as client:
        client.assert_open()
    await_true(lambda: server.descriptors() <= server.baseline, 30, "the end of all that was cancelled")
    assert server.cpu_seconds() - before < (3.0 if build.SANITIZED else 0.5)


def test_pipeline_of_a_thousand(connect):
    """Many requests at once: all are answered, in their order, however slowly the answers are taken."""
    targets = ("/hello.txt", "/one.txt", "/nowhere", "/hundred.bin")
    client = connect(rcvbuf=4096)
    client.send_in_background((b"".join(map(request, targets)) * 250)[: -len(request(targets[-1]))] + LAST)
    answers = client.responses()
    assert [a.status for a in answers] == [200, 200, 404, 200] * 250
    assert [a.body for a in answers if a.status == 200] == ([HELLO, b"1", HUNDRED] * 250)[:-1] + [b"last\n"]


def test_descriptor_exhaustion_spin(serve):
    """An accept() that fails for want of descriptors stays ready, and is called again without end (EMFILE)."""
    server = serve({"BodyTimeout": NEVER, "KeepAliveTimeout": NEVER, "Timeout": NEVER}, nofile=48)
    clients = [server.connect(rcvbuf=4096) for _ in range(60)]
    for client in clients:
        client.send(post("Content-Length: 60000", body=b"x"))
    await_true(lambda: server.descriptors() >= 40, 30, "the exhaustion")
    server.await_idle()
    assert len(server.lines) < 40, "the log is flooded"
    for client in clients:
        client.close()
    with server.connect() as client:
        client.assert_open()


def test_memory_exhaustion(serve):
    """When memory runs out, the connections without a whole request are closed, the oldest first."""
    server = serve({"MemoryLimit": "1M", "Timeout": NEVER})
    before = server.memory_kb()
    greedy = [server.connect() for _ in range(200)]
    for client in greedy:
        client.send_all_you_can("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nX: " + "y" * 6000)
    greedy[0].assert_gone()
    for _ in range(8):
        with server.connect() as client:
            assert client.ask("/hello.txt").status == 200
    assert server.memory_kb() - before < (40_000 if build.SANITIZED else 3_000)
    assert len(server.lines) < 50, "the log is flooded"
    for client in greedy:
        client.close()
    await_true(lambda: server.descriptors() <= server.baseline, 30, "the end of the greedy")
    with server.connect() as client:
        client.assert_open()


# ── files ──


def test_sigbus_on_truncated_file(serve):
    """A mapped file that loses its end while it is read kills the process (the class of SIGBUS)."""
    size = 200_000
    server = serve({"LingerTimeout": "100ms"}, files={"f.bin": b"a" * size, "s.bin": b"b" * 3000, "hello.txt": HELLO})

    def shrink_and_grow():
        for name, length in (("f.bin", size), ("s.bin", 3000)):
            os.truncate(server.root / name, 0)
            (server.root / name).write_bytes(b"c" * length)

    asked, whole, start = itertools.cycle(("/f.bin", "/s.bin")), set(), time.monotonic()
    with Meanwhile(shrink_and_grow):
        while time.monotonic() - start < 0.8 or (len(whole) < 2 and time.monotonic() - start < 60):
            with server.connect() as client:
                target = next(asked)
                client.send(request(target, CLOSE))
                head = client.head()
                body = client.rest()
                assert head.status == 200 and len(body) <= head.length and not body.strip(b"abc\0")
                if body and len(body) == head.length:
                    whole.add(target)
    assert whole == {"/f.bin", "/s.bin"}, "nothing was ever served whole"
    with server.connect() as client:
        client.assert_open()


def test_sendfile_loop(serve):
    """A file that shrinks under its sender yields 0 bytes for ever, and a loop that waits for more (sendfile)."""
    server = serve({"LingerTimeout": "100ms"}, files={"hello.txt": HELLO})
    size = 32 << 20
    for cut in (0, 1 << 20):
        (server.root / "f.bin").write_bytes(b"")
        os.truncate(server.root / "f.bin", size)
        client = server.connect(rcvbuf=65_536)
        client.send(request("/f.bin"))
        assert client.head().length == size
        os.truncate(server.root / "f.bin", cut)
        left = client.rest()
        assert len(left) < size and not any(left)
        server.await_idle()
        with server.connect() as other:
            other.assert_open()
    await_true(lambda: server.descriptors() <= server.baseline + 1, 30, "the end of both downloads")


def test_fifo_in_document_root(serve):
    """Opening a FIFO waits for its other end, and with it waits a worker (seen in a comparison of servers)."""
    server = serve({"SymLink": "On", "Workers": 1}, files={"hello.txt": HELLO, "d/x.txt": b"x"})
    os.mkfifo(server.root / "fifo.txt")
    os.mkfifo(server.root / "d" / "index.html")
    (server.root / "link.txt").symlink_to("fifo.txt")
    with server.connect() as client:
        for target in ("/fifo.txt", "/link.txt", "/d/", "/fifo.txt/x"):
            for method in ("GET", "HEAD"):
                assert client.ask(target, method=method).status == 404, target
        assert client.ask("/fifo.txt", "Range: bytes=0-1").status == 404
        client.assert_open()


# ── other protocols ──


def test_http2_preface_and_h2c_upgrade_are_not_tunnels(site):
    """An upgrade that a front end passes on opens a tunnel past its checks (the h2c smuggling class, 2020)."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # at the beginning of a connection it would be one
    h2c = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    answers = site.talk(request("/hello.txt", *h2c) + request("/nowhere", *h2c) + LAST)
    assert [a.status for a in answers] == [200, 404, 200]
    assert answers[0].body == HELLO and all(a["Upgrade"] is None for a in answers)
    answers = site.talk(request("/hello.txt", *h2c) + preface + SMUGGLED)
    assert [(a.status, a.closes) for a in answers] == [(200, False), (505, True)]


def test_websocket_upgrade_is_not_a_tunnel(site):
    """A handshake of a wrong version is refused, while a front end believes it done (websocket smuggling)."""
    fields = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    for version in ("13", "1777"):
        answers = site.talk(request("/hello.txt", *fields, f"Sec-WebSocket-Version: {version}") + LAST)
        assert [(a.status, a["Upgrade"]) for a in answers] == [(200, None), (200, None)]


def test_other_protocols_get_nowhere(site):
    """A browser made to speak to another protocol's port, or the reverse, gets one error (CVE-2021-3618)."""
    for data in (
        b"EHLO evil.example\r\nMAIL FROM:<a@b>\r\n",
        b"USER anonymous\r\nPASS x\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)),
        b"SSH-2.0-client\r\n",
        b"*1\r\n$4\r\nPING\r\n",
    ):
        assert_refused(site, data)


def test_webdav_methods_do_nothing(serve):
    """Methods that write, copy or lock were left open with the module (CVE-2009-3898)."""
    server = serve(files={"hello.txt": HELLO})
    destination = "Destination: http://localhost/../../copy.txt"
    with server.connect() as client:
        for method, status in (("PUT", 405), ("DELETE", 405), ("MOVE", 501), ("COPY", 501), ("MKCOL", 501)):
            assert client.ask("/hello.txt", destination, method=method, body=b"x").status == status, method
            assert client.ask("/new.txt", method=method).status == status, method
        client.assert_open()
    assert os.listdir(server.root) == ["hello.txt"]


# ── what is said and what is written ──


def test_log_injection_and_terminal_escapes(probe):
    """A line end forges an entry, an escape drives the terminal that shows the log (CVE-2009-4487, CVE-2013-1862)."""
    server = probe({"LogLevel": "debug"})
    forged = "2026-11-20T00:00:00.000Z error forged"
    targets = ["/x%0a" + forged.replace(" ", "%20"), "/x%1b[2J%1b]0;t%07", "/x%0d%08%7f%c2%9b%e2%80%ae", "/%25n%25s"]
    assert server.statuses(b"".join(map(request, targets)) + LAST) == [404] * 4 + [200]
    server.statuses(lines(b"GET /\x1b[2J HTTP/1.1", b"Host: \x1b[31m"))
    server.wait_log("probe: done /last.txt")
    server.stop()
    logged = [row.partition("probe: done ")[2].partition(" status ")[0] for row in server.lines if "done /" in row]
    assert logged == [
        "/x\\x0a" + forged,
        "/x\\x1b[2J\\x1b]0;t\\x07",
        "/x\\x0d\\x08\\x7f\\xc2\\x9b\\xe2\\x80\\xae",
        "/%n%s",
        "/last.txt",
    ]
    assert [row for row in server.lines if not LINE.fullmatch(row)] == []


def test_expect_handling(site):
    """The page of 417 showed the field's value as HTML (CVE-2006-3918)."""
    for value in ("<script>alert(1)</script>", "<b>", "100-continue, <b>", "%3Cb%3E"):
        answers = site.talk(request("/hello.txt", f"Expect: {value}") + LAST)
        assert [(a.status, a.closes) for a in answers] == [(417, True)]
        assert octets(value) not in answers[0].body and b"alert" not in answers[0].body
        assert octets(value) not in answers[0].head


def test_close_on_errors(connect):
    """A client, or a proxy, that asked for the end must get it, or the next answer is another's."""
    for target, method, status in (
        ("/nowhere", "GET", 404),
        ("/noindex/", "GET", 404),
        ("/dir", "GET", 301),
        ("/hello.txt%00", "GET", 400),
        ("/hello.txt", "POST", 405),
        ("/hello.txt", "FROB", 501),
    ):
        client = connect()
        client.send(request(target, CLOSE, method=method) + SMUGGLED)
        answer = client.response(method)
        assert (answer.status, answer.closes) == (status, True), target
        client.assert_closed()


# ── hosts ──

EVIL = "evil.example"


def test_host_confusion(site):
    """A Host with more in it than a host ends in links and cache keys (the password-reset poisoning class)."""
    for value in (
        f"localhost@{EVIL}",
        f"localhost:80@{EVIL}",
        f"localhost:@{EVIL}",
        f"localhost/{EVIL}",
        f"localhost\\{EVIL}",
        f"localhost#{EVIL}",
        f"localhost?{EVIL}",
        f"localhost {EVIL}",
        f"localhost\t{EVIL}",
        "localhost:80:80",
        "localhost:x",
        "localhost:65536",
        "localhost:-80",
        "[::1]x",
        "[::1",
        '"localhost"',
        "<b>",
        "../..",
    ):
        assert_refused(site, lines("GET /hello.txt HTTP/1.1", f"Host: {value}"))
    answer = site.talk(request("/dir", CLOSE, f"X-Forwarded-Host: {EVIL}", host=EVIL))[0]
    assert (answer.status, answer["Location"]) == (301, "/dir/")
    assert octets(EVIL) not in answer.head + answer.body


def test_long_host(site):
    """A Host longer than its buffer overran the stack of the original server (CVE-2013-3843)."""
    for length in (255, 256, 257, 1024, 4096, 16_000):
        answers = site.talk(request("/dir", host="h" * length) + LAST)
        assert [(a.status, a["Location"]) for a in answers] == [(301, "/dir/"), (200, None)], length
    assert_refused(site, request("/dir", host="h" * 17_000), 431)


def test_absolute_form_host(site):
    """The target names another host than the field does: the target wins, and nothing is fetched (CVE-2021-40438)."""
    answers = site.talk(
        lines(f"GET http://{EVIL}/hello.txt HTTP/1.1", HOST)
        + lines(f"GET http://{EVIL}/dir HTTP/1.1", HOST)
        + lines("GET http://localhost/../../etc/passwd HTTP/1.1", HOST)
        + LAST
    )
    assert [a.status for a in answers] == [200, 301, 404, 200]
    assert answers[0].body == HELLO and answers[1]["Location"] == "/dir/"
    for target in (f"http://localhost@{EVIL}/", "http:///hello.txt", "http://localhost:x/"):
        assert_refused(site, lines(f"GET {target} HTTP/1.1", HOST))
    for target in (f"ftp://{EVIL}/", "unix:/run/secret.sock|http://localhost/", "file:///etc/passwd", f"{EVIL}:80"):
        assert_refused(site, lines(f"GET {target} HTTP/1.1", HOST))


def test_two_hosts(site):
    """Two Host fields: the cache takes one, the server the other (the host header attack class)."""
    for other in ("Host: localhost", f"Host: {EVIL}", f"host:{EVIL}", "Host:"):
        assert_refused(site, lines("GET /hello.txt HTTP/1.1", HOST, other))
        assert_refused(site, lines("GET /hello.txt HTTP/1.1", other, HOST))
        assert_refused(site, lines("GET http://localhost/hello.txt HTTP/1.1", HOST, other))
    assert_refused(site, lines("GET /hello.txt HTTP/1.1", HOST, f" Host: {EVIL}"))
    assert_refused(site, lines("GET /hello.txt HTTP/1.1", f"Host : {EVIL}", HOST))
    assert_refused(site, lines("GET /hello.txt HTTP/1.1"))
