#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries responses of backends on proxies, and prints what their clients get, as Markdown.

Uses Debian's nginx, haproxy, apache2, lighttpd, h2o and caddy, those that are installed, and this server:

    tests/peers/responses.py [--monkey PROGRAM] [--only NAME ...] > docs/internals/backend-responses.md
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "e2e"))

from backend_responses import CUT, REFUSED, RESPONSES  # noqa: E402

ROWS = [row for table in RESPONSES.values() for row in table.values()]
QUIET_S = 1  # a client that gets nothing for so long has got all
MINE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine"

# ── the backend ──


def read_head(conn):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = conn.recv(1)
        if not byte:
            return b""
        head += byte
    return head


def respond(conn):
    """Sends the row that the path names; on a connection that is used again what is late, before the real response."""
    late = b""
    while head := read_head(conn):
        target = re.match(rb"[A-Z]+ [^ ]*/(\d*)", head)[1]
        if not target:
            conn.sendall(late + MINE)
            continue
        row = ROWS[int(target)]
        conn.sendall(row.sent)
        late = row.late
        if row.ends or b" HTTP/1.0\r\n" in head or b"\r\nconnection: close\r\n" in head.lower():
            return


def serve_backend():
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def serve(conn):
        with conn, contextlib.suppress(OSError):
            conn.settimeout(10)
            respond(conn)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


# ── the client ──


def decode_chunks(data):
    """The body, or None: it is not complete."""
    body = b""
    while (found := re.match(rb"([0-9A-Fa-f]+)[^\n]*\n", data)) is not None:
        size = int(found[1], 16)
        if size == 0:
            return body
        body += data[found.end() : found.end() + size]
        data = data[found.end() + size + 2 :]
    return None


def take_last_head(data):
    """Skips interim responses. Returns the status, the head and what follows it; None: there is none."""
    while (found := re.match(rb"HTTP/1\.[01] (\d{3})[^\n]*\n((?:[^\r\n]+\r?\n)*)\r?\n", data)) is not None:
        data = data[found.end() :]
        if found[1] == b"101" or not found[1].startswith(b"1"):
            return int(found[1]), found[2].lower(), data
    return None


def take_message(data, method, has_ended):
    """(status, body) of a response; the body is None while it is not complete. None: there is no head."""
    last = take_last_head(data)
    if last is None:
        return None
    status, head, data = last
    length = re.search(rb"content-length: *(\d+)", head)
    if method == "HEAD" or status in (204, 304):
        return status, b""
    if b"transfer-encoding: chunked" in head:
        return status, decode_chunks(data)
    if length:
        return status, data[: int(length[1])] if len(data) >= int(length[1]) else None
    return status, data if has_ended else None


def ask(conn, method, path):
    """Returns (status, body, whether the connection has ended)."""
    conn.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    data, has_ended = b"", False
    with contextlib.suppress(OSError):
        while (got := take_message(data, method, has_ended)) is None or (got[1] is None and not has_ended):
            piece = conn.recv(65536)
            data += piece
            has_ended = not piece
            if has_ended:
                break
    got = take_message(data, method, has_ended)
    return (*got, has_ended) if got else (None, None, has_ended)


def connect(port):
    conn = socket.create_connection(("127.0.0.1", port), 5)
    conn.settimeout(QUIET_S)
    return conn


def describe(row, status, body, has_ended):
    if status is None:
        return "closed" if has_ended else "waits"
    if body is None:
        return f"{status}, cut" if has_ended else f"{status}, waits"
    if status != row.status:
        return str(status)
    return f"{status} {body.decode('latin1')}".strip() if len(body) < 16 else f"{status}, {len(body)} bytes"


def describe_next(port):
    """What the next request gets, of another client."""
    with connect(port) as conn:
        _, body, _ = ask(conn, "GET", "/")
    return "the next one gets it" if body != b"mine" else "not kept"


