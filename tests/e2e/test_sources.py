# SPDX-License-Identifier: Apache-2.0
"""Programs that other plugins run are never sent as files, by no directive that names or finds files.

WAYS has each directive of the reference by which a client might get a file's bytes, with requests that try it. A
directive that is in none of the tables fails test_each_directive_is_known: say there how it could send a file."""

import gzip
import inspect
import io
import json
import os
import re
import signal
import tarfile

import pytest

from harness import build
from harness.backend import Backend, answer
from harness.content import OLD, populate
from harness.fastcgi import Application, fastcgi_section
from harness.fastcgi import answer as run_script
from harness.scripts import HELLO, write_scripts
from harness.server import run, section, write_config
from harness.ways import WAYS as PROTOCOLS
import test_userdir

pytestmark = [build.needs_modules, pytest.mark.single_protocol]

SECRET = b"<?php secret ?>\n"
COPIES = ("", *".gz .br .zst .bak .old .orig .swp ~ .GZ .bak.gz . ::$DATA .~1~ .1".split())
FINE = "monkey: the configuration is fine\n"
SCRIPTS = {"Split": ".php", "Folder": "{root}/bin"}

FILES = {
    "index.html": b"home\n",
    "page.txt": b"page\n",
    "sub/index.php": SECRET,
    "sub/a.txt": b"a\n",
    "both/index.php": SECRET,
    "both/index.html": b"both\n",
    "bin/run": SECRET,
    "bin/deep/run": SECRET,
    "dir.php/a.jpg": SECRET,
    "lib/README.php": SECRET,
    "lib/a.txt": b"a\n",
    "X.PHP": SECRET,
    ".x.php.swp": SECRET,
    ".dot": b"dot\n",
    **{f"x.php{copy}": SECRET for copy in COPIES},
}
LINKS = {
    "notes.txt": "x.php",
    "run.txt": "bin/run",
    "cgi": "bin",
    "two.txt": "notes.txt",
    "lib/linked.txt": "../x.php",
    "page.php": "page.txt",
    "good.txt": "page.txt",
}
# Paths of the document root, whatever the way to them is.
NAMES = (
    *(f"/x.php{copy}" for copy in COPIES),
    "/X.PHP",
    "/x.PhP",
    "/.x.php.swp",
    "/bin/run",
    "/bin/deep/run",
    "/bin/",
    "/dir.php/a.jpg",
    "/sub/",
    "/sub/index.php",
    "/x.php/",
    "/x.php/x.txt",
    "/page.txt/x.php",
    "/notes.txt",
    "/two.txt",
    "/run.txt",
    "/cgi/run",
    "/page.php",
    "/x.php%00",
    "/x.php%00.txt",
    "/x%2ephp",
    "/./x.php",
    "/sub/../x.php",
    "/..;/x.php",
    "/x.%e2%93%9fhp",
    "/x.php%20",
    "/x.php%0a",
)


class Site:
    """A document root with programs, and the texts of a configuration below it."""

    def __init__(self, tmp_path):
        self.folder, self.root = tmp_path, populate(tmp_path / "root", FILES)
        self.outside = populate(tmp_path / "outside", {"x.php": SECRET, "good.txt": b"good\n"})
        for name, target in LINKS.items():
            (self.root / name).symlink_to(target)
        (self.root / "x.php.gz").write_bytes(gzip.compress(SECRET, mtime=0))
        os.utime(self.root / "x.php.gz", (OLD, OLD))

    def fill(self, text):
        return text.format(root=self.root, outside=self.outside) if isinstance(text, str) else text


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.fixture(params=["h1", "h2"])
def protocol(request):
    if not build.speaks("h2"):
        pytest.skip(f"the preset {build.PRESET} has no HTTP/2")
    return PROTOCOLS[request.param]


def make_real(scripts):
    """Sections of the plugins that run programs, for paths that no test asks for."""
    split, folder = scripts.get("Split"), scripts.get("Folder")
    keys = {"Match": "/never", "To": "unix:/nowhere", "Split": split}
    text = section("FASTCGI", keys) if split else ""
    return text + (section("CGI", {"Match": "/never-cgi", "Root": folder}) if folder else "")


@pytest.fixture(params=["test plugin", "fastcgi and cgi"])
def programs(request):
    """Returns the plugins that run programs, and their sections for the keys of [SCRIPTS]."""
    if request.param == "test plugin":
        return [build.MODULES / "scripts.so"], lambda keys: section("SCRIPTS", keys)
    if not (build.PLUGINS / "cgi.so").exists() or not (build.PLUGINS / "fastcgi.so").exists():
        pytest.skip(f"the preset {build.PRESET} has no plugins fastcgi and cgi")
    return ["fastcgi", "cgi"], make_real


