# SPDX-License-Identifier: Apache-2.0
"""UserDir: the folders of users. The server runs with a password database of the test's own, in a mount namespace,
as a user that may not read everything."""

import os
import pathlib
import shutil
import tempfile

import pytest

from harness import build
from harness.content import populate
from harness.server import Server, run, write_config
from test_config import problems

NOBODY = 65534
WRAPPER = 'mount --bind "$0" /etc/passwd && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"'


needs_root = pytest.mark.skipif(
    not (build.can_mount() and shutil.which("setpriv")),
    reason="UserDir IS NOT TESTED: it needs root, mounts and setpriv",
)

HOMES = {
    "bob/public_html/index.html": b"<p>bob",
    "bob/public_html/a.txt": b"a of bob",
    "bob/public_html/a.txt.gz": b"gzip of a",
    "bob/public_html/sub/index.html": b"<p>sub",
    "bob/public_html/.secret": b"secret",
    "bob/public_html/.well-known/x": b"hidden",
    "bob/public_html/closed.txt": b"",
    "bob/private.txt": b"private",
    "bob.smith/public_html/index.html": b"<p>smith",
    "other/public_html/index.html": b"<p>other",
    "nopage/private.txt": b"",
    "closed/public_html/index.html": b"never",
    "locked/public_html/index.html": b"never",
    "linked/www/index.html": b"<p>linked",
    "linked/www/a.txt": b"a",
    "stolen/x": b"",
    "file/public_html": b"a file",
    "daemon/public_html/index.html": b"never",
    "root/public_html/index.html": b"never",
    "nobody/public_html/index.html": b"never",
    "dash/public_html/index.html": b"never",
}
USERS = [
    ("root", 0, "root"),
    ("daemon", 999, "daemon"),
    ("nobody", NOBODY, "nobody"),
    ("bob", 1000, "bob"),
    ("bob.smith", 70000, "bob.smith"),
    ("other", 1001, "other"),
    ("nopage", 1002, "nopage"),
    ("closed", 1003, "closed"),
    ("locked", 1004, "locked"),
    ("linked", 1005, "linked"),
    ("stolen", 1006, "stolen"),
    ("file", 1007, "file"),
    ("homeless", 1008, "no/such/home"),
    ("-dash", 1009, "dash"),
    ("..", 1010, "dash"),
    ("u" * 32, 1011, "other"),
    ("u" * 33, 1012, "other"),
]


