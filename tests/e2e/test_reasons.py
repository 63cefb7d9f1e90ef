# SPDX-License-Identifier: Apache-2.0
"""Why a file is not sent: `$reason` in the access log, and one line of the error log that says what to write."""

import json
import os
import socket

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.content import populate
from harness.messages import request
from harness.proxies import TEXT, proxy_section
from harness.server import await_true, section
from test_sources import wrap_users
from test_userdir import needs_root

pytestmark = pytest.mark.skipif(
    not (build.PLUGINS / "logger.so").exists(), reason=f"the preset {build.PRESET} has no logger"
)

FILES = {
    "a.txt": b"a\n", "docs/index.html": b"docs\n", "empty/a.txt": b"a\n", ".env": b"secret\n", "run.php": b"<?php\n",
    "x/.git/config": b"secret\n", "alias/empty/a.txt": b"a\n",
}  # fmt: skip
LOG = section("LOGGER", {"AccessLog": "../../access.log", "Format": '"json $target $status $reason"'})
FASTCGI = section("FASTCGI", {"Match": "*.php", "To": "unix:/nowhere"})


def make_entries(root, outside):
    """What is no plain file, next to FILES."""
    outside.mkdir()
    (outside / "secret").write_text("secret\n")
    (root / "link").symlink_to("a.txt")
    (root / "folder").symlink_to("docs")
    (root / "out").symlink_to("../outside/secret")
    (root / "out-absolute").symlink_to(outside / "secret")
    (root / "circle").symlink_to("circle")
    os.mkfifo(root / "pipe")
    (root / "indexes").mkdir()
    (root / "indexes" / "index.html").symlink_to("../../outside/secret")
    with socket.socket(socket.AF_UNIX) as one:
        here = os.open(root, os.O_PATH)
        one.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)


@pytest.fixture
def logged(serve, tmp_path):
    """logged(keys, request ...): what the log says of each, and the server."""

    def start(host, *requests, text="", settings=None, **rest):
        folder = tmp_path / "server0"
        root = folder / "root"
        config = {"monkey.conf": section("SERVER", {"Listen": "127.0.0.1:0", "Workers": 1, **(settings or {})})}
        server = serve(files=FILES, host=host, text=text + LOG, config=config, **rest)
        make_entries(root, folder / "outside")
        log = folder / "access.log"
        with server.connect() as client:
            for target, method, body in requests:
                client.ask(target, method=method, body=body)
        await_true(lambda: log.exists() and log.read_text().count("\n") == len(requests))
        found = [json.loads(line) for line in log.read_text().splitlines()]
        return server, [(row["status"], row["reason"]) for row in found]

    return start


def get(target):
    return target, "GET", b""


LARGE = b"x" * 11
# Keys of the host, and requests with their status and reason.
CASES = {
    "defaults": ({}, [
        (get("/a.txt"), 200, None),
        (get("/docs/"), 200, None),
        (get("/docs"), 301, None),
        (get("/none"), 404, "missing"),
        (get("/none/"), 404, "missing"),
        (get("/a.txt/x"), 404, "missing"),
        (get("/empty/"), 404, "no-index"),
        (get("/"), 404, "no-index"),
        (get("/.env"), 404, "hidden"),
        (get("/x/.git/config"), 404, "hidden"),
        (get("/.none"), 404, "hidden"),
        (("/.env", "HEAD", b""), 404, "hidden"),
        (get("/pipe"), 404, "no-file"),
        (get("/socket"), 404, "no-file"),
        (get("/" + "n" * 300), 404, "name-too-long"),
        (("/a.txt", "POST", b"x"), 405, "method"),
        (("/none", "DELETE", b""), 405, "method"),
        (("/a.txt", "OPTIONS", b""), 204, None),
    ]),
    "SymLink Off": ({"SymLink": "Off"}, [
        (get("/link"), 404, "link"),
        (get("/folder/"), 404, "link"),
        (get("/folder/none"), 404, "link"),
        (get("/out"), 404, "link"),
    ]),
    "SymLink Inside": ({"SymLink": "Inside"}, [
        (get("/link"), 200, None),
        (get("/out"), 404, "link-outside"),
        (get("/out-absolute"), 404, "link-outside"),
        (get("/indexes/"), 404, "link-outside"),
        (get("/circle"), 404, "link-circle"),
    ]),
    "SymLink On": ({"SymLink": "On"}, [
        (get("/out"), 200, None),
        (get("/circle"), 404, "link-circle"),
    ]),
    "DotFiles On": ({"DotFiles": "On"}, [
        (get("/.env"), 200, None),
        (get("/.none"), 404, "missing"),
    ]),
    "MaxBodySize": ({"MaxBodySize": "10B"}, [
        (("/a.txt", "PUT", LARGE), 413, "body-too-large"),
        (("/a.txt", "GET", LARGE), 413, "body-too-large"),
        (("/none", "GET", b"x"), 404, "missing"),
    ]),
    "TryFiles": ({"TryFiles": "$path $path.html", "SymLink": "Off"}, [
        (get("/none"), 404, "missing"),
        (get("/.env"), 404, "hidden"),
        (get("/link"), 404, "link"),
    ]),
    "TryFiles with 404": ({"TryFiles": "$path =404"}, [(get("/none"), 404, "missing")]),
    "TryFiles with 410": ({"TryFiles": "$path =410"}, [(get("/none"), 410, None)]),
    "ErrorPages": ({}, [(get("/none"), 404, "missing"), (get("/.env"), 404, "hidden")]),
}  # fmt: skip
TEXTS = {"ErrorPages": "[ERROR_PAGES]\n    404 \"lost\"\n"}

