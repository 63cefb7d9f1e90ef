# SPDX-License-Identifier: Apache-2.0
"""Services of the original API, levels 0 to 2, as tests/duda/old has them: compiled as dudac does, and asked."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import threading

import pytest

from harness import build
from harness.content import populate
from harness.server import await_true, section
from harness.services import INCLUDE, build_old_service, cached, level, needs_duda
from harness.ways import WAYS

pytestmark = needs_duda

SOURCES = build.TOP / "tests/duda/old"


# Folders with a Makefile.in, which dudac builds. The others are built here: a file, or a folder of files.
FOLDERS = sorted({path.relative_to(SOURCES).parts[0] for path in SOURCES.rglob("Makefile.in")})


def read_sources(name):
    """The files of a service, name to text: NAME.c, or those of the folder NAME."""
    folder = SOURCES / name
    files = sorted(folder.iterdir()) if folder.is_dir() else [SOURCES / f"{name}.c"]
    return {file.name: file.read_text() for file in files}


def build_old(folder, name, *, any_level=False, number=None):
    """Compiles a service for a level: `number`, or the one that its sources have, or none."""
    files = read_sources(name)
    return build_old_service(folder, name, files.pop(f"{name}.c"), files=files, any_level=any_level, number=number)


def make_folder(path):
    path.mkdir()
    return path


@pytest.fixture
def serve_all(serve_services, tmp_path):
    """Starts a server with several old services, name to the keys of each; {path} in a key is the test's folder."""

    def start(rows, workers=1):
        for name in rows:
            build_old(tmp_path / "services", name)
        keys = {name: {key: value.format(path=tmp_path) for key, value in row.items()} for name, row in rows.items()}
        web = "".join(section("WEB_SERVICE", {"Name": name, **row}) for name, row in keys.items())
        return serve_services({}, {"Workers": workers}, text=web)

    return start


@pytest.fixture
def serve_old(serve_services, tmp_path):
    """Starts a server with one old service: serve_old("maps", any_level=True, LogDir=tmp_path)."""

    def start(name, *, any_level=False, number=None, packages=None, workers=1, way=WAYS["h1"], **keys):
        services = tmp_path / "services"
        build_old(services, name, any_level=any_level, number=number)
        root = {"PackagesRoot": packages} if packages else {}
        conf = section("DUDA", {"ServicesRoot": services, **root})
        web = section("WEB_SERVICE", {"Name": name, **keys})
        files = {"plugins/duda/duda.conf": conf}
        return way.start(serve_services, tmp_path, {}, {"Workers": workers}, text=web, files=files)

    return start


def ask(server, target, *fields, **rest):
    with server.connect() as client:
        return client.ask(target, *fields, host="localhost", **rest)


def text_of(server, target, *fields, status=200, **rest):
    answer = ask(server, target, *fields, **rest)
    assert answer.status == status, answer
    return answer.body.decode()


# ── the level ──


def old(code):
    return f'#include "webservice.h"\n{code}\n'


@pytest.mark.parametrize(
    "expected, sources",
    [
        (3, ["#include <duda/duda.h>\n"]),
        (3, ["int main(void);\n"]),
        (None, [old("map->static_add(path, name);")]),
        (None, [old("event->add(fd, DUDA_EVENT_READ, LEVEL, on_read, NULL, NULL, NULL, NULL, data);")]),
        (None, [old("event->add(fd, get_mode(1, 2), LEVEL, on_read, NULL, NULL, NULL, NULL, dr);")]),
        (0, [old("event->add(fd, dr, DUDA_EVENT_READ, LEVEL, on_read, NULL, NULL, NULL, NULL);")]),
        (0, [old("event->add(fd, conn->request, MK_EPOLL_RW, LEVEL, on_read, NULL, NULL, NULL, NULL);")]),
        (0, ["int n;", old("websocket->handshake(dr);")]),
        (0, [old("websocket->handshake(dr, on_message, NULL, NULL, on_close, NULL); param->get(dr, 0);")]),
        (0, [old("global->init(key, make);")]),
        (None, [old("global->init(&key, make, NULL);")]),
        (0, [old("params->get(dr, first);")]),
        (0, [old('websocket->broadcast(wr, "a, b", 3, WS_OPCODE_TEXT);')]),
        (0, [old("websocket->broadcast_all(data, len, WS_OPCODE_TEXT);")]),
        (1, [old("websocket->handshake(dr, -1);")]),
        (1, [old("websocket->broadcast(wr, f(a, b), 3, WS_OPCODE_TEXT, 0);")]),
        (1, [old("param->get(dr, 0); dthread->create(f, NULL);")]),
        (2, [old('param->get(dr, "id");')]),
        (2, [old("router -> map (pattern, cb);")]),
        (2, [old("loop = event->loop_create(1);")]),
        (None, [old('router->map("/", cb); param->get(dr, 0);')]),
        (None, [old('/* router->map("/", cb); */ // param->get(dr, 0)\nprintf("router->map(");')]),
    ],
)
def test_level(expected, sources):
    assert level.detect_level(sources) == expected


def test_levels_of_sources():
    expected = {"chat": 0, "events0": 0, "packages": 1, "rest": 1, "loops": 2, "routes": 2, "both": None, "maps": None}
    assert {name: level.detect_level(read_sources(name).values()) for name in expected} == expected


