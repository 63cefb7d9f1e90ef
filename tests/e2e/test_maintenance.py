# SPDX-License-Identifier: Apache-2.0
"""A host that is out of service while a file exists: noticed within a second, with and without a disk thread."""

import collections
import os
import re
import signal

import pytest

from harness.client import Client, ProtocolError
from harness.content import populate
from harness.load import Clients
from harness.messages import request
from harness.metrics import needs_status, status_section
from harness.server import await_true, is_alive, run, section

FILES = {"index.html": b"site\n", "assets/logo.svg": b"<svg/>\n", "style.css": b"a{}\n"}


@pytest.fixture
def flag(tmp_path):
    return tmp_path / "flag"


# The kernel never resolves a link of /proc without waiting: there each look is a disk thread's.
@pytest.fixture(params=["cached", "waiting"])
def host(request, serve, tmp_path, flag):
    """A server with a [MAINTENANCE] section in its default host."""

    def start(keys=None, settings=None, **rest):
        path = flag if request.param == "cached" else "/proc/self/cwd/flag"
        text = section("HOST", {"DocumentRoot": tmp_path / "server0" / "root"})
        text += section("MAINTENANCE", {"FlagFile": path, **(keys or {})})
        config = {"sites/default": text, **rest.pop("config", {})}
        return serve(settings, files=FILES, config=config, cwd=tmp_path, **rest)

    return start


def reload(server, outcome, count=1):
    server.baseline += 2 if count == 1 else 0  # descriptors of the thread that ends a generation
    server.send_signal(signal.SIGHUP)
    server.wait_log(outcome, count)


def await_status(client, status, target="/"):
    await_true(lambda: client.ask(target).status == status, 30, status)


def test_comes_and_goes(host, flag):
    server = host()
    with server.connect() as client:
        for _ in range(2):
            assert client.ask("/").body == b"site\n"
            flag.touch()
            await_status(client, 503)
            flag.unlink()
            await_status(client, 200)
    server.wait_log("maintenance: .*flag: the file exists", 2)
    server.wait_log("maintenance: .*flag: the file is gone, .*, host: default$", 2)


def test_the_first_request_after_a_pause(host, flag, clock):
    """After a time without requests the first one sees the present state."""
    with host().connect() as client:
        assert client.ask("/").status == 200
        flag.touch()
        clock.advance(1.2)
        assert client.ask("/").status == 503
        flag.unlink()
        clock.advance(1.2)
        assert client.ask("/").status == 200


def test_the_first_request_of_all(host, flag):
    flag.touch()
    with host().connect() as client:
        assert client.ask("/").status == 503


def test_answer(host, flag):
    flag.touch()
    with host({"RetryAfter": "2h", "Text": '"Closed for lunch."'}).connect() as client:
        for method in ("GET", "HEAD", "DELETE", "BREW", "OPTIONS"):
            answer = client.ask("/any/where", method=method)
            assert (answer.status, answer.length) == (503, 17)
            assert answer.body == (b"" if method == "HEAD" else b"Closed for lunch.")
            assert (answer["Retry-After"], answer["Cache-Control"]) == ("7200", "no-store")
            assert answer["Content-Type"] == "text/plain; charset=utf-8"
        client.send(request("/form", method="POST", body=b"x" * 1000) + request("*", method="OPTIONS"))
        assert [client.response().status for _ in range(2)] == [503, 503]


def test_text_that_is_html(host, flag):
    flag.touch()
    with host({"Text": '"<h1>Closed</h1>"'}).connect() as client:
        answer = client.ask("/")
        assert (answer.status, answer.body) == (503, b"<h1>Closed</h1>")
        assert answer["Content-Type"] == "text/html; charset=utf-8"


def test_default_text(host, flag):
    flag.touch()
    with host().connect() as client:
        answer = client.ask("/")
        assert (answer.status, answer.body, answer["Retry-After"]) == (503, b"Back soon.", "300")


def test_page(host, flag, tmp_path):
    """Its name gives its type; what the page needs is served."""
    (tmp_path / "page.html").write_text("<h1>Back soon</h1>")
    flag.touch()
    with host({"Page": tmp_path / "page.html", "Except": ["/assets", "*.css"]}).connect() as client:
        answer = client.ask("/")
        assert (answer.status, answer.body) == (503, b"<h1>Back soon</h1>")
        assert answer["Content-Type"] == "text/html; charset=utf-8"
        assert client.ask("/assets/logo.svg").body == b"<svg/>\n"
        assert client.ask("/assets/missing").status == 404
        assert client.ask("/style.css").body == b"a{}\n"
        assert client.ask("/assets2").status == client.ask("/x/../index.html").status == 503


