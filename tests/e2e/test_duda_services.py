# SPDX-License-Identifier: Apache-2.0
"""The life of web services: their sections, start, reload, errors and end."""

import contextlib
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import tempfile
import time

import pytest

from harness import build
from harness.client import ProtocolError
from harness.content import populate
from harness.load import Clients
from harness.messages import request
from harness.protocol import Client
from harness.server import await_true, run, section, write_config
from harness.services import HEAD, build_service, function_of, needs_duda, reload, service_config, web_service

pytestmark = needs_duda


def counter(name, extra="", main="", end=""):
    """A service that tells its name, how often it was asked, and of which instance: all the same but for the name."""
    return f"""{HEAD}
#include <stdio.h>
#include <unistd.h>
_Atomic int count;
const char *title = "{name}";
{extra}
const char *get_title(void);
const char *get_title(void)
{{
    return title;
}}

static void say(duda_request_t *dr)
{{
    response->printf(dr, "%s %d", get_title(), ++count);
    response->end(dr, NULL);
}}

int duda_main(void)
{{
    {main}
    return router->get("/", say) ? 0 : -1;
}}

void duda_exit(void)
{{
    {end}
}}
"""


def note(folder, event):
    """Code that appends a line to a file: what tests see of duda_main() and duda_exit()."""
    return f'FILE *f = fopen("{folder}/events", "a"); fprintf(f, "%s {event}\\n", title); fclose(f);'


def read_events(folder):
    path = folder / "events"
    return path.read_text().splitlines() if path.exists() else []


def ask(server, target, host="localhost"):
    with server.connect() as client:
        return client.ask(target, host=host)


def text_of(server, target, host="localhost"):
    answer = ask(server, target, host)
    assert answer.status == 200, answer
    return answer.body.decode()


def test_main_runs_once_under_a_supervisor(serve_services, tmp_path):
    server = serve_services(
        {"one": counter("one", main=note(tmp_path, "begins"))}, {"Supervisor": "On"}
    )
    assert text_of(server, "/one/") == "one 1"
    assert read_events(tmp_path) == ["one begins"]
    server.stop()


# ── sections ──


def test_services_of_hosts(serve_services, tmp_path, site_root):
    """The same service in two hosts has two instances, and a service named by its file any name."""
    other = section("HOST", {"ServerName": "other.example", "DocumentRoot": site_root})
    other += web_service("one") + web_service("third", File=tmp_path / "services" / "one.duda")
    server = serve_services(
        {"one": counter("one"), "two": counter("two")},
        keys={"two": {"Root": "On"}},
        files={"sites/other": other},
    )
    assert [text_of(server, "/one/") for _ in range(2)] == ["one 1", "one 2"]
    assert ask(server, "/one")["Location"] == "/one/"
    assert text_of(server, "/") == "two 1"
    assert ask(server, "/hello.txt").body == b"Hello, world\n"  # the host's file: the root service has no such route
    assert ask(server, "/onex").status == ask(server, "/one/x").status == 404
    assert text_of(server, "/one/", "other.example") == "one 1"
    assert text_of(server, "/third/", "other.example") == "one 1"
    assert ask(server, "/two/", "other.example").status == 404


def test_any_number(serve_services, tmp_path):
    text = "".join(web_service(f"s{i}", File=tmp_path / "services" / "one.duda") for i in range(40))
    server = serve_services({"one": counter("one")}, text=text)
    assert [text_of(server, f"/s{i}/") for i in range(40)] == ["one 1"] * 40


def test_services_do_not_see_each_other(serve_services):
    """They have functions and globals of the same names, and not the same values."""
    server = serve_services({name: counter(name) for name in ("a", "b", "c")})
    said = [text_of(server, f"/{name}/") for _ in range(3) for name in "abc"]
    assert said == [f"{name} {i}" for i in (1, 2, 3) for name in "abc"]


def test_disabled(serve_services):
    sources = {"on": counter("on"), "off": counter("off", main="abort();")}
    server = serve_services(sources, keys={"off": {"Enabled": "Off"}}, text=web_service("off", Enabled="Off"))
    assert text_of(server, "/on/") == "on 1"
    assert ask(server, "/off/").status == 404


def test_an_object_knows_its_section(serve_services, tmp_path):
    for name in ("html", "conf", "data", "logs"):
        (tmp_path / name).mkdir()
    show = """response->printf(dr, "%s|%s|%s|%s|%s|%s", self->name.data, self->url.data, self->docroot.data,
                     self->confdir.data, self->datadir.data, self->logdir.data); response->end(dr, NULL);"""
    source = counter("a").replace('response->printf(dr, "%s %d", get_title(), ++count);', show + "return;")
    keys = {"DocumentRoot": tmp_path / "html", "ConfDir": tmp_path / "conf", "DataDir": f"{tmp_path}/data/"}
    server = serve_services({"a": source, "b": source}, keys={"a": {**keys, "LogDir": tmp_path / "logs"}})
    folders = "|".join(f"{tmp_path}/{name}/" for name in ("html", "conf", "data", "logs"))
    assert text_of(server, "/a/") == f"a|/a|{folders}"
    assert text_of(server, "/b/") == "b|/b||||"


