# SPDX-License-Identifier: Apache-2.0
"""A file server that is right but for one thing, which its third argument names: lying_server.py PORT ROOT LIE. Some
are no lies: `plain` answers neither ranges nor validators, `none` does everything right, and `death` and `hang` do so
for a while."""

import email.utils
import http.server
import os
import re
import socket
import sys
import time

PATIENCE = 1  # requests of the generator before one that dies or hangs does so: a slow machine asks for few
ETAG = '"of-this-file"'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        if self.server.lie == "log":
            with open("access.log", "a", encoding="ascii") as file:
                file.write(f"127.0.0.1 {time.time()} {self.requestline}\n")

    def send(self, status, body=b"", **headers):
        lie = self.server.lie
        self.send_response(418 if lie == "status" and status == 200 else status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if lie != "plain":
            self.send_header("ETag", ETAG)
            self.send_header("Last-Modified", self.date)
        if status != 304:
            self.send_header("Content-Length", str(len(body) + (lie == "length of head" and self.command == "HEAD")))
        if lie == "close":
            self.close_connection = True
        self.end_headers()
        has_body = self.command == "GET" and status != 304
        if has_body or lie == "body of head" or (lie == "body of 304" and status == 304):
            self.wfile.write(body)

    def is_unchanged(self):
        lie, etag, date = self.server.lie, self.headers["If-None-Match"], self.headers["If-Modified-Since"]
        if lie == "plain":
            return False
        if etag:
            return etag == ETAG or lie == "etag"
        return date and (date == self.date or lie == "date")

    def send_range(self, content):
        lie, size = self.server.lie, len(content)
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers["Range"]).groups()
        if first and int(first) >= size:
            return self.send(206 if lie == "range beyond" else 416)
        first, last = (int(first), int(last or size - 1)) if first else (size - int(last), size - 1)
        shift = lie == "range"
        said = f"bytes {first + (lie == 'content-range')}-{last}/{size}"
        return self.send(206, content[first + shift : last + 1 + shift], Content_Range=said)

    def do_GET(self):
        self.server.asked += not self.headers["User-Agent"]  # which the checks have, and the generator has not
        if self.server.asked > PATIENCE and self.server.lie == "death":
            print("no more", flush=True)
            os._exit(9)
        if self.server.asked > PATIENCE and self.server.lie == "hang":
            time.sleep(600)
        path = self.server.root + self.path
        if not os.path.isfile(path):
            return self.send(200 if self.server.lie == "missing" else 404, b"no such file")
        self.date = email.utils.formatdate(os.path.getmtime(path), usegmt=True)
        with open(path, "rb") as file:
            content = file.read()
        if self.server.lie == "bytes":
            content = content[:-1] + b"?"
        if self.is_unchanged():
            return self.send(304, content)
        if self.headers["Range"] and self.server.lie != "plain":
            return self.send_range(content)
        return self.send(200, content)

    do_HEAD = do_GET
    date = email.utils.formatdate(0, usegmt=True)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024

    def get_request(self):
        sock, address = super().get_request()
        if self.lie == "congestion control":
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.other)
        return sock, address

    def handle_error(self, *_):
        """Clients that leave at the end of a round are no mistake: their traces would look like a log."""

    def find_other(self):
        """A congestion control that is not the default."""
        with open("/proc/sys/net/ipv4/tcp_allowed_congestion_control", encoding="ascii") as file:
            allowed = file.read().split()
        with open("/proc/sys/net/ipv4/tcp_congestion_control", encoding="ascii") as file:
            default = file.read().strip()
        return next(name for name in allowed if name != default).encode()


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    server.root, server.lie, server.other, server.asked = sys.argv[2], sys.argv[3], b"", 0
    if server.lie == "congestion control":
        server.other = server.find_other()
    server.serve_forever()
