# SPDX-License-Identifier: Apache-2.0
"""Groups that change under load: servers come, go, are weighted and renamed, and what is counted stays exact."""

import collections
import contextlib
import functools
import threading

import pytest

from harness import build
from harness.backend import Backend, echo_websocket
from harness.client import ProtocolError
from harness.fastcgi import Application
from harness.fastcgi import answer as fastcgi_answer
from harness.groups import GROUPS, group
from harness.load import Asking, Clients
from harness.messages import request
from harness.metrics import needs_status, scrape, status_section, total
from harness.proxies import TEXT
from harness.server import await_true, section
from harness.services import reload
from harness.ways import WAYS
from harness.websocket import WebSocket
from test_shell import Shell, path  # noqa: F401 (a fixture)

pytestmark = [
    pytest.mark.concurrent,
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "upstream.so").exists(), reason="this preset has no plugins"),
]
needs_all = pytest.mark.skipif(
    not all((build.PLUGINS / f"{name}.so").exists() for name in ("auth", "cheetah", "fastcgi")),
    reason="the preset has no plugins auth, cheetah and fastcgi",
)
BODY = b"x" * 50_000
SIZE = 40_000  # a body that moves without copies


class Counting:
    """A script that answers all requests, and counts them by their statuses; those for checks apart."""

    def __init__(self):
        self.lock, self.statuses, self.checks = threading.Lock(), collections.Counter(), 0

    @property
    def requests(self):
        return self.statuses.total()

    def __call__(self, peer):
        while True:
            got = peer.request()
            status = next((each for each in (304, 404, 500) if got.target.endswith(f"/{each}")), 200)
            with self.lock:
                if got.target == "/check":
                    self.checks += 1
                else:
                    self.statuses[status] += 1
            peer.respond(b"y" * SIZE if got.target.endswith("/large") else got.body, TEXT, status=status)


# ── a storm ──


class Storm(Clients):
    """
    Requests of all states: short ones, uploads, large bodies, clients that leave, WebSockets, streams of HTTP/2; those
    that wait for a server (`/full`) or for one that responds (`/dead`); those to a name (`/named`), to a script, and to
    a path about which another server is asked (`/guarded`).
    """

    def __init__(self, server):
        self.server, self.counts, self.lock = server, collections.Counter(), threading.Lock()
        kinds = [self.get, self.upload, self.load, self.leave, self.talk, self.queue, self.queue, self.hold, self.name]
        kinds += [self.run_script, self.pass_guard] + ([self.multiplex] if build.speaks("h2") else [])
        super().__init__(kinds)

    def done(self, kind):
        with self.lock:
            self.counts[kind] += 1

    def get(self):
        with self.server.connect() as client:
            for _ in range(5):
                assert client.ask("/app").status == 200
        self.done("get")

    def upload(self):
        with self.server.connect() as client:
            assert client.ask("/app", method="POST", body=BODY).body == BODY
        self.done("upload")

    def load(self):
        with self.server.connect() as client:
            assert len(client.ask("/app/large").body) == SIZE
        self.done("load")

    def leave(self):
        with self.server.connect() as client:
            client.send(request("/app", f"Content-Length: {len(BODY)}", method="POST") + BODY[:20_000])
        with self.server.connect() as client:
            client.send(request("/full"))
        with self.server.connect() as client:
            client.send(request("/app/large"))
            client.exactly(100)
        self.done("leave")

    def talk(self):
        with self.server.connect() as client:
            ws = WebSocket(self.server, "/ws", client=client)
            for n in range(5):
                ws.assert_echo(f"message {n}")
        self.done("talk")

    def multiplex(self):
        with self.server.connect_h2() as client:
            numbers = [client.begin(path) for path in ("/app", "/app/large", "/named", "/full") * 3]
            for number, allowed in zip(numbers, ((200,), (200,), (200,), (200, 503)) * 3):
                assert client.response(number).status in allowed
        self.done("multiplex")

    def name(self):
        with self.server.connect() as client:
            for _ in range(5):
                assert client.ask("/named").status == 200
        self.done("name")

    def run_script(self):
        with self.server.connect() as client:
            for _ in range(5):
                assert client.ask("/x.php", method="POST", body=b"x" * 1000).body == b"hello"
        self.done("run_script")

    def pass_guard(self):
        with self.server.connect() as client:
            for _ in range(5):
                assert client.ask("/guarded").status == 200
        self.done("pass_guard")

    def queue(self):
        with self.server.connect() as client:
            assert client.ask("/full").status in (200, 503)
        self.done("queue")

    def hold(self):
        with self.server.connect() as client:
            try:
                assert client.ask("/dead").status in (200, 503)
            except ProtocolError:
                pass
        self.done("hold")


