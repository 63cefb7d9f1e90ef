# SPDX-License-Identifier: Apache-2.0
"""Sections of hosts by path, and in monkey.conf for all hosts: which one is used, and what is reported."""

import contextlib
import functools
import re

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.content import populate
from harness.messages import request
from harness.proxies import TEXT, proxy_section
from harness.server import run, section, write_config
from harness.services import reload
from harness.ways import WAYS
from test_config import problems

FILES = {"a.txt": b"a" * 2000, "b.html": b"b" * 2000, "deep/c.txt": b"c" * 2000}


def make_conf(folder, server, default="", own=None, more=None):
    """Two hosts with one document root: `default`, and `own.test` with the sections of `own`."""
    root = populate(folder / "root", FILES)
    settings = section("SERVER", {"Listen": "127.0.0.1:0", "Workers": 1})
    host = section("HOST", {"ServerName": "own.test", "DocumentRoot": root})
    files = {"monkey.conf": settings + server, **({"sites/own": host + own} if own is not None else {}), **(more or {})}
    conf = write_config(folder / "conf", root, files=files)
    with open(conf / "sites" / "default", "a") as file:
        file.write(default)
    return conf


def check(conf):
    return run("-c", conf, "-t")


def ask(client, host, path, *fields, method="GET"):
    client.send(request(path, *fields, method=method, host=host))
    return client.response(method)


@pytest.fixture
def hosts(tmp_path, serve):
    """Starts a server with two hosts, and connects to it."""

    def start(server, default="", own="", more=None):
        conf = make_conf(tmp_path / "made", server, default, own, more)
        files = {str(path.relative_to(conf)): path.read_text() for path in conf.rglob("*") if path.is_file()}
        return serve(config=files).connect()

    return start


# ── the order ──

REDIRECTS = """
[REDIRECT]
    Match       /old
    To          /all

[REDIRECT]
    Match       /
    To          http://elsewhere.test/
"""


def test_own_sections_come_first(hosts):
    client = hosts(REDIRECTS, own="[REDIRECT]\n    Match /old/x\n    To /own\n")
    locations = {
        (host, path): ask(client, host, path)["Location"]
        for host in ("localhost", "own.test")
        for path in ("/old/x", "/old/y", "/a.txt")
    }
    assert locations == {
        ("localhost", "/old/x"): "/all/x",
        ("localhost", "/old/y"): "/all/y",
        ("localhost", "/a.txt"): "http://elsewhere.test/a.txt",
        ("own.test", "/old/x"): "/own",
        ("own.test", "/old/y"): "/all/y",
        ("own.test", "/a.txt"): "http://elsewhere.test/a.txt",
    }


def test_included_files_and_files_of_plugins(hosts):
    rule = "[REDIRECT]\n    Match {}\n    To {}\n"
    more = {"more/r.conf": rule.format("/p/1", "/i"), "plugins/redirect/redirect.conf": rule.format("/p", "/f")}
    client = hosts("@INCLUDE more/*.conf\n", more=more)
    assert ask(client, "own.test", "/p/1")["Location"] == "/i"  # monkey.conf is read first
    assert ask(client, "own.test", "/p")["Location"] == "/f"


@pytest.mark.single_protocol
@pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="this preset has no plugin proxy")
def test_proxies(serve, tmp_path):
    """A host's own sections come first, a broader one too; the file of monkey.conf is read again by a reload."""
    names = ("all", "other", "own", "rest")
    with contextlib.ExitStack() as stack:
        backends = {name: stack.enter_context(Backend(answer(name.encode(), TEXT))) for name in names}
        rule = lambda match, name: proxy_section(backends[name], {"Match": match})
        conf = make_conf(tmp_path / "made", rule("/api", "all") + rule("/deep/x", "other"), "",
                         rule("/api/own", "own") + rule("/deep", "rest"))
        files = {str(path.relative_to(conf)): path.read_text() for path in conf.rglob("*") if path.is_file()}
        server = serve(config=files)
        rows = {
            ("localhost", "/api"): b"all",
            ("localhost", "/api/own"): b"all",
            ("localhost", "/deep/x/y"): b"other",
            ("localhost", "/deep/c.txt"): FILES["deep/c.txt"],
            ("own.test", "/api"): b"all",
            ("own.test", "/api/owner"): b"all",
            ("own.test", "/api/own/x"): b"own",
            ("own.test", "/deep/x/y"): b"rest",
            ("own.test", "/deep/c.txt"): b"rest",
            ("own.test", "/a.txt"): FILES["a.txt"],
        }
        with server.connect() as client:
            assert {row: ask(client, *row).body for row in rows} == rows
        text = (server.conf / "monkey.conf").read_text()
        (server.conf / "monkey.conf").write_text(text.replace(rule("/api", "all"), rule("/a.txt", "all")))
        reload(server)
        rows |= {("localhost", "/a.txt"): b"all", ("own.test", "/a.txt"): b"all"}
        with server.connect() as client:
            assert ask(client, "own.test", "/api").status == ask(client, "localhost", "/api/own").status == 404
            left = {row: body for row, body in rows.items() if not row[1].startswith("/api") or body == b"own"}
            assert {row: ask(client, *row).body for row in left} == left


