# SPDX-License-Identifier: Apache-2.0
"""Groups whose servers are the addresses of names: changes, SRV records, name servers without an answer, reloads."""

import contextlib
import re
import subprocess
import threading

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.failing_memory import ERRORS, FAILURES, FailingMemory, only_sanitized
from harness.few_descriptors import few_descriptors
from harness.groups import GROUPS, PREFIX, ask_many, hold
from harness.messages import request
from harness.metrics import needs_status, scrape, status_section
from harness.names import NameServer, needs_localhost
from harness.proxies import TEXT
from harness.server import await_true, run, section, write_config
from harness.services import reload

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "upstream.so").exists(), reason="this preset has no plugins"),
]

NAME, SERVICE = "app.test", "_http._tcp.app.test"
FAST = "100ms"  # of Resolve: less than the second that a TTL counts at least


@pytest.fixture
def backends():
    """Starts backends that answer with their number, one on each of 127.0.0.1, .2 ... with the same port."""
    made = []

    def start(count, script=None):
        for _ in range(count):
            number = len(made)
            port = made[0].listener.getsockname()[1] if made else 0
            made.append(Backend(script or answer(b"%d" % number, TEXT), host=f"127.0.0.{number + 1}", port=port))
            made[-1].host, made[-1].port = made[-1].listener.getsockname()
        return made

    yield start
    for each in made:
        each.__exit__(None, None, None)


@pytest.fixture
def serve_names(names, serve):  # the server ends first: without a name server its lookups would not end soon
    """A server that passes all requests to a group with one name."""

    def start(line, keys=None, settings=None, **rest):
        keys = {"Name": "app", "Server": line, "NameServer": names.address, "Resolve": FAST, **(keys or {})}
        text = section("PROXY", {"To": "http://app", "ConnectTimeout": "20s"})
        config = {GROUPS: section("UPSTREAM", keys), **rest.pop("config", {})}
        server = serve({"Workers": 1, **(settings or {})}, text=text, config=config, **rest)
        server.groups = server.conf / GROUPS
        return server

    return start


def await_servers(server, *numbers):
    """Waits until requests go to these servers only, and to each."""
    await_true(lambda: set(ask_many(server, 40)) == set(numbers), what=f"the servers {numbers}")


# ── addresses ──


def test_each_address_is_a_server(serve_names, names, backends):
    all_of_them = backends(3)
    names.set(NAME, *[each.host for each in all_of_them])
    server = serve_names(f"{NAME}:{all_of_them[0].port}", {"Balance": "RoundRobin"})
    assert ask_many(server, 30) == {0: 10, 1: 10, 2: 10}
    server.wait_log(rf"info  upstream app: {NAME} has 3 addresses: 127.0.0.1:\d+, 127.0.0.2:\d+, 127.0.0.3:\d+")


def test_addresses_change(serve_names, names, backends):
    """An address that stays keeps its connection; one that goes ends its request first."""
    one, two, three = backends(3)
    names.set(NAME, one.host, two.host)
    server = serve_names(f"{NAME}:{one.port}")
    await_servers(server, 0, 1)
    names.set(NAME, two.host, three.host)
    await_servers(server, 1, 2)
    names.set(NAME, two.host)
    await_servers(server, 1)
    assert len(two.peers) == 1


def test_an_address_goes_with_a_request(serve_names, names, backends):
    one, two = backends(2)
    one.scripts[:] = [hold, answer(b"0", TEXT)]
    names.set(NAME, one.host)
    server = serve_names(f"{NAME}:{one.port}")
    with server.connect() as client:
        client.send(request("/"))
        one.wait_requests(1)
        names.set(NAME, two.host)
        await_servers(server, 1)
        names.set(NAME, one.host, two.host)  # the same server comes back, and has a request
        names.await_question(NAME, 4)
        names.set(NAME, two.host)
        names.await_question(NAME, 4)
        one.tell("go")
        assert client.response().body == b"0"
    await_servers(server, 1)