@pytest.fixture
def start(serve, site, programs):
    def make(host=None, text="", more=(), scripts=SCRIPTS, config=None, **rest):
        scripts = {key: site.fill(value) for key, value in scripts.items()}
        names = ["liana", *more, "static", "dirlisting", *programs[0]]
        config = {"plugins.load": section("PLUGINS", {"Load": names}), **(config or {})}
        host = {key: site.fill(value) for key, value in (host or {}).items()}
        text = programs[1](scripts) + site.fill(text)
        return serve(root=site.root, host=host, text=text, config=config, **rest)

    return make


@pytest.fixture
def check(site, tmp_path):
    """What the server says about a host with these sections."""

    def make(text, *more):
        names = ["liana", *more, "static", build.MODULES / "scripts.so"]
        text += section("SCRIPTS", {key: site.fill(value) for key, value in SCRIPTS.items()})
        files = {"plugins.load": section("PLUGINS", {"Load": names})}
        write_config(tmp_path / "conf", site.root, host={"SymLink": "On"}, text=text, files=files)
        return run("-c", tmp_path / "conf", "-t").stderr

    return make


def assert_hidden(client, *targets, status=404):
    for target in targets:
        for fields in ((), ("Accept-Encoding: gzip, br, zstd",), ("Range: bytes=0-99",)):
            got = client.ask(target, *fields)
            assert b"secret" not in got.body and gzip.compress(SECRET, mtime=0) not in got.body, target
            assert got.status in (400, status), (target, got.status)


# ── the document root ──


def ask_names(server, protocol):
    with protocol.connect(server) as client:
        assert_hidden(client, *NAMES)


@pytest.mark.parametrize("mode", ["Off", "Inside", "On"])
def test_document_root(start, protocol, mode):
    server = start({"SymLink": mode})
    ask_names(server, protocol)
    with protocol.connect(server) as client:
        assert client.ask("/page.txt").body == b"page\n" and client.ask("/both/").body == b"both\n"
        assert client.ask("/good.txt").status == (404 if mode == "Off" else 200)
        assert client.ask("/x.php", method="POST").status == 404


def test_without_programs_they_are_files(start, protocol):
    """The same files on a host without a plugin that runs them."""
    with protocol.connect(start(scripts={})) as client:
        assert client.ask("/x.php").body == client.ask("/x.php.bak").body == client.ask("/bin/run").body == SECRET


def test_handler(start, protocol):
    server = start(text=section("HANDLERS", {"Match": "/ static"}))
    ask_names(server, protocol)


TRIES = ["$path /x.php", "$path.php", "$path /bin/run", "$path /x.php.bak", "$path/ /notes.txt"]


@pytest.mark.parametrize("tries", TRIES)
def test_tryfiles(start, protocol, tries):
    server = start({"TryFiles": tries, "SymLink": "On"})
    with protocol.connect(server) as client:
        assert_hidden(client, "/x", "/none", "/sub", "/x.php", "/X", "/notes", *NAMES)


def test_tryfiles_continues_behind_a_program(start, protocol):
    server = start({"TryFiles": "/x.php $path /page.txt"})
    with protocol.connect(server) as client:
        assert client.ask("/none").body == b"page\n"
        assert_hidden(client, "/x.php", "/x.php.gz")


def test_indexfile(start, protocol):
    server = start({"Indexfile": "index.php x.php~ notes.txt page.txt", "SymLink": "On"})
    with protocol.connect(server) as client:
        assert client.ask("/").body == b"page\n"
        assert_hidden(client, "/sub/", "/both/")


def test_precompressed(start, protocol):
    server = start({"Precompressed": "gzip br zstd", "PrecompressedMatch": "/"})
    ask_names(server, protocol)


def test_dot_files(start, protocol):
    server = start({"DotFiles": "On"})
    with protocol.connect(server) as client:
        assert client.ask("/.dot").body == b"dot\n"
        assert_hidden(client, *NAMES)


def wrap_users(folder):
    """The password database is one of the test, in a mount namespace; bob is in it."""
    (folder / "passwd").write_text(f"root:x:0:0::/:/bin/sh\nbob:x:1000:1000::{folder}/home/bob:/bin/sh\n")
    return ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', str(folder / "passwd")]