@pytest.mark.slow
def test_without_level():
    """All of them compile without -DDUDA_API_LEVEL, too."""
    sources = [path for path in SOURCES.rglob("*.c") if path.relative_to(SOURCES).parts[0] not in FOLDERS]
    assert len(sources) > 50
    command = [cached("CMAKE_C_COMPILER", "cc"), *level.compile_flags(None, INCLUDE), "-fsyntax-only", *sources]
    subprocess.run(command, check=True)


# ── levels by all protocols ──


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name, target, text",
    [
        ("events0", "/events0/wait/", "read 0"),
        ("rest", "/rest/numbers/sum/40/2", "42"),
        ("routes", "/routes/user/ada/36", "ada is 36."),
        ("maps", "/maps/applesauce", "apples of a tree"),
        ("query", "/query/get/?key=a%20b+c", "a%20b+c -1"),
        ("bodies", "/bodies/method/", "get"),
        ("events", "/events/ticks/", "tick 0\ntick 1\ntick 2\n"),
        ("headers", "/headers/raw/", "raw"),
    ],
)
def test_levels_by_all_protocols(serve_old, way, name, target, text):
    server = serve_old(name, way=WAYS[way])
    with server.open() as client:
        answer = client.ask(target)
        assert answer.body.decode() == text
        head = client.ask(target, method="HEAD")
        assert (head.status, head.body) == (answer.status, b"")


# ── routes ──


def fields_of(answer):
    """The fields of a response as they look in HTTP/1.1, whatever the protocol is."""
    return "".join(f"{name}: {value}\r\n" for name, value in answer.fields)


def test_maps(serve_old):
    server = serve_old("maps")
    assert text_of(server, "/maps") == text_of(server, "/maps/") == "root"
    assert "content-type: text/plain" in fields_of(ask(server, "/maps/")).lower()
    for target in ("/apples", "/apples/", "/applesauce", "/apples/late"):
        assert text_of(server, "/maps" + target) == "apples of a tree"
    assert text_of(server, "/maps/apples", method="DELETE") == "apples of a tree"
    assert ask(server, "/maps/appl").status == 404
    assert ask(server, "/maps/teapot/").status == 418
    assert text_of(server, "/maps/forgotten/", status=500) == "no status"
    server.wait_log("service maps: the response has no status")


def test_redirect(serve_old):
    server = serve_old("redirect")
    answer = ask(server, "/page")
    assert (answer.status, answer["location"]) == (301, "http://localhost/page/")
    assert text_of(server, "/page/%41/") == "<p>/page/A/</p>"


@pytest.mark.parametrize("any_level", [False, True])
def test_interfaces(serve_old, any_level):
    server = serve_old("rest", any_level=any_level)
    assert text_of(server, "/rest/numbers/sum/40/2") == "42"
    assert text_of(server, "/rest/numbers/sum/-40/+2/") == "-38"
    assert text_of(server, "/rest/numbers/sum/x/2", status=400) == "no numbers, -1 -1"
    assert text_of(server, "/rest/numbers/sum/3/2x", status=400) == "no numbers, 3 -1"
    for target in ("sum", "sum/1", "sum/1/2/3", "sum/1/123456", "none/1/2"):
        assert ask(server, f"/rest/numbers/{target}").status == 404
    assert text_of(server, "/rest/texts/show/a%20b/c") == "2 a b/c 3 none | rest texts show 2 c"


def test_parts_of_the_path(serve_old):
    """They are there for routes by a prefix, too."""
    server = serve_old("fields")
    assert text_of(server, "/fields/") == "[] [] 0"
    assert text_of(server, "/fields/one") == "[one] [] 0"
    assert text_of(server, "/fields/one/two/") == "[one] [two] 0"
    assert text_of(server, "/fields/one/two/3/f%6fur/5?six=6") == "[one] [two] 3 3 four 5"
    assert text_of(server, "/fields" + "/x" * 60) == "[x] [x] 32" + " x" * 32


def test_garbage(serve_old):
    server = serve_old("collected")
    assert text_of(server, "/collected/twice/") == "text 0 0"
    assert text_of(server, "/collected/object/") == "-1 -1"
    server.wait_log(r"service collected: gc->add\(\): the pointer was added before; it is freed once")


def test_channels_that_free(serve_old):
    assert text_of(serve_old("unread"), "/unread/channel/") == "3"


def test_a_file_with_the_header_of_a_package(serve_old):
    server = serve_old("alone")
    assert text_of(server, "/alone/") == "none 1"
    assert text_of(server, "/alone/") == "before 1"


@pytest.mark.parametrize("any_level", [False, True])
def test_routes(serve_old, any_level):
    server = serve_old("routes", any_level=any_level)
    assert text_of(server, "/routes/") == "root\n"
    answer = ask(server, "/routes")
    assert (answer.status, answer["location"]) == (301, "http://localhost/routes/")
    assert text_of(server, "/routes/user/ada/36") == "ada is 36."
    assert text_of(server, "/routes/user/ada/none") == "ada is ageless."
    assert text_of(server, "/routes/user/ada/1/more/segments") == "ada is 1."
    assert text_of(server, "/routes/static/file?query") == "static /routes/static/file"
    assert ask(server, "/routes/user/ada").status == ask(server, "/routes/none/").status == 404
    assert ask(server, "/routes/dashboard")["location"] == "http://localhost/routes/dashboard/"
    assert "<td><code>ANY /user/:name/:age</code><td class=none>0<td class=n>3" in text_of(server, "/routes/dashboard/")


