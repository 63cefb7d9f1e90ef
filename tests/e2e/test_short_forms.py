# SPDX-License-Identifier: Apache-2.0
"""Keys of [HOST] that mean a section: they do what the section does, and the listing of the configuration shows it."""

import base64
import re

import pytest

from harness.backend import Backend, answer
from harness.certificates import Authority
from harness.content import populate
from harness.recipes import needs_plugins
from harness.server import Server, free_port, run

SERVER = "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n"
PAIRS = [  # a short form and its sections
    ("Root {root}", "", "    DocumentRoot {root}\n"),
    ("Proxy http://127.0.0.1:81/x", "", "[PROXY]\n    To http://127.0.0.1:81/x\n"),
    ("Proxy /api http://127.0.0.1:81", "", "[PROXY]\n    Match /api\n    To http://127.0.0.1:81\n"),
    ("PHP unix:/run/php.sock", "", "[FASTCGI]\n    To unix:/run/php.sock\n"),
    ("PHP *.php 127.0.0.1:9000", "", "[FASTCGI]\n    Match *.php\n    To 127.0.0.1:9000\n"),
    ("Redirect https", "[TLS]\n    SelfSigned On\n", "[TLS]\n    Redirect https\n"),
    ("Redirect https://example.org/", "", "    Redirect https://example.org/\n"),
    ("Login users.txt", "", "[AUTH]\n    Users users.txt\n"),
    ("Login /private users.txt", "", "[AUTH]\n    Match /private\n    Users users.txt\n"),
    ("Compress On", "", "[COMPRESS]\n"),
    ("Compress /raw Off", "", "[COMPRESS]\n    Match /raw\n    Codings none\n"),
    ("Listing On", "", "[DIRLISTING]\n    Enabled On\n"),
    ("Listing /pub off", "", "[DIRLISTING]\n    Match /pub\n    Enabled Off\n"),
]


def show(folder, root, text):
    """What --show-config prints, without places and keys that are not set."""
    (folder / "users.txt").write_text("")
    (folder / "users.txt").chmod(0o600)
    path = folder / "web.conf"
    path.write_text(text.format(root=root))
    shown = run(path, "--show-config")
    assert shown.returncode == 0, shown.stderr
    return re.sub("^    # .*\n|  # .*", "", shown.stdout, flags=re.M)


@needs_plugins("auth", "compress", "dirlisting", "fastcgi", "proxy", "redirect", "tls")
@pytest.mark.parametrize("short, server, sections", PAIRS, ids=[pair[0] for pair in PAIRS])
def test_it_is_its_section(tmp_path, short, server, sections):
    root = populate(tmp_path / "root", {"a": b"a"})
    files = "" if "ocumentRoot" in sections else "    DocumentRoot {root}\n"
    head = f"{SERVER}{server}[HOST]\n{files}"
    assert show(tmp_path, root, f"{head}    {short}\n") == show(tmp_path, root, head + sections)


PROBLEMS = [
    ("Root {root}\n    DocumentRoot {root}", 7, '"DocumentRoot" is set twice; the first time in line 6'),
    ("DocumentRoot {root}\n    Root {root}", 7, '"Root" sets "DocumentRoot" of [HOST], which is set already in line 6'),
    ("Proxy ftp://x", 6, '"Proxy": a backend is http://HOST:PORT'),
    ("Proxy", 6, '"Proxy" wants a value'),
    ("Proxy /api", 6, '"Proxy": a backend is http://HOST:PORT'),
    ("Proxy http://127.0.0.1:1\n    Proxy /a http://127.0.0.1:2", 7, "this rule can never match: the one of"),
    ("Proxy http://127.0.0.1:1\n[PROXY]\n    To http://127.0.0.1:2", 7, "this rule can never match: the one of"),
    ("Proxy /a http://a:1\n[PROXY]\n    Match /a\n    To http://a:2", 8, "the one of web.conf:6 comes first"),
    ("PHP", 6, '"PHP" wants a value'),
    ("PHP nowhere", 6, 'no [UPSTREAM] has the name "nowhere"'),
    ("Login missing.txt", 6, "missing.txt cannot be read"),
    ("Compress Yes", 6, '"Compress" takes On or Off, not "Yes"'),
    ("Compress On Off", 6, '"Compress" takes On or Off, not "On Off"'),
    ("Compress On;", 6, '"Compress" takes On or Off, not "On;"; lines do not end with a semicolon'),
    ("Listing /a On;", 6, 'lines do not end with a semicolon: remove it from the value of "Listing"'),
    ("Listing Yes", 6, '"Listing" wants On or Off, not "Yes"'),
    ("Listing /a", 6, '"Listing" wants On or Off, not "/a"'),
    ("Redirect http", 6, '"Redirect": a target is a path such as /new, or a URI'),
    ("Redirect https\n[TLS]\n    Redirect Off", 8, '"Redirect" is set twice; the first time in line 6'),
    ("Prxoy http://127.0.0.1:1", 6, 'unknown key "Prxoy" in [HOST]; did you mean "Proxy"?'),
    ("Proxy: http://127.0.0.1:1", 6, 'a blank separates a key from its value, not ":"'),
]


