# SPDX-License-Identifier: Apache-2.0
"""The servers that are measured: their configurations, as equal as they can be, and their processes."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILES = {"13.txt": 13, "26k.bin": 26510, "200k.bin": 200 * 1024, "1m.bin": 1 << 20}
MANY = 10_000  # files of 1 to 8 KB

NGINX = """daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.err crit;
events {{ worker_connections 16384; }}
http {{ access_log {log}; sendfile on; tcp_nopush off; keepalive_requests 1000000000; keepalive_timeout 65;
client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
scgi_temp_path {dir}/s; gzip_static {variants};
server {{ listen 127.0.0.1:{port} deferred backlog=1024; root {root}; }} }}
"""
LIGHTTPD = """server.document-root = "{root}"
server.port = {port}
server.bind = "127.0.0.1"
server.max-keep-alive-requests = 1000000000
server.max-fds = 16384
server.max-connections = 8192
server.errorlog = "{dir}/lighttpd.err"
mimetype.assign = ( ".txt" => "text/plain", "" => "application/octet-stream" )
"""
MONKEY = """[SERVER]
    Listen 127.0.0.1:{port}
    Workers 1
    MaxKeepAliveRequest 0
    KeepAliveTimeout 65
    LogLevel error
"""
HOST = """[HOST]
    ServerName localhost
    DocumentRoot {root}
"""
LOGGED = """[LOGGER]
    AccessLog {dir}/access.log
    Format combined
"""
VARIANTS = "    Precompressed gzip\n"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, name, command, port):
        self.name, self.command, self.port = name, command, port

    def start(self):
        self.process = subprocess.Popen(
            ["taskset", "-c", "0"] + self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.02)
        sys.exit(f"{self.name} does not answer; its command was {' '.join(self.command)}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def pids(self):
        found, queue = [], [self.process.pid]
        while queue:
            pid = queue.pop()
            found.append(pid)
            try:
                with open(f"/proc/{pid}/task/{pid}/children") as f:
                    queue += [int(p) for p in f.read().split()]
            except OSError:
                pass
        return found

    def cpu_seconds(self):
        total = 0
        for pid in self.pids():
            for tid in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
                    total += int(f.read().split()[0])
        return total / 1e9

    def memory(self):
        """PSS and private dirty memory in KB."""
        pss = dirty = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/smaps_rollup") as f:
                text = f.read()
            pss += int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1))
            dirty += int(re.search(r"^Private_Dirty:\s+(\d+)", text, re.M).group(1))
        return pss, dirty


def make_file(path, size):
    with open(path, "wb") as f:
        f.write((b"Hello, World\n" * (size // 13 + 1))[:size])
    os.utime(path, (time.time() - 3600,) * 2)


def make_files(root):
    for name, size in FILES.items():
        make_file(os.path.join(root, name), size)
    make_file(os.path.join(root, "26k.bin.gz"), 8000)  # nobody looks inside
    os.makedirs(os.path.join(root, "many"))
    for n in range(MANY):
        make_file(os.path.join(root, "many", str(n)), 1024 + n * 7919 % (7 * 1024))


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    return path


def make_monkey(folder, root, log, variants):
    port = free_port()
    write(os.path.join(folder, "monkey.conf"), MONKEY.format(port=port))
    host = HOST.format(root=root) + (VARIANTS if variants else "") + (LOGGED.format(dir=folder) if log else "")
    write(os.path.join(folder, "sites", "default"), host)
    return [os.path.join(ROOT, "build/release/bin/monkey"), "-c", folder], port


def make_nginx(folder, root, log, variants):
    nginx, port = shutil.which("nginx", path="/usr/sbin:/usr/bin"), free_port()
    log, variants = (f"{folder}/access.log" if log else "off"), ("on" if variants else "off")
    text = NGINX.format(dir=folder, port=port, root=root, log=log, variants=variants)
    path = write(os.path.join(folder, "nginx.conf"), text)
    return nginx and [nginx, "-p", folder, "-c", path], port


def make_lighttpd(folder, root, log, variants):
    lighttpd, port = shutil.which("lighttpd", path="/usr/sbin:/usr/bin"), free_port()
    text = LIGHTTPD.format(dir=folder, port=port, root=root)
    if log:
        text += f'server.modules = ( "mod_accesslog" )\naccesslog.filename = "{folder}/access.log"\n'
    path = write(os.path.join(folder, "lighttpd.conf"), text)
    return lighttpd and not variants and [lighttpd, "-D", "-f", path], port


MAKERS = {"monkey": make_monkey, "nginx": make_nginx, "lighttpd": make_lighttpd}


def make_server(name, folder, root):
    """One of MAKERS; behind it `+log` for an access log, `+gz` for precompressed variants. None: it is not there."""
    kind, _, more = name.partition("+")
    own = os.path.join(folder, name)
    os.makedirs(own)
    command, port = MAKERS[kind](own, root, more == "log", more == "gz")
    return Server(name, command, port) if command else None