@test_userdir.needs_root
@pytest.mark.parametrize("mode", ["Off", "On"])
def test_user_folder(start, site, tmp_path, protocol, mode):
    pages = populate(tmp_path / "home" / "bob" / "public_html", {"x.php": SECRET, "x.php~": SECRET, "a.txt": b"a\n"})
    populate(pages, {"index.php": SECRET, "cgi/run": SECRET})
    (pages / "notes.txt").symlink_to("x.php")
    host = {"UserDir": "public_html", "SymLink": mode, "Indexfile": "index.php"}
    server = start(host, scripts={"Split": ".php", "Folder": pages / "cgi"}, wrapper=wrap_users(tmp_path))
    with protocol.connect(server) as client:
        assert client.ask("/~bob/a.txt").body == b"a\n"
        assert_hidden(client, "/~bob/", "/~bob/x.php", "/~bob/x.php~", "/~bob/notes.txt", "/~bob/cgi/run", "/~bob/cgi/")


# ── folders elsewhere ──

ALIASES = """
[ALIAS]
    Match /elsewhere
    To {outside}
[ALIAS]
    Match =/one.txt
    To {outside}/x.php
[ALIAS]
    Match =/two.php
    To {outside}/good.txt
[ALIAS]
    Match /again
    To {root}
"""


@pytest.mark.parametrize("mode", ["Off", "On"])
def test_alias(start, protocol, mode):
    server = start({"SymLink": mode}, ALIASES)
    with protocol.connect(server) as client:
        assert client.ask("/elsewhere/good.txt").body == b"good\n"
        assert_hidden(client, "/elsewhere/x.php", "/one.txt", "/two.php", "/again/bin/run", "/again/x.php.bak")
        assert_hidden(client, "/again/bin/", "/again/sub/", "/again/notes.txt")


def test_rewrite(start, protocol):
    rules = section("REWRITE", {"Match": "=/secret", "To": "/x.php"}) + section(
        "REWRITE", {"Match": "=/copy", "To": "/x.php.bak"}
    )
    with protocol.connect(start(text=rules, more=["redirect"])) as client:
        assert_hidden(client, "/secret", "/copy")


# ── pages ──


@pytest.mark.parametrize("page", ["/x.php", "/x.php.bak", "/bin/run", "/notes.txt"])
def test_error_page(check, page):
    text = section("ERROR_PAGES", {"404": page})
    assert f"the page {page} is a program of another plugin, and never sent" in check(text)
    assert check(section("ERROR_PAGES", {"404": "/page.txt"})) == FINE


@pytest.mark.parametrize("page", ["x.php", "x.php.bak", "bin/run", "notes.txt"])
def test_maintenance_page(check, site, page):
    keys = {"FlagFile": site.folder / "flag", "Page": site.root / page}
    assert "this page is a program of another plugin" in check(section("MAINTENANCE", keys), "maintenance")
    keys["Page"] = site.root / "page.txt"
    assert check(section("MAINTENANCE", keys), "maintenance") == FINE


@pytest.mark.parametrize("name", ["x.php", "x.php.bak", "bin/run", "notes.txt"])
def test_file_of_an_answer(start, site, protocol, name):
    text = section("RESPOND", {"Match": "=/fixed", "File": site.root / name})
    server = start({"SymLink": "On"}, text, more=["respond"])
    with protocol.connect(server) as client:
        got = client.ask("/fixed")
        assert got.status == 404 and b"secret" not in got.body
    server.wait_log("respond: cannot send the file .*: it is a program of another plugin, and never sent")


def test_pages_become_programs(start, site, protocol):
    """A reload with pages that are programs by now is refused, and the texts of before are sent."""
    texts = {"404.html": b"not here\n", "busy.html": b"come back\n"}
    populate(site.root, texts)
    keys = {"Match": "/busy", "FlagFile": site.folder / "flag", "Page": site.root / "busy.html"}
    pages = section("ERROR_PAGES", {"404": "/404.html"}) + section("MAINTENANCE", keys)
    (site.folder / "flag").touch()
    server = start({"SymLink": "On"}, pages, more=["maintenance"])
    server.baseline += 2  # of the thread that ends a generation
    for name in texts:
        (site.root / name).unlink()
        (site.root / name).symlink_to("x.php")
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration cannot be used")
    for said in ("the page /404.html is a program", "this page is a program"):
        assert any(said in line for line in server.lines), said
    with protocol.connect(server) as client:
        assert (client.ask("/none").body, client.ask("/busy").body) == tuple(texts.values())
        assert_hidden(client, "/404.html", "/busy.html")


