# SPDX-License-Identifier: Apache-2.0
"""Redirects: rules of a host, the whole host, and what the operator gets wrong."""

import pathlib
import re
import signal
import socket

import pytest

from harness import build
from harness.content import populate
from harness.messages import request
from harness.server import Server, run, write_config

FILES = {"a.txt": b"a\n", "new/index.html": b"new\n", "articles/x.html": b"x\n"}

RULES = """
[REDIRECT]
    Match       =/exact
    To          /new/
    Status      302
    KeepPath    Off

[REDIRECT]
    Match       /blog
    To          /articles
    Status      308

[REDIRECT]
    Match       *.php
    To          https://example.org/gone?from=php
    KeepPath    On

[REDIRECT]
    Match       /two/b
    To          /first

[REDIRECT]
    Match       /two
    To          /second

[REDIRECT]
    Match       /pre
    To          /pub/

[REDIRECT]
    Match       /slash/
    To          /no-slash

[REDIRECT]
    Match       /query
    To          /new?a=

[REDIRECT]
    Match       ~^/item/[0-9]+$
    To          /items

[REDIRECT]
    Match       "~*^/(shop|store)( |/)old"
    To          /new
"""


@pytest.fixture
def rules(host_conf):
    return lambda text: host_conf(text, FILES)


@pytest.fixture
def client(rules):
    server = Server("-c", rules(RULES))
    yield server.connect()
    server.stop()


@pytest.mark.parametrize(
    "target, status, location",
    [
        ("/exact", 302, "/new/"),
        ("/exact?q=1", 302, "/new/"),
        ("/exact/", 404, None),
        ("/blog", 308, "/articles"),
        ("/blog/", 308, "/articles/"),
        ("/blog/?a", 308, "/articles/?a"),
        ("/two/", 301, "/second/"),
        ("/pre/", 301, "/pub/"),
        ("/pre", 301, "/pub/"),
        ("/slash/", 301, "/no-slash"),  # its slash is a part of the prefix
        ("/query/", 301, "/new?a="),
        ("/query/x", 301, "/new?a=/x"),
        ("/blog/2013/x.html?a=b&c", 308, "/articles/2013/x.html?a=b&c"),
        ("/blogger", 404, None),
        ("/%62log/y", 308, "/articles/y"),
        ("/x/../blog//y", 308, "/articles/y"),
        ("/blog/a%20b%0d%0aSet-Cookie:x", 308, "/articles/a%20b%0d%0aSet-Cookie:x"),
        ("/blog/%2e%2e/%2e%2e/evil", 404, None),
        ("/sub/any.php?id=1", 301, "https://example.org/gone?from=php&id=1"),
        ("/two/b/c", 301, "/first/c"),
        ("/two/c", 301, "/second/c"),
        ("/item/12", 301, "/items"),
        ("/item/%31?a=b", 301, "/items?a=b"),
        ("/item/12%0a", 404, None),
        ("/item/x", 404, None),
        ("/SHOP%20old", 301, "/new"),
        ("/a.txt", 200, None),
    ],
)
def test_rules(client, target, status, location):
    answer = client.ask(target)
    assert (answer.status, answer["Location"]) == (status, location)
    client.close()


