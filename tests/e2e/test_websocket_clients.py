# SPDX-License-Identifier: Apache-2.0
"""Other implementations of WebSockets: Chromium and the Python package websockets as clients, the latter also as the
server to which our client connects."""

import asyncio
import contextlib
import socket
import threading

import pytest

from harness.browser import open_browser
from harness.content import cycle
from harness.server import free_port
from harness.ways import WAYS
from harness.websocket import TEXT, Closed, WebSocket, frame, needs_wsprobe, run_wsprobe, start_wsprobe

websockets = pytest.importorskip("websockets")
pytestmark = [needs_wsprobe, pytest.mark.single_protocol]
MESSAGES = ["hello", "", "κόσμε " * 1000, b"", bytes(range(256)) * 300, "x" * 70_000]
over_h1 = pytest.mark.parametrize("ws_server", [way for way in WAYS if not WAYS[way].h2], indirect=True)


# ── the package websockets ──


def connect(server, path, **rest):
    context = server.way.ca.context() if server.way.tls else None
    scheme, host = ("wss", "localhost") if server.way.tls else ("ws", "127.0.0.1")
    return websockets.connect(f"{scheme}://{host}:{server.port}{path}", ssl=context, host="127.0.0.1", **rest)


@over_h1
@pytest.mark.parametrize("path", ["/ws/echo", "/ws/context", "/ws/plain"])
@pytest.mark.parametrize("compression", ["deflate", None])
def test_websockets(ws_server, path, compression):
    async def talk():
        async with connect(ws_server, path, compression=compression) as ws:
            assert bool(ws.extensions) == (compression is not None and path != "/ws/plain")
            for message in MESSAGES:
                await ws.send(message)
                assert await ws.recv() == message
            await ws.send(["fragment ", "after ", "fragment"])
            assert await ws.recv() == "fragment after fragment"
            await (await ws.ping())
        assert (ws.close_code, ws.close_reason) == (1000, "")

    asyncio.run(asyncio.wait_for(talk(), 120))


@over_h1
def test_websockets_gets_the_reason_of_the_end(ws_server):
    async def talk():
        async with connect(ws_server, "/ws/obey", subprotocols=["chat"]) as ws:
            assert ws.subprotocol is None
            await ws.send("close 4001 until next time")
            with pytest.raises(websockets.ConnectionClosed):
                await ws.recv()
        assert (ws.close_code, ws.close_reason) == (4001, "until next time")

    asyncio.run(asyncio.wait_for(talk(), 120))


# ── Chromium ──

