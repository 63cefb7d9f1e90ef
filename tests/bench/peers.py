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
server {{ listen 127.0.0.1:{port} deferred backlog=1024{options}; root {root}; {more} }} }}
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
    Listen 127.0.0.1:{port}{options}
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
NGINX_TLS = "ssl_certificate {cert}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;"
LIGHTTPD_TLS = """server.modules += ( "mod_openssl" )
ssl.engine = "enable"
ssl.pemfile = "{cert}"
ssl.privkey = "{key}"
"""
MONKEY_TLS = """[TLS]
    Certificate {cert}
    CertificateKey {key}
"""


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


def make_certificate(folder):
    """ECDSA P-256, as most sites have it."""
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    command = [*command.split(), "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", cert, "-keyout", key]
    subprocess.run(command, check=True, capture_output=True)
    os.chmod(key, 0o600)
    return {"cert": cert, "key": key}


def make_monkey(folder, root, more):
    port = free_port()
    options = " tls" if more == "tls" else ""
    write(os.path.join(folder, "monkey.conf"), MONKEY.format(port=port, options=options))
    host = HOST.format(root=root) + (VARIANTS if more == "gz" else "")
    host += LOGGED.format(dir=folder) if more == "log" else ""
    host += MONKEY_TLS.format(**make_certificate(folder)) if more == "tls" else ""
    write(os.path.join(folder, "sites", "default"), host)
    return [os.path.join(ROOT, "build/release/bin/monkey"), "-c", folder], port


def make_nginx(folder, root, more):
    nginx, port = shutil.which("nginx", path="/usr/sbin:/usr/bin"), free_port()
    text = NGINX.format(
        dir=folder,
        port=port,
        root=root,
        log=f"{folder}/access.log" if more == "log" else "off",
        variants="on" if more == "gz" else "off",
        options={"tls": " ssl http2", "h2": " http2"}.get(more, ""),
        more=NGINX_TLS.format(**make_certificate(folder)) if more == "tls" else "",
    )
    path = write(os.path.join(folder, "nginx.conf"), text)
    return nginx and [nginx, "-p", folder, "-c", path], port


def make_lighttpd(folder, root, more):
    lighttpd, port = shutil.which("lighttpd", path="/usr/sbin:/usr/bin"), free_port()
    text = LIGHTTPD.format(dir=folder, port=port, root=root)
    text += LIGHTTPD_TLS.format(**make_certificate(folder)) if more == "tls" else ""
    if more == "log":
        text += f'server.modules = ( "mod_accesslog" )\naccesslog.filename = "{folder}/access.log"\n'
    path = write(os.path.join(folder, "lighttpd.conf"), text)
    return lighttpd and more != "gz" and [lighttpd, "-D", "-f", path], port


MAKERS = {"monkey": make_monkey, "nginx": make_nginx, "lighttpd": make_lighttpd}


def make_server(name, folder, root):
    """One of MAKERS; behind it `+log` for an access log, `+gz` for precompressed variants, `+tls` for encryption, `+h2`
    for HTTP/2 in the clear. None: it is not there."""
    kind, _, more = name.partition("+")
    own = os.path.join(folder, name)
    os.makedirs(own)
    command, port = MAKERS[kind](own, root, more)
    return Server(name, command, port) if command else None