def test_a_new_address_serves_those_that_wait(serve_names, names, backends):
    """Of the queue of MaxConnections, and of Hold."""
    one, two = backends(2)
    one.scripts[:] = [hold]
    names.set(NAME, one.host)
    server = serve_names(f"{NAME}:{one.port}", {"MaxConnections": 1, "Queue": 5, "QueueTimeout": "1m"})
    with server.connect() as first, server.connect() as second:
        first.send(request("/"))
        one.wait_requests(1)
        second.send(request("/"))
        names.await_question(NAME, 4)
        names.set(NAME, one.host, two.host)
        assert second.response().body == b"1"
        one.tell("go")
        assert first.response().body == b"0"


def test_hold_until_there_is_an_address(serve_names, names, backends):
    (one,) = backends(1)
    server = serve_names(f"srv:{SERVICE}", {"Hold": "1m"})
    with server.connect() as client:
        client.send(request("/"))
        names.set("s0.test", one.host)
        names.set_srv(SERVICE, (0, 1, one.port, "s0.test"))
        assert client.response().body == b"0"


def test_a_cookie_names_an_address(serve_names, names, backends):
    """As long as the name has it."""
    one, two, three = backends(3)
    names.set(NAME, one.host, two.host)
    server = serve_names(f"{NAME}:{one.port}", {"Balance": "Sticky"})
    with server.connect() as client:
        first = client.ask("/")
        cookie = "Cookie: " + first["Set-Cookie"].split(";")[0]
        own = (one, two)[int(first.body)]
        names.set(NAME, own.host, three.host)
        await_servers(server, int(first.body), 2)
        answers = [client.ask("/", cookie) for _ in range(20)]
        assert {each.body for each in answers} == {first.body} and not any(each["Set-Cookie"] for each in answers)
        names.set(NAME, three.host)
        await_servers(server, 2)
        last = client.ask("/", cookie)
        assert last.body == b"2" and last["Set-Cookie"]


def serve_everywhere(serve):
    """An origin on each address of 127.0.0.0/8."""
    return serve({"Listen": "0.0.0.0:0", "MaxKeepAliveRequest": 0, "Workers": 1}, files={"b": b"hello"})


@pytest.mark.concurrent
@pytest.mark.parametrize("change_ms, seconds", [
    *(pytest.param(change_ms, 6, marks=pytest.mark.load) for change_ms in (200, 2000)),
    pytest.param(2000, 60, marks=pytest.mark.slow),
])
def test_addresses_change_under_load(names, serve, serve_names, change_ms, seconds):
    """No request fails."""
    port = serve_everywhere(serve).port
    hosts = [f"127.0.0.{number}" for number in range(1, 11)]
    names.set(NAME, *hosts[:3])
    server = serve_names(f"{NAME}:{port}", settings={"MaxKeepAliveRequest": 0, "Workers": 2})
    stop = threading.Event()

    def change():
        round_ = 0
        while not stop.wait(change_ms / 1000):
            round_ += 1
            names.set(NAME, *[hosts[(round_ * 2 + i) % len(hosts)] for i in range(1 + round_ % 4)])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        command = ["h2load", "--h1", "--duration", str(seconds), "-c", "16", "-t", "1", f"{server.url}/b"]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120, check=True).stdout
    finally:
        stop.set()
        thread.join()
    statuses = re.search(r"status codes: (\d+) 2xx, 0 3xx, (\d+) 4xx, (\d+) 5xx", output)
    assert int(statuses[1]) > 0 and statuses[2] == statuses[3] == "0", output
    assert re.search(r" 0 failed, 0 errored, 0 timeout", output), output
    assert names.count(NAME) > 4


