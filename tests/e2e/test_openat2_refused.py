# SPDX-License-Identifier: Apache-2.0
"""Kernels before 5.12 and some sandboxes refuse openat2(2): the server then opens one component of a path at a
time, and the tests of roots, links and aliases have the same results."""

import errno
import gzip
import io
import json
import os
import re
import signal
import subprocess
import tarfile

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.content import populate
from harness.proxies import TEXT, proxy_section
from harness.scripts import write_scripts
from harness.seccomp import OPENAT2, refuse
from harness.server import section, write_config
import test_roots
import test_static
import test_updates

pytestmark = pytest.mark.single_protocol

# Tests and fixtures of other files, with the `serve` of this one.
OTHERS = {
    test_roots: ("place",),
    test_updates: ("releases",),
    test_static: ("linked", "test_links_off", "test_links_inside", "test_links_on"),
}
for module, names in OTHERS.items():
    tests = [name for name in vars(module) if name.startswith("test_")] if len(names) == 1 else []
    globals().update({name: getattr(module, name) for name in (*names, *tests)})


@pytest.fixture
def serve(serve):
    """Starts servers that may not call openat2(2)."""

    def start(*args, **rest):
        server = serve(*args, wrapper=refuse(OPENAT2, errno.EPERM), **rest)
        server.wait_log(r"openat2\(2\) is refused \(Operation not permitted\)")
        return server

    return start


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS, errno.EINVAL])
def test_check(tmp_path, error):
    """A check says so, once for all hosts."""
    write_config(tmp_path / "conf", populate(tmp_path / "root", {"a.txt": b"a\n"}))
    command = [*refuse(OPENAT2, error), build.binary(), "-c", tmp_path / "conf", "-t"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=build.environment())
    said = re.findall(r"warning: openat2\(2\) is refused \((.*)\): files are opened one component", result.stderr)
    assert said == [os.strerror(error)]


def test_the_log_says_so_once(serve):
    server = serve(files={"a.txt": b"a\n"})
    assert server.connect().ask("/a.txt").body == b"a\n"
    server.baseline += 2  # of the thread that ends a generation
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")
    assert server.connect().ask("/a.txt").body == b"a\n"
    assert sum("openat2" in line for line in server.logged) == 1


LINKS = {"in.txt": "a.txt", "out.txt": "../../outside/secret.txt", "folder": "sub"}
# The names that a listing and an archive have, and the links that a request gets, also in the folder of an alias.
BY_MODE = {"Off": set(), "Inside": {"in.txt", "folder"}, "On": {"in.txt", "folder", "out.txt"}}


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="this preset has no dirlisting")
@pytest.mark.parametrize("mode", BY_MODE)
def test_folders_aliases_and_variants(serve, tmp_path, mode):
    files = {"a.txt": b"a\n", "b.txt": b"b\n" * 100, "b.txt.gz": gzip.compress(b"b\n" * 100), "sub/c.txt": b"c\n"}
    populate(tmp_path / "outside", {"secret.txt": b"secret\n"})
    root = populate(tmp_path / "root", {f"d/{name}": content for name, content in files.items()})
    populate(tmp_path / "alias", {})
    other = populate(tmp_path / "alias" / "d", files)
    for folder in (root / "d", other):
        for name, target in LINKS.items():
            (folder / name).symlink_to(target)
    text = section("ALIAS", {"Match": "/al", "To": other}) + section("DIRLISTING", {"Archives": "tar"})
    server = serve(root=root, host={"SymLink": mode, "Precompressed": "gzip"}, text=text)
    expected = {"a.txt", "b.txt", "b.txt.gz", "sub"} | BY_MODE[mode]
    with server.connect() as client:
        for path in ("/d/", "/al/"):
            listed = json.loads(client.ask(path, "Accept: application/json").body)
            assert {entry["name"].rstrip("/") for entry in listed["entries"]} == expected, listed
            packed = tarfile.open(fileobj=io.BytesIO(client.ask(f"{path}?archive=tar").body))
            names = {name.rstrip("/").split("/", 1)[-1] for name in packed.getnames()}
            assert {name for name in names if "/" not in name} & (LINKS.keys() | {"a.txt"}) == BY_MODE[mode] | {"a.txt"}
            for name in LINKS:
                got = client.ask(f"{path}{name}{'/c.txt' if name == 'folder' else ''}")
                assert got.status == (200 if name in BY_MODE[mode] else 404), name
            packed = client.ask(f"{path}b.txt", "Accept-Encoding: gzip")
            assert (packed["Content-Encoding"], gzip.decompress(packed.body)) == ("gzip", files["b.txt"])


needs_gateways = pytest.mark.skipif(
    not all((build.PLUGINS / f"{name}.so").exists() for name in ("proxy", "cgi")), reason="this preset has no gateways"
)


