# SPDX-License-Identifier: Apache-2.0
"""
Backends for tests of a proxy: a function is the script of a connection.

    def cut_head(peer):
        peer.request()
        peer.send_pieces(b"HTTP/1.1 200 OK\\r\\nContent-Le")
        peer.reset()

    with Backend(cut_head) as backend:
        server = serve_proxy(backend.url)
        ...
        backend.wait_requests(1)
        assert backend.requests[0]["Host"] == "localhost"

A script that returns closes its connection: with a RST if bytes are unread, as the kernel does. An error of a script,
also a request that is not well-formed, is raised at the end of the `with`; but a connection that the server under test
closes only ends the script. Waits have a limit.
"""

import array
import base64
import contextlib
import ctypes
import fcntl
import hashlib
import os
import re
import socket
import ssl
import struct
import termios
import threading

from . import websocket
from .fakes import FakeServer
from .messages import chunked, lines, octets, sized
from .server import await_true, free_port

SECONDS = 90  # longer than KeepAliveTimeout of the proxies of tests
HEAD_MAX = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e\x80-\xff]+) HTTP/(1\.[01])")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")


class Left(Exception):
    """The server under test has closed the connection, or has reset it."""


class MalformedRequest(AssertionError):
    """The server under test has sent what no proxy may send."""


class Received:
    """A request as it came: `raw` are its bytes. `body` and `trailers` are there once the body was read."""

    def __init__(self, head):
        rows = head[: -len(b"\r\n\r\n")].split(b"\r\n")
        line = REQUEST_LINE.fullmatch(rows[0])
        fields = [FIELD.fullmatch(row) for row in rows[1:]]
        if not line or not all(fields):
            raise MalformedRequest(f"the head of a request: {head!r}")
        self.raw, self.head, self.body, self.trailers = head, head, b"", []
        self.method, self.target, self.version = (part.decode("latin-1") for part in line.groups())
        self.fields = [(each[1].decode(), each[2].decode("latin-1")) for each in fields]

    def __repr__(self):
        return f"<{self.method} {self.target} {self.fields}, {len(self.body)} bytes>"

    def all(self, name):
        return [value for each, value in self.fields if each.lower() == name.lower()]

    def __getitem__(self, name):
        """The value of a field, None without it; it must not be repeated."""
        values = self.all(name)
        if len(values) > 1:
            raise MalformedRequest(f"{name} is repeated: {self}")
        return values[0] if values else None

    @property
    def length(self):
        """Of the body: a number, or "chunked"."""
        length, coding = self["Content-Length"], self["Transfer-Encoding"]
        if coding is not None and (length is not None or coding.lower() != "chunked" or self.version != "1.1"):
            raise MalformedRequest(f"framing: {self}")
        if length is not None and not re.fullmatch(r"\d{1,18}", length):
            raise MalformedRequest(f"Content-Length: {self}")
        return "chunked" if coding else int(length or 0)