# ── listings and archives ──


@pytest.mark.parametrize("mode", ["Off", "On"])
def test_listing(start, protocol, mode):
    text = section("DIRLISTING", {"ReadMe": "README.php linked.txt", "Archives": "tar", "Hidden": "*.secret"})
    server = start({"SymLink": mode, "Indexfile": "none"}, text)
    with protocol.connect(server) as client:
        got = client.ask("/", "Accept: application/json").body
        names = set(re.findall(rb'"name":"([^"]*)"', got.replace(b'": "', b'":"')))
        assert b"page.txt" in names and b"both" in names
        shown = {name for name in names if b"php" in name.lower() or name in (b"notes.txt", b"two.txt", b"run.txt")}
        assert not shown, shown
        page = client.ask("/lib/").body
        assert b"a.txt" in page and b"secret" not in page and b"README.php" not in page
        assert_hidden(client, "/bin/", "/dir.php/")


def test_archive(start, protocol):
    text = section("DIRLISTING", {"Archives": "tar", "ArchiveIndexed": "On"})
    server = start({"SymLink": "On", "Indexfile": "none"}, text)
    with protocol.connect(server) as client:
        got = client.ask("/?archive=tar")
        assert got.status == 200 and b"secret" not in got.body
        with tarfile.open(fileobj=io.BytesIO(got.body)) as archive:
            names = archive.getnames()
        assert any(name.endswith("page.txt") for name in names), names
        assert not [name for name in names if "php" in name.lower() or "run" in name], names
        assert_hidden(client, "/bin/?archive=tar")


# ── caches and compression ──


@pytest.mark.parametrize("mode", ["Off", "On"])
@build.needs_cache
def test_cache(start, site, protocol, mode):
    """A host without programs has its files in the cache, and shares the folder with one that has some."""
    plain = section("HOST", {"ServerName": "plain.test", "DocumentRoot": site.root, "SymLink": mode})
    config = {"sites/plain": plain}
    server = start({"SymLink": mode}, more=["cache"], config=config, text=section("CACHE", {"Files": "Revalidate 1s"}))
    with protocol.connect(server) as client:
        for _ in range(3):
            for target in ("/x.php", "/bin/run", *(["/notes.txt", "/cgi/run"] if mode == "On" else [])):
                name = {"authority" if protocol.h2 else "host": "plain.test"}
                assert client.ask(target, **name).body == SECRET, target
            assert client.ask("/page.txt").body == b"page\n"
            assert_hidden(client, *NAMES)


@pytest.mark.parametrize("mode", ["Off", "On"])
@build.needs_cache
def test_cache_api(start, protocol, mode):
    """What is loaded ahead or by the API, and what the API reads itself."""
    text = section("CACHE", {"Admin": "/cache", "Warm": "/"})
    server = start({"SymLink": mode}, text, more=["cache"])
    with server.connect() as client:
        for name in NAMES:
            for query in (f"path={name}", f"sitemap={name}", f"directory={name}"):
                assert b"secret" not in client.ask(f"/cache/add?{query}", method="POST", body=b"").body, query
        assert client.ask("/cache/add?directory=/", method="POST", body=b"").status == 200
        entries = json.loads(client.ask("/cache/entries?limit=1000").body)["entries"]
        assert not [one for one in entries if "php" in one["path"].lower() and one["kind"] != "missing"], entries
    ask_names(server, protocol)


def test_compress(start, protocol):
    server = start(text=section("COMPRESS", {"Codings": "gzip", "Types": "text/* application/*"}), more=["compress"])
    ask_names(server, protocol)


# ── what other programs name ──


@pytest.mark.parametrize("header", ["X-Accel-Redirect: /", "X-Sendfile: {root}/"])
@pytest.mark.parametrize("name", ["x.php", "x.php.bak", "bin/run", "notes.txt", "cgi/run", "page.txt"])
def test_send_file(start, site, protocol, header, name):
    with Backend(answer(b"ignored", "Content-Type: text/plain", site.fill(header) + name)) as backend:
        keys = {"Match": "/download", "To": backend.url, "SendFile": site.root}
        server = start(text=section("PROXY", keys), more=["proxy"])
        with protocol.connect(server) as client:
            got = client.ask("/download")
        assert b"secret" not in got.body
        assert (got.status, got.body == b"page\n") == ((200, True) if name == "page.txt" else (404, False))
        if name != "page.txt":
            server.wait_log("it is a program of another plugin, and never sent")


