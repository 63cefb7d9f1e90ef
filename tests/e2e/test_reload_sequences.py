# SPDX-License-Identifier: Apache-2.0
"""Random sequences of configurations: after each reload the server answers as one that has just started with the same
configuration, has the same metrics, and no descriptor or thread more. MONKEY_SEED chooses the sequence."""

import gzip
import os
import random
import re
import signal

import pytest

from harness import build
from harness.client import Client
from harness.content import populate
from harness.metrics import scrape
from harness.server import Server, await_true, free_port, section, write_config

NEEDED = ("status", "headers", "redirect", "mandril", "logger")
pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(
        not all((build.PLUGINS / f"{name}.so").exists() for name in NEEDED),
        reason="this preset has not all plugins",
    ),
]
FEW, MANY = 5, 20
HOSTS = ("a.example", "b.example", "c.example")
PATHS = ("/f.txt", "/d/", "/d", "/moved", "/denied/x", "/none", "/large")
# What the first reload of a process makes, and keeps: its control thread, with two descriptors.
CONTROL_THREADS, CONTROL_DESCRIPTORS = 1, 2
# Headers that differ between two servers with the same configuration, or with time.
VOLATILE = ("date", "x-request-id", "age", "expires")
NONCE = re.compile(r"nonce[-=]\"?[\w+/=-]+")


class State:
    """A configuration as choices, each of which a step may change."""

    def __init__(self, rng):
        self.rng = rng
        self.listeners, self.hosts, self.sections = 1, {HOSTS[0]}, set()
        self.log, self.workers, self.body, self.server_log = False, 1, "1M", "info"
        self.most_workers = self.workers

    def step(self):
        change = self.rng.choice(("listeners", "hosts", "sections", "sections", "log", "workers", "body", "level"))
        if change == "listeners":
            self.listeners = self.rng.randint(1, 3)
        elif change == "hosts":
            self.hosts ^= {self.rng.choice(HOSTS)}
        elif change == "sections":
            self.sections ^= {self.rng.choice(("headers", "redirect", "rules", "compress", "listing", "tries"))}
        elif change == "log":
            self.log = not self.log
        elif change == "workers":
            self.workers = self.rng.randint(1, 3)
            self.most_workers = max(self.most_workers, self.workers)
        elif change == "body":
            self.body = self.rng.choice(("1K", "2K", "1M"))
        else:
            self.server_log = self.rng.choice(("info", "debug"))
        return change

    def host_text(self, name, root, log):
        text = section(
            "HOST",
            {
                "ServerName": name,
                "DocumentRoot": root,
                **({"TryFiles": "$path /f.txt"} if "tries" in self.sections else {}),
            },
        )
        if "headers" in self.sections:
            text += section("HEADERS", {"Set": f"X-Host {name}", "Expires": "1h"})
        if "redirect" in self.sections:
            text += section("REDIRECT", {"Match": "/moved", "To": "/f.txt"})
        if "rules" in self.sections:
            text += section("RULES", {"Match": "/denied", "Action": "deny 410"})
        if "compress" in self.sections and (build.PLUGINS / "compress.so").exists():
            text += section("COMPRESS", {"Codings": "gzip"})
        if "listing" in self.sections and (build.PLUGINS / "dirlisting.so").exists():
            text += section("DIRLISTING", {"Enabled": "On"})
        return text + (section("LOGGER", {"AccessLog": log}) if self.log else "")

    def write(self, folder, root, ports):
        settings = {
            "Listen": [f"127.0.0.1:{port}" for port in ports[: self.listeners]],
            "Workers": self.workers,
            "MaxBodySize": self.body,
            "LogLevel": self.server_log,
        }
        files = {f"sites/{name}": self.host_text(name, root, folder / f"{name}.log") for name in self.hosts}
        files["sites/default"] = self.host_text("localhost", root, folder / "default.log")
        for name in HOSTS:
            if name not in self.hosts:
                (folder / "conf/sites" / name).unlink(missing_ok=True)
        files["plugins/status/status.conf"] = section("STATUS", {"Enabled": "On"})
        return write_config(folder / "conf", root, settings, files=files)


def answer_of(client, path, host, **rest):
    got = client.ask(path, "Accept-Encoding: gzip", host=host, **rest)
    volatile = VOLATILE + (("etag",) if path == "/d/" else ())  # of a list, which has a key of the process
    fields = sorted((key.lower(), value) for key, value in got.fields if key.lower() not in volatile)
    return got.status, fields, got.body


