# SPDX-License-Identifier: Apache-2.0
"""The servers whose configurations `monkey convert` reads, as processes of a test: nginx and Apache."""

import pathlib
import re
import shutil
import socket
import subprocess

from .server import await_true

MAIN_OF_NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
"""
PLACES_OF_NGINX = "".join(f"    {kind}_temp_path {{folder}}/{kind};\n" for kind in (
    "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
MODULES = (
    "mpm_event authz_core authz_host authn_core authn_file auth_basic authz_user alias dir autoindex "
    "mime rewrite headers expires proxy proxy_http proxy_fcgi proxy_balancer lbmethod_byrequests "
    "slotmem_shm ssl cgid filter deflate setenvif access_compat socache_shmcb http2"
).split()
HEAD_OF_APACHE = """
ServerRoot {folder}
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
ScriptSock {folder}/cgid.sock
TypesConfig /etc/mime.types
ErrorLog {folder}/apache-error.log
ServerName original
"""


def find(server):
    """The path of the program; None: it is not installed."""
    return shutil.which({"nginx": "nginx", "apache": "apache2", "caddy": "caddy"}[server], path="/usr/sbin:/usr/bin")


class Original:
    """A running server with a configuration that is translated already."""

    def __init__(self, server, text, folder, port):
        self.folder, conf = folder, folder / f"original.{server}"
        conf.write_text(self.wrap_nginx(text) if server == "nginx" else self.wrap_apache(text))
        command = {"nginx": [find("nginx"), "-p", folder, "-c", conf],
                   "apache": [find("apache"), "-D", "FOREGROUND", "-f", conf]}  # fmt: skip
        self.log = (folder / f"{server}.log").open("w+")
        self.process = subprocess.Popen([*map(str, command[server])], stdout=self.log, stderr=self.log)

        def accepts():
            assert self.process.poll() is None, (folder / f"{server}.log").read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        await_true(accepts, 30, f"the start of {server}")

    def wrap_nginx(self, text):
        for path in pathlib.Path("/etc/nginx").glob("*"):
            if path.is_file() and path.name != "nginx.conf" and not (self.folder / path.name).exists():
                shutil.copy(path, self.folder / path.name)
        for name in re.findall(r"include (/\S+);|ssl_dhparam", text):
            if name:
                pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
                pathlib.Path(name).write_text("")
        text = re.sub(r"^(?:pid|daemon|error_log|ssl_dhparam| *ssl_dhparam) .*\n", "", text, flags=re.M)
        head, places = MAIN_OF_NGINX.format(folder=self.folder), PLACES_OF_NGINX.format(folder=self.folder)
        if "http {" in text:
            return head + text.replace("http {", "http {\n" + places, 1)
        return (f"{head}events {{ worker_connections 64; }}\nhttp {{\n{places}"
                f"    include /etc/nginx/mime.types;\n    access_log off;\n{text}\n}}\n")

    def wrap_apache(self, text):
        folder = "/usr/lib/apache2/modules"
        modules = "".join(f"<IfModule !mod_{name}.c>\nLoadModule {name}_module {folder}/mod_{name}.so\n</IfModule>\n"
                          for name in MODULES)
        return modules + HEAD_OF_APACHE.format(folder=self.folder) + text

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