def test_exceptions_are_for_paths_as_requested(serve, tmp_path, flag):
    """Not for the file that is sent: the index of a folder, or what TryFiles names."""
    root = populate(tmp_path / "files", {"help/index.html": b"help\n", "index.html": b"app\n"})
    text = section("MAINTENANCE", {"FlagFile": flag, "Except": ["=/help/", "/app"]})
    flag.touch()
    with serve(root=root, host={"TryFiles": "$path /index.html"}, text=text).connect() as client:
        assert client.ask("/help/").body == b"help\n"
        assert client.ask("/app/x").body == b"app\n"
        assert client.ask("/").status == client.ask("/help/index.html").status == 503


def test_empty_page(host, flag, tmp_path):
    (tmp_path / "page.html").touch()
    flag.touch()
    with host({"Page": tmp_path / "page.html"}).connect() as client:
        answer = client.ask("/")
        assert (answer.status, answer.body) == (503, b"")


def test_no_other_plugin_is_asked(host, flag):
    flag.touch()
    rows = {"Redirect": "https://example.org"}
    with host(
        config={"sites/other": section("HOST", {"DocumentRoot": "/", "ServerName": "o", **rows})}
    ).connect() as c:
        assert c.ask("/").status == 503
        assert c.ask("/", host="o").status == 301


def test_health_continues(host, flag):
    flag.touch()
    health = section("HEALTH", {"LivenessPath": "/healthz", "ReadinessPath": "/readyz"})
    with host(config={"plugins/health/health.conf": health}).connect() as client:
        assert client.ask("/").status == 503
        assert client.ask("/healthz").status == client.ask("/readyz").status == 200


STATUS_PATHS = ("/metrics", "/status", "/status/")


@needs_status
def test_status_continues(host, flag):
    """Whatever the order of the plugins is; for clients that may not see it, the host is closed."""
    flag.touch()
    config = {"plugins/status/status.conf": status_section()}
    with host(config=config).connect() as client:
        assert [client.ask(path).status for path in STATUS_PATHS] == [200] * 3
        assert [client.ask(path, host="example.org").status for path in STATUS_PATHS] == [503] * 3
        assert client.ask("/metrics/x").status == client.ask("/statusx").status == 503


@needs_status
@pytest.mark.parametrize("name, path", [("STATUS", "/metrics"), ("HEALTH", "/healthz")])
@pytest.mark.parametrize("order", [("maintenance", "health", "status"), ("health", "status", "maintenance")], ids=str)
def test_listeners_that_serve_nothing_else(host, flag, tmp_path, name, path, order):
    flag.touch()
    listener = f"unix:{tmp_path}/own"
    own = {"STATUS": {"Enabled": "On"}, "HEALTH": {"LivenessPath": "/healthz"}}[name]
    config = {
        f"plugins/{name.lower()}/{name.lower()}.conf": section(name, {**own, "Listener": listener}),
        "plugins.load": section("PLUGINS", {"Load": ["liana", *order, "static"]}),
    }
    server = host(settings={"Listen": ["127.0.0.1:0", listener]}, config=config, listeners=2)
    with server.connect() as client, server.connect(1) as apart:
        assert client.ask("/").status == client.ask(path).status == 503
        assert apart.ask(path).status == 200
        assert apart.ask("/").status == 404


class Visitors(Clients):
    """They note the statuses that they get. The connection is new for each request, or is kept."""

    def __init__(self, address):
        super().__init__([self.renew, self.renew, self.keep, self.keep])
        self.address, self.statuses = address, collections.Counter()

    def renew(self):
        with Client(self.address) as client:
            self.statuses[client.ask("/").status] += 1

    def keep(self):
        with Client(self.address) as client:
            while not self.ending.is_set():
                self.statuses[client.ask("/").status] += 1


class UpgradeVisitors(Visitors):
    """The former process closes connections."""

    def forgives(self, error):
        return isinstance(error, (ConnectionError, ProtocolError))


@pytest.mark.concurrent
def test_stays_closed_over_reloads(host, flag):
    """Connections that are kept, and new ones, of which each may be the first of a generation in its worker."""
    flag.touch()
    server = host(settings={"Workers": 2, "MaxKeepAliveRequest": 0})
    with Visitors(server.addresses[0]) as visitors:
        for n in range(50):
            reload(server, "the new configuration is in use", n + 1)
    assert not visitors.errors, visitors.errors
    assert set(visitors.statuses) == {503}, visitors.statuses