def test_no_descriptor_for_a_lookup(serve_names, names, backends):
    """The addresses that are known stay in use, and the lookups continue afterwards."""
    one, two = backends(2)
    names.set(NAME, one.host)
    server = serve_names(f"{NAME}:{one.port}")
    with server.connect() as client:
        assert client.ask("/").body == b"0"
        with few_descriptors(server, 0):
            server.wait_log("no name server can answer; its addresses stay")
            assert client.ask("/").body == b"0"
        names.set(NAME, two.host)
        await_true(lambda: client.ask("/").body == b"1", what="the new address")


def test_many_addresses(names, serve, serve_names):
    """The answer comes over TCP; 256 addresses are used."""
    port = serve_everywhere(serve).port
    hosts = [f"127.0.{number // 200}.{1 + number % 200}" for number in range(300)]
    names.set(NAME, *hosts[:200])
    server = serve_names(f"{NAME}:{port}", {"Balance": "RoundRobin", "EjectAfter": 1})
    server.wait_log(rf"{NAME} has 200 addresses: .* and 192 more")
    with server.connect() as client:
        for _ in range(250):
            assert client.ask("/b").body == b"hello"
        names.set(NAME, *hosts)
        names.await_question(NAME, 4)
        for _ in range(300):
            assert client.ask("/b").body == b"hello"
    assert "gets no requests" not in server.log


def test_more_addresses_than_are_used(names, serve, serve_names):
    """The log says so, and names those that are."""
    port = serve_everywhere(serve).port
    names.set(NAME, *[f"127.0.{number // 200}.{1 + number % 200}" for number in range(257)])
    server = serve_names(f"{NAME}:{port}")
    server.wait_log(rf"info  upstream app: {NAME} has 256 addresses: .* and 248 more")
    server.wait_log(rf"warn  upstream app: {NAME} has more than 256 addresses; the others are not used")
    with server.connect() as client:
        assert client.ask("/b").body == b"hello"


@pytest.mark.parametrize("family, wanted", [("IPv4", {0}), ("IPv6", {1}), ("Any", {0, 1})])
def test_families(serve_names, names, backends, family, wanted):
    (one,) = backends(1)
    names.set(NAME, one.host, "::1")
    with Backend(answer(b"1", TEXT), host="::1", port=one.port):
        server = serve_names(f"{NAME}:{one.port}", {"Family": family})
        await_servers(server, *wanted)
    asked = {kind for name, kind in names.questions if name == NAME}
    assert asked == {"IPv4": {"A"}, "IPv6": {"AAAA"}, "Any": {"A", "AAAA"}}[family]


def test_a_truncated_answer(serve_names, names, backends):
    (one,) = backends(1)
    names.set(NAME, one.host)
    names.mode = "truncated"
    assert ask_many(serve_names(f"{NAME}:{one.port}"), 40) == {0: 40}


@needs_localhost
def test_names_of_the_file_of_hosts(serve_names, names, backends):
    """No name server is asked; without Resolve neither."""
    (one,) = backends(1)
    for resolve in (FAST, 0):
        server = serve_names(f"localhost:{one.port}", {"Family": "IPv4", "Resolve": resolve})
        assert ask_many(server, 40) == {0: 40}
    assert not names.questions


# ── SRV ──


def test_services(serve_names, names, backends):
    """The records have ports and weights; a larger priority is for the time when no other server can be used."""
    one, two, three = backends(3)
    for number, each in enumerate((one, two, three)):
        names.set(f"s{number}.test", each.host)
    records = [(0, 10, one.port, "s0.test"), (0, 30, two.port, "s1.test"), (1, 1, three.port, "s2.test")]
    names.set_srv(SERVICE, *records)
    server = serve_names(f"srv:{SERVICE}", {"Balance": "RoundRobin", "EjectAfter": 1, "EjectMost": 100})
    assert ask_many(server, 40) == {0: 10, 1: 30}
    for each in (one, two):
        each.refuse()
        for peer in each.peers:
            peer.reset()
    await_servers(server, 2)
    names.set_srv(SERVICE, *records[2:])
    await_true(lambda: f"{SERVICE} has 1 address: " in server.log or names.count(SERVICE) > 5, what="the change")
    assert ask_many(server, 40) == {2: 40}


