# SPDX-License-Identifier: Apache-2.0
"""Which clients are served, and how often: rules, connections and limits of clients."""

import contextlib
import functools
import gzip
import pathlib
import re
import signal
import time

import pytest

from harness import build
from harness.certificates import TlsClient
from harness.client import ProtocolError
from harness.h2 import H2Client
from harness.messages import request
from harness.server import await_true, run, section

FILES = {"a.txt": b"a\n", "secret/key.txt": b"key\n", "big.bin": b"x" * 200_000, "images/a.png": b"png\n"}

# Clients are what X-Forwarded-For says.
BEHIND_PROXY = {"TrustedProxies": "127.0.0.1", "MaxKeepAliveRequest": 1000000}


def rules(*sections, name="RULES"):
    return "".join(section(name, keys) for keys in sections)


def limits(*sections):
    return rules(*sections, name="CLIENT_LIMITS")


def host_text(folder, text):
    root = folder / "server0" / "root"
    return section("HOST", {"ServerName": "localhost", "DocumentRoot": root}) + text


@pytest.fixture
def guard(serve, tmp_path):
    """Starts a server with sections in its default host, and others in monkey.conf."""

    def start(text="", settings=None, shared="", config=None, **rest):
        config = dict(config or {})
        config["sites/default"] = host_text(tmp_path, text)
        if shared:
            given = {"Listen": "127.0.0.1:0", "Workers": 1, **(settings or {})}
            config["monkey.conf"] = section("SERVER", given) + shared
        return serve(settings, files=FILES, config=config, **rest)

    return start


@pytest.fixture(params=["h1", "h2", "h1-tls", "h2-tls"])
def way(request, guard, ca, certificate):
    """guard() for each way to ask; `server.open()` makes a client."""
    h2, tls = request.param.startswith("h2"), request.param.endswith("tls")
    for protocol in ("h2",) * h2 + ("tls",) * tls:
        if not build.speaks(protocol):
            pytest.skip(f"the preset {build.PRESET} has no {protocol}")

    def start(text="", settings=None, **rest):
        if tls:
            settings = {"Listen": "127.0.0.1:0 tls", **(settings or {})}
            text += section("TLS", certificate.keys())
        server = guard(text, settings, **rest)

        def connect():
            if h2:
                return server.connect(kind=H2Client, **({"context": ca.context(alpn=["h2"])} if tls else {}))
            if tls:
                client = TlsClient(server.addresses[0], ca.context())
                server.clients.append(client)
                return client
            return server.connect()

        server.open = connect
        return server

    return start


def is_dropped(client, target, *fields):
    """Is the exchange ended without a response?"""
    try:
        client.ask(target, *fields)
    except (ProtocolError, ConnectionError, EOFError, TimeoutError) as error:
        assert "timed out" not in str(error)
        return True
    return False


def begin(client, target):
    """Sends a request; its response is read with finish()."""
    if isinstance(client, H2Client):
        return client.begin(target)
    client.send(request(target))
    return None


def finish(client, stream):
    return client.response(stream) if stream is not None else client.response()


def reload(server, count=1):
    server.baseline += 2 * (count == 1)  # descriptors of the process context, which the first reload makes
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use", count)


# ── rules ──

RULES = rules(
    {"Match": "/secret", "Network": "10.0.0.0/8 2001:db8::/32", "Action": "allow"},
    {"Match": "/secret", "Action": "deny"},
    {"Match": "*.bak", "Action": "deny 404"},
    {"Match": "~^/old/[0-9]+$", "Action": "deny 410"},
    {"Match": "/api", "When": "method PUT DELETE", "Action": "deny 451"},
    {"When": "header User-Agent ~*(bad|worse)bot", "Action": "deny 429"},
    {"When": "!header X-Key =right", "Match": "/keyed", "Action": "deny 402"},
    {"Match": "/images", "ForeignReferer": "On", "Action": "deny"},
)


def test_rules(way):
    server = way(RULES, BEHIND_PROXY)
    client = server.open()

    def status(target, *fields, method="GET", address="192.0.2.1"):
        return client.ask(target, f"X-Forwarded-For: {address}", *fields, method=method).status

    assert status("/a.txt") == 200
    assert status("/secret/key.txt") == 403
    assert status("/secret") == 403
    assert status("/secret/key.txt", address="10.1.2.3") == 200
    assert status("/secret/key.txt", address="2001:db8:1::7") == 200
    assert status("/secret/key.txt", address="::ffff:10.9.9.9") == 200
    assert status("/secret/key.txt", address="2001:db9::7") == 403
    assert status("/a.bak") == 404 and status("/old/12") == 410 and status("/old/x") == 404
    assert status("/api/x", method="DELETE") == 451
    assert status("/a.txt", "User-Agent: Mozilla (BadBot 1.0)") == 429
    assert status("/a.txt", "User-Agent: Mozilla") == 200
    assert status("/keyed") == 402 and status("/keyed", "X-Key: rightx") == 402
    assert status("/keyed", "X-Key: right") == 404
    assert status("/images/a.png") == 200
    assert status("/images/a.png", "Referer: http://localhost/page") == 200
    assert status("/images/a.png", "Referer: http://localhost:81/page") == 200
    assert status("/images/a.png", "Referer: http://other.test/localhost") == 403
    assert status("/images/a.png", "Referer: http://localhost@other.test/") == 403
    server.wait_log(
        r"access: .*sites/default:\d+ \(#2\): deny 403 192\.0\.2\.1: GET /secret/key\.txt; 1 so far,"
        r" peer: 127\.0\.0\.1, listener: 127\.0\.0\.1:\d+( tls)?, host: \S+"
    )


def test_requests_for_the_whole_server(guard):
    client = guard(rules({"Match": "=/", "When": "method OPTIONS", "Action": "deny"})).connect()
    client.send(request("*", method="OPTIONS"))
    assert client.response("OPTIONS").status == 403


