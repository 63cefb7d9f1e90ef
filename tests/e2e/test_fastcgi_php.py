# SPDX-License-Identifier: Apache-2.0
"""The plugin fastcgi with php-fpm: scripts, uploads, failures, and more clients than processes."""

import collections
import hashlib
import json
import os
import pathlib
import signal
import threading

import pytest

from harness import build
from harness.content import checksum_of_letters, populate, receive_rest
from harness.fastcgi import fastcgi_section
from harness.groups import GROUPS, group
from harness.load import Asking
from harness.php import PhpFpm, needs_php, needs_php_cgi
from harness.scripts import write_scripts
from harness.server import await_true, find_processes, section
from harness.services import reload

pytestmark = [
    needs_php,
    pytest.mark.skipif(not (build.PLUGINS / "fastcgi.so").exists(), reason="this preset has no plugins"),
]

FILES = {
    "hello.php": b"<?php echo 'hello';",
    "vars.php": b"<?php header('Content-Type: application/json'); echo json_encode($_SERVER);",
    "body.php": b"<?php $b = file_get_contents('php://input'); echo strlen($b), ' ', sha1($b);",
    "upload.php": b"<?php echo $_FILES['f']['size'], ' ', sha1_file($_FILES['f']['tmp_name']);",
    "log.php": b"<?php error_log('a line of the script'); echo 'logged';",
    "sleep.php": b"<?php usleep(20000); echo 'slept';",
    "forever.php": b"<?php while (true) usleep(10000);",
    "big.php": b"<?php for ($i = 0; $i < 20000; $i++) echo str_repeat('x', 1000);",
    "bytes.php": b"<?php for ($i = 0; $i < $_GET['mb']; $i++) echo str_repeat(chr(97 + $i % 26), 1 << 20);",
    "unread.php": b"<?php echo 'unread';",
    "garbage.php": b"<?php header_remove(); for ($i = 0; $i < 256; $i++) echo random_bytes(4096);",
    "stderr.php": b"<?php for ($i = 0; $i < 20000; $i++) error_log(str_repeat('y', 999)); echo 'done';",
    "closes.php": b"<?php echo 'first'; fastcgi_finish_request(); touch(__DIR__ . '/end'); echo 'never';",
    "dies.php": b"<?php echo str_repeat('x', 100000); flush(); exec('kill -9 ' . getmypid());",
    "fatal.php": b"<?php nothing();",
    "index.php": b"<?php echo 'front ', $_SERVER['REQUEST_URI'];",
    "wait.php": b"<?php touch(__DIR__ . '/waiting'); $go = __DIR__ . '/go';"
    b"while (!file_exists($go)) { usleep(10000); clearstatcache(); } echo 'done';",
    "count.php": b"<?php file_put_contents(__DIR__ . '/count', 'x', FILE_APPEND | LOCK_EX); echo 'hello';",
    "style.css": b"a file",
}


@pytest.fixture
def fpm(tmp_path):
    """Starts pools, which are ended with the test."""
    made = []

    def start(children=2, **pool):
        made.append(PhpFpm(tmp_path / f"fpm{len(made)}", children, **pool))
        return made[-1]

    yield start
    for each in made:
        each.kill()


@pytest.fixture
def php(serve):
    def start(pool, settings=None, to=None, config=None, **keys):
        text = fastcgi_section(to or pool, **{"ReadTimeout": "120s", "ResponseTimeout": "120s", **keys})
        return serve({"Workers": 1, **(settings or {})}, text=text, files=FILES, config=config)

    return start


@pytest.mark.parametrize("kept", [0, 8])
def test_hello(fpm, php, kept):
    with php(fpm(), KeepAlive=kept).connect() as client:
        for _ in range(20):
            got = client.ask("/hello.php")
            assert (got.status, got.body) == (200, b"hello")
            assert got["Content-Type"].startswith("text/html")


def test_variables(fpm, php):
    server = php(fpm())
    with server.connect() as client:
        got = json.loads(client.ask("/vars.php/a%20b?x=1", "Proxy: http://evil/", "X-Own: 1").body)
    assert got["SCRIPT_NAME"] == "/vars.php" and got["PATH_INFO"] == "/a b" and got["PHP_SELF"] == "/vars.php/a b"
    assert got["SCRIPT_FILENAME"] == str(server.root / "vars.php") and got["QUERY_STRING"] == "x=1"
    assert got["HTTP_X_OWN"] == "1" and "HTTP_PROXY" not in got


