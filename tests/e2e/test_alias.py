# SPDX-License-Identifier: Apache-2.0
"""[ALIAS]: paths that lead to folders outside the document root, and nowhere else."""

import gzip
import os
import pathlib
import tempfile

import pytest

from harness.content import pattern, populate
from harness.server import Server, await_true, run, write_config
from test_config import problems

ROOT = {
    "index.html": b"root",
    "only-root.txt": b"only root",
    "docs/index.html": b"docs of the root",
    "docs/only-root.txt": b"never",
    "docsx/a.txt": b"docsx",
    "single": b"never",
    "slash/x.txt": b"never",
}
DOCS = {
    "index.html": b"<p>docs",
    "a.txt": b"a of docs",
    "a.txt.gz": gzip.compress(b"a of docs", mtime=0),
    "sub/index.html": b"<p>sub",
    "sub/b.txt": b"b",
    "empty/x/y": b"",
    ".secret": b"secret",
    ".well-known/x": b"hidden below an alias",
    "sp ace/index.html": b"spaced",
    "large.bin": pattern(200_000),
}
OUTSIDE = {"secret.txt": b"secret", "one.json": b"{}", "wk/token": b"token", "slash/x.txt": b"slash"}

RULES = """
[ALIAS]
    Match /docs/special
    To {outside}/slash

[ALIAS]
    Match /docs
    To {docs}/

[ALIAS]
    Match =/single
    To {outside}/one.json

[ALIAS]
    Match /slash/
    To {outside}/slash

[ALIAS]
    Match /.well-known/acme
    To {outside}/wk
"""


