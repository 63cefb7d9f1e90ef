# SPDX-License-Identifier: Apache-2.0
"""The page of a listing as the bytes that are sent: rows, links, policy, themes and their mistakes."""

import os

import pytest

from harness import build
from harness.listing import HOSTILE, Page, configure, external, fill, read_policy
from harness.server import run, section
from harness.ways import WAYS

MODULE = build.PLUGINS / "dirlisting.so"
THEMES = ("default", "guineo")
pytestmark = pytest.mark.skipif(not MODULE.exists(), reason=f"the preset {build.PRESET} does not build dirlisting")

FILES = {
    "sub/": None,
    "b.txt": b"12345",
    "a10.txt": b"x" * 2048,
    "a9.txt": b"",
    ".hidden": b"no",
    "photo.JPG": b"j" * 10_300,
    "README": b"Read <me> &\n\tthen \xff go.\r\n",
}
BY_SIZE = ["sub", "a9.txt", "b.txt", "README", "a10.txt", "photo.JPG"]
BY_DATE = ["sub", "b.txt", "a10.txt", "a9.txt", "photo.JPG", "README"]
NAMES = ["sub", "a9.txt", "a10.txt", "b.txt", "photo.JPG", "README"]


@pytest.fixture
def start(serve, tmp_path):
    """Starts a server that lists `files`; `server.page(path)` is a page of it."""

    def make(files=None, keys=None, *more, settings=None, host=None, **rest):
        root = tmp_path / "listed"
        fill(root, FILES if files is None else files)
        server = serve(settings, root=root, config=configure(keys, *more, host=host, root=root), **rest)
        server.page = lambda path="/": read(server, path)
        return server

    return make


def read(server, path="/", *fields):
    with server.connect() as client:
        answer = client.ask(path, *fields)
        assert answer.status == 200
        return Page(answer.body.decode())


# ── rows ──


@pytest.mark.parametrize("name", WAYS)
def test_ways(name, serve, tmp_path):
    """The same page over HTTP/1.1 and HTTP/2, plain and by TLS."""
    way = WAYS[name]
    fill(tmp_path / "listed", FILES)

    def serve_folder(_, settings=None, text="", **rest):
        config = configure({"ReadMe": "README"}, root=tmp_path / "listed")
        config["sites/default"] += text
        return serve(settings, root=tmp_path / "listed", config=config, **rest)

    server = way.start(serve_folder, tmp_path, {})
    with server.open() as client:
        answer = client.ask("/")
        head = client.ask("/", method="HEAD")
        text = answer.body.decode()
        assert head.status == answer.status == 200 and not head.body
        assert answer["content-type"] == head["content-type"] == "text/html; charset=utf-8"
        assert answer["x-content-type-options"] == "nosniff"
        page = Page(text)
        assert [row[0] for row in page.rows] == NAMES
        assert page.rows[0][1] == "sub/" and page.rows[4][1] == "photo.JPG"
        assert [row[2] for row in page.rows] == ["", "0 B", "2.0 KB", "5 B", "10 KB", "25 B"]
        assert [row[3] for row in page.rows][:2] == ["2020-09-13 12:26", "2020-09-13 09:26"]
        assert page.pre.lstrip("\n") == "Read <me> &\n\tthen \ufffd go.\n"
        assert client.ask("/sub/").status == 200
        assert client.ask("/b.txt").body == b"12345"


@pytest.mark.parametrize("theme", THEMES)
def test_page(start, theme):
    """One folder, two themes: rows, parent, breadcrumbs, and nothing from another host."""
    server = start(keys={"Theme": theme})
    fill(server.root / "sub", {"one & two/": None})
    with server.connect() as client:
        text = client.ask("/sub/one%20&%20two/").body.decode()
        assert not external(text) and Page(text).rows == []
        assert "This folder is empty." in text
    page = server.page("/sub/one%20%26%20two/")
    assert page.title == "Index of /sub/one & two/"
    assert page.crumbs == ["localhost", "sub", "one & two"]
    assert page.links.count("../") >= 1 and "../../" in page.links
    assert [name.rstrip("/") for name in server.page().names] == NAMES
    assert "../" not in server.page().links, "the root has no parent"


