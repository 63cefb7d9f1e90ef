# SPDX-License-Identifier: Apache-2.0
"""Whether the server lives and wants requests, as load balancers ask; also correct while it stops."""

import json
import re
import signal

import pytest

from harness import build
from harness.messages import request
from harness.server import await_true, is_refused, run, section

BOTH = {"LivenessPath": "/healthz", "ReadinessPath": "/readyz"}
FILES = {"index.html": b"site\n", "healthz": b"a file\n"}
TERM = signal.SIGTERM


@pytest.fixture
def healthy(serve):
    """A server with a [HEALTH] section, in a file of its own next to monkey.conf."""

    def start(health=BOTH, settings=None, **rest):
        rest.setdefault("config", {})["plugins/health/health.conf"] = section("HEALTH", health)
        patient = {"KeepAliveTimeout": "1h", "Timeout": "1h", "LogLevel": "debug"}
        return serve({**patient, **(settings or {})}, files=FILES, **rest)

    return start


def test_nothing_without_a_section(serve):
    with serve(files=FILES).connect() as client:
        assert client.ask("/healthz").body == b"a file\n"
        assert client.ask("/readyz").status == 404


def test_nothing_where_nothing_is_named(healthy):
    with healthy({"ReadinessPath": "/up"}).connect() as client:
        assert client.ask("/healthz").body == b"a file\n"
        assert client.ask("/up").body == b"ready\n"


@pytest.mark.parametrize("target, text", [("/healthz", b"ok\n"), ("/readyz?probe=1", b"ready\n")])
def test_answers(healthy, target, text):
    with healthy().connect() as client:
        for method in ("GET", "HEAD"):
            answer = client.ask(target, method=method)
            assert (answer.status, answer.length) == (200, len(text))
            assert answer.body == (text if method == "GET" else b"")
            assert (answer["Content-Type"], answer["Cache-Control"]) == ("text/plain", "no-store")
            assert not answer.closes


@pytest.mark.parametrize("method, status", [("POST", 405), ("DELETE", 405), ("BREW", 405), ("OPTIONS", 204)])
def test_other_methods(healthy, method, status):
    with healthy().connect() as client:
        for target in ("/healthz", "/readyz"):
            answer = client.ask(target, method=method)
            assert (answer.status, answer["Allow"]) == (status, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize(
    "target, status",
    [("/health%7a", 200), ("/x/../healthz", 200), ("/healthz/", 404), ("/healthz/x", 404), ("/HEALTHZ", 404)],
)
def test_paths(healthy, target, status):
    with healthy().connect() as client:
        assert client.ask(target).status == status


def test_every_host(healthy):
    """Before redirects as well, and without a Host where HTTP/1.0 allows it."""
    server = healthy(host={"Redirect": "https://example.org"})
    for host in ("localhost", "elsewhere.test", "127.0.0.1"):
        assert server.talk(request("/healthz", "Connection: close", host=host))[0].body == b"ok\n"
    assert server.talk(request("/readyz", host=None, version="HTTP/1.0"))[0].body == b"ready\n"
    assert server.statuses(request("/", "Connection: close")) == [301]


REDIRECTS = {
    "of the host": "    Redirect https://example.org/\n",
    "by a rule": "[REDIRECT]\n    Match ~^/\n    To https://example.org/\n",
    "to https": "[TLS]\n    Redirect https\n",
}
PROBES = ("health", "status", "redirect", "mandril", "cheetah")


@pytest.mark.parametrize("names", [PROBES, PROBES[::-1]], ids=["first", "last"])
@pytest.mark.parametrize("kind", REDIRECTS)
def test_probes_and_status_come_before_redirects(serve, tmp_path, names, kind):
    """A load balancer takes 301 as healthy, also while the server stops. The shell's `explain` says the same."""
    if any(not (build.PLUGINS / f"{name}.so").exists() for name in names):
        pytest.skip("a plugin is missing here")
    shell = tmp_path / "shell.sock"
    host = section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path}) + REDIRECTS[kind]
    rules = "[RULES]\n    Match /healthz\n    When header X-From =outside\n    Action deny\n"
    config = {
        "plugins.load": section("PLUGINS", {"Load": ["liana", "tls", *names, "static"]}),
        "plugins/health/health.conf": section("HEALTH", BOTH),
        "plugins/status/status.conf": section("STATUS", {"Enabled": "On"}),
        "plugins/cheetah/cheetah.conf": section("CHEETAH", {"Listen": shell}),
        "plugins/tls/tls.conf": section("TLS", {"SelfSigned": "On"}),
        "sites/default": host + rules,
    }
    server = serve({"Listen": ["127.0.0.1:0", "127.0.0.1:0 tls"]}, config=config, listeners=2)
    paths = {"/healthz": 200, "/readyz": 200, "/metrics": 200, "/status": 200, "/status/events/x": 301, "/x": 301}
    with server.connect() as client:
        assert {path: client.ask(path).status for path in paths} == paths
        refused = client.ask("/healthz", "X-From: outside").status
        assert refused == (403 if names[0] != "health" else 200), "rules come where plugins.load says"
    for path, status in paths.items():
        done = run("shell", "-s", shell, "--json", "explain", "GET", f"http://localhost:{server.port}{path}")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        redirects = [row for row in rows if row.get("plugin") in ("tls", "redirect") and row["effect"] == "answers"]
        assert rows and bool(redirects) == (status == 301), (path, rows)


