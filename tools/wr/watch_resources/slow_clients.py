# SPDX-License-Identifier: Apache-2.0
"""Clients of a slow network, as a program: slow_clients.py PORT PATH CLIENTS. Each asks for the path again and again on
a kept connection, and reads a few KB ten times a second, so that the server has to wait for it. Ends by a signal."""

import socket
import sys
import time

READ_BYTES, TURN_SECONDS = 4096, 0.1
BUFFER_BYTES = 8192  # of the socket: what the kernel takes for a client that does not read


class Client:
    def __init__(self, port, path):
        self.port = port
        self.request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self.open()

    def open(self):
        self.left, self.head = 0, b""
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        self.sock.connect(("127.0.0.1", self.port))
        self.sock.setblocking(False)
        self.sock.send(self.request)

    def read(self):
        """Reads once; asks again after a whole answer, on another connection where the server has ended this one."""
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.sock.close()
            self.open()
            return
        self.count(data)

    def count(self, data):
        if not self.left:
            self.head += data
            head, found, data = self.head.partition(b"\r\n\r\n")
            if not found:
                return
            self.left, self.head = find_length(head), b""
        self.left -= min(len(data), self.left)
        if not self.left:
            self.sock.send(self.request)


def find_length(head):
    lines = head.lower().split(b"\r\n")
    return next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)


def main(port, path, clients):
    clients = [Client(int(port), path) for _ in range(int(clients))]
    while True:
        for client in clients:
            client.read()
        time.sleep(TURN_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