def test_listings_have_only_what_is_allowed(guard):
    """The names of denied files are not shown, and asking for them neither counts nor logs."""
    text = rules({"Match": "/secret", "Action": "deny"}, {"Match": "*.png", "Action": "delay 1s"})
    text += section("DIRLISTING", {"Match": "/"}) + limits({"Rate": "2/d", "Name": "daily"})
    server = guard(text)
    client = server.connect()
    answer = client.ask("/", "Accept: application/json")
    assert answer.status == 200 and b"a.txt" in answer.body and b"secret" not in answer.body
    assert b"a.png" in client.ask("/images/", "Accept: application/json").body
    assert client.ask("/", "Accept: application/json").status == 429
    assert "deny 403" not in server.log


def test_a_login_may_replace_a_network(guard, tmp_path):
    """`Satisfy any` of [AUTH]: the rule's denial is left to the login."""
    users = tmp_path / "users"
    users.write_text("me:$apr1$abcdefgh$" + "x" * 22 + "\n")
    users.chmod(0o600)
    text = rules({"Match": "/secret", "Network": "10.0.0.0/8", "Action": "allow"})
    text += rules({"Match": "/secret", "Action": "deny"})
    text += section("AUTH", {"Match": "/secret", "Users": users, "Satisfy": "any"})
    client = guard(text, BEHIND_PROXY).connect()
    assert client.ask("/secret/key.txt", "X-Forwarded-For: 10.0.0.1").status == 200
    assert client.ask("/secret/key.txt", "X-Forwarded-For: 11.0.0.1").status == 401


def test_a_preflight_replaces_no_network(guard, tmp_path):
    """It passes the login, but not a denial that a login would replace."""
    users = tmp_path / "users"
    users.write_text("me:$apr1$abcdefgh$" + "x" * 22 + "\n")
    users.chmod(0o600)
    text = rules({"Match": "/secret", "Network": "10.0.0.0/8", "Action": "allow"})
    text += rules({"Match": "/secret", "Action": "deny"})
    text += section("AUTH", {"Match": "/secret", "Users": users, "Satisfy": "any", "AllowPreflight": "On"})
    client = guard(text, BEHIND_PROXY).connect()
    fields = ("Origin: https://a.example", "Access-Control-Request-Method: GET")
    ask = functools.partial(client.ask, "/secret/key.txt", *fields, method="OPTIONS")
    assert ask("X-Forwarded-For: 10.0.0.1").status == 204
    assert ask("X-Forwarded-For: 11.0.0.1").status == 403


def test_drop_and_delay(way):
    server = way(rules({"Match": "/gone", "Action": "drop"}, {"Match": "/a.txt", "Action": "delay 300ms"}))
    client = server.open()
    began = time.monotonic()
    assert client.ask("/a.txt").body == b"a\n"
    assert 0.29 < time.monotonic() - began < 30
    assert is_dropped(server.open(), "/gone")
    assert client.ask("/big.bin").status == 200


def test_a_client_leaves_during_a_delay(way):
    server = way(rules({"Match": "/a.txt", "Action": "delay 2s"}))
    client = server.open()
    begin(client, "/a.txt")
    server.wait_log(r"delay 2s")
    client.close()
    assert server.open().ask("/big.bin").status == 200


def test_dry_run_only_logs(guard):
    server = guard(rules({"Match": "/", "Action": "deny", "DryRun": "On"}, {"Match": "/secret", "Action": "deny 404"}))
    client = server.connect()
    assert client.ask("/a.txt").status == 200
    assert client.ask("/secret/key.txt").status == 404
    server.wait_log(r"dry run, would deny 403 127\.0\.0\.1: GET /a\.txt")


def test_rules_of_the_host_come_before_those_for_all(guard):
    shared = rules({"Match": "/secret", "Action": "deny"}, {"Match": "/a.txt", "Action": "deny 410"})
    client = guard(rules({"Match": "/secret/key.txt", "Action": "allow"}), shared=shared).connect()
    assert client.ask("/secret/key.txt").status == 200
    assert client.ask("/secret/").status == 403
    assert client.ask("/a.txt").status == 410


def test_a_costly_pattern_denies(guard):
    server = guard(rules({"Match": "~^/(a+)+$", "Action": "allow"}))
    client = server.connect()
    assert client.ask("/aaaaaa").status == 404
    assert client.ask("/" + "a" * 200 + "b").status == 403
    server.wait_log("deny 403, because a pattern takes too much time")


@pytest.mark.parametrize(
    "text",
    [
        rules({"When": "header X-A ~^(a+)+$", "Action": "delay 1ms"}),
        rules({"When": "!header X-A ~^(a+)+$", "Action": "allow"}),
        limits({"When": "header X-A ~^(a+)+$"}, {"Rate": "1/d"}),
    ],
)
def test_a_costly_header_denies(guard, text):
    client = guard(text).connect()
    assert client.ask("/a.txt", "X-A: a").status == 200
    assert client.ask("/a.txt", "X-A: " + "a" * 200 + "b").status == 403


def test_a_line_ends_with_its_subject(guard):
    """A long target is cut, and cannot take the place of what follows it."""
    server = guard(rules({"Match": "/", "Action": "deny", "Name": "x" * 60}))
    server.connect().ask("/" + "a" * 3000 + ";peer:192.0.2.66")
    server.wait_log(r"GET /a+; 1 so far, peer: 127\.0\.0\.1, listener: 127\.0\.0\.1:\d+, host: \S+")
    assert "192.0.2.66" not in server.log


def test_log_lines_have_a_limit(guard, clock):
    server = guard(rules({"Match": "/", "Action": "deny"}))
    client = server.connect()
    for _ in range(500):
        assert client.ask("/a.txt").status == 403
    clock.advance(10.1)
    client.ask("/a.txt")
    server.wait_log("501 so far")
    shown = server.log.count("deny 403")
    assert shown < 100
    assert shown + sum(map(int, re.findall(r"(\d+) lines left out", server.log))) == 501


