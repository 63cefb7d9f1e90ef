# SPDX-License-Identifier: Apache-2.0
"""Folders as archives: what is in them, that they are valid or cut, and what they cost."""

import base64
import hashlib
import io
import os
import subprocess
import tarfile
import urllib.parse

import pytest

from harness import build
from harness.client import ProtocolError
from harness.content import OLD, cycle, pattern, populate
from harness.messages import request
from harness.server import await_true, section
from harness.ways import WAYS
from test_dirlisting import FILES, JSON, ODD, listing, reload, root, start, way

pytestmark = build.needs_modules
__all__ = ["root", "start", "way"]  # fixtures

KINDS = {"tar": "application/x-tar", "tar.gz": "application/gzip", "tar.zst": "application/zstd"}
ALL = {"Archives": " ".join(KINDS)}
CUT = (ProtocolError, ConnectionResetError)


def fetch(client, path, kind="tar", *fields):
    answer = client.ask(f"{path}?archive={kind}", *fields)
    assert (answer.status, answer["Content-Type"]) == (200, KINDS[kind])
    return answer.body


def unpack(data, kind="tar"):
    """The files (name to bytes) and folders of an archive; GNU tar must take it, too."""
    result = subprocess.run(
        ["tar", "--list", "--file=-", *{"tar.gz": ["--gzip"], "tar.zst": ["--zstd"]}.get(kind, [])],
        input=data,
        capture_output=True,
    )
    assert (result.returncode, result.stderr) == (0, b"")
    if kind == "tar.zst":
        data = subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz" if kind == "tar.gz" else "r:") as archive:
        members = archive.getmembers()
        assert all(member.isreg() or member.isdir() for member in members)
        assert all((member.uid, member.gid, member.uname) == (0, 0, "") for member in members)
        files = {member.name: archive.extractfile(member).read() for member in members if member.isreg()}
        folders = {member.name for member in members if member.isdir()}
    assert len(files) + len(folders) == len(members), "a name twice"
    return files, folders


def walk(client, path, *fields):
    """What single requests get: the files below a folder, by the listings."""
    found = {}
    for entry in listing(client, path, *fields)["entries"]:
        if entry["type"] == "folder":
            found.update(walk(client, entry["url"], *fields))
        else:
            answer = client.ask(entry["url"], *fields)
            assert answer.status == 200
            found[urllib.parse.unquote_to_bytes(entry["url"])] = answer.body
    return found


# ── what is in an archive ──


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(start, way, kind):
    client = start(ALL, way=way, settings={"ServerHeader": "On"}).open()
    files, folders = unpack(fetch(client, "/pub/", kind), kind)
    assert files == {
        "pub/sub/deep/d.txt": b"deep\n",
        "pub/File1.txt": b"",
        "pub/file2.txt": b"two\n",
        "pub/file10.txt": b"ten!!\n",
        "pub/old.bak": b"bak\n",
        "pub/page.php": FILES["pub/page.php"],
        "pub/README": FILES["pub/README"],
    }
    assert folders == {"pub/sub", "pub/sub/deep"}


@pytest.mark.parametrize("mode", ["Off", "Inside", "On"])
@pytest.mark.parametrize("dotfiles", ["Off", "On"])
@pytest.mark.parametrize("key", [(), ("X-Key: 1",)])
def test_only_what_single_requests_get(start, root, mode, dotfiles, key):
    (root / "pub" / "sub" / "up").symlink_to("..")  # a cycle
    (root / "pub" / "etc").unlink()  # SymLink On would list all of it
    client = start(ALL, host={"SymLink": mode, "DotFiles": dotfiles}).open()
    files, _ = unpack(fetch(client, "/pub/", "tar", *key))
    got = {b"/" + os.fsencode(name): data for name, data in files.items()}
    (root / "pub" / "sub" / "up").unlink()
    assert got == walk(client, "/pub/", *key)


def test_odd_names(start, root):
    longest = "n" * 250 + ".txt"
    (root / "odd" / longest).write_bytes(b"long")
    deep = root / "odd" / ("d" * 200) / ("e" * 200)
    deep.mkdir(parents=True)
    (deep / "f").write_bytes(b"deep")
    (root / "odd" / "empty").mkdir()
    files, folders = unpack(fetch(start(ALL).open(), "/odd/"))
    assert {os.fsencode(name) for name in files} == {
        b"odd/bad\xff\xc3",
        *(b"odd/" + name.encode() for name in [*ODD, "x", longest]),
        b"odd/" + b"d" * 200 + b"/" + b"e" * 200 + b"/f",
    }
    assert "odd/empty" in folders


def test_times(start, root):
    os.utime(root / "pub" / "file2.txt", (2**32, 2**32))
    with tarfile.open(fileobj=io.BytesIO(fetch(start(ALL).open(), "/pub/"))) as archive:
        assert archive.getmember("pub/file10.txt").mtime == OLD
        assert archive.getmember("pub/file2.txt").mtime == 2**32