def try_row(port, number):
    row = ROWS[number]
    with connect(port) as conn:
        got = describe(row, *ask(conn, row.method, f"/{number}"))
    return f"{got}, {describe_next(port)}" if row.late else got


# ── the servers ──

NGINX = """daemon off; pid {dir}/pid; error_log {dir}/error.log; worker_processes 1; user root;
events {{}}
http {{
    access_log off; client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c;
    uwsgi_temp_path {dir}/d; scgi_temp_path {dir}/e;
    upstream backend {{ server 127.0.0.1:{backend} max_fails=0; keepalive 8; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_next_upstream off;
        }}
    }}
}}
"""

HAPROXY = """global
    maxconn 100
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
    retries 0
    http-reuse always
listen all
    bind 127.0.0.1:{port}
    server backend 127.0.0.1:{backend}
"""

APACHE = """ServerRoot {dir}
ServerName localhost
PidFile {dir}/pid
ErrorLog {dir}/error.log
Listen 127.0.0.1:{port}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
User www-data
Group www-data
StartServers 1
ServerLimit 1
ThreadsPerChild 25
MaxRequestWorkers 25
ProxyPass / http://127.0.0.1:{backend}/ retry=0
"""

LIGHTTPD = """server.modules = ("mod_proxy")
server.document-root = "{dir}"
server.errorlog = "{dir}/error.log"
server.bind = "127.0.0.1"
server.port = {port}
proxy.server = ("" => (("host" => "127.0.0.1", "port" => {backend})))
"""

H2O = """num-threads: 1
hosts:
  default:
    listen:
      host: 127.0.0.1
      port: {port}
    paths:
      "/":
        proxy.reverse.url: http://127.0.0.1:{backend}/
        proxy.timeout.keepalive: 5000
user: root
"""

CADDY = """{{
    admin off
    auto_https off
}}
http://127.0.0.1:{port}, http://localhost:{port} {{
    bind 127.0.0.1
    reverse_proxy 127.0.0.1:{backend}
}}
"""

MONKEY = """[SERVER]
    Listen 127.0.0.1:{port}
    Workers 1
"""
MONKEY_SITE = """[HOST]
    ServerName localhost

[PROXY]
    Match /
    To http://127.0.0.1:{backend}
"""

# the name, its text of a configuration, and what starts it
PEERS = (
    ("nginx", NGINX, ["nginx", "-e", "{dir}/error.log", "-p", "{dir}", "-c", "{conf}"]),
    ("haproxy", HAPROXY, ["haproxy", "-f", "{conf}"]),
    ("apache2", APACHE, ["apache2", "-X", "-f", "{conf}"]),
    ("lighttpd", LIGHTTPD, ["lighttpd", "-D", "-f", "{conf}"]),
    ("h2o", H2O, ["h2o", "-m", "worker", "-c", "{conf}"]),
    ("caddy", CADDY, ["caddy", "run", "--adapter", "caddyfile", "--config", "{conf}"]),
    ("monkey", MONKEY, ["{monkey}", "-c", "{dir}"]),
)

VERSIONS = {"nginx": "-v", "haproxy": "-v", "apache2": "-v", "lighttpd": "-v", "h2o": "-v", "caddy": "version"}


def find_version(name):
    if name not in VERSIONS:
        return ""
    done = subprocess.run([name, VERSIONS[name]], capture_output=True, text=True, check=False)
    return re.search(r"\d+\.\d+(\.\d+)?", done.stdout + done.stderr)[0]


def find_free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