# ── files of networks ──


def test_a_file_that_changes(guard, tmp_path):
    path = tmp_path / "blocked.txt"
    path.write_text("# bad clients\n192.0.2.0/24   # a comment\n\n2001:db8::/32\n")
    server = guard(rules({"File": path, "Action": "deny"}), BEHIND_PROXY)
    client = server.connect()

    def status(address):
        return client.ask("/a.txt", f"X-Forwarded-For: {address}").status

    assert (status("192.0.2.9"), status("198.51.100.1"), status("2001:db8::1")) == (403, 200, 403)
    path.write_text("198.51.100.0/24\n")
    await_true(lambda: (status("192.0.2.9"), status("198.51.100.1")) == (200, 403), 30, "the new networks")
    path.write_text("192.0.2.0/24\n  10.0.0.300\n")
    server.wait_log(r"blocked\.txt:2:3: \"10\.0\.0\.300\" is not a network")
    assert (status("192.0.2.9"), status("198.51.100.1")) == (200, 403)


@pytest.mark.parametrize(
    "text, message",
    [
        ("10.0.0.0/8\n bad\n", r"nets:2:2: \"bad\" is not a network"),
        ("10.0.0.1/8\n", r"nets:1:1: \"10\.0\.0\.1/8\" names more than 8 bits; did you mean \"10\.0\.0\.0/8\"\?"),
        ("10.0.0.0/8 11.0.0.0/8\n", r"nets:1:12: a line has one network"),
        (None, r"nets cannot be read: No such file"),
    ],
)
def test_mistakes_in_a_file(tmp_path, host_conf, text, message):
    if text is not None:
        (tmp_path / "nets").write_text(text)
    result = run("-c", host_conf(rules({"File": tmp_path / "nets", "Action": "deny"}), FILES), "-t")
    assert result.returncode and re.search(message, result.stdout + result.stderr)


# ── the configuration ──


@pytest.mark.parametrize(
    "text, message",
    [
        ("[RULES]\n    IP 10.0.0.1\n", "write Network and Action"),
        ("[RULES]\n    URL /x\n", "write Match and Action deny"),
        ("[RULES]\n    deny_hotlink /x\n", "ForeignReferer On"),
        ("[RULES]\n    Action deny 200\n", "from 400 to 599"),
        ("[RULES]\n    Action deny 401\n", "401 needs a header"),
        ("[RULES]\n    Action delay 2h\n", "from 1ms to 30s"),
        ("[RULES]\n    Action forbid\n", "an action is allow"),
        ("[RULES]\n    Match /\n", "Action"),
        ("[RULES]\n    When method get\n    Action deny\n", "capitals"),
        ("[RULES]\n    When header User-Agent ~(\n    Action deny\n", "parenthesis|missing"),
        ("[RULES]\n    Method GET\n    Action deny\n", "write When method GET"),
        ("[CLIENT_LIMITS]\n    Header User-Agent bot\n    Rate 1/s\n", "write When header NAME"),
        ("[CLIENT_LIMITS]\n    Name a\"b\n    Rate 10/s\n", "a name is"),
        ("[RULES]\n    Name a b\n    Action deny\n", "a name is"),
        ("[CLIENT_LIMITS]\n    Rate 10\n", "such as 10/s"),
        ("[CLIENT_LIMITS]\n    Burst 10\n", "Burst needs a Rate"),
        ("[CLIENT_LIMITS]\n    SendRate 100B\n", "1K at least"),
        ("[CLIENT_LIMITS]\n    MaxConnections 10\n", r"\[CONNECTIONS\]"),
    ],
)
def test_mistakes(host_conf, text, message):
    result = run("-c", host_conf(text, FILES), "-t")
    assert result.returncode and re.search(message, result.stdout + result.stderr), result.stdout + result.stderr


DENY = {"Action": "deny"}
CAN_NEVER_MATCH = "this can never match"


@pytest.mark.parametrize(
    "first, later, warns",
    [
        ({"Match": "/a"}, {"Match": "/a/b"}, True),
        ({"Match": "/a"}, {"Match": "/ab"}, False),
        ({}, {"Match": "~x"}, True),
        ({"Match": "/a", "When": "method GET"}, {"Match": "/a"}, False),
        ({"Match": "/a", "When": "method GET POST"}, {"Match": "/a", "When": "method HEAD"}, True),
        ({"When": "header A ~b"}, {}, False),
        ({"When": "header A ~b"}, {"When": ["header C =d", "header a ~b"]}, True),
        ({"Network": "10.0.0.0/8"}, {"Network": "10.1.0.0/16"}, True),
        ({"Network": "10.1.0.0/16"}, {"Network": "10.0.0.0/8"}, False),
        ({"Network": "10.0.0.0/9 10.128.0.0/9"}, {"Network": "10.0.0.0/8"}, True),
        ({"Network": "10.0.0.0/8"}, {}, False),
        ({"Match": "/a", "DryRun": "On"}, {"Match": "/a"}, False),
        ({"ForeignReferer": "On"}, {}, False),
    ],
)
def test_rules_that_can_never_match(host_conf, first, later, warns):
    result = run("-c", host_conf(rules({**first, **DENY}, {**later, **DENY}), FILES), "-t")
    assert result.returncode == 0, result.stderr
    assert (CAN_NEVER_MATCH in result.stdout + result.stderr) == warns


def test_rules_that_together_take_all(host_conf):
    text = rules(
        {"Network": "10.0.0.0/9", **DENY},
        {"Network": "10.128.0.0/9 2001:db8::/32", **DENY},
        {"Network": "10.0.0.0/8 2001:db8:1::/48", "Match": "/x", **DENY},
    )
    result = run("-c", host_conf(text, FILES), "-t")
    assert result.returncode == 0 and "earlier sections together take all of it" in result.stdout + result.stderr