def test_sizes(start, root):
    """Around the blocks of the format, and more than all buffers."""
    sizes = [0, 1, 511, 512, 513, 65535, 65536, 65537, 1_048_576, 5_000_001]
    for size in sizes:
        (root / "pub" / f"size-{size}").write_bytes(pattern(size))
    client = start(ALL).open()
    for kind in KINDS:
        files, _ = unpack(fetch(client, "/pub/", kind), kind)
        for size in sizes:
            assert files[f"pub/size-{size}"] == pattern(size)


def test_the_root(start):
    files, _ = unpack(fetch(start({**ALL, "Match": "=/pub/"}, ALL).open(), "/odd/"))
    assert "odd/x" in files


def test_names_of_downloads(start, root):
    (root / 'a"b\u00e4').mkdir()
    client = start(ALL).open()
    expected = {
        "/pub/": 'attachment; filename="pub.tar"',
        "/pub/sub/deep/": 'attachment; filename="deep.tar"',
        "/a%22b%C3%A4/": "attachment; filename=\"a_b_.tar\"; filename*=UTF-8''a_b%C3%A4.tar",
    }
    for path, value in expected.items():
        assert client.ask(path + "?archive=tar")["Content-Disposition"] == value


def test_folders_that_are_not_listed(start, root):
    """They are left out, with an index also if they could be listed otherwise."""
    populate(root / "pub", {"indexed/index.html": b"index", "indexed/more.txt": b"more", "off/x.txt": b"x"})
    off = {"Match": "/pub/off", "Enabled": "Off"}
    files, folders = unpack(fetch(start(off, ALL).open(), "/pub/"))
    assert not any(name.startswith(("pub/indexed", "pub/off")) for name in [*files, *folders])
    files, _ = unpack(fetch(start(off, {**ALL, "ArchiveIndexed": "On"}).open(), "/pub/"))
    assert files["pub/indexed/more.txt"] == b"more" and "pub/off/x.txt" not in files


def test_hidden(start):
    client = start({**ALL, "Hidden": "*.bak"}).open()
    assert "pub/old.bak" not in unpack(fetch(client, "/pub/"))[0]


def test_an_alias_within(start, tmp_path):
    """The archive has what requests get: the files of the alias, not those that it covers."""
    other = populate(tmp_path / "other", {"d.txt": b"of the alias\n"})
    alias = section("ALIAS", {"Match": "/pub/sub/deep", "To": other})
    files, _ = unpack(fetch(start(ALL, extra=alias).open(), "/pub/"))
    assert files["pub/sub/deep/d.txt"] == b"of the alias\n"


def test_handlers_of_content(start):
    rule = section("HANDLERS", {"Match": "*.php hello"})
    client = start(ALL, extra=rule, more=[build.MODULES / "hello.so"]).open()
    assert "pub/page.php" not in unpack(fetch(client, "/pub/"))[0]


def test_rewrites_and_redirects(start):
    """A path that leads elsewhere is not the file of that name."""
    rules = section("REWRITE", {"Match": "=/pub/file2.txt", "To": "/odd/x"})
    rules += section("REDIRECT", {"Match": "/pub/sub", "To": "/odd"})
    rules += section("REDIRECT", {"Match": "=/pub/README", "To": "/odd", "When": "query lang"})
    client = start(ALL, extra=rules, more=["redirect"]).open()
    files, folders = unpack(fetch(client, "/pub/"))
    assert sorted(files) == ["pub/File1.txt", "pub/README", "pub/file10.txt", "pub/old.bak", "pub/page.php"]
    assert not folders
    assert {entry["name"] for entry in listing(client, "/pub/")["entries"]} == {name[4:] for name in files}


