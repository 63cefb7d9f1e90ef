# SPDX-License-Identifier: Apache-2.0
"""A site of 1,000 files, mirrored by clients that we did not write: what arrives is the site, byte by byte."""

import hashlib
import html
import os
import random
import re
import shutil
import subprocess
import urllib.parse

import pytest

from harness.content import OLD, pattern, populate

pytestmark = pytest.mark.single_protocol

FILES = 1000
BIG = {"big/whole disk.img": 9_000_000, "big/über.bin": 7_000_003}  # several segments of aria2 each
WORDS = [
    "plain",
    "with blank",
    "größe",
    "100%",
    "a+b",
    "%41",
    "semi;colon",
    "q=1&r=2",
    "it's",
    "tilde~",
    "日本",
    "#1?",
]
SUFFIXES = [".txt", ".bin", ".tar.gz", "", ".jpg", ".JSON"]
SIZES = [0, 1, 100, 1_000, 4_096, 16_383, 16_384, 16_385, 20_000]
FEW_SIZES = {7: 1_048_576, 500: 2_500_000, 900: 3_000_001, 950: 1_048_577}  # by the number of the file
ROUTES = 10  # the folders below each folder


def folder_of(number):
    """Four levels at most; every name stands at every level."""
    digits = [number % ROUTES, number // ROUTES % ROUTES, number // ROUTES**2 % ROUTES][: number % 4]
    return "".join(f"{WORDS[digit]} {level}/" for level, digit in enumerate(digits))


def contents():
    """The files of the site without its index pages, always the same."""
    shared, rng = pattern(4_000_000, 7), random.Random(8)
    files = {name: pattern(size, 9) for name, size in BIG.items()}
    for number in range(FILES):
        size, at = FEW_SIZES.get(number, rng.choice(SIZES)), rng.randrange(900_000)
        name = f"{folder_of(number)}{rng.choice(WORDS)} {number}{rng.choice(SUFFIXES)}"
        files[name] = shared[at : at + size]
    return files


def link(name):
    return f'<a href="{html.escape(urllib.parse.quote(name))}">{html.escape(name)}</a>\n'


def with_indexes(files):
    """Each folder gets a page that links to what lies in it, so that a crawler finds everything."""
    entries = {"": set()}
    for path in files:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            slash = "/" if depth < len(parts) - 1 else ""
            entries.setdefault("".join(f"{p}/" for p in parts[:depth]), set()).add(part + slash)
    pages = {
        f"{folder}index.html": f"<!doctype html><meta charset=utf-8>\n{''.join(map(link, sorted(names)))}".encode()
        for folder, names in entries.items()
    }
    assert not pages.keys() & files.keys()
    return files | pages


def tree(folder):
    """What lies below a folder: path to hash."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def assert_same(mirror, original):
    here, there = tree(mirror), original
    wrong = sorted(path for path in here.keys() | there.keys() if here.get(path) != there.get(path))
    assert not wrong, f"{len(wrong)} files differ or are missing, among them {wrong[:10]}"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """The site's folder and its tree. Some 35 MB: nothing is left of it for a later look."""
    root = populate(tmp_path_factory.mktemp("original"), with_indexes(contents()))
    yield root, tree(root)
    shutil.rmtree(root)


@pytest.fixture
def mirror(tmp_path):
    folder = tmp_path / "mirror"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def run_client(*command):
    """Runs a client to its good end, with names in UTF-8 and nothing of the user's own settings."""
    command = [*map(str, command)]
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
    result = subprocess.run(command, capture_output=True, timeout=120, env=env)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:].decode("utf-8", "replace")


def wgets_name(path):
    """wget decodes the last part of a local name once more than that of the address: %41 becomes A."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + urllib.parse.unquote(name)


def test_wget(original, mirror, serve):
    """One after the other on one connection, each found by the links of the page before."""
    root, there = original
    server = serve({"Workers": 2}, root=root)
    where = ["--no-host-directories", "--restrict-file-names=nocontrol", f"--directory-prefix={mirror}"]
    run_client("wget", "--mirror", "--no-verbose", "--no-config", "-e", "robots=off", *where, f"{server.url}/")
    assert_same(mirror, {wgets_name(path): sha for path, sha in there.items()})
    times = {path.stat().st_mtime for path in mirror.rglob("*") if path.is_file()}
    assert times == {OLD}, "wget sets the time of a file by its Last-Modified"


@pytest.mark.slow
def test_aria2(original, mirror, serve, tmp_path):
    """Sixteen files at once, and large ones in up to sixteen pieces at once."""
    root, there = original
    server = serve({"Workers": 2}, root=root)
    rows = [f"{server.url}/{urllib.parse.quote(name)}\n  out={name}\n" for name in there]
    (tmp_path / "list").write_text("".join(rows))
    split = ["--max-connection-per-server=16", "--split=16", "--min-split-size=1M", "--max-concurrent-downloads=16"]
    log = ["--quiet", f"--log={tmp_path}/log", "--log-level=info"]
    local = ["--no-conf", "--file-allocation=none", f"--dir={mirror}", f"--input-file={tmp_path}/list"]
    run_client("aria2c", *split, *log, *local)
    assert_same(mirror, there)
    statuses = re.findall(r"^HTTP/1\.1 (\d+) ", (tmp_path / "log").read_text(errors="replace"), re.M)
    assert set(statuses) == {"200", "206"}
    assert statuses.count("206") >= 2 * len(BIG), "the large files came in pieces"