WRONG = [
    (web_service("a") + web_service("a"), r'6:\d+: error: this host has a service "a" already'),
    (web_service("a", Root="On") + web_service("b", Root="On"), r'8:\d+: error: the service "a" is the root'),
    (web_service("a/b"), r'4:\d+: error: "a/b" cannot be the name of a service: a name has letters'),
    (web_service('""'), r'4:\d+: error: "" cannot be the name of a service: it is empty'),
    (web_service(".a"), r'4:\d+: error: ".a" cannot be the name'),
    (web_service("a" * 65), r"4:\d+: error: .* longer than 64 bytes"),
    (web_service("ddr"), r"4:\d+: error: .*/ddr is the DocumentRoot of \[DUDA\]"),
    (web_service("a", DocumentRoot="nowhere"), r"5:\d+: error: DocumentRoot \S+/nowhere: No such file or directory"),
    (web_service("a", ConfDir="../monkey.conf"), r"5:\d+: error: ConfDir \S+: Not a directory"),
    (web_service("a", DataDir="nowhere"), r"5:\d+: error: DataDir \S+: No such file or directory"),
    (web_service("a", LogDir="nowhere"), r"5:\d+: error: LogDir \S+: No such file or directory"),
    (web_service("a", Fil="x"), r'5:\d+: error: .*"Fil".*File'),
    ("[WEB_SERVICE]\n    Root On\n", r"3:\d+: error: .*Name"),
]


@pytest.mark.parametrize("text, sentence", WRONG, ids=range(len(WRONG)))
def test_wrong_sections(tmp_path, site_root, text, sentence):
    files = service_config(tmp_path, [], text=text.replace("nowhere", f"{tmp_path}/nowhere"))
    files["plugins/duda/duda.conf"] += f"    DocumentRoot {tmp_path}\n"
    files["sites/default"] = files["sites/default"].replace("ServerName localhost", f"DocumentRoot {site_root}")
    result = run("-c", write_config(tmp_path / "conf", site_root, files=files), "-t")
    assert result.returncode == 1
    assert re.search(r"sites/default:" + sentence, result.stderr), result.stderr


def test_a_folder_of_packages_that_is_none(tmp_path, site_root):
    build_service(tmp_path / "services", "a", counter("a"))
    files = service_config(tmp_path / "services", ["a"], site_root)
    files["plugins/duda/duda.conf"] += f"    PackagesRoot {tmp_path}/nowhere\n"
    result = run("-c", write_config(tmp_path / "conf", site_root, files=files), "-t")
    assert result.returncode == 0
    assert re.search(r"duda.conf:4:\d+: warning: PackagesRoot \S+/nowhere: No such file", result.stderr), result.stderr


def test_nothing_says_where_it_is(tmp_path, site_root):
    files = service_config(tmp_path, ["a"], site_root)
    files["plugins/duda/duda.conf"] = "[DUDA]\n"
    result = run("-c", write_config(tmp_path / "conf", site_root, files=files), "-t")
    assert result.returncode == 1
    assert re.search(r'default:5:\d+: error: nothing says where the service "a" is: set File', result.stderr)


def test_a_section_loads_the_plugin(serve_services, tmp_path):
    """Without plugins.load, and without [DUDA]."""
    path = build_service(tmp_path, "a", counter("a"))
    server = serve_services({}, text=web_service("a", File=path), files={"plugins/duda/duda.conf": ""})
    assert text_of(server, "/a/") == "a 1"


# ── services that cannot be used ──