def test_map_and_router(serve_old):
    server = serve_old("both")
    assert text_of(server, "/both/by/number/12") == "number 12 2 0 12"
    assert text_of(server, "/both/name/ada") == "name ada -1 7 none"
    assert text_of(server, "/both/name/36") == "name 36 0 36 none"
    server.wait_log(r"service both: dthread->create\(\): it works only in callbacks of workers; the call did nothing")


def test_coroutines(serve_old):
    """A producer and a consumer, whose numbers begin with 0 and are used again."""
    server = serve_old("coroutines")
    for _ in range(3):
        text = text_of(server, "/coroutines/small")
        numbers = re.match(r"ids (\d) (\d) ready 1 sum 12345 sent 5 ended 2 seen (\d) 3 dead 0 0 running -1$", text)
        assert numbers and {numbers[1], numbers[2]} == {"0", "1"} and numbers[3] == numbers[2], text
    assert " sum 12345 sent 5 ended 2 " in text_of(server, "/coroutines/large")
    broken = text_of(server, "/coroutines/broken")
    assert " sum 0 sent 1 ended 2 " in broken and " dead 0 0 " in broken
    assert text_of(server, "/coroutines/nested") == "oimjpn 1 0 0"
    assert text_of(server, "/coroutines/left") == "left"
    server.wait_log(r"service coroutines: dthread->resume\(\): the dthread has ended, or there was none")
    server.stop()
    assert "service coroutines: 1 dthreads had not ended although the service has: what they hold is lost" in server.log


# ── requests ──


def test_query(serve_old):
    server = serve_old("query")
    assert text_of(server, "/query/all/?a=1&b&c=&=d&e=f=g") in ("3: [1] [] [f=g] end", "4: [1] [] [d] [f=g] end")
    assert text_of(server, "/query/all/") == "0: end"
    assert text_of(server, "/query/get/?key=a%20b+c") == "a%20b+c -1"
    assert text_of(server, "/query/get/?keys=1&key=yes") == "yes 0"
    assert text_of(server, "/query/get/?ke=yes") == "(null) -1"
    assert text_of(server, "/query/uri/a%41?b=c") == "1 15 /query/uri/a%41 /query/uri/aA"
    assert ask(server, "/query/get/?key=a b").status == 400


def test_cookies(serve_old):
    server = serve_old("cookies")
    head = fields_of(ask(server, "/cookies/set/"))
    assert "Set-Cookie: k1=v1; path=/cookies" in head
    assert "expires=Fri, 14 Jul 2017 02:40:00 GMT" in head
    assert text_of(server, "/cookies/get/", "Cookie: xk1=no; k1=v1") == "0 v1 2 0"
    assert text_of(server, "/cookies/get/", "Cookie: xk1=v1") == "-1 none 0 -1"
    assert "k1=deleted; " in fields_of(ask(server, "/cookies/destroy/"))


def session_cookie(answer):
    rows = re.findall(r"Set-Cookie: (DUDA_SESSION=([0-9a-f]{16}-[0-9a-f]{16}); [^\r]*)", fields_of(answer))
    assert len(rows) == 1
    return rows[0]


def test_sessions(serve_old):
    server = serve_old("cookies")
    answer = ask(server, "/cookies/login/")
    row, first = session_cookie(answer)
    assert answer.body == b"-1 0 0 0"  # one id, for both values
    assert re.search("; Expires=[^;]* GMT; Path=/cookies; HttpOnly; SameSite=Lax$", row)
    assert text_of(server, "/cookies/user/", f"Cookie: DUDA_SESSION={first}") == "ada admin -1"
    assert text_of(server, "/cookies/user/") == "none none -1"
    assert text_of(server, "/cookies/user/", f"Cookie: DUDA_SESSION={first.replace('-', '')}") == "none none -1"
    second = session_cookie(ask(server, "/cookies/login/", f"Cookie: DUDA_SESSION={first}"))[1]
    assert second != first  # each login has a new id
    assert text_of(server, "/cookies/user/", f"Cookie: DUDA_SESSION={first}") == "none none -1"
    answer = ask(server, "/cookies/logout/", f"Cookie: DUDA_SESSION={second}")
    assert answer.body == b"0"
    end = "Set-Cookie: DUDA_SESSION=deleted; path=/cookies; expires=Fri, 12 Sep 1980 11:43:00 GMT"
    assert end in fields_of(answer)
    assert text_of(server, "/cookies/user/", f"Cookie: DUDA_SESSION={second}") == "none none -1"
    assert text_of(server, "/cookies/logout/", f"Cookie: DUDA_SESSION={second}") == "-1"