@pytest.mark.skipif(
    not all((build.PLUGINS / f"{name}.so").exists() for name in ("auth", "mandril")), reason="needs both plugins"
)
def test_rules_and_logins_of_subfolders(start, root, tmp_path, way):
    """Clients that may not enter a folder see neither its name nor its files; others get them."""
    populate(root / "pub", {"members/m.txt": b"m", "office/o.txt": b"o", "office/open/p.txt": b"p"})
    (tmp_path / "users").write_text("ada:{SHA}" + base64.b64encode(hashlib.sha1(b"secret").digest()).decode() + "\n")
    (tmp_path / "users").chmod(0o600)
    text = section("AUTH", {"Match": "/pub/members", "Users": tmp_path / "users", "Realm": "members"})
    text += section("RULES", {"Match": "/pub/office/open", "Action": "allow"})
    text += section("RULES", {"Match": "/pub/office", "When": "header X-Office =1", "Action": "allow"})
    text += section("RULES", {"Match": "/pub/office", "Action": "deny"})
    client = start(ALL, way=way, extra=text, more=["mandril", "auth"]).open()
    login = "Authorization: Basic " + base64.b64encode(b"ada:secret").decode()
    for fields, more in (
        ((), set()),
        ((login,), {"members/m.txt"}),
        (("X-Office: 1",), {"office/o.txt", "office/open/p.txt"}),
        ((login, "X-Office: 1"), {"members/m.txt", "office/o.txt", "office/open/p.txt"}),
        (("Authorization: Basic YWRhOndyb25n",), set()),
    ):
        client.ask("/pub/members/m.txt", *fields)  # a login is checked by a request, and then known for a while
        files, _ = unpack(fetch(client, "/pub/", "tar", *fields))
        found = {name[4:] for name in files if name.startswith(("pub/members", "pub/office"))}
        assert found == more, fields
        folders = {entry["name"] for entry in listing(client, "/pub/", *fields)["entries"]} & {"members", "office"}
        assert folders == {name.partition("/")[0] for name in more}, fields


# ── which requests ──


def test_what_is_not_enabled(start):
    client = start({"Match": "/pub", "Archives": "tar.gz"}, {}).open()
    for target in ("/pub/?archive=tar", "/pub/?archive=zip", "/pub/?archive=", "/odd/?archive=tar.gz"):
        assert client.ask(target).status == 404, target
    assert client.ask("/none/?archive=tar").status == 404
    assert client.ask("/pub/refused/?archive=tar.gz").status == 403
    assert client.ask("/pub/?archive=tar.gz").status == 200


def test_head(start, way):
    client = start(ALL, way=way).open()
    for kind, media_type in KINDS.items():
        answer = client.ask(f"/pub/?archive={kind}", method="HEAD")
        assert (answer.status, answer["Content-Type"], answer.body) == (200, media_type, b"")


@pytest.mark.concurrent
def test_archives_at_once(start, root, way):
    """One more gets 503 until another one has ended, also by a client that leaves."""
    (root / "pub" / "big.bin").write_bytes(pattern(20_000_000))
    server = start(ALL, way=way, limits={"Archives": 1})
    slow = server.open(rcvbuf=4096) if not way.h2 else server.open(credit=False)
    if way.h2:
        slow.begin("/pub/?archive=tar")
    else:
        slow.send(request("/pub/?archive=tar"))
    slow.head()
    client = server.open()
    answer = client.ask("/pub/?archive=tar.zst")
    assert (answer.status, answer["Retry-After"]) == (503, "10")
    assert client.ask("/pub/", JSON).status == 200
    slow.reset()
    await_true(lambda: client.ask("/pub/?archive=tar", method="HEAD").status == 200, what="room for an archive")


@pytest.mark.concurrent
def test_archives_of_one_client(start, root):
    """A client that reads slowly gets 429 for one more, while others, and other IPv6 networks, get theirs."""
    (root / "pub" / "big.bin").write_bytes(pattern(20_000_000))
    proxied = {"TrustedProxies": "127.0.0.1", "Workers": 2}
    server = start(ALL, settings=proxied, limits={"Archives": 3, "ArchivesPerClient": 1})
    held = []

    def ask(client, address):
        field = f"X-Forwarded-For: {address}"
        client.send(request("/pub/?archive=tar", field))
        return client

    for address in ("192.0.2.1", "2001:db8:0:1::1"):
        held.append(ask(server.open(rcvbuf=4096), address))
        held[-1].head()
    with server.open() as client:
        for address in ("192.0.2.1", "2001:db8:0:1:ffff::2", "::ffff:192.0.2.1"):
            answer = ask(client, address).response()
            assert (answer.status, answer["Retry-After"], answer["Cache-Control"]) == (429, "10", "no-store")
            assert answer.body == b"Too many archives are being sent to your network. Try again later.\n"
        for address in ("192.0.2.2", "2001:db8:0:2::1"):
            assert ask(client, address).response().status == 200
    held[0].reset()
    with server.open() as client:
        await_true(lambda: ask(client, "192.0.2.1").response().status == 200, what="room for an archive")


# ── limits ──


@pytest.mark.parametrize(
    "limit, reason",
    [
        ({"ArchiveMaxBytes": "20"}, "ArchiveMaxBytes"),
        ({"ArchiveMaxEntries": "3"}, "ArchiveMaxEntries"),
        ({"ArchiveMaxDepth": "2"}, "ArchiveMaxDepth"),
    ],
)
def test_limits(start, way, limit, reason):
    """The response is cut, so that no client takes the archive for whole; the log tells why."""
    server = start({**ALL, **limit}, way=way)
    with pytest.raises(CUT):
        server.open().ask("/pub/?archive=tar.gz")
    server.wait_log(f"the archive of /pub/ was cut: it .* {reason}")