@pytest.mark.parametrize(
    "match, to, target, location",
    [
        ("~^/item/([0-9]+)$", "/items?id=$1", "/item/7", "/items?id=7"),
        ("~^/item/([0-9]+)$", "/items?id=$1", "/item/7?a=b", "/items?id=7&a=b"),
        ("~^/([^/]*)/([^/]*)$", "https://example.org/$2/$1/$0", "/a/b", "https://example.org/b/a//a/b"),
        ("~^/(.*)$", "/new/$1", "/a%20b%0d%0aX:y%3Fz", "/new/a%20b%0D%0AX:y%3Fz"),
        ("~^/q/(.*)$", "/new?v=$1", "/q/a&b=c+d;e/f", "/new?v=a%26b%3Dc%2Bd%3Be/f"),
        ("~^/a(x)?(b)$", "/[$1]$2$", "/ab", "/[]b$"),
        ("~^/a$", "/b%241%24x", "/a", "/b%241%24x"),
        # captures cannot make a path into the name of a host
        ("~^/old(/.*)$", "/$1", "/old/evil.example/x", "/evil.example/x"),
        ("~^/old(x?)(/.*)$", "/$1/$2", "/old/evil.example", "/evil.example"),
        ("~^/old/(.*)$", "/$1", "/old/%5c%5cevil.example", "/%5C%5Cevil.example"),
    ],
)
def test_captures(rules, match, to, target, location):
    server = Server("-c", rules(f"[REDIRECT]\n    Match {match}\n    To {to}\n"))
    client = server.connect()
    answer = client.ask(target)
    assert (answer.status, answer["Location"]) == (301, location)
    client.close()
    server.stop()


def test_captures_have_a_limit(rules):
    server = Server("-c", rules(f"[REDIRECT]\n    Match ~^/(.*)$\n    To /{'$1' * 8}\n"))
    client = server.connect()
    assert client.ask("/" + 1024 * "a")["Location"] == "/" + 8192 * "a"
    assert client.ask("/" + 1025 * "a").status == 414
    client.close()
    server.stop()


def test_other_methods_are_redirected_as_well(client):
    client.send(request("/blog/form", "Content-Length: 4", method="POST") + b"body" + request("/a.txt"))
    answer = client.response()
    assert (answer.status, answer["Location"]) == (308, "/articles/form")
    assert client.response().body == b"a\n"
    client.close()


def test_thousands_of_rules(rules):
    """A site that moved page by page: neither the start nor a request may iterate over them once for each."""
    text = "".join(f"[REDIRECT]\n    Match /p{n}\n    To /q/{n}\n" for n in range(2000))
    server = Server("-c", rules(text))
    client = server.connect()
    before = server.cpu_seconds()
    assert before < 5
    for _ in range(50):
        assert client.ask("/p1999")["Location"] == "/q/1999"
    assert server.cpu_seconds() - before < 1
    client.close()
    server.stop()


def test_whole_host(rules):
    server = Server("-c", rules("    Redirect https://example.org/base\n"))
    client = server.connect()
    assert client.ask("/")["Location"] == "https://example.org/base"
    for sent, rest in [
        ("/a%3Fb/c?d=e", "/a%3Fb/c?d=e"),
        ("/a%3Bb%2Bc%26d", "/a%3Bb%2Bc%26d"),  # escapes of reserved characters have a meaning
        ("/%7eada/%C3%A4?%7e", "/%7eada/%C3%A4?%7e"),
        ("//b%3b", "/b;"),  # it was normalized, and encoded again
        ("/a/../b%3b", "/b;"),
    ]:
        answer = client.ask(sent)
        assert (answer.status, answer["Location"]) == (301, f"https://example.org/base{rest}")
    client.close()
    server.stop()


@pytest.mark.parametrize(
    "match, to, path, location",
    [
        ("/a", "/b#c", "/a/d?e=f", "/b/d?e=f#c"),
        ("/a", "/b?x#c", "/a?e=f", "/b?x&e=f#c"),
        ("/a", "/b", "/a/c%3Bd//", "/b/c;d/"),
        ("/a", "/b", "/a/c%3bd", "/b/c%3bd"),
        ("/a", "/b", "/%61/c%3bd", "/b/c;d"),
        ("/a", "/b#c?d", "/a?e=f", "/b?e=f#c?d"),
        ("~^/a/(.*)", "/b/$1#$1", "/a/d%23?e", "/b/d%23?e#d%23"),
        ("/a", "https://example.org#c", "/a/b", "https://example.org/b#c"),
    ],
)
def test_a_fragment_stays_at_the_end(rules, match, to, path, location):
    server = Server("-c", rules(f"[REDIRECT]\n    Match {match}\n    To {to}\n"))
    client = server.connect()
    assert client.ask(path)["Location"] == location
    client.close()
    server.stop()