def test_a_host_may_override_rules_for_all(tmp_path, host_conf):
    conf = host_conf(rules({"Match": "/", **DENY}), FILES)
    with open(conf / "monkey.conf", "a") as file:
        file.write(rules({"Match": "/a", **DENY}))
    assert CAN_NEVER_MATCH not in run("-c", conf, "-t").stderr
    with open(conf / "monkey.conf", "a") as file:
        file.write(rules({"Match": "/a/b", **DENY}))
    default = (conf / "sites" / "default").read_text()
    for name in ("b", "c"):
        (conf / "sites" / name).write_text(default.replace("localhost", name + ".test"))
    result = run("-c", conf, "-t")
    assert (result.stdout + result.stderr).count(CAN_NEVER_MATCH) == 1


# ── connections ──


@pytest.mark.single_protocol  # asks how a connection ends
def test_connections_are_dropped_before_a_byte(guard):
    shared = rules({"Network": "127.0.0.1", "Action": "drop"}, name="CONNECTIONS")
    server = guard(shared=shared)
    client = server.connect()
    client.assert_closed()
    server.wait_log(
        r"access: .*monkey\.conf:\d+ \(#1\): drop 127\.0\.0\.1; 1 so far,"
        r" peer: 127\.0\.0\.1, listener: 127\.0\.0\.1:\d+"
    )


@pytest.mark.single_protocol  # asks how a connection ends
def test_connections_in_a_dry_run(guard):
    """Sections in a dry run only log: those behind them decide."""
    shared = rules(
        {"Network": "127.0.0.0/8", "Action": "allow", "DryRun": "On"},
        {"MaxConnections": 1, "DryRun": "On", "Name": "few"},
        {"MaxConnections": 2, "Name": "few"},
        {"Action": "drop"},
        name="CONNECTIONS",
    )
    server = guard(shared=shared)
    first, second = server.connect(), server.connect()
    assert first.ask("/a.txt").status == second.ask("/a.txt").status == 200
    server.connect().assert_closed()
    server.wait_log(r"\(few\): dry run, would drop \(MaxConnections\) 127\.0\.0\.1; 2 so far")
    server.wait_log(r"\(few\): drop \(MaxConnections\) 127\.0\.0\.1; 1 so far")
    first.close()

    def is_served():
        client = server.connect()
        if is_dropped(client, "/a.txt"):
            client.close()
            return False
        return True

    await_true(is_served, 30, "a free place")
    server.connect().assert_closed()


def test_requests_behind_a_proxy_in_a_dry_run(guard):
    shared = rules(
        {"MaxConnections": 100, "DryRun": "On"}, {"Network": "192.0.2.7", "Action": "drop"}, name="CONNECTIONS"
    )
    server = guard(shared=shared, settings=BEHIND_PROXY)
    assert server.connect().ask("/a.txt", "X-Forwarded-For: 192.0.2.1").status == 200
    assert is_dropped(server.connect(), "/a.txt", "X-Forwarded-For: 192.0.2.7")


def test_the_client_of_a_proxy_counts(guard):
    shared = rules({"Network": "127.0.0.0/8 192.0.2.7", "Action": "drop"}, name="CONNECTIONS")
    server = guard(shared=shared, settings=BEHIND_PROXY)
    client = server.connect()
    assert client.ask("/a.txt", "X-Forwarded-For: 192.0.2.1").status == 200
    assert client.ask("/a.txt").status == 200  # the proxy itself
    assert is_dropped(client, "/a.txt", "X-Forwarded-For: 192.0.2.7")


def test_a_proxy_header_names_the_client(guard):
    shared = rules({"Network": "127.0.0.0/8 192.0.2.7", "Action": "drop"}, name="CONNECTIONS")
    settings = {**BEHIND_PROXY, "Listen": "127.0.0.1:0 proxy"}
    server = guard(rules({"Network": "192.0.2.8", "Action": "deny 410"}), shared=shared, settings=settings)

    assert behind_header(server, "192.0.2.1", request("/a.txt")).response().status == 200
    assert behind_header(server, "192.0.2.8", request("/a.txt")).response().status == 410
    behind_header(server, "192.0.2.7", request("/a.txt")).assert_closed()


@pytest.mark.single_protocol  # asks how a connection ends
def test_connections_of_a_client(guard):
    shared = rules({"MaxConnections": 2}, name="CONNECTIONS")
    server = guard(shared=shared)
    first, second = server.connect(), server.connect()
    assert first.ask("/a.txt").status == second.ask("/a.txt").status == 200
    server.connect().assert_closed()
    reload(server)
    server.connect().assert_closed()
    first.close()

    def is_served():
        client = server.connect()
        dropped = is_dropped(client, "/a.txt")
        if dropped:
            client.close()
        return not dropped

    await_true(is_served, 30, "a free place")
    server.connect().assert_closed()


def test_requests_of_a_client_behind_a_proxy(guard):
    shared = rules({"MaxConnections": 1}, name="CONNECTIONS")
    server = guard(limits({"Match": "/big.bin", "SendRate": "2K"}), shared=shared, settings=BEHIND_PROXY)
    slow, other = server.connect(), server.connect()
    slow.send(request("/big.bin", "X-Forwarded-For: 192.0.2.1"))
    server.connect().ask("/a.txt", "X-Forwarded-For: 192.0.2.2")
    await_true(lambda: is_dropped(server.connect(), "/a.txt", "X-Forwarded-For: 192.0.2.1"), 30, "the limit")
    assert other.ask("/a.txt", "X-Forwarded-For: 192.0.2.2").status == 200
    slow.close()
    await_true(lambda: not is_dropped(server.connect(), "/a.txt", "X-Forwarded-For: 192.0.2.1"), 30, "the end")


