# SPDX-License-Identifier: Apache-2.0
"""The payloads of tests of proxies (proxy_payloads.py) are what they say: to a strict reader, and to the server itself,
which serves files here and refuses what is refused without a proxy."""

import hpack
import pytest
from harness import build
from harness import frames as f
from harness.backend import Backend
from harness.client import Client, ProtocolError
from harness.content import populate
from harness.server import section
from proxy_payloads import EITHER, FORWARDED, H2_PAYLOADS, PAYLOADS, REFUSED, SMUGGLED, SMUGGLED_TARGET, TARGET

pytestmark = pytest.mark.single_protocol
ANSWERED = {200, 204, 404, 405}  # by files
SECRET = b"this was smuggled"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return populate(tmp_path_factory.mktemp("root"), {SMUGGLED_TARGET[1:]: SECRET, TARGET[1:]: b"first"})


@pytest.fixture
def server(serve, files):
    return serve(config={"sites/default": section("HOST", {"ServerName": "localhost", "DocumentRoot": files})})


def test_there_are_enough():
    assert len(PAYLOADS) >= 150 and len(H2_PAYLOADS) >= 50
    assert len({payload.data for payload in PAYLOADS.values()}) == len(PAYLOADS)
    for kind in (REFUSED, FORWARDED, EITHER):
        assert any(payload.may == kind for payload in PAYLOADS.values())
        assert any(payload.may == kind for payload in H2_PAYLOADS.values())


def read_all(peer):
    while True:
        peer.request()
        peer.respond(b"")


def test_what_is_forwarded_is_well_formed():
    """A strict reader finds the messages, and nothing else."""
    for name, payload in PAYLOADS.items():
        if payload.may != FORWARDED:
            continue
        with Backend(read_all) as backend:
            host, port = backend.address.split(":")
            with Client((host, int(port))) as client:
                client.send(payload.data)
                client.shut()
                client.rest()
            rest = SMUGGLED if payload.data.endswith(SMUGGLED) and not payload.body else b""
            got = [each.target for each in backend.requests]
        expected = list(payload.targets) + [SMUGGLED_TARGET] * bool(rest)
        assert got == expected and backend.requests[0].body == payload.body, name


def ask(server, data):
    """The statuses of the answers, and everything that came."""
    with server.connect() as client:
        client.send_all_you_can(data)
        client.shut()
        try:
            reply = client.rest()
        except (ConnectionError, ProtocolError):
            reply = client.buffer
    heads = [part for part in reply.split(b"HTTP/1.1 ")[1:]]
    return [int(head[:3]) for head in heads if not head.startswith(b"100")], reply


def is_expected(payload, statuses):
    count = len(payload.targets or ())
    if payload.may == FORWARDED:
        return len(statuses) == count and set(statuses) <= ANSWERED
    if payload.may == REFUSED and not payload.late:
        refusals = statuses[count:]
        return set(statuses[:count]) <= ANSWERED and len(refusals) <= 1 and not set(refusals) & ANSWERED
    return True


def test_the_server_agrees(server):
    """A payload that is refused is refused by this server, too, and one that is forwarded is as many requests."""
    wrong = {}
    for name, payload in PAYLOADS.items():
        statuses, reply = ask(server, payload.data)
        if not payload.proxy and (SECRET in reply or not is_expected(payload, statuses)):
            wrong[name] = statuses, reply
    assert not wrong


def ask_h2(client, payload):
    """The status; None if the stream is reset or the connection ends."""
    pieces = [f.headers(1, f.block(*payload.fields), end=not payload.sent and not payload.trailers)]
    for at, part in enumerate(payload.sent, 1):
        pieces.append(f.data(1, part, end=at == len(payload.sent) and not payload.trailers))
    if payload.trailers:
        pieces.append(f.headers(1, f.block(*payload.trailers)))
    client.send_all_you_can(*pieces)
    for frame in iter(client.read, None):
        if frame.stream == 1 and frame.type == f.HEADERS:
            return int(dict(hpack.Decoder().decode(frame.payload))[":status"])
        if frame.type in (f.RST_STREAM, f.GOAWAY):
            break
    return None


@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
def test_the_server_agrees_over_http2(server):
    wrong = {}
    for name, payload in H2_PAYLOADS.items():
        with server.connect(kind=f.FrameConnection) as client:
            status = ask_h2(client, payload)
        is_known = payload.may != EITHER and not payload.late and not payload.proxy
        if is_known and (status in ANSWERED) != (payload.may == FORWARDED):
            wrong[name] = status
    assert not wrong
