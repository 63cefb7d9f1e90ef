# SPDX-License-Identifier: Apache-2.0
"""
A name server on 127.0.0.1, over UDP and TCP of one port, whose records a test changes.

    with NameServer() as names:
        names.set("app.test", "127.0.0.1", "127.0.0.2", ttl=1)
        names.set_srv("_http._tcp.test", (0, 10, 8080, "app.test"))
        names.mode = "silent"

`mode`: "" (answers), "silent", "servfail", "garbage" or "truncated" (UDP says that the answer is too long). A name
without records does not exist. `questions` are those that have come, as (name, type). A plugin of pytest: it has a
fixture, `names`, which a test asks for before its servers, so that these end first: their lookups would have to time
out.
"""

import contextlib
import ipaddress
import socket
import struct
import threading

import pytest

from .server import await_true

TYPES = {1: "A", 28: "AAAA", 33: "SRV"}
NUMBERS = {name: number for number, name in TYPES.items()}
SERVFAIL, NXDOMAIN, TRUNCATED, UDP_BYTES = 2, 3, 0x0200, 512


def knows(name):
    with contextlib.suppress(OSError):
        return bool(socket.getaddrinfo(name, None, socket.AF_INET))
    return False


needs_localhost = pytest.mark.skipif(not knows("localhost"), reason="NOT TESTED: the name localhost is not known here")


def pack_name(name):
    labels = [part.encode() for part in name.split(".") if part]
    return b"".join(bytes([len(each)]) + each for each in labels) + b"\0"


def read_name(message, at):
    labels = []
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode().lower())
        at += 1 + message[at]
    return ".".join(labels), at + 1


def pack_record(kind, ttl, data):
    return b"\xc0\x0c" + struct.pack("!HHIH", NUMBERS[kind], 1, ttl, len(data)) + data


class NameServer:
    def __init__(self):
        self.records, self.mode, self.questions, self.ended = {}, "", [], False
        self.lock = threading.Lock()
        self.open()

    def open(self, port=0):
        """Both sockets have the same port."""
        while True:
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind(("127.0.0.1", port))
            try:
                self.tcp = socket.create_server(udp.getsockname())
                break
            except OSError:
                udp.close()
        self.udp, self.port = udp, udp.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"

    def __enter__(self):
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self.serve_udp, self.serve_tcp)]
        for each in self.threads:
            each.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        with contextlib.suppress(OSError):
            self.tcp.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"", self.udp.getsockname())
        for each in self.threads:
            each.join(60)
        self.udp.close()
        self.tcp.close()

    # ── records ──

    def set(self, name, *addresses, ttl=0):
        rows = [ipaddress.ip_address(each) for each in addresses]
        rows = [("A" if each.version == 4 else "AAAA", ttl, each.packed) for each in rows]
        self.replace(name, ("A", "AAAA"), rows)

    def set_srv(self, name, *records, ttl=0):
        """Each of (priority, weight, port, target)."""
        rows = [("SRV", ttl, struct.pack("!HHH", *each[:3]) + pack_name(each[3])) for each in records]
        self.replace(name, ("SRV",), rows)

    def replace(self, name, kinds, rows):
        with self.lock:
            self.records[name] = [each for each in self.records.get(name, []) if each[0] not in kinds] + rows

    def remove(self, name):
        with self.lock:
            self.records.pop(name, None)

    def await_question(self, name, count=1):
        """Waits for further questions for a name."""
        wanted = self.count(name) + count
        await_true(lambda: self.count(name) >= wanted, what=f"a question for {name}")

    def count(self, name):
        return sum(each[0] == name for each in list(self.questions))

    # ── answers ──

    def answer(self, message, over_udp):
        """The answer to a question; empty: none."""
        name, at = read_name(message, 12)
        kind = TYPES.get(struct.unpack("!H", message[at : at + 2])[0], "?")
        self.questions.append((name, kind))
        with self.lock:
            known = self.records.get(name)
            rows = [pack_record(*each) for each in known or [] if each[0] == kind]
        flags = 0x8480 | (SERVFAIL if self.mode == "servfail" else 0 if known is not None else NXDOMAIN)
        body = b"".join(rows)
        if self.mode == "silent":
            return b""
        if self.mode in ("servfail", "garbage"):
            rows, body = [b""] * (self.mode == "garbage"), b"\xff" * 20 * (self.mode == "garbage")
        if over_udp and (self.mode == "truncated" or at + 4 + len(body) > UDP_BYTES):
            flags, rows, body = flags | TRUNCATED, [], b""
        return message[:2] + struct.pack("!5H", flags, 1, len(rows), 0, 0) + message[12 : at + 4] + body

    def serve_udp(self):
        while not self.ended:
            message, peer = self.udp.recvfrom(UDP_BYTES)
            answer = self.answer(message, over_udp=True) if message else b""
            if answer:
                self.udp.sendto(answer, peer)

    def serve_tcp(self):
        while not self.ended:
            with contextlib.suppress(OSError, struct.error):
                connection, _ = self.tcp.accept()
                with connection, connection.makefile("rwb") as stream:
                    connection.settimeout(60)
                    while head := stream.read(2):
                        answer = self.answer(stream.read(struct.unpack("!H", head)[0]), over_udp=False)
                        stream.write(struct.pack("!H", len(answer)) + answer)
                        stream.flush()


@pytest.fixture
def names():
    with NameServer() as server:
        yield server