# ── a listener of its own ──


@pytest.fixture
def apart(healthy, tmp_path):
    def start(health):
        path = f"unix:{tmp_path}/health"
        return healthy({**health, "Listener": path}, {"Listen": ["127.0.0.1:0", path]}, listeners=2)

    return start


def test_listener(apart):
    server = apart(BOTH)
    with server.connect(0) as client:
        assert client.ask("/healthz").body == b"a file\n"
        assert client.ask("/readyz").status == 404
        assert client.ask("/").body == b"site\n"
    with server.connect(1) as client:
        assert client.ask("/healthz").body == b"ok\n"
        assert client.ask("/readyz").body == b"ready\n"


@pytest.mark.parametrize("health", [BOTH, {"ReadinessPath": "/up"}])
def test_listener_answers_nothing_else(apart, health):
    server = apart(health)
    for data in (request("/"), request("/", method="POST"), request("*", method="OPTIONS"), request("/healthz/x")):
        with server.connect(1) as client:
            client.send(data)
            assert client.response().status == 404
    with server.connect(0) as client:
        assert client.ask("/").body == b"site\n"


# ── while the server stops ──


def await_heads(server, count=1):
    """Until so many heads that are not whole have been read: a stop closes connections without a request."""
    server.wait_log(r"debug connection \d+: \S+ to read_head", count)


def test_stop_delay(healthy):
    """Everything continues, but readiness says no; a second signal is the end."""
    server = healthy(settings={"ShutdownDelay": "1h", "Workers": 2})
    kept = server.connect()
    assert kept.ask("/").body == b"site\n"
    assert kept.ask("/readyz").body == b"ready\n"
    server.send_signal(TERM)
    server.wait_log(r"another 3600000 ms \(ShutdownDelay\)")

    def readiness():
        with server.connect() as client:
            return client.ask("/readyz")

    await_true(lambda: all(readiness().status == 503 for _ in range(10)), 30, "the end of readiness")
    answer = readiness()
    assert (answer.body, answer["Retry-After"], answer["Cache-Control"]) == (b"draining\n", "1", "no-store")
    assert answer.closes and answer["Content-Type"] == "text/plain"
    answer = kept.ask("/")
    assert (answer.body, answer.closes) == (b"site\n", False)
    with server.connect() as client:
        assert client.ask("/healthz").body == b"ok\n"
        assert not client.ask("/").closes
    server.send_signal(TERM)
    assert server.wait() == 0
    kept.assert_gone()


def test_stop_delay_ends(healthy):
    """Without a second signal: the listeners close, and requests in progress come to their end."""
    server = healthy(settings={"ShutdownDelay": "300ms", "ShutdownTimeout": "30s"})
    idle, busy = server.connect(), server.connect()
    assert idle.ask("/").status == 200
    busy.send("GET / HTTP/1.1\r\nHost: localhost\r\n")
    await_heads(server)
    server.send_signal(TERM)
    idle.assert_closed()
    await_true(lambda: is_refused(server.addresses[0]), 30, "the end of accepting")
    busy.send("\r\n")
    answer = busy.response()
    assert (answer.body, answer.closes) == (b"site\n", True)
    busy.assert_closed()
    assert server.wait() == 0


def test_readiness_while_draining(healthy):
    """ShutdownDelay 0: only clients that are connected can still ask."""
    server = healthy(settings={"ShutdownTimeout": "30s"})
    client, other = server.connect(), server.connect()
    client.send("GET /readyz HTTP/1.1\r\nHost: localhost\r\n")
    assert other.ask("/readyz").body == b"ready\n"
    server.send_signal(TERM)
    other.assert_closed()
    client.send("\r\n")
    answer = client.response()
    assert (answer.status, answer.body, answer.closes) == (503, b"draining\n", True)
    assert server.wait() == 0


