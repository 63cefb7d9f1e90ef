# SPDX-License-Identifier: Apache-2.0
"""Files: names, links, special files, folders, types, sizes, and files that change while they are being sent."""

import pathlib
import tempfile
import os
import socket

import pytest

from harness.content import FILES, HELLO, HUGE, MARKS, make_huge, pattern
from harness.messages import CLOSE, lines, request

NOBODY = 65534


# ── names ──

NAMES = {
    "/": "index.html",
    "/index.html": "index.html",
    "/?query": "index.html",
    "/dir/": "dir/index.html",
    "/dir/file.txt": "dir/file.txt",
    "/a..b.txt": "a..b.txt",
    "/with%20space.txt": "with space.txt",
    "/gr%C3%BC%C3%9Fe.txt": "gr\u00fc\u00dfe.txt",
    "/gr%c3%bc%c3%9fe.txt": "gr\u00fc\u00dfe.txt",
    "/100%25.txt": "100%.txt",
    "/semi;colon.txt": "semi;colon.txt",
    "/semi%3Bcolon.txt": "semi;colon.txt",
    "/plus+and&.txt": "plus+and&.txt",
    "/tilde~.txt": "tilde~.txt",
    "/%7E/../tilde%7E.txt": "tilde~.txt",
    "/quote'.txt": "quote'.txt",
    "/back%5Cslash.txt": "back\\slash.txt",
    "/dir%20with%20space/": "dir with space/index.html",
    "/.well-known/acme.txt": ".well-known/acme.txt",
    "/file": "file",
    "/UPPER.TXT": "UPPER.TXT",
    "/./dir/./file.txt": "dir/file.txt",
    "/dir/../dir/file.txt": "dir/file.txt",
    "/../hello.txt": "hello.txt",
    "/hello.txt?/../x": "hello.txt",
    "/dir/..": "index.html",
    "/dir/.": "dir/index.html",
}

MISSING = [
    "/nowhere",
    "/hello.txt/",
    "/hello.txt/x",
    "/hello.txt/../nowhere",
    "/hello.tx",
    "/hello.txtt",
    "/HELLO.TXT",
    "/Dir/file.txt",
    "/.secret",
    "/dir/.git/config",
    "/dir/.git/",
    "/dir/.git",
    "/..hidden.txt",
    "/.well-known/.hidden",
    "/.well-known/../.secret",
    "/%2esecret",
    "/%2Esecret",
    "/dir/%2egit/config",
    "/./.secret",
    "/plus%20and&.txt",
    "/100%2525.txt",
    "/hello.txt%20",
    "/hello.txt.",
    "/hello.txt%2F",
    "/%2Fhello.txt",
    "/dir%2F",
    "/dir%5Cfile.txt",
    "/" + "n" * 300,
    "/" + "d/" * 1000 + "x",
    "/~root/",
    "/hello.txt;x",
    "/...",
    "/.../hello.txt",
]


@pytest.mark.parametrize("target", NAMES)
def test_name(connect, target):
    answer = connect().ask(target)
    if target in ("/dir/..", "/dir/.") and answer.status == 301:
        return  # a folder without its slash is a folder all the same
    assert (answer.status, answer.body) == (200, FILES[NAMES[target]])


@pytest.mark.parametrize("target", MISSING, ids=lambda t: t[:40])
def test_missing(connect, target):
    client = connect()
    assert client.ask(target).status == 404
    client.assert_open()


def test_every_byte_in_a_name(serve):
    """Every byte but NUL and the slash can be part of a name, and comes back under its escape."""
    names = {bytes([b]): b"%d" % b for b in range(1, 256) if b not in b"/."}
    server = serve(files={})
    for name, data in names.items():
        path = os.path.join(os.fsencode(server.root), b"n" + name)
        with open(path, "wb") as file:
            file.write(data)
    data = b"".join(request(f"/n%{name[0]:02x}") for name in names) + request("/none", CLOSE)
    answers = server.talk(data)
    assert [a.body for a in answers[:-1]] == list(names.values())


def test_name_of_255_bytes(serve):
    server = serve(files={"n" * 255: b"long\n"})
    client = server.connect()
    assert client.ask("/" + "n" * 255).body == b"long\n"
    assert client.ask("/" + "n" * 256).status == 404


