# SPDX-License-Identifier: Apache-2.0
"""[HANDLERS]: which plugin answers for which paths; and limits that only one host has."""

import re
import select

import pytest

from harness import build
from harness.content import populate
from harness.messages import request
from harness.server import await_true, run, section, write_config

FILES = {"a.txt": b"a\n", "api/b.txt": b"b\n", "probe/now": b"a file\n"}


@pytest.fixture
def routed(serve, tmp_path):
    """A server whose default host has these lines in [HANDLERS]."""

    def start(*lines, host=None):
        root = populate(tmp_path / "files", FILES)
        text = section("HOST", {"DocumentRoot": root, **(host or {})}) + section("HANDLERS", {"Match": list(lines)})
        return serve(root=root, config={"sites/default": text}, program=build.probe())

    return start


def ask(server, path, method="GET", body=b""):
    fields = (f"Content-Length: {len(body)}",) if method == "POST" else ()
    with server.connect() as client:
        client.send(request(path, *fields, method=method) + body)
        return client.response()


@build.needs_probe
@pytest.mark.parametrize(
    "lines, path, method, status, body",
    [
        ((), "/probe/now", "GET", 200, b"at once\n"),  # the first plugin that wants it
        (("/probe static",), "/probe/now", "GET", 200, b"a file\n"),
        (("/probe static",), "/probe/echo", "POST", 405, None),
        (("/probe static",), "/a.txt", "GET", 200, b"a\n"),
        (("*.txt probe",), "/a.txt", "GET", 404, None),  # it is asked alone, and declines
        (("=/a.txt probe", "/ static"), "/api/b.txt", "GET", 200, b"b\n"),
        (("/probe/now static", "/probe probe"), "/probe/now", "GET", 200, b"a file\n"),  # the first line counts
        (("/probe/now static", "/probe probe"), "/probe/echo", "POST", 200, b"x"),
        (("/probe probe",), "/probe/missing", "GET", 404, None),
        (("~^/pro[ab]e/n static",), "/probe/now", "GET", 200, b"a file\n"),
    ],
)
def test_the_plugin_of_a_path(routed, lines, path, method, status, body):
    answer = ask(routed(*lines), path, method, b"x" if method == "POST" else b"")
    assert answer.status == status
    assert body is None or answer.body == body


@build.needs_probe
def test_access_is_asked_all_the_same(routed):
    """A plugin can deny access whichever plugin answers."""
    assert ask(routed("/ static"), "/probe/refused").status == 403
    assert ask(routed("/ static"), "/probe/error").status == 500


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("/x nobody", r'default:5:\d+: error: the plugin "nobody" is not loaded'),
        ("/x liana", r'default:5:\d+: error: the plugin "liana" has no content to answer with'),
        ("/x", r"default:5:\d+: error: .*a pattern for paths and the name of a plugin"),
        ("/x static more", r"default:5:\d+: error: .*a pattern for paths and the name of a plugin"),
        ("x/y static", r"default:5:\d+: error: .*a pattern with slashes starts with one"),
        ("/a static\n    Match =/a/b static", r"default:6:\d+: error: this line can never match: the one for /a "),
        ("~^/(a static", r"default:5:15: error: .*does not compile: .*parenthes"),  # at the fault
        ("/x static\n    Match ~^/y[a static", r"default:6:16: error: .*does not compile: "),
    ],
)
def test_what_is_wrong(host_conf, line, sentence):
    result = run("-c", host_conf(f"[HANDLERS]\n    Match {line}\n", FILES), "-t")
    assert result.returncode == 1
    assert re.search(sentence, result.stderr), result.stderr


# ── limits of a host ──


@pytest.fixture
def limited(serve, tmp_path):
    """Two hosts: the default one is the server's, strict.example has limits of its own."""

    def start(server=None, **limits):
        root = populate(tmp_path / "files", FILES)
        strict = section("HOST", {"ServerName": "strict.example", "DocumentRoot": root, **limits})
        return serve(server, root=root, config={"sites/strict": strict}, program=build.probe())

    return start


HOSTS = ("localhost", "strict.example")