def test_cookies_of_level_2(serve_old):
    """They were for all paths."""
    server = serve_old("cookies2")
    assert "Set-Cookie: unit=test; path=/\r\n" in fields_of(ask(server, "/cookies2/set/"))
    expiring = "Set-Cookie: unit=test; path=/; expires=Fri, 14 Jul 2017 02:40:00 GMT\r\n"
    assert expiring in fields_of(ask(server, "/cookies2/expire/"))
    assert "Set-Cookie: unit=deleted; path=/; expires=Fri, 12 Sep 1980" in fields_of(ask(server, "/cookies2/destroy/"))
    answer = ask(server, "/cookies2/login/")
    row, first = session_cookie(answer)
    assert answer.body == b"0" and "; Path=/; " in row
    assert text_of(server, "/cookies2/user/", f"Cookie: DUDA_SESSION={first}") == "'ada'"
    answer = ask(server, "/cookies2/logout/", f"Cookie: DUDA_SESSION={first}")
    assert answer.body == b"0"
    assert "Set-Cookie: DUDA_SESSION=deleted; path=/; expires=Fri, 12 Sep 1980" in fields_of(answer)
    assert text_of(server, "/cookies2/user/", "Cookie: DUDA_SESSION=deleted") == "'(null)'"


def test_the_server_ends_sessions(serve_old):
    """Which the original left to the browser."""
    server = serve_old("cookies")
    cookie = f"Cookie: DUDA_SESSION={session_cookie(ask(server, '/cookies/short/'))[1]}"
    assert text_of(server, "/cookies/user/", cookie) == "ada none -1"
    await_true(lambda: text_of(server, "/cookies/user/", cookie) == "none none -1", what="the end of the session")


def test_headers(serve_old):
    server = serve_old("headers")
    assert text_of(server, "/headers/get/", "X-Test: Value") == "[Value] [ Value] none"
    assert text_of(server, "/headers/compare/", "X-Test: Value") == "0 0 -1 -1 2 -1 -1"
    assert text_of(server, "/headers/contains/", "X-Test: Value") == "0 1 -1"
    assert text_of(server, "/headers/contains/", "X-Test: a, value") == "3 4 2"
    answer = ask(server, "/headers/types/")
    assert (answer.status, answer.body) == (201, b"{}")
    names = ("x-first", "x-second", "x-third", "content-type", "content-length")
    assert [answer[name] for name in names] == ["1", "2", "3", "application/json", "2"]
    assert ask(server, "/headers/length/").body == b"open"
    assert ask(server, "/headers/length/")["content-length"] is None
    answer = ask(server, "/headers/raw/")
    assert (answer.status, answer["x-raw"], answer.body) == (203, "yes", b"raw")
    assert text_of(server, "/headers/version/") == "OK\n"
    assert text_of(server, "/headers/sent/") == "0 -1!"


def test_bodies(serve_old):
    server = serve_old("bodies")
    for method in ("GET", "POST", "PUT", "DELETE"):
        assert text_of(server, "/bodies/method/", method=method) == method.lower()
    assert ask(server, "/bodies/method/", method="HEAD")["content-length"] == "4"
    form = "Content-Type: application/x-www-form-urlencoded"
    for method in ("POST", "PUT"):
        assert text_of(server, "/bodies/echo/", form, method=method, body=b"a=b") == "1 1 3 1 A=B"
    form += "; charset=utf-8"
    assert text_of(server, "/bodies/echo/", form, method="POST", body=b"x") == "1 0 1 1 X"
    assert text_of(server, "/bodies/echo/", status=400) == "no data 0 -1"
    assert ask(server, "/bodies/echo/", body=b"a body", method="GET").status == 400
    assert text_of(server, "/bodies/echo/", "Content-Length: 0", method="POST", status=400) == "no data 0 0"
    assert text_of(server, "/bodies/memory/") == "memory 0"


def test_includes(serve_old):
    assert text_of(serve_old("includes"), "/includes/") == "1 0 -1 1 text 0"


# ── files ──


def test_files(serve_old, tmp_path):
    data = populate(tmp_path / "data", {"poem.txt": b"Two roads diverged\n"})
    server = serve_old("files", DataDir=data)
    assert text_of(server, "/files/file/") == "<Two roads diverged\n>"
    assert text_of(server, "/files/range/") == "roas diverged\n 0 -1 -1 -1"
    assert text_of(server, "/files/info/") == "0 19 1 0 -1"
    assert text_of(server, "/files/self/") == "files 1 0 none files"


def test_conf(serve_old, tmp_path):
    conf = "[SERVICE]\n    Title A title of words\n    Limit 42\n    Enabled on\n    Words one two three\n"
    folder = populate(tmp_path / "config", {"service.conf": conf.encode()})
    logs = make_folder(tmp_path / "logs")
    server = serve_old("conf", ConfDir=folder, LogDir=logs)
    assert text_of(server, "/conf/show/") == "A title of words 42 1 one/two/three/ 0"
    assert text_of(server, "/conf/log/") == "1 1"
    for text in ("debugging 1", "conf.c:", "hello you", "warned", "failed", "info  service conf: stack: .* cb_log"):
        server.wait_log(text)
    server.stop()
    assert "logged this" in (logs / "access.log").read_text()


def test_folders_that_a_callback_sets(serve_old, tmp_path):
    """All workers see them, and pointers to the former path stay valid."""
    data, conf = make_folder(tmp_path / "data"), make_folder(tmp_path / "config")
    server = serve_old("folders", DataDir=data, ConfDir=conf, workers=2)
    assert text_of(server, "/folders/data/") == f"{data}/ {data}/something 0 /tmp/"
    for _ in range(5):
        assert text_of(server, "/folders/data/") == "/tmp/ /tmp/something 0 /tmp/"
        assert text_of(server, "/folders/conf/") == "-1 0 /tmp/"
    server.wait_log(r"service folders: fconf->set_path\(\): /no/such/folder: No such file or directory")
    assert int(text_of(server, "/folders/many/")) < 64  # what callbacks may set is limited
    assert text_of(server, "/folders/conf/") == "-1 0 /tmp/"