@pytest.mark.parametrize(
    "text, message",
    [
        ("[REDIRECT]\n    Match /a\n    To /a/b\n", "never ends"),
        ("[REDIRECT]\n    Match /a\n    To /a#b\n", "never ends"),
        ("[REDIRECT]\n    Match /a\n    To /b\n[REDIRECT]\n    Match /b\n    To /a\n", "never ends"),
        ("    Redirect https://example.org$1/\n", "default:4:14: error: \"Redirect\": only [REDIRECT] has captures"),
        ("    Redirect 301 https://a.example/\n", "one URI is needed, to which all requests are redirected"),
        ("    Redirect /a\n", "default:4:14: error: this redirect never ends"),
        ("    Redirect /a\n[REDIRECT]\n    Match =/b\n    To /c\n", "default:7:8: error: this redirect never ends"),
        ("[REDIRECT]\n    Match /a\n    To /b\n[REDIRECT]\n    Match /b/\n    To /a\n", "never ends"),  # /a/x
        ("[REDIRECT]\n    Match /a\n    To /%61\n", "never ends"),
        ("[REDIRECT]\n    Match =/a\n    To /a#b\n", "never ends"),
        ("[REDIRECT]\n    Match /a\n", "To"),
        ("[REDIRECT]\n    To /a\n", "Match"),
        ("[REDIRECT]\n    Match a/b\n    To /c\n", "starts with one"),
        ("[REDIRECT]\n    Match /a\n    To elsewhere\n", "or a URI such as"),
        ('[REDIRECT]\n    Match /a\n    To "/b c"\n', "without blanks"),
        ("[REDIRECT]\n    Match /a\n    To /b\n    Status 200\n", "301, 302"),
        ("[REDIRECT]\n    Match /a\n    To /b/$1\n", "as %24"),
        ("[REDIRECT]\n    Match ~(a)\n    To /b/$2\n", "there is no $2: the expression in Match has 1 captures"),
        ("[REDIRECT]\n    Match ~^/(a)\n    To https://$1.example.org/\n", "choose the host"),
        ("[REDIRECT]\n    Match ~^/(a)\n    To //$1/\n", "choose the host"),
        ("[REDIRECT]\n    Match ~^/(a)\n    To https://example.org$1\n", "choose the host"),
        ("[REDIRECT]\n    Match ~^/(a)\n    To $1://example.org\n", "choose the host"),
        ("[REDIRECT]\n    Match ~^/(a)\n    To ///$1\n", "choose the host"),
        ("[REDIRECT]\n    Match ~^/(a)\n    To https:///$1\n", "choose the host"),
        ("[REDIRECT]\n    Match ~^/(a)\n    To /\\$1\n", "backslashes"),
        ("[REDIRECT]\n    Match /b\n    To /a#f\n[REDIRECT]\n    Match /a/x\n    To /b/x\n", "never ends"),
    ],
)
def test_mistakes(rules, text, message):
    result = run("-c", rules(text), "-t")
    assert result.returncode == 1 and message in result.stderr and "sites/default:" in result.stderr