@pytest.fixture
def start_scripts(serve, site):
    """A server whose scripts an application runs."""

    def make(application, keys=None, name="FASTCGI"):
        text = fastcgi_section(application, name, Split=".php", **(keys or {}))
        return serve(root=site.root, host={"SymLink": "On"}, text=text)

    return make


@pytest.mark.parametrize("name", ["FASTCGI", "SCGI"])
@pytest.mark.parametrize("tries", [None, "$path $path/index.php /index.php", "$path $path/ =404"])
def test_scripts_of_an_application(start_scripts, protocol, name, tries):
    """What is not run is not sent."""
    with Application(run_script(b"ran") if name == "FASTCGI" else run_scgi) as application:
        server = start_scripts(application, {"TryFiles": tries, "Index": "index.php"} if tries else {}, name)
        with protocol.connect(server) as client:
            for path in NAMES:
                if not path.startswith("/bin") and path not in ("/run.txt", "/cgi/run"):  # no extension of scripts
                    assert b"secret" not in client.ask(path).body, path
            assert client.ask("/x.php").body == b"ran"
            assert client.ask("/page.txt").body == b"page\n"


def run_scgi(peer):
    peer.request_scgi()
    peer.send(b"Content-Type: text/plain\r\n\r\nran")


@pytest.mark.parametrize("name", ["x.php", "x.php.bak", "notes.txt", "page.txt"])
def test_x_sendfile_of_an_application(start_scripts, site, protocol, name):
    head = f"X-Sendfile: {site.root}/{name}\r\nContent-Type: text/plain\r\n\r\n".encode()
    with Application(run_script(b"ignored", head)) as application:
        server = start_scripts(application, {"SendFile": site.root})
        with protocol.connect(server) as client:
            got = client.ask("/x.php")
        assert (got.status, got.body == b"page\n") == ((200, True) if name == "page.txt" else (404, False))
        assert b"secret" not in got.body


SERVICE = """
#include <duda/duda.h>
DUDA_REGISTER("tests", "files");
static void send(duda_request_t *dr)
{
    char name[64];
    snprintf(name, sizeof(name), "%s", param->get(dr, "name"));
    if (response->sendfile(dr, name) == -EACCES)
        response->error(dr, 404);
    else
        response->end(dr, NULL);
}
int duda_main(void)
{
    return router->get("/send/:name", send) ? 0 : -1;
}
"""


def test_web_service(serve_services, site, protocol):
    """Files of its folder, and those that it sends itself."""
    names = ["liana", "duda", "static", build.MODULES / "scripts.so"]
    server = serve_services(
        {"svc": "#include <errno.h>\n#include <stdio.h>\n" + SERVICE},
        keys={"svc": {"DocumentRoot": site.root, "DataDir": site.root}},
        host={"SymLink": "On"},
        text=section("SCRIPTS", {key: site.fill(value) for key, value in SCRIPTS.items()}),
        files={"plugins.load": section("PLUGINS", {"Load": names})},
    )
    with protocol.connect(server) as client:
        assert client.ask("/svc/page.txt").body == client.ask("/svc/send/page.txt").body == b"page\n"
        assert_hidden(client, *(f"/svc{name}" for name in NAMES), "/svc/notes.txt", "/svc/cgi/run")
        assert_hidden(client, "/svc/send/x.php", "/svc/send/x.php.bak", "/svc/send/notes.txt")


# ── plugins that run programs ──

needs_fastcgi = pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no fastcgi")


@needs_fastcgi
@pytest.mark.parametrize("name", ["FASTCGI", "SCGI"])
@pytest.mark.parametrize("tries", [None, "$path $path/ /index.php", "$path =404"])
def test_application(serve, site, protocol, name, tries):
    """What is no script is sent as a file, and a script goes to an application, which is not there."""
    keys = {"To": f"unix:{site.folder}/none", "Split": ".php", "Index": "index.php"}
    keys.update({"TryFiles": tries} if tries else {})
    config = {"plugins.load": section("PLUGINS", {"Load": ["liana", "fastcgi", "static"]})}
    server = serve(root=site.root, host={"SymLink": "On"}, text=section(name, keys), config=config)
    with protocol.connect(server) as client:
        assert client.ask("/page.txt").body == b"page\n"
        for target in NAMES:
            if "run" not in target:  # a program of CGI only
                assert b"secret" not in client.ask(target).body, target


