# SPDX-License-Identifier: Apache-2.0
"""The servers that are measured: their configurations, as their own users tune them, and their processes."""

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
SERVER_CPU, GENERATOR_CPU = 0, 1

NGINX = """daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.err crit;
events {{ worker_connections 16384; }}
http {{ access_log {log}; sendfile on; tcp_nopush on; tcp_nodelay on; {cache}
keepalive_requests 1000000000; keepalive_timeout 65;
client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
scgi_temp_path {dir}/s; gzip_static {variants};
server {{ listen 127.0.0.1:{port} deferred backlog=1024{options}; root {root}; {more} }} }}
"""
NGINX_CACHE = "open_file_cache max=20000 inactive=60s; open_file_cache_valid 30s; open_file_cache_errors on;"
LIGHTTPD = """server.document-root = "{root}"
server.port = {port}
server.bind = "127.0.0.1"
server.max-keep-alive-requests = 1000000000
server.max-fds = 16384
server.max-connections = 8192
server.max-keep-alive-idle = 65
server.listen-backlog = 1024
server.defer-accept = 1
server.network-backend = "sendfile"
server.stat-cache-engine = "inotify"
server.errorlog = "{dir}/lighttpd.err"
mimetype.assign = ( ".txt" => "text/plain", "" => "application/octet-stream" )
"""
H2O = """num-threads: 1
num-name-resolution-threads: 1
max-connections: 16384
listen:
  host: 127.0.0.1
  port: {port}
{tls}hosts:
  default:
    paths:
      "/":
        file.dir: {root}
        file.send-compressed: {variants}
"""
H2O_TLS = """  ssl:
    certificate-file: {cert}
    key-file: {key}
    minimum-version: TLSv1.2
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
            ["taskset", "-c", str(SERVER_CPU), *self.command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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
    make_file(os.path.join(root, "26k.bin.gz"), 8000)  # the content is not read
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
    options = " tls" if "tls" in more else ""
    write(os.path.join(folder, "monkey.conf"), MONKEY.format(port=port, options=options))
    host = HOST.format(root=root) + (VARIANTS if "gz" in more else "")
    host += LOGGED.format(dir=folder) if "log" in more else ""
    host += MONKEY_TLS.format(**make_certificate(folder)) if "tls" in more else ""
    write(os.path.join(folder, "sites", "default"), host)
    return [os.path.join(ROOT, "build/release/bin/monkey"), "-c", folder], port


def make_nginx(folder, root, more):
    nginx, port = find("nginx"), free_port()
    text = NGINX.format(
        dir=folder,
        port=port,
        root=root,
        log=f"{folder}/access.log" if "log" in more else "off",
        variants="on" if "gz" in more else "off",
        cache=NGINX_CACHE if "cache" in more else "",
        options=" ssl http2" if "tls" in more else " http2" if "h2" in more else "",
        more=NGINX_TLS.format(**make_certificate(folder)) if "tls" in more else "",
    )
    path = write(os.path.join(folder, "nginx.conf"), text)
    return nginx and [nginx, "-p", folder, "-c", path], port


def make_lighttpd(folder, root, more):
    lighttpd, port = find("lighttpd"), free_port()
    text = LIGHTTPD.format(dir=folder, port=port, root=root)
    text += LIGHTTPD_TLS.format(**make_certificate(folder)) if "tls" in more else ""
    if "log" in more:
        text += f'server.modules = ( "mod_accesslog" )\naccesslog.filename = "{folder}/access.log"\n'
    path = write(os.path.join(folder, "lighttpd.conf"), text)
    return lighttpd and "gz" not in more and [lighttpd, "-D", "-f", path], port


def make_h2o(folder, root, more):
    h2o, port = find("h2o"), free_port()
    tls = H2O_TLS.format(**make_certificate(folder)) if "tls" in more else ""
    text = H2O.format(port=port, root=root, tls=tls, variants="ON" if "gz" in more else "OFF")
    path = write(os.path.join(folder, "h2o.conf"), text)
    return h2o and [h2o, "-c", path], port


MAKERS = {"monkey": make_monkey, "nginx": make_nginx, "lighttpd": make_lighttpd, "h2o": make_h2o}


def find(program):
    return shutil.which(program, path="/usr/sbin:/usr/bin")


def make_server(name, folder, root):
    """One of MAKERS; behind it `+log` for an access log, `+gz` for precompressed variants, `+tls` for encryption, `+h2`
    for HTTP/2 in the clear, `+cache` for nginx's open_file_cache. None: it is not installed."""
    kind, *more = name.split("+")
    own = os.path.join(folder, name)
    os.makedirs(own)
    command, port = MAKERS[kind](own, root, more)
    return Server(name, command, port) if command else None