@build.needs_probe
@pytest.mark.parametrize("path", ["/probe/echo", "/probe/collect"])
def test_bodies_of_a_host(limited, path):
    server = limited(MaxBodySize="10")
    for host, status in zip(HOSTS, (200, 413)):
        with server.connect() as client:
            client.send(request(path, "Content-Length: 11", method="POST", host=host) + b"x" * 11)
            assert client.response().status == status


@build.needs_probe
def test_collected_bodies_of_a_host(limited):
    server = limited({"MaxRequestSize": "1"}, MaxRequestSize="2")
    for host, status in zip(HOSTS, (413, 200)):
        with server.connect() as client:
            client.send(request("/probe/collect", "Content-Length: 2000", method="POST", host=host) + b"x" * 2000)
            assert client.response().status == status


@build.needs_probe
def test_waits_of_a_host(limited):
    """The server's limits would end the tests first."""
    server = limited(HandlerTimeout="100ms", BodyTimeout="100ms")
    with server.connect() as client:
        client.send(request("/probe/never", host="strict.example"))
        assert client.response().status == 503
    with server.connect() as client:
        client.send(request("/probe/collect", "Content-Length: 5", method="POST", host="strict.example") + b"x")
        assert client.response().status == 408


@build.needs_probe
def test_bodies_that_are_read_away_by_a_host(limited):
    """More than MaxDiscardSize is not: the answer says close."""
    for server, own, closing in (("64K", "1000B", (False, True)), ("1000B", "64K", (True, False))):
        server = limited({"MaxDiscardSize": server}, MaxDiscardSize=own)
        for host, closes in zip(HOSTS, closing):
            with server.connect() as client:
                client.send(request("/a.txt", "Content-Length: 2000", method="POST", host=host) + b"x" * 2000)
                answer = client.response()
                assert (answer.status, answer.closes) == (405, closes)


@build.needs_probe
def test_readers_of_a_host(limited):
    """SendTimeout: a client that reads nothing from the strict host is cut off; elsewhere it has time."""
    size = 40_000_000
    server = limited({"SendTimeout": "1h"}, SendTimeout="2s")
    before = server.descriptors()
    patient, strict = (server.connect() for _ in HOSTS)
    for client, host in zip((patient, strict), HOSTS):
        client.send(request(f"/probe/stream?{size}", host=host, version="HTTP/1.0"))
        assert client.head().status == 200
    await_true(lambda: server.descriptors() == before + 1, 30, "the end of one connection")
    assert len(patient.rest()) == size
    strict.assert_gone()


@build.needs_probe
def test_slow_bodies_of_a_host(limited):
    """MinBodyRate counts after the first five seconds."""
    server = limited({"MinBodyRate": "0"}, MinBodyRate="1000B")
    patient, strict = server.connect(), server.connect()
    sent = 0
    for client, host in zip((patient, strict), HOSTS):
        client.send(request("/probe/collect", "Content-Length: 10000", method="POST", host=host))
    while not select.select([strict.sock], [], [], 0.05)[0]:
        strict.send_all_you_can(b"x")
        patient.send(b"x")
        sent += 1
        assert sent < 1000, "a body of 20 bytes per second was let live"
    assert strict.response().status == 408
    patient.send(b"x" * (10_000 - sent))
    assert patient.response().status == 200


def test_the_values_in_use_are_shown(host_conf):
    conf = host_conf("", FILES)
    with open(conf / "sites" / "default") as file:
        text = file.read()
    (conf / "sites" / "default").write_text(text.replace("[HOST]\n", "[HOST]\n    MaxBodySize 10M\n"))
    result = run("-c", conf, "--show-config")
    assert re.search(r"MaxBodySize\s+10M", result.stdout), result.stdout


def test_thousands_of_lines(tmp_path):
    lines = [f"/p{n} static" for n in range(4000)]
    text = section("HOST", {"DocumentRoot": tmp_path}) + section("HANDLERS", {"Match": lines})
    folder = write_config(tmp_path / "conf", tmp_path, files={"sites/default": text})
    result = run("-c", folder, "-t")
    assert result.returncode == 0, result.stderr
