# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/examples/services, compiled and asked over HTTP/1.1, HTTP/2 and TLS."""

import functools
import hashlib
import json
import re
import shutil
import subprocess
import types
import zlib

import pytest

from harness import build
from harness.browser import open_browser
from harness.certificates import Authority
from harness.client import Client
from harness.h2 import H2Client
from harness.memcached import PROGRAM, Memcached
from harness.messages import request
from harness.names import needs_localhost
from harness.redis import Redis
from harness.server import Server, write_config
from harness.services import INCLUDE, build_service, needs_duda, service_config
from harness.ways import WAYS
from harness.websocket import WebSocket
from test_duda_old import level
from test_wschat import AWAIT

EXAMPLES = build.TOP / "docs" / "examples" / "services"
NAMES = sorted(path.name.split("-")[1] for path in EXAMPLES.iterdir())
PROTOCOLS = {
    "http1": ("http", "--http1.1"),
    "h2c": ("http", "--http2-prior-knowledge"),
    "tls": ("https", "--http1.1"),
    "h2": ("https", "--http2"),
}

pytestmark = [
    needs_duda,
    pytest.mark.single_protocol,
    pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed"),
]


class Site:
    """A server with all examples, and a client for one of its protocols."""

    def __init__(self, folder):
        self.folder, self.data = folder, folder / "data"
        self.ca = Authority(folder / "authority")
        pair = self.ca.make("localhost", "localhost", "IP:127.0.0.1")
        for name in NAMES:
            self.build(name)
        services = {name: self.keys(name) for name in NAMES}
        tls = f"[TLS]\n    Certificate {pair.cert}\n    CertificateKey {pair.key}\n"
        files = service_config(folder / "services", services, folder, text=tls)
        listen = {"Listen": "127.0.0.1:0\n    Listen 127.0.0.1:0 tls", "Workers": 2}
        self.memcached = Memcached() if PROGRAM else None
        self.redis = Redis(folder / "redis") if shutil.which("redis-server") else None
        env = {
            "MEMCACHED_SERVERS": self.memcached.address if self.memcached else "127.0.0.1:1",
            "REDIS_ADDRESS": self.redis.address if self.redis else "127.0.0.1:1",
        }
        self.server = Server("-c", write_config(folder / "conf", folder, listen, files=files), listeners=2, env=env)

    def build(self, name):
        (source,) = EXAMPLES.glob(f"*-{name}/{name}.c")
        text = source.read_text()
        old = {} if level.detect_level([text]) == 3 else {"warnings": level.compile_flags(0, INCLUDE)}
        build_service(self.folder / "services", name, text, **old)

    def keys(self, name):
        (example,) = EXAMPLES.glob(f"*-{name}")
        keys = {"DataDir": self.data / name}
        if (example / "data").exists():
            shutil.copytree(example / "data", self.data / name)
        else:
            (self.data / name).mkdir(parents=True)
        if (example / "html").exists():
            keys["DocumentRoot"] = example / "html"
        return keys

    def url(self, protocol, path):
        scheme = PROTOCOLS[protocol][0]
        port = self.server.addresses[scheme == "https"][1]
        return f"{scheme}://127.0.0.1:{port}{path}"

    def curl(self, protocol, path, *args):
        """Returns the status, and the body."""
        command = ["curl", "-sS", "--max-time", "60", "--noproxy", "*", "--cacert", self.ca.cert]
        command += [PROTOCOLS[protocol][1], "-w", "\n%{http_code}", *args, self.url(protocol, path)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, done.stderr
        body, _, status = done.stdout.rpartition("\n")
        return int(status), body


@pytest.fixture(scope="module")
def server_of_examples(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("examples"))
    yield site
    site.server.stop()
    for one in (site.memcached, site.redis):
        if one:
            one.kill()


def pytest_generate_tests(metafunc):
    """Each example is asked over one protocol; over the others with --full."""
    if "ask" in metafunc.fixturenames:
        kept = zlib.crc32(metafunc.function.__name__.encode()) % len(PROTOCOLS)
        rows = [pytest.param(name, marks=[pytest.mark.slow] * (n != kept)) for n, name in enumerate(PROTOCOLS)]
        metafunc.parametrize("ask", rows, indirect=True)


@pytest.fixture
def ask(request, server_of_examples):
    def begin(path, *args):
        return server_of_examples.curl(request.param, path, *args)

    begin.protocol, begin.site = request.param, server_of_examples
    yield begin
    server_of_examples.server.assert_healthy()


def test_hello(ask):
    assert ask("/hello/") == (200, "Hello, world\n")
    assert ask("/hello/", "-X", "POST", "-d", "x")[0] == 405
    assert ask("/hello/missing")[0] == 404


def test_query(ask):
    assert ask("/query/?name=Ada+%26+Eve") == (200, "Hello, Ada & Eve\n")
    assert ask("/query/?other=1") == (200, "Hello, world\n")
    assert ask("/query/sum?n=1&n=2&n=39") == (200, "42\n")


def test_data(ask):
    poem = (EXAMPLES / "03-data" / "data" / "poem.txt").read_text()
    assert ask("/data/poem") == (200, poem)
    assert ask("/data/poem?from=6&bytes=3") == (200, poem[6:9])
    assert ask("/data/poem?from=100000&bytes=3")[0] == 416
    assert ask("/data/none")[0] == 404
    assert ask("/data/%2e%2e%2fevents%2fx")[0] == 404
    assert ask("/data/poem?from=x")[0] == 400


def test_form(ask):
    status, page = ask("/form/")
    assert status == 200 and '<form method="post"' in page
    status, page = ask("/form/", "-d", "name=%3Cb%3EAda", "-d", "color=red+%26+blue", "-D", "-")
    assert status == 200 and "<p>&lt;b&gt;Ada likes red &amp; blue</p>" in page
    assert "visited=yes; Path=/form; HttpOnly" in page
    assert ask("/form/", "-d", "name=Ada")[0] == 400
    assert ask("/form/", "-d", "name=" + "x" * 70000)[0] == 413


def test_rest(ask):
    token = "-H", "Authorization: Bearer secret"
    url = f"/rest/notes/{list(PROTOCOLS).index(ask.protocol)}"
    assert ask(url)[0] == 404
    status, text = ask(url, "-X", "PUT", "-d", "buy milk", "-D", "-")
    assert status == 401 and "www-authenticate: bearer" in text.lower() and text.endswith("a token is needed\n")
    assert ask(url, *token, "-X", "PUT", "-d", "buy milk")[0] == 204
    assert ask(url) == (200, "buy milk\n")
    assert ask(url, *token, "-X", "PUT", "-d", "x" * 1001)[0] == 413
    assert ask(url, *token, "-X", "DELETE")[0] == 204
    assert ask(url)[0] == 404
    assert ask("/rest/notes/100", *token, "-X", "DELETE")[0] == 404
    status, text = ask(url, *token, "-X", "PATCH", "-d", "x", "-D", "-")
    assert status == 405 and "allow: " in text.lower()


def test_events(ask):
    status, text = ask("/events/clock?ms=5&n=3")
    assert status == 200
    assert text == "".join(f"event: tick\nid: {n}\ndata: {n}\n\n" for n in (1, 2, 3))
    assert 'new EventSource("clock")' in ask("/events/")[1]


def test_upload(ask, tmp_path):
    content = bytes(range(256)) * 12000
    file, name = tmp_path / "content", f"{ask.protocol}.bin"
    file.write_bytes(content)
    for chunked in ((), ("-H", "Transfer-Encoding: chunked"))[: 2 if ask.protocol in ("http1", "tls") else 1]:
        assert ask(f"/upload/{name}", "-T", file, *chunked) == (201, f"{len(content)} bytes\n")
        assert (ask.site.data / "upload" / name).read_bytes() == content
    assert ask("/upload/%2e%2e%2fout", "-X", "PUT", "-d", "x")[0] in (400, 404)
    assert not (ask.site.data / "out").exists()


def test_thread(ask):
    assert ask("/thread/primes/100") == (200, "25\n")
    assert ask("/thread/primes/100000") == (200, "9592\n")
    assert ask("/thread/primes/none")[0] == 400


def test_tunnel(ask):
    """curl does not upgrade to other protocols; test_duda_tunnel.py has tunnels over HTTP/2 and TLS."""
    assert ask("/tunnel/", "-o", "/dev/null")[0] == 426
    with Client(ask.site.server.addresses[0]) as client:
        client.send(request("/tunnel/", "Connection: Upgrade", "Upgrade: rot13") + b"Uryyb, ")
        assert client.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        client.send(b"jbeyq")
        assert client.exactly(12) == b"Hello, world"
        client.shut()
        assert client.rest() == b""


def test_json(ask):
    title = f"Emma {ask.protocol}"
    book = json.dumps({"title": title, "year": 1815, "tags": ["novel"]})
    status, text = ask("/json/books", "-d", book)
    assert (status, json.loads(text)) == (201, json.loads(book))
    status, text = ask("/json/books", "-D", "-")
    assert status == 200 and "content-type: application/json" in text.lower()
    head, _, body = text.replace("\r", "").partition("\n\n")
    assert {"title": title, "year": 1815, "tags": 1} in json.loads(body)
    status, text = ask("/json/books", "-d", '{"title": "Emma",}')
    assert (status, json.loads(text)) == (400, {"error": "line 1, column 18: a key in quotes is missing"})
    assert ask("/json/books", "-d", "[" * 1000)[0] == 400
    assert ask("/json/books", "-d", json.dumps({"title": "x" * 100, "year": 1}))[0] == 400
    assert ask("/json/books", "-d", " " * 10001)[0] == 413
    assert json.loads(ask("/json/books", "-X", "POST")[1]) == {"error": "the request has no body"}


def test_digest(ask, tmp_path):
    status, token = ask("/digest/token?user=ada:%20l")
    assert status == 200
    text, mac = token.strip().split(".")
    assert ask(f"/digest/user/{text}.{mac}") == (200, "ada: l\n")
    other = ("B" if mac[0] == "A" else "A") + mac[1:]
    for forged in (f"{text}.{other}", f"{text}.{mac[1:]}", f"{text}.", text, f"{text[1:]}.{mac}", "x.y"):
        assert ask(f"/digest/user/{forged}")[0] == 403
    assert ask("/digest/token?user=" + "x" * 100)[0] == 400
    content = bytes(range(256)) * 4000
    (tmp_path / "content").write_bytes(content)
    assert ask("/digest/sha256", "-T", tmp_path / "content") == (200, hashlib.sha256(content).hexdigest() + "\n")


def test_fanout(ask):
    parts = [f"{name}: {name} is fine today\n" for name in ("rain", "sun", "wind")]
    assert ask("/fanout/") == (200, "".join([*parts, "moon: Connection timed out\n"]))


def test_task(ask):
    status, text = ask("/task/hash", "-d", "secret")
    salt, key = text.strip().split("$")
    assert status == 200
    assert key == hashlib.pbkdf2_hmac("sha256", b"secret", bytes.fromhex(salt), 20000).hex()
    assert ask("/task/hash", "-d", "x" * 129)[0] == 400
    assert ask("/task/resolve/127.0.0.1") == (200, "127.0.0.1\n")
    assert ask("/task/resolve/" + "x" * 256)[0] == 400


@needs_localhost
def test_task_with_a_name(ask):
    assert ask("/task/resolve/localhost") == (200, "127.0.0.1\n")


def test_memcached(ask):
    name = f"rain-{ask.protocol}"
    status, page = ask(f"/memcached/page/{name}", "-D", "-")
    assert status == 200 and f"all about {name}, made " in page
    again = ask(f"/memcached/page/{name}", "-D", "-")[1]
    if PROGRAM:
        assert "x-cache: stored" in page.lower() and "x-cache: hit" in again.lower()
        assert again.splitlines()[-1] == page.splitlines()[-1]
        assert ask(f"/memcached/page/{name}", "-X", "DELETE")[0] == 204
        assert ask(f"/memcached/page/{name}", "-X", "DELETE")[0] == 404
        assert ask(f"/memcached/page/{name}")[1] != page.splitlines()[-1] + "\n"
    else:
        assert "x-cache: none" in page.lower() and ask(f"/memcached/page/{name}", "-X", "DELETE")[0] == 503
    assert ask("/memcached/page/" + "x" * 100)[0] == 404


def test_wschat(ask):
    """test_wschat.py lets browsers talk."""
    status, page = ask("/wschat/")
    assert status == 200 and 'new URL("handshake/", location)' in page
    assert ask("/wschat/handshake/")[0] == 400


def test_session(ask, tmp_path):
    jar = ["-c", tmp_path / "jar", "-b", tmp_path / "jar"]
    assert ask("/session/", *jar) == (200, "guest: nothing\n")
    assert not (tmp_path / "jar").read_text().count("session-session")
    assert ask("/session/basket", *jar, "-d", "item=book")[0] == 204
    before = (tmp_path / "jar").read_text()
    assert before.count("__Host-session-session" if ask.protocol in ("tls", "h2") else "session-session") == 1
    assert ask("/session/basket", *jar, "-d", "item=pen")[0] == 204
    assert ask("/session/login", *jar, "-d", "name=ada", "-d", "password=wrong")[0] == 403
    assert (tmp_path / "jar").read_text().split()[-1] == before.split()[-1]
    assert ask("/session/login", *jar, "-d", "name=ada", "-d", "password=analytical")[0] == 204
    assert (tmp_path / "jar").read_text().split()[-1] != before.split()[-1]
    assert ask("/session/", *jar) == (200, "ada: book, pen\n")
    (tmp_path / "old").write_text(before)
    assert ask("/session/", "-b", tmp_path / "old") == (200, "guest: nothing\n")
    assert ask("/session/basket", *jar, "-X", "DELETE")[0] == 204
    assert ask("/session/", *jar) == (200, "ada: nothing\n")
    assert ask("/session/logout", *jar, "-X", "POST")[0] == 204
    assert ask("/session/", *jar) == (200, "guest: nothing\n")
    assert ask("/session/basket", *jar, "-d", "item=" + "x" * 200)[0] == 400


def test_blog(ask):
    title = f"The {ask.protocol} <post>"
    post = ["--data-urlencode", f"title={title}", "--data-urlencode", "text=a & b"]
    status, text = ask("/blog/posts/", *post, "-D", "-")
    assert status == 303
    number = re.search(r"(?im)^location: (\S+)", text)[1].rpartition("/")[2]
    assert f"<a href=\"posts/{number}\">The {ask.protocol} &lt;post&gt;</a>" in ask("/blog/")[1]
    assert "<p>a &amp; b</p>\n<h2>0 comments</h2>" in ask(f"/blog/posts/{number}")[1]
    comment = ["--data-urlencode", "name='); DROP TABLE posts; --", "-d", "text=%3Cscript%3E"]
    assert ask(f"/blog/posts/{number}/comments", *comment)[0] == 303
    page = ask(f"/blog/posts/{number}")[1]
    assert "<h2>1 comments</h2>\n<p><b>&#39;); DROP TABLE posts; --</b>: &lt;script&gt;</p>" in page
    assert f'action="{number}/comments"' in page
    assert ask("/blog/posts/", "-d", "title=x")[0] == 400
    assert ask(f"/blog/posts/{number}/comments", "-d", f"name={'x' * 51}", "-d", "text=x")[0] == 400
    assert ask("/blog/posts/99999999")[0] == ask("/blog/posts/x")[0] == 404
    assert ask("/blog/posts/99999999/comments", "-d", "name=ada", "-d", "text=x")[0] == 404
    assert ask("/blog/posts/", "-d", "title=x", "-d", "text=" + "x" * 70000)[0] == 413


def test_redis(ask):
    if not ask.site.redis:
        assert ask("/redis/")[0] == 503
        return
    page, visits = f"page-{ask.protocol}", list(PROTOCOLS).index(ask.protocol) + 1
    assert ask(f"/redis/pages/{page}")[0] == 404
    for number in range(visits):
        assert ask(f"/redis/pages/{page}", "-X", "POST") == (200, f"{page}: {number + 1}\n")
    assert ask(f"/redis/pages/{page}") == (200, f"{page}: {visits}\n")
    status, text = ask("/redis/")
    assert status == 200 and f"{page}: {visits}, " in text and " today " in text
    assert ask("/redis/pages/" + "x" * 33, "-X", "POST")[0] == 404


class User:
    """A user of the example todo, with cookies and token."""

    def __init__(self, ask, jar, name, path="users"):
        self.ask, self.jar, self.token = ask, jar, "none"
        self.status, body = self.call("POST", path, {"name": name, "password": "analytical"})
        self.token = body.get("csrf_token")

    def call(self, method, path, body=None):
        """Returns the status, and the JSON of the response."""
        args = ["-X", method, "-b", self.jar, "-c", self.jar, "-H", f"X-CSRF-Token: {self.token}"]
        if body is not None:
            args += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
        status, text = self.ask(f"/todo/api/{path}", *args)
        return status, json.loads(text or "null")


def test_todo(ask, tmp_path):
    ada, eve = (User(ask, tmp_path / name, f"{name}-{ask.protocol}") for name in ("ada", "eve"))
    assert (ada.status, eve.status) == (201, 201)
    assert User(ask, tmp_path / "taken", f"ADA-{ask.protocol}").status == 409
    assert User(ask, tmp_path / "guest", "nobody", "login").status == 401
    status, todo = ada.call("POST", "todos", {"text": "<b>milk"})
    path = f"todos/{todo['id']}"
    assert (status, todo) == (201, {"id": todo["id"], "text": "<b>milk", "done": False})
    assert ada.call("PUT", path, {"text": "\"bread\"", "done": True}) == (200, todo | {"text": '"bread"', "done": True})
    assert ada.call("GET", "todos") == (200, [todo | {"text": '"bread"', "done": True}])
    for body in ({}, {"text": ""}, {"text": "x" * 501}, {"text": 5}, [], "text"):
        assert ada.call("POST", "todos", body)[0] == 400
    assert ada.call("PUT", path, {"text": "x", "done": "yes"})[0] == 400
    assert ada.call("POST", "todos", {"text": "x" * 5000}) == (413, {"error": "the body is too long"})
    assert eve.call("GET", "todos") == (200, [])
    missing = 404, {"error": "there is no such thing"}
    assert eve.call("PUT", path, {"text": "x", "done": False}) == eve.call("DELETE", path) == missing
    assert ada.call("DELETE", "todos/x") == missing
    ada.token = eve.token
    assert ada.call("DELETE", path)[0] == 403
    ada.token = User(ask, ada.jar, f"ada-{ask.protocol}", "login").token
    assert ada.call("GET", "me") == (200, {"name": f"ada-{ask.protocol}", "csrf_token": ada.token})
    assert ada.call("DELETE", path)[0] == 200 and ada.call("DELETE", path) == missing
    assert ada.call("POST", "logout") == (204, None) and ada.call("GET", "todos")[0] == 401


def follow_todos(address, way, *fields):
    """A WebSocket of the example todo, by HTTP/1.1 or HTTP/2."""
    client = (H2Client if way == "h2" else Client)(address)
    return WebSocket(types.SimpleNamespace(way=WAYS[way]), "/todo/api/socket", client=client, fields=fields)


def test_todo_is_small():
    """Its C, HTML and JavaScript, which a reader shall see at once."""
    files = [path for path in EXAMPLES.glob("*-todo/**/*") if path.suffix in (".c", ".html", ".js")]
    assert len(files) == 3 and sum(len(path.read_text().splitlines()) for path in files) <= 425


def test_todo_live(server_of_examples, tmp_path):
    """Open pages and programs of a user, and only of that one, learn of changes at once."""
    address = server_of_examples.server.addresses[0]
    curl = functools.partial(server_of_examples.curl, "http1")
    users = [User(curl, tmp_path / name, name) for name in ("bob", "mia")]
    cookies = [f"Cookie: todo-session={user.jar.read_text().split()[-1]}" for user in users]
    with Client(address) as events:
        events.send(request("/todo/api/events", cookies[0]))
        assert events.head()["Content-Type"] == "text/event-stream"
        sockets = [follow_todos(address, way, cookies[0]) for way in ("h1", "h2")]
        other = follow_todos(address, "h1", cookies[1])
        _, todo = users[0].call("POST", "todos", {"text": "\u00e9\n"})
        users[0].call("DELETE", f"todos/{todo['id']}")
        _, last = users[1].call("POST", "todos", {"text": "mine"})
        for event in ("added", "removed"):
            text = events.until(b"\n\n").partition(b"data: ")[2]
            messages = [json.loads(text), *(json.loads(each.message()[1]) for each in sockets)]
            assert messages == [{"event": event, "todo": todo}] * 3
        assert json.loads(other.message()[1]) == {"event": "added", "todo": last}


@pytest.mark.browser
def test_todo_pages(server_of_examples, tmp_path):
    """Two pages of a user: what one changes, both show, as text."""
    items = "[...document.querySelectorAll('#todos li')].map(item => item.innerHTML.includes('<b>') + item.innerText)"
    first_item = "document.querySelector('#todos span')"
    with open_browser(tmp_path, ", NO TO-DOS IN A BROWSER") as browser:
        first = browser.page()
        second = browser.page(user=first)
        first.navigate(server_of_examples.url("http1", "/todo/"))
        first.evaluate("""{
            const form = document.querySelector("#login");
            form.elements.name.value = "zoe";
            form.elements.password.value = "analytical";
            form.requestSubmit(form.querySelector("[value=users]"));
        }""")
        first.evaluate(AWAIT % "document.querySelector('#name').innerText === 'zoe'")
        second.navigate(server_of_examples.url("http1", "/todo/"))
        second.evaluate(AWAIT % "document.querySelector('#name').innerText === 'zoe'")
        second.evaluate("""{
            document.querySelector("[name=text]").value = "<b>milk";
            document.querySelector("#add").requestSubmit();
        }""")
        for page in (first, second):
            page.evaluate(AWAIT % first_item)
            assert page.evaluate(items) == ["false<b>milk Delete"]
        first.evaluate("document.querySelector('#todos input').click()")
        second.evaluate(AWAIT % "document.querySelector('#todos input').checked")
        second.evaluate("document.querySelector('#todos button').click()")
        first.evaluate(AWAIT % f"!{first_item}")