def test_long_path(serve):
    deep = "/".join(["d" * 200] * 15)
    server = serve(files={deep + "/f.txt": b"deep\n"})
    assert server.connect().ask("/" + deep + "/f.txt").body == b"deep\n"


def test_dotfiles_on(serve):
    server = serve({"DotFiles": "On"})
    client = server.connect()
    assert client.ask("/.secret").body == b"secret\n"
    assert client.ask("/dir/.git/config").body == b"secret\n"
    assert client.ask("/..hidden.txt").body == b"hidden\n"


# ── folders ──


@pytest.mark.parametrize(
    "target, location",
    [
        ("/dir", "/dir/"),
        ("/dir?a=b&c", "/dir/?a=b&c"),
        ("/dir?", ("/dir/?", "/dir/")),
        ("/dir%20with%20space", "/dir%20with%20space/"),
        ("/dir%20with%20space?x=%20", "/dir%20with%20space/?x=%20"),
        ("/./dir", "/dir/"),
        ("/nowhere/../dir", "/dir/"),
        ("/%64ir", "/dir/"),
        ("/noindex", "/noindex/"),
        ("//dir", "/dir/"),
        ("///dir", "/dir/"),
        ("/.//dir", "/dir/"),
        ("/dir/..//dir", "/dir/"),
    ],
)
def test_folder_redirect(connect, target, location):
    """Relative, with its query, and never protocol-relative: //dir would lead to the host `dir`."""
    client = connect()
    answer = client.ask(target)
    assert answer.status == 301
    assert answer["Location"] in (location if isinstance(location, tuple) else (location,))
    assert client.ask("/hello.txt").status == 200


def test_redirect_of_absolute_form(site):
    answer = site.talk(lines("GET http://other.example/dir?x HTTP/1.1", "Host: localhost", CLOSE))[0]
    assert answer.status == 301 and answer["Location"] == "/dir/?x"


def test_redirect_cannot_be_split(serve):
    """Response splitting: a folder whose very name holds a line end."""
    server = serve(files={"a\r\nSet-Cookie: x=1/index.html": b"odd\n", 'b\u00fc"<>/index.html': b"odd\n"})
    client = server.connect()
    answer = client.ask("/a%0d%0aSet-Cookie:%20x=1")
    assert answer["Set-Cookie"] is None
    assert answer.status in (301, 404)
    if answer.status == 301:
        assert answer["Location"].lower() == "/a%0d%0aset-cookie:%20x=1/"
    answer = client.ask("/b%c3%bc%22%3c%3e")
    assert answer.status == 301 and answer["Location"].lower() == "/b%c3%bc%22%3c%3e/"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_folder_without_index(connect, method):
    client = connect()
    assert client.ask("/noindex/", method=method).status in (403, 404)
    client.assert_open()


def test_index_names_in_order(serve):
    server = serve(
        {"Indexfile": "first.htm second.htm"},
        files={"a/second.htm": b"2", "b/first.htm": b"1", "b/second.htm": b"2", "c/index.html": b"3"},
    )
    client = server.connect()
    assert client.ask("/a/").body == b"2"
    assert client.ask("/b/").body == b"1"
    assert client.ask("/c/").status in (403, 404)


def test_index_that_is_a_folder(serve):
    server = serve(files={"index.html/x": b"x"})
    assert server.connect().ask("/").status in (301, 403, 404)


# ── links ──