UNKNOWN_OBJECT = """
struct unknown { int (*call)(void); };
DUDA_OBJECT(struct unknown, unknown)
"""
LARGER_OBJECT = """
struct larger { void *functions[500]; };
DUDA_OBJECT_AS(struct larger, larger, "router")
"""
OTHER_ABI = """
#define DUDA_FRAMEWORK
#include <duda/duda.h>
extern const struct duda_service_info duda_service_info;
const struct duda_service_info duda_service_info = {77, sizeof(struct duda_service_info), 3, NULL, NULL};
int duda_main(void) { return 0; }
"""
BROKEN = {
    "missing": (None, "No such file or directory"),
    "folder": (os.mkdir, "Is a directory"),
    "fifo": (os.mkfifo, "not a regular file"),
    "empty": (lambda path: path.write_text(""), "file too short"),
    "text": (lambda path: path.write_text("no shared object at all\n" * 1000), "invalid ELF header"),
    "large": (lambda path: path.touch() or os.truncate(path, 3 << 30), "it is larger than 1 GB"),
    "machine": ("", "it was compiled for another processor"),
    "cut": (lambda path: os.truncate(path, 4096), "the file is incomplete: copy it again"),
    "no-main": (counter("x").replace("int duda_main(void)", "int duda_mian(void); int duda_mian(void)"), r"duda_main"),
    "abi": (OTHER_ABI, "for another version: compile it"),
    "symbol": (counter("x", extra="int nobody_has(void);", main="nobody_has();"), "undefined symbol: nobody_has"),
    "object": (counter("x", extra=UNKNOWN_OBJECT, main="unknown->call();"), 'it needs the object "unknown"'),
    "larger": (counter("x", extra=LARGER_OBJECT, main="if (!larger) abort();"), 'whose object "router" has more'),
    "returns": (counter("x", main="return 5;"), r"duda_main\(\) has returned 5"),
    "plain": ("int x;", "it is no service: it must include <duda/duda.h>"),
}


def make_broken(folder, what):
    """Makes folder/x.duda so, and returns the reason that the server gives."""
    how, reason = BROKEN[what]
    if what == "machine":
        path = build_service(folder, "x", counter("x"))
        head = bytearray(path.read_bytes())
        head[18:20] = b"\x16\x00"  # e_machine: S/390
        path.write_bytes(head)
    elif isinstance(how, str):
        build_service(folder, "x", how)
    elif what == "cut":
        how(build_service(folder, "x", counter("x")))
    elif how:
        folder.mkdir(exist_ok=True)
        how(folder / "x.duda")
    return reason


@pytest.mark.parametrize("what", BROKEN)
def test_broken(serve_services, tmp_path, what):
    """One sentence, also of --test; the others run, and the URLs get the host's page for 503."""
    reason = make_broken(tmp_path / "services", what)
    text = web_service("x") + section("ERROR_PAGES", {"503": '"Soon again."'})
    server = serve_services({"good": counter("good")}, text=text)
    sentence = rf'sites/default:7:\d+: warning: the service "x" cannot be used; its URLs get the status 503: .*{reason}'
    server.wait_log(sentence)
    assert len(re.findall('service "x"', server.log)) == 1
    for target in ("/x", "/x/", "/x/y/z"):
        answer = ask(server, target)
        assert (answer.status, answer.body) == (503, b"Soon again.")
    assert text_of(server, "/good/") == "good 1"
    assert ask(server, "/xy").status == 404
    result = run("-c", server.conf, "-t")
    assert result.returncode == 0 and bool(re.search(sentence, result.stderr)) == (what != "returns"), result.stderr