def behind_header(server, address, data=b""):
    """A connection for a client that a PROXY header names."""
    client = server.connect()
    client.send(f"PROXY TCP4 {address} 127.0.0.1 1 2\r\n".encode() + data)
    return client


def test_connections_behind_a_proxy_header(guard):
    """They count, not their requests: one connection may send many of these."""
    settings = {**BEHIND_PROXY, "Listen": "127.0.0.1:0 proxy"}
    text = limits({"Match": "/big.bin", "SendRate": "20K"})
    server = guard(text, shared=rules({"MaxConnections": 2}, name="CONNECTIONS"), settings=settings)
    idle, busy = behind_header(server, "192.0.2.1"), behind_header(server, "192.0.2.1", request("/a.txt"))
    assert busy.response().status == 200
    assert [busy.ask("/a.txt").status for _ in range(5)] == [200] * 5
    assert idle.ask("/a.txt").status == 200
    behind_header(server, "192.0.2.1").assert_closed()
    assert behind_header(server, "192.0.2.2", request("/a.txt")).response().status == 200
    reload(server)
    behind_header(server, "192.0.2.1").assert_closed()
    assert busy.ask("/a.txt").status == 200  # it was let in
    idle.close()

    def is_served():
        client = behind_header(server, "192.0.2.1")
        dropped = is_dropped(client, "/a.txt")
        if dropped:
            client.close()
        return not dropped

    await_true(is_served, 30, "a free place")
    behind_header(server, "192.0.2.1").assert_closed()
    for _ in range(3):  # the proxy itself, for its health checks
        client = server.connect()
        client.send(b"PROXY UNKNOWN\r\n" + request("/a.txt"))
        assert client.response().status == 200


def send_in_part(client, n):
    """The PROXY header in version 1 or 2: whole, in pieces or in part, with a part of a request or with garbage."""
    v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes([192, 0, 2, 1, 127, 0, 0, 1, 0, 1, 0, 2])
    header = (b"PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n", v2)[n % 2]
    pieces = (
        (header[: n % len(header)],),
        (header[:7], header[7:]),
        (header + bytes(request("/big.bin")),),
        (header + b"GET /a.t",),
        (header + b"\x16\x03\x01",),
    )
    with contextlib.suppress(OSError):  # it may have been closed at the limit
        for piece in pieces[n % len(pieces)]:
            client.send(piece)


def test_places_after_aborted_connections(guard):
    """Whenever a client leaves, its place is free again, and there are not more of them."""
    settings = {**BEHIND_PROXY, "Listen": "127.0.0.1:0 proxy", "Workers": 2}
    server = guard(shared=rules({"MaxConnections": 3}, name="CONNECTIONS"), settings=settings)
    for n in range(1000):
        client = server.connect()
        send_in_part(client, n)
        (client.reset if n % 3 else client.close)()
        if n == 500:
            reload(server)

    def is_served():
        client = behind_header(server, "192.0.2.1")
        dropped = is_dropped(client, "/a.txt")
        if dropped:
            client.close()
        return not dropped

    for _ in range(3):
        await_true(is_served, 30, "a free place")
    for _ in range(3):
        behind_header(server, "192.0.2.1").assert_closed()


def test_streams_behind_a_proxy_header_are_one_connection(guard):
    settings = {**BEHIND_PROXY, "Listen": "127.0.0.1:0 proxy"}
    server = guard(shared=rules({"MaxConnections": 1}, name="CONNECTIONS"), settings=settings)
    client = server.connect_h2(first=b"PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n")
    streams = [client.begin("/big.bin") for _ in range(5)]
    assert all(client.response(stream).body == FILES["big.bin"] for stream in streams)
    behind_header(server, "192.0.2.1").assert_closed()


def test_a_proxy_behind_a_proxy_header(guard):
    """The header names a second proxy, which names its clients in a header: they are counted by their requests."""
    settings = {"TrustedProxies": "127.0.0.1 192.0.2.9", "Listen": "127.0.0.1:0 proxy"}
    text = limits({"Match": "/big.bin", "SendRate": "20K"})
    server = guard(text, shared=rules({"MaxConnections": 1}, name="CONNECTIONS"), settings=settings)
    asked = request("/a.txt", "X-Forwarded-For: 192.0.2.1")
    kept = [behind_header(server, "192.0.2.9", asked) for _ in range(3)]
    assert [client.response().status for client in kept] == [200] * 3
    kept[0].send(request("/big.bin", "X-Forwarded-For: 192.0.2.1"))

    def is_over():
        return is_dropped(behind_header(server, "192.0.2.9"), "/a.txt", "X-Forwarded-For: 192.0.2.1")

    await_true(is_over, 30, "the limit")
    assert kept[1].ask("/a.txt", "X-Forwarded-For: 192.0.2.2").status == 200


# ── rates ──


def test_rate(way):
    server = way(limits({"Match": "/a.txt", "Rate": "3/h", "Name": "slow"}), BEHIND_PROXY)
    client = server.open()

    def ask(address="192.0.2.1", target="/a.txt"):
        return client.ask(target, f"X-Forwarded-For: {address}")

    for left in (2, 1, 0):
        answer = ask()
        assert answer.status == 200 and answer["RateLimit-Policy"] == '"slow";q=3;w=3600'
        assert re.fullmatch(rf'"slow";r={left};t=\d+', answer["RateLimit"])
    answer = ask()
    assert answer.status == 429 and 1190 <= int(answer["Retry-After"]) <= 1200
    assert re.fullmatch(rf'"slow";r=0;t={answer["Retry-After"]}', answer["RateLimit"])
    assert ask("192.0.2.2").status == 200
    assert ask(target="/big.bin")["RateLimit"] is None
    for n in range(3):
        assert ask(f"2001:db8:1:2::{n}").status == 200
    assert ask("2001:db8:1:2:ffff::1").status == 429
    assert ask("2001:db8:1:3::1").status == 200