@pytest.mark.parametrize(
    "text, loops",
    [
        ("    Redirect http://localhost:{port}/\n", True),
        ("    Redirect HTTP://LocalHost.:{port}\n", True),
        ("    Redirect http://localhost:{port}/base\n", True),
        ("[REDIRECT]\n    Match /a\n    To http://localhost:{port}/a/b\n", True),
        ("[REDIRECT]\n    Match /a\n    To http://localhost:{port}/b\n[REDIRECT]\n    Match /b\n    To /a\n", True),
        ("[REDIRECT]\n    Match /a\n    To http://localhost:{port}/b\n", False),
        ("[REDIRECT]\n    Match /a\n    To http://localhost:{port}?/a\n", False),
        ("    Redirect https://localhost:{port}/\n", False),
        ("    Redirect //localhost:{port}/\n", False),
        ("    Redirect http://localhost/\n", False),  # port 80 is not ours
        ("    Redirect http://elsewhere.example:{port}/\n", False),
        ("    Redirect http://localhost:{port}.example/\n", False),
    ],
)
def test_back_to_the_same_host_by_its_name(tmp_path, text, loops):
    """Only what is certain to come back."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = write_config(tmp_path / "conf", populate(tmp_path / "root", FILES), {"Listen": f"127.0.0.1:{port}"})
    with open(folder / "sites" / "default", "a") as file:
        file.write(text.format(port=port))
    result = run("-c", folder, "-t")
    assert ("never ends" in result.stderr) == loops and result.returncode == int(loops), result.stderr


@pytest.mark.skipif(not build.speaks("tls"), reason="NOT TESTED: this build has no TLS")
@pytest.mark.parametrize(
    "text, loops",
    [
        ("    Redirect https://localhost:{port}/\n", True),
        ("    Redirect HTTPS://localhost:{port}/base\n", True),
        ("[REDIRECT]\n    Match /a\n    To https://localhost:{port}/a\n", True),
        ("[REDIRECT]\n    Match /a\n    To https://localhost:{port}/b\n", False),
        ("    Redirect https://localhost/\n", False),  # port 443 is not ours
        ("    Redirect https://elsewhere.example:{port}/\n", False),
        ("    Redirect https://localhost:{port}/\n    Listener 127.0.0.1:0\n", False),  # it does not answer with tls
    ],
)
def test_back_to_the_same_host_over_tls(tmp_path, text, loops):
    """Requests that come over TLS are redirected as well: the host would redirect to itself."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = f"[SERVER]\n    Listen 127.0.0.1:0\n    Listen 127.0.0.1:{port} tls\n[TLS]\n    SelfSigned On\n"
    root = populate(tmp_path / "root", FILES)
    other = f"[HOST]\n    ServerName other\n    DocumentRoot {root}\n    Listener 127.0.0.1:{port}\n"
    files = {"monkey.conf": server, **({"sites/other": other} if "Listener" in text else {})}
    folder = write_config(tmp_path / "conf", root, files=files)
    with open(folder / "sites" / "default", "a") as file:
        file.write(text.format(port=port))
    result = run("-c", folder, "-t")
    sentence = 'its target is redirected again; to redirect unencrypted requests only, write "Redirect https" in [TLS]'
    assert (sentence in result.stderr) == loops and result.returncode == int(loops), result.stderr


@pytest.mark.parametrize(
    "match, place, phrase",
    [
        ("~^/a(b", "5:16", "missing closing parenthesis, at byte 6"),
        ('"~*^/x y[a"', "5:20", "missing terminating ] for character class, at byte 9"),
        ("~^/a\\#(b", "5:11", "missing closing parenthesis, at byte 7"),  # behind an escape: the word
        ("~", "5:11", "an expression stands right behind ~, without a blank"),
        ("~" + 1024 * "a", "5:11", "at most 1,024 bytes"),
    ],
)
def test_place_of_a_mistake(rules, match, place, phrase):
    result = run("-c", rules(f"[REDIRECT]\n    Match {match}\n    To /b\n"), "-t")
    assert result.returncode == 1 and f"sites/default:{place}: error:" in result.stderr and phrase in result.stderr
    rows, column = result.stderr.splitlines(), int(place.split(":")[1])
    assert rows[2] == " " * (column - 1) + "^", result.stderr


def test_without_the_library(rules, tmp_path):
    """The library is opened only if there is an expression; if it is missing, an error message says so."""
    (tmp_path / "libpcre2-8.so.0").write_text("")
    env = {**build.environment(), "LD_LIBRARY_PATH": str(tmp_path)}
    result = run("-c", rules("[REDIRECT]\n    Match ~a\n    To /b\n"), "-t", env=env)
    assert result.returncode == 1 and "libpcre2-8-0" in result.stderr
    assert run("-c", rules("[REDIRECT]\n    Match *.a\n    To /b\n"), "-t", env=env).returncode == 0


