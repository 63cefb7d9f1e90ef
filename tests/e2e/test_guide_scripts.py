# SPDX-License-Identifier: Apache-2.0
"""The page about PHP, CGI and SCGI: each of its configurations, with scripts that say what they are asked for."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading

import pytest

from harness import build
from harness.client import Client
from harness.content import populate
from harness.php import PhpFpm, needs_php
from harness.server import Server, free_port, run

PAGE = build.TOP / "docs/guide/scripts.md"
BLOCK = re.compile(r"^```\w+\n(?:#|//) file: (\S+)\n(.*?)^```", re.S | re.M)
PARTS = dict(part.split("\n", 1) for part in re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:])
SCRIPT = b"""<?php
header("Content-Type: application/json");
echo json_encode([$_SERVER["SCRIPT_NAME"], $_SERVER["PATH_INFO"] ?? "", $_SERVER["SCRIPT_FILENAME"]]);
"""
FILE = b"a file\n"
pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugins"),
    pytest.mark.single_protocol,
]


class Site:
    """A section of the page below a folder of the test's own."""

    def __init__(self, folder):
        self.folder, self.server, self.php, self.ports = folder, None, None, {}
        for name in ("www", "cgi", "cgit", "cgit-files", "git", "git-cgi", "wordpress", "dokuwiki", "nextcloud"):
            (folder / "srv" / name).mkdir(parents=True)

    def translate(self, text):
        text = text.replace("Listen          2001", "Listen 127.0.0.1:0")
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{self.ports.setdefault('app', free_port())}")
        text = text.replace("unix:/run/php/php-fpm.sock", self.php.to if self.php else f"unix:{self.folder}/none")
        return text.replace("/srv/", f"{self.folder}/srv/")

    def write(self, heading):
        first = dict(BLOCK.findall(PARTS["PHP"]))
        blocks = {"monkey.conf": first["monkey.conf"], **dict(BLOCK.findall(PARTS[heading]))}
        for name, text in blocks.items():
            path = self.folder / "conf" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.translate(text))
        return self.folder / "conf"

    def start(self, heading):
        self.server = Server("-c", self.write(heading))

    def ask(self, target, *fields, **rest):
        with Client(self.server.addresses[0]) as client:
            return client.ask(target, *fields, **rest)

    def stop(self):
        if self.server:
            self.server.stop()
        if self.php:
            self.php.kill()


@pytest.fixture
def site(tmp_path):
    one = Site(tmp_path)
    yield one
    one.stop()


HAS_CGI = (build.PLUGINS / "cgi.so").exists()


@pytest.mark.parametrize("heading", [name for name, part in PARTS.items() if HAS_CGI or "[CGI]" not in part])
def test_is_accepted(site, heading):
    (site.folder / "srv/app/current/public").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as php:
        php.bind(str(site.folder / "none"))  # else a warning
        result = run("-c", site.write(heading), "-t")
    assert (result.returncode, result.stderr) == (0, "monkey: the configuration is fine\n")


# ── PHP ──

# Of each application: files and scripts of its folder, and what the server makes of paths: a script and its PATH_INFO,
# FILE, or a status.
APPLICATIONS = {
    "PHP": (
        "www",
        ["style.css", "shop.php.bak"],
        ["index.php", "shop.php", "sub/index.php"],
        {
            "/": ["/index.php", ""],
            "/shop.php/a": ["/shop.php", "/a"],
            "/sub/?x=1": ["/sub/index.php", ""],
            "/sub": 301,
            "/style.css": FILE,
            "/style.css/x.php": 404,
            "/none.php": 404,
            "/none": 404,
            "/shop.php.bak": 404,
        },
    ),
    "WordPress": (
        "wordpress",
        ["wp-content/uploads/a.png", "wp-includes/a.js", "wp-config.php~"],
        ["index.php", "wp-login.php", "wp-admin/index.php", "wp-content/uploads/shell.php", "wp-config.php"],
        {
            "/": ["/index.php", ""],
            "/2026/11/hello-world/?x=1": ["/index.php", ""],
            "/wp-admin/": ["/wp-admin/index.php", ""],
            "/wp-login.php": ["/wp-login.php", ""],
            "/wp-includes/a.js": FILE,
            "/wp-content/uploads/a.png": FILE,
            "/wp-content/uploads/shell.php": 403,
            "/wp-content/uploads/shell.php/x": 403,
            "/wp-config.php~": ["/index.php", ""],
        },
    ),
    "DokuWiki": (
        "dokuwiki",
        ["lib/tpl/style.css", "data/pages/start.txt", "conf/users.auth.php"],
        ["doku.php", "lib/exe/fetch.php", "inc/init.php"],
        {
            "/": ["/doku.php", ""],
            "/doku.php/wiki/syntax": ["/doku.php", "/wiki/syntax"],
            "/lib/exe/fetch.php/x.png": ["/lib/exe/fetch.php", "/x.png"],
            "/lib/tpl/style.css": FILE,
            "/data/pages/start.txt": 403,
            "/conf/users.auth.php": 403,
            "/inc/init.php": 403,
        },
    ),
    "Nextcloud": (
        "nextcloud",
        ["core/js/a.js", "data/secret", "occ", "apps/files/a.svg"],
        ["index.php", "remote.php", "ocs/v1.php", "config/config.php"],
        {
            "/": ["/index.php", ""],
            "/apps/files/": ["/index.php", ""],
            "/login": ["/index.php", ""],
            "/s/abc": ["/index.php", ""],
            "/index.php/s/abc": ["/index.php", "/s/abc"],
            "/remote.php/dav/files/x": ["/remote.php", "/dav/files/x"],
            "/ocs/v1.php/cloud": ["/ocs/v1.php", "/cloud"],
            "/core/js/a.js": FILE,
            "/apps/files/a.svg": FILE,
            "/.well-known/carddav": 301,
            "/config/config.php": 404,
            "/data/secret": 404,
            "/occ": 404,
        },
    ),
    "Laravel": (
        "app/releases/1/public",
        ["css/app.css", "../storage/a.png"],
        ["index.php"],
        {
            "/": ["/index.php", ""],
            "/users/1": ["/index.php", ""],
            "/users/a.php": ["/index.php", ""],
            "/css/app.css": FILE,
            "/css/": ["/index.php", ""],
            "/storage/a.png": FILE,
        },
    ),
}