COMPRESS = """
[COMPRESS]
    Streams     5
    Match       *.txt
    Codings     gzip

[COMPRESS]
    CpuLimit    50
"""


def test_keys_of_the_server_beside_those_of_hosts(hosts, tmp_path):
    """The second section has none of hosts, so nothing else is compressed."""
    client = hosts(COMPRESS, own="[COMPRESS]\n    Match =/a.txt\n    Codings none\n")
    codings = {
        (host, path): ask(client, host, path, "Accept-Encoding: gzip")["Content-Encoding"]
        for host in ("localhost", "own.test")
        for path in ("/a.txt", "/b.html", "/deep/c.txt")
    }
    assert codings == {
        ("localhost", "/a.txt"): "gzip",
        ("localhost", "/b.html"): None,
        ("localhost", "/deep/c.txt"): "gzip",
        ("own.test", "/a.txt"): None,
        ("own.test", "/b.html"): None,
        ("own.test", "/deep/c.txt"): "gzip",
    }
    shown = run("-c", tmp_path / "made" / "conf", "--show-config", "own.test").stdout
    sections = re.findall(r"^(#.*\n)?\[COMPRESS\]\n((?:    .*\n)+)", shown, re.M)
    assert [bool(comment) for comment, _ in sections] == [False, True, False]
    assert re.search(r"Streams +5 .*monkey\.conf:6\n", sections[0][1])
    assert re.search(r"CpuLimit +50 .*monkey\.conf:11\n", sections[0][1])
    assert re.search(r"Match +\*\.txt .*monkey\.conf:7\n", sections[1][1])


# ── mistakes ──


def test_rules_that_never_match(tmp_path):
    """A host may override a rule for all hosts; one that an earlier one of the same kind covers is a mistake, once."""
    rule = "[CORS]\n    Match {}\n    Origins *\n"
    conf = make_conf(tmp_path, rule.format("/x"), rule.format("/"), rule.format("/x"))
    assert check(conf).returncode == 0
    both = rule.format("/x") + rule.format("/x/y")
    result = check(make_conf(tmp_path, both, own=both))
    assert result.returncode == 1
    assert [(name, line, "can never match" in text) for name, line, _, text in problems(result)] == [
        ("monkey.conf", 8, True),
        ("own", 8, True),
    ]
    first, second = re.findall(r"the one of (\S+) comes first", result.stderr)
    assert first.endswith("/monkey.conf:5") and second.endswith("/sites/own:5")