def test_several_files(serve_old):
    server = serve_old("files3")
    assert text_of(server, "/files3/list/") == "hello 1: ada eve ada eve"
    assert text_of(server, "/files3/list/") == "hello 2: ada eve ada eve"
    assert text_of(server, "/files3/early/?leave=1") == ""
    assert text_of(server, "/files3/early/") == "stayed"
    assert text_of(server, "/files3/strings/") == "monkey-7 8 onk -1 3 -1 3 1 1"


# ── whole services of the time ──


# Requests without more than a path, in this order, and the texts of the answers; None: there is no such page.
ANSWERS = {
    "hello0": [("examples/hello", "hello world!")],
    "globals": [("values/", "0 made of data"), ("values/", "1 made of data")],
    "alarm": [("", "rang 1"), ("", "rang 1")],
    "lists": [("", "empty"), ("add?word=a", ""), ("add?word=b", ""), ("", "a b "), ("remove?word=a", ""), ("", "b "),
              ("remove?word=b", ""), ("", "empty")],
    "named": [("../shop/", "root of shop"), ("../shop/tea/id/12/", "tea 0 12"), ("../shop/tea/id/x/", "tea -1 -1")],
    "spawned": [("show/", "7 1")],
    "summer": [("items/text", "word 0 (nil) s"), ("items/text/", "word 1 (nil) s"), ("items/show/a/b", None),
               ("items/show/a%20b", '{\n\t"name":\t"a b"\n}'), ("items/show/long-name", None)],
    "spring": [("system/cpu/1", "cpu\n"), ("system/cpu", None)],
    "behind": [("api/", "all"), ("api/cpu", "cpu 0"), ("api/cpu/", "cpu 0"), ("api/cpu/load?x=/y/z", "cpu 1"),
               ("api/c%70u/0//load/avg", "cpu 3 2"), ("api/cpu/a/b/c", "cpu 3 2")],
    "notes": [("?name=a", "new 1 1"), ("?name=b", "new 1 1"), ("?name=a", "known /notes/a.md 1"),
              ("?name=a", "new 1 1")],
    "stack": [("lines", "line 0\nline 1\nline 2\n"), ("page", "x" * 4000), ("freed", "y" * 4000), ("large", "z zzz")],
    "backwards": [("", "c1 b2 a3 b 3 0")],
    "peers": [("client", "127.0.0.1 1")],
    "coro": [("words", "one two three "), ("words", "one two three ")],
}  # fmt: skip


def test_answers(serve_all):
    server = serve_all(dict.fromkeys(ANSWERS, {}))
    with server.connect() as client:
        for name, requests in ANSWERS.items():
            for target, text in requests:
                target = target[2:] if target.startswith("..") else f"/{name}/{target}"
                answer = client.ask(target, host="localhost")
                expected = (404, None) if text is None else (200, text)
                assert (answer.status, answer.body.decode() if answer.status == 200 else None) == expected, target


# Services of the folders, by the names that their makefiles give them.
MADE = {
    "rules": ("/rules/word", "ruled"),
    "wild": ("/wild/", "42 1"),
    "pair_one": ("/pair_one/number", "one"),
    "pair_two": ("/pair_two/number", "two"),
    "choice": ("/choice/", "9 1 2 2"),
    "dialect": ("/dialect/", "old dialect 12 1 6"),
    "inner": ("/inner/", "3"),
    "sourced": ("/sourced/word", "shell 1"),
    "unnamed": ("/unnamed/", "unnamed"),
    "august": ("/august/numbers/add/2", "42 1"),
}


@pytest.mark.slow
def test_makefiles(serve_services, tmp_path):
    """dudac -w FOLDER builds what the makefiles of those years say."""
    made, services = tmp_path / "made", make_folder(tmp_path / "services")
    shutil.copytree(SOURCES, made)
    build_one = [build.binary().parent / "dudac", "build", "--build-dir"]
    builds = [subprocess.Popen([*build_one, tmp_path / name, made / name]) for name in FOLDERS]
    assert [each.wait() for each in builds] == [0] * len(builds)
    for path in tmp_path.glob("*/*.duda"):
        path.rename(services / path.name)
    assert sorted(path.stem for path in services.iterdir()) == sorted(MADE)
    server = serve_services({}, {"Workers": 1}, text="".join(section("WEB_SERVICE", {"Name": name}) for name in MADE))
    assert {name: text_of(server, target) for name, (target, _) in MADE.items()} == {
        name: text for name, (_, text) in MADE.items()
    }


def test_calls_of_april_2012(serve_all, tmp_path):
    populate(tmp_path / "data", {"notes.txt": b"notes\n"})
    server = serve_all({"april": {"DataDir": "{path}/data"}})
    assert text_of(server, "/april/notes/file") == "notes\nnone"


def test_headers_of_2012(serve_all):
    """Those with a length are cut to it."""
    answer = ask(serve_all({"summer": {}}), "/summer/items/text")
    assert (answer["content-type"], answer["x-two"]) == ("text/plain", "2")