class Peer:
    """A connection of the server under test. `raw`: all bytes that came; `requests`: those that were read; `sent`: how
    many bytes went back."""

    def __init__(self, backend, sock):
        self.backend, self.sock, self.number = backend, sock, len(backend.peers)
        self.raw, self.buffer, self.requests, self.last, self.sent = bytearray(), bytearray(), [], None, 0

    # ── receiving ──

    def fill(self, most=1 << 16):
        """Waits for bytes; False at the end."""
        try:
            data = self.sock.recv(most)
        except TimeoutError:
            wait = f"{self.backend.seconds} s"
            raise AssertionError(f"the server under test sends nothing for {wait}: {self.raw[-500:]!r}") from None
        except OSError:
            raise Left from None
        self.raw += data
        self.buffer += data
        return bool(data)

    def take(self, count):
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    def exactly(self, count):
        while len(self.buffer) < count:
            if not self.fill():
                raise Left
        return self.take(count)

    def until(self, end):
        while end not in self.buffer:
            if len(self.buffer) > HEAD_MAX:
                raise MalformedRequest(f"more than {HEAD_MAX} bytes without {end!r}")
            if not self.fill():
                raise Left
        return self.take(self.buffer.index(end) + len(end))

    def head(self):
        """The next request, without its body: body() reads that."""
        self.last = Received(self.until(b"\r\n\r\n"))
        return self.last

    def body(self):
        """Reads the body of the request whose head came last, and counts the request."""
        got, length = self.last, self.last.length
        data = self.read_chunks(got) if length == "chunked" else self.exactly(length)
        if length != "chunked":
            got.body, got.raw = data, got.raw + data
        self.requests.append(got)
        self.backend.note(self.backend.requests, got)
        return got.body

    def read_chunks(self, got):
        while True:
            line = self.until(b"\r\n")
            size = CHUNK_LINE.fullmatch(line[:-2])
            if not size:
                raise MalformedRequest(f"the line of a chunk: {line!r}")
            got.raw += line
            if int(size[1], 16) == 0:
                break
            data = self.exactly(int(size[1], 16) + 2)
            if data[-2:] != b"\r\n":
                raise MalformedRequest(f"the end of a chunk: {data[-20:]!r}")
            got.raw, got.body = got.raw + data, got.body + data[:-2]
        while (line := self.until(b"\r\n")) != b"\r\n":
            field = FIELD.fullmatch(line[:-2])
            if not field:
                raise MalformedRequest(f"a trailer: {line!r}")
            got.raw += line
            got.trailers.append((field[1].decode(), field[2].decode("latin-1")))
        got.raw += line

    def request(self):
        """The next request with its body."""
        got = self.head()
        self.body()
        return got

    def rest(self):
        """Everything until the server under test ends its side."""
        while self.fill():
            pass
        return self.take(len(self.buffer))

    # ── sending ──

    def send(self, data):
        data = octets(data)
        self.sent += len(data)
        try:
            self.sock.sendall(data)
        except TimeoutError:
            raise AssertionError(f"the server under test takes nothing for {self.backend.seconds} s") from None
        except OSError:
            raise Left from None

    def send_pieces(self, data, size=1, between=None):
        """Each piece is in the other's socket before the next one; `between(n)`, such as a wait, is called before."""
        data = octets(data)
        for at in range(0, len(data), size):
            if at and between:
                between(at // size)
            self.send(data[at : at + size])
            self.flush()

    def flush(self):
        """Waits until what was sent has left this socket: it is acknowledged, or for a Unix socket was read."""
        left = array.array("i", [0])

        def is_sent():
            fcntl.ioctl(self.sock.fileno(), termios.TIOCOUTQ, left)
            return left[0] == 0

        await_true(is_sent, self.backend.seconds, "the acknowledgement", pause=0.0005)

    def respond(self, body=b"", *fields, status=200, reason="OK", chunks=None, trailer=b""):
        """A well-formed response: with a length, or with `chunks` (pieces) and a trailer (bytes of whole lines)."""
        framing = sized(octets(body)) if chunks is None else "Transfer-Encoding: chunked"
        data = octets(body) if chunks is None else chunked(*chunks, trailer=trailer)
        no_body = self.last is not None and self.last.method == "HEAD"
        self.send(lines(f"HTTP/1.1 {status} {reason}", *fields, framing) + (b"" if no_body else data))

    def interim(self, status, *fields, reason="Interim"):
        self.send(lines(f"HTTP/1.1 {status} {reason}", *fields))

    # ── life ──

    def secure(self):
        """The handshake of TLS, where Backend(handshakes=False) has left it to the script."""
        try:
            self.sock = self.backend.context.wrap_socket(self.sock, server_side=True)
        except OSError as error:  # of which ssl.SSLError is one
            self.backend.note(self.backend.failed_handshakes, error)
            raise Left from None

    @property
    def server_name(self):
        """The name that the client's hello has asked for; None without one."""
        return getattr(self.sock, "asked_name", None)

    def wait(self, name):
        """Waits until the test calls backend.tell(name)."""
        assert self.backend.events(name).wait(self.backend.seconds), f"the test did not tell {name!r}"

    def wait_end(self):
        """Waits until the server under test closes; returns True if it was in an orderly way."""
        try:
            self.rest()
            return True
        except Left:
            return False

    def notify_close(self):
        """Sends close_notify on a connection with TLS, and does not wait for the other one."""
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.settimeout(0)
            with contextlib.suppress(OSError, ValueError):
                self.sock.unwrap()

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.notify_close()
        self.sock.close()

    def reset(self):
        """Ends the connection with RST instead of FIN. Not by close(): the poll() of a thread that waits for bytes
        would keep the connection, and wait for the socket that gets the descriptor next."""
        if self.sock.family == socket.AF_UNIX:  # it has no RST
            self.sock.close()
            return
        disconnect = struct.pack("H14x", socket.AF_UNSPEC)
        if LIBC.connect(self.sock.fileno(), disconnect, len(disconnect)) < 0:
            raise AssertionError(f"the connection cannot be reset: {os.strerror(ctypes.get_errno())}")


class Backend(FakeServer):
    """
    Runs a script for each connection: `scripts` is a function, or a list for one connection after the other, of which
    the last is repeated. It listens on a free port, or with `path` on a Unix socket; `tls` is a Pair or an SSLContext.
    Without `accepts` connections stay in the backlog until start(); fill_backlog() makes further ones wait for that.
    Each wait of a script and of the test ends after `seconds`.
    """

    def __init__(
        self,
        scripts,
        *,
        path=None,
        host="127.0.0.1",
        port=0,
        tls=None,
        handshakes=True,
        accepts=True,
        rcvbuf=None,
        alpn=(),
        seconds=SECONDS,
    ):
        self.scripts = list(scripts) if isinstance(scripts, (list, tuple)) else [scripts]
        self.changed, self.signals = threading.Condition(), {}
        self.peers, self.requests, self.errors, self.failed_handshakes = [], [], [], []
        self.open = self.open_max = 0
        self.fillers, self.handshakes, self.killed, self.seconds = [], handshakes, False, seconds
        self.context = tls if tls is None or isinstance(tls, ssl.SSLContext) else make_context(tls, alpn)
        super().__init__(listen(path or (host, port), rcvbuf, 128 if accepts else 0), accepts)
        scheme = "https" if tls else "http"
        self.url = f"unix:{path}" if path else f"{scheme}://{self.address}"

    def __enter__(self):
        return self

    def __exit__(self, _, error, __):
        self.kill()
        if self.errors and error is not self.errors[0]:
            raise self.errors[0] from error

    def run(self, connection):
        with self.changed:
            peer = Peer(self, connection)
            self.peers.append(peer)
            self.open += 1
            self.open_max = max(self.open, self.open_max)
            self.changed.notify_all()
        try:
            connection.settimeout(self.seconds)
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context and self.handshakes:
                peer.secure()
            self.scripts[min(peer.number, len(self.scripts) - 1)](peer)
        except (Left, OSError):
            pass
        except Exception as error:  # pylint: disable=broad-except
            if not self.killed:
                self.note(self.errors, error)
        peer.close()
        with self.changed:
            self.open -= 1
            self.changed.notify_all()

    def kill(self):
        self.killed = True
        for name in list(self.signals):
            self.tell(name)
        for peer in self.peers:
            with contextlib.suppress(OSError):
                peer.sock.shutdown(socket.SHUT_RDWR)
        super().kill()
        for filler in self.fillers:
            filler.close()

    def refuse(self):
        """Closes the listener: dials are refused from now on. Connections stay. A new Backend can have the
        port; a socket that does not listen keeps it from others, which ask for any port."""
        self.ended = True
        with contextlib.suppress(OSError):
            name = self.listener.getsockname()
            self.listener.shutdown(socket.SHUT_RDWR)
            if self.listener.family != socket.AF_UNIX:
                self.fillers.append(socket.socket(self.listener.family, socket.SOCK_STREAM))
                self.fillers[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.fillers[-1].bind(name)
        self.listener.close()

    def fill_backlog(self):
        """Dials until a dial has to wait, as those of the server under test will. start() would accept these, too."""
        for _ in range(64):
            filler = socket.socket(self.listener.family, socket.SOCK_STREAM)
            filler.settimeout(0.3)
            self.fillers.append(filler)
            try:
                filler.connect(self.listener.getsockname())
            except (TimeoutError, BlockingIOError):
                return
        raise AssertionError("the backlog does not fill")

    # ── what the test knows and waits for ──

    def note(self, rows, row):
        with self.changed:
            rows.append(row)
            self.changed.notify_all()

    def wait_until(self, condition, what):
        with self.changed:
            fine = self.changed.wait_for(lambda: condition() or self.errors, self.seconds)
        if self.errors:
            raise self.errors[0]
        assert fine, f"{what}: {len(self.peers)} connections, {self.open} open, {len(self.requests)} requests"

    def wait_requests(self, count):
        """Waits for so many whole requests, of all connections, and returns them."""
        self.wait_until(lambda: len(self.requests) >= count, f"{count} requests")
        return self.requests

    def wait_accepted(self, count):
        self.wait_until(lambda: len(self.peers) >= count, f"{count} connections")
        return self.peers

    def wait_open(self, count=0):
        """Waits until exactly so many scripts run."""
        self.wait_until(lambda: self.open == count, f"{count} open connections")

    def wait_idle(self):
        """Waits until at most one script runs, and all that came on the other connections is read."""
        is_idle = lambda: self.open <= 1 and len(self.peers) == len(self.connections)
        self.wait_until(is_idle, "the end of connections")

    def events(self, name):
        with self.changed:
            return self.signals.setdefault(name, threading.Event())

    def tell(self, name):
        """Ends the waits of scripts for this name, also those to come."""
        self.events(name).set()


def listen(name, rcvbuf, backlog):
    """`name`: a pair of host and port, or the path of a Unix socket. Port 0 is one that no client gets: when the
    backend has closed its listener, the next one can have it."""
    if not isinstance(name, tuple) or name[1]:
        return listen_at(name, rcvbuf, backlog)
    for _ in range(99):
        with contextlib.suppress(OSError):  # another process has taken it meanwhile
            return listen_at((name[0], free_port()), rcvbuf, backlog)
    return listen_at(name, rcvbuf, backlog)


def listen_at(name, rcvbuf, backlog):
    family = socket.AF_UNIX if not isinstance(name, tuple) else socket.AF_INET6 if ":" in name[0] else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if rcvbuf:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    listener.bind(name if isinstance(name, tuple) else str(name))
    listener.listen(backlog)
    return listener


def make_context(pair, alpn):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    context.sni_callback = lambda sock, name, _: setattr(sock, "asked_name", name)
    return context


# ── scripts ──


def answer(body=b"hello", *fields, count=None, **rest):
    """Answers each request in the same way, or the first `count` of a connection."""

    def script(peer):
        while count is None or len(peer.requests) < count:
            peer.request()
            peer.respond(body, *fields, **rest)

    return script


def echo(peer):
    """Answers each request with its body, and the method and target in header fields."""
    while True:
        got = peer.request()
        peer.respond(got.body, f"Echo: {got.method} {got.target}", "Content-Type: application/octet-stream")


def replay(data, *, size=None, end="close"):
    """Answers the first request with these bytes, in pieces of `size`, then `end`: close, reset, half_close or wait."""

    def script(peer):
        peer.request()
        if size:
            peer.send_pieces(data, size)
        else:
            peer.send(data)
        if end == "reset":
            peer.flush()
            peer.reset()
        elif end == "half_close":
            peer.half_close()
        if end in ("half_close", "wait"):
            peer.wait_end()

    return script


def stay_silent(peer):
    """Reads what comes, and never answers."""
    peer.wait_end()


def never_read(peer):
    """Neither reads nor answers, until backend.tell("end")."""
    peer.wait("end")


def reset_at_once(peer):
    peer.reset()


def echo_websocket(peer):
    """Accepts a WebSocket and sends each message back, frame by frame."""
    key = peer.head()["Sec-WebSocket-Key"]
    peer.body()
    accept = base64.b64encode(hashlib.sha1((key + websocket.GUID).encode()).digest()).decode()
    fields = ["Connection: Upgrade", "Upgrade: websocket", f"Sec-WebSocket-Accept: {accept}"]
    peer.send(lines("HTTP/1.1 101 Switching Protocols", *fields))
    opcode = None
    while opcode != websocket.CLOSE:
        first, second = peer.exactly(2)
        size, opcode = second & 127, first & 15
        if size > 125:
            size = int.from_bytes(peer.exactly({126: 2, 127: 8}[size]), "big")
        if not second & 128:
            raise MalformedRequest("a frame of a client that is not masked")
        mask_key = peer.exactly(4)
        payload = websocket.mask(peer.exactly(size), mask_key)
        reply = websocket.PONG if opcode == websocket.PING else opcode
        peer.send(websocket.frame(reply, payload, key=None, fin=bool(first & 128), rsv=(first >> 4) & 7))