def test_library_is_opened_on_demand(rules):
    for match, opened in (("/a", False), ("~a", True)):
        server = Server("-c", rules(f"[REDIRECT]\n    Match {match}\n    To //x/\n"))
        maps = pathlib.Path(f"/proc/{server.pid}/maps").read_text()
        assert ("libpcre2-8" in maps) == opened
        server.stop()


@pytest.mark.parametrize(
    "first, later",
    [
        ("/a", "/a"),
        ("/a", "=/a/b"),
        ("/a", "/a/*.css"),
        ("*.php", "/x/*.php"),
        ("/", "~a"),
        ("*", "~a"),
        ("/**", "*.css"),
        ("~a", "~a"),
        ("~a", "=/a"),
    ],
)
def test_rule_that_never_has_its_turn(rules, first, later):
    text = f"[REDIRECT]\n    Match {first}\n    To /1\n    Status 302\n[REDIRECT]\n    Match {later}\n    To /2\n"
    result = run("-c", rules(text.replace("/1", "//x/1").replace("/2", "//x/2")), "-t")
    assert result.returncode == 1
    assert re.search(r"sites/default:9:11: error: this rule can never match: .*sites/default:5 ", result.stderr)


@pytest.mark.parametrize(
    "first, later", [("=/a", "/a"), ("/a/b", "/a"), ("/a", "*.css"), ("~a", "~b"), ("~^/a", "/a")]
)
def test_rule_that_has_its_turn(rules, first, later):
    text = f"[REDIRECT]\n    Match {first}\n    To //x/1\n[REDIRECT]\n    Match {later}\n    To //x/2\n"
    result = run("-c", rules(text), "-t")
    assert result.returncode == 0, result.stderr


def test_a_reload_with_an_expression_that_does_not_compile(rules):
    """It is refused, and the server continues as before."""
    server = Server("-c", rules("[REDIRECT]\n    Match ~^/(a)$\n    To /b\n"))
    with server.connect() as client:
        assert client.ask("/a")["Location"] == "/b"
        rules("[REDIRECT]\n    Match ~^/(a$\n    To /b\n")
        server.send_signal(signal.SIGHUP)
        server.wait_log("missing closing parenthesis")
        assert client.ask("/a")["Location"] == "/b"
    server.stop()


def test_catastrophe_is_cut_short(rules):
    """A path that an expression would take too long for is refused; others are answered as if nothing were."""
    server = Server("-c", rules("[REDIRECT]\n    Match ~^/(a+)+$\n    To //x/\n"))
    long = "/" + 5000 * "a" + "!"
    client = server.connect()
    for _ in range(20):
        assert client.ask(long).status == 500
        assert client.ask("/a.txt").body == b"a\n"
        assert client.ask("/aaa")["Location"] == "//x/"
    server.wait_log(r"sites/default:\d+: the pattern \"~\^/\(a\+\)\+\$.* took too much time on a path of 5002 bytes")
    assert server.log.count("took too much") < 20
    client.close()
    server.stop()


@pytest.mark.parametrize(
    "text",
    [
        "    Redirect /a\n[REDIRECT]\n    Match /a\n    To //x/\n",
        "[REDIRECT]\n    Match /a/\n    To /a\n    KeepPath Off\n",
        "[REDIRECT]\n    Match /a/\n    To /b?c=\n[REDIRECT]\n    Match /b/\n    To /a\n",
        "[REDIRECT]\n    Match /a\n    To /%zz\n",
    ],
)
def test_no_loop_where_it_ends(rules, text):
    result = run("-c", rules(text), "-t")
    assert result.returncode == 0, result.stderr


def test_no_loop_where_another_host_is_meant(rules):
    assert run("-c", rules("[REDIRECT]\n    Match /\n    To https://localhost/\n"), "-t").returncode == 0