@needs_plugins("auth", "compress", "dirlisting", "fastcgi", "proxy", "redirect", "tls")
@pytest.mark.parametrize("lines, line, sentence", PROBLEMS, ids=[row[0] for row in PROBLEMS])
def test_mistakes(tmp_path, lines, line, sentence):
    root = populate(tmp_path / "root", {"a": b"a"})
    files = "" if "oot {root}" in lines else "    DocumentRoot {root}\n"
    first = "" if files else "# a comment\n"  # so that the lines are always the same
    text = f"{SERVER}{first}[HOST]\n{files}    {lines}\n"
    (tmp_path / "web.conf").write_text(text.format(root=root))
    checked = run("web.conf", "-t", cwd=tmp_path)
    assert checked.returncode == 1
    assert re.search(rf"^web\.conf:{line}(:\d+)?: error: .*{re.escape(sentence)}", checked.stderr, re.M), checked.stderr


FAILURES = ["Listing=/pub Off\n    Listing On", "Listing /pub\n    Listing /x On", "Compress /y\n    Compress /z Off"]


@needs_plugins("compress", "dirlisting")
@pytest.mark.parametrize("lines", FAILURES)
def test_a_line_that_has_failed_takes_no_paths(tmp_path, lines):
    root = populate(tmp_path / "root", {"a": b"a"})
    (tmp_path / "web.conf").write_text(f"{SERVER}[HOST]\n    Root {root}\n    {lines}\n")
    checked = run("-t", "web.conf", cwd=tmp_path)
    assert checked.returncode == 1 and re.findall(r"^web\.conf:(\d+)", checked.stderr, re.M) == ["6"], checked.stderr


def test_they_stand_in_a_host_only(tmp_path):
    (tmp_path / "web.conf").write_text(SERVER + "    Proxy http://127.0.0.1:1\n")
    checked = run("web.conf", "-t", cwd=tmp_path)
    sentence = 'web.conf:4:5: error: unknown key "Proxy" in [SERVER]; it belongs in [HOST]'
    assert checked.returncode == 1 and sentence in checked.stderr


@needs_plugins("proxy", "redirect", "tls")
def test_of_a_plugin_that_is_not_loaded(tmp_path):
    (tmp_path / "plugins.load").write_text("[PLUGINS]\n    Load liana static\n")
    (tmp_path / "sites").mkdir()
    (tmp_path / "monkey.conf").write_text(SERVER)
    (tmp_path / "sites/default").write_text("[HOST]\n    Proxy http://127.0.0.1:1\n")
    checked = run("-t", "-c", tmp_path)
    assert checked.returncode == 1
    assert 'sites/default:2:5: error: "Proxy" belongs to the plugin "proxy", which is not loaded' in checked.stderr
    (tmp_path / "sites/default").write_text("[HOST]\n    Redirect https\n")
    assert '"Redirect" belongs to the plugin "tls", which is not loaded' in run("-t", "-c", tmp_path).stderr
    (tmp_path / "plugins.load").write_text("[PLUGINS]\n    Load liana redirect static\n")
    assert '"Redirect": https takes the plugin tls, which is not loaded' in run("-t", "-c", tmp_path).stderr


@needs_plugins("auth", "compress", "dirlisting", "proxy")
def test_a_host_of_short_forms_serves(tmp_path, request):
    """A backend, folders that are listed, texts that are compressed, and a path for users."""
    text = b"a" * 5000
    root = populate(tmp_path / "root", {"a.txt": text, "pub/b": b"b", "private/c": b"c", "raw/a.txt": text})
    (tmp_path / "users.txt").write_text("ada:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\n")
    (tmp_path / "users.txt").chmod(0o640)
    login = "Authorization: Basic " + base64.b64encode(b"ada:passw0rd").decode()
    with Backend(answer(b"backend", "Content-Type: text/plain")) as backend:
        (tmp_path / "web.conf").write_text(
            f"{SERVER}[HOST]\n    Root {root}\n    Proxy /api {backend.url}\n    Login /private users.txt\n"
            "    Compress /raw Off\n    Compress On\n    Listing /pub On\n"
        )
        server = Server(tmp_path / "web.conf")
        request.addfinalizer(server.stop)
        with server.connect() as client:
            assert client.ask("/api/x").body == b"backend"
            assert client.ask("/private/c").status == 401
            assert client.ask("/private/c", login).body == b"c"
            assert client.ask("/a.txt", "Accept-Encoding: gzip")["Content-Encoding"] == "gzip"
            assert client.ask("/raw/a.txt", "Accept-Encoding: gzip")["Content-Encoding"] is None
            assert b'"b"' in client.ask("/pub/").body and client.ask("/raw/").status == 404


@needs_plugins("tls", "redirect")
def test_redirect_to_https(tmp_path, request):
    """Of the plugin tls, though another host redirects to a target of its own."""
    pair = Authority(tmp_path / "ca").make("a.test", "a.test")
    root = populate(tmp_path / "root", {"a": b"a"})
    port = free_port()
    (tmp_path / "web.conf").write_text(
        f"{SERVER}    Listen 127.0.0.1:{port} tls\n"
        f"[HOST a.test]\n    Root {root}\n    Redirect https\n"
        f"[TLS]\n    Certificate {pair.cert}\n    CertificateKey {pair.key}\n"
        "[HOST b.test]\n    Redirect https://c.test\n"
    )
    server = Server(tmp_path / "web.conf")
    request.addfinalizer(server.stop)
    with server.connect() as client:
        assert client.ask("/a?b", host="a.test")["Location"] == f"https://a.test:{port}/a?b"
        assert client.ask("/a?b", host="b.test")["Location"] == "https://c.test/a?b"