def answers(ports):
    """What each listener says, for each host and path; None: it is closed."""
    found = {}
    for nth, port in enumerate(ports):
        try:
            with Client(("127.0.0.1", port)) as client:
                for host in (*HOSTS, "localhost", "other.example"):
                    for path in PATHS:
                        found[nth, host, path] = without_port(answer_of(client, path, host), port)
        except ConnectionRefusedError:
            found[nth] = None
            continue
        with Client(("127.0.0.1", port)) as client:
            client.send(b"POST /f.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1500\r\n\r\n" + b"y" * 1500)
            found[nth, "post"] = client.response("POST").status
    return found


def without_port(answer, port):
    """The answer without what differs between two servers: the port, nonces, and what gzip made of them."""
    status, fields, body = answer
    fields = [(key, NONCE.sub("nonce", value.replace(str(port), "PORT"))) for key, value in fields]
    if ("content-encoding", "gzip") in fields:
        body = gzip.decompress(body)
        fields = [field for field in fields if field[0] != "content-length"]
    return status, fields, NONCE.sub("nonce", body.decode("latin-1").replace(str(port), "PORT"))


def shorten(different):
    """The lines that differ, of the first answer that does."""
    key, (one, other) = next(iter(different.items()))
    if one is None or other is None or isinstance(one, int):
        return key, one, other
    rows = [list(map(str, answer[1])) + answer[2].splitlines() for answer in (one, other)]
    return key, one[0], other[0], [pair for pair in zip(*rows) if pair[0] != pair[1]][:3]


def names_of_metrics(port):
    with Client(("127.0.0.1", port)) as client:
        return {name for name, _ in scrape(client)}


def hosts_of_metrics(port):
    """The hosts that have counters."""
    with Client(("127.0.0.1", port)) as client:
        return {dict(labels).get("host") for _, labels in scrape(client)} - {None}


def run_sequence(folder, seed, steps):
    rng = random.Random(seed)
    root = populate(folder / "root", {"f.txt": b"f\n", "d/x": b"x", "large": b"x" * 3000, "denied/x": b"secret"})
    state, ports, history = State(rng), [free_port() for _ in range(3)], []
    seen = set(), set()
    (folder / "one").mkdir()
    server = Server("-c", state.write(folder / "one", root, ports), listeners=state.listeners)
    try:
        for number in range(steps):
            history.append(state.step())
            state.write(folder / "one", root, ports)
            server.send_signal(signal.SIGHUP)
            what = f"seed {seed}: {history}"
            compare(server, folder / f"fresh{number}", root, state, ports, number + 1, what, *seen)
    finally:
        server.kill()


def has_reloaded(server, port, times):
    with Client(("127.0.0.1", port)) as client:
        return scrape(client).get(("monkey_generation", frozenset()), 0) == times + 1


def count_threads(server):
    """Without those that read files, of which there are as many as were needed at once."""
    return sum(not name.endswith(": disk") for name in server.thread_names().values())


def compare(server, folder, root, state, ports, reloads, what, seen, seen_hosts):
    await_true(lambda: has_reloaded(server, ports[0], reloads), what=f"{what}: the reload")
    folder.mkdir()
    others = [free_port() for _ in range(3)]
    fresh = Server("-c", state.write(folder, root, others), listeners=state.listeners)
    try:
        ours, theirs = answers(ports), answers(others)
        different = {key: (ours.get(key), theirs.get(key)) for key in ours.keys() | theirs.keys()
                     if ours.get(key) != theirs.get(key)}
        assert not different, (what, shorten(different))
        names = names_of_metrics(others[0])
        seen |= names  # counters of a plugin stay when its last section goes, as those of a host do
        assert names <= names_of_metrics(ports[0]) <= seen, (what, names_of_metrics(ports[0]) ^ names)
        hosts = hosts_of_metrics(others[0])
        seen_hosts |= hosts
        assert hosts <= hosts_of_metrics(ports[0]) <= seen_hosts, (what, hosts_of_metrics(ports[0]) ^ hosts)

        def has_no_more():
            ours, theirs = count_threads(server), count_threads(fresh)
            # the sockets of workers that have ended stay open, and the others accept what comes to them
            kept = (state.most_workers - state.workers) * state.listeners
            has_no_descriptor_more = server.descriptors() <= fresh.descriptors() + CONTROL_DESCRIPTORS + kept
            return ours <= theirs + CONTROL_THREADS and has_no_descriptor_more

        try:
            await_true(has_no_more, 20)
        except AssertionError:
            pytest.fail(f"{what}: {server.open_files()} {fresh.open_files()} {server.thread_names()}")
    finally:
        fresh.kill()


def test_a_sequence(tmp_path):
    seed = int(os.environ.get("MONKEY_SEED") or 1)
    run_sequence(tmp_path, seed, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_sequences(tmp_path, seed):
    run_sequence(tmp_path, seed, MANY)
