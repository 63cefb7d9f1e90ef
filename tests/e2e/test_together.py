# SPDX-License-Identifier: Apache-2.0
"""Requests that come together share a reading of a small file: each is answered as if it had come alone."""

import functools
import itertools
import operator
import random
import signal

import pytest

from harness import build
from harness.content import OLD_DATE, pattern
from harness.messages import request
from harness.services import reload

SIZES = (0, 1, 900, 4095, 4096, 4097, 20_000)
FIELDS = (
    (),
    (f"If-Modified-Since: {OLD_DATE}",),
    ("If-None-Match: *",),
    ('If-Match: "other"',),
    ("Range: bytes=0-0",),
    ("Range: bytes=-100",),
    ("Range: bytes=5000-",),
    ("Accept-Encoding: gzip",),
)
TARGETS = (*(f"/{size}.bin" for size in SIZES), "/", "/folder/", "/folder", "/missing", "/0.bin/x")
KINDS = list(itertools.product(TARGETS, FIELDS, ("GET", "HEAD", "POST")))


@pytest.fixture
def site(serve):
    files = {f"{size}.bin": pattern(size, size) for size in SIZES}
    return serve(
        {"MaxKeepAliveRequest": 0}, files={**files, "index.html": b"home\n", "folder/index.html": b"folder\n"}
    )


def facts(answer):
    """What may not depend on the neighbours; the order of fields with different names may."""
    rows = [row for row in answer.fields if row[0].lower() != "date"]
    return answer.status, sorted(rows, key=lambda row: row[0].lower()), answer.body


@pytest.fixture
def alone(site):
    """The answers to requests that come alone."""
    client = site.connect()
    return {kind: facts(client.ask(kind[0], *kind[1], method=kind[2])) for kind in KINDS}


def pipeline(requests):
    return functools.reduce(operator.add, requests)


def ask_together(client, kinds):
    client.send(pipeline(request(target, *fields, method=method) for target, fields, method in kinds))
    return [facts(client.response(method)) for _, _, method in kinds]


@pytest.mark.parametrize("target", TARGETS)
def test_one_target(site, alone, target):
    kinds = [kind for kind in KINDS if kind[0] == target]
    client = site.connect()
    for first in kinds:
        together = [first, first, *kinds]
        assert ask_together(client, together) == [alone[kind] for kind in together]


def test_any_targets(site, alone):
    client, dice = site.connect(), random.Random(7)
    for _ in range(60):
        kinds = []
        for _ in range(10):
            kinds += [dice.choice(KINDS)] * dice.randint(1, 4)
        assert ask_together(client, kinds) == [alone[kind] for kind in kinds]


def test_hosts_have_their_own(serve, tmp_path):
    """The same name on several hosts, in any order."""
    config, hosts = {}, [f"h{i}.example" for i in range(3)]
    for name in hosts:
        (tmp_path / name).mkdir()
        (tmp_path / name / "who").write_text(name)
        config[f"sites/{name}"] = f"[HOST]\n    ServerName {name}\n    DocumentRoot {tmp_path / name}\n"
    client, dice = serve(config=config).connect(), random.Random(3)
    asked = dice.choices(hosts, k=90)
    client.send(pipeline(request("/who", host=name) for name in asked))
    assert [client.response().body.decode() for _ in asked] == asked


def test_what_comes_later_is_read_anew(serve):
    server = serve(files={"a.txt": b"0"})
    client = server.connect()
    for i in range(1, 20):
        client.send(request("/a.txt") * 5)
        assert {client.response().body for _ in range(5)} == {str(i - 1).encode()}
        (server.root / "a.txt").write_bytes(str(i).encode())


@pytest.mark.single_protocol
@build.needs_probe
def test_what_a_handler_changes_is_seen_behind_it(serve):
    """A pipeline is answered as if its requests came one by one (RFC 9112 §9.3.2)."""
    server = serve(files={"a.txt": b"a"}, program=build.probe())
    client = server.connect()
    append = request(f"/probe/append?{server.root / 'a.txt'}", method="POST")
    client.send((request("/a.txt") * 3 + append) * 4)
    expected = [body for n in range(4) for body in (*[b"a" + b"+" * n] * 3, b"done\n")]
    assert [client.response().body for _ in expected] == expected


@pytest.mark.single_protocol
def test_slow_clients_keep_what_they_were_promised(serve):
    """The reading that they share is over when they take theirs."""
    server = serve(
        {"SendTimeout": "60s", "MaxKeepAliveRequest": 0}, files={"a.bin": pattern(4096, 1), "b.bin": pattern(4096, 2)}
    )
    slow = server.connect(rcvbuf=4096)
    slow.send_in_background(request("/a.bin") * 3000)
    with server.connect() as other:
        for _ in range(50):
            other.send(request("/b.bin") * 4)
            assert [other.response().body for _ in range(4)] == [pattern(4096, 2)] * 4
    (server.root / "a.bin").write_bytes(b"gone")
    assert {slow.response().body for _ in range(3000)} <= {pattern(4096, 1), b"gone"}


@pytest.mark.single_protocol
@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
def test_responses_outlive_the_configuration_that_began_them(serve):
    """They have the bytes and the lines of their file until their clients take them."""
    server = serve(files={"a.bin": pattern(4096, 1)})
    with server.connect_h2(window=0, credit=False) as client:
        client.ping()
        server.send_signal(signal.SIGSTOP)  # so that many come in one turn
        numbers = [client.begin("/a.bin") for _ in range(15)]
        server.send_signal(signal.SIGCONT)
        client.ping()
        (server.root / "new").write_bytes(b"new")
        (server.root / "new").rename(server.root / "a.bin")
        reload(server)
        assert server.connect().ask("/a.bin").body == b"new"
        for number in numbers:
            client.grant(4096, number)
        first, *others = [facts(client.response(number)) for number in numbers]
        assert first[2] == pattern(4096, 1) and others == [first] * 14
