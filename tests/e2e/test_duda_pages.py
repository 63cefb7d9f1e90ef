# SPDX-License-Identifier: Apache-2.0
"""The objects of <duda/duda.h>: each has a page in docs/reference/duda with all of its functions and an example, which
is compiled and asked here, and each of its functions is called by a test or an example."""

import re

import pytest

from harness import build
from harness.content import populate
from harness.services import HEAD, build_old_service, build_service, needs_duda, web_service

INCLUDE = build.TOP / "include" / "duda"
PAGES = build.TOP / "docs" / "reference" / "duda"
OBJECTS = ["conf", "console", "cookie", "data", "dthread", "event", "fconf", "form", "gc", "global", "logger", "mem"]
OBJECTS += ["msg", "multipart", "param", "qs", "request", "response", "router", "session", "sse", "task", "tunnel"]
OBJECTS += ["worker", "xtime"]
OLD = ["map"]  # its page is for services of the original API
TEXTS = {name: (PAGES / f"{name}.md").read_text() for name in [*OBJECTS, *OLD]}

# What the examples of the pages include, which show only the part that matters.
PRELUDE = HEAD + "#include <errno.h>\n#include <fcntl.h>\n#include <pthread.h>\n#include <stdio.h>\n"
PRELUDE += "#include <unistd.h>\n\n"