@pytest.fixture
def linked(serve, tmp_path):
    """A root with links of every kind, served under a given policy."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("outside\n")

    def start(policy):
        server = serve(
            {"SymLink": policy} if policy else {}, files={"real.txt": b"real\n", "folder/inner.txt": b"inner\n"}
        )
        root = server.root
        for name, target in {
            "relative.txt": "real.txt",
            "absolute.txt": root / "real.txt",
            "folder/up.txt": "../real.txt",
            "linked": "folder",
            "outside.txt": outside / "secret.txt",
            "outdir": outside,
            "dotdot.txt": "../../outside/secret.txt",
            "etc": "/etc",
            "loop": "loop",
            "dangling": "nothing",
            "chain": "relative.txt",
            "procroot": "/proc/self/root",
            "host": f"../../../{outside.name}",
        }.items():
            (root / name).symlink_to(target)
        return server.connect()

    return start


INSIDE = {
    "/relative.txt": b"real\n",
    "/folder/up.txt": b"real\n",
    "/linked/inner.txt": b"inner\n",
    "/chain": b"real\n",
}
OUTSIDE = [
    "/outside.txt",
    "/outdir/secret.txt",
    "/dotdot.txt",
    "/etc/passwd",
    "/procroot/etc/passwd",
    "/host/secret.txt",
]


@pytest.mark.parametrize("policy", [None, "Off"])
def test_links_off(linked, policy):
    """The default: no link, on no component."""
    client = linked(policy)
    assert client.ask("/real.txt").status == 200
    for target in [*INSIDE, "/absolute.txt", *OUTSIDE, "/loop", "/dangling", "/linked", "/linked/", "/outdir/"]:
        assert client.ask(target).status in (403, 404), target


def test_links_inside(linked):
    client = linked("Inside")
    for target, body in INSIDE.items():
        assert client.ask(target).body == body, target
    assert client.ask("/absolute.txt").body == b"real\n"
    for target in OUTSIDE:
        answer = client.ask(target)
        assert answer.status in (403, 404), target
        assert b"outside" not in answer.body
    for target in ("/loop", "/dangling"):
        assert client.ask(target).status in (403, 404), target


def test_links_on(linked):
    client = linked("On")
    for target, body in {
        **INSIDE,
        "/absolute.txt": b"real\n",
        "/outside.txt": b"outside\n",
        "/outdir/secret.txt": b"outside\n",
    }.items():
        assert client.ask(target).body == body, target
    for target in ("/loop", "/dangling"):
        assert client.ask(target).status in (403, 404), target


def test_root_that_is_a_link(serve, tmp_path):
    """current -> releases/1: the root itself may be a link, whatever the policy says of what is below."""
    (tmp_path / "releases" / "1").mkdir(parents=True)
    (tmp_path / "releases" / "1" / "a.txt").write_text("one\n")
    (tmp_path / "current").symlink_to("releases/1")
    assert serve(root=tmp_path / "current").connect().ask("/a.txt").body == b"one\n"


# ── special files ──


def test_special_files_do_not_block(serve):
    server = serve(files={"hello.txt": HELLO})
    os.mkfifo(server.root / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(server.root / "socket"))
    names = ["/fifo", "/socket"]
    if os.geteuid() == 0:
        os.mknod(server.root / "device", 0o666 | 0o020000, os.makedev(1, 5))  # /dev/zero
        names.append("/device")
    client = server.connect()
    for name in names * 3:
        assert client.ask(name).status in (403, 404), name
        client.assert_open()
    listener.close()


def test_unreadable(serve, tmp_path):
    if os.geteuid() != 0:
        user = None
    else:
        user = NOBODY
        for folder in [tmp_path, *tmp_path.parents]:
            if str(folder).startswith("/tmp/"):
                folder.chmod(0o755)
    server = serve(files={"closed.txt": b"x", "folder/a.txt": b"x", "hello.txt": HELLO}, user=user)
    (server.root / "closed.txt").chmod(0)
    (server.root / "folder").chmod(0)
    client = server.connect()
    assert client.ask("/closed.txt").status == 403
    assert client.ask("/folder/a.txt").status == 403
    assert client.ask("/folder/").status in (403, 404)
    client.assert_open()
    (server.root / "folder").chmod(0o755)


# ── types ──

TYPES = {
    "html": "text/html; charset=utf-8",
    "htm": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
    "wasm": "application/wasm",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "ttf": "font/ttf",
    "otf": "font/otf",
    "webp": "image/webp",
    "avif": "image/avif",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "mp3": "audio/mpeg",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "gz": "application/gzip",
    "webmanifest": "application/manifest+json",
}


def test_types(serve):
    server = serve(files={f"a.{extension}": b"x" for extension in TYPES})
    client = server.connect()
    found = {extension: client.ask(f"/a.{extension}")["Content-Type"] for extension in TYPES}
    wanted = dict(TYPES)
    if found["svg"] == "image/svg+xml; charset=utf-8":
        wanted["svg"] = found["svg"]
    assert found == wanted


def test_xml_type(serve):
    answer = serve(files={"a.xml": b"<a/>"}).connect().ask("/a.xml")
    assert answer["Content-Type"].split(";")[0] in ("text/xml", "application/xml")


def test_type_in_any_case(serve):
    server = serve(files={"A.JPG": b"x", "B.Html": b"x", "c.WOFF2": b"x"})
    client = server.connect()
    assert [client.ask(t)["Content-Type"] for t in ("/A.JPG", "/B.Html", "/c.WOFF2")] == [
        "image/jpeg",
        "text/html; charset=utf-8",
        "font/woff2",
    ]


@pytest.mark.parametrize(
    "name", ["file", "file.unknown", "trailing.", "a.txt.unknown", ".well-known/jpg", "no/d.jpg/ext"]
)
def test_unknown_type(serve, name):
    server = serve({"DefaultMimeType": "application/x-test"}, files={name: b"x"})
    assert server.connect().ask("/" + name)["Content-Type"] == "application/x-test"


def test_default_type(connect):
    answer = connect().ask("/file.unknown")
    assert answer["Content-Type"] in ("application/octet-stream", "text/plain; charset=utf-8", "text/plain")
    assert answer.body == b"unknown\n"


def test_types_of_the_operator(serve):
    server = serve(
        files={"a.foo": b"x", "a.txt": b"x", "a.html": b"x"}, mime={"foo": "application/x-foo", "txt": "text/x-own"}
    )
    client = server.connect()
    assert client.ask("/a.foo")["Content-Type"] == "application/x-foo"
    assert client.ask("/a.txt")["Content-Type"].split(";")[0] == "text/x-own"
    assert client.ask("/a.html")["Content-Type"].startswith("text/html")


# ── sizes ──


@pytest.mark.parametrize(
    "size",
    [
        0,
        1,
        13,
        1000,
        4095,
        4096,
        4097,
        8191,
        8192,
        16_383,
        16_384,
        16_385,
        32_768,
        65_535,
        65_536,
        65_537,
        131_072,
        200_000,
        262_143,
        262_144,
        262_145,
        524_289,
        1_048_577,
    ],
)
def test_size(serve, size):
    data = pattern(size)
    server = serve(files={"f.bin": data})
    client = server.connect()
    for _ in range(3):
        answer = client.ask("/f.bin")
        assert (answer.status, answer.length) == (200, size)
        assert answer.body == data
    client.assert_quiet(0.02)


def test_sizes_in_one_pipeline(serve):
    sizes = [0, 1, 5000, 16_384, 16_385, 70_000, 300_000, 2, 262_144, 0, 40_000]
    server = serve(files={f"{size}.bin": pattern(size, size) for size in sizes})
    answers = server.talk(b"".join(request(f"/{size}.bin") for size in sizes * 3) + request("/", CLOSE))
    assert [a.body for a in answers[:-1]] == [pattern(size, size) for size in sizes] * 3


def test_larger_than_4_gib(serve):
    server = serve(files={})
    make_huge(server.root / "huge.bin")
    client = server.connect()
    assert client.ask("/huge.bin", method="HEAD").length == HUGE
    for offset, text in MARKS.items():
        answer = client.ask("/huge.bin", f"Range: bytes={offset}-{offset + len(text) - 1}")
        assert (answer.status, answer.body) == (206, text)
        assert answer["Content-Range"] == f"bytes {offset}-{offset + len(text) - 1}/{HUGE}"
    assert client.ask("/huge.bin", "Range: bytes=-7").body == b"the end"
    assert client.ask("/huge.bin", f"Range: bytes={HUGE}-").status == 416
    tail = client.ask("/huge.bin", f"Range: bytes={2**32 - 100_000}-{2**32 + 99_999}")
    assert tail.body == bytes(99_997) + b"across" + bytes(99_997)
    client.send(request("/huge.bin"))
    head = client.head()
    assert head.length == HUGE and client.exactly(1_000_000)[:5] == b"begin"
    client.close()


# ── files that change while they are being sent ──

BIG = 24 << 20


@pytest.fixture
def sending(serve):
    """A download that is stuck half way: (server, client, the bytes that the head promised)."""
    old = pattern(1 << 20, 9) * (BIG >> 20)
    server = serve({"LingerTimeout": "300ms"}, files={"f.bin": old, "other.bin": b"OTHER" * 1000})
    client = server.connect(rcvbuf=65_536)
    client.send(request("/f.bin"))
    head = client.head()
    assert head.length == BIG
    return server, client, old


def test_replaced_while_sent(sending):
    """The old file was promised and the old file comes."""
    server, client, old = sending
    (server.root / "new.bin").write_bytes(b"N" * BIG)
    os.replace(server.root / "new.bin", server.root / "f.bin")
    assert client.exactly(BIG) == old
    client.send(request("/f.bin"))
    assert client.response().body == b"N" * BIG


def test_deleted_while_sent(sending):
    server, client, old = sending
    (server.root / "f.bin").unlink()
    assert client.exactly(BIG) == old
    assert client.ask("/f.bin").status == 404


def assert_beginning(got, old):
    """What arrived is the beginning of the file. Pages that were on their way may have been emptied by the kernel."""
    assert len(got) < len(old)
    for at in range(0, len(got), 4096):
        page = got[at : at + 4096]
        assert page == old[at : at + len(page)] or (at >= 1 << 20 and not any(page)), at


def test_shrunk_while_sent(sending):
    """Less than promised can only end in a close; nothing may fill the gap, nothing may spin."""
    server, client, old = sending
    os.truncate(server.root / "f.bin", 1 << 20)
    got = client.rest()
    assert_beginning(got, old)
    before = server.cpu_seconds()
    with server.connect() as other:
        assert other.ask("/other.bin").status == 200
    assert server.cpu_seconds() - before < 0.5


def test_shrunk_while_sent_with_a_pipeline(sending):
    """The answer to the next request does not fill the gap either; its bytes unread, the end may be a reset."""
    server, client, old = sending
    os.truncate(server.root / "f.bin", 1 << 20)
    client.send(request("/other.bin") * 3)
    got = b""
    try:
        while client.fill():
            got, client.buffer = got + client.buffer, b""
    except ConnectionResetError:
        pass
    assert_beginning(got, old)


def test_grown_while_sent(sending):
    """Exactly what the head promised."""
    server, client, old = sending
    with open(server.root / "f.bin", "ab") as file:
        file.write(b"MORE" * 100_000)
    assert client.exactly(BIG) == old
    assert client.ask("/other.bin").body == b"OTHER" * 1000


def test_shrunk_between_requests(serve):
    server = serve(files={"f.bin": pattern(100_000)})
    client = server.connect()
    for size in (100_000, 50_000, 10, 0, 70_000):
        (server.root / "f.bin").write_bytes(pattern(size))
        assert client.ask("/f.bin").body == pattern(size)


def test_new_files_are_seen_at_once(serve):
    server = serve(files={"a.txt": b"1"})
    client = server.connect()
    assert client.ask("/b.txt").status == 404
    (server.root / "b.txt").write_bytes(b"2")
    assert client.ask("/b.txt").body == b"2"
    (server.root / "b.txt").unlink()
    assert client.ask("/b.txt").status == 404


# ── file systems in memory ──


@pytest.fixture
def memory_root():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield pathlib.Path(folder)


@pytest.mark.parametrize("mode", ["Off", "Inside", "On"])
def test_root_in_memory(serve, memory_root, mode):
    """There is no disk to wait for, and a name that is missing is not remembered: asked directly, confined alike."""
    (memory_root / "sub").mkdir()
    (memory_root / "sub" / "index.html").write_text("index\n")
    (memory_root / "a.txt").write_text("a\n")
    (memory_root / "big.bin").write_bytes(b"m" * 300_000)
    (memory_root / "in.txt").symlink_to(memory_root / "a.txt")
    (memory_root / "out.txt").symlink_to("/etc/hostname")
    client = serve({"SymLink": mode}, root=memory_root).connect()
    assert client.ask("/a.txt").body == b"a\n"
    assert client.ask("/sub/").body == b"index\n"
    assert client.ask("/big.bin").body == b"m" * 300_000
    assert [client.ask("/missing").status for _ in range(3)] == [404] * 3
    assert client.ask("/in.txt").status == (404 if mode == "Off" else 200)
    assert client.ask("/out.txt").status == (200 if mode == "On" else 404)
    assert client.ask("/sub").status == 301