@needs_fastcgi
@pytest.mark.parametrize("name", ["x.php", "x.php.bak", "notes.txt", "page.txt"])
def test_send_file_of_an_application(serve, site, protocol, name):
    def respond(peer):
        peer.request()
        peer.respond(b"ignored", f"Content-Type: text/plain\r\nX-Accel-Redirect: /{name}\r\n\r\n".encode())

    (site.root / "index.php").write_bytes(SECRET)
    with Application(respond) as application:
        keys = {"To": application.to, "Match": "=/index.php", "SendFile": site.root}
        server = serve(root=site.root, text=section("FASTCGI", keys))
        with protocol.connect(server) as client:
            got = client.ask("/index.php")
    assert b"secret" not in got.body
    assert (got.status, got.body == b"page\n") == ((200, True) if name == "page.txt" else (404, False))


needs_both = pytest.mark.skipif(not (build.PLUGINS / "cgi.so").exists() or not (build.PLUGINS / "fastcgi.so").exists(),
                                reason="this preset has no plugins fastcgi and cgi")  # fmt: skip
PATTERNS = section("CGI", {"Match": r"~\.cgi(/|$)"}) + section("SCGI", {"Match": "*.py", "To": "unix:/nowhere"})
PATTERNS += section("CGI", {"Match": "~^/(elsewhere|~bob)/tools/"})
PATTERN_FILES = {name: SECRET for name in ("x.cgi", "x.cgi~", "x.py", "x.py.bak", "tools/run")}
PATTERN_LINKS = {"cgi.txt": "x.cgi", "copy.txt": "x.cgi~", "py.txt": "x.py", "bak.txt": "x.py.bak"}
PATTERN_LINKS |= {"run.txt": "tools/run"}


def make_patterns(folder):
    populate(folder, {**PATTERN_FILES, "a.txt": b"a\n"})
    for name, target in PATTERN_LINKS.items():
        (folder / name).symlink_to(target)
    (folder / "page.txt.gz").symlink_to("x.cgi")
    (folder / "page.txt").write_bytes(b"page\n")
    return folder


def assert_never_sent(client, folder):
    """The programs are run, or not, and what leads to them is missing."""
    assert_hidden(client, *(f"{folder}/{name}" for name in PATTERN_LINKS))
    for name in PATTERN_FILES:
        got = client.ask(f"{folder}/{name}")
        assert got.status in (403, 404, 502) and b"secret" not in got.body, name


@needs_both
@pytest.mark.parametrize("mode", ["Off", "Inside", "On"])
def test_programs_by_patterns(serve, tmp_path, protocol, mode):
    """In a folder elsewhere only the paths that lead to its files make them programs."""
    root, outside = populate(tmp_path / "root", {"a.txt": b"a\n"}), make_patterns(tmp_path / "outside")
    for name in (*PATTERN_FILES, "tools"):
        (root / f"{name.replace('/', '-')}.txt").symlink_to(outside / name)
    text = section("ALIAS", {"Match": "/elsewhere", "To": outside}) + PATTERNS
    text += section("DIRLISTING", {"Archives": "tar"})
    host = {"SymLink": mode, "Precompressed": "gzip", "PrecompressedMatch": "/"}
    server = serve(root=root, text=text, host=host)
    with protocol.connect(server) as client:
        assert client.ask("/elsewhere/a.txt").body == client.ask("/a.txt").body == b"a\n"
        assert client.ask("/elsewhere/page.txt", "Accept-Encoding: gzip").body == b"page\n"
        assert_never_sent(client, "/elsewhere")
        assert_hidden(client, *(f"/{name.replace('/', '-')}.txt" for name in PATTERN_FILES), "/tools.txt/run")
        listing = client.ask("/elsewhere/", "Accept: application/json").body
        assert b"a.txt" in listing and not [name for name in PATTERN_LINKS if f'"{name}"'.encode() in listing], listing
        packed = client.ask("/elsewhere/?archive=tar")
        assert packed.status == 200 and b"page" in packed.body and b"secret" not in packed.body


@needs_both
@test_userdir.needs_root
@pytest.mark.parametrize("mode", ["Inside", "On"])
def test_programs_of_users_by_patterns(serve, tmp_path, protocol, mode):
    make_patterns(tmp_path / "home" / "bob" / "public_html")
    wrapper = wrap_users(tmp_path)
    host = {"UserDir": "public_html", "SymLink": mode}
    server = serve(root=populate(tmp_path / "root", {"a.txt": b"a\n"}), text=PATTERNS, host=host, wrapper=wrapper)
    with protocol.connect(server) as client:
        assert client.ask("/~bob/a.txt").body == b"a\n"
        assert_never_sent(client, "/~bob")