@pytest.mark.parametrize("theme", THEMES)
def test_policy(start, theme):
    """The policy allows just the style and the script that are in the page, by their digests."""
    server = start(keys={"Theme": theme, "ReadMe": "README"})
    with server.connect() as client:
        answer = client.ask("/")
    policy = read_policy(answer["content-security-policy"])
    styles, scripts = Page(answer.body.decode()).policy()
    assert (policy["style-src"], policy["script-src"]) == (styles, scripts)
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert policy["img-src"] == ["'self'", "data:"]


@pytest.mark.parametrize("theme", THEMES)
def test_valid_html(start, theme):
    """html5lib finds no error, also with hostile names, a README, a deep path and an empty folder."""
    html5lib = pytest.importorskip("html5lib")
    deep = b"/".join([b"d"] * 40) + b"/"
    files = {**FILES, **{name: b"x" for name in HOSTILE}, deep: None, "README": b"a<!-- </pre>\x01\xff"}
    server = start(files, {"Theme": theme, "ReadMe": "README", "Archives": "tar tar.gz"})
    with server.connect() as client:
        for path in ("/", "/sub/", "/" + deep.decode(), "/?sort=size&order=desc"):
            answer = client.ask(path)
            assert answer.status == 200
            html5lib.HTMLParser(strict=True).parse(answer.body.decode())


@pytest.mark.parametrize("theme", THEMES)
def test_hostile_names(start, theme):
    """Each link names the bytes of its file, and leads there; the page stays UTF-8 with the same elements."""
    server = start({name: b"content of %d\n" % n for n, name in enumerate(HOSTILE)}, {"Theme": theme})
    page = server.page()
    assert len(page.scripts) == (2 if theme == "default" else 1) and sorted(page.targets) == sorted(HOSTILE)
    with server.connect() as client:
        for (_, href, *_), target in zip(page.rows, page.targets):
            assert client.ask("/" + href).body == b"content of %d\n" % HOSTILE.index(target)
    shown = dict(zip(page.targets, page.names))
    assert shown[HOSTILE[0]] == "<b>bold<|b>.txt"
    assert shown[b"new\nline.txt"] == "new␊line.txt"
    assert shown[b"invalid \xff\xfe \xc3.txt"] == "invalid \ufffd\ufffd \ufffd.txt"
    assert shown[HOSTILE[16]] == "right-to-left \ufffdgpj.txt"


def test_hidden(start):
    server = start({**FILES, "old.bak": b"", ".git/": None}, {"Hidden": "*.bak"})
    assert server.page().names == NAMES


# ── order ──


@pytest.mark.parametrize(
    "query, names, orders",
    [
        ("", NAMES, ["ascending", "none", "none"]),
        ("?sort=name&order=desc", [NAMES[0], *NAMES[:0:-1]], ["descending", "none", "none"]),
        ("?sort=size&order=asc", BY_SIZE, ["none", "ascending", "none"]),
        ("?sort=date&order=desc", BY_DATE, ["none", "none", "descending"]),
    ],
)
def test_order_without_script(start, query, names, orders):
    page = start().page("/" + query)
    assert page.names == names and page.orders == orders


def test_sort_links(start):
    """A link sorts by its column: the one in use in the other direction, sizes and dates from the top."""
    page = start().page("/?sort=size&order=desc")
    assert [link for link in page.links if "sort" in link] == [
        "?sort=name&order=asc",
        "?sort=size&order=asc",
        "?sort=date&order=desc",
    ]


@pytest.mark.parametrize("theme", THEMES)
def test_unsorted(start, theme):
    """A folder that does not fit is sent in batches, with a sentence and without links to sort it."""
    files = {f"file number {n:04}.txt": b"" for n in range(3000)}
    server = start(files, {"Theme": theme, "MaxListing": "64K"})
    with server.connect() as client:
        text = client.ask("/").body.decode()
    page = Page(text)
    assert sorted(page.names) == sorted(files) and page.orders == ["none"] * 3
    assert "too large to be sorted" in text and not [link for link in page.links if "sort" in link]


# ── README and archives ──


def test_readme(start):
    server = start(keys={"ReadMe": "README.md README"})
    page = server.page()
    assert page.pre.lstrip("\n").startswith("Read <me>")
    assert server.page("/sub/").pre is None
    (server.root / "README.md").write_bytes(b"\n" + b"line\n" * 20_000)
    assert server.page().pre[2:] == ("line\n" * 20_000)[: 64 * 1024 - 1], "64 KB of it, with its first empty line"