def test_a_rate_fills_up_again(guard):
    server = guard(limits({"Rate": "5/s", "Burst": 1}), {"MaxKeepAliveRequest": 1000000})
    client = server.connect()
    began, served = time.monotonic(), 0
    while served < 6:
        answer = client.ask("/a.txt")
        served += answer.status == 200
    assert 1.0 <= time.monotonic() - began < 30


def test_exempt_clients(guard):
    text = limits({"Network": "10.0.0.0/8"}, {"Rate": "1/d"})
    client = guard(text, BEHIND_PROXY).connect()
    for _ in range(5):
        assert client.ask("/a.txt", "X-Forwarded-For: 10.0.0.1").status == 200
    assert [client.ask("/a.txt", "X-Forwarded-For: 11.0.0.1").status for _ in range(2)] == [200, 429]


def test_a_reload_keeps_the_counts(guard):
    text = limits({"Rate": "4/d", "Name": "daily"}) + rules({"Match": "/secret", "Action": "deny", "Name": "secret"})
    server = guard(text)
    client = server.connect()
    for _ in range(3):
        assert client.ask("/a.txt").status == 200
        assert client.ask("/secret/").status == 403
    server.wait_log("3 so far")
    reload(server)
    client = server.connect()
    assert client.ask("/a.txt").status == 200
    assert client.ask("/a.txt").status == 429
    assert client.ask("/secret/").status == 403
    server.wait_log(r"\(secret\): deny 403 .*; 4 so far")
    site = server.conf / "sites" / "default"
    site.write_text(site.read_text().replace("4/d", "6/d"))
    reload(server, 2)
    client = server.connect()
    assert [client.ask("/a.txt").status for _ in range(3)] == [200, 200, 429]


def test_limits_in_a_dry_run(guard):
    server = guard(limits({"Rate": "1/d", "DryRun": "On", "MaxRequests": 1, "SendRate": "1K"}))
    client = server.connect()
    for _ in range(3):
        answer = client.ask("/a.txt")
        assert answer.status == 200 and answer["RateLimit"] is None and answer["Retry-After"] is None
    assert client.ask("/big.bin").body == FILES["big.bin"]
    server.wait_log("dry run, would deny 429 127.0.0.1: GET /a.txt")