def test_a_check_does_not_run_services(tmp_path, site_root):
    build_service(tmp_path / "services", "a", counter("a", main=note(tmp_path, "main"), end=note(tmp_path, "exit")))
    config = service_config(tmp_path / "services", ["a"], site_root)
    assert run("-c", write_config(tmp_path / "conf", site_root, files=config), "-t").returncode == 0
    assert not read_events(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("key", ["DocumentRoot", "ConfDir", "DataDir", "LogDir"])
@pytest.mark.parametrize("mode", [0o644, 0o600], ids=["usable", "unusable"])
def test_a_folder_that_only_root_can_search(key, mode):
    """Is an error for another user, also with a service that this user cannot load."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        place = pathlib.Path(folder)
        build_service(place / "services", "a", counter("a")).chmod(mode)
        (place / "closed").mkdir(mode=0o700)
        config = service_config(place / "services", {"a": {key: place / "closed"}}, "/")
        conf = write_config(place / "conf", "/", files=config)
        assert run("-c", conf, "-t").returncode == 0
        result = run("-c", conf, "-t", user=65534)
    assert result.returncode == 1, result.stderr
    assert re.search(r"default:6:\d+: error: .*/closed/?: Permission denied", result.stderr), result.stderr


def test_a_broken_root(serve_services, tmp_path):
    make_broken(tmp_path / "services", "missing")
    server = serve_services({"good": counter("good")}, text=web_service("x", Root="On"))
    assert ask(server, "/hello.txt").status == ask(server, "/x").status == 503
    assert text_of(server, "/good/") == "good 1"


# ── files ──

PAGES = {
    "index.html": b"<p>index of the service</p>\n",
    "a.txt": b"0123456789",
    "style.css": b"p {}\n",
    "style.css.gz": gzip.compress(b"p {}\n"),
    "deep/index.html": b"deep\n",
    "404.html": b"nothing here\n",
}


@pytest.fixture
def pages(tmp_path):
    return populate(tmp_path / "html", PAGES)


def test_files_below_a_service(serve_services, pages):
    os.symlink("/etc/hostname", pages / "link")
    server = serve_services({"a": counter("a")}, keys={"a": {"DocumentRoot": pages}}, host={"Precompressed": "gzip"})
    assert text_of(server, "/a/") == "a 1"  # a route comes first
    answer = ask(server, "/a/a.txt")
    assert answer.body == b"0123456789" and answer["Content-Type"].startswith("text/plain") and answer["ETag"]
    with server.connect() as client:
        part = client.ask("/a/a.txt", "Range: bytes=2-4")
        assert (part.status, part.body) == (206, b"234")
        packed = client.ask("/a/style.css", "Accept-Encoding: gzip")
        assert packed["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == b"p {}\n"
        assert client.ask("/a/a.txt", f"If-None-Match: {answer['ETag']}").status == 304
    assert ask(server, "/a/deep").status == 301
    assert ask(server, "/a/deep/").body == b"deep\n"
    assert ask(server, "/a/link").status in (403, 404)  # SymLink is Off
    assert ask(server, "/a/none").status == ask(server, "/a/../monkey.conf").status == 404
    assert ask(server, "/hello.txt").status == 200


def test_files_of_a_root_service(serve_services, pages):
    server = serve_services({"a": counter("a"), "b": counter("b")}, keys={"a": {"DocumentRoot": pages, "Root": "On"}})
    assert text_of(server, "/") == "a 1"
    assert text_of(server, "/b/") == "b 1"
    assert ask(server, "/index.html").body == PAGES["index.html"]
    assert ask(server, "/hello.txt").status == 404  # the folder takes the place of the host's DocumentRoot


def test_try_files(serve_services, pages):
    host = {"TryFiles": "$path /index.html"}
    server = serve_services({"a": counter("a")}, keys={"a": {"DocumentRoot": pages}}, host=host)
    assert ask(server, "/a/a.txt").body == PAGES["a.txt"]
    assert ask(server, "/a/page/of/the/application").body == PAGES["index.html"]


def test_common_folder(tmp_path, serve, site_root):
    """DocumentRoot of [DUDA], for the hosts with services."""
    build_service(tmp_path / "services", "a", counter("a"))
    common = populate(tmp_path / "common", {"x.js": b"1;\n"})
    config = service_config(tmp_path / "services", ["a"], site_root)
    config["plugins/duda/duda.conf"] += f"    DocumentRoot {common}\n"
    config["sites/plain"] = section("HOST", {"ServerName": "plain.example", "DocumentRoot": site_root})
    server = serve(config=config)
    assert ask(server, "/ddr/x.js").body == b"1;\n"
    assert ask(server, "/ddr/x.js", "plain.example").status == 404


def test_the_order_of_plugins(tmp_path, site_root, pages):
    build_service(tmp_path / "services", "a", counter("a"))
    load = section("PLUGINS", {"Load": ["liana", "static", "duda"]})
    config = service_config(tmp_path / "services", {"a": {"DocumentRoot": pages}}, site_root)
    config["plugins.load"] = load
    result = run("-c", write_config(tmp_path / "conf", site_root, files=config), "-t")
    assert result.returncode == 1
    assert 'the plugin "duda" must come before "static" in plugins.load' in result.stderr


# ── reload ──


def test_an_unchanged_service_continues(serve_services, tmp_path):
    """Also if its file has another date, and if the rest of the configuration changes."""
    main, end = note(tmp_path, "main"), note(tmp_path, "exit")
    server = serve_services({"a": counter("a", main=main, end=end)}, {"Workers": 2})
    assert [text_of(server, "/a/") for _ in range(2)] == ["a 1", "a 2"]
    os.utime(server.services / "a.duda", (1, 1))
    with open(server.conf / "sites" / "default", "a") as file:
        file.write(section("ERROR_PAGES", {"404": '"none"'}))
    reload(server)
    assert text_of(server, "/a/") == "a 3"
    assert ask(server, "/none").body == b"none"
    assert read_events(tmp_path) == ["a main"]
    server.stop()
    assert read_events(tmp_path) == ["a main", "a exit"]


def test_a_changed_service_is_replaced(serve_services, tmp_path):
    main, end = note(tmp_path, "main"), note(tmp_path, "exit")
    server = serve_services({"a": counter("a1", main=main, end=end), "b": counter("b")}, {"Workers": 2})
    assert [text_of(server, "/a/"), text_of(server, "/b/")] == ["a1 1", "b 1"]
    build_service(server.services, "a", counter("a2", main=main, end=end))
    assert text_of(server, "/a/") == "a1 2"  # not before the reload
    reload(server)
    assert [text_of(server, "/a/"), text_of(server, "/b/")] == ["a2 1", "b 2"]
    await_true(lambda: read_events(tmp_path) == ["a1 main", "a2 main", "a1 exit"])


def test_a_file_that_is_overwritten(serve_services, tmp_path):
    """In place, which changes the bytes of a file that is in use."""
    server = serve_services({"a": counter("a1")})
    new = build_service(tmp_path / "new", "a", counter("a2")).read_bytes()
    path = server.services / "a.duda"
    for size in (len(new) // 2, 0, len(new)):
        path.write_bytes(new[:size])
        assert text_of(server, "/a/").startswith("a1 ")
    reload(server)
    assert text_of(server, "/a/") == "a2 1"


def test_a_changed_section_begins_again(serve_services, tmp_path):
    """A section that is changed back, too: the first instance has ended, or ends."""
    server = serve_services({"a": counter("a")})
    (tmp_path / "data").mkdir()
    path = server.conf / "sites" / "default"
    text = path.read_text()
    for version in (text + f"    DataDir {tmp_path}/data\n", text):
        assert text_of(server, "/a/") == "a 1"
        path.write_text(version)
        reload(server)
    assert text_of(server, "/a/") == "a 1"


def test_a_removed_service_ends(serve_services, tmp_path):
    server = serve_services({"a": counter("a", end=note(tmp_path, "exit")), "b": counter("b")})
    path = server.conf / "sites" / "default"
    path.write_text(path.read_text().replace(web_service("a"), ""))
    reload(server)
    assert ask(server, "/a/").status == 404 and text_of(server, "/b/") == "b 1"
    await_true(lambda: read_events(tmp_path) == ["a exit"])


@pytest.mark.parametrize("what", BROKEN)
def test_a_new_version_that_cannot_be_used(serve_services, tmp_path, what):
    """The version that runs stays, with its state, until there is a good one."""
    server = serve_services({"x": counter("x"), "b": counter("b")})
    assert text_of(server, "/x/") == "x 1"
    (server.services / "x.duda").unlink()
    reason = make_broken(server.services, what)
    for said in ("x 2", "x 3"):
        lines = reload(server)
        logged = [line for line in lines if 'the service "x" cannot be used, and its last version stays in use' in line]
        assert len(logged) == 1 and re.search(reason, logged[0]), lines
        assert text_of(server, "/x/") == said
    assert text_of(server, "/b/") == "b 1"
    if (server.services / "x.duda").is_dir():
        (server.services / "x.duda").rmdir()
    build_service(server.services, "x", counter("y"))
    assert not [line for line in reload(server) if "cannot be used" in line]
    assert text_of(server, "/x/") == "y 1"


def test_a_reload_that_fails(serve_services, tmp_path):
    """The instances that run are left alone; new ones end, if they have begun at all."""
    main, end = note(tmp_path, "main"), note(tmp_path, "exit")
    server = serve_services({"a": counter("a1", main=main, end=end)})
    build_service(server.services, "a", counter("a2", main=main, end=end))
    (server.conf / "monkey.conf").write_text((server.conf / "monkey.conf").read_text() + "    Listen 1.2.3.4:1\n")
    assert text_of(server, "/a/") == "a1 1"
    reload(server, accepted=False)
    assert text_of(server, "/a/") == "a1 2"
    events = read_events(tmp_path)
    assert events[:1] == ["a1 main"] and events.count("a2 main") == events.count("a2 exit") and "a1 exit" not in events


# A service with a request that does not end by itself.
STREAM = """
static void begin(duda_request_t *dr)
{
    (void)dr;
}
"""


def stream(name, folder):
    """Adds /name/wait, which is never answered."""
    return counter(name, STREAM, main='if (!router->get("/wait", begin)) return -1;', end=note(folder, "exit"))


def test_requests_end_under_the_old_version(serve_services, tmp_path):
    """Those that do not end are cut after ShutdownTimeout; then the old version ends."""
    settings = {"ShutdownTimeout": "400ms", "HandlerTimeout": "1m", "KeepAliveTimeout": "60s"}
    server = serve_services({"a": stream("a1", tmp_path)}, settings)
    waiting = [server.connect() for _ in range(3)]
    for client in waiting:
        client.send(request("/a/wait"))
    other = server.connect()
    assert other.ask("/a/").body == b"a1 1"
    build_service(server.services, "a", stream("a2", tmp_path))
    began = time.monotonic()
    reload(server)
    assert other.ask("/a/").body == b"a2 1"
    assert read_events(tmp_path) == [] or time.monotonic() - began > 0.35
    waiting.pop().close()
    for client in waiting:
        assert client.rest() == b""
    await_true(lambda: read_events(tmp_path) == ["a1 exit"])
    assert other.ask("/a/").body == b"a2 2"


def test_requests_of_an_unchanged_service_stay(serve_services, tmp_path):
    server = serve_services({"a": stream("a", tmp_path)}, {"ShutdownTimeout": "50ms", "HandlerTimeout": "700ms"})
    waiting = server.connect()
    waiting.send(request("/a/wait"))
    for _ in range(3):
        assert text_of(server, "/a/")
        reload(server)
    assert waiting.response().status == 503  # HandlerTimeout
    assert text_of(server, "/a/") == "a 4"


class Askers(Clients):
    """Clients that ask services without a pause; each must be answered by one."""

    def __init__(self, server, targets, may_close=False):
        self.server, self.targets, self.may_close, self.answers = server, targets, may_close, []
        super().__init__([self.keep, self.renew])

    def check(self, target, client):
        answer = client.ask(target)
        said = f"{answer.status} {answer.body.decode()}"
        assert re.fullmatch(r"200 \w+ \d+", said), said
        self.answers.append((target, said))

    def keep(self):
        """An idle connection may be closed when its worker ends."""
        with Client(self.server.addresses[0]) as client:
            for i, target in enumerate(self.targets * 50):
                try:
                    self.check(target, client)
                except (ProtocolError, ConnectionError):
                    if i == 0 or not self.may_close:
                        raise
                    return

    def renew(self):
        for target in self.targets:
            with Client(self.server.addresses[0]) as client:
                self.check(target, client)


def read_maps(server, name):
    """The objects of a service that are mapped, by their inodes."""
    lines = pathlib.Path(f"/proc/{server.pid}/maps").read_text().splitlines()
    return {line.split()[4] for line in lines if f"/memfd:{name} " in line}


def count_maps(server):
    return len(pathlib.Path(f"/proc/{server.pid}/maps").read_text().splitlines())


@pytest.mark.concurrent
def test_a_hundred_swaps(serve_services, tmp_path):
    """Under load nothing is lost, the unchanged service continues, and nothing is left of the versions before."""
    settings = {"Workers": 2, "MaxKeepAliveRequest": 1000000, "KeepAliveTimeout": "60s"}
    server = serve_services({"a": counter("a0"), "b": counter("b")}, settings)
    versions = [build_service(tmp_path / f"v{i}", "a", counter(f"a{i}")).read_bytes() for i in range(3)]
    with Askers(server, ["/a/", "/b/"]) as askers:
        for i in range(100):
            (server.services / "new").write_bytes(versions[i % 3])
            (server.services / "new").rename(server.services / "a.duda")
            reload(server)
            if i == 20:
                memory, maps = server.memory_kb(), count_maps(server)
    assert not askers.errors
    counts = [int(said.split()[2]) for target, said in askers.answers if target == "/b/"]
    assert text_of(server, "/b/") == f"b {len(counts) + 1}" and sorted(set(counts)) == list(range(1, len(counts) + 1))
    assert text_of(server, "/a/").startswith("a0 ")
    await_true(lambda: len(read_maps(server, "a")) == len(read_maps(server, "b")) == 1)
    assert count_maps(server) < maps + 40
    assert build.SANITIZED or server.memory_kb() < memory + 2000


@pytest.mark.concurrent
def test_a_storm_of_reloads(serve_services, tmp_path):
    """Versions, sections, workers and schedulers change at random, while requests run that only a cut ends."""
    chance = random.Random(7)
    settings = {"Workers": 2, "ShutdownTimeout": "30ms", "HandlerTimeout": "1m"}
    server = serve_services({name: stream(name, tmp_path) for name in "abc"}, settings)
    sites, main = server.conf / "sites" / "default", server.conf / "monkey.conf"
    (tmp_path / "data").mkdir()
    text, plain = sites.read_text(), main.read_text()
    versions = [build_service(tmp_path / f"v{i}", "a", stream(f"a{i}", tmp_path)) for i in range(2)]
    waiting = []
    with Askers(server, ["/a/", "/b/"], may_close=True) as askers:
        for _ in range(40):
            shutil.copy(chance.choice(versions), server.services / "new")
            (server.services / "new").rename(server.services / "a.duda")
            section_b = web_service("b", **({"DataDir": tmp_path / "data"} if chance.random() < 0.5 else {}))
            section_c = chance.choice([web_service("c"), web_service("c", Enabled="Off"), web_service("missing"), ""])
            sites.write_text(text.replace(web_service("b"), section_b).replace(web_service("c"), section_c))
            workers, scheduler = chance.choice([1, 2, 3]), chance.choice(["reuseport", "fair"])
            main.write_text(plain.replace("Workers 2", f"Workers {workers}") + f"    Scheduler {scheduler}\n")
            client = server.connect()
            client.send(request(f"/{chance.choice('abc')}/wait"))
            waiting.append(client)
            reload(server)
    assert not askers.errors
    sites.write_text(section("HOST", {"DocumentRoot": tmp_path}))
    main.write_text(plain)
    reload(server)
    server.baseline += 1  # a listener of the third worker stays for the next one
    for client in waiting:
        with contextlib.suppress(ConnectionResetError):
            assert not client.fill() or client.head().status in (404, 503)  # cut, or there was no such service
    await_true(lambda: not any(read_maps(server, name) for name in "abc"))


# ── services that block or crash ──


def test_a_service_that_blocks(serve_services, tmp_path):
    """Logged once with its name and function, and again when it continues."""
    wait = f'''
void wait_for_file(duda_request_t *dr);
void wait_for_file(duda_request_t *dr)
{{
    while (access("{tmp_path}/go", F_OK) != 0)
        usleep(1000);
    response->end(dr, NULL);
}}
'''
    source = counter("a", wait, main='if (!router->get("/wait", wait_for_file)) return -1;')
    server = serve_services({"a": source, "b": counter("b")})
    client = server.connect()
    client.send(request("/a/wait"))
    server.wait_log('the service "a" blocks worker 0 for more than 1 s in ' + function_of("a", "wait_for_file") + ":")
    (tmp_path / "go").touch()
    assert client.response().status == 200
    server.wait_log(r'the service "a" has blocked worker 0 for \d+\.\d s, and it continues now')
    assert server.log.count('the service "a" blocks') == 1 and '"b" blocks' not in server.log


CRASHES = {
    "SIGSEGV": "*(volatile int *)16 = 1;",
    "SIGFPE": "volatile int zero = 0; zero = 77 / zero; (void)zero;",
    "SIGILL": "__builtin_trap();",
    "SIGABRT": "abort();",
    "SIGBUS": "raise(SIGBUS);",
}
# Those of ASan come first. It cannot be loaded with -fsanitize=undefined in a service that shall crash.
NO_HANDLERS = {"ASAN_OPTIONS": "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:detect_leaks=0"}
UNCHECKED = '__attribute__((no_sanitize("undefined", "address", "thread")))'


def crashing(code, where):
    """A service with the code in a function `crash`, which is called in the handler of /x/crash, or as `where` says."""
    extra = f"""
#include <pthread.h>
#include <signal.h>
{UNCHECKED} void *crash(void *unused);
{UNCHECKED} void *crash(void *unused)
{{
    {code}
    return unused;
}}

static _Atomic bool asked;

static void *wait_and_crash(void *unused)
{{
    while (!asked)
        usleep(1000);
    return crash(unused);
}}

static void handle(duda_request_t *dr)
{{
    pthread_t thread;
    asked = true;
    if (!strcmp("{where}", "spawn"))
        return;
    if (!strcmp("{where}", "thread") && pthread_create(&thread, NULL, crash, NULL) == 0)
        pthread_join(thread, NULL);
    crash(dr);
}}
"""
    main = "crash(NULL);\n" if where == "main" else ""
    main += 'if (!strcmp("%s", "spawn")) worker->spawn(wait_and_crash, NULL);\n' % where
    return counter("x", extra, main=main + 'if (!router->get("/crash", handle)) return -1;')


@pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")
@pytest.mark.parametrize(
    "name, where", [*((name, "worker") for name in CRASHES), ("SIGSEGV", "thread"), ("SIGSEGV", "spawn")]
)
def test_a_crash(serve_services, name, where):
    server = serve_services({"x": crashing(CRASHES[name], where), "b": counter("b")}, {"Workers": 1}, env=NO_HANDLERS)
    server.stopping = True
    assert text_of(server, "/b/") == "b 1"
    with server.connect() as client:
        client.send(request("/x/crash"))
        assert server.wait() == -getattr(signal, name)
    place = " in worker 0" if where == "worker" else ""
    line = rf'error the service "x" has crashed: {name}(?: at address 0x[0-9a-f]+)?{place}$'
    assert re.search(line, server.log, re.M), server.log
    assert re.search(r"error     #\d " + function_of("x", "crash") + "$", server.log, re.M), server.log
    assert "handle_crash" not in server.log and (where != "worker" or "duda.so+0x" in server.log)


@pytest.mark.skipif(build.SANITIZED, reason="sanitizers report it themselves")
def test_a_crash_that_a_service_causes_in_the_framework(serve_services):
    server = serve_services({"x": crashing('msg->info("%s", (const char *)16);', "worker")})
    server.stopping = True
    with server.connect() as client:
        client.send(request("/x/crash"))
        assert server.wait() == -signal.SIGSEGV
    assert 'error the service "x" has crashed: SIGSEGV' in server.log
    assert re.search(r"#\d+ " + function_of("x", "crash") + "$", server.log, re.M), server.log


@pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")
@pytest.mark.parametrize("where", ["worker", "spawn"])
def test_a_stack_that_overflows(serve_services, where):
    code = "volatile char data[4096]; data[0] = 1; return data[0] ? crash((void *)&data[1]) : unused;"
    server = serve_services({"x": crashing(code, where)}, env=NO_HANDLERS)
    server.stopping = True
    with server.connect() as client:
        client.send(request("/x/crash"))
        assert server.wait() == -signal.SIGSEGV
    assert re.search(r'error the service "x" has crashed: SIGSEGV', server.log), server.log


@pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")
def test_a_crash_at_the_start(tmp_path, site_root):
    build_service(tmp_path / "services", "x", crashing(CRASHES["SIGSEGV"], "main"))
    config = service_config(tmp_path / "services", ["x"], site_root)
    environment = {**build.environment(), **NO_HANDLERS}
    result = run("-c", write_config(tmp_path / "conf", site_root, files=config), env=environment)
    assert result.returncode == -signal.SIGSEGV
    assert re.search(r'^the service "x" has crashed: SIGSEGV at address 0x10$', result.stderr, re.M), result.stderr


@pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")
@pytest.mark.single_protocol  # asks how a connection ends
def test_the_supervisor_starts_the_server_again(serve_services):
    server = serve_services({"x": crashing(CRASHES["SIGABRT"], "worker")}, {"Supervisor": "On"}, env=NO_HANDLERS)
    for n in (1, 2):
        server.wait_log("supervisor: process \\d+ serves", n)  # otherwise it has not started properly
        with server.connect() as client:
            client.send(request("/x/crash"))
            assert client.rest() == b""
        server.wait_log('the service "x" has crashed: SIGABRT in worker 0', n)
        server.wait_log("supervisor: process \\d+ serves", n + 1)
        server.baseline = server.descriptors() if n == 1 else server.baseline
    assert text_of(server, "/x/") == "x 1"


@pytest.mark.skipif(build.PRESET == "tsan", reason="ThreadSanitizer has handlers of its own")
@pytest.mark.single_protocol  # asks how a connection ends
def test_crashes_under_load_refuse_no_connection(serve_services):
    """What was under way is lost, since the process has ended; new connections wait for the next one."""
    server = serve_services({"x": crashing(CRASHES["SIGABRT"], "worker")}, {"Supervisor": "On"}, env=NO_HANDLERS)
    served, lost = [], []

    def ask_once():
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
            try:
                sock.sendall(request("/x/", "Connection: close"))
                (served if sock.recv(4096) else lost).append(1)
            except (ConnectionResetError, BrokenPipeError):
                lost.append(1)

    for n in (1, 2, 3):
        server.wait_log("supervisor: process \\d+ serves", n)
        with Clients([ask_once] * 4) as clients:
            before = len(served)
            await_true(lambda: len(served) > before + 50)
            with server.connect() as client:
                client.send(request("/x/crash"))
                client.rest()
            server.wait_log("supervisor: process \\d+ serves", n + 1)
            before = len(served)
            await_true(lambda: len(served) > before + 50)
        assert not clients.errors
        server.baseline = server.descriptors() if n == 1 else server.baseline


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="no plugin dirlisting")
def test_listings_leave_out_what_routes_take(serve_services, tmp_path):
    source = f"""{HEAD}
static void respond(duda_request_t *dr)
{{
    response->printf(dr, "made");
    response->end(dr, NULL);
}}
DUDA_REGISTER("tests", "files");
int duda_main(void)
{{
    return router->get("/taken.txt", respond) && router->post("/upload.txt", respond) ? 0 : -1;
}}
"""
    files = populate(tmp_path / "html", {name: b"file" for name in ("free.txt", "taken.txt", "upload.txt")})
    root = populate(tmp_path / "root", {"plain/a.txt": b"a", "web/hidden.txt": b"hidden"})
    server = serve_services(
        {"web": source}, keys={"web": {"DocumentRoot": files}}, text=section("DIRLISTING", {}), root=root
    )

    def names(path):
        with server.connect() as client:
            answer = client.ask(path, "Accept: application/json")
        return [entry["name"] for entry in json.loads(answer.body)["entries"]]

    assert ask(server, "/web/taken.txt").body == b"made"
    assert names("/web/") == ["free.txt", "upload.txt"]
    assert names("/") == ["plain", "web"]
