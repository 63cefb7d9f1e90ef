# SPDX-License-Identifier: Apache-2.0
"""WordPress of Debian behind this server, with php-fpm and MariaDB: install it, log in, choose permalinks, upload a
picture. The configuration is that of the guide."""

import base64
import http.cookiejar
import json
import pathlib
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from harness import build
from harness.php import PROGRAM, PhpFpm
from harness.server import await_true
from test_guide_scripts import site

__all__ = ["site"]  # a fixture
NEEDED = {"mariadb-server": "mariadbd", "mariadb-client": "mariadb"}
MISSING = [package for package, program in NEEDED.items() if not shutil.which(program, path="/usr/sbin:/usr/bin")]
SOURCES = pathlib.Path("/usr/share/wordpress")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.single_protocol,
    pytest.mark.skipif(bool(MISSING) or not PROGRAM or not SOURCES.exists(), reason="WordPress is not installed"),
    pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugins"),
]
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CONFIG = """<?php
define('DB_NAME', 'wp');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:%s');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('AUTH_KEY', 'a'); define('SECURE_AUTH_KEY', 'b'); define('LOGGED_IN_KEY', 'c'); define('NONCE_KEY', 'd');
define('AUTH_SALT', 'e'); define('SECURE_AUTH_SALT', 'f'); define('LOGGED_IN_SALT', 'g'); define('NONCE_SALT', 'h');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('WP_DEFAULT_THEME', 'plain');
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""
THEME = """<?php
wp_head();
while (have_posts()) {
    the_post();
    echo '<a href="' . get_permalink() . '">' . get_the_title() . '</a>';
    the_content();
}
"""
PASSWORD = "correct horse battery staple"


class Php(PhpFpm):
    """With the extensions of the system, for MariaDB and pictures."""

    def start(self):
        command = [PROGRAM, "-F", "-R", "-y", self.folder / "fpm.conf"]
        with open(self.folder / "output", "ab") as output:
            self.process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output)
        await_true(self.is_up, 60, "the start of php-fpm")


@pytest.fixture
def database(tmp_path):
    """The path of the socket."""
    folder = tmp_path / "mariadb"
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


def test_wordpress(site, database):
    root = site.folder / "srv/wordpress"
    root.rmdir()
    shutil.copytree(SOURCES, root, ignore_dangling_symlinks=True)
    (root / "wp-config.php").write_text(CONFIG % database)
    (root / "wp-content/mu-plugins").mkdir(parents=True, exist_ok=True)
    theme = root / "wp-content/themes/plain"
    theme.mkdir(parents=True)
    (theme / "style.css").write_text("/* Theme Name: plain */\n")
    (theme / "index.php").write_text(THEME)
    rule = "<?php add_filter('got_url_rewrite', '__return_true');\n"  # as the guide has it
    (root / "wp-content/mu-plugins/permalinks.php").write_text(rule)
    site.php = Php(site.folder / "php", children=4)
    site.start("WordPress")
    browser = Browser(site.server.url)
    install(browser)
    log_in(browser)
    choose_permalinks(browser)
    front = browser.read("/")
    link = re.search(r'href="http://[^/]+(/\d{4}/hello-world/)"', front)[1]
    assert "Welcome to WordPress" in browser.read(link)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        browser.read("/2001/no-such-page/")
    picture = upload(browser)
    assert browser.open(picture)[1] == PICTURE
    assert "DB_NAME" not in browser.read("/wp-config.php")
    (root / "wp-config.php~").write_text(CONFIG)
    with pytest.raises(urllib.error.HTTPError, match="404") as error:
        browser.read("/wp-config.php~")
    assert b"DB_NAME" not in error.value.read()