@pytest.mark.parametrize("kind", ["tcp", "unix"])
@pytest.mark.parametrize("workers", [1, 2])
def test_listener_lasts_as_long_as_the_drain(healthy, tmp_path, kind, workers):
    """All others are closed; probes get an answer each, and do not prolong the drain."""
    listener = "127.0.0.2:0" if kind == "tcp" else f"unix:{tmp_path}/health"
    settings = {"Listen": ["127.0.0.1:0", listener], "Workers": workers, "ShutdownTimeout": "1h"}
    server = healthy({**BOTH, "Listener": listener}, settings, listeners=2)
    busy, kept = server.connect(0), server.connect(1)
    assert kept.ask("/readyz").body == b"ready\n"
    busy.send("GET / HTTP/1.1\r\nHost: localhost\r\n")
    await_heads(server)
    server.send_signal(TERM)
    kept.assert_closed()
    await_true(lambda: is_refused(server.addresses[0]), 30, "the end of accepting")
    await_true(lambda: server.count_workers() == 1, 30, "the end of idle workers")
    for _ in range(20):
        for target, status, body in (("/healthz", 200, b"ok\n"), ("/readyz", 503, b"draining\n")):
            with server.connect(1) as client:
                answer = client.ask(target)
                assert (answer.status, answer.body, answer.closes) == (status, body, True)
                client.assert_closed()
    silent, begun = server.connect(1), server.connect(1)
    begun.send("GET /healthz HTTP/1.1\r\n")
    with server.connect(1) as client:  # both have been accepted before this one
        assert client.ask("/healthz").status == 200
    assert server.alive
    busy.send("\r\n")
    assert busy.response().body == b"site\n"
    busy.assert_closed()
    assert server.wait() == 0
    silent.assert_gone()
    begun.assert_gone()


@pytest.mark.parametrize("workers", [1, 2])
def test_listener_with_the_fair_scheduler(healthy, workers):
    """It answers health checks only; a drain closes all listeners, and existing connections are served."""
    addresses = ["127.0.0.1:0", "127.0.0.2:0"]
    settings = {"Listen": addresses, "Scheduler": "fair", "Workers": workers, "ShutdownTimeout": "1h"}
    server = healthy({**BOTH, "Listener": addresses[1]}, settings, listeners=2)
    with server.connect(0) as client:
        assert client.ask("/healthz").body == b"a file\n"
    with server.connect(1) as client:
        assert (client.ask("/readyz").body, client.ask("/").status) == (b"ready\n", 404)
    busy, begun = server.connect(0), server.connect(1)
    for client, path in ((busy, "/"), (begun, "/readyz")):
        assert client.ask("/healthz").status == 200
        client.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n")
    await_heads(server, 2)
    idle = [server.connect(0) for _ in range(workers)]  # one in each worker
    for client in idle:
        assert client.ask("/healthz").status == 200
    server.send_signal(TERM)
    for address in server.addresses:
        await_true(lambda address=address: is_refused(address), 30, f"the end of accepting at {address}")
    for client in idle:  # each worker knows of the end
        client.assert_closed()
    begun.send("\r\n")
    answer = begun.response()
    assert (answer.status, answer.body, answer.closes) == (503, b"draining\n", True)
    assert server.alive
    busy.send("\r\n")
    assert busy.response().body == b"site\n"
    assert server.wait() == 0


def test_every_listener_ends_with_the_drain_time(healthy, tmp_path):
    path = f"unix:{tmp_path}/health"
    settings = {"Listen": ["127.0.0.1:0", path], "ShutdownTimeout": "300ms"}
    server = healthy({**BOTH, "Listener": path}, settings, listeners=2)
    busy = server.connect(0)
    busy.send("GET / HTTP/1.1\r\nHost: localhost\r\n")
    server.connect(0).ask("/")
    server.send_signal(TERM)
    assert server.wait() == 0
    busy.assert_gone()


# ── mistakes ──


@pytest.mark.parametrize(
    "rows, message",
    [
        ("    LivenessPath healthz\n", "health.conf:2:18: error: .*one path is needed, which starts with a slash"),
        ('    ReadinessPath ""\n', "health.conf:2:20: error: .*one path is needed, which starts with a slash"),
        ("    LivenessPath /a\n    Listener 127.0.0.1:9\n", 'health.conf:3:14: error: .*no line "Listen 127.0.0.1:9"'),
        ("    LivenessPath /\n    Listener 127.0.0.1:0 [::1]:9\n", r'health.conf:3:26: .*no line "Listen \[::1\]:9"'),
        ("    LivenessPath /l?x\n", "health.conf:2:18: error: .*has no query"),
        ("    ReadinessPath //r\n", "health.conf:2:19: error: .*empty segments"),
        ("    ReadinessPath /a/./r\n", "health.conf:2:21: error: .*dots for names"),
        ("    LivenessPath /a /b\n", "health.conf:2:18: error: .*one path"),
        ("    Listener 127.0.0.1:0\n", 'health.conf:2:14: error: "LivenessPath" or "ReadinessPath" is missing'),
    ],
)
def test_mistakes(host_conf, rows, message):
    folder = host_conf("", FILES)
    (folder / "plugins" / "health").mkdir(parents=True)
    (folder / "plugins" / "health" / "health.conf").write_text("[HEALTH]\n" + rows)
    result = run("-c", folder, "-t")
    assert result.returncode == 1
    assert re.search(message, result.stderr), result.stderr


def test_one_mistake_is_reported_once(host_conf):
    folder = host_conf("", FILES)
    (folder / "plugins" / "health").mkdir(parents=True)
    path = folder / "plugins" / "health" / "health.conf"
    path.write_text("[HEALTH]\n    LivenessPath a\n    Listener 127.0.0.1:0\n")
    assert run("-c", folder, "-t").stderr.count("error:") == 1
