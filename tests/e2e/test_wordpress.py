# SPDX-License-Identifier: Apache-2.0
"""WordPress of Debian behind this server, with php-fpm and MariaDB: install it, log in, choose permalinks, upload a
picture. The configuration is that of the guide."""

import re
import shutil
import urllib.error

import pytest

from harness import build
from harness.php import PhpWithExtensions
from harness.wordpress import PICTURE, SOURCES, Browser, add_theme, choose_permalinks, install, log_in, needs_wordpress
from harness.wordpress import start_database, upload
from test_guide_scripts import site

__all__ = ["site"]  # a fixture
pytestmark = [
    pytest.mark.slow,
    pytest.mark.single_protocol,
    needs_wordpress,
    pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugins"),
]
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


@pytest.fixture
def database(tmp_path):
    with start_database(tmp_path / "mariadb") as path:
        yield path


def test_wordpress(site, database):
    root = site.folder / "srv/wordpress"
    root.rmdir()
    shutil.copytree(SOURCES, root, ignore_dangling_symlinks=True)
    (root / "wp-config.php").write_text(CONFIG % database)
    (root / "wp-content/mu-plugins").mkdir(parents=True, exist_ok=True)
    add_theme(root / "wp-content/themes")
    rule = "<?php add_filter('got_url_rewrite', '__return_true');\n"  # as the guide has it
    (root / "wp-content/mu-plugins/permalinks.php").write_text(rule)
    site.php = PhpWithExtensions(site.folder / "php", children=4)
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