@pytest.mark.parametrize("is_linked", [False, True], ids=["named", "linked"])
def test_cgi_script(serve, tmp_path, protocol, is_linked):
    """The one script of a section, as a file of the host, its copies, and by a redirect of another script."""
    away = "#!/bin/sh\nprintf 'Location: /tools/run\\n\\n'\n"
    root = write_scripts(tmp_path / "root", {"tools/run": HELLO, "away": away})
    for copy in ("run~", "run.bak", "run.old", "run.gz", "run.orig.gz"):
        (root / "tools" / copy).write_text(HELLO)
    (root / "other").symlink_to("tools/run")
    (tmp_path / "current").symlink_to(root / "tools")
    (tmp_path / "link").symlink_to(tmp_path / "current" / "run")
    keys = [{"Match": "/go", "Script": tmp_path / "link" if is_linked else root / "tools/run"}]
    keys += [{"Match": "/away", "Script": root / "away", "LocalRedirect": "On"}]
    text = "".join(section("CGI", each) for each in keys)
    server = serve({"Workers": 1}, root=root, text=text, host={"SymLink": "On"})
    server.baseline += 2  # sockets of the starter
    with protocol.connect(server) as client:
        assert client.ask("/go").body == b"hello\n"
        copies = [f"/tools/{each.name}" for each in (root / "tools").iterdir()]
        assert len(copies) == 6
        for target in ("/away", "/other", *copies):
            got = client.ask(target)
            assert got.status in (403, 404) and b"printf" not in got.body, target


# ── all directives ──

WAYS = {
    "SERVER.SymLink": test_document_root,
    "SERVER.DotFiles": test_dot_files,
    "SERVER.Indexfile": test_indexfile,
    "HOST.DocumentRoot": test_document_root,
    "HOST.SymLink": test_document_root,
    "HOST.DotFiles": test_dot_files,
    "HOST.Indexfile": test_indexfile,
    "HOST.Precompressed": test_precompressed,
    "HOST.PrecompressedMatch": test_precompressed,
    "HOST.TryFiles": test_tryfiles,
    "HOST.UserDir": test_user_folder,
    "FASTCGI.Match": test_application,
    "FASTCGI.To": test_application,
    "FASTCGI.Split": test_application,
    "FASTCGI.Index": test_application,
    "FASTCGI.TryFiles": test_application,
    "FASTCGI.SendFile": test_send_file_of_an_application,
    "SCGI.Match": test_programs_by_patterns,
    "SCGI.To": test_application,
    "SCGI.Split": test_application,
    "SCGI.Index": test_application,
    "SCGI.TryFiles": test_application,
    "SCGI.SendFile": test_send_file_of_an_application,
    "CGI.Match": test_programs_by_patterns,
    "CGI.Root": test_document_root,
    "CGI.Script": test_cgi_script,
    "HANDLERS.Match": test_handler,
    "ERROR_PAGES.Match": test_error_page,  # its pages are pairs, which the reference does not list
    "ALIAS.Match": test_alias,
    "ALIAS.To": test_alias,
    "CACHE.Match": test_cache,
    "CACHE.Files": test_cache,
    "COMPRESS.Match": test_compress,
    "COMPRESS.Codings": test_compress,
    "CACHE.Admin": test_cache_api,
    "CACHE.Warm": test_cache_api,
    "COMPRESS.Types": test_compress,
    "DIRLISTING.Match": test_listing,
    "DIRLISTING.ReadMe": test_listing,
    "DIRLISTING.Hidden": test_listing,
    "DIRLISTING.Archives": test_archive,
    "DUDA.DocumentRoot": test_web_service,
    "WEB_SERVICE.DocumentRoot": test_web_service,
    "WEB_SERVICE.DataDir": test_web_service,
    "MAINTENANCE.Page": test_maintenance_page,
    "RESPOND.File": test_file_of_an_answer,
    "PROXY.Match": test_send_file,
    "PROXY.To": test_send_file,
    "PROXY.SendFile": test_send_file,
    "REWRITE.Match": test_rewrite,
    "REWRITE.To": test_rewrite,
}
# Directives with a word that names no file which a client gets, section by section.
NO_WAY = {
    "SERVER": "Listen TrustedProxies DefaultMimeType TransportLayer ErrorLog PidFile User Group",
    "PLUGINS": "Load",
    "CHEETAH": "Listen AllowedUsers",
    "DUDA": "ServicesRoot PackagesRoot",
    "HEALTH": "LivenessPath ReadinessPath Listener",
    "CONNECTIONS": "Network File Name",
    "SPOOL": "Folder",
    "STATUS": "StatusPath MetricsPath Listener",
    "TLS": "TicketKeys Certificate CertificateKey CertificateChain OCSPFile ClientCA StrictTransportSecurity",
    "UPSTREAM": "Name Server HashBy StickyCookie StickySecret Retry EjectOn NameServer Check CheckMethod CheckHost "
    "CheckHeader CheckStatus CheckText CheckTlsName CheckTlsCA",
    "HOST": "ServerName Listener Redirect",
    "LIMITS": "Match",
    "AUTH": "Match Realm Users Groups Require Keys Secret Issuer Audience Scope Claim To CopyHeaders UserHeader "
    "ForwardCacheBy TlsName TlsCA",
    "CORS": "Match Origins Methods Headers Expose",
    "DIRLISTING": "Theme ThemeURL",  # files of fixed names in the theme's folder
    "WEB_SERVICE": "Name File ConfDir LogDir Console ConsoleAllow",
    "HEADERS": "Match Remove Set Add",
    "LOGGER": "Match AccessLog ErrorLog Format ErrorFormat Except Status Sample",
    "MAINTENANCE": "Match FlagFile Text Except",
    "RULES": "Match Network File When Action Name",
    "CLIENT_LIMITS": "Match Network File When Rate Name",
    "PROXY": "HostHeader RequestSet RequestRemove Upgrade KeepAlive SpoolRequest BufferResponse InterceptErrors "
    "SourceAddress TlsName TlsCA TlsCertificate TlsKey TraceSample",
    "FASTCGI": "RemoteRoot Params KeepAlive SpoolRequest BufferResponse InterceptErrors Spawn",
    "SCGI": "RemoteRoot Params SpoolRequest BufferResponse InterceptErrors",
    "CGI": "Interpreter Limits Env SpoolRequest BufferResponse",
    "REDIRECT": "Match To When",
    "RESPOND": "Match When Header Text",
    "REWRITE": "When",
}
# These values are no words of their own: no file can be named.
PLAIN = re.compile(r"(a number|one of|On or Off|a duration|a size)\b")