def test_a_weight_of_zero(serve_names, names, backends):
    """RFC 2782: a small share."""
    one, two = backends(2)
    names.set("s0.test", one.host)
    names.set("s1.test", two.host)
    names.set_srv(SERVICE, (0, 0, one.port, "s0.test"), (0, 1000, two.port, "s1.test"))
    server = serve_names(f"srv:{SERVICE}", {"Balance": "RoundRobin"})
    assert ask_many(server, 257) == {0: 1, 1: 256}


def test_a_record_with_the_port_zero(serve_names, names, backends):
    """It names no server, and keeps no other one from being used."""
    one, two = backends(2)
    names.set("s0.test", one.host)
    names.set("s1.test", two.host)
    names.set_srv(SERVICE, (0, 1, 0, "s0.test"), (0, 1, two.port, "s1.test"))
    server = serve_names(f"srv:{SERVICE}")
    assert ask_many(server, 5) == {1: 5}
    reload(server)
    assert ask_many(server, 5) == {1: 5}


def test_a_service_that_is_not_known(serve_names, names, backends):
    (one,) = backends(1)
    server = serve_names(f"srv:{SERVICE}")
    server.wait_log(rf"{SERVICE} has no address now \(there is no such name\); it has no servers until")
    with server.connect() as client:
        assert client.ask("/").status == 503
        names.set("s0.test", one.host)
        names.set_srv(SERVICE, (0, 1, one.port, "s0.test"))
        await_true(lambda: client.ask("/").status == 200, what="the service")
    server.wait_log(rf"info  upstream app: {SERVICE} has 1 address: 127.0.0.1:\d+")


# ── name servers without an answer ──


@pytest.mark.parametrize("mode", ["silent", "servfail", "garbage"])
def test_name_servers_are_away(serve_names, names, backends, mode):
    """The addresses stay, over reloads, too; the log says so once."""
    one, two = backends(2)
    names.set(NAME, one.host)
    server = serve_names(f"{NAME}:{one.port}")
    assert ask_many(server, 40) == {0: 40}
    names.mode = mode
    server.wait_log(rf"warn  upstream app: {NAME}: [a-z ]+; its addresses stay")
    for _ in range(3):
        server.groups.write_text(server.groups.read_text() + "\n")
        reload(server)
        assert ask_many(server, 40) == {0: 40}
    names.set(NAME, two.host)
    names.mode = ""
    await_servers(server, 1)
    server.wait_log(rf"info  upstream app: {NAME}: name servers answer again")
    assert server.log.count("its addresses stay") == 1


def test_the_second_name_server_is_asked(serve_names, names, backends):
    (one,) = backends(1)
    names.set(NAME, one.host)
    with NameServer() as sick:
        sick.mode = "servfail"
        server = serve_names(f"{NAME}:{one.port}", {"NameServer": [sick.address, names.address]})
        assert ask_many(server, 40) == {0: 40}


def test_a_name_is_removed(serve_names, names, backends):
    """Its addresses stay: that is what an operator's mistake looks like."""
    (one,) = backends(1)
    names.set(NAME, one.host)
    server = serve_names(f"{NAME}:{one.port}")
    assert ask_many(server, 40) == {0: 40}
    names.remove(NAME)
    server.wait_log(rf"warn  upstream app: {NAME}: there is no such name; its addresses stay")
    assert ask_many(server, 40) == {0: 40}


def test_a_name_that_is_not_known(serve_names, names, backends):
    """The configuration is used, with a warning, and each connection looks the name up, which fails."""
    (one,) = backends(1)
    server = serve_names(f"{NAME}:{one.port}", {"EjectAfter": 0})
    server.wait_log(rf"{NAME} has no address now \(there is no such name\); it is looked up for each connect")
    with server.connect() as client:
        assert client.ask("/").status == 502
        names.set(NAME, one.host)
        await_true(lambda: client.ask("/").status == 200, what="the name")