# Of a reason, what the line in the error log advises; others have none.
ADVICE = {
    "no-index": "the folder has no file that Indexfile names: add one, name another in [HOST], or list the folder by "
    "[DIRLISTING]",
    "hidden": 'DotFiles Off hides: write "DotFiles On" in [HOST]',
    "link": 'which SymLink Off does not follow: write "SymLink Inside" in [HOST], or "SymLink On"',
    "link-outside": 'which SymLink Inside does not follow: write "SymLink On" in [HOST], or an [ALIAS]',
    "link-circle": "symbolic links that lead in a circle: mend them",
    "no-file": "it is a device, a pipe or a socket",
    "method": "another method needs a section such as [PROXY], [CGI] or [FASTCGI] whose Match has this path",
    "body-too-large": "larger than MaxBodySize: raise it in [SERVER] or [HOST], or for some paths in [LIMITS]",
}


@pytest.mark.parametrize("cached", [True, False], ids=["cache", "plain"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_reasons(logged, case, cached):
    """The reason of each request, and one line for the first of each reason."""
    host, rows = CASES[case]
    text = TEXTS.get(case, "") + ("[CACHE]\n    Files Revalidate 1s\n" if cached else "")
    server, found = logged(host, *[row[0] for row in rows], *[row[0] for row in rows], text=text)
    assert found == [(status, reason) for _, status, reason in rows] * 2
    first = {reason: (asked[0], status) for asked, status, reason in reversed(rows)}
    lines = [line for line in server.lines if " such lines before were not written" in line]
    assert len(lines) == len(ADVICE.keys() & first.keys())
    for reason in ADVICE.keys() & first.keys():
        target, status = first[reason]
        said = [line for line in lines if f" info  {status} for {target}: " in line and ADVICE[reason] in line]
        assert len(said) == 1 and ", peer: " in said[0] and ", host: " in said[0], (reason, lines)


def test_programs_of_other_sections(logged):
    """Also where a line of [HANDLERS] takes the request away from them."""
    handlers = "[HANDLERS]\n    Match =/run.php static\n"
    server, found = logged({}, get("/run.php"), text=FASTCGI + handlers)
    assert found == [(404, "source")]
    assert [line for line in server.lines if "404 for /run.php: it is a program that another section runs" in line]


def test_encoded_slashes(logged):
    """Only where a section has the path, or runs the program for it."""
    proxy = "[PROXY]\n    Match /api\n    To http://127.0.0.1:1\n"
    asked = [get("/api/a%2Fb"), get("/a%2Fb"), get("/api/%2F..")]
    server, found = logged({}, *asked, text=proxy)
    assert found == [(404, "encoded-slash"), (404, None), (404, None)]
    said = [line for line in server.lines if 'write "EncodedSlash Keep" or "EncodedSlash Decode" there' in line]
    assert len(said) == 1 and "404 for /api/a%2Fb: it has an encoded slash" in said[0]


def test_encoded_slashes_of_a_front_controller(logged):
    _, found = logged({"TryFiles": "$path /run.php"}, get("/a%2Fb"), text=FASTCGI)
    assert found == [(404, "encoded-slash")]


def test_an_alias(logged, tmp_path):
    alias = section("ALIAS", {"Match": "/al", "To": tmp_path / "server0" / "root" / "alias"})
    server, found = logged({}, get("/al/empty/"), get("/al/none/"), text=alias)
    assert found == [(404, "no-index"), (404, "missing")]


@needs_root
def test_the_folder_of_a_user(serve, tmp_path):
    """The same reasons, by the path of the client."""
    files = {"a.txt": b"a\n", ".env": b"secret\n", "empty/a.txt": b""}
    home = populate(tmp_path / "home" / "bob" / "public_html", files)
    (home / "link").symlink_to("a.txt")
    server = serve(files=FILES, host={"UserDir": "public_html", "SymLink": "Off"}, wrapper=wrap_users(tmp_path))
    with server.connect() as client:
        assert client.ask("/~bob/a.txt").body == b"a\n"
        targets = ("/~bob/.env", "/~bob/link", "/~bob/empty/")
        assert [client.ask(target).status for target in (*targets, "/~bob/none", "/~eve/a.txt")] == [404] * 5
    for target, reason in zip(targets, ("hidden", "link", "no-index")):
        said = [line for line in server.lines if f" 404 for {target}: " in line]
        assert len(said) == 1 and ADVICE[reason] in said[0], server.log


@pytest.mark.skipif(not (build.PLUGINS / "proxy.so").exists(), reason="no proxy in this build")
def test_what_a_backend_says_is_no_reason(logged):
    """A file is missing, the request goes to a backend: its 404 is not that of a file."""
    with Backend(answer(b"none\n", TEXT, status=404)) as backend:
        _, found = logged({"TryFiles": "$path"}, get("/none"), get("/.env"), text=proxy_section(backend))
        assert found == [(404, None), (404, None)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_permission(serve, tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    server = serve(files=FILES, user=65534)
    (server.root / "a.txt").chmod(0)
    (server.root / "docs").chmod(0)
    with server.connect() as client:
        assert [client.ask(path).status for path in ("/a.txt", "/docs/index.html", "/docs/")] == [403] * 3
    (server.root / "docs").chmod(0o755)
    lines = [line for line in server.lines if "403 for " in line]
    assert len(lines) == 1 and "403 for /a.txt: the user of the server may not read it" in lines[0]


def test_a_flood_is_one_line(serve):
    """Of each reason one in ten seconds, with the number of the others in the next one."""
    server = serve({"Workers": 2}, files=FILES)
    with server.connect() as client:
        for _ in range(300):
            client.send(request("/.env"))
            assert client.response().status == 404
    assert len([line for line in server.lines if " 404 for " in line]) == 1