@pytest.fixture
def place(tmp_path):
    """The folders outside the document root."""
    populate(tmp_path / "docs", DOCS)
    populate(tmp_path / "outside", OUTSIDE)
    docs = tmp_path / "docs"
    (docs / "out").symlink_to("../outside")
    (docs / "out.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (docs / "in.txt").symlink_to("a.txt")
    (docs / "absolute.txt").symlink_to(docs / "a.txt")
    return tmp_path


@pytest.fixture
def start(place, host_conf):
    """A server with the rules above; `server` and `host` are added to its files."""
    servers = []

    def make(host="", rules=RULES, server=""):
        text = f"{host}\n{rules}".format(docs=place / "docs", outside=place / "outside")
        folder = host_conf(text, ROOT)
        with open(folder / "monkey.conf", "a") as file:
            file.write(server)
        servers.append(Server("-c", folder))
        return servers[-1]

    yield make
    for server in servers:
        server.settle()
        server.stop()


@pytest.mark.parametrize(
    "target, status, body",
    [
        ("/docs/", 200, b"<p>docs"),
        ("/docs/a.txt", 200, b"a of docs"),
        ("/docs/sub/", 200, b"<p>sub"),
        ("/docs/sub/b.txt?q", 200, b"b"),
        ("/docs/only-root.txt", 404, None),
        ("/docs/nowhere", 404, None),
        ("/docs/empty/", 404, None),
        ("/docs/a.txt/", 404, None),
        ("/docsx/a.txt", 200, b"docsx"),
        ("/only-root.txt", 200, b"only root"),
        ("/", 200, b"root"),
        ("/single", 200, b"{}"),
        ("/single/", 404, None),
        ("/single/x", 404, None),
        ("/slash/x.txt", 200, b"slash"),
        ("/slash/", 404, None),
        ("/docs/special/x.txt", 200, b"slash"),
        ("/.well-known/acme/token", 200, b"token"),
        ("/%64ocs/a%2etxt", 200, b"a of docs"),
        ("/x/../docs//a.txt", 200, b"a of docs"),
        # no path leads out of the folder, or to hidden files
        ("/docs/.secret", 404, None),
        ("/docs/.well-known/x", 404, None),
        ("/docs/../only-root.txt", 200, b"only root"),
        ("/docs/../outside/secret.txt", 404, None),
        ("/docs../outside/secret.txt", 404, None),
        ("/docs..%2foutside/secret.txt", 404, None),
        ("/docs/..%2foutside/secret.txt", 404, None),
        ("/docs%2fa.txt", 404, None),
        ("/docs/%2e%2e/%2e%2e/outside/secret.txt", 404, None),
        ("/docs/%2e%2e%2foutside/secret.txt", 404, None),
        ("/docs/..\\outside\\secret.txt", 400, None),
        ("/docs/a.txt%00.html", 400, None),
        ("/docs//" + "x/" * 1500, 404, None),
        ("/docs/out/secret.txt", 404, None),
        ("/docs/out.txt", 404, None),
        ("/docs/in.txt", 404, None),
    ],
)
def test_paths(start, target, status, body):
    server = start()
    for _ in range(2):  # from the disk, and from memory
        with server.connect() as client:
            answer = client.ask(target)
            assert answer.status == status
            assert body is None or answer.body == body


@pytest.mark.parametrize(
    "target, location",
    [
        ("/docs", "/docs/"),
        ("/docs?a=b", "/docs/?a=b"),
        ("/docs/sub", "/docs/sub/"),
        ("/docs/sp%20ace?x", "/docs/sp%20ace/?x"),
        ("//docs", "/docs/"),
        ("/.well-known/acme", "/.well-known/acme/"),
    ],
)
def test_directories(start, target, location):
    client = start().connect()
    for _ in range(2):
        answer = client.ask(target)
        assert (answer.status, answer["Location"]) == (301, location)


def test_all_that_files_have(start):
    client = start(host="    Precompressed gzip\n").connect()
    whole = client.ask("/docs/large.bin")
    part = client.ask("/docs/large.bin", "Range: bytes=100-199", f"If-Range: {whole['ETag']}")
    assert (part.status, part.body) == (206, DOCS["large.bin"][100:200])
    assert client.ask("/docs/large.bin", f"If-None-Match: {whole['ETag']}").status == 304
    packed = client.ask("/docs/a.txt", "Accept-Encoding: gzip")
    assert (packed["Content-Encoding"], packed["Vary"]) == ("gzip", "Accept-Encoding")
    assert packed["Content-Type"].startswith("text/plain")
    assert client.ask("/docs/a.txt", method="POST", body=b"x").status == 405
    assert client.ask("/docs/a.txt", method="HEAD").length == len(b"a of docs")
    for _ in range(2):
        assert client.ask("/single")["Content-Type"].startswith("application/json"), "the file's type, not the path's"


@pytest.mark.parametrize(
    "mode, statuses",
    [("Off", [404, 404, 404, 404]), ("Inside", [200, 200, 404, 404]), ("On", [200, 200, 200, 200])],
)
def test_links(start, mode, statuses):
    """The bound is the folder of the alias."""
    client = start(host=f"    SymLink {mode}\n").connect()
    for _ in range(2):
        names = ["in.txt", "absolute.txt", "out.txt", "out/secret.txt"]
        assert [client.ask(f"/docs/{name}").status for name in names] == statuses


def test_tryfiles_is_the_document_roots(start):
    client = start(host="    TryFiles $path /index.html\n").connect()
    assert client.ask("/anything").body == b"root"
    assert client.ask("/docs/anything").status == 404
    assert client.ask("/docs/a.txt").body == b"a of docs"


def test_error_pages_are_the_hosts(start):
    client = start(host='[ERROR_PAGES]\n    404 "not here"\n').connect()
    assert client.ask("/docs/nowhere").body == b"not here"


def test_everything_by_an_alias(start):
    """All paths but one lead elsewhere."""
    rules = "[ALIAS]\n    Match =/single\n    To {outside}/one.json\n[ALIAS]\n    Match /\n    To {docs}\n"
    client = start(rules=rules).connect()
    assert client.ask("/").body == b"<p>docs"
    assert client.ask("/a.txt").body == b"a of docs"
    assert client.ask("/single").body == b"{}"
    assert client.ask("/only-root.txt").status == 404
    assert client.ask("/.well-known/x").status == 200, "here it is the root's"


def test_folder_is_swapped(start, place):
    populate(place / "other", {"a.txt": b"other"})
    server = start()
    client = server.connect()
    assert client.ask("/docs/a.txt").body == b"a of docs"
    (place / "docs").rename(place / "old")
    (place / "other").rename(place / "docs")
    await_true(lambda: client.ask("/docs/a.txt").body == b"other", 30)
    assert client.ask("/slash/x.txt").body == b"slash"


def test_file_is_swapped(start, place):
    client = start().connect()
    assert client.ask("/single").body == b"{}"
    (place / "outside" / "new").write_bytes(b"[1]")
    (place / "outside" / "new").rename(place / "outside" / "one.json")
    assert client.ask("/single").body == b"[1]"
    (place / "outside" / "one.json").unlink()
    assert client.ask("/single").status == 404


def test_file_whose_folder_is_swapped(start, place):
    """The request that notices it is answered by a disk thread, and just like the others."""
    populate(place / "other", {"one.json": b"[2]"})
    client = start().connect()
    assert client.ask("/single").body == b"{}"
    (place / "outside").rename(place / "old")
    (place / "other").rename(place / "outside")

    def ask():
        answer = client.ask("/single")
        assert answer["Content-Type"].startswith("application/json")
        return answer.body

    await_true(lambda: ask() == b"[2]", 30)


# ── what the operator gets wrong ──

MISTAKES = {
    # rules, line and column of the mistake, what is said
    "a glob": ("[ALIAS]\n    Match *.css\n    To {docs}\n", (5, 11), "not a glob"),
    "dots": ("[ALIAS]\n    Match /a/../b\n    To {docs}\n", (5, 13), "dots for names"),
    "dots at the end": ("[ALIAS]\n    Match /a/.\n    To {docs}\n", (5, 14), "dots for names"),
    "empty segment": ("[ALIAS]\n    Match /a//b\n    To {docs}\n", (5, 13), "empty segments"),
    "no Match": ("[ALIAS]\n    To {docs}\n", (4, 1), "Match"),
    "no To": ("[ALIAS]\n    Match /a\n", (4, 1), "To"),
    "empty To": ('[ALIAS]\n    Match /a\n    To ""\n', (6, 9), "wants a path, not"),
    "empty To of a file": ('[ALIAS]\n    Match =/a\n    To ""\n', (6, 9), "wants a path, not"),
    "missing": ("[ALIAS]\n    Match /a\n    To {docs}/nowhere\n", (6, 8), "No such file"),
    "a file": ("[ALIAS]\n    Match /a\n    To {docs}/a.txt\n", (6, 8), "Not a directory"),
    "missing file": ("[ALIAS]\n    Match =/a\n    To {docs}/nowhere\n", (6, 8), "cannot open the file"),
    "a folder": ("[ALIAS]\n    Match =/a\n    To {docs}/sub\n", (6, 8), "Is a directory"),
    "a folder with its slash": ("[ALIAS]\n    Match =/a\n    To {docs}/sub/\n", (6, 8), "Is a directory"),
    "a link": ("[ALIAS]\n    Match =/a\n    To {docs}/in.txt\n", (6, 8), "SymLink does not follow"),
    "hidden": ("[ALIAS]\n    Match /.git\n    To {docs}\n", (5, 11), "DotFiles On"),
}


def check(folder):
    result = run("-c", folder, "-t")
    assert result.returncode == 1
    return problems(result)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(place, host_conf, name):
    rules, position, words = MISTAKES[name]
    found = check(host_conf(rules.format(docs=place / "docs"), ROOT))
    assert len(found) == 1 and found[0][:3] == ("default", *position), found
    assert words in found[0][3]


@pytest.mark.parametrize(
    "first, second, covered",
    [
        ("/docs", "/docs", True),
        ("/docs", "/docs/x", True),
        ("/docs", "/docs/", True),
        ("/docs", "=/docs/a.txt", True),
        ("/", "/docs", True),
        ("=/docs", "=/docs", True),
        ("/docs", "/docsx", False),
        ("/docs/x", "/docs", False),
        ("/docs/", "/docs", False),
        ("=/docs", "/docs", False),
    ],
)
def test_order(place, host_conf, first, second, covered):
    def target(match):
        return f"{place}/docs/a.txt" if match[0] == "=" else f"{place}/docs"

    text = "".join(f"[ALIAS]\n    Match {match}\n    To {target(match)}\n" for match in (first, second))
    result = run("-c", host_conf(text, ROOT), "-t")
    assert result.returncode == covered, result.stderr
    assert [p[:3] for p in problems(result)] == ([("default", 8, 11)] if covered else [])
    assert ("can never match" in result.stderr) == covered


def test_all_mistakes_at_once(place, host_conf):
    rules = (
        "[ALIAS]\n    Match /a\n    To /nowhere\n[ALIAS]\n    Match /b\n    To /nowhere\n[ALIAS]\n    Match /a/b\n"
    )
    found = check(host_conf(rules + f"    To {place}\n", ROOT))
    assert [p[1] for p in found] == [6, 9, 11]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("match, to", [("/a", "closed"), ("/a", "closed/sub"), ("=/a", "file.txt")])
def test_what_this_user_may_not_read(match, to):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        place = populate(pathlib.Path(folder), {"closed/sub/x": b"", "file.txt": b"", "root/x": b""})
        (place / "closed").chmod(0o600)
        (place / "file.txt").chmod(0o600)
        conf = write_config(place / "conf", place / "root")
        with open(conf / "sites" / "default", "a") as file:
            file.write(f"[ALIAS]\n    Match {match}\n    To {place / to}\n")
        result = run("-c", conf, "-t", user=65534)
    assert result.returncode == 1 and "Permission denied" in result.stderr
