# SPDX-License-Identifier: Apache-2.0
"""The hooks of a plugin: their order, their pairs, and what happens if they fail."""

import re
import signal

import pytest

from harness import build
from harness.content import HELLO, populate
from harness.server import Server, await_true, run, section, write_config

pytestmark = [
    pytest.mark.concurrent,
    build.needs_modules,
]


class Ledger:
    def __init__(self, folder, root):
        self.folder, self.root, self.reloads, self.server = folder, root, 0, None

    def write(self, name="first", fail=None, workers=1, load=True):
        keys = {"Name": name, **({"Fail": fail} if fail else {})}
        plugins = ["liana", build.MODULES / "ledger.so", "static"] if load else ["liana", "static"]
        write_config(
            self.folder,
            self.root,
            {"Workers": workers},
            files={"plugins.load": section("PLUGINS", {"Load": plugins})},
        )
        with open(self.folder / "monkey.conf", "a") as file:
            file.write(section("LEDGER", keys) if load else "")
        return self

    def start(self):
        self.server = Server("-c", self.folder)
        return self.server

    def reload(self, word="is in use"):
        self.server.send_signal(signal.SIGHUP)
        self.reloads += 1
        self.server.wait_log("the new configuration", self.reloads)
        assert word in self.server.log.splitlines()[-1] or word in self.server.log

    def moments(self):
        return re.findall(r"ledger: (.+)$", self.server.log, re.M)

    def await_moment(self, text, count=1):
        await_true(lambda: self.moments().count(text) >= count, 30, text)


@pytest.fixture
def ledger(tmp_path):
    one = Ledger(tmp_path / "conf", populate(tmp_path / "root", {"hello.txt": HELLO, "large": bytes(20_000_000)}))
    yield one
    if one.server:
        one.server.kill()
        assert not {"a state that is not its own", "one too many"} & {m.split(" ", 1)[-1] for m in one.moments()}


def test_from_start_to_stop(ledger):
    server = ledger.write().start()
    with server.connect() as client:
        client.ask("/hello.txt")
    server.stop()
    assert ledger.moments() == [
        "start",
        "first generation_start",
        "first host_start",
        "first worker_start",
        "first worker_serve",
        "first on_request",
        "first on_done",
        "first worker_stop",
        "first host_stop",
        "first generation_stop",
        "1 requests",  # counted in the state of start
        "stop",
    ]


def test_from_one_generation_to_the_next(ledger):
    server = ledger.write().start()
    ledger.write("second")
    ledger.reload()
    ledger.await_moment("first generation_stop")
    with server.connect() as client:
        client.ask("/hello.txt")
    server.stop()
    moments = ledger.moments()
    assert moments[-1] == "stop" and moments.count("stop") == moments.count("start") == 1
    for name in ("first", "second"):
        own = [moment.split()[1] for moment in moments if moment.startswith(name) and " on_" not in moment]
        starts = ["generation_start", "host_start", "worker_start", "worker_serve"]
        assert own == [*starts, "worker_stop", "host_stop", "generation_stop"]
    assert "second on_request" in moments and "first on_request" not in moments
    assert moments.index("second worker_start") < moments.index("first worker_stop")


def test_a_plugin_that_goes(ledger):
    ledger.write().start()
    ledger.write(load=False)
    ledger.reload()
    ledger.await_moment("stop")
    assert [moment for moment in ledger.moments() if "requests" not in moment][-4:] == [
        "first worker_stop",
        "first host_stop",
        "first generation_stop",
        "stop",
    ]
    ledger.write("again")
    ledger.reload()
    assert ledger.moments().count("start") == 2
    ledger.server.stop()


@pytest.mark.parametrize("hook", ["generation_start", "host_start"])
def test_a_start_that_fails(ledger, hook):
    result = run("-c", ledger.write(fail=hook).folder, "-t")
    assert result.returncode == 1
    assert 'the plugin "ledger" cannot start: Input/output error' in result.stderr


def test_a_worker_that_cannot_start(ledger):
    result = run("-c", ledger.write(fail="worker_start", workers=3).folder)
    assert result.returncode == 3
    assert "the plugin ledger cannot start: Input/output error" in result.stderr


@pytest.mark.parametrize("hook", ["generation_start", "host_start", "worker_start", '"worker 1"'])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_reload_that_fails(ledger, hook, workers):
    """Whatever had started under the new configuration is stopped again; the old one continues."""
    server = ledger.write(workers=2).start()
    ledger.write("second", fail=hook, workers=workers)
    ledger.reload("is in use" if (hook, workers) == ('"worker 1"', 1) else "cannot be used")
    with server.connect() as client:
        assert client.ask("/hello.txt").status == 200
    ledger.write("third", workers=2)
    ledger.reload()
    server.stop()
    moments = ledger.moments()
    assert {"first on_done", "second on_done"} & set(moments)
    for name in ("first", "second", "third"):
        for what in ("generation", "host", "worker"):
            starts, stops = moments.count(f"{name} {what}_start"), moments.count(f"{name} {what}_stop")
            failed = name == "second" and hook.strip('"').startswith(what)
            assert starts == stops or (failed and starts > stops), f"{name} {what}: {moments}"
    serves = [moments.count(f"{name} worker_serve") for name in ("first", "second", "third")]
    assert serves[::2] == [2, 2] and bool(serves[1]) == ((hook, workers) == ('"worker 1"', 1)), moments


def test_a_check_is_known(ledger):
    """Hooks can tell --test from a start."""
    ledger.write(fail="check")
    assert run("-c", ledger.folder, "-t").returncode == 1
    assert run("-c", ledger.folder, "--show-config").returncode == 1
    with ledger.start().connect() as client:
        assert client.ask("/hello.txt").status == 200
    ledger.server.stop()


# ── worker_retire ──


def hold_exchange(server):
    """A client in the middle of a response."""
    client = server.connect()
    client.send(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
    client.exactly(1000)
    return client


def test_a_worker_with_exchanges_is_retired(ledger):
    server = ledger.write().start()
    client = hold_exchange(server)
    for name in ("second", "third"):
        ledger.write(name)
        ledger.reload()
    assert ledger.moments().count("first worker_retire") == 1
    assert "first worker_stop" not in ledger.moments()
    ledger.await_moment("second worker_stop")  # nothing has held it
    assert "second worker_retire" not in ledger.moments()
    client.reset()
    ledger.await_moment("first generation_stop")
    server.stop()
    moments = ledger.moments()
    assert moments.index("second worker_start") < moments.index("second worker_serve")
    assert moments.index("second worker_serve") < moments.index("first worker_retire")
    assert moments.index("first worker_retire") < moments.index("first on_done") < moments.index("first worker_stop")
    assert moments.count("first worker_retire") == 1


def test_a_worker_whose_thread_ends_is_retired(ledger):
    """After a reload with fewer workers, and at the stop."""
    server = ledger.write(workers=2).start()
    clients = [hold_exchange(server) for _ in range(16)]  # both workers have some
    ledger.write("second", workers=1)
    ledger.reload()
    ledger.await_moment("first worker_retire", 2)
    for client in clients:
        client.reset()
    ledger.await_moment("first generation_stop")
    client = hold_exchange(server)
    server.send_signal(signal.SIGTERM)
    ledger.await_moment("second worker_retire")
    client.reset()
    server.stop()
    assert ledger.moments().count("first worker_retire") == 2
    assert ledger.moments().count("second worker_retire") == 1


def test_every_worker_has_its_own(ledger):
    server = ledger.write(workers=4).start()
    server.stop()
    assert ledger.moments().count("first worker_start") == ledger.moments().count("first worker_stop") == 4