class Peer:
    """A server in front of the backend, which is started again when it has crashed."""

    def __init__(self, text, command, backend, monkey):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peer-"))
        self.folder.chmod(0o755)
        self.port = find_free_port()
        names = {"dir": self.folder, "port": self.port, "backend": backend, "conf": self.folder / "monkey.conf",
                 "monkey": monkey}  # fmt: skip
        names["conf"].write_text(text.format(**names))
        (self.folder / "sites").mkdir()
        (self.folder / "sites" / "default").write_text(MONKEY_SITE.format(**names))
        self.command = [word.format(**names) for word in command]
        self.start()

    def start(self):
        output = self.folder / "output"
        with open(output, "wb") as file:
            self.process = subprocess.Popen(self.command, stdout=file, stderr=file, start_new_session=True,
                                            env={**os.environ, "HOME": str(self.folder)})  # fmt: skip
        wait_for_port(self.port, self.process, output)

    def try_row(self, number):
        with contextlib.suppress(OSError):
            got = try_row(self.port, number)
            time.sleep(0.01)  # one that crashes is gone
            if self.process.poll() is None:
                return got
        self.process.wait(10)
        self.start()
        return "crashes"

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)


def wait_for_port(port, process, output):
    for _ in range(200):
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", port)).close()
        if process.poll() is not None:
            break
        time.sleep(0.05)
    sys.exit(f"{process.args[0]} does not listen: {output.read_text()}")


# ── the table ──

INTRODUCTION = """# Responses of backends, and what proxies do with them

`tests/peers/responses.py` has printed this page; the responses are in `tests/e2e/backend_responses.py`, and
`tests/e2e/test_backend_responses.py` holds this server to its column. A cell is the status and the body that the client
gets: "cut" is a response that is broken off, "waits" one whose end does not come. "Late" bytes come when the connection
to the backend is used for the next request: "the next one gets it" is a response that the wrong client has got.

`monkey` is this server, the others are those of Debian 12:
{others}.

What it accepts is what the others do and RFC 9112 lets a recipient of a response recover, where it has one meaning:
LF alone ends a line of a head (section 2.2), blanks before a colon are left out (section 5.1), and blanks behind the
size of a chunk, which older servers pad it with, and extensions of any form are skipped, up to the end of their line
even within quotes. A status above 599 is passed on, as all others do: clients read it as one of 5xx (RFC 9110
section 15), and so do this server's counters. `Retry` and `EjectOn` of a group end at 599: nothing is known of what it
means.

Two lengths, a length with a coding, a coding of HTTP/1.0, folded lines, a CR without LF, LF alone in a body of chunks,
a name that is no token and control bytes are refused, whatever others do. A connection is not kept when a response
that has no body speaks of one, by a length or by a coding: it may come late.
"""


def show(cell):
    for byte, text in (("|", "\\|"), ("\0", "\\0"), ("\r", "\\r"), ("\n", "\\n")):
        cell = cell.replace(byte, text)
    return cell


def print_tables(results):
    names = list(results)
    others = ", ".join(f"{name} {find_version(name)}" for name in names if name != "monkey")
    print(INTRODUCTION.format(others=others).rstrip())
    number = 0
    for title, table in RESPONSES.items():
        print(f"\n## {title}\n\n| response | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
        for label in table:
            print(f"| {label} | {' | '.join(show(results[name][number]) for name in names)} |")
            number += 1


def print_agreement(results):
    """To stderr: where all others take what this server refuses, and the other way round."""
    number = 0
    for table in RESPONSES.values():
        for label, row in table.items():
            others = {results[name][number] for name in results if name != "monkey"} - {"crashes"}
            takes = row.wanted not in (REFUSED, CUT)
            if len(others) == 1 and others.pop().startswith(f"{row.status}") != takes:
                print(f"all others differ: {label}: {results['nginx'][number]}", file=sys.stderr)
            number += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--monkey", default=TOP / "build" / "release" / "bin" / "monkey")
    parser.add_argument("--only", nargs="*", default=[name for name, *_ in PEERS])
    options = parser.parse_args()
    backend, results = serve_backend(), {}
    for name, text, command in PEERS:
        if name not in options.only or (name != "monkey" and not shutil.which(name)):
            continue
        with contextlib.closing(Peer(text, command, backend, options.monkey)) as peer:
            results[name] = [peer.try_row(number) for number in range(len(ROWS))]
    print_tables(results)
    print_agreement(results)


if __name__ == "__main__":
    main()
