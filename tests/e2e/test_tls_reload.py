# SPDX-License-Identifier: Apache-2.0
"""Hosts with other certificates and other rules for clients, under one server: what one asks does not hold for another,
and a reload reads only the files that have changed."""

import contextlib
import datetime
import itertools
import re
import shutil
import signal
import ssl
import subprocess

import pytest

from harness import build
from harness.caching import SETTLED_SECONDS, is_traced
from harness.certificates import Authority, TlsClient
from harness.content import populate
from harness.server import await_true, section
from harness.services import reload

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no tls"),
]
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
AGAIN = "certificates of the host {}: loaded again"
LIMITS = {name: "60s" for name in ("KeepAliveTimeout", "HandshakeTimeout")}


def replace(path, source):
    """As ACME clients do."""
    new = path.with_name(path.name + "~")
    shutil.copy(source, new)
    new.rename(path)


class Hosts:
    """A server of hosts {name: keys of [TLS]} with a certificate each; the first one is the default host."""

    def __init__(self, serve, ca, folder, clock, hosts):
        self.ca, self.clock = ca, clock
        self.pairs = {name: ca.make(name, name) for name in hosts}
        root = populate(folder / "root", {"hello.txt": b"Hello, world\n"})
        files = {}
        for name, keys in hosts.items():
            text = section("HOST", {"ServerName": name, "DocumentRoot": root})
            pair = self.pairs[name] = keys.pop("pair", self.pairs[name])
            files[f"sites/{name}" if files else "sites/default"] = text + section("TLS", pair.keys(**keys))
        self.server = serve({"Listen": "127.0.0.1:0 tls", "Workers": 2, **LIMITS}, config=files)

    def connect(self, name, context, session=None):
        return TlsClient(self.server.addresses[0], context, name, session=session)

    def ask(self, name, context, session=None):
        """The session afterwards and whether it was resumed; None, if the handshake or the request has failed."""
        with contextlib.suppress(ssl.SSLError, ConnectionError), self.connect(name, context, session) as client:
            assert client.ask("/hello.txt", host=name).status == 200
            assert client.fingerprint == self.pairs[name].fingerprint
            return client.sock.session, client.sock.session_reused
        return None

    def settle(self):
        """Lets files be old enough to be found again, and a reload read them then."""
        self.clock.advance(SETTLED_SECONDS)
        reload(self.server)


# ── which clients a host takes, and which sessions it resumes ──


@pytest.fixture
def asking(serve, ca, clock, tmp_path):
    """A host that asks for nothing, and two that require certificates of other authorities."""
    authorities = {name: Authority(tmp_path / name, name) for name in ("one", "two", "three")}
    ask = {}
    for name in ("one", "two"):
        shutil.copy(authorities[name].cert, tmp_path / f"{name}.ca")
        ask[name] = {"ClientCertificate": "Required", "ClientCA": tmp_path / f"{name}.ca"}
    hosts = {"all.test": {}, "one.test": ask["one"], "two.test": {**ask["two"], "Profile": "modern"}}
    made = Hosts(serve, ca, tmp_path, clock, hosts)
    made.authorities = authorities
    made.clients = {name: one.make(f"client-{name}", use="clientAuth") for name, one in authorities.items()}
    made.takes = {"all.test": [None, "one", "two", "three"], "one.test": ["one"], "two.test": ["two"]}
    return made


def make_contexts(asking):
    """{(client, version): context}"""
    return {
        (name, version): asking.ca.context(
            pair=name and asking.clients[name], minimum_version=version, maximum_version=version
        )
        for name in (None, "one", "two", "three")
        for version in (V12, V13)
    }


def is_taken(asking, host, client, version):
    return client in asking.takes[host] and (version == V13 or host != "two.test")


def check_hosts(asking, contexts):
    """Every client at every host, each with the sessions of all hosts. Returns {(client, version, host): session}."""
    sessions = {}
    for (client, version), context in contexts.items():
        for host in asking.takes:
            got = asking.ask(host, context)
            assert bool(got) == is_taken(asking, host, client, version), (host, client, version)
            if got:
                sessions[client, version, host] = got[0]
    for (client, version, host), session in sessions.items():
        for other in asking.takes:
            got = asking.ask(other, contexts[client, version], session)
            assert bool(got) == is_taken(asking, other, client, version), (host, other, client, version)
            assert not got or got[1] == (other == host), (host, other, client, version)
    return sessions


def check_sessions(asking, contexts, sessions, changed=()):
    """Those of before are resumed where nothing has changed."""
    for (client, version, host), session in sessions.items():
        got = asking.ask(host, contexts[client, version], session)
        if host not in changed:
            assert got and got[1], (host, client, version)
        else:
            assert not got or not got[1], (host, client, version)


def test_hosts_that_ask_for_other_authorities(asking):
    contexts = make_contexts(asking)
    sessions = check_hosts(asking, contexts)
    for _ in range(2):  # the second one finds what the first one has read
        asking.settle()
        check_sessions(asking, contexts, sessions)
        sessions = check_hosts(asking, contexts)
    replace(asking.authorities["one"].folder.parent / "one.ca", asking.authorities["three"].cert)
    asking.server.wait_log(AGAIN.format("one.test"))
    asking.takes["one.test"] = ["three"]
    check_sessions(asking, contexts, sessions, changed=["one.test"])
    sessions = check_hosts(asking, contexts)
    asking.settle()
    check_sessions(asking, contexts, sessions)
    check_hosts(asking, contexts)