def test_just_within_the_limits(start, root):
    size = sum(len(data) for name, data in FILES.items() if name in WITHIN)
    limits = {"ArchiveMaxBytes": size, "ArchiveMaxEntries": len(WITHIN) + 2, "ArchiveMaxDepth": 3}
    files, _ = unpack(fetch(start({**ALL, **limits}).open(), "/pub/"))
    assert len(files) == len(WITHIN)


WITHIN = [f"pub/{name}" for name in ("sub/deep/d.txt", "File1.txt", "file2.txt", "file10.txt", "old.bak", "page.php")]
WITHIN.append("pub/README")


# ── files that change, clients that wait or leave ──


BIG = 12_000_000  # more than all buffers


def begin_big(start, root):
    """A client that has the beginning of a big file in an archive, and takes no more for now."""
    (root / "pub" / "big.bin").write_bytes(cycle(1000) * (BIG // 1000))
    server = start(ALL)
    client = server.open(rcvbuf=16384)
    client.send(request("/pub/?archive=tar"))
    head = client.until(b"pub/big.bin")
    client.buffer = head.partition(b"\r\n\r\n")[2] + b"pub/big.bin" + client.buffer
    return server, client


@pytest.mark.concurrent
def test_a_file_that_shrinks(start, root):
    server, client = begin_big(start, root)
    os.truncate(root / "pub" / "big.bin", BIG - 4_000_000)
    with pytest.raises(CUT):
        client.chunks()
    server.wait_log("was cut: a file changed")


def test_a_file_that_is_overwritten(start, root):
    server, client = begin_big(start, root)
    with open(root / "pub" / "big.bin", "r+b") as file:
        file.seek(BIG - 100)
        file.write(b"other")
    with pytest.raises(CUT):
        client.chunks()
    server.wait_log("was cut: a file changed")


def test_a_file_that_grows(start, root):
    """It is in the archive as it was."""
    _, client = begin_big(start, root)
    with open(root / "pub" / "big.bin", "ab") as file:
        file.write(b"more")
    files, _ = unpack(client.chunks()[0])
    assert files["pub/big.bin"] == cycle(1000) * (BIG // 1000)


def test_files_that_vanish(start, root):
    """Those whose turn has not come are left out."""
    _, client = begin_big(start, root)
    (root / "pub" / "file2.txt").unlink()
    (root / "pub" / "README").unlink()
    files, _ = unpack(client.chunks()[0])
    assert "pub/file2.txt" not in files and "pub/README" not in files
    assert len(files["pub/big.bin"]) == BIG


@pytest.mark.concurrent
def test_a_slow_client(start, root):
    """It holds neither a thread nor more memory than the buffers."""
    server, client = begin_big(start, root)
    others = [server.connect() for _ in range(8)]
    for other in others:  # every disk thread is free
        other.send(request("/pub/", JSON))
    for other in others:
        assert other.response().status == 200
    if not build.OPTIMISED:
        return
    assert server.memory_kb("Private_Dirty") < 10_000, client


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("taken", [0, 1, 3_000_000])
def test_clients_that_leave(start, root, way, kind, taken):
    """settle() finds a descriptor that is left, ASan the memory."""
    (root / "pub" / "big.bin").write_bytes(pattern(20_000_000))
    server = start(ALL, way=way, limits={"Archives": 1})
    client = server.open()
    if way.h2:
        client.begin(f"/pub/?archive={kind}")
    else:
        client.send(request(f"/pub/?archive={kind}"))
    if taken:
        client.head()
        if way.h2:
            client.exactly(taken)
        else:
            while len(client.buffer) < taken:
                client.fill()
    client.reset()
    server.settle()
    with server.open() as client:
        await_true(lambda: client.ask("/pub/?archive=tar", method="HEAD").status == 200, what="room for an archive")


@pytest.mark.concurrent
def test_a_reload_amid_an_archive(start, root):
    """The response continues under the configuration with which it began."""
    server, client = begin_big(start, root)
    default = server.conf / "sites" / "default"
    default.write_text(default.read_text().replace("Archives", "#Archives"))
    reload(server)
    files, _ = unpack(client.chunks()[0])
    assert len(files["pub/big.bin"]) == BIG
    assert server.connect().ask("/pub/?archive=tar").status == 404


@pytest.mark.concurrent
def test_many_entries(start, root):
    """More than one batch of a folder, each of which is checked for the client."""
    for n in range(2000):
        (root / "pub" / "sub" / f"{'refused-' * (n % 2)}{n}").write_bytes(b"%d" % n)
    files, _ = unpack(fetch(start(ALL).open(), "/pub/sub/", "tar.gz"), "tar.gz")
    assert {f"sub/{n}": b"%d" % n for n in range(0, 2000, 2)} == {k: v for k, v in files.items() if "deep" not in k}