@pytest.mark.concurrent
def test_stays_closed_over_an_upgrade(host, flag):
    """Connections of the old process and of the new one, which begins before the old one ends."""
    flag.touch()
    server = host(settings={"Workers": 2})
    address, pid = ("127.0.0.1", server.port), None
    try:
        with UpgradeVisitors(address) as visitors:
            server.send_signal(signal.SIGUSR2)
            pid = int(server.wait_log(r"upgrade: process (\d+) serves")[0][1])
            await_true(lambda: server.process.poll() is not None, 60, "the end of the old process")
            with Client(address) as client:
                assert client.ask("/").status == 503
        assert not visitors.errors, visitors.errors
        assert set(visitors.statuses) == {503}, visitors.statuses
        flag.unlink()
        with Client(address) as client:
            await_status(client, 200)
    finally:
        if pid:
            os.kill(pid, signal.SIGTERM)
            await_true(lambda: not is_alive(pid), 60, "the end of the new process")
            server.finished = True


def test_a_reload_that_cannot_tell(host, flag):
    """It is refused, and the host stays as it is."""
    flag.touch()
    server = host()
    with server.connect() as client:
        assert client.ask("/").status == 503
        flag.unlink()
        flag.symlink_to(flag)
        reload(server, "it cannot be told whether this file exists: Too many levels of symbolic links")
        assert client.ask("/").status == 503


@pytest.mark.concurrent
def test_many_ask_at_once(host, flag):
    """Clients that leave while their request waits, others that stay, several workers, and a flag that changes."""
    server = host(settings={"Workers": 3})

    def visit():
        with server.connect() as client:
            client.send(request("/") * 3)
            for _ in range(2):
                assert client.response().status in (200, 503)
        visitors.ending.wait(0.003)

    visitors = Clients([visit] * 4)
    with visitors, server.connect() as client:
        for _ in range(2):
            flag.touch()
            await_status(client, 503)
            flag.unlink()
            await_status(client, 200)
    assert not visitors.errors, visitors.errors


def test_by_path_and_for_all_hosts(serve, tmp_path):
    """The first section that matches a path is used, even if its file does not exist."""
    flags = {name: tmp_path / name for name in ("all", "part", "own")}
    rule = "[MAINTENANCE]\n    Match {}\n    FlagFile {}\n    Text {}\n"
    monkey = section("SERVER", {"Listen": "127.0.0.1:0", "MaxKeepAliveRequest": 0, "KeepAliveTimeout": "60s"})
    monkey += rule.format("/", flags["all"], "all")
    root = tmp_path / "server0" / "root"
    default = section("HOST", {"DocumentRoot": root}) + rule.format("/assets", flags["part"], "part")
    own = section("HOST", {"DocumentRoot": root, "ServerName": "own"}) + rule.format("/", flags["own"], "own")
    config = {"monkey.conf": monkey, "sites/default": default, "sites/own": own}
    client = serve(files=FILES, config=config).connect()

    def bodies():
        answers = [client.ask(path, host=host) for host in ("x", "own") for path in ("/", "/assets/logo.svg")]
        return [answer.body.decode().strip() for answer in answers]

    assert bodies() == ["site", "<svg/>", "site", "<svg/>"]
    flags["all"].touch()
    await_true(lambda: bodies()[0] == "all", 30)
    assert bodies() == ["all", "<svg/>", "site", "<svg/>"]
    flags["part"].touch()
    flags["own"].touch()
    await_true(lambda: bodies() == ["all", "part", "own", "own"], 30)
    flags["part"].unlink()
    await_true(lambda: bodies() == ["all", "<svg/>", "own", "own"], 30)


@pytest.mark.parametrize(
    "rows, message",
    [
        ("    Text closed\n", '"FlagFile", which must be set'),
        ("    FlagFile ../circle\n", "default:5:14: error: it cannot be told whether this file exists: "),
        ('    FlagFile ""\n', 'default:5:15: error: "FlagFile": the path of a file is needed'),
        ("    FlagFile flag\n    Page nowhere.html\n", "default:6:10: error: .*cannot be read: No such file"),
        ("    FlagFile flag\n    Page .\n", "default:6:10: error: .*the file is not a regular file"),
        ("    FlagFile flag\n    Page /dev/zero\n", "default:6:10: error: .*the file is not a regular file"),
        ("    FlagFile flag\n    Page ../large.html\n", "default:6:10: error: .*the file has more than 65536 bytes"),
        ("    FlagFile flag\n    Except a/b\n", "default:6:12: error: .*starts with one"),
        ("    FlagFile flag\n    RetryAfter 10ms\n", "default:6:16: error: "),
        (
            "    FlagFile ../a\n[MAINTENANCE]\n    FlagFile ../b\n    Match /x\n",
            "default:8:11: error: .*can never match",
        ),
    ],
)
def test_mistakes(host_conf, rows, message):
    folder = host_conf("[MAINTENANCE]\n" + rows, FILES)
    (folder / "large.html").write_bytes(b"x" * 65537)
    (folder / "circle").symlink_to("circle")
    result = run("-c", folder, "-t")
    assert result.returncode == 1
    assert re.search(message, result.stderr), result.stderr