# What the examples answer: page to rows of a request and its body. Their URLs begin with /PAGE unless they change it.
ASKED = {
    "conf": [("GET", "/shop/", "the shop at /shop/")],
    "console": [("GET", "/console/list", "17 goods")],
    "cookie": [("GET", "/cookie/", "visit 1")],
    "data": [("DELETE", "/data/files/poem.txt", "")],
    "dthread": [("GET", "/dthread/", "hello, after 100 ms")],
    "event": [("GET", "/event/later", "that took a while")],
    "fconf": [("GET", "/fconf/", "db.example.org:5432")],
    "form": [("POST", "/form/entries", "thank you, ada")],
    "gc": [("GET", "/gc/ada", "ada")],
    "global": [("GET", "/global/", "request 1 of worker 0"), ("GET", "/global/", "request 2 of worker 0")],
    "logger": [("GET", "/logger/in/ada", "")],
    "map": [("GET", "/map/", "goods/price/ID"), ("GET", "/map/goods/price/7", "price of 7")],
    "mem": [("GET", "/mem/", "-" * 40)],
    "msg": [("POST", "/msg/sell", "0 left")],
    "multipart": [("POST", "/multipart/photos", "a title and a photo are missing")],
    "param": [("GET", "/param/orders/7/a/b.pdf", "file a/b.pdf of order 7")],
    "qs": [("GET", "/qs/?tag=a+b&x=1&tag=c", "tag a b\ntag c")],
    "request": [("POST", "/request/lines", "0 lines")],
    "response": [("GET", "/response/", "<h1>Hello</h1><p>127.0.0.1</p>"), ("GET", "/response/sum/4", "10"),
                 ("GET", "/response/greet?name=%3Cb%3E", "<title>Hello</title><p>Hello, &lt;b&gt;</p>")],
    "router": [("GET", "/router/users/7", "user 7"), ("DELETE", "/router/users/7", "")],
    "session": [("GET", "/session/", "visit 1"), ("GET", "/session/", "visit 1")],
    "sse": [("POST", "/sse/rooms/a", "0 listen")],
    "task": [("GET", "/task/callback", "the sum is 5050"), ("GET", "/task/straight", "the sum is 5050")],
    "tunnel": [("GET", "/tunnel/", "this is for upgrades")],
    "worker": [("GET", "/worker/", r"\d+ rounds, 1 workers")],
    "xtime": [("GET", "/xtime/", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")],
}


def examples_of(text):
    return re.findall(r"^```c\n(.*?)^```$", text, re.S | re.M)


def functions_of(name):
    """The functions of the object, as its header declares them."""
    headers = "".join(path.read_text() for path in sorted(INCLUDE.glob("*.h")))
    struct = re.search(rf"^DUDA_OBJECT\(struct (\w+), {name}\)", headers, re.M)[1]
    body = re.search(rf"^struct {struct} {{\n(.*?)^}};", headers, re.M | re.S)[1]
    found = re.findall(r"\(\*(\w+)\)\(", re.sub(r"/\*.*?\*/", "", body, flags=re.S))
    callbacks = {"del": "delete", "DUDA_ROUTER_DELETE": "delete", "fn": None, "make": None, "destroy": None}
    return sorted({callbacks.get(function, function) for function in found} - {None})


def test_each_object_has_a_page_with_an_example():
    included = re.findall(r'#include "(\w+)\.h"', (INCLUDE / "duda.h").read_text())
    assert sorted(included) == sorted([*OBJECTS, "service"])
    assert sorted(TEXTS) == sorted(ASKED)
    assert not [name for name, text in TEXTS.items() if not examples_of(text)]


@pytest.mark.parametrize("name", OBJECTS)
def test_the_page_names_all_functions(name):
    quoted = " ".join(re.findall(r"`([^`\n]+)`", TEXTS[name]))
    assert [fn for fn in functions_of(name) if not re.search(rf"\b{fn}\b", quoted)] == []


@pytest.mark.parametrize("name", [name for name in OBJECTS if name != "form"])  # which has the functions of qs
def test_each_function_is_called(name):
    """By a service of a test, or by an example that a test asks."""
    sources = [*build.TOP.glob("tests/e2e/test_duda_*.py"), *build.TOP.glob("docs/examples/services/*/*.c")]
    text = "".join(path.read_text() for path in sources) + "".join(TEXTS.values())
    assert [fn for fn in functions_of(name) if not re.search(rf"\b{name}\s*->\s*{fn}\b", text)] == []


def build_example(folder, name):
    """All examples of the page, as one service."""
    source = "\n".join(examples_of(TEXTS[name]))
    if name in OLD:
        return build_old_service(folder, name, source)
    return build_service(folder, name, PRELUDE + source, flags=["-Wno-unused-function"])


@pytest.mark.slow
@needs_duda
def test_the_examples_answer(serve_services, tmp_path):
    for name in TEXTS:
        build_example(tmp_path / "services", name)
    shop = re.search(r"^```\n(# the backend.*?)^```", TEXTS["fconf"], re.M | re.S)[1]
    populate(tmp_path / "conf.d", {"shop.conf": shop.encode()})
    populate(tmp_path / "data", {"poem.txt": b"verses"})
    (tmp_path / "logs").mkdir()
    keys = {"ConfDir": tmp_path / "conf.d", "DataDir": tmp_path / "data", "LogDir": tmp_path / "logs"}
    server = serve_services({}, {"Workers": 1}, text="".join(web_service(name, **keys) for name in TEXTS))
    form = "Content-Type: application/x-www-form-urlencoded"
    with server.connect() as client:
        for name, rows in ASKED.items():
            for method, target, body in rows:
                answer = client.ask(target, form, method=method, body=b"name=ada" if method == "POST" else b"")
                assert re.fullmatch(body, answer.body.decode().strip()), (name, target, answer)
        visits = client.ask("/cookie/", "Cookie: visits=6")
        assert visits.body == b"visit 7\n" and "visits=7" in visits["Set-Cookie"]
        assert client.ask("/data/files/poem.txt", method="DELETE").status == 404
        assert not (tmp_path / "data" / "poem.txt").exists()
        assert client.ask("/router/users/7", "Cookie: login=secret", method="DELETE").status == 204
        assert client.ask("/router/users/7", method="DELETE").status == 403
        assert client.ask("/request/lines", method="POST", body=b"a\nb\n").body == b"2 lines\n"
        assert server.connect().ask("/response/rows").body == b"".join(b"%d\n" % n for n in range(1000000))
    server.wait_log(r"info  service console: \[GET /console/list\] \[console.c:\d+\] 17 rows$")
    server.wait_log("warn  service msg: 127.0.0.1 has bought the last one$")
    server.stop()
    assert (tmp_path / "logs" / "visits.log").read_text().endswith("Z ada has logged in\n")


# ── the guide and the README ──


@needs_duda
@pytest.mark.parametrize(
    "page, target, body",
    [("README.md", "/x/ada", "Hello, ada\n"), ("docs/guide/write-services.md", "/x/hello/ada", "Hello, ada\n")],
)
def test_the_first_service_of_a_page(serve_services, page, target, body):
    source, *_ = [text for text in examples_of((build.TOP / page).read_text()) if "duda_main" in text]
    server = serve_services({"x": source})
    assert server.connect().ask(target).body.decode() == body
