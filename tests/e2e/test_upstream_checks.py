# SPDX-License-Identifier: Apache-2.0
"""Checks of the servers of groups: what fails them, what becomes of requests, and reloads."""

import collections
import re
import threading

import pytest

from harness import build
from harness.backend import Backend
from harness.certificates import Authority
from harness.failing_memory import FailingMemory, only_sanitized
from harness.few_descriptors import no_descriptor_left
from harness.groups import GROUPS, PREFIX, group
from harness.messages import request
from harness.metrics import needs_status, scrape, status_section
from harness.names import NameServer
from harness.proxies import TEXT
from harness.server import await_true, run, section, write_config
from harness.services import reload
from test_config import problems

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "upstream.so").exists(), reason="this preset has no plugins"),
]

needs_tls = pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} lacks tls")

FAST = {"Check": "/health", "CheckInterval": "100ms", "CheckTimeout": "60s", "Balance": "First"}
LONG = {"Check": "/health", "CheckInterval": "1h", "CheckTimeout": "5m", "Balance": "First"}


class App(Backend):
    """Answers /health as `health` does, which tests replace, and other requests with its number."""

    def __init__(self, number, health=None, **rest):
        self.number, self.health = number, health or say(200)
        super().__init__(self.serve_requests, **rest)

    def serve_requests(self, peer):
        while True:
            if peer.request().target.startswith("/health"):
                self.health(peer)
                return
            peer.respond(b"%d" % self.number, TEXT)

    def checks(self):
        return [each for each in list(self.requests) if each.target.startswith("/health")]

    def others(self):
        return [each for each in list(self.requests) if not each.target.startswith("/health")]

    def wait_checks(self, count):
        self.wait_until(lambda: len(self.checks()) >= count, f"{count} checks")

    def wait_more_checks(self, count):
        self.wait_checks(len(self.checks()) + count)


def say(status, body=b"all is well", **rest):
    return lambda peer: peer.respond(body, TEXT, status=status, **rest)


def hold(peer):
    """Until the server under test ends the connection, or the test lets it answer."""
    peer.wait_end()


@pytest.fixture
def apps():
    """Starts backends."""
    made = []

    def start(*healths, **rest):
        new = [App(number, health, **rest) for number, health in enumerate(healths)]
        made.extend(new)
        return new

    yield start
    for each in made:
        each.__exit__(None, None, None)


def write_group(server, servers, keys, accepted=True):
    server.groups.write_text(group(servers, **keys))
    return reload(server, accepted)


def ask_statuses(server, count=20):
    """How often each status and body came."""
    with server.connect() as client:
        answers = [client.ask("/") for _ in range(count)]
    return collections.Counter((each.status, each.body) for each in answers)


def count_metrics(server, app):
    with server.connect() as client:
        found = scrape(client)
    return {
        name.removeprefix(PREFIX): value
        for (name, labels), value in found.items()
        if name.startswith(PREFIX) and ("server", app.address) in labels
    }


# ── what fails a check ──

HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nall"
FAILURES = {
    "status": (say(503), "GET /health: 503"),
    "redirect": (say(404), "GET /health: 404"),
    "text": (say(200, b"all is lost"), "GET /health: the text was not found"),
    "text behind 64 KB": (say(200, b"x" * 65536 + b"well"), "GET /health: the text was not found"),
    "no body": (say(204, b""), "GET /health: the text was not found"),
    "nothing": (hold, "no response in 5s"),
    "half": (lambda peer: (peer.send(HALF), hold(peer)), "no whole response in 5s"),
    "garbage": (lambda peer: peer.send(b"SSH-2.0-OpenSSH\r\n"), "the response is malformed"),
    "closes": (lambda peer: None, "the connection was closed before the response was complete"),
    "resets": (lambda peer: peer.reset(), "the connection was reset before the response was complete"),
    "cut": (lambda peer: peer.send(HALF), "the connection was closed before the response was complete"),
    "upgrade": (lambda peer: peer.send(b"HTTP/1.1 101 X\r\n\r\n"), "the response switches to another protocol"),
    "endless head": (lambda peer: peer.send(b"HTTP/1.1 200 OK\r\nA: " + b"a" * 40000), "the head of the response"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_check_that_fails(serve_group, apps, name):
    """The first check decides at once; two that succeed bring the server back."""
    sick, well = apps(FAILURES[name][0], say(200))
    seconds = "5s" if name in ("nothing", "half") else "60s"
    server = serve_group([sick, well], {**FAST, "CheckText": "well", "CheckTimeout": seconds})
    line = f"warn  upstream app: {sick.address} is down, and gets no requests: "
    server.wait_log(re.escape(line + FAILURES[name][1]))
    assert ask_statuses(server) == {(200, b"1"): 20}
    sick.health = say(200)
    server.wait_log(re.escape(f"info  upstream app: {sick.address} is up, and gets requests again"))
    assert ask_statuses(server) == {(200, b"0"): 20}
    assert server.log.count("is down") == server.log.count("is up") == 1


class Broken(App):
    """Closes the connection of requests while it is_broken."""

    is_broken = False

    def serve_requests(self, peer):
        if not peer.request().target.startswith("/health"):
            return None if self.is_broken else peer.respond(b"%d" % self.number, TEXT, "Connection: close")
        return self.health(peer)


@pytest.mark.parametrize("is_down", [False, True])
def test_a_check_ends_an_ejection(serve_group, is_down):
    """A server that is restarted while requests fail gets requests with the first check that succeeds, not with the end
    of EjectTime; the log says so in the line of the check."""
    with Broken(0) as one, Broken(1) as two:
        keys = {**FAST, "EjectAfter": 1, "EjectTime": "5m", "Retry": "Idempotent", "CheckDown": 1, "CheckUp": 1}
        server = serve_group([one, two], keys)
        one.wait_more_checks(1)
        # the check that is held ends behind the failures
        one.health = lambda peer: (peer.wait("go"), peer.respond(b"", status=503 if is_down else 200))
        one.wait_more_checks(1)
        one.is_broken = True
        assert ask_statuses(server) == {(200, b"1"): 20}
        server.wait_log(re.escape(f"{one.address} has failed 1 times in a row"))
        one.is_broken, one.health = is_down, say(503 if is_down else 200)
        one.tell("go")
        if is_down:
            server.wait_log(re.escape(f"{one.address} is down, and gets no requests"))
            one.is_broken, one.health = False, say(200)
        line = f"{one.address} is up, and gets requests again (successful checks in a row: "
        found = server.wait_log(re.escape(line) + ".*; its ejection has ended")
        assert ("too)" in found[0].string) == is_down
        assert ask_statuses(server) == {(200, b"0"): 20}


def test_limits_of_results_in_a_row(serve_group, apps):
    """CheckDown and CheckUp: one failure, and one success, change nothing."""
    one, two = apps(say(200), say(200))
    server = serve_group([one, two], {**FAST, "CheckDown": 2, "CheckUp": 3})
    one.wait_checks(2)
    results = iter([503, 200, 503, 200, 503, 503, 200, 200, 503, 200, 200, 200])
    one.health = lambda peer: peer.respond(b"", status=next(results, 200))
    server.wait_log("is down, and gets no requests: GET /health: 503 .failed checks in a row: 2.")
    server.wait_log("is up, and gets requests again .successful checks in a row: 3.")
    assert server.log.count("is down") == server.log.count("is up") == 1


def test_connections(serve_group, apps):
    """`Check Tcp`: a server that refuses, and comes back."""
    one, two = apps(say(200), say(200))
    server = serve_group([one, two], {**FAST, "Check": "Tcp"})
    one.wait_accepted(3)
    assert ask_statuses(server) == {(200, b"0"): 20}
    port = one.listener.getsockname()[1]
    one.kill()
    server.wait_log(f"{re.escape(one.address)} is down, and gets no requests: Connection refused")
    assert ask_statuses(server) == {(200, b"1"): 20}
    with App(7, port=port):
        server.wait_log(f"{re.escape(one.address)} is up")
        assert ask_statuses(server) == {(200, b"7"): 20}
    assert not one.checks() and not two.checks()


def test_a_unix_socket(serve_group, apps, tmp_path):
    (one,) = apps(say(503), path=tmp_path / "s")
    server = serve_group([one.url], {**FAST})
    server.wait_log(rf"upstream app: {re.escape(one.url)} is down, and gets no requests: GET /health: 503")
    assert one.checks()[0]["Host"] == "localhost"


def test_the_request(serve_group, apps):
    (one,) = apps(say(418))
    keys = {
        "Check": "/health?deep=1",
        "CheckMethod": "OPTIONS",
        "CheckHost": "app.example",
        "CheckHeader": ["X-Token: a b", "Accept: text/plain"],
        "CheckStatus": "204 410-420",
    }
    server = serve_group([one], {**FAST, **keys})
    one.wait_checks(3)
    got = one.checks()[0]
    assert (got.method, got.target, got.version) == ("OPTIONS", "/health?deep=1", "1.1")
    assert [(name, value) for name, value in got.fields if name != "User-Agent"] == [
        ("Host", "app.example"),
        ("Connection", "close"),
        ("X-Token", "a b"),
        ("Accept", "text/plain"),
    ]
    assert ask_statuses(server) == {(200, b"0"): 20} and "is down" not in server.log


def test_addresses_of_a_name(serve_group, apps):
    """Each has a check, which comes and goes with it."""
    (one,) = apps(say(200))
    host, port = one.listener.getsockname()
    (two,) = apps(say(503), host="127.0.0.2", port=port)
    with NameServer() as names:
        names.set("app.test", host)
        keys = {**FAST, "NameServer": names.address, "Resolve": "100ms"}
        server = serve_group([f"app.test:{port}"], keys)
        one.wait_checks(1)
        names.set("app.test", host, "127.0.0.2")
        server.wait_log(f"upstream app: 127.0.0.2:{port} is down, and gets no requests: GET /health: 503")
        assert ask_statuses(server) == {(200, b"0"): 20}
        two.health = hold
        two.wait_open(1)
        seen = len(two.checks())
        names.set("app.test", host)
        two.wait_open(0)
        one.wait_more_checks(3)
        assert len(two.checks()) <= seen + 1
        assert two.checks()[0]["Host"] == f"127.0.0.2:{port}"


@needs_tls
@pytest.mark.parametrize(
    "keys, reason",
    [
        ({"CheckTlsName": "app.test", "CheckTlsCA": "{ca}"}, None),
        ({"CheckTlsVerify": "Off"}, None),
        ({"CheckTlsCA": "{ca}"}, "the certificate of the server does not cover app"),
        ({"CheckTlsName": "app.test"}, "the certificate of the server is of an authority that is not trusted"),
        ({"CheckTlsVerify": "Off", "Check": "Tcp"}, None),
        ({"CheckTlsName": "app.test", "Check": "Tcp"}, "the certificate of the server is of an authority"),
    ],
)
def test_tls_at_another_port(serve_group, apps, tmp_path, keys, reason):
    """The plugin tls is loaded because of CheckTls."""
    ca = Authority(tmp_path / "ca")
    (one,) = apps(hold)
    pair = ca.make("app.test", "app.test")
    with App(5, tls=pair) as secure:
        keys = {key: value.format(ca=ca.cert) for key, value in keys.items()}
        port = secure.listener.getsockname()[1]
        server = serve_group([one], {**FAST, "CheckTls": "On", "CheckPort": port, **keys})
        if reason:
            server.wait_log(f"is down, and gets no requests: {reason}")
            assert ask_statuses(server) == {(503, ask_body(server)): 20}
        else:
            secure.wait_accepted(4)
            assert ask_statuses(server) == {(200, b"0"): 20} and "is down" not in server.log
            if keys.get("Check") != "Tcp":
                assert secure.peers[0].server_name == keys.get("CheckTlsName", "app")
                assert secure.checks()[0]["Host"] == f"127.0.0.1:{port}"
    assert not one.checks()


def ask_body(server):
    with server.connect() as client:
        return client.ask("/").body


@needs_tls
def test_reloads_amid_handshakes(serve_group, apps):
    """TLS comes and goes with checks, also amid a handshake."""
    (one,) = apps(hold)
    with Backend(hold) as secure:
        plain = {"Balance": "First"}
        tls = {**LONG, "CheckTls": "On", "CheckTlsVerify": "Off", "CheckPort": secure.listener.getsockname()[1]}
        server = serve_group([one], plain)
        for round_ in range(5):
            write_group(server, [one], {**tls, "CheckHost": f"a{round_}.test"})
            secure.wait_accepted(2 * round_ + 1)
            write_group(server, [one], tls)
            secure.wait_accepted(2 * round_ + 2)
            secure.wait_open(1)
            write_group(server, [one], plain)
            secure.wait_open(0)
    assert "is down" not in server.log


@needs_tls
def test_a_server_without_tls(serve_group, apps):
    (one,) = apps(say(200))
    server = serve_group([one], {**FAST, "CheckTls": "On", "CheckTlsVerify": "Off", "CheckTimeout": "100ms"})
    server.wait_log("is down, and gets no requests: no TLS handshake in 100ms")


# ── what becomes of requests ──


@needs_status
def test_all_are_down(serve_group, apps):
    """Also backups; they are not tried, whatever EjectMost says. The counters tell."""
    servers = apps(say(503), say(503), say(503))
    rows = [servers[0], servers[1], f"{servers[2].address} backup"]
    config = {"plugins/status/status.conf": status_section()}
    server = serve_group(rows, {**FAST, "EjectMost": 0}, config=config)
    server.wait_log("is down, and gets no requests", 3)
    assert {status for status, _ in ask_statuses(server)} == {503}
    server.wait_log("proxy: http://app: no server of the group can be used")
    assert not any(each.others() for each in servers)
    servers[2].health = say(200)
    server.wait_log("is up, and gets requests again")
    assert ask_statuses(server) == {(200, b"2"): 20}
    down, up = (count_metrics(server, servers[at]) for at in (0, 2))
    assert down["up"] == 0 and down["checks_total"] == down["failed_checks_total"] >= 1
    assert up["up"] == 1 and up["checks_total"] >= up["failed_checks_total"] + 2


def test_held_requests(serve_group, apps):
    """With Hold they wait for a server that is down, in all workers, and go to it when it is up."""
    one, two = apps(say(503), say(503))
    server = serve_group([one, two], {**FAST, "Hold": "60s"}, settings={"Workers": 2})
    server.wait_log("is down, and gets no requests", 2)
    clients = [server.connect() for _ in range(8)]
    for client in clients:
        client.send(request("/"))
    one.wait_more_checks(3)
    assert not one.others()
    two.health = say(200)
    assert [client.response().body for client in clients] == [b"1"] * 8
    for client in clients:
        client.close()


@needs_status
@pytest.mark.concurrent
def test_a_server_leaves_under_load(serve_group, apps):
    """It fails its checks, then has no more requests, then ends: no request of a client fails."""
    leaves, stays = apps(say(200), say(200))
    config = {"plugins/status/status.conf": status_section()}
    keys = {**FAST, "Balance": "LeastLoaded", "Retry": "Off"}
    settings = {"MaxKeepAliveRequest": 0, "Workers": 2}
    server = serve_group([leaves, stays], keys, settings=settings, config=config)
    stop, answers = threading.Event(), [[] for _ in range(4)]

    def load(own):
        with server.connect() as client:
            while not stop.is_set():
                own.append(client.ask("/", method="POST", body=b"x" * 1000).status)

    threads = [threading.Thread(target=load, args=(own,)) for own in answers]
    for each in threads:
        each.start()
    try:
        leaves.wait_requests(100)
        leaves.health = say(503)
        server.wait_log(f"{re.escape(leaves.address)} is down")
        await_true(lambda: count_metrics(server, leaves)["active_requests"] == 0, what="the end of its requests")
        seen = len(leaves.others())
        stays.wait_requests(len(stays.requests) + 100)
        assert len(leaves.others()) == seen
        leaves.kill()
        stays.wait_requests(len(stays.requests) + 100)
    finally:
        stop.set()
        for each in threads:
            each.join()
    assert {status for own in answers for status in own} == {200}


# ── once ──


def test_once_for_all_workers(serve_group, apps):
    """A check that waits for its response is the only one, also while all workers serve requests."""
    (app,) = apps(hold)
    server = serve_group([app], LONG, settings={"Workers": 4})
    app.wait_checks(1)
    for _ in range(40):
        assert ask_statuses(server, 1) == {(200, b"0"): 1}
    assert len(app.checks()) == 1


@pytest.mark.parametrize("scheduler", ["reuseport", "fair"])
def test_once_over_reloads(serve_group, apps, scheduler):
    """With changing numbers of workers, and generations that last because of a request."""
    (app,) = apps(hold)
    (health,) = apps(hold)
    settings = {"Workers": 2, "Scheduler": scheduler}
    keys = {**LONG, "CheckPort": health.listener.getsockname()[1]}
    server = serve_group([app], keys, settings=settings)
    health.wait_checks(1)
    clients = []
    for round_ in range(20):
        client = server.connect()
        client.send(request("/health"))  # which the app holds
        clients.append(client)
        app.wait_checks(len(clients))
        conf = server.conf / "monkey.conf"
        conf.write_text(re.sub(r"Workers \d+", f"Workers {1 + round_ % 4}", conf.read_text()))
        reload(server)
        health.wait_checks(round_ + 2)  # the one under way begins again
        health.wait_open(1)
    assert len(health.checks()) == 21
    for client in clients:
        client.close()
    server.stop()
    health.wait_open(0)


def test_reloads_amid_checks(serve_group, apps):
    """Checks are added, changed and removed while one is under way."""
    one, two = apps(hold, hold)
    server = serve_group([one, two], LONG)
    for round_ in range(7):
        for each in (one, two):
            each.wait_until(lambda each=each: each.open >= 1, "a check")
        write_group(server, [one], {**LONG, "Check": f"/health/{round_}"})
        two.wait_open(0)
        write_group(server, [one, two], {**LONG, "Check": "Tcp"})
        write_group(server, [one, two], {})
        one.wait_open(0)
        write_group(server, [two, one], LONG)
    write_group(server, [two, one], {})
    for each in (one, two):
        each.wait_open(0)
    assert "is down" not in server.log


# ── what lasts over reloads ──


def test_state_over_reloads(serve_group, apps):
    """What is known lasts as long as server and check; another check decides at once."""
    one, two = apps(say(503), say(200))
    server = serve_group([one, two], LONG)
    server.wait_log(f"{re.escape(one.address)} is down")
    two.wait_checks(1)
    for keys in (LONG, {**LONG, "CheckDown": 5, "CheckTimeout": "1s"}, {**LONG, "EjectAfter": 0}):
        write_group(server, [one, two], keys)
        assert ask_statuses(server) == {(200, b"1"): 20}
    write_group(server, [two, one], LONG)
    assert len(one.checks()) == len(two.checks()) == 1

    one.health = say(200)
    write_group(server, [one, two], {**LONG, "Check": "/health/2"})
    server.wait_log(f"{re.escape(one.address)} is up, and gets requests again .successful checks in a row: 1.")
    assert ask_statuses(server) == {(200, b"0"): 20}
    assert [each.target for each in one.checks()] == ["/health", "/health/2"]


def test_removed_and_added(serve_group, apps):
    """Without `Check` a server gets requests again, and counts as new later."""
    one, two = apps(say(503), say(200))
    server = serve_group([one, two], LONG)
    server.wait_log("is down")
    for round_ in range(3):
        write_group(server, [one, two], {"Balance": "First"} if round_ % 2 else {**LONG, "Check": "Off"})
        server.wait_log(f"{re.escape(one.address)} is not checked any more, and gets requests again", round_ + 1)
        assert ask_statuses(server) == {(200, b"0"): 20}
        write_group(server, [one, two], LONG)
        server.wait_log("is down", round_ + 2)
        assert ask_statuses(server) == {(200, b"1"): 20}


def test_a_refused_configuration(serve_group, apps):
    """It changes nothing, although its checks were made."""
    one, two = apps(say(503), hold)
    server = serve_group([one, two], LONG)
    server.wait_log("is down")
    two.wait_checks(1)
    mistake = "[MANDRIL]\n    Mistake On\n"
    server.groups.write_text(group([one, two], Balance="First") + mistake)
    reload(server, accepted=False)
    server.groups.write_text(group([one, two], **{**LONG, "Check": "/health/2"}) + mistake)
    reload(server, accepted=False)
    assert ask_statuses(server) == {(200, b"1"): 20}
    assert two.open == 2  # its check, and a connection for requests
    assert len(one.checks()) == len(two.checks()) == 1


# ── memory and descriptors ──


@only_sanitized
def test_each_allocation_fails_once(serve_group, apps):
    """A check that has no memory says nothing of the server."""
    (one,) = apps(say(200))
    server = serve_group([one], {**FAST, "CheckText": "well"})
    one.wait_checks(1)
    memory, failures, n = FailingMemory(server), 0, 0
    failed = True
    while failed:
        seen = len(one.peers)
        memory.fail(n)
        one.wait_accepted(seen + 4)
        failed = memory.end()
        failures += failed
        n += 1 if n < 8 else 1000
    memory.close()
    assert failures > 3
    server.wait_log(f"error upstream app: {re.escape(one.address)} cannot be checked: there is no memory")
    one.wait_more_checks(2)
    assert ask_statuses(server) == {(200, b"0"): 20} and "is down" not in server.log


def test_no_descriptor_is_left(serve_group, apps):
    """A check that has none says nothing of the server."""
    (one,) = apps(say(200))
    server, seen = serve_group([one], {**FAST, "CheckInterval": "500ms", "CheckDown": 1}), []

    def count_descriptors(peer):
        seen.append(server.descriptors())
        say(200)(peer)

    one.health = count_descriptors
    await_true(lambda: seen and server.descriptors() < seen[0], what="the end of a check")
    with no_descriptor_left(server):
        server.wait_log(f"error upstream app: {re.escape(one.address)} cannot be checked: ")
    one.wait_more_checks(2)
    assert ask_statuses(server) == {(200, b"0"): 20} and "is down" not in server.log


# ── mistakes ──

CHECKED = "    Name app\n    Server 127.0.0.1:1\n"
MISTAKES = {
    "    Check": (4, "error"),
    "    Check health": (4, '"health" is no check: it is Tcp, Off, the path of a request, as /health, or FastCGI'),
    "    Check /a /b": (4, '"/a /b" is no check'),
    "    Check /\n    CheckStatus": (5, '"CheckStatus" wants a value'),
    "    Check /\n    CheckStatus 700": (5, 'it takes statuses from 100 to 599 and ranges, as 200-399, and "700"'),
    "    Check /\n    CheckHeader Token": (5, "a header is written as NAME: VALUE"),
    "    Check /\n    CheckHeader Host: a": (5, "CheckHost sets this header"),
    "    Check /\n    CheckMethod get": (5, "a method is a word such as GET"),
    "    Check /\n    CheckHost http://a/": (5, "it is a name or an address, and may have a port"),
    "    Check /\n    CheckMethod HEAD\n    CheckText ok": (6, "a response to HEAD has no body, in which this text"),
    "    Check /\n    CheckPort 0": (5, "CheckPort"),
    "    Check /\n    CheckInterval 1ms": (5, "CheckInterval"),
    "    Check /\n    CheckDown 0": (5, "CheckDown"),
    "    Check /\n    CheckPort 80\n    Server unix:/run/a": (5, "unix:/run/a has no port that another one could"),
}
WARNINGS = {
    "    CheckText ok": (4, "CheckText has no effect without Check, which says how the servers are checked"),
    "    CheckInterval 1s": (4, "CheckInterval has no effect without Check"),
    "    Check Tcp\n    CheckText ok": (5, "CheckText has no effect without a path in Check, as /health"),
    "    Check Tcp\n    CheckStatus 204": (5, "CheckStatus has no effect without a path in Check"),
    "    Check /\n    CheckTlsName a": (5, "CheckTlsName has no effect without CheckTls On"),
    "    Check FastCGI /ping\n    CheckTls On": (5, "CheckTls has no effect without a Check of HTTP or Tcp"),
}


def check_config(tmp_path, site_root, text):
    write_config(tmp_path / "conf", site_root, files={GROUPS: f"[UPSTREAM]\n{CHECKED}{text}\n"})
    return run("-c", tmp_path / "conf", "--test")


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(tmp_path, site_root, text):
    line, sentence = MISTAKES[text]
    got = check_config(tmp_path, site_root, text)
    assert got.returncode == 1, got.stdout
    (problem,) = problems(got)
    assert problem[:2] == ("upstream.conf", line) and sentence in problem[3], got.stderr


@pytest.mark.parametrize("text", WARNINGS)
def test_warnings(tmp_path, site_root, text):
    line, sentence = WARNINGS[text]
    got = check_config(tmp_path, site_root, text)
    assert got.returncode == 0, got.stderr
    (problem,) = problems(got)
    assert problem[:2] == ("upstream.conf", line) and f"warning: {sentence}" in problem[3], got.stderr


def test_no_warnings(tmp_path, site_root):
    """Values that are written as they are without the key, and those of checks that are off."""
    for text in ("    Check Off\n    CheckText ok", "    Check /\n    CheckText ok", "    CheckStatus 200-399"):
        got = check_config(tmp_path, site_root, text)
        assert got.returncode == 0 and "warning" not in got.stderr, got.stderr


@needs_tls
def test_authorities_that_do_not_exist(tmp_path, site_root):
    got = check_config(tmp_path, site_root, "    Check /\n    CheckTls On\n    CheckTlsCA /missing.pem")
    assert got.returncode == 1 and re.search(r"upstream.conf:6:.*the file of authorities /missing.pem", got.stderr)