@pytest.mark.parametrize("path", ["/index.php/x%0Ay.php", "/index.php/%0A%0A%0A%0A%0A%0A%0A%0A", "/index.php%0Ax.php"])
def test_line_feeds_in_paths(fpm, php, path):  # CVE-2019-11043
    with php(fpm(), TryFiles="$path /index.php").connect() as client:
        for _ in range(5):
            got = client.ask(path + "?" + "q" * 1800)
            assert got.status == 200 and got.body.startswith(b"front ")


@pytest.mark.parametrize("spool", ["On", "Off"])
def test_long_body(fpm, php, spool):
    body = os.urandom(1 << 20)
    wanted = b"%d %s" % (len(body), hashlib.sha1(body).hexdigest().encode())
    with php(fpm(), SpoolRequest=spool).connect() as client:
        assert client.ask("/body.php", "Content-Type: a/b", method="POST", body=body).body == wanted
        client.send(b"POST /body.php HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 50000):
            piece = body[at : at + 50000]
            client.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        client.send(b"0\r\n\r\n")
        assert client.response("POST").body == wanted


def test_upload_of_a_form(fpm, php):
    content = os.urandom(100000)
    body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n' + content + b"\r\n--b--\r\n"
    with php(fpm()).connect() as client:
        got = client.ask("/upload.php", "Content-Type: multipart/form-data; boundary=b", method="POST", body=body)
        assert got.body == b"%d %s" % (len(content), hashlib.sha1(content).hexdigest().encode())


def test_error_output(fpm, php):
    server = php(fpm())
    with server.connect() as client:
        assert client.ask("/log.php").body == b"logged"
    server.wait_log(r"fastcgi: \S+/log\.php: .*a line of the script")


def test_statuses_of_php(fpm, php):
    with php(fpm()).connect() as client:
        assert client.ask("/missing.php").status == 404
        assert client.ask("/fatal.php").status == 500
        assert client.ask("/style.css").body == b"a file"


def test_long_response(fpm, php):
    with php(fpm()).connect() as client:
        got = client.ask("/big.php")
        assert got.status == 200 and got.body == b"x" * 20_000_000


def test_child_that_is_killed(fpm, php):
    pool = fpm(1)
    server = php(pool)
    with server.connect() as client:
        client.send(b"GET /big.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.until(b"xxx")
        os.kill(pool.children()[0], signal.SIGKILL)
        client.rest()
    with server.connect() as client:
        assert client.ask("/hello.php").body == b"hello"


def test_pool_that_is_killed_and_started(fpm, php):
    pool = fpm()
    server = php(pool)
    with server.connect() as client:
        assert client.ask("/hello.php").status == 200
        pool.kill()
        got = client.ask("/hello.php")
        assert got.status == 502 and "Proxy-Status" in dict(got.fields)
        server.wait_log(rf"{pool.socket}: .*: start the server")
        pool.socket.unlink(missing_ok=True)
        pool.start()
        assert client.ask("/hello.php").status == 200


def test_pool_that_is_reloaded(fpm, php):
    pool = fpm(4)
    server = php(pool)
    with server.connect() as client:
        assert client.ask("/hello.php").status == 200
        before = pool.children()
        pool.reload()
        await_true(lambda: pool.children() and not set(pool.children()) & set(before), 60, "new processes")
        await_true(lambda: client.ask("/hello.php").status == 200, 60, "a response")


def test_slow_script_has_a_limit(fpm, php):
    with php(fpm(), ResponseTimeout="200ms").connect() as client:
        got = client.ask("/forever.php")
        assert got.status == 504 and "error=http_response_timeout" in got["Proxy-Status"]


@pytest.mark.single_protocol
@pytest.mark.parametrize("megabytes", [64, pytest.param(1024, marks=pytest.mark.slow)])
@pytest.mark.parametrize("buffer", ["256K 64M", "Off"])
def test_response_of_any_length(fpm, php, megabytes, buffer):
    """It comes whole, and the server does not keep it."""
    server = php(fpm(), BufferResponse=buffer)
    with server.connect(timeout=120) as client:
        assert client.ask("/hello.php").status == 200
        before = server.memory_kb()
        client.send(b"GET /bytes.php?mb=%d HTTP/1.0\r\nHost: localhost\r\n\r\n" % megabytes)
        client.until(b"\r\n\r\n")
        length, checksum = receive_rest(client)
        grown = server.memory_kb() - before
    assert (length, checksum) == (megabytes << 20, checksum_of_letters(megabytes))
    assert grown < 32_000 or build.SANITIZED


@pytest.mark.parametrize("spool", ["On", "Off"])
def test_script_that_reads_nothing(fpm, php, spool):
    """It responds; what it has not read is dropped, and the pool serves the next request."""
    server = php(fpm(1), SpoolRequest=spool)
    for _ in range(3):
        with server.connect(timeout=120) as client:
            got = client.ask("/unread.php", method="POST", body=b"x" * 3_000_000)
            assert (got.status, got.body) == (200, b"unread")
    with server.connect() as client:
        assert client.ask("/hello.php").body == b"hello"


def test_script_that_writes_garbage(fpm, php):
    """PHP puts a head before it; the bytes are the body."""
    with php(fpm()).connect() as client:
        got = client.ask("/garbage.php")
        assert got.status == 200 and len(got.body) == 256 * 4096


def test_script_that_fills_the_error_output(fpm, php):
    """20 MB of lines: the first ones are logged, the others counted, and the response comes."""
    server = php(fpm())
    with server.connect(timeout=120) as client:
        assert client.ask("/stderr.php").body == b"done"
    server.wait_log("y{100}")
    assert server.log.count("y" * 100) <= 100


def test_script_that_continues_behind_its_response(fpm, php):
    server = php(fpm(1))
    with server.connect(timeout=120) as client:
        assert client.ask("/closes.php").body == b"first"
        await_true((server.root / "end").exists, 60, "the end of the script")
        assert client.ask("/hello.php").body == b"hello"


def test_script_that_kills_its_process(fpm, php):
    """The response is cut, which the client notices; another process serves the next one."""
    server = php(fpm(1), BufferResponse="Off")
    with server.connect(timeout=120) as client:
        client.send(b"GET /dies.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"0\r\n\r\n" not in client.rest()[-5:]
    await_true(lambda: ask_hello(server) == b"hello", 60, "another process")


def ask_hello(server):
    with server.connect(timeout=120) as client:
        return client.ask("/hello.php").body


def ask_at_once(server, path, count, method=b"GET"):
    """The statuses and bodies of as many clients, all of which are connected before the first response."""
    clients = [server.connect(timeout=300) for _ in range(count)]
    for client in clients:
        client.send(b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n" % (method, path))
    return collections.Counter((got.status, got.body if got.status == 200 else b"")
                               for got in (client.response() for client in clients))


def test_more_clients_than_processes(fpm, php):
    """500 clients, two processes: the queue of the group serves them all; the pool gets two requests at a time."""
    pool = fpm(2)
    config = {GROUPS: group([pool.to], MaxConnections=2, Queue=1000, QueueTimeout="300s")}
    server = php(pool, settings={"Workers": 2}, to="app", config=config, KeepAlive=0)
    assert ask_at_once(server, b"/sleep.php", 500) == {(200, b"slept"): 500}


def test_processes_that_end_amid_the_queue(fpm, php):
    """pm.max_requests: the process closes the connection that the next request takes over; none fails or runs twice."""
    pool = fpm(3, **{"pm.max_requests": 3})
    config = {GROUPS: group([pool.to], MaxConnections=3, Queue=1000, QueueTimeout="300s")}
    server = php(pool, settings={"Workers": 2}, to="app", config=config)
    for method in (b"GET", b"POST"):
        assert ask_at_once(server, b"/count.php", 100, method) == {(200, b"hello"): 100}
    assert (server.root / "count").stat().st_size == 200


@pytest.mark.concurrent
@pytest.mark.parametrize("keep", ["Queue", 0, 4])
def test_processes_that_are_killed_under_load(fpm, php, keep):
    """SIGKILL ends processes of both pools amid requests: those that may be repeated go to another one."""
    pools = [fpm(2), fpm(2)]
    keys = {"Retry": "Idempotent", "RetryMost": 7, "RetryBudget": 100, "EjectAfter": 0, "QueueTimeout": "60s"}
    config = {GROUPS: group([pool.to for pool in pools], MaxConnections=2, Queue=100, **keys)}
    server = php(pools[0], {"Workers": 2, "MaxKeepAliveRequest": 0}, to="app", config=config, KeepAlive=keep)

    def get(client):
        got = client.ask("/sleep.php")
        assert (got.status, got.body) == (200, b"slept")

    with Asking(server, get) as clients:
        for pool in pools * 4:
            clients.await_answers(10)
            os.kill(pool.children()[0], signal.SIGKILL)
    assert not clients.errors, clients.errors


def test_full_queue(fpm, php):
    """All are served, or refused: not more than the two of the pool and the 50 that wait, while the others come."""
    pool = fpm(2)
    config = {GROUPS: group([pool.to], MaxConnections=2, Queue=50, QueueTimeout="300s")}
    server = php(pool, settings={"Workers": 2}, to="app", config=config)
    found = ask_at_once(server, b"/sleep.php", 500)
    assert set(found) == {(200, b"slept"), (503, b"")} and sum(found.values()) == 500
    assert found[200, b"slept"] >= 52
    assert ask_at_once(server, b"/hello.php", 1) == {(200, b"hello"): 1}


@pytest.mark.concurrent
def test_reloads_under_load(fpm, php):
    pool, done, statuses = fpm(4), threading.Event(), set()

    def work():
        with server.connect(timeout=120) as client:
            while not done.is_set():
                statuses.add(client.ask("/body.php", method="POST", body=b"x" * 20000).status)

    server = php(pool, settings={"Workers": 2, "MaxKeepAliveRequest": 1000000}, KeepAlive=2)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            reload(server)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert statuses == {200}


def test_stop_of_php_amid_requests(fpm, php):
    pool = fpm(2)
    server = php(pool)
    clients = [server.connect(timeout=120) for _ in range(4)]
    for client in clients:
        client.send(b"GET /forever.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for pid in pool.children():
        os.kill(pid, signal.SIGKILL)
    pool.kill()
    assert {client.response().status for client in clients} == {502}


# ── Spawn ──


@pytest.fixture
def spawn(serve, tmp_path):
    """A server that starts php-cgi; its processes have a mark of the test in their arguments."""
    made, mark = [], f"test.mark={os.getpid()}-{tmp_path.name}"

    def start(children=2, settings=None, **keys):
        text = section("FASTCGI", {"Spawn": f'"php-cgi" -n -d {mark}', "Children": children, **keys})
        server = serve({"Workers": 1, **(settings or {})}, text=text, files=FILES)
        server.find_children = lambda: find_processes(mark)
        made.append(server)
        await_true(lambda: len(server.find_children()) == children, 60, "the children")
        await_true(lambda: str(server.open_files()).count("[pidfd]") == children, 60, "the start of all children")
        server.baseline = server.descriptors()
        return server

    yield start
    for server in made:
        if server.alive:
            server.settle()
            server.stop()
    await_true(lambda: not find_processes(mark), 30, "the end of all children")


@needs_php_cgi
def test_spawned_children_serve(spawn):
    server = spawn(2)
    with server.connect() as client:
        for _ in range(10):
            assert client.ask("/hello.php").body == b"hello"


@pytest.mark.concurrent
@needs_php_cgi
def test_spawned_child_is_started_again(spawn):
    server = spawn(2)
    before = server.find_children()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    server.wait_log("process \\d+ was killed by signal 9.*another one is started", 2)
    await_true(lambda: len(server.find_children()) == 2 and not server.find_children() & before, 60, "new children")
    with server.connect() as client:
        assert client.ask("/hello.php").body == b"hello"


@pytest.mark.concurrent
@needs_php_cgi
def test_spawned_children_stay_over_reloads(spawn):
    server = spawn(2)
    before = server.find_children()
    for _ in range(3):
        reload(server)
    assert server.find_children() == before
    conf = server.conf / "sites" / "default"
    conf.write_text(conf.read_text().replace("Children 2", "Children 3"))
    reload(server)
    await_true(lambda: len(server.find_children()) == 3 and before < server.find_children(), 60, "a third child")
    conf.write_text(conf.read_text().replace("Children 3", "Children 1"))
    reload(server)
    await_true(lambda: len(server.find_children()) == 1, 60, "one child")
    with server.connect() as client:
        assert client.ask("/hello.php").body == b"hello"


def begin_wait(server, client):
    """Sends a request whose script runs until there is a file "go"."""
    client.send(b"GET /wait.php HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await_true(lambda: (server.root / "waiting").exists(), 60, "the script")


@pytest.mark.concurrent
@needs_php_cgi
def test_spawn_that_changes_amid_a_request(spawn):
    """The children of the former line serve its requests to their end, and end then."""
    server = spawn(2)
    before = server.find_children()
    with server.connect() as slow:
        begin_wait(server, slow)
        conf = server.conf / "sites" / "default"
        conf.write_text(conf.read_text().replace('"php-cgi" -n', '"php-cgi" -n -d other.mark=1'))
        reload(server)
        await_true(lambda: len(server.find_children() - before) == 2, 60, "the new children")
        assert before <= server.find_children()
        (server.root / "go").touch()
        assert slow.response().body == b"done"
    await_true(lambda: not server.find_children() & before, 60, "the end of the former children")
    with server.connect() as client:
        assert client.ask("/hello.php").body == b"hello"


@needs_php_cgi
@pytest.mark.parametrize("change", ["reload", "stop"])
def test_spawned_child_that_ignores_signals(serve, tmp_path, change):
    """Where SIGTERM does not end it SIGKILL does, with what it has started."""
    mark = f"test.mark={os.getpid()}-{tmp_path.name}"
    program = write_scripts(tmp_path, {"stubborn": f"#!/bin/sh\ntrap '' TERM\nphp-cgi -n -d {mark}\ntrue\n"})
    text = section("FASTCGI", {"Spawn": f"{program}/stubborn {mark}", "Children": 1})
    server = serve({"Workers": 1}, text=text, files=FILES)
    try:
        await_true(lambda: ask_hello(server) == b"hello", 60, "the start of the child")
        server.drop_clients()
        assert len(find_processes(mark)) == 2
        if change == "reload":
            conf = server.conf / "sites" / "default"
            conf.write_text(conf.read_text().replace(text.split("\n", 1)[1], f"    To unix:{tmp_path}/none\n"))
            reload(server)
        else:
            server.stop()
        await_true(lambda: not find_processes(mark), 60, "the end of the child")
        server.baseline += 4 * (change == "reload")  # sockets to the starter, and its loop's, which stay
    finally:
        for pid in find_processes(mark):
            os.kill(pid, signal.SIGKILL)


@needs_php_cgi
def test_spawned_children_end_at_the_stop(spawn):
    """Also those that serve a request, once ShutdownTimeout is over."""
    server = spawn(2, settings={"ShutdownTimeout": "1s"})
    with server.connect() as client:
        begin_wait(server, client)
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        client.assert_gone()
    await_true(lambda: not server.find_children(), 60, "the end of the children")


@needs_php_cgi
def test_spawned_child_whose_client_leaves(spawn):
    """It is not ended: PHP ends its script itself. Until then the other one serves, and both do after that."""
    server = spawn(2)
    before = server.find_children()
    with server.connect() as leaving:
        begin_wait(server, leaving)
    with server.connect() as client:
        assert client.ask("/hello.php").body == b"hello"
        (server.root / "go").touch()
        for _ in range(20):
            assert client.ask("/hello.php").body == b"hello"
    assert server.find_children() == before


@needs_php_cgi
@pytest.mark.single_protocol
def test_spawned_children_over_an_upgrade(chain, tmp_path):
    """Each process has its own; those of the former one end with it."""
    mark = f"test.mark={os.getpid()}-{tmp_path.name}"
    text = section("HOST", {"ServerName": "localhost", "DocumentRoot": tmp_path / "root"})
    text += section("FASTCGI", {"Spawn": f"php-cgi -n -d {mark}", "Children": 2})
    one = chain(modules=("fastcgi.so",), files={"sites/default": text})
    (one.root / "hello.php").write_bytes(FILES["hello.php"])
    await_true(lambda: ask_hello(one.server) == b"hello" and len(find_processes(mark)) == 2, 60, "the children")
    before = find_processes(mark)
    one.upgrade()
    one.await_old()
    await_true(lambda: not find_processes(mark) & before, 60, "the end of the former children")
    assert ask_hello(one.server) == b"hello" and len(find_processes(mark)) == 2
    one.stop()
    await_true(lambda: not find_processes(mark), 60, "the end of all children")


@needs_php_cgi
def test_spawn_of_a_program_that_ends_at_once(serve):
    server = serve({"Workers": 1}, text=section("FASTCGI", {"Spawn": "/bin/true", "Children": 1}), files=FILES)
    server.wait_log("Spawn /bin/true: process \\d+ ended.*another one is started", 3)
    server.baseline = server.descriptors()


def test_files_and_scripts_in_an_alias(fpm, serve, tmp_path):
    """Where paths lead to scripts, the section finds those of an alias, too, and TryFiles applies there."""
    files = {"a.css": b"css", "direct.php": FILES["index.php"].replace(b"front", b"own")}
    alias = section("ALIAS", {"Match": "/content", "To": populate(tmp_path / "outside", files)})
    text = fastcgi_section(fpm(), Match="/", TryFiles="$path /index.php") + alias
    with serve({"Workers": 1}, text=text, files=FILES).connect() as client:
        for path, body in {"/content/a.css": b"css", "/content/direct.php": b"own /content/direct.php",
                           "/content/none": b"front /content/none", "/none": b"front /none"}.items():  # fmt: skip
            got = client.ask(path)
            assert (got.status, got.body) == (200, body), path