def test_lengths(serve_all, tmp_path):
    """A body is not longer than the service says, and has the length that it has if it is shorter."""
    populate(tmp_path / "data", {"numbers.txt": b"123"})
    server = serve_all({"lengths": {"DataDir": "{path}/data"}})
    with server.connect() as client:
        for length in range(10):
            answer = client.ask(f"/lengths/length/?length={length}", host="localhost")
            assert (answer["content-length"], answer.body) == (str(length), b"abc123xyz"[:length])
        assert client.ask("/lengths/length/?length=12", host="localhost").body == b"abc123xyz"
    server.wait_log(r"http_content_length\(\): the body is longer, and is cut to this length")
    assert text_of(server, "/lengths/count/?a=1&b=2") == "0"
    assert text_of(server, "/lengths/count2/1/2") == "2"
    answer = ask(server, "/lengths/dash")
    assert (answer.status, answer["location"], answer.body) == (301, "http://localhost/lengths/dash/", b"")


def test_upload(serve_old, tmp_path):
    server = serve_old("upload", DataDir=make_folder(tmp_path / "data"))
    assert text_of(server, "/upload/show", status=404) == ""
    assert text_of(server, "/upload/save", status=400) == ""
    assert text_of(server, "/upload/save", method="POST", body=b"some text", status=201) == "9"
    assert text_of(server, "/upload/show") == "some text"


def test_json_of_a_body(serve_old):
    server = serve_old("drawn")
    assert text_of(server, "/drawn/sum", method="POST", body=b'{"items": [1, 2, 3.5]}') == '{"sum":6.5}'
    for body in (b"{", b"{}"):
        assert text_of(server, "/drawn/sum", method="POST", body=body, status=400) == "{}"

FORM = "Content-Type: application/x-www-form-urlencoded"


def test_visitors(serve_old, tmp_path):
    pages = populate(tmp_path / "html", {"index.html": b"<p>sign", "style.css": b"p {}"})
    server = serve_old("visitors", DocumentRoot=pages)
    answer = ask(server, "/visitors/sign", FORM, method="POST", body=b"text=hello&name=ada")
    assert (answer.status, answer["location"], answer.body) == (302, "/visitors/list", b"")
    assert re.fullmatch("visitor=ada; path=/visitors; expires=.* GMT", answer["set-cookie"])
    assert ask(server, "/visitors/sign", FORM, method="POST", body=b"name=eve").status == 302
    assert text_of(server, "/visitors/sign", FORM, method="POST", body=b"name=", status=400) == "no name in 5 bytes"
    assert ask(server, "/visitors/sign").status == 400
    assert text_of(server, "/visitors/list", "Cookie: a=b; visitor=ada") == "you are ada\nada: hello\neve: \n"
    answer = ask(server, "/visitors/list")
    assert [answer[name] for name in ("cache-control", "content-type")] == ["no-cache", "text/plain; charset=utf-8"]
    count = "2 entries, 4 ended\n"
    for method in ("GET", "OPTIONS", "PATCH", "DELETE", "PUT", "POST"):
        assert text_of(server, "/visitors/count", method=method) == count, method
    answer = ask(server, "/visitors/count", method="HEAD")
    assert (answer.status, answer["content-length"], answer.body) == (200, str(len(count)), b"")
    assert text_of(server, "/visitors/") == "<p>sign"
    assert text_of(server, "/visitors/style.css") == "p {}"
    assert ask(server, "/visitors/none.css").status == 404