def source_of(test):
    """The source of a test, with the functions and constants of this file that it names."""
    text, todo, seen = "", [test.__name__], set()
    while todo:
        name = todo.pop()
        value = globals().get(name)
        if name in seen or value is None:
            continue
        seen.add(name)
        value = value.__pytest_wrapped__.obj if hasattr(value, "__pytest_wrapped__") else value
        if getattr(value, "__module__", None) == __name__:
            part = inspect.getsource(value)
        else:
            part = repr(value) if isinstance(value, (str, dict, list, tuple)) else ""
        text += part
        todo += re.findall(r"\w+", part)
    return text


def read_reference():
    """Each directive, and what its value is. A short form is the key of its section (test_short_forms.py)."""
    for part in re.split(r"^(?=## )", run("--reference").stdout, flags=re.M):
        title = re.match(r"## `\[(\w+)\]`", part)
        for name, value in re.findall(r"^### `(\w+)`\n\n\*(.*)\*$", part, flags=re.M) if title else ():
            if not value.startswith("short for "):
                yield f"{title[1]}.{name}", value


def test_each_directive_is_known():
    found = {name for name, value in read_reference() if not PLAIN.match(value)}
    others = {f"{name}.{key}" for name, keys in NO_WAY.items() for key in keys.split()}
    assert len(found) > 100 and not others & WAYS.keys()
    new = found - others - WAYS.keys()
    assert not new, f"can these send a file? Add them to WAYS, with a test, or to NO_WAY: {sorted(new)}"
    every = {name for name, _ in read_reference()}
    sections = {name.split(".")[0] for name in every}
    old = {name for name in (others | WAYS.keys()) - every if name.split(".")[0] in sections}
    assert not old, "these are no directives any more"
    words = {name: name.split(".")[1] for name in WAYS} | {"HOST.DocumentRoot": "root"}  # the argument of serve()
    unused = [name for name, test in WAYS.items() if not re.search(rf"\b{words[name]}\b", source_of(test))]
    assert not unused, f"their tests do not set them: {unused}"
