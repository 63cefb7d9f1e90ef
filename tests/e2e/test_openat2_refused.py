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
from harness.content import populate
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