def link(folder, links):
    for name, target in links.items():
        (folder / name).symlink_to(target)
    return folder


@needs_gateways
@pytest.mark.parametrize("name, status", [
    ("a.txt", 200), ("sub/../a.txt", 200), ("in", 200), ("sub/c.txt", 200), ("deep/c.txt", 200),
    ("out", 403), ("above/secret.txt", 403), ("../outside/secret.txt", 403), ("none", 404), ("sub", 404),
])  # fmt: skip
def test_files_that_a_backend_names(serve, tmp_path, name, status):
    populate(tmp_path / "outside", {"secret.txt": b"secret\n"})
    files = populate(tmp_path / "files", {"a.txt": b"a\n", "sub/c.txt": b"c\n"})
    link(files, {"in": "a.txt", "deep": "sub", "out": "../outside/secret.txt", "above": "../outside"})
    with Backend(answer(b"ignored", TEXT, f"X-Accel-Redirect: /{name}")) as backend:
        server = serve(text=proxy_section(backend, {"SendFile": files}))
        with server.connect() as client:
            got = client.ask("/download")
    assert got.status == status and b"secret" not in got.body
    assert status != 200 or got.body in (b"a\n", b"c\n")


@needs_gateways
@pytest.mark.parametrize("path, answer", [
    ("run", "run -"), ("run/x/y", "run /x/y"), ("sub/run/x", "sub /x"), ("in/x", "run /x"), ("deep/run", "sub -"),
    ("out", 404), ("above/run", 404), ("none", 404), ("sub", 404), (".hidden", 404),
])  # fmt: skip
@pytest.mark.parametrize("place", ["Root", "DocumentRoot"])
def test_scripts(serve, tmp_path, place, path, answer):
    def script(name):
        return f"#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\necho {name} ${{PATH_INFO:--}}\n"

    write_scripts(tmp_path / "outside", {"run": script("secret")})
    names = {"run": script("run"), "sub/run": script("sub"), ".hidden": script("hidden")}
    root = write_scripts(tmp_path / "root" / "cgi", names)
    link(root, {"in": "run", "deep": "sub", "out": "../../outside/run", "above": "../../outside"})
    keys = {"Match": "/cgi", **({"Root": root} if place == "Root" else {})}
    server = serve(root=tmp_path / "root", host={"SymLink": "Inside"}, text=section("CGI", keys))
    server.baseline += 2  # to the process that starts them, of the process and of a worker
    with server.connect() as client:
        got = client.ask(f"/cgi/{path}")
    assert b"secret" not in got.body
    assert got.status == answer if isinstance(answer, int) else got.body.decode().strip() == answer


@pytest.mark.parametrize("mode", BY_MODE)
def test_error_pages(serve, tmp_path, mode):
    """A page that is a link is followed as another file is."""
    populate(tmp_path / "outside", {"secret.txt": b"secret\n"})
    root = populate(tmp_path / "root", {"e/page.html": b"page\n", "e/sub/c.txt": b"c\n", "a.txt": b"a\n"})
    link(root / "e", {"in.txt": "../a.txt", "folder": "sub"})
    (root / "e" / "out.txt").symlink_to("../../outside/secret.txt")
    pages = {"404": "/e/page.html", "405": "/e/in.txt"} if mode != "Off" else {"404": "/e/page.html"}
    server = serve(root=root, host={"SymLink": mode}, text=section("ERROR_PAGES", pages))
    with server.connect() as client:
        assert client.ask("/none").body == b"page\n"
        got = client.ask("/a.txt", method="DELETE")
        assert got.status == 405 and (got.body == b"a\n") == (mode != "Off")


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="this preset has no dirlisting")
def test_themes_and_archives(serve, tmp_path):
    """The files of a theme; an archive, with the folder of an alias in it."""
    theme = populate(tmp_path / "theme", {"header.theme": b"own\n", "entry.theme": b"", "real.theme": b"end\n"})
    link(theme, {"footer.theme": "real.theme"})
    root = populate(tmp_path / "root", {"d/a.txt": b"a\n", "d/al/hidden.txt": b"h\n"})
    other = populate(tmp_path / "other", {"shown.txt": b"s\n", "deep/x.txt": b"x\n"})
    text = section("ALIAS", {"Match": "/d/al", "To": other})
    text += section("DIRLISTING", {"Archives": "tar", "Theme": theme})
    with serve(root=root, text=text).connect() as client:
        assert client.ask("/d/").body == b"own\nend\n"
        packed = tarfile.open(fileobj=io.BytesIO(client.ask("/d/?archive=tar").body))
    files = sorted(one.name.split("/", 1)[1] for one in packed.getmembers() if one.isfile())
    assert files == ["a.txt", "al/deep/x.txt", "al/shown.txt"]
