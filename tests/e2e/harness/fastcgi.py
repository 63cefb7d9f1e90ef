# SPDX-License-Identifier: Apache-2.0
"""
Applications of FastCGI and SCGI for tests: a function is the script of a connection.

    def hello(peer):
        peer.request()
        peer.respond(b"hello")

    with Application(hello) as application:
        ...
        assert application.requests[0].params["SCRIPT_NAME"] == "/index.php"

An error of a script is raised at the end of the `with`; a connection that the server under test closes ends the script.
"""

import contextlib
import socket
import struct
import threading

from .fakes import FakeServer
from .server import await_true, section

SECONDS = 90
BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR = range(1, 8)
COMPLETE, CANT_MPX_CONN, OVERLOADED, UNKNOWN_ROLE = range(4)
HEAD = b"Content-Type: text/plain\r\n\r\n"
HEADER = struct.Struct(">BBHHBx")


class Left(Exception):
    """The server under test has closed the connection."""


class Request:
    """`params` and `body` as they came; `flags` of BEGIN_REQUEST."""

    def __init__(self, params, body, flags=0):
        self.params, self.body, self.flags = params, body, flags


def record(kind, content=b"", padding=0, request=1, version=1):
    return HEADER.pack(version, kind, request, len(content), padding) + content + bytes(padding)


def read_pairs(data):
    pairs, at = {}, 0
    while at < len(data):
        sizes = []
        for _ in range(2):
            size = data[at]
            if size & 128:
                size = struct.unpack(">I", data[at : at + 4])[0] & 0x7FFFFFFF
                at += 3
            sizes.append(size)
            at += 1
        name, value = data[at : at + sizes[0]], data[at + sizes[0] : at + sum(sizes)]
        assert len(name) == sizes[0] and len(value) == sizes[1], "a pair is cut"
        assert name.decode() not in pairs, f"{name} comes twice"
        pairs[name.decode()] = value.decode("latin-1")
        at += sum(sizes)
    return pairs


class Peer:
    """A connection of the server under test."""

    def __init__(self, application, sock):
        self.application, self.sock, self.kinds, self.has_aborted = application, sock, [], False
        sock.settimeout(SECONDS)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            if not piece:
                raise Left
            data += piece
        return data

    def record(self):
        """Returns the type and the content of the next record."""
        version, kind, request, size, padding = HEADER.unpack(self.exactly(HEADER.size))
        content = self.exactly(size)
        assert (version, request) == (1, 1) and padding < 256
        self.exactly(padding)
        self.kinds.append(kind)
        self.has_aborted |= kind == ABORT
        return kind, content

    def request(self):
        """Reads a whole request."""
        kind, begin = self.record()
        assert kind == BEGIN and begin[:2] == b"\0\1" and begin[3:] == bytes(5), begin
        texts = {PARAMS: b"", STDIN: b""}
        for stream in (PARAMS, STDIN):
            while (row := self.stream_record(stream))[1]:
                texts[stream] += row[1]
        got = Request(read_pairs(texts[PARAMS]), texts[STDIN], begin[2])
        self.application.requests.append(got)
        return got

    def stream_record(self, stream):
        """Returns the next record of a stream; the request may be aborted instead."""
        row = self.record()
        if row[0] == ABORT:
            raise Left
        assert row[0] == stream, row
        return row

    def request_scgi(self):
        """Reads a whole request of SCGI."""
        size = b""
        while not size.endswith(b":"):
            size += self.exactly(1)
        words = self.exactly(int(size[:-1])).split(b"\0")
        assert self.exactly(1) == b"," and words.pop() == b"" and words[0] == b"CONTENT_LENGTH", words
        texts = [word.decode("latin-1") for word in words]
        params = dict(zip(texts[::2], texts[1::2]))
        assert len(params) * 2 == len(texts) and params["SCGI"] == "1"
        got = Request(params, self.exactly(int(params["CONTENT_LENGTH"])))
        self.application.requests.append(got)
        return got

    def send(self, data, size=None):
        """Sends bytes, in pieces of `size`."""
        with contextlib.suppress(OSError):  # a Unix socket
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), size or max(len(data), 1)):
            self.sock.sendall(data[at : at + size] if size else data)

    def respond(self, body=b"", head=HEAD, size=None):
        self.send(record(STDOUT, head + body) + record(STDOUT) + record(END, bytes(8)), size)

    def end(self, protocol_status=COMPLETE):
        self.send(record(END, bytes(4) + bytes([protocol_status]) + bytes(3)))

    def wait_end(self):
        """Reads until the server under test closes the connection."""
        with contextlib.suppress(Left, ConnectionError):
            while True:
                self.record()


class Application(FakeServer):
    """Runs `script` for each connection; `requests` are those that scripts have read."""

    def __init__(self, script, path=None):
        self.script, self.requests, self.peers, self.errors = script, [], [], []
        self.events = {}
        listener = None
        if path:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            listener.listen(512)
        super().__init__(listener)

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        self.kill()
        if kind is None and self.errors:
            raise self.errors[0]

    @property
    def to(self):
        return self.address if ":" in self.address else f"unix:{self.address}"

    def event(self, name):
        return self.events.setdefault(name, threading.Event())

    def wait_requests(self, count):
        await_true(lambda: len(self.requests) >= count, SECONDS, f"{count} requests")

    def serve(self, connection):
        peer = Peer(self, connection)
        self.peers.append(peer)
        try:
            self.script(peer)
        except (Left, ConnectionError):
            pass
        except Exception as error:  # noqa: BLE001
            if not self.ended:
                self.errors.append(error)
        finally:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def fastcgi_section(to, name="FASTCGI", **keys):
    """A section that passes requests to an Application or an address."""
    return section(name, {"To": getattr(to, "to", to), **keys})


def answer(body=b"hello", head=HEAD):
    """Answers each request in the same way."""

    def script(peer):
        while True:
            peer.request()
            peer.respond(body, head)

    return script