# ── reloads ──


def test_reloads_amid_lookups(serve_names, names, backends):
    """Names come and go while their lookups are on their way."""
    (one,) = backends(1)
    for each in (NAME, "b.test", "c.test"):
        names.set(each, one.host)
    server = serve_names(f"{NAME}:{one.port}", settings={"Workers": 2})
    text = server.groups.read_text()
    for number in range(12):
        names.mode = "silent" if number % 3 == 1 else ""
        extra = f"    Server {'bc'[number % 2]}.test:{one.port} backup\n" if number % 4 else ""
        server.groups.write_text(text + extra)
        reload(server)
        assert ask_many(server, 4) == {0: 4}
    names.mode = ""
    names.await_question(NAME, 2)


@needs_status
def test_counters_are_those_of_the_line(serve_names, names, backends):
    one, two = backends(2)
    names.set(NAME, one.host, two.host)
    config = {"plugins/status/status.conf": status_section()}
    server = serve_names(f"{NAME}:{one.port}", {"Balance": "RoundRobin"}, config=config)
    assert ask_many(server, 10) == {0: 5, 1: 5}
    names.set(NAME, two.host)
    await_servers(server, 1)
    with server.connect() as client:
        rows = [row for row in scrape(client).items() if row[0][0] == PREFIX + "requests_total"]
    (((_, labels), count),) = rows
    assert dict(labels)["server"] == f"{NAME}:{one.port}" and count >= 50


@only_sanitized
def test_each_allocation_of_a_change_fails_once(serve_names, names, backends):
    """What fails is done after the next lookup."""
    one, two = backends(2)
    names.set(NAME, one.host)
    server = serve_names(f"{NAME}:{one.port}")
    memory = FailingMemory(server)
    try:
        for n in range(24):
            memory.fail(n)
            names.set(NAME, (one, two)[n % 2].host)
            names.await_question(NAME, 4)
            with server.connect() as client:
                with contextlib.suppress(*ERRORS):
                    assert client.ask("/").status in {200, *FAILURES}
            memory.end()
            await_servers(server, n % 2)
    finally:
        memory.close()


# ── mistakes ──

MISTAKES = {
    "    Server srv:_http._tcp.app\n    Resolve 0": "SRV records need Resolve",
    "    Server srv:_http._tcp.app weight=2": "the SRV records have the weights",
    "    Server srv:_http._tcp.app:80": "behind srv: stands a name without a port",
    "    Server srv:": "behind srv: stands a name without a port",
    "    Server srv:127.0.0.1": "behind srv: stands a name without a port",
    "    Server app.test\n    NameServer ns.test": "a name server is an address with or without a port",
    "    Server app.test\n    NameServer 127.0.0.1:x": "a name server is an address with or without a port",
    "    Server app.test\n" + "    NameServer 127.0.0.1\n" * 9: "a group has at most 8 name servers",
    "    Server app.test\n    Resolve soon": "Resolve",
    "    Server app.test\n    Family IPv5": "IPv4",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(tmp_path, site_root, text):
    write_config(tmp_path / "conf", site_root, files={GROUPS: f"[UPSTREAM]\n    Name app\n{text}\n"})
    got = run("-c", tmp_path / "conf", "--test")
    assert got.returncode == 1, got.stdout
    assert MISTAKES[text] in got.stderr and "upstream.conf:" in got.stderr, got.stderr


def test_the_check_names_what_has_no_address(tmp_path, site_root, names):
    lines = f"    Server 127.0.0.1:1\n    Server {NAME}\n    NameServer {names.address}\n"
    write_config(tmp_path / "conf", site_root, files={GROUPS: f"[UPSTREAM]\n    Name app\n{lines}"})
    got = run("-c", tmp_path / "conf", "--test")
    assert got.returncode == 0, got.stderr
    assert "upstream.conf:4" in got.stderr and f"{NAME} has no address now (there is no such name)" in got.stderr
