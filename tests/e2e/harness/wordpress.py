# SPDX-License-Identifier: Apache-2.0
"""WordPress in a browser without a window, and its database."""

import base64
import contextlib
import http.cookiejar
import json
import pathlib
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest

from .php import PROGRAM
from .server import await_true

SOURCES = pathlib.Path("/usr/share/wordpress")
PROGRAMS = "mariadbd", "mariadb"
MISSING = [program for program in PROGRAMS if not shutil.which(program, path="/usr/sbin:/usr/bin")]
needs_wordpress = pytest.mark.skipif(bool(MISSING) or not PROGRAM or not SOURCES.exists(), reason="no WordPress here")
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
THEME = """<?php
wp_head();
while (have_posts()) {
    the_post();
    echo '<a href="' . get_permalink() . '">' . get_the_title() . '</a>';
    the_content();
}
"""
PASSWORD = "correct horse battery staple"


@contextlib.contextmanager
def start_database(folder):
    """Starts MariaDB with a database `wp`. Returns the path of its socket."""
    folder.mkdir()
    own = ["--no-defaults", f"--datadir={folder}/data", "--user=root"]
    install = ["mariadb-install-db", *own, "--auth-root-authentication-method=normal", "--skip-test-db", "--force"]
    subprocess.run(install, check=True, capture_output=True, timeout=300)
    path = folder / "socket"
    with (folder / "log").open("w") as log:
        command = ["/usr/sbin/mariadbd", *own, f"--socket={path}", "--skip-networking", f"--pid-file={folder}/pid"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    client = ["mariadb", "--no-defaults", "-u", "root", "-S", path, "-e"]

    def create():
        assert process.poll() is None, (folder / "log").read_text()
        return subprocess.run([*client, "create database if not exists wp"], capture_output=True).returncode == 0

    try:
        await_true(create, 120, "the database")
        yield path
    finally:
        process.terminate()
        process.wait()


class Browser:
    """Keeps cookies, and follows redirects."""

    def __init__(self, url):
        self.url = url
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(cookies)

    def open(self, path, fields=None, kind=None):
        data = urllib.parse.urlencode(fields).encode() if isinstance(fields, dict) else fields
        headers = {"Content-Type": kind} if kind else {}
        request = urllib.request.Request(urllib.parse.urljoin(self.url, path), data, headers)
        with self.opener.open(request, timeout=300) as answer:
            return answer.url, answer.read()

    def read(self, path, fields=None):
        return self.open(path, fields)[1].decode()


def find_nonce(page, name="_wpnonce"):
    return re.search(rf'name="{name}" value="([0-9a-f]+)"', page)[1]


def multipart(fields, name, content):
    parts = [f'Content-Disposition: form-data; name="{key}"\r\n\r\n{value}'.encode() for key, value in fields.items()]
    head = f'Content-Disposition: form-data; name="async-upload"; filename="{name}"\r\nContent-Type: image/png\r\n\r\n'
    parts.append(head.encode() + content)
    return b"".join(b"--edge\r\n" + part + b"\r\n" for part in parts) + b"--edge--\r\n"


def add_theme(themes):
    """One without files of other sites."""
    theme = themes / "plain"
    theme.mkdir(parents=True)
    (theme / "style.css").write_text("/* Theme Name: plain */\n")
    (theme / "index.php").write_text(THEME)


def install(browser):
    fields = {"weblog_title": "A blog", "user_name": "ada", "admin_password": PASSWORD, "admin_password2": PASSWORD,
              "admin_email": "ada@example.org", "blog_public": "0", "Submit": "Install", "language": ""}  # fmt: skip
    assert "Success!" in browser.read("/wp-admin/install.php?step=2", fields)


def log_in(browser):
    browser.read("/wp-login.php")  # its cookie
    url, page = browser.open("/wp-login.php", {"log": "ada", "pwd": PASSWORD, "testcookie": "1", "wp-submit": "Log In"})
    assert url.endswith("/wp-admin/") and b"Dashboard" in page


def choose_permalinks(browser):
    page = browser.read("/wp-admin/options-permalink.php")
    form = {"_wpnonce": find_nonce(page), "_wp_http_referer": "/wp-admin/options-permalink.php", "selection": "custom",
            "permalink_structure": "/%year%/%postname%/", "category_base": "", "tag_base": ""}  # fmt: skip
    assert "Permalink structure updated" in browser.read("/wp-admin/options-permalink.php", form)


def upload(browser):
    nonce = find_nonce(browser.read("/wp-admin/media-new.php"))
    body = multipart({"_wpnonce": nonce, "action": "upload-attachment", "name": "dot.png"}, "dot.png", PICTURE)
    answer = json.loads(browser.open("/wp-admin/async-upload.php", body, "multipart/form-data; boundary=edge")[1])
    assert answer["success"], answer
    return answer["data"]["url"]
