# SPDX-License-Identifier: Apache-2.0
"""
The payloads of proxy_payloads.py through the server to a backend, over HTTP/1.1 and HTTP/2, in the clear and by TLS.

The backend reads strictly, and keeps all bytes that came; at the end they are read again as backends do that are less
strict. All payloads share connections to it, so that what one leaves behind would become a part of the next one.
"""

import re

import hpack
import pytest
from harness import build
from harness import frames as f
from harness.backend import Backend
from harness.certificates import Authority, TlsClient
from harness.client import Client, ProtocolError
from harness.messages import CLOSE, request
from harness.proxies import TEXT, proxy_section
from harness.server import section
from proxy_payloads import EITHER, FORWARDED, H2_PAYLOADS, PAYLOADS, REFUSED, SMUGGLED_TARGET

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]
AFTER = "/after"
TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"


def answer_all(peer):
    while True:
        peer.request()
        peer.respond(b"ok", TEXT)


# ── backends that read in other ways ──


def names_as_written(name):
    return name.strip()


def names_with_dashes(name):
    """As in the variables of CGI."""
    return name.strip().replace("_", "-")


READERS = {
    "bare LF ends a line": (rb"\r?\n", names_as_written, ("transfer-encoding", "content-length")),
    "the length counts": (rb"\r\n", names_as_written, ("content-length", "transfer-encoding")),
    "the coding counts": (rb"\r\n", names_as_written, ("transfer-encoding", "content-length")),
    "underscores are dashes": (rb"\r\n", names_with_dashes, ("transfer-encoding", "content-length")),
}


def read_messages(raw, line_end, name_of, order):
    """(method, target, body) of each message, as such a backend sees them; a message that is cut is left out."""
    found, blank = [], re.compile(line_end + line_end)
    while head := blank.search(raw):
        rows = re.split(line_end, raw[: head.start()])
        fields = [row.decode("latin-1").partition(":") for row in rows[1:]]
        values = {name_of(name).lower(): value.strip() for name, _, value in reversed(fields)}
        framing = next((name for name in order if name in values), None)
        reader = {"transfer-encoding": read_chunks, "content-length": read_length, None: read_length}[framing]
        body, raw = reader(raw[head.end() :], values.get(framing) or "0", line_end)
        if body is None:
            break
        method, target = rows[0].decode("latin-1").split(" ")[:2]
        found.append((method, target, body))
    return found


def read_length(raw, value, _):
    size = int(value)
    return (raw[:size], raw[size:]) if len(raw) >= size else (None, b"")


def read_chunks(raw, _, line_end):
    body, at = b"", 0
    line = re.compile(rb"([0-9A-Fa-f]+)[^\r\n]*" + line_end)
    while size := line.match(raw, at):
        count = int(size[1], 16)
        if count == 0:
            end = re.compile(line_end + line_end).search(raw, size.end() - 2)
            return (body, raw[end.end() :]) if end else (None, b"")
        body += raw[size.end() : size.end() + count]
        at = size.end() + count + 2
    return None, b""


def check_readers(backend):
    for peer in backend.peers:
        strict = [(each.method, each.target, each.body) for each in peer.requests]
        for name, reader in READERS.items():
            assert read_messages(bytes(peer.raw), *reader) == strict, name


# ── one payload ──


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def run(serve, ca, request):
    """Runs ask(server, payload) for all payloads, and says which ones went wrong."""
    tls = request.param

    def start(payloads, ask):
        pair = ca.make("localhost", "localhost", "IP:127.0.0.1") if tls else None
        with Backend(answer_all) as backend:
            text = proxy_section(backend) + (section("TLS", pair.keys()) if tls else "")
            server = serve({"Listen": "127.0.0.1:0 tls" if tls else "127.0.0.1:0"}, text=text)
            wrong = {}
            for name, payload in payloads.items():
                before = len(backend.requests)
                statuses, what = ask(server, ca if tls else None, payload)
                backend.wait_idle()
                got = in_order(payload, backend.requests[before:])
                fault = find_fault(payload, statuses, what, got)
                if fault or backend.errors:
                    wrong[name] = fault, what, got, backend.errors
                    backend.errors = []
            assert not wrong, "\n".join(f"{name}: {row}" for name, row in wrong.items())
            assert SMUGGLED_TARGET not in [each.target for each in backend.requests]
            check_readers(backend)

    return start


def in_order(payload, got):
    """As the client has sent them: a stream that is reset may be read later, from its own connection."""
    return sorted(got, key=lambda each: each.target == AFTER) if hasattr(payload, "fields") else got


def is_empty(message):
    """Of a length of 0: it is whole before the client has sent more than that, which no proxy can foresee."""
    return message["Content-Length"] == "0" and not message.body


