# SPDX-License-Identifier: Apache-2.0
"""Members of rooms talk. `dudac test` runs this after checks.toml; DUDA_URL is the URL of the service."""

import os
import socket
from urllib.parse import urlsplit

URL = urlsplit(os.environ["DUDA_URL"])
TIMEOUT_S = 30
FIELDS = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]


class Member:
    """A WebSocket in a room (RFC 6455), for texts of at most 125 bytes."""

    def __init__(self, room):
        self.socket = socket.create_connection((URL.hostname, URL.port), TIMEOUT_S)
        self.stream = self.socket.makefile("rb")
        head = [f"GET {URL.path}/rooms/{room} HTTP/1.1", f"Host: {URL.netloc}", *FIELDS, "", ""]
        self.socket.sendall("\r\n".join(head).encode())
        assert self.stream.readline().split()[1] == b"101"
        while self.stream.readline() != b"\r\n":
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def send(self, text):
        data = text.encode()
        self.socket.sendall(bytes([0x81, 0x80 | len(data), 0, 0, 0, 0]) + data)  # a mask of zeros changes nothing

    def receive(self):
        kind, size = self.stream.read(2)
        assert kind == 0x81
        return self.stream.read(size).decode()


def test_messages_go_to_the_others_in_the_room():
    with Member("tea") as ada, Member("tea") as bob, Member("milk") as eve, Member("milk") as mia:
        ada.send("more tea?")
        assert bob.receive() == "more tea?"
        bob.send("yes")
        assert ada.receive() == "yes"  # and not its own message
        mia.send("hello")
        assert eve.receive() == "hello"  # and nothing of the other room