@pytest.mark.parametrize("way", WAYS)
def test_comet(serve_old, way):
    """All clients that wait are answered by a signal to the workers, and one that has left does not matter."""
    server = serve_old("comet", way=WAYS[way])
    answers, clients = [], [server.open() for _ in range(4)]
    threads = [threading.Thread(target=lambda c=c: answers.append(c.ask("/comet/wait/"))) for c in clients[:3]]
    for thread in threads:
        thread.start()
    gone, here = server.open(), clients[3]
    if WAYS[way].h2:
        gone.begin("/comet/wait/")
    else:
        gone.send(b"GET /comet/wait/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await_true(lambda: here.ask("/comet/waiting/").body == b"4")
    gone.close()
    assert here.ask("/comet/send/").status == 400
    assert here.ask("/comet/send/?text=hello").status == 204
    for thread in threads:
        thread.join()
    assert [(a.status, a["x-wait"], a.body) for a in answers] == [(200, "yes", b"hello 7\n")] * 3
    assert here.ask("/comet/waiting/").body == b"0"


def test_threads_of_the_service(serve_all, tmp_path):
    """Those of pthread_create() may use the objects, too."""
    make_folder(tmp_path / "data")
    server = serve_all({"sampler": {"DataDir": "{path}/data"}})
    assert text_of(server, "/sampler/start") == "0"
    assert text_of(server, "/sampler/last").endswith('{"arg":"cpu","unit":"ms"}')
    await_last(server, "/sampler/last", '42 {"arg":"cpu","unit":"ms"}')
    server.wait_log('service sampler: a sample of {"arg":"cpu","unit":"ms"}')
    assert text_of(server, "/sampler/endless") == "0"
    server.stop()
    assert "service sampler: it stays in memory: it has ended, but 1 of its threads have not returned" in server.log


def test_board(serve_all, tmp_path):
    populate(tmp_path / "conf.d", {"board.conf": b"[GLOBAL]\n    Readers ada eve\n"})
    server = serve_all({"board": {"ConfDir": "{path}/conf.d"}})
    assert text_of(server, "/board/api/") == '["gpio"]'
    answer = ask(server, "/board/api/gpio")
    assert (answer.status, answer["www-authenticate"]) == (401, 'Basic realm="Board"')
    for user, status in (("ada:test", 200), ("eve:test", 200), ("bob:test", 401), ("ada:no", 401), ("ada", 401)):
        known = f"Authorization: Basic {base64.b64encode(user.encode()).decode()}"
        assert ask(server, "/board/api/gpio", known).status == status, user
    known = f"Authorization: Basic {base64.b64encode(b'ada:test').decode()}"
    assert text_of(server, "/board/api/gpio/out/pin", known, method="POST", body=b"7") == "7"
    assert text_of(server, "/board/api/gpio//out?x", known) == '{"pin":7}'
    assert text_of(server, "/board/api/gpio/", known) == '{"out":{"pin":7}}'
    assert ask(server, "/board/api/gpio/none", known).status == ask(server, "/board/api/none", known).status == 404
    for target, body in (("out/pin", b'"x"'), ("out/pin", b"{"), ("out", b"7")):
        assert ask(server, f"/board/api/gpio/{target}", known, method="POST", body=body).status == 400


def test_site(serve_all, tmp_path):
    populate(tmp_path / "data", {"header.html": b"<h1>site", "posts/one.md": b"one", "posts/a b.md": b"a b"})
    populate(tmp_path / "html", {"css/site.css": b"p {}"})
    server = serve_all({"site": {"DataDir": "{path}/data", "DocumentRoot": "{path}/html"}})
    assert text_of(server, "/") == "<h1>site"
    assert text_of(server, "/one") == "<h1>siteone"
    assert text_of(server, "/a%20b?c=d") == "<h1>sitea b"
    assert text_of(server, "/none", status=404) == "<h1>siteno article"
    assert text_of(server, "/static/css/site.css") == "p {}"
    assert text_of(server, "/page/1") == "January 02, 1970: one\n"


def test_refuses_and_tuner(serve_all):
    """The services of a server do not depend on each other."""
    server = serve_all({"refuses": {}, "tuner": {}})
    assert ask(server, "/refuses/").status == 503
    server.wait_log(r'the service "refuses" cannot be used; .*: duda_main\(\) has returned -1')
    assert text_of(server, "/tuner/frequency") == "89.50\n"
    for body, status, text in ((b"99.5", 200, "99.50\n"), (b"x", 400, "99.50\n"), (b"200", 400, "99.50\n"),
                               (b"1" * 100, 400, "99.50\n"), (b"7.25 MHz", 200, "7.25\n")):
        assert text_of(server, "/tuner/frequency", method="POST", body=body, status=status) == text


@pytest.mark.parametrize("way", WAYS)
def test_large(serve_old, tmp_path, way):
    server = serve_old("large", DataDir=populate(tmp_path / "data", {"part.txt": b"part\n"}), way=WAYS[way])
    with server.open() as client:
        for _ in range(2):
            assert client.ask("/large/memory/").body == b"0123456" * (2**20 // 7) + b"0123end"
            lines = client.ask("/large/lines/").body.decode().split("\n")
            assert [line for line in lines if line != "part"] == [*map(str, range(5000)), ""]
            assert lines.count("part") == 50


def test_mini(serve_all, tmp_path):
    """A service that is the root of its host, of the time when there were maps and coroutines."""
    populate(tmp_path / "data", {"articles/1.html": b"<p>one"})
    server = serve_all({"mini": {"DataDir": "{path}/data"}})
    assert text_of(server, "/") == "home"
    answer = ask(server, "/Article")
    assert (answer["x-version"], answer["content-type"], answer.body) == ("1 55", "text/html; charset=utf-8", b"<p>one")
    assert text_of(server, "/Article/update", status=500) == "no data"
    for method in ("POST", "PUT"):
        assert text_of(server, "/Article/update", method=method, body=b"<p>next") == "7 bytes"
    answer = ask(server, "/Article/")
    assert (answer["x-version"], answer.body) == ("3 55", b"<p>next")


def test_blog(serve_old, tmp_path):
    conf = {"blog.conf": b"[BLOG]\n    Title My blog\n    PerPage 5\n", "header.html": b"<h1>%s</h1>\n"}
    config = populate(tmp_path / "conf.d", conf)
    data = populate(tmp_path / "data", {"2013-hello.txt": b"Hello, world\n"})
    server = serve_old("blog", ConfDir=config, DataDir=data)
    assert text_of(server, "/blog/") == "<h1>My blog</h1>\n5 articles\n"
    for end in ("", "/", "/more"):
        assert text_of(server, "/blog/article/2013/hello" + end) == "<h1>hello</h1>\nHello, world\n<end>\n"
    assert text_of(server, "/blog/article/2013/none", status=404) == "<h1>none</h1>\nthere is no such article\n"
    assert ask(server, "/blog/article/x/hello").status == ask(server, "/blog/article/2013").status == 404
    assert text_of(server, "/blog/article/2013/a%2f..%2f..%2fx", status=404)
    assert text_of(server, "/blog/comment/7") == "7 localhost"
    assert ask(server, "/blog/comment/7", "User-Agent: a Robot").status == 403


def test_status(serve_old, tmp_path):
    server = serve_old("status", LogDir=make_folder(tmp_path / "logs"))
    assert text_of(server, "/status/machine/show/system") == "machine Linux\n"
    assert text_of(server, "/status/machine/show/pid/") == "1\n"
    assert ask(server, "/status/machine/show/other").status == 404
    assert text_of(server, "/status/process/threads").startswith("Threads:")
    assert text_of(server, "/status/").startswith("Threads:")
    assert text_of(server, "/status/machine").startswith("Threads:")  # the static route is for all other paths
    assert ask(server, "/status").status == 404  # but not for the URL without a slash
    server.stop()
    assert (tmp_path / "logs" / "hits.log").read_text().count(" process\n") == 3


# ── events and threads ──


def test_events(serve_old):
    server = serve_old("events")
    assert text_of(server, "/events/ticks/") == "tick 0\ntick 1\ntick 2\n"
    assert text_of(server, "/events/pipe/") == "1 [p] closed"


def test_events_of_level_0(serve_old):
    server = serve_old("events0")
    assert text_of(server, "/events0/wait/") == "read 0"
    with server.connect() as client:
        assert client.ask("/events0/left/", host="localhost").body == b"left"
        assert client.ask("/events0/look/", host="localhost").body == b"gone"
        assert client.ask("/events0/signal/", host="localhost").body == b"8 9"
        await_true(lambda: client.ask("/events0/last/", host="localhost").body == b"10")


def test_threads(serve_old):
    server = serve_old("threads")
    server.baseline += 2  # what the thread reads signals from
    assert text_of(server, "/threads/last/") == "7 1"
    assert text_of(server, "/threads/send/") == "1"
    await_last(server, "/threads/last/", "101 1")
    assert text_of(server, "/threads/send/") == "2"
    await_last(server, "/threads/last/", "102 1")


def await_last(server, target, expected):
    """Asks until the worker has received the signal of the thread."""
    for _ in range(2000):
        if text_of(server, target) == expected:
            return
    raise AssertionError(f"no signal: {expected}")


def test_loops(serve_old):
    server = serve_old("loops")
    server.baseline += 3  # the thread's loop and pipe
    assert [text_of(server, "/loops/ring/") for _ in range(2)] == ["1 epoll before", "2 epoll before"]


# ── packages ──

LEVELS = [0, 1, 2, None]


@pytest.mark.parametrize("number", LEVELS)
def test_digests(serve_old, number):
    server = serve_old("codecs", number=number)
    for body in (b"abc", b"a\0b\xff" * 5000):
        digests = [hashlib.sha1(body).hexdigest(), hashlib.sha256(body).hexdigest()]
        encoded = base64.b64encode(body).decode()
        expected = [*digests, f"{len(encoded)} {encoded}", f"{len(body)} 0"]
        assert text_of(server, "/codecs/digest/", method="POST", body=body).split("\n") == expected


@pytest.mark.parametrize("number", LEVELS)
def test_base64_in_other_text(serve_old, number):
    server = serve_old("codecs", number=number)
    for body, text in (("}c29tZSB0ZXh0", "9 some text"), ("c29t\r\n*ZSB0ZXh0=;", "0 wrong"), ("-c29tZQ==", "4 some"),
                       ("c29tZQ==c29tZQ==", "4 some"), ("c29", "0 wrong"), ("c===", "0 wrong")):
        assert text_of(server, "/codecs/decode/", method="POST", body=body.encode()) == text, body


@pytest.mark.parametrize("number", LEVELS)
def test_json(serve_old, number):
    server = serve_old("codecs", number=number)
    body = b'{"a": 7, "b": -2.5, "c": "x", "d": null, "e": [1], "f": {}, "g": true, "h": false}'
    assert text_of(server, "/codecs/walk/", method="POST", body=body).split("\n") == [
        "a number 7 7.00", "b number -2 -2.50 after a", "c string x after b", "d null after c", "e array after d",
        "f object after e", "g true after f", "h false after g", "8",
    ]  # fmt: skip
    text = text_of(server, "/codecs/walk/", method="PUT", body=b'{"a": 7,', status=400)
    assert text == "Error before: [line 1, column 9: a key in quotes is missing]"
    assert "the request has no body" in text_of(server, "/codecs/walk/", status=400)
    small, _, rest = text_of(server, "/codecs/build/").partition("\n")
    formatted, _, last = rest.rpartition("\n")
    expected = {"list": [1, 2.5, "three"], "yes": True, "no": False, "nothing": None, "False": False}
    assert small == json.dumps(expected, separators=(",", ":"))
    assert json.loads(formatted) == expected and formatted.startswith('{\n\t"list":\t[1, 2.5, "three"],\n')
    assert last == "3 three"


@pytest.mark.parametrize("name, package", [("chat", "websocket"), ("packages", "json"), ("ledger", "postgresql")])
def test_absent_package(serve_old, tmp_path, name, package):
    """One error that names the package; the service does not start, and the server serves."""
    server = serve_old(name, packages=make_folder(tmp_path / "packages"))
    assert ask(server, f"/{name}/handshake/").status == 503
    server.wait_log(f'the package "{package}" cannot be loaded: .*/{package}.dpkg: No such file or directory')
    assert server.log.count(f'"{package}"') == 1