class Site:
    """
    Groups that change with each turn: their servers, keys and names, and the lines of servers; so do the addresses of
    the name that one of them has, and what the shell says about a server.
    """

    def __init__(self, backends, talking, named, scripts, names):
        self.server, self.backends, self.talking, self.turn = None, backends, talking, 0
        self.named, self.scripts, self.names, self.ordered = named, scripts, names, None
        self.name()

    def name(self):
        one, two = (each.listener.getsockname()[0] for each in self.named)
        for name in ("app.test", "alias.test"):
            self.names.set(name, *((one,), (one, two), (two,))[self.turn % 3])

    @property
    def app(self):
        """The name of the group that most requests get."""
        return f"app{self.turn // 3 % 3}"

    @property
    def used(self):
        return [each for i, each in enumerate(self.backends) if (self.turn + i) % 4]

    def text(self):
        turn = self.turn
        rows = [f"{each.address} weight={1 + (turn + i) % 3}" for i, each in enumerate(self.used)]
        rows[turn % 3] += (" backup", " drain", "")[turn % 3]
        balance = ("LeastLoaded", "RoundRobin", "Sticky", "Hash", "First")[turn % 5]
        full = {"MaxConnections": 1 + turn % 2, "Queue": 2 + turn % 3, "QueueTimeout": "10s"}
        held = {"Hold": "200ms", "EjectAfter": turn % 3}
        dead = self.backends[0].address if turn % 3 == 0 else "127.0.0.1:1"
        other = group(["127.0.0.1:1"], name=f"other{turn % 7}") if turn % 2 else ""
        port = self.named[0].listener.getsockname()[1]
        line = f"{('app', 'alias')[turn // 2 % 2]}.test:{port} weight={1 + turn % 2}"
        looked_up = {"NameServer": self.names.address, "Resolve": "100ms", "Balance": balance}
        check = {"Check": "/check", "CheckInterval": "1s", "CheckTimeout": "60s"} if turn % 4 == 1 else {}
        return (
            group(rows, name=self.app, Balance=balance, SlowStart=f"{turn % 2}s", **check)
            + group(self.backends[: 1 + turn % 2], name="full", **full)
            + group([dead], name="dead", **held)
            + group([self.talking], name="talking")
            + group([line], name="named", **looked_up)
            + group([each.to for each in self.scripts[turn % 2 :]], name="scripts", Balance=balance)
            + group(self.backends[turn % 3 :], name="guard", Balance=balance)
            + other
        )

    def sections(self):
        """Of the host: its proxies follow the names of groups."""
        groups = {"/app": self.app, "/guarded": self.app, "/full": "full", "/dead": "dead", "/ws": "talking"}
        groups["/named"] = "named"
        guard = {"Match": "/guarded", "Type": "Forward", "To": "http://guard/verify", "ForwardTimeout": "60s"}
        return (
            "".join(section("PROXY", {"Match": path, "To": f"http://{name}"}) for path, name in groups.items())
            + section("AUTH", guard)
            + section("FASTCGI", {"Match": "*.php", "To": "scripts", "RemoteRoot": "/srv"})
        )

    def order(self, one, what):
        self.shell.ask(f"upstream {one} {what}")
        self.ordered = one

    def change(self):
        """One server at most has an order, which lasts over a reload that leaves the server in its group."""
        before, was = self.sections(), self.ordered
        self.turn += 1
        lasts = was in [f"{self.app} {each.address}" for each in self.used]
        if was and not lasts:
            self.order(was, "reset")
        self.name()
        self.server.groups.write_text(self.text())
        site = self.server.conf / "sites" / "default"
        site.write_text(site.read_text().replace(before, self.sections()))
        reload(self.server)
        if was and lasts:
            self.order(was, "reset")
        what = ("drain", "down", "weight 5", "weight 0", "up")[self.turn % 5]
        self.order(f"{self.app} {self.used[self.turn // 2 % 3].address}", what)