@needs_php
@pytest.mark.parametrize("heading", APPLICATIONS)
def test_routes(site, heading):
    folder, files, scripts, paths = APPLICATIONS[heading]
    root = site.folder / "srv" / folder
    populate(root, {**dict.fromkeys(files, FILE), **dict.fromkeys(scripts, SCRIPT)})
    if heading == "Laravel":
        (site.folder / "srv/app/current").symlink_to("releases/1")
        (root / "storage").symlink_to("../storage")
    site.php = PhpFpm(site.folder / "php")
    site.start(heading)
    found = {}
    for path in paths:
        got = site.ask(path)
        is_script = got["Content-Type"] == "application/json"
        found[path] = json.loads(got.body)[:2] if is_script else FILE if got.body == FILE else got.status
    assert found == paths
    if heading == "Laravel":  # the release, not the link
        assert json.loads(site.ask("/").body)[2] == str(root.resolve() / "index.php")


# ── CGI and SCGI ──

needs_cgi = pytest.mark.skipif(not HAS_CGI, reason="this preset has no plugin cgi")


@needs_cgi
def test_python(site):
    path = site.folder / "srv/cgi/hello.py"
    path.write_text(dict(BLOCK.findall(PARTS["A CGI program in Python"]))["hello.py"])
    site.start("A CGI program in Python")
    assert site.ask("/cgi-bin/hello.py/world").body == b"hello, /world\n"
    assert site.ask("/cgi-bin/hello.py").body == b"hello, nobody\n"
    assert site.ask("/cgi-bin/none.py").status == 404


@needs_cgi
def test_cgit(site):
    path = site.folder / "srv/cgit/cgit.cgi"
    path.write_text('#!/bin/sh\nprintf "Content-Type: text/plain\\n\\n%s %s" "$SCRIPT_NAME" "$PATH_INFO"\n')
    path.chmod(0o755)
    (site.folder / "srv/cgit-files/cgit.css").write_bytes(FILE)
    site.start("cgit")
    assert site.ask("/git/cgit.cgi/project/log").body == b"/git/cgit.cgi /project/log"
    assert site.ask("/cgit.css").body == FILE
    assert site.ask("/")["Location"].endswith("/git/cgit.cgi/")


@needs_cgi
@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_git(site, tmp_path):
    """A clone, complete and shallow."""
    heading = "git over HTTP"
    path = site.folder / "srv/git-cgi/git"
    path.write_text(dict(BLOCK.findall(PARTS[heading]))["git"])
    path.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]

    def git(*words):
        subprocess.run(["git", *names, *map(str, words)], check=True, capture_output=True, env=environment, timeout=300)

    work = tmp_path / "work"
    git("init", work)
    for n in range(3):
        (work / "file").write_text(f"{n}\n" * 10_000)
        git("-C", work, "add", "file")
        git("-C", work, "commit", "-m", f"change {n}")
    git("clone", "--bare", work, site.folder / "srv/git/project.git")
    site.start(heading)
    url = f"{site.server.url}/repositories/git/project.git"
    git("clone", url, tmp_path / "whole")
    git("clone", "--depth", "1", url, tmp_path / "shallow")
    assert (tmp_path / "whole/file").read_text() == (tmp_path / "shallow/file").read_text() == "2\n" * 10_000


def read_netstring(conn):
    data = b""
    while b":" not in data:
        data += conn.recv(4096)
    size, _, data = data.partition(b":")
    while len(data) < int(size) + 1:
        data += conn.recv(4096)
    return data[: int(size)]


def answer_one(listener):
    with listener.accept()[0] as conn:
        words = read_netstring(conn).split(b"\0")
        names = dict(zip(words[::2], words[1::2]))
        conn.sendall(b"Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        conn.sendall(b" ".join(names[name] for name in (b"SCGI", b"SCRIPT_NAME", b"PATH_INFO")))


def test_scgi(site):
    site.start("SCGI")
    with socket.create_server(("127.0.0.1", site.ports["app"])) as listener:
        listener.settimeout(60)
        thread = threading.Thread(target=answer_one, args=[listener])
        thread.start()
        assert site.ask("/app/list/1").body == b"1 /app /list/1"
        thread.join()
    (site.folder / "srv/www/a.txt").write_bytes(FILE)
    assert site.ask("/a.txt").body == FILE