def test_a_dry_run_leaves_the_limits_behind_it(guard):
    """A limit in a dry run is as if it were not there, also if it shares its name, and others count as before."""
    text = limits(
        {"Rate": "1/d", "DryRun": "On", "Name": "both", "MaxRequests": 1},
        {"Rate": "100/d", "DryRun": "On", "Name": "wide"},
        {"Match": "/", "Rate": "2/d", "Name": "both"},
    )
    server = guard(text)
    client = server.connect()
    answers = [client.ask("/a.txt") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[0]["RateLimit"].startswith('"both";r=1;')
    server.wait_log(r"\(both\): dry run, would deny 429 127\.0\.0\.1: GET /a\.txt.*; 2 so far")
    server.wait_log(r"\(both\): deny 429")
    assert server.log.count("(both): deny 429") == 1 and "(wide)" not in server.log


def test_a_dry_run_with_a_costly_pattern(guard):
    server = guard(limits({"Match": "~^/(a+)+$", "Rate": "1/d", "DryRun": "On"}, {"Rate": "1/d"}))
    client = server.connect()
    assert [client.ask("/" + "a" * 200 + "b").status for _ in range(2)] == [404, 429]
    server.wait_log("dry run, would deny 403, because a pattern takes too much time")


def test_limits_that_can_never_match(host_conf):
    first, later = {"Match": "/a", "Rate": "1/d"}, {"Match": "/a/b", "Rate": "1/d"}
    warnings = [run("-c", host_conf(limits(first, later), FILES), "-t")]
    warnings.append(run("-c", host_conf(limits({**first, "DryRun": "On"}, later), FILES), "-t"))
    assert [CAN_NEVER_MATCH in result.stdout + result.stderr for result in warnings] == [True, False]


def test_a_flood_of_addresses(guard, clock):
    text = limits({"Rate": "1/d", "MaxClients": 1000, "Name": "flood"})
    server = guard(text, BEHIND_PROXY)
    client = server.connect()
    before = None
    for round_ in range(20):
        batch = b"".join(
            request("/a.txt", f"X-Forwarded-For: 10.{round_}.{n // 250}.{n % 250}") for n in range(250)
        )
        client.send(batch)
        assert [client.response().status for _ in range(250)].count(200) == 250
        if round_ == 5:
            before = server.memory_kb()
    assert server.memory_kb() < before + (40_000 if build.SANITIZED else 2_000)
    clock.advance(1.1)
    client.ask("/a.txt", "X-Forwarded-For: 10.0.0.1")
    server.wait_log(r"\d+ clients were forgotten, because there are more than MaxClients 1000, host: localhost")


def test_requests_under_way(way):
    server = way(limits({"MaxRequests": 1, "SendRate": "2K", "Rate": "1000/h", "Name": "many"}))
    first, second = server.open(), server.open()
    begin(first, "/big.bin")
    await_true(lambda: second.ask("/a.txt").status == 429, 30, "429")
    answer = second.ask("/a.txt")
    assert answer["Retry-After"] == "1" and re.match(r'"many";r=\d+;t=', answer["RateLimit"])
    first.close()
    await_true(lambda: second.ask("/a.txt").status == 200, 30, "200")


# ── SendRate ──


@pytest.mark.parametrize("rate_for", ["connection", "client"])
def test_send_rate(way, rate_for):
    server = way(limits({"Match": "/big.bin", "SendRate": "200K", "SendRateFor": rate_for}))
    client = server.open()
    began = time.monotonic()
    answer = client.ask("/big.bin")
    took = time.monotonic() - began
    assert answer.status == 200 and answer.body == FILES["big.bin"] and 0.8 < took < 30, took
    began = time.monotonic()
    assert client.ask("/a.txt").body == b"a\n"
    assert time.monotonic() - began < 30  # of a loaded machine


def test_send_rate_of_a_client_over_connections(guard):
    server = guard(limits({"SendRate": "200K", "SendRateFor": "client"}), {"Workers": 2})
    clients = [server.connect() for _ in range(3)]
    began = time.monotonic()
    for client in clients:
        client.send(request("/big.bin"))
    assert all(client.response().body == FILES["big.bin"] for client in clients)
    assert 2.6 < time.monotonic() - began < 60


def test_send_rate_of_streams(guard):
    server = guard(limits({"SendRate": "200K"}))
    client = server.connect_h2()
    began = time.monotonic()
    streams = [client.begin("/big.bin") for _ in range(3)]
    assert all(client.response(stream).body == FILES["big.bin"] for stream in streams)
    assert 2.6 < time.monotonic() - began < 60


def test_send_rate_and_other_responses(way):
    """Heads without bodies, ranges and compressed bodies have the same headers with and without SendRate."""
    text = limits({"SendRate": "2M"}) + section("COMPRESS", {"MinSize": 1})
    client = way(text).open()
    head = client.ask("/big.bin", method="HEAD")
    assert head.status == 200 and head["Content-Length"] == "200000"
    part = client.ask("/big.bin", "Range: bytes=5-9")
    assert part.status == 206 and part.body == b"xxxxx" and part["Content-Length"] == "5"
    again = client.ask("/big.bin", f"If-None-Match: {head['ETag']}")
    assert again.status == 304 and not again.body
    packed = client.ask("/a.txt", "Accept-Encoding: gzip")
    assert packed.status == 200 and gzip.decompress(packed.body) == b"a\n"


@pytest.mark.parametrize("rate_for", ["connection", "client"])
def test_ranges_are_not_faster_than_all(way, rate_for):
    """Many small responses in a row keep to the rate, too."""
    client = way(limits({"SendRate": "100K", "SendRateFor": rate_for})).open()
    began = time.monotonic()
    for n in range(20):
        answer = client.ask("/big.bin", f"Range: bytes={n * 10_000}-{n * 10_000 + 9_999}")
        assert answer.status == 206 and len(answer.body) == 10_000
    assert 1.7 < time.monotonic() - began < 60


def test_a_client_leaves_a_slow_response(way):
    server = way(limits({"SendRate": "2K", "SendRateFor": "client"}))
    client = server.open()
    begin(client, "/big.bin")
    time.sleep(0.2)
    client.close()
    assert server.open().ask("/a.txt").status == 200


# ── reload at every state ──


def test_reload_while_requests_wait(way):
    text = rules({"Match": "/a.txt", "Action": "delay 1s"}) + limits({"SendRate": "100K", "MaxRequests": 5})
    server = way(text)
    waiting, slow = server.open(), server.open()
    waits, slows = begin(waiting, "/a.txt"), begin(slow, "/big.bin")
    server.wait_log("delay 1s")
    site = server.conf / "sites" / "default"
    site.write_text(site.read_text().replace("delay 1s", "deny").replace("SendRate 100K", "MaxClients 20"))
    reload(server)
    assert server.open().ask("/a.txt").status == 403
    assert finish(waiting, waits).body == b"a\n"
    assert finish(slow, slows).body == FILES["big.bin"]


def test_a_reload_without_the_plugin(way):
    """The sections and the plugin go while requests wait and connections are counted; then they come back."""
    text = rules({"Match": "/a.txt", "Action": "delay 1s"}) + limits({"SendRate": "100K", "MaxRequests": 5})
    server = way(text, shared=rules({"MaxConnections": 20}, name="CONNECTIONS"))
    site, main = server.conf / "sites" / "default", server.conf / "monkey.conf"
    before = site.read_text(), main.read_text()
    waiting, slow = server.open(), server.open()
    waits, slows = begin(waiting, "/a.txt"), begin(slow, "/big.bin")
    server.wait_log("delay 1s")
    site.write_text(before[0].replace(text, ""))
    main.write_text(before[1].split("[CONNECTIONS]")[0])
    reload(server)
    assert server.open().ask("/a.txt").body == b"a\n"
    assert finish(waiting, waits).body == b"a\n"
    assert finish(slow, slows).body == FILES["big.bin"]
    waiting.close()
    site.write_text(before[0])
    main.write_text(before[1])
    reload(server, 2)
    assert server.open().ask("/big.bin").body == FILES["big.bin"]


def test_a_stop_while_requests_wait(way):
    text = rules({"Match": "/a.txt", "Action": "delay 30s"}) + limits({"SendRate": "1K", "SendRateFor": "client"})
    server = way(text, {"ShutdownTimeout": "500ms"}, shared=rules({"MaxConnections": 20}, name="CONNECTIONS"))
    waiting, slow = server.open(), server.open()
    begin(waiting, "/a.txt")
    begin(slow, "/big.bin")
    server.wait_log("delay 30s")
    server.stop()


def test_thousands_of_rules(guard):
    text = "".join(rules({"Match": f"=/p{n}", "Action": "deny"}) for n in range(3000))
    server = guard(text)
    assert server.cpu_seconds() < (20 if build.SANITIZED else 5)
    client = server.connect()
    assert client.ask("/p2999").status == 403 and client.ask("/a.txt").status == 200


def test_sections_of_one_name_share_their_clients(guard):
    pair = [{"Match": path, "Rate": "2/d", "Name": "both"} for path in ("/a.txt", "/images")]
    client = guard(limits(*pair)).connect()
    assert [client.ask(target).status for target in ("/a.txt", "/images/a.png", "/a.txt")] == [200, 200, 429]


def test_a_section_without_a_rate_keeps_what_was_used(guard):
    """A client may not get its requests back by asking a section of the same name that has no rate."""
    first = {"Match": "/a.txt", "Rate": "1/d", "Name": "both"}
    client = guard(limits(first, {"Match": "/images", "MaxRequests": 5, "Name": "both"})).connect()
    targets = ("/a.txt", "/images/a.png", "/a.txt", "/images/a.png", "/a.txt")
    assert [client.ask(target).status for target in targets] == [200, 200, 429, 200, 429]


def test_a_request_of_the_old_generation_keeps_what_was_used(guard, clock):
    """After a reload with a slower rate: a request that ends under the old rate does not make the client a new one."""
    text = limits({"Rate": "2/s", "MaxRequests": 5, "SendRate": "100K", "Name": "one"})
    server = guard(text)
    slow = server.connect()
    slow.send(request("/big.bin"))
    server.connect().ask("/a.txt")  # the first request was counted
    site = server.conf / "sites" / "default"
    site.write_text(site.read_text().replace("Rate 2/s", "Rate 3/d"))
    reload(server)
    client = server.connect()
    answers = [client.ask("/a.txt").status for _ in range(4)]  # the old rate may have given both back before
    assert answers[-1] == 429
    assert slow.response().body == FILES["big.bin"]
    clock.advance(2.1)  # the old rate would have filled the bucket
    assert client.ask("/a.txt").status == 429


SAME_NAME = "the same name, and so counts the same clients, but its rate is another"


@pytest.mark.parametrize(
    "first, keys, wrong",
    [
        ({"Rate": "2/d"}, {"Rate": "2/d", "Burst": 5}, False),
        ({"Rate": "2/d"}, {"Rate": "3/d"}, True),
        ({"Rate": "60/m"}, {"Rate": "1/s"}, False),
        ({"Rate": "2/d"}, {"MaxRequests": 1}, False),
        ({"Rate": "2/d"}, {"Rate": "3/d", "DryRun": "On"}, False),
        ({"Rate": "2/d"}, {"Rate": "3/d", "MaxClients": 100}, False),
        ({"SendRate": "10K"}, {"SendRate": "20K"}, True),
    ],
)
def test_sections_of_one_name_with_other_rates(host_conf, first, keys, wrong):
    text = limits({"Match": "/a", "Name": "both", **first}, {"Match": "/b", "Name": "both", **keys})
    result = run("-c", host_conf(text, FILES), "-t")
    assert result.returncode == wrong and (SAME_NAME in result.stderr) == wrong
    if wrong:
        lines = re.findall(r"sites/default:(\d+)", result.stderr)
        assert len(set(lines)) == 2, result.stderr  # of both sections


def test_rates_of_one_name_in_several_hosts(tmp_path, host_conf):
    """Hosts count apart from each other and from monkey.conf: only pairs of one file are wrong, reported once."""
    folder = host_conf(limits({"Rate": "2/d", "Name": "own"}), FILES)
    other = (folder / "sites" / "default").read_text().replace("localhost", "other.example").replace("2/d", "3/d")
    (folder / "sites" / "other").write_text(other)
    main = folder / "monkey.conf"
    main.write_text(main.read_text() + limits({"Match": "/b", "Rate": "4/d", "Name": "own"}))
    assert SAME_NAME not in run("-c", folder, "-t").stderr
    main.write_text(main.read_text() + limits({"Match": "/c", "Rate": "5/d", "Name": "own"}))
    result = run("-c", folder, "-t")
    assert result.returncode == 1 and result.stderr.count(SAME_NAME) == 1


# ── monkey.conf ──


@pytest.mark.single_protocol  # HTTP/2 connections end after a reload
def test_limits_for_all_hosts_have_one_table(guard, tmp_path):
    """A client cannot use the rate once for each host; own sections of a host count apart."""
    root = tmp_path / "server0" / "root"
    own = limits({"Match": "/images", "Rate": "2/d", "Name": "own"})
    other = section("HOST", {"ServerName": "other.example", "DocumentRoot": root}) + own
    shared = limits({"Match": "/a.txt", "Rate": "3/d", "Name": "own"}, {"MaxRequests": 100})
    server = guard(own, shared=shared, config={"sites/other": other})
    client = server.connect()

    def ask(target, host):
        client.send(request(target, host=host))
        return client.response().status

    hosts = ["localhost", "other.example"] * 2
    assert [ask("/a.txt", host) for host in hosts] == [200, 200, 200, 429]
    assert [ask("/images/a.png", "localhost") for _ in range(3)] == [200, 200, 429]
    assert [ask("/images/a.png", "other.example") for _ in range(3)] == [200, 200, 429]
    reload(server)
    assert [ask("/a.txt", host) for host in hosts] == [429] * 4


def test_a_rule_for_all_hosts_counts_once(guard, tmp_path):
    root = tmp_path / "server0" / "root"
    other = section("HOST", {"ServerName": "other.example", "DocumentRoot": root})
    server = guard(shared=rules({"Match": "/secret", "Action": "deny"}), config={"sites/other": other})
    client = server.connect()
    for host in ("localhost", "other.example"):
        client.send(request("/secret/key.txt", host=host))
        assert client.response().status == 403
    server.wait_log(r"deny 403 127\.0\.0\.1: GET /secret/key\.txt; 2 so far.*, host: other\.example")


@pytest.mark.single_protocol  # HTTP/2 connections end after a reload
def test_a_connection_keeps_its_rate_over_a_reload(guard):
    """What it has used of SendRate is not given back by a new configuration."""
    server = guard(limits({"SendRate": "100K", "Name": "slow"}))
    client = server.connect()
    began = time.monotonic()
    for n in range(10):
        answer = client.ask("/big.bin", f"Range: bytes={n * 20_000}-{n * 20_000 + 19_999}")
        assert answer.status == 206
        if n in (3, 6):
            reload(server, 1 + (n == 6))
    assert 1.7 < time.monotonic() - began < 60