@pytest.mark.parametrize("order", itertools.permutations(["all.test", "one.test", "two.test"]))
def test_the_order_of_connections(asking, order):
    """Connections to all hosts are open at the same time, and then another client comes to each of them."""
    contexts = {name: asking.ca.context(pair=asking.clients[name]) for name in ("one", "two")}
    with contextlib.ExitStack() as stack:
        for host in order:
            name = "two" if host == "two.test" else "one"
            client = stack.enter_context(asking.connect(host, contexts[name]))
            assert client.ask("/hello.txt", host=host).status == 200
            stranger = asking.ask(host, contexts["one" if name == "two" else "two"])
            assert bool(stranger) == (host == "all.test")


# ── what a reload reads ──


class Opens:
    """strace: which of some files the server opens."""

    def __init__(self, server, path):
        command = ["strace", "-f", "-qq", "-e", "trace=open,openat,openat2", "-o", path, "-p", str(server.pid)]
        self.path, self.process = path, subprocess.Popen(command, stderr=subprocess.PIPE)
        await_true(lambda: self.process.poll() is not None or is_traced(server), 30, "strace")
        assert self.process.poll() is None, self.process.stderr.read()

    def end(self, folder):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        self.process.stderr.close()
        return sorted(set(re.findall(rf'"{folder}/([^"]+)"', self.path.read_text())))


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_only_changed_files_are_opened(serve, clock, tmp_path):
    """By a reload or when they change, whichever comes first; the other one finds what was read."""
    ca, count = Authority(tmp_path / "pki"), itertools.count()
    shutil.copy(ca.cert, tmp_path / "pki" / "clients")
    asks = {"ClientCertificate": "Optional", "ClientCA": tmp_path / "pki" / "clients"}
    hosts = Hosts(serve, ca, tmp_path, clock, {"one.test": {}, "two.test": asks, "three.test": {}})
    pair, new = hosts.pairs["one.test"], ca.make("new", "one.test")

    def reads(expected, change=lambda: None):
        trace = Opens(hosts.server, tmp_path / f"trace{next(count)}")
        change()
        reload(hosts.server)
        assert trace.end(tmp_path / "pki") == sorted(expected)

    def renew():
        replace(pair.key, new.key)
        replace(pair.cert, new.cert)
        hosts.server.wait_log(AGAIN.format("one.test"))

    every = [f"{name}.test.{kind}" for name in ("one", "two", "three") for kind in ("key", "pem")]
    clock.advance(SETTLED_SECONDS)
    reads([*every, "clients"])  # at the start they were too new to be kept
    reads([])
    reads(["one.test.key", "one.test.pem"], renew)
    reads([])
    assert all(hosts.ask(name, ca.context()) for name in hosts.pairs)


def test_a_key_that_others_may_read(serve, ca, clock, tmp_path):
    """Its mode counts, though its content is known."""
    hosts = Hosts(serve, ca, tmp_path, clock, {"one.test": {}, "two.test": {"pair": ca.make("open", "two.test")}})
    key = hosts.pairs["two.test"].key
    hosts.settle()
    reload(hosts.server)
    key.chmod(0o644)
    lines = reload(hosts.server, accepted=False)
    assert any(f"the private key {key} is open to others" in line for line in lines), lines
    key.chmod(0o600)
    reload(hosts.server)
    key.rename(key.with_suffix(".away"))
    lines = reload(hosts.server, accepted=False)
    assert any(f"the private key {key} cannot be read" in line for line in lines), lines


# ── warnings ──


def format_time(days):
    return (datetime.datetime.utcnow() + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")


def test_a_warning_is_given_again(serve, ca, clock, tmp_path):
    hosts = Hosts(serve, ca, tmp_path, clock, {"one.test": {}, "two.test": {"pair": ca.make("wrong", "other.test")}})
    warning = "does not cover the ServerName two.test"
    hosts.server.wait_log(warning)
    clock.advance(SETTLED_SECONDS)
    for count in range(2, 5):
        reload(hosts.server)
        assert hosts.server.log.count(warning) == count


@pytest.mark.parametrize("what", ["the certificate", "the OCSP response"])
def test_a_warning_that_comes_with_time(serve, ca, clock, tmp_path, what):
    """A reload that opens no file says it as well as one that reads all."""
    pair, warning = ca.make("ends", "one.test", end=format_time(1)), r"the certificate \S+ has expired"
    more = {"pair": pair}
    if what == "the OCSP response":
        pair, warning = ca.make("stapled", "one.test"), r"the OCSP response \S+ is out of date"
        more = {"pair": pair, "OCSPFile": ca.staple(pair, format_time(1), begin=format_time(-1))}
    hosts = Hosts(serve, ca, tmp_path, clock, {"one.test": more})
    hosts.settle()
    reload(hosts.server)
    assert not re.search(warning, hosts.server.log)
    clock.advance(2 * 86400)
    for _ in range(2):
        lines = reload(hosts.server)
        assert len(re.findall(warning, "\n".join(lines))) == 1, lines