MISTAKES = {
    "a key of no kind": ("[COMPRESS]\n    Codinsg gzip\n", 5, 'did you mean "Codings"?'),
    "a value": ("[CORS]\n    Origins *\n    MaxAge soon\n", 6, "MaxAge"),
    "a required key": ("[REDIRECT]\n    Match /k\n", 4, 'lacks "To"'),
    "found by the check of the section": ("[CORS]\n    Origins example.org\n", 5, "no page has the origin"),
    "found when a host is prepared": ("[REDIRECT]\n    Match /a\n    To /a/b\n", 6, "never ends"),
    "a service": ("[WEB_SERVICE]\n    Name x\n", 4, "[WEB_SERVICE] belongs in a file of sites/ or below a [HOST]"),
    "a certificate": ("[TLS]\n    Certificate x\n", 5, 'unknown key "Certificate" in [TLS]; it belongs in [TLS], in a'),
    "a misspelt section": ("[REDIRCT]\n    Match /\n", 4, "did you mean [REDIRECT]?"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(tmp_path, name):
    text, line, message = MISTAKES[name]
    more = {"plugins/redirect/redirect.conf": "[REDIRECT]\n    Match /z\n    To /zz\n"}  # it is loaded
    result = check(make_conf(tmp_path, text, own="", more=more))
    assert result.returncode == 1
    (problem,) = problems(result)
    assert problem[:2] == ("monkey.conf", line) and message in problem[3]


# ── each kind of section, in each protocol ──

ALL_KINDS = """
[REDIRECT]
    Match       /old
    To          /all

[CORS]
    Match       /deep
    Origins     https://all.example

[HEADERS]
    Match       *.html
    Set         X-Kind all

[COMPRESS]
    Match       *.html
    Codings     gzip

[ALIAS]
    Match       /more
    To          {root}/deep

[ERROR_PAGES]
    Match       /missing
    404         "all"

[LIMITS]
    Match       /a.txt
    MaxBodySize 100

[MAINTENANCE]
    Match       /closed
    FlagFile    {root}/a.txt
    Text        all
"""

OWN_KINDS = (
    ALL_KINDS.replace("all", "own")
    .replace("/more\n    To          {root}/deep", "/more\n    To          {root}")
    .replace("Codings     gzip", "Codings     none")
    .replace("MaxBodySize 100", "MaxBodySize 200")
)


@pytest.fixture(params=WAYS)
def ask_kinds(request, serve, tmp_path):
    """A server with each kind in monkey.conf and in one of its hosts; returns a function that asks it."""
    way = WAYS[request.param]

    def begin(_sources, settings, text=""):
        root = tmp_path / "made" / "root"
        shared, own = ALL_KINDS.replace("{root}", str(root)), OWN_KINDS.replace("{root}", str(root))
        if text:
            text = section("TLS", way.ca.make("both", "localhost", "own.test").keys())
        conf = make_conf(tmp_path / "made", shared, text, own)
        files = {str(path.relative_to(conf)): path.read_text() for path in conf.rglob("*") if path.is_file()}
        listen = settings.get("Listen", "127.0.0.1:0")
        files["monkey.conf"] = files["monkey.conf"].replace("Listen 127.0.0.1:0", f"Listen {listen}")
        return serve(config=files)

    client = way.start(begin, tmp_path, None, {}).open()

    def ask(host, path, *fields, **rest):
        return client.ask(path, *fields, **rest, **({"authority": host} if way.h2 else {"host": host}))

    return ask


KINDS = {
    # what is seen of the section for all hosts, and of the host's own
    "REDIRECT": (lambda ask: ask("/old/x")["Location"], "/all/x", "/own/x"),
    "CORS": (
        lambda ask: [
            ask("/deep/c.txt", f"Origin: https://{name}.example")["Access-Control-Allow-Origin"]
            for name in ("all", "own")
        ],
        ["https://all.example", None],
        [None, "https://own.example"],
    ),
    "HEADERS": (lambda ask: ask("/b.html")["X-Kind"], "all", "own"),
    "COMPRESS": (lambda ask: ask("/b.html", "Accept-Encoding: gzip")["Content-Encoding"], "gzip", None),
    "ALIAS": (lambda ask: ask("/more/a.txt").status, 404, 200),
    "ERROR_PAGES": (lambda ask: ask("/missing").body, b"all", b"own"),
    "LIMITS": (lambda ask: ask("/a.txt", method="POST", body=b"x" * 150).status, 413, 405),
    "MAINTENANCE": (lambda ask: ask("/closed").body, b"all", b"own"),
}


def test_each_kind(ask_kinds):
    for name, (look, shared, own) in KINDS.items():
        found = [look(functools.partial(ask_kinds, host)) for host in ("localhost", "own.test")]
        assert found == [shared, own], name


def test_handlers(tmp_path, serve):
    """The lines of both files are one list, those of the host first."""
    lines = "[HANDLERS]\n    Match {} {}\n"
    server = lines.format("/deep", "static") + lines.format("/", "duda")
    own = lines.format("/deep/c.txt", "duda") + lines.format("/b.html", "static")
    conf = make_conf(tmp_path / "made", server + "[DUDA]\n", "", own)
    client = serve(config={str(p.relative_to(conf)): p.read_text() for p in conf.rglob("*") if p.is_file()}).connect()
    paths = ("/a.txt", "/b.html", "/deep/c.txt")
    assert [ask(client, "localhost", path).status for path in paths] == [404, 404, 200]
    assert [ask(client, "own.test", path).status for path in paths] == [404, 200, 404]
    shown = run("-c", conf, "--show-config").stdout
    assert shown.count("# for all hosts, after their own\n[HANDLERS]\n") == 2
    wrong = lines.format("/x", "statik") + lines.format("/y", "tls") + lines.format("/y/z", "static")
    result = check(make_conf(tmp_path / "wrong", wrong, own=""))
    found = [(name, line, text) for name, line, _, text in problems(result)]
    assert [(name, line) for name, line, _ in found] == [("monkey.conf", 5), ("monkey.conf", 7), ("monkey.conf", 9)]
    for text, (_, _, message) in zip(('did you mean "static"', "", "the one for /y comes first"), found, strict=True):
        assert text in message