def drive_storm(serve, names, path, turns):
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Backend(Counting())) for _ in range(4)]
        talking = stack.enter_context(Backend(echo_websocket))
        named = [stack.enter_context(Backend(Counting()))]
        port = named[0].listener.getsockname()[1]
        named.append(stack.enter_context(Backend(Counting(), host="127.0.0.2", port=port)))
        scripts = [stack.enter_context(Application(fastcgi_answer())) for _ in range(2)]
        site = Site(servers, talking, named, scripts, names)
        config = {GROUPS: site.text(), "plugins/status/status.conf": status_section()}
        config["plugins/cheetah/cheetah.conf"] = section("CHEETAH", {"Listen": path})
        settings = {"Workers": 3, "Timeout": "60s", "KeepAliveTimeout": "60s"}
        server = site.server = serve(settings, text=site.sections(), config=config)
        server.groups, server.way = server.conf / GROUPS, WAYS["h1"]
        site.shell = stack.enter_context(Shell(path))
        with Storm(server) as clients:
            while site.turn < turns or len(clients.counts) < len(clients.threads) - 1:  # two of a kind
                site.change()
                assert not clients.errors and site.turn < 100 * turns, clients.errors
        assert not clients.errors, clients.errors
        with server.connect() as client:

            def read_levels():
                samples = scrape(client)
                names = ("server_active_requests", "queued_requests", "held_requests")
                return sum(total(samples, f"monkey_upstream_{name}") for name in names)

            await_true(lambda: read_levels() == 0, what="the end of all requests")
        for backend in (*servers, *named, talking, *scripts):
            assert not backend.errors, backend.errors


@pytest.mark.load
@needs_status
@needs_all
def test_a_storm(names, serve, path):
    drive_storm(serve, names, path, 20)


@needs_status
@needs_all
@pytest.mark.load
def test_a_long_storm(names, serve, path):
    drive_storm(serve, names, path, 300)


# ── what is kept and counted ──


def ask_over_reloads(serve, groups, reloads):
    """
    No check is made twice, no counter loses a request, and the connections to the servers stay: at most as many were
    opened as requests can be under way at a time, and a worker keeps.
    """
    scripts = [Counting() for _ in range(groups)]
    made = [Backend(script) for script in scripts]
    for each in made:
        each.__enter__()
    keys = {"Check": "/check", "CheckInterval": "1h", "CheckTimeout": "60s"}
    names = [f"g{n}" for n in range(groups)]

    def text(turn):
        rows = [group([each], name=name, EjectAfter=5 + turn % 2, **keys) for each, name in zip(made, names)]
        return "".join(rows)

    proxies = "".join(section("PROXY", {"Match": f"/{n}", "To": f"http://{name}"}) for n, name in enumerate(names))
    config = {GROUPS: text(0), "plugins/status/status.conf": status_section()}
    settings = {"Workers": 2, "MaxKeepAliveRequest": 0, "Timeout": "60s", "KeepAliveTimeout": "60s"}
    server = serve(settings, text=proxies, config=config)
    try:
        with server.connect() as client:  # a reload amid the first check begins it again
            await_true(lambda: total(scrape(client), "monkey_upstream_server_checks_total") == groups)

        def ask(client, path):
            assert client.ask(path).status == 200

        asked = [functools.partial(ask, path=f"/{n}") for n in range(groups)]
        with Asking(server, *asked) as clients:
            for turn in range(reloads):
                (server.conf / GROUPS).write_text(text(turn))
                reload(server)
                assert not clients.errors, clients.errors
        assert not clients.errors, clients.errors
        counted = sum(script.requests for script in scripts)
        assert counted == clients.answers > reloads
        with server.connect() as client:
            samples = scrape(client)
        assert total(samples, "monkey_upstream_server_requests_total") == counted
        assert total(samples, "monkey_proxy_backend_requests_total") == counted
        assert [script.checks for script in scripts] == [1] * groups
        assert total(samples, "monkey_upstream_server_checks_total") == groups
        opened = sum(len(each.peers) for each in made) - groups  # without those of the checks
        assert opened == total(samples, "monkey_proxy_backend_opened_connections_total")
        assert opened <= groups * 8, "four clients, two workers"
    finally:
        for each in made:
            each.__exit__(None, None, None)


@needs_status
def test_reloads_lose_nothing(serve):
    ask_over_reloads(serve, 4, 12)


@needs_status
@pytest.mark.load
def test_hundred_reloads_of_eight_groups(serve):
    ask_over_reloads(serve, 8, 100)
