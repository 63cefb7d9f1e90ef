# SPDX-License-Identifier: Apache-2.0
"""Hosts that answer only at some listeners (Listener in [HOST])."""

import re
import signal

import pytest

from harness import build
from harness.certificates import TlsClient
from harness.content import populate
from harness.h2 import H2Client
from harness.protocol import Client
from harness.server import run, section, write_config

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(build.PRESET == "small", reason="small builds have no Listener in [HOST]"),
]
A, B, C = "127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0"
SERVER = {"Listen": [A, B, C]}

# a file in sites/ to names and listeners; each host's /who has the name of the file
SITES = {
    "default": ("localhost", None),
    "one": ("site.test", [A]),
    "two": ("site.test *.site.test", [B, C]),
    "three": ("open.test", None),
    "zeta": ("zeta.test", [C]),
}

FOUND = {  # names to the hosts at A, B and C; the first that is bound answers for names that no host has
    "localhost": ("default", "default", "default"),
    "site.test": ("one", "two", "two"),
    "www.site.test": ("one", "two", "two"),
    "open.test": ("three", "three", "three"),
    "zeta.test": ("one", "two", "zeta"),
    "nowhere.test": ("one", "two", "two"),
    "": ("one", "two", "two"),
}


def write_sites(folder, sites, tls=None):
    files = {}
    for name, (names, listeners) in sites.items():
        keys = {"DocumentRoot": populate(folder / f"root-{name}", {"who": name.encode()})}
        keys.update({"ServerName": names} if names else {})
        keys.update({"Listener": listeners} if listeners else {})
        files[f"sites/{name}"] = section("HOST", keys) + (section("TLS", tls[name]) if tls and name in tls else "")
    return files


@pytest.fixture
def start(serve):
    def run_server(settings, config):
        server = serve(settings, config=config)
        server.await_listeners(len(settings["Listen"]))
        return server

    return run_server


def ask(client, host):
    answer = client.ask("/who", host=host)
    assert answer.status == 200, answer
    return answer.body.decode()


def test_names_by_listener(start, tmp_path):
    server = start(SERVER, config=write_sites(tmp_path, SITES))
    for i, address in enumerate(server.addresses):
        with Client(address) as client:
            for name, found in FOUND.items():
                assert ask(client, name) == found[i], (name, i)


@pytest.mark.skipif(not build.speaks("h2"), reason="no HTTP/2")
def test_http2(start, tmp_path):
    server = start(SERVER, config=write_sites(tmp_path, SITES))
    for i, address in enumerate(server.addresses):
        client = H2Client(address)
        server.clients.append(client)
        for name, found in FOUND.items():
            if name:
                answer = client.ask("/who", authority=name)
                assert (answer.status, answer.body.decode()) == (200, found[i]), (name, i)


def test_the_default_host_may_be_bound(start, tmp_path):
    """It comes before the others at its listener; elsewhere the first host that is not bound answers."""
    sites = {"default": (None, [B]), "a": ("a.test", [B]), "m": ("m.test", None), "n": ("n.test", None)}
    server = start({"Listen": [A, B]}, config=write_sites(tmp_path, sites))
    for i, found in enumerate(("m", "default")):
        with Client(server.addresses[i]) as client:
            assert ask(client, "nowhere.test") == found


def test_a_connection_meets_a_reload(start, tmp_path):
    """It stays at its listener; what is bound there is as the new configuration says."""
    server = start(SERVER, config=write_sites(tmp_path, SITES))
    server.baseline += 2  # of the loop that waits for old generations
    with Client(server.addresses[0]) as client:
        assert ask(client, "site.test") == "one"
        swapped = {**SITES, "one": ("site.test", [C]), "two": ("site.test", [A])}
        for name, text in write_sites(tmp_path, swapped).items():
            (server.conf / name).write_text(text)
        server.send_signal(signal.SIGHUP)
        server.wait_log("is not in use any more")
        assert ask(client, "site.test") == "two"
    with Client(server.addresses[2]) as client:
        assert ask(client, "site.test") == "one"


# ── certificates ──


@pytest.mark.skipif(not build.speaks("tls"), reason="no TLS")
def test_certificates_by_listener(start, ca, tmp_path):
    """The certificate for a name (SNI) is that of the host at this listener."""
    pairs = {name: ca.make(f"bound-{name}", *SITES[name][0].split()) for name in SITES}
    server = start(
        {"Listen": [f"{address} tls" for address in (A, B, C)]},
        config=write_sites(tmp_path, SITES, {name: pair.keys() for name, pair in pairs.items()}),
    )
    for i, address in enumerate(server.addresses):
        for name, found in FOUND.items():
            with TlsClient(address, ca.context(), name or None) as client:
                assert client.fingerprint == pairs[found[i]].fingerprint, (name, i)
                assert ask(client, name) == found[i]
    with TlsClient(server.addresses[0], ca.context(), "localhost") as client:
        assert client.ask("/who", host="site.test").status == 421  # as for any other host


# ── what is wrong ──


def check(folder, sites, listen=(A, B)):
    conf = write_config(folder / "conf", folder, {"Listen": list(listen)}, files=write_sites(folder, sites))
    return run("-c", conf, "-t")


def test_an_unknown_listener(tmp_path):
    result = check(tmp_path, {"default": (None, None), "one": ("one.test", [A, "127.0.0.22:0"])})
    assert result.returncode == 1
    problem = r'sites/one:5:\d+: error: there is no line "Listen 127\.0\.0\.22:0"; did you mean 127\.0\.0\.2:0\?'
    assert re.search(problem, result.stderr), result.stderr


def test_a_listener_without_a_host(tmp_path):
    result = check(tmp_path, {"default": (None, [A]), "one": ("one.test", [A])})
    assert result.returncode == 1
    assert re.search(r"monkey\.conf:3:\d+: error: no host answers at this listener", result.stderr), result.stderr


def test_listeners_without_a_line(tmp_path):
    """The server listens at its default: what names another listener is the mistake."""
    result = check(tmp_path, {"default": (None, [A]), "one": ("one.test", [A])}, [])
    found = re.findall(r"^\S+:\d+:\d+: error: there is no line|error:", result.stderr, re.MULTILINE)
    assert result.returncode == 1 and len(found) == 2 and "error:" not in found, result.stderr


@pytest.mark.parametrize("first, second", [([A], [A, B]), ([A, B], [B]), (None, [B]), ([B], None)])
def test_a_name_twice_at_one_listener(tmp_path, first, second):
    result = check(tmp_path, {"default": (None, None), "one": ("x.test", first), "two": ("x.test", second)})
    assert result.returncode == 1
    assert len(re.findall(r'two:3:\d+: error: ServerName "x\.test" is in \S+/sites/one:3 already', result.stderr)) == 1
    assert result.stderr.count("error:") == 1, result.stderr


def test_an_unreachable_host(tmp_path):
    """Without a name it must be the default of a listener."""
    result = check(tmp_path, {"default": (None, None), "one": (None, [B]), "two": (None, [B])})
    assert result.returncode == 0
    assert re.search(r"sites/two:1:\d+: warning: no request can reach this host", result.stderr), result.stderr
    assert "sites/one" not in result.stderr