@pytest.fixture(scope="module")
def place():
    """Homes, and a password database that knows them; a folder that all users may enter."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        folder = pathlib.Path(name)
        home = populate(folder / "home", HOMES)
        populate(folder / "root", {"index.html": b"root", "~file": b"tilde", "~bob/x.txt": b"never"})
        (home / "closed").chmod(0o700)
        (home / "locked" / "public_html").chmod(0o600)
        (home / "bob" / "public_html" / "closed.txt").chmod(0o600)
        (home / "bob" / "public_html").chmod(0o711)
        (home / "linked" / "public_html").symlink_to("www")
        (home / "linked" / "www" / "out.txt").symlink_to("../../bob/private.txt")
        (home / "linked" / "www" / "above.txt").symlink_to("../x")
        (home / "linked" / "www" / "in.txt").symlink_to("a.txt")
        absolute = home / "linked" / "public_html" / "a.txt"
        (home / "linked" / "www" / "absolute.txt").symlink_to(absolute)
        (home / "linked" / "x").write_bytes(b"above")
        (home / "stolen" / "public_html").symlink_to(home / "bob")
        rows = [f"{name}:x:{uid}:{uid}::{home / where}:/bin/sh\n" for name, uid, where in USERS]
        (folder / "passwd").write_text("".join(rows) + "relative:x:1020:1020::home:/bin/sh\n")
        yield folder


@pytest.fixture
def start(place, tmp_path):
    servers = []

    def make(settings=None, rules="", **host):
        with tempfile.TemporaryDirectory() as name:
            os.chmod(name, 0o755)
            conf = write_config(pathlib.Path(name), place / "root", settings, host={"UserDir": "public_html", **host})
            with open(conf / "sites" / "default", "a") as file:
                file.write(rules)
            wrapper = ["unshare", "-m", "sh", "-c", WRAPPER, place / "passwd"]
            servers.append(Server("-c", conf, wrapper=list(map(str, wrapper)), program=build.for_others()))
        return servers[-1]

    yield make
    for server in servers:
        server.settle()
        server.stop()


@needs_root
@pytest.mark.parametrize(
    "target, status, body",
    [
        ("/~bob/", 200, b"<p>bob"),
        ("/~bob/a.txt", 200, b"a of bob"),
        ("/~bob/sub/", 200, b"<p>sub"),
        ("/%7ebob/a.txt?q", 200, b"a of bob"),
        ("//~bob//a.txt", 200, b"a of bob"),
        ("/~bob.smith/", 200, b"<p>smith"),
        ("/~" + "u" * 32 + "/", 200, b"<p>other"),
        ("/~bob/nowhere", 404, None),
        ("/~bob/x.txt", 404, None),
        ("/~bob/closed.txt", 403, None),
        ("/~bob/.secret", 404, None),
        ("/~bob/.well-known/x", 404, None),
        ("/", 200, b"root"),
        # no path leads out of the folder
        ("/~bob/../other/", 404, None),
        ("/~bob/../~other/", 200, b"<p>other"),
        ("/~bob/%2e%2e/private.txt", 404, None),
        ("/~bob/..%2fprivate.txt", 404, None),
        ("/~bob%2fpublic_html/", 404, None),
        ("/~bob%00/", 400, None),
        ("/~bob/%00", 400, None),
        ("/~bob%0a/", 404, None),
        ("/~bob:x/", 404, None),
        ("/~bob../private.txt", 404, None),
    ],
)
def test_paths(start, target, status, body):
    client = start().connect()
    for _ in range(2):
        answer = client.ask(target)
        assert answer.status == status
        assert body is None or answer.body == body
        if status == 400:
            return


UNKNOWN = """root daemon nobody nosuchuser nopage closed locked linked stolen file homeless relative -dash
    .. . ~ ~bob +bob bob:x:1000 1000 BOB""".split() + ["", "u" * 33, "x" * 3000]


@needs_root
def test_clients_do_not_learn_which_users_exist(start):
    """One answer for all, byte by byte but for the time."""
    client = start().connect()
    answers = {}
    for name in UNKNOWN:
        answer = client.ask(f"/~{name}/" if name not in ("..", ".") else f"/~{name}/index.html")
        assert answer.status == 404, name
        fields = [(key, value) for key, value in answer.fields if key != "Date"]
        answers[answer.body, repr(fields)] = name
    assert len(answers) == 1, answers
    for name in ("bob", "nosuchuser", "root", "nopage"):
        answer = client.ask(f"/~{name}?q")
        assert (answer.status, answer["Location"]) == (301, f"/~{name}/?q"), "without a look at who it is"


@needs_root
def test_all_that_files_have(start):
    server = start(Precompressed="gzip", PrecompressedMatch="/~bob", TryFiles="$path /index.html")
    client = server.connect()
    packed = client.ask("/~bob/a.txt", "Accept-Encoding: gzip")
    assert (packed.body, packed["Content-Encoding"], packed["Vary"]) == (b"gzip of a", "gzip", "Accept-Encoding")
    assert packed["Content-Type"].startswith("text/plain")
    assert client.ask("/~other/", "Accept-Encoding: gzip")["Vary"] is None
    whole = client.ask("/~bob/a.txt")
    assert client.ask("/~bob/a.txt", f"If-None-Match: {whole['ETag']}").status == 304
    assert client.ask("/~bob/a.txt", "Range: bytes=5-").body == b"bob"
    assert client.ask("/~bob/sub?x")["Location"] == "/~bob/sub/?x"
    assert client.ask("/~bob/", method="POST", body=b"").status == 405
    assert client.ask("/~bob/nowhere").status == 404, "TryFiles is the document root's"
    assert client.ask("/nowhere").body == b"root"


LINKS = ["", "in.txt", "absolute.txt", "above.txt", "out.txt"]


@needs_root
@pytest.mark.parametrize(
    "mode, linked, stolen",
    [
        ("Off", [404, 404, 404, 404, 404], 404),
        ("Inside", [200, 200, 200, 404, 404], 404),
        ("On", [200, 200, 200, 200, 200], 200),
    ],
)
def test_links(start, mode, linked, stolen):
    """Below the home for the folder itself, below the folder for what is in it."""
    client = start(SymLink=mode).connect()
    assert [client.ask(f"/~linked/{name}").status for name in LINKS] == linked
    assert client.ask("/~stolen/private.txt").status == stolen


@needs_root
def test_changes_are_seen_at_once(start, place):
    """Nothing is kept from one request to the next."""
    client = start().connect()
    folder = place / "home" / "other" / "public_html"
    assert client.ask("/~other/").status == 200
    folder.rename(folder.with_name("away"))
    assert client.ask("/~other/").status == 404
    folder.with_name("away").rename(folder)
    assert client.ask("/~other/").status == 200


@needs_root
def test_clients_that_leave(start):
    server = start()
    for _ in range(50):
        client = server.connect()
        client.send("GET /~bob/a.txt HTTP/1.1\r\nHost: h\r\n\r\n")
        client.reset()
    assert server.connect().ask("/~bob/a.txt").status == 200


@needs_root
def test_an_alias_comes_first(start, place):
    client = start(rules=f"[ALIAS]\n    Match /~bob\n    To {place}/home/bob.smith/public_html\n").connect()
    assert client.ask("/~bob/").body == b"<p>smith"
    assert client.ask("/~other/").body == b"<p>other"


def test_off_unless_asked_for(serve):
    client = serve(files={"~bob/index.html": b"a folder", "~file": b"tilde"}).connect()
    assert client.ask("/~bob/").body == b"a folder"
    assert client.ask("/~file").body == b"tilde"
    assert client.ask("/~root/").status == 404


@pytest.mark.parametrize("value", ["/srv/www", "..", "../x", "a/../b", "public_html/", "a//b", ".", "a b", '""'])
def test_mistakes(tmp_path, site_root, value):
    result = run("-c", write_config(tmp_path / "conf", site_root, host={"UserDir": value}), "-t")
    (problem,) = problems(result)
    assert result.returncode == 1 and problem[:2] == ("default", 4)
    assert "such as public_html" in problem[3]


@pytest.mark.parametrize("value", ["public_html", "sites/public", ".public", "a..b"])
def test_names(tmp_path, site_root, value):
    assert run("-c", write_config(tmp_path / "conf", site_root, host={"UserDir": value}), "-t").returncode == 0
