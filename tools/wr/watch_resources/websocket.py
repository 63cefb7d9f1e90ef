# SPDX-License-Identifier: Apache-2.0
"""A WebSocket of a client, without extensions: enough to check servers and to keep many open."""

import base64
import hashlib
import os
import re
import socket
import ssl

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3
TEXT, CLOSE, CONTROL = 0x81, 0x88, 0x08
SECONDS = 10
# As a browser sends it.
HANDSHAKE = """GET /{path} HTTP/1.1\r
Host: localhost:{port}\r
Connection: Upgrade\r
Pragma: no-cache\r
Cache-Control: no-cache\r
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r
Upgrade: websocket\r
Origin: {scheme}://localhost:{port}\r
Sec-WebSocket-Version: 13\r
Accept-Encoding: gzip, deflate, br\r
Accept-Language: en-US,en;q=0.9\r
Sec-WebSocket-Key: {key}\r
\r
"""


def find_accept(key):
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


class WebSocket:
    """Raises OSError where the network fails, and ValueError where the server does not follow RFC 6455."""

    def __init__(self, port, path, tls=False):
        self.data = b""
        self.socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        try:
            if tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
            self.open(port, path, "https" if tls else "http")
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    close = __exit__

    def open(self, port, path, scheme):
        key = base64.b64encode(os.urandom(16))
        self.socket.sendall(HANDSHAKE.format(path=path, port=port, scheme=scheme, key=key.decode()).encode())
        while b"\r\n\r\n" not in self.data:
            self.read_more()
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101 "):
            raise ValueError(f"the handshake is answered with {head.splitlines()[0].decode('latin1')!r}")
        found = re.search(rb"(?i)\r\nSec-WebSocket-Accept: *(\S+)", head)
        if not found or found[1] != find_accept(key):
            raise ValueError("the Sec-WebSocket-Accept of the handshake is wrong")

    def read_more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ValueError("the server has closed the connection")
        self.data += data

    def read(self, size):
        while len(self.data) < size:
            self.read_more()
        data, self.data = self.data[:size], self.data[size:]
        return data

    def send(self, text):
        data, key = text.encode(), os.urandom(4)
        size = len(data)
        head = bytes([TEXT, 0x80 | (size if size < 126 else 126 if size < 65536 else 127)])
        head += b"" if size < 126 else size.to_bytes(2 if size < 65536 else 8, "big")
        self.socket.sendall(head + key + bytes(byte ^ key[i % 4] for i, byte in enumerate(data)))

    def receive(self):
        """The next text message, which has one frame; pings and pongs before it are left out."""
        while True:
            first, size = self.read(2)
            if size >= 126:
                size = int.from_bytes(self.read(2 if size == 126 else 8), "big")
            data = self.read(size)
            if first == TEXT:
                return data.decode()
            if first == CLOSE or not first & CONTROL:
                raise ValueError(f"a frame begins with {first:#x} instead of a text message")