SCRIPT = """
new Promise((resolve, reject) => {
    const ws = new WebSocket(URL_HERE, PROTOCOLS), sent = MESSAGES, got = [];
    ws.binaryType = "arraybuffer";
    ws.onerror = () => reject("error");
    ws.onopen = () => sent.forEach(text => ws.send(text.startsWith("binary") ? new TextEncoder().encode(text) : text));
    ws.onmessage = event => {
        const binary = event.data instanceof ArrayBuffer;
        got.push([binary, binary ? new TextDecoder().decode(event.data) : event.data]);
        if (got.length == sent.length)
            ws.close(4321, "bye");
    };
    ws.onclose = event => resolve(
        {got: got, code: event.code, reason: event.reason, clean: event.wasClean, extensions: ws.extensions,
         protocol: ws.protocol});
})
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), ": WebSockets of a browser are not shown") as browser:
        yield browser


@pytest.fixture(scope="module", params=["h1", "h2-tls"])
def visited(request, tmp_path_factory, site_root):
    """A server with which the browser keeps connections."""
    with run_wsprobe(request.param, tmp_path_factory.mktemp("visited"), site_root) as server:
        yield server


@pytest.mark.browser
@pytest.mark.parametrize("path", ["/ws/echo", "/ws/context", "/ws/protocols"])
def test_chromium(visited, browser, path):
    """By TLS it comes over HTTP/2, because the page did, and the server allows extended CONNECT."""
    tls = visited.way.tls
    host = f"127.0.0.1:{visited.port}"
    page = browser.page()
    try:
        if tls:
            page.call("Security.setIgnoreCertificateErrors", ignore=True)
        page.navigate(f"http{'s' * tls}://{host}/hello.txt")
        messages = ["hello", "", "κόσμε " * 2000, "binary", "binary " * 5000]
        script = SCRIPT.replace("URL_HERE", f'"ws{"s" * tls}://{host}{path}"').replace("MESSAGES", str(messages))
        result = page.evaluate(script.replace("PROTOCOLS", '["chat"]' if path == "/ws/protocols" else "[]"))
        assert result["got"] == [[text.startswith("binary"), text] for text in messages]
        assert (result["code"], result["reason"], result["clean"]) == (4321, "", True)
        assert result["extensions"].startswith("permessage-deflate")
        assert result["protocol"] == ("chat" if path == "/ws/protocols" else "")
        handshake = page.wait("Network.webSocketHandshakeResponseReceived")
        assert handshake["response"]["status"] == (200 if tls else 101)
    finally:
        page.close()


# ── our client ──


class OtherServer:
    """A server of the package websockets, in a thread with its own loop."""

    def __init__(self, handler, **options):
        self.loop, self.port = asyncio.new_event_loop(), None
        ready = threading.Event()

        async def run():
            self.stop = asyncio.Event()
            async with websockets.serve(handler, "127.0.0.1", 0, **options) as server:
                self.port = server.sockets[0].getsockname()[1]
                ready.set()
                await self.stop.wait()

        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(run()))
        self.thread.start()
        assert ready.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(60)

    def url(self, path="/"):
        return f"ws://127.0.0.1:{self.port}{path}"


async def echo_all(ws, *_):
    async for message in ws:
        await ws.send(message)


@pytest.fixture
def relay(serve, tmp_path, site_root):
    return start_wsprobe(serve, WAYS["h1"], tmp_path, site_root)


def ask_relay(server, url):
    ws = WebSocket(server, "/ws/relay")
    ws.send_message(f"connect {url}")
    return ws


@pytest.mark.parametrize("options", [{}, {"compression": None}, {"subprotocols": ["superchat"]}])
def test_our_client(relay, options):
    with OtherServer(echo_all, **options) as other:
        ws = ask_relay(relay, other.url("/path?query"))
        assert ws.message()[1] == b'open "%s"' % options.get("subprotocols", [""])[0].encode()
        for message in [*MESSAGES, cycle(900_000)]:
            ws.assert_echo(message)
        ws.close(1001, "leaving")
        relay.wait_log('wsprobe: the server closed 1001 "leaving"')


def test_the_other_server_closes(relay):
    async def leave(ws, *_):
        await ws.recv()
        await ws.close(4005, "that is all")

    with OtherServer(leave) as other:
        ws = ask_relay(relay, other.url())
        ws.message()
        ws.send_message("hello")
        assert ws.closing() == (4005, b"that is all")


def test_early_messages_of_the_server(relay):
    """They may come in one piece with the response head."""

    async def greet(ws, *_):
        for n in range(100):
            await ws.send(f"number {n} " * 50)
        await ws.wait_closed()

    with OtherServer(greet) as other:
        ws = ask_relay(relay, other.url())
        assert ws.message()[1] == b'open ""'
        for n in range(100):
            assert ws.message()[1] == b"number %d " % n * 50


@pytest.mark.parametrize(
    "url", ["http://a", "wss://localhost/", "ws://", "ws://a b/", "ws://[::1", "ws://a:70000/", "ws://a/#x"]
)
def test_urls_that_are_wrong(relay, url):
    ws = ask_relay(relay, url)
    kind, text = ws.message()
    assert kind == TEXT and len(text) > 5
    ws.close()


def test_a_port_without_a_server(relay):
    ws = ask_relay(relay, f"ws://127.0.0.1:{free_port()}/")
    code, reason = ws.closing()
    assert code == 1011 and b"refused" in reason
    relay.wait_log("the server closed 1006")


@contextlib.contextmanager
def raw_server(answer):
    """Answers one connection with these bytes, behind its request head, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            with contextlib.suppress(OSError):
                sock, _ = listener.accept()
                with sock:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        head += sock.recv(4096)
                    for piece in answer:
                        sock.sendall(piece)
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(4096):
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(60)


HEAD = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        [b""],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/1.1 404 Not Found\r\n\r\n"],
        [HEAD + b"\r\n"],
        [HEAD + b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"],
        [HEAD[:40]],
        [b"X" * 9000],
        [HEAD, b"A: " + b"x" * 8192],
        [b"SSH-2.0-OpenSSH\r\n"],
    ],
)
def test_answers_that_are_wrong(relay, answer):
    with raw_server(answer) as url:
        code, reason = ask_relay(relay, url).closing()
        assert code == 1011 and reason
        relay.wait_log("the server closed 1006")


def test_the_client_of_the_relay_leaves_during_the_handshake(relay):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ws = ask_relay(relay, f"ws://127.0.0.1:{listener.getsockname()[1]}/")
        sock, _ = listener.accept()
        with sock:
            assert sock.recv(4096).startswith(b"GET / HTTP/1.1\r\n")
            ws.reset()
            assert sock.recv(4096) == b""  # after close_ms
        relay.wait_log("the server closed")


@pytest.mark.slow
def test_the_relay_is_its_own_server(relay):
    """Through two of our clients, to ourselves."""
    url = f"ws://127.0.0.1:{relay.port}/ws/relay"
    ws = ask_relay(relay, url)
    assert ws.message()[1] == b'open ""'
    ws.send_message(f"connect ws://127.0.0.1:{relay.port}/ws/echo")
    assert ws.message()[1] == b'open ""'
    for message in MESSAGES:
        ws.assert_echo(message)
    ws.send(frame(8))
    with pytest.raises(Closed) as closed:
        ws.message()
    assert closed.value.code is None