def test_no_readme_by_default(start):
    assert start().page().pre is None


def test_archive_links(start):
    server = start(keys={"Archives": "tar.gz tar"})
    assert [link for link in server.page().links if "archive" in link] == ["?archive=tar.gz", "?archive=tar"]
    assert not [link for link in start().page().links if "archive" in link]


# ── paths ──


def test_deep_path(start):
    """Of a very deep path the first and the last folders are links."""
    server = start({"/".join("d" * 60) + "/": None})
    page = server.page("/" + "d/" * 60)
    assert page.crumbs == ["localhost", "…", *["d"] * 31] and "../" * 60 in page.links and "../" * 31 not in page.links


def test_long_path(start):
    """Names of the greatest length, as deep as a path may be."""
    server = start({})
    path, folder = "/", os.fsencode(server.root)
    for n in range(6):
        name = ("é" * 120) + str(n)
        folder = os.path.join(folder, name.encode())
        os.mkdir(folder)
        path += "%C3%A9" * 120 + f"{n}/"
    assert server.page(path).crumbs[-1] == "é" * 120 + "5"


# ── themes of one's own ──

HEADER = "<!DOCTYPE html><title>%_html_title_%</title><img src='%_theme_path_%/logo.png'><ul>\n"
ENTRY = (
    "<li><a href='%_target_url_%' title='%_target_title_%'>%_target_name_%</a> %_target_time_% %_target_size_%</li>\n"
)
FOOTER = "</ul>\n"


def write_theme(folder, header=HEADER, entry=ENTRY, footer=FOOTER):
    folder.mkdir(exist_ok=True)
    for name, text in (("header", header), ("entry", entry), ("footer", footer)):
        if text is not None:
            (folder / f"{name}.theme").write_text(text, newline="")
    return folder


def test_theme_of_the_original(start, tmp_path):
    """The seven fields that themes had before, in files that an editor for DOS has written."""
    theme = write_theme(tmp_path / "theme", HEADER.replace("\n", "\r\n"))
    server = start({"a b.txt": b"123"}, {"Theme": theme, "ThemeURL": "/my/theme"})
    with server.connect() as client:
        answer = client.ask("/")
    assert answer.body.decode() == (
        "<!DOCTYPE html><title>Index of /</title><img src='/my/theme/logo.png'><ul>\n"
        "<li><a href='a%20b.txt' title='a b.txt (text)'>a b.txt</a> 2020-09-13 12:26 3 B</li>\n</ul>\n"
    )
    policy = read_policy(answer["content-security-policy"])
    assert policy["script-src"] == policy["style-src"] == ["'none'"]


def test_files_of_a_theme(start, tmp_path):
    """A theme may have its scripts and style sheets in files of the same host."""
    header = "<link rel=stylesheet href='%_theme_path_%/a.css'><script src='%_theme_path_%/a.js'></script>"
    server = start(keys={"Theme": write_theme(tmp_path / "theme", header)})
    with server.connect() as client:
        policy = read_policy(client.ask("/")["content-security-policy"])
    assert policy["style-src"] == ["'self'"] and "'self'" in policy["script-src"]


def test_themes_by_path(start, tmp_path):
    write_theme(tmp_path / "theme", "own\n")
    server = start(None, {"Theme": "guineo"}, {"Match": "/sub", "Theme": tmp_path / "theme"})
    with server.connect() as client:
        assert client.ask("/sub/").body == b"own\n</ul>\n"
        assert b"localhost" in client.ask("/").body


def test_reload_reads_the_theme(start, tmp_path):
    """A new generation has the new templates; one with a mistake is refused, and the old one continues."""
    theme = write_theme(tmp_path / "theme", "one\n")
    server = start(keys={"Theme": theme})
    server.baseline += 2  # of the loop that waits for old generations
    with server.connect() as client:
        tag = client.ask("/")["etag"]
        write_theme(theme, "two %_nam_%\n")
        server.send_signal(1)
        server.wait_log("there is no field %_nam_%")
        assert client.ask("/").body.startswith(b"one\n")
        write_theme(theme, "two\n")
        server.send_signal(1)
        server.wait_log("the new configuration is in use")
        answer = client.ask("/", f"If-None-Match: {tag}")
        assert answer.status == 200 and answer.body.startswith(b"two\n")
        assert client.ask("/", f"If-None-Match: {answer['etag']}").status == 304