def find_fault(payload, statuses, what, got):
    """
    What is wrong about the statuses of a client, or the messages that have reached the backend; None: nothing. Over
    HTTP/1 no request is served behind one that was refused.
    """
    targets = [each.target for each in got]
    messages = got[:-1] if targets[-1:] == [AFTER] else got
    if payload.late:
        messages = [each for each in messages if not is_empty(each)]
    wanted = list(getattr(payload, "targets", ("/first",)) or ())
    if payload.may == FORWARDED and (len(messages) != len(wanted) or set(statuses) != {200}):
        return "not forwarded"
    if payload.may == REFUSED and statuses[len(messages) :][:1] == [200]:
        return "not refused"
    if payload.may == REFUSED and len(messages) != (len(wanted) if hasattr(payload, "targets") else 0):
        return "not refused"
    if payload.may == EITHER and len(messages) > max(1, len(wanted)):
        return "too many"
    if SMUGGLED_TARGET in targets or AFTER in targets[:-1]:
        return "smuggled"
    if payload.may == REFUSED and not hasattr(payload, "fields") and AFTER in targets:
        return "continues"
    if messages and payload.body is not None and messages[0].body != payload.body:
        return "another body"
    if wanted and not hasattr(payload, "fields") and [each.target for each in messages] != wanted[: len(messages)]:
        return "other targets"
    return find_leak(payload, messages)


def find_leak(payload, messages):
    for each in messages:
        names = {name.lower() for name, _ in each.fields}
        if names & set(payload.absent) or {name.lower() for name, _ in each.trailers} & set(payload.absent_trailers):
            return "a header or trailer"
    return None


# ── HTTP/1.1 ──


def statuses_of(reply):
    heads = [part for part in reply.split(b"HTTP/1.1 ")[1:]]
    return [int(head[:3]) for head in heads if not head.startswith(b"100")]


def ask_http1(server, ca, payload):
    """All statuses, and the bytes; behind the payload follows a request that ends the connection."""
    client = TlsClient(server.addresses[0], ca.context()) if ca else Client(server.addresses[0])
    with client:
        client.send_all_you_can(payload.data + request(AFTER, CLOSE))
        reply = b""
        try:
            while payload.late and len(statuses_of(reply)) < len(payload.targets) and client.fill():
                reply = client.buffer
            if payload.may == REFUSED and payload.late:
                client.plain.shutdown(1) if ca else client.shut()
            reply = client.rest()
        except (ConnectionError, ProtocolError, OSError):
            reply = client.buffer
    return statuses_of(reply), reply


@pytest.mark.parametrize(
    "run", [False, pytest.param(True, marks=pytest.mark.slow)], indirect=True, ids=["clear", "tls"]
)
def test_http1(run):
    run(PAYLOADS, ask_http1)


# ── HTTP/2 ──


def begin(client, number, fields, sent=(), trailers=()):
    pieces = [f.headers(number, f.block(*fields), end=not sent and not trailers)]
    for at, part in enumerate(sent, 1):
        pieces.append(f.data(number, part, end=at == len(sent) and not trailers))
    if trailers:
        pieces.append(f.headers(number, f.block(*trailers)))
    client.send_all_you_can(*pieces)


def read_statuses(client, decoder, number):
    """The final status of a stream; whether the connection ends is said by None behind it."""
    for frame in iter(client.read, None):
        if frame.type == f.HEADERS:
            fields = dict(decoder.decode(frame.payload))
            if frame.stream == number and fields.get(":status", "100") != "100":
                return [int(fields[":status"])]
        if frame.type == f.GOAWAY:
            return [None]
        if frame.type == f.RST_STREAM and frame.stream == number:
            break
    return []


def ask_http2(server, ca, payload):
    """The status of the payload's stream; then another stream is answered, or the connection has ended."""
    context = ca.context(alpn=["h2"]) if ca else None
    with f.FrameConnection(server.addresses[0], context=context) as client:
        decoder = hpack.Decoder()
        begin(client, 1, payload.fields, payload.sent, payload.trailers)
        statuses = read_statuses(client, decoder, 1)
        if None in statuses:
            return [], statuses
        pseudo = [(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", AFTER)]
        begin(client, 3, pseudo)
        after = read_statuses(client, decoder, 3)
        assert after == [200], f"the next stream gets {after}"
        return statuses, statuses


@pytest.mark.skipif(not build.speaks("h2"), reason="this build does not speak HTTP/2")
@pytest.mark.parametrize("run", [False, True], indirect=True, ids=["clear", "tls"])
def test_http2(run):
    run(H2_PAYLOADS, ask_http2)