MISTAKES = {
    "unknown field": (
        {"entry": "<li>\n  %_target_nme_%"},
        "/entry.theme:2:3: there is no field %_target_nme_%; did you mean %_target_name_%?",
    ),
    "field in a script": (
        {"header": "<script>'%_path_%'</script>"},
        "/header.theme:1:10: the field %_path_% cannot be in a script",
    ),
    "field of an entry": (
        {"footer": "%_target_name_%"},
        "/footer.theme:1:1: the field %_target_name_% is one of an entry",
    ),
    "open tag": ({"header": "<p"}, "/header.theme:1:3: the text ends within a tag"),
    "no file": ({"footer": None}, "/footer.theme, which cannot be read: No such file or directory"),
    "too large": ({"header": "x" * (256 * 1024 + 1)}, "/header.theme, which has more than 262144 bytes"),
}


@pytest.mark.parametrize("files, sentence", MISTAKES.values(), ids=MISTAKES)
def test_mistakes(tmp_path, files, sentence):
    """`monkey -t` names the line of the configuration, and the place in the theme."""
    theme = write_theme(tmp_path / "theme", **files)
    check(tmp_path, theme, f"{theme}{sentence}")


def check(tmp_path, theme, sentence):
    conf = tmp_path / "conf"
    (conf / "sites").mkdir(parents=True)
    (tmp_path / "root").mkdir()
    (conf / "monkey.conf").write_text(section("SERVER", {"Listen": "127.0.0.1:0"}))
    (conf / "sites" / "default").write_text(configure({"Theme": theme}, root=tmp_path / "root")["sites/default"])
    done = run("-t", "-c", conf)
    assert done.returncode == 1 and sentence in done.stderr and "sites/default:5" in done.stderr


@pytest.mark.parametrize("name", ["plain", "./nowhere"])
def test_missing_themes(tmp_path, name):
    check(tmp_path, name, f"{name.lstrip('.')}, which cannot be read: No such file or directory")


def test_special_files(tmp_path):
    """A FIFO does not hang the start, and a link does not lead out of the theme's folder."""
    theme = write_theme(tmp_path / "theme", header=None)
    os.mkfifo(theme / "header.theme")
    check(tmp_path, theme, "/header.theme, which is not a regular file")
    (theme / "header.theme").unlink()
    (theme / "header.theme").symlink_to("/etc/passwd")
    done = run("-t", "-c", tmp_path / "conf")
    assert done.returncode == 1 and "/header.theme, which cannot be read: " in done.stderr


def test_link_within_a_theme(start, tmp_path):
    theme = write_theme(tmp_path / "theme", header=None)
    (theme / "common").write_text("common\n")
    (theme / "header.theme").symlink_to("common")
    with start(keys={"Theme": theme}).connect() as client:
        assert client.ask("/").body.startswith(b"common\n")


def test_hosts_share_a_theme(serve, tmp_path):
    """Sections in monkey.conf hold for all hosts; their theme is read once, and a mistake in it is reported once."""
    theme = write_theme(tmp_path / "theme", "own\n")
    fill(tmp_path / "listed", FILES)
    text = section("SERVER", {"Listen": "127.0.0.1:0", "Workers": 1}) + section("DIRLISTING", {"Theme": theme})
    sites = {
        f"sites/{name}": section("HOST", {"ServerName": name, "DocumentRoot": tmp_path / "listed"})
        for name in ("default", "a.example", "b.example")
    }
    server = serve(root=tmp_path / "listed", config={"monkey.conf": text, **sites})
    with server.connect() as client:
        for name in ("a.example", "b.example", "localhost"):
            answer = client.ask("/", host=name)
            assert answer.body.startswith(b"own\n") and b"photo.JPG" in answer.body
    write_theme(theme, "%_nam_%\n")
    done = run("-t", "-c", server.conf)
    assert done.returncode == 1 and done.stderr.count("there is no field") == 1
