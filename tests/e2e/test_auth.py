# SPDX-License-Identifier: Apache-2.0
"""Logins by name and password: which paths, which users, changes of the files, limits, and a client that leaves."""

import base64
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from harness import build
from harness.browser import open_browser
from harness.certificates import Authority, TlsClient
from harness.content import populate
from harness.messages import request
from harness.server import await_true, run, section, send_signal, thread_states, write_config
from harness.ways import WAYS
from test_concurrent import in_parallel
from test_shell import stopped_thread

PROGRAM = build.TOP / "build" / build.PRESET / "bin" / "mk_passwd"
FILES = {"index.html": b"home\n", "a/secret.txt": b"secret\n", "a/public/x.txt": b"public\n", "b/team.txt": b"team\n"}
FREE = {"FailureDelay": "0s", "MaxFailures": 0}  # for tests of other things

pytestmark = pytest.mark.skipif(not (build.PLUGINS / "auth.so").exists(), reason="the preset has no plugin auth")


def basic(user, password):
    return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def passwd(path, *args, password=None):
    """Runs mk_passwd with cheap hashes."""
    kind = [] if "-D" in args or "-t" in args else ["-t", "bcrypt", "-C", "4"]
    data = None if password is None else password + "\n"
    return subprocess.run([PROGRAM, *kind, path, *args], input=data, capture_output=True, text=True, timeout=120)


@pytest.fixture
def users(tmp_path):
    """A file with ada (an old hash of Apache), bob (bcrypt) and josé (yescrypt)."""
    path = tmp_path / "users"
    path.write_text("# users\nada:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\n")
    path.chmod(0o600)
    assert passwd(path, "bob", password="battery9x").returncode == 0
    assert passwd(path, "josé", "-t", "yescrypt", "-C", "1", password="contraseña").returncode == 0
    return path


ADA, BOB, JOSE = basic("ada", "passw0rd"), basic("bob", "battery9x"), basic("josé", "contraseña")


@pytest.fixture
def protect(serve, tmp_path):
    """Starts a server whose default host has these sections [AUTH]."""

    def start(*rules, limits=FREE, settings=None, more="", **rest):
        root = populate(tmp_path / "root", FILES)
        text = section("HOST", {"DocumentRoot": root}) + "".join(section("AUTH", rule) for rule in rules) + more
        common = {"Listen": "127.0.0.1:0", "LogLevel": "debug", "KeepAliveTimeout": "60s"}
        main = section("SERVER", {**common, **(settings or {})})
        config = {"sites/default": text, "monkey.conf": main + section("AUTH_LIMITS", limits), **rest.pop("config", {})}
        return serve(config=config, **rest)

    return start


CONTROL_FILES = 2  # of the thread that ends a generation, from the first reload on


def reload(server):
    """The first reload of a server, to its end."""
    server.baseline += CONTROL_FILES
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use")


# ── over all ways ──


@pytest.mark.single_protocol
@pytest.mark.parametrize("way", WAYS)
def test_login(protect, users, tmp_path, way):
    way = WAYS[way]
    settings, more = {}, ""
    if way.tls:
        if not build.speaks("tls"):
            pytest.skip("the preset has no tls")
        way.ca = Authority(tmp_path / "ca")
        settings, more = {"Listen": "127.0.0.1:0 tls"}, section("TLS", way.ca.make("localhost", "localhost").keys())
    server = protect({"Match": "/a", "Realm": '"the \\"inner\\" circle"', "Users": users}, settings=settings, more=more)
    server.clients = getattr(server, "clients", [])
    client = way.connect(server)
    assert client.ask("/").body == b"home\n"
    wrong = [basic("ada", "wrong"), basic("eve", "passw0rd"), basic("", ""), "Authorization: Basic ?"]
    for credentials in [(), *((one,) for one in wrong)]:
        answer = client.ask("/a/secret.txt", *credentials)
        assert answer.status == 401
        assert answer["WWW-Authenticate"] == 'Basic realm="the \\"inner\\" circle", charset="UTF-8"'
    for credentials in (ADA, BOB, JOSE) * 2:
        answer = client.ask("/a/secret.txt", credentials)
        assert (answer.status, answer.body) == (200, b"secret\n")
    assert client.ask("/a/secret.txt", ADA, method="HEAD").status == 200
    answer = client.ask("/a/secret.txt", ADA, method="POST", body=b"x" * 3000)
    assert answer.status == 405
    assert client.ask("/a/secret.txt", method="POST", body=b"x" * 3000).status == 401


# ── which rule ──


def test_first_rule_that_matches(protect, users, tmp_path):
    groups = tmp_path / "groups"
    groups.write_text("team: ada josé\nother: bob\n")
    server = protect(
        {"Match": "/a/public", "Type": "Off"},
        {"Match": "/a", "Users": users, "Require": ["user ada", "group other"], "Groups": groups},
        {"Match": "/b", "Users": users, "Groups": groups, "Require": "group team nobody"},
    )
    with server.connect() as client:
        assert client.ask("/a/public/x.txt").body == b"public\n"
        assert client.ask("/a/%70ublic/../secret.txt").status == 401
        statuses = {
            (path, name): client.ask(path, credentials).status
            for path in ("/a/secret.txt", "/b/team.txt")
            for name, credentials in (("ada", ADA), ("bob", BOB), ("josé", JOSE))
        }
        assert statuses == {
            ("/a/secret.txt", "ada"): 200,
            ("/a/secret.txt", "bob"): 200,
            ("/a/secret.txt", "josé"): 403,
            ("/b/team.txt", "ada"): 200,
            ("/b/team.txt", "bob"): 403,
            ("/b/team.txt", "josé"): 200,
        }
        groups.write_text("team: bob\nother: bob\n")
        await_true(lambda: client.ask("/b/team.txt", BOB).status == 200, 30, "the new groups")
        assert client.ask("/b/team.txt", ADA).status == 403


def test_sections_of_all_hosts(protect, users):
    rule = section("AUTH", {"Match": "/b", "Users": users})
    main = section("SERVER", {"Listen": "127.0.0.1:0"}) + "@INCLUDE auth.conf\n"
    server = protect({"Match": "/b/team.txt", "Type": "Off"}, config={"auth.conf": rule, "monkey.conf": main})
    with server.connect() as client:
        assert client.ask("/b/team.txt").status == 200
        assert client.ask("/b/").status == 401


def test_preflight(protect, users):
    server = protect({"Users": users, "AllowPreflight": "On"})
    with server.connect() as client:
        assert client.ask("/", method="OPTIONS").status == 401
        fields = ("Origin: https://a.example", "Access-Control-Request-Method: GET")
        assert client.ask("/", *fields, method="OPTIONS").status == 204
        assert client.ask("/", *fields).status == 401


def test_expressions_that_fail_protect(protect, users):
    """A rule whose expression takes too long on a path may be the one that protects it."""
    server = protect({"Match": "~^/(a+)+$", "Users": users})
    with server.connect() as client:
        assert client.ask("/" + "a" * 3000 + "!").status == 500


# ── changes ──


def test_files_are_loaded_again(protect, users):
    server = protect({"Match": "/a", "Users": users})
    with server.connect() as client:
        assert client.ask("/a/secret.txt", BOB).status == 200
        assert passwd(users, "bob", password="another one").returncode == 0
        server.wait_log("the users of .*: loaded again")
        assert client.ask("/a/secret.txt", BOB).status == 401  # though it was in the cache
        assert client.ask("/a/secret.txt", basic("bob", "another one")).status == 200
        assert passwd(users, "-D", "bob").returncode == 0
        server.wait_log("the users of .*: loaded again", 2)
        assert client.ask("/a/secret.txt", basic("bob", "another one")).status == 401
        line = users.read_text().count("\n") + 1
        with users.open("a") as file:  # at no moment it is empty
            file.write("eve:plain\n")
        server.wait_log(rf"users:{line}:5: the password is plain text")
        assert client.ask("/a/secret.txt", ADA).status == 200  # the former users stay
        assert client.ask("/a/secret.txt", basic("eve", "plain")).status == 401


MOUNTS = pytest.mark.skipif(not build.can_mount(), reason="A MOUNTED FILE IS NOT TESTED: it needs root and mounts")


@pytest.mark.parametrize("way", ["hard link", pytest.param("mount", marks=MOUNTS)])
def test_a_file_that_is_changed_by_another_name(protect, users, tmp_path, way):
    """In a folder that no path of the configuration passes."""
    other = tmp_path / "elsewhere" / "users"
    other.parent.mkdir()
    if way == "hard link":
        os.link(users, other)
        server = protect({"Match": "/a", "Users": users})
    else:
        shutil.copy(users, other)
        wrapper = ["unshare", "-m", "sh", "-c", f'mount --bind {other} {users} && exec "$0" "$@"']
        server = protect({"Match": "/a", "Users": users}, wrapper=wrapper)
    with server.connect() as client:
        for count, name in enumerate(["eve", "eva"], 1):
            with other.open("a") as file:
                file.write(f"{name}:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\n")
            server.wait_log("the users of .*: loaded again", count)
            assert client.ask("/a/secret.txt", basic(name, "passw0rd")).status == 200


def test_a_host_without_logins(protect, users, tmp_path):
    """Next to one that has them; also in a check and over a reload."""
    other = section("HOST", {"ServerName": "other.example", "DocumentRoot": tmp_path / "root"})
    server = protect({"Match": "/a", "Users": users}, config={"sites/other": other})
    assert run("-t", "-c", server.conf).returncode == 0
    for _ in range(2):
        with server.connect() as client:
            assert client.ask("/a/secret.txt", host="other.example").status == 200
            assert client.ask("/a/secret.txt").status == 401
        reload(server)


def test_attempts_at_once_count(protect, users):
    """A client may not try more passwords at once than it may try at all."""
    limits = {**FREE, "MaxFailures": 3, "FailureTime": "1h"}
    server = protect({"Match": "/a", "Users": slow_users(users)}, limits=limits)
    clients = [server.connect() for _ in range(8)]
    for n, client in enumerate(clients):
        client.send(request("/a/secret.txt", basic("bob", f"guess {n}")))
    statuses = sorted(client.response().status for client in clients)
    assert statuses.count(401) <= 3 and set(statuses) <= {401, 429, 503}
    with server.connect() as client:
        right = client.ask("/a/secret.txt", basic("bob", "battery9x")).status
    assert right == (429 if statuses.count(401) == 3 else 200)


def test_a_reload_keeps_the_cache(protect, users):
    server = protect({"Match": "/a", "Users": users})
    with server.connect() as client:
        assert client.ask("/a/secret.txt", BOB).status == 200
    reload(server)
    with server.connect() as client:
        for _ in range(3):
            assert client.ask("/a/secret.txt", BOB).status == 200
    assert len(re.findall("password hashes were computed", server.log)) == 1


def slow_users(path):
    """The hash of bob takes about half a second, more under a sanitizer."""
    assert passwd(path, "bob", "-t", "bcrypt", "-C", "11", password="battery9x").returncode == 0
    return path


@contextlib.contextmanager
def held_hashes(server):
    """The only thread for hashes does nothing meanwhile. It is idle when it is stopped, and holds no lock."""
    with server.connect() as client:
        assert client.ask("/a/secret.txt", ADA).status == 200  # which starts it
    (thread,) = server.find_threads("auth-hash")
    await_true(lambda: thread_states(server.pid)[thread] == "S", what="the thread for hashes is idle")
    with stopped_thread(thread):
        yield


@pytest.mark.concurrent
def test_a_reload_while_requests_wait(protect, users):
    """The generation in which the request began, with the plugin, stays until the hash is known."""
    server = protect({"Match": "/a", "Users": slow_users(users)}, limits={**FREE, "CacheTime": "0s"})
    with server.connect() as client, server.connect() as other:
        client.send(f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{BOB}\r\n\r\n".encode())
        other.ask("/")
        (server.conf / "monkey.conf").write_text(section("SERVER", {"Listen": "127.0.0.1:0"}))
        host = section("HOST", {"DocumentRoot": users.parent / "root"})
        (server.conf / "sites" / "default").write_text(host)
        reload(server)
        assert other.ask("/a/secret.txt").status == 200
        assert client.response().status == 200


@pytest.mark.concurrent
def test_the_file_changes_while_a_request_waits(protect, users):
    """The result of a hash that is no longer the user's does not count."""
    limits = {**FREE, "HashThreads": 1, "CacheTime": "0s"}
    server = protect({"Match": "/a", "Users": slow_users(users)}, limits=limits, settings={"Workers": 1})
    with held_hashes(server), server.connect() as other:
        clients = [server.connect() for _ in range(12)]
        for n, client in enumerate(clients):  # different passwords: each needs its own hash, one after the other
            login = BOB if n == 11 else basic("bob", f"wrong {n}")
            client.send(f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{login}\r\n\r\n".encode())
        assert other.ask("/").status == 200  # the worker has read those before
        assert passwd(users, "bob", password="another one").returncode == 0
        server.wait_log("the users of .*: loaded again")
    assert [client.response().status for client in clients] == [401] * 12
    for client in clients:
        client.close()


@pytest.mark.concurrent
def test_a_stop_while_requests_wait(protect, users):
    server = protect({"Match": "/a", "Users": slow_users(users)}, settings={"ShutdownTimeout": "5s"})
    clients = [server.connect() for _ in range(6)]
    for n, client in enumerate(clients):
        client.send(f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{basic('bob', str(n))}\r\n\r\n".encode())
    server.send_signal(signal.SIGTERM)
    assert server.wait(60) == 0
    for client in clients:
        client.close()


@pytest.mark.concurrent
def test_a_stop_that_waits_for_no_hash(protect, users):
    """The requests are cut; the hashes end in their own time, without a worker."""
    server = protect({"Match": "/a", "Users": slow_users(users)}, settings={"ShutdownTimeout": "10ms", "Workers": 2})
    clients = [server.connect() for _ in range(12)]
    for n, client in enumerate(clients):
        client.send(f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{basic('bob', str(n))}\r\n\r\n".encode())
    server.send_signal(signal.SIGTERM)
    assert server.wait(60) == 0
    for client in clients:
        client.close()


@pytest.mark.concurrent
def test_fewer_workers_while_requests_wait(protect, users):
    server = protect({"Match": "/a", "Users": slow_users(users)}, settings={"Workers": 4, "ShutdownTimeout": "10ms"})
    clients = [server.connect() for _ in range(8)]
    for n, client in enumerate(clients):
        client.send(f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{basic('bob', str(n))}\r\n\r\n".encode())
    path = server.conf / "monkey.conf"
    path.write_text(re.sub(r"Workers \d", "Workers 1", path.read_text()))
    reload(server)
    with server.connect(timeout=60) as client:
        await_true(lambda: client.ask("/a/secret.txt", BOB).status == 200, 60, "a login")
    for client in clients:
        client.close()


# ── clients that leave, and limits ──


@pytest.mark.concurrent
def test_clients_that_leave(protect, users):
    server = protect({"Match": "/a", "Users": slow_users(users)}, limits={**FREE, "HashThreads": 1, "HashQueue": 100})
    for n in range(8):
        client = server.connect()
        client.send(f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{basic('bob', f'x{n}')}\r\n\r\n".encode())
        client.reset() if n % 2 else client.close()
    with server.connect(timeout=60) as client:
        assert client.ask("/a/secret.txt", ADA).status == 200
    server.settle()


def test_one_hash_for_a_page(protect, users):
    """Requests with the same login at the same time share a hash; so does one that comes later (the cache)."""
    server = protect({"Match": "/a", "Users": slow_users(users)}, settings={"Workers": 1})
    clients = [server.connect() for _ in range(20)]
    for client in clients:
        client.send(f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{BOB}\r\n\r\n".encode())
    assert {client.response().status for client in clients} == {200}
    assert clients[0].ask("/a/secret.txt", BOB).status == 200
    server.wait_log("password hashes were computed")
    assert count_hashes(server) == 1
    for client in clients:
        client.close()


def count_hashes(server):
    return len(re.findall("password hashes were computed", server.log))


@pytest.mark.parametrize("most", [0, 8])
def test_each_failure_has_its_line(protect, users, most):
    """Until MaxFailures of the client; without that they are limited as other lines that clients cause."""
    limits = {"FailureDelay": "0s", "MaxFailures": most, "FailureTime": "1h"}
    server = protect({"Match": "/a", "Users": users}, limits=limits)
    with server.connect() as client:
        for n in range(12):
            status = client.ask("/a/secret.txt", basic("ada", f"wrong {n}")).status
            assert status == (429 if most and n >= most else 401)
    assert server.log.count(": wrong password") == (most or 4)
    assert server.log.count(": too many failed logins") == bool(most)


def test_unknown_users_cost_a_hash(protect, users):
    server = protect({"Match": "/a", "Users": users})
    with server.connect() as client:
        for n, name in enumerate(("ada", "eve", "zed", "")):
            assert client.ask("/a/secret.txt", basic(name, "wrong")).status == 401
            server.wait_log(rf'user "{name}": (wrong password|there is no such user)')
            assert count_hashes(server) == n + 1


def test_too_many_failures(protect, users):
    limits = {"FailureDelay": "0s", "MaxFailures": 3, "FailureTime": "1h"}
    server = protect({"Match": "/a", "Users": users}, limits=limits)
    with server.connect() as client:
        assert client.ask("/a/secret.txt", ADA).status == 200
        for n in range(3):
            assert client.ask("/a/secret.txt", basic("ada", str(n))).status == 401
        for credentials in (basic("ada", "3"), ADA, basic("eve", "x")):
            answer = client.ask("/a/secret.txt", credentials)
            assert answer.status == 429 and 3500 < int(answer["Retry-After"]) <= 3600
        server.wait_log(r"auth: client 127\.0\.0\.1: too many failed logins \(MaxFailures\)")
        assert client.ask("/a/secret.txt").status == 401  # asks for the login, which counts no failure
        assert client.ask("/").status == 200
    reload(server)
    with server.connect() as client:
        assert client.ask("/a/secret.txt", ADA).status == 429  # a reload keeps the count
    assert count_hashes(server) == 4


def test_failures_are_delayed(protect, users):
    server = protect({"Match": "/a", "Users": users}, limits={"FailureDelay": "400ms"})
    with server.connect() as client:
        began = time.monotonic()
        assert client.ask("/a/secret.txt", basic("ada", "x")).status == 401
        assert time.monotonic() - began > 0.35
        client.send(f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{basic('ada', 'y')}\r\n\r\n".encode())
        server.wait_log('user "ada": wrong password', 2)  # and the client leaves while it is held back


@pytest.mark.single_protocol  # it ends while the server is stopped
def test_full_queue(protect, users):
    server = protect(
        {"Match": "/a", "Users": slow_users(users)},
        limits={**FREE, "HashThreads": 1, "HashQueue": 2},
        settings={"Workers": 1},
    )
    clients = [server.connect() for _ in range(6)]
    send_signal(server.process, signal.SIGSTOP)  # so that all come at once
    for n, client in enumerate(clients):
        client.send(f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{basic('bob', f'x{n}')}\r\n\r\n".encode())
    server.send_signal(signal.SIGCONT)
    answers = [client.response() for client in clients]
    assert {answer.status for answer in answers} == {401, 503}
    assert all(answer["Retry-After"] == "1" for answer in answers if answer.status == 503)
    server.wait_log("503, because this client has too many logins at once|503, because too many requests wait")
    for client in clients:
        client.close()


@pytest.mark.concurrent
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is only one CPU")
def test_threads_of_bound_workers(protect, users):
    """The threads for hashes may use all CPUs of the process, not only that of the worker that starts them."""
    server = protect({"Match": "/a", "Users": users}, settings={"Workers": 1, "Affinity": "On"})
    with server.connect() as client:
        assert client.ask("/a/secret.txt", BOB).status == 200
    cpus = {}
    for thread, name in server.thread_names().items():
        cpus.setdefault(name, []).append(os.sched_getaffinity(thread))
    assert cpus["auth-hash"] == [os.sched_getaffinity(server.pid)]
    assert sum(len(bound) == 1 for named in cpus.values() for bound in named) == 1, cpus


def test_many_workers(protect, users):
    """Threads of hashes, workers, the cache and the counts at once."""
    limits = {**FREE, "HashQueue": 10000, "CacheTime": "1s"}
    server = protect({"Match": "/a", "Users": users}, settings={"Workers": 4}, limits=limits)

    def work(i):
        with server.connect() as client:
            for n in range(12):
                right = (i + n) % 3
                answer = client.ask("/a/secret.txt", (ADA, BOB, basic("bob", f"{i}-{n}"))[right])
                assert answer.status == (200, 200, 401)[right]
            client.send(f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{basic('ada', str(i))}\r\n\r\n".encode())

    in_parallel(12, work)


# ── the log ──


def test_log(protect, users):
    server = protect({"Match": "/a", "Users": users})
    with server.connect() as client:
        client.ask("/a/secret.txt", basic('x" \\ é', "hidden"))
        place = r", peer: 127\.0\.0\.1, listener: 127\.0\.0\.1:0, host: localhost$"
        server.wait_log(r'auth: client 127\.0\.0\.1, user "x%22 \\x5c \\xc3\\xa9": there is no such user' + place)
        client.ask("/a/secret.txt", basic("n" * 200, "hidden"))
        server.wait_log('user "' + "n" * 64 + r'"\.\.\.: there')
        client.ask("/a/secret.txt", BOB)
    assert "hidden" not in server.log and "battery9x" not in server.log


def test_log_of_a_client_that_left(protect, users):
    """The request that began the hash is over: the line has the host."""
    limits = {**FREE, "HashThreads": 1}
    server = protect({"Match": "/a", "Users": slow_users(users)}, settings={"Workers": 1}, limits=limits)
    login = f"GET /a/secret.txt HTTP/1.1\r\nHost: localhost\r\n{basic('bob', 'wrong')}\r\n\r\n".encode()
    with server.connect() as client, server.connect() as other, server.connect() as third:
        with held_hashes(server):
            for one in (client, other):
                one.send(login)
                third.ask("/")
            client.reset()
            third.ask("/")
        assert other.response().status == 401
    server.wait_log(r'auth: client 127\.0\.0\.1, user "bob": wrong password, host: default$')
    assert count_hashes(server) == 2  # with that of ada


def test_the_user_in_access_logs(protect, users, tmp_path):
    log = tmp_path / "access.log"
    more = section("LOGGER", {"AccessLog": log})
    server = protect({"Match": "/a", "Users": users}, more=more)
    with server.connect() as client:
        client.ask("/a/secret.txt", BOB)
        client.ask("/a/secret.txt", basic("bob", "wrong"))
    await_true(lambda: log.exists() and log.read_text().count("\n") == 2, 30, "two lines")
    first, second = log.read_text().splitlines()
    assert " bob [" in first and " - [" in second


# ── client certificates ──


@pytest.mark.single_protocol
@pytest.mark.skipif(not build.speaks("tls"), reason="the preset has no tls")
def test_client_certificates(protect, users, tmp_path):
    ca = Authority(tmp_path / "ca")
    keys = {**ca.make("localhost", "localhost").keys(), "ClientCertificate": "Optional", "ClientCA": ca.cert}
    log = tmp_path / "access.log"
    server = protect(
        {"Match": "/a", "Type": "Off", "ClientCertificate": "On"},
        {"Match": "/b", "Users": users, "ClientCertificate": "On"},
        settings={"Listen": "127.0.0.1:0 tls"},
        more=section("TLS", keys) + section("LOGGER", {"AccessLog": log}),
    )
    pair = ca.make("ada", subject="/CN=ada/O=Test", use="clientAuth")
    with TlsClient(server.addresses[0], ca.context()) as client:
        assert client.ask("/").status == 200
        assert client.ask("/a/secret.txt").status == 403
        assert client.ask("/b/team.txt", BOB).status == 403
    with TlsClient(server.addresses[0], ca.context(pair=pair)) as client:
        assert client.ask("/a/secret.txt").status == 200
        assert client.ask("/b/team.txt").status == 401
        assert client.ask("/b/team.txt", BOB).status == 200
    await_true(lambda: log.exists() and log.read_text().count("\n") == 6, 30, "six lines")
    assert "O=Test,CN=ada" in log.read_text()


# ── what -t says ──


@pytest.fixture
def check(tmp_path):
    def run_it(text, server=""):
        folder = write_config(tmp_path / "conf", populate(tmp_path / "root", FILES))
        with open(folder / "sites" / "default", "a") as file:
            file.write(text)
        with open(folder / "monkey.conf", "a") as file:
            file.write(server)
        done = run("-t", "-c", folder)
        return done.returncode, done.stderr

    return run_it


MISTAKES = [
    ({}, '"Users" is missing: the file of users, which mk_passwd writes'),
    ({"Type": "Digest"}, "Basic"),
    ({"Users": "missing"}, "missing cannot be read: No such file or directory"),
    ({"Users": "U", "Require": "valid ada"}, '"valid", "user" with names, or "group" with names is needed'),
    ({"Users": "U", "Require": "group team"}, '"Groups" is missing: the file of groups'),
    ({"Users": "U", "Realm": "caf\u00e9"}, "a realm is printable ASCII"),
    ({"Users": "U", "Location": "/x"}, 'it is called Match'),
    ({"Users": "U", "Title": "x"}, 'it is called Realm'),
    ({"Type": "Off", "Require": "valid"}, '"Require" needs a login, but "Type" is Off'),
    ({"Users": "U", "ClientCertificate": "On"}, 'set "ClientCertificate Optional" in its [TLS]'),
]


@pytest.mark.parametrize("keys, message", MISTAKES, ids=[m[:30] for _, m in MISTAKES])
def test_mistakes(check, users, keys, message):
    keys = {key: users if value == "U" else value for key, value in keys.items()}
    code, text = check(section("AUTH", keys))
    assert code == 1 and message in text


def test_warnings(check, users, tmp_path):
    users.chmod(0o644)
    with users.open("a") as file:
        file.write("old:{SHA}fGphxo74ubawYbKMNIvB7Xkhy1M=\n")
    code, text = check(section("AUTH", {"Users": users}))
    assert code == 0
    assert "all users of the machine can read the hashes of this file (chmod 640); 1 of 4 users have a {SHA}" in text


@pytest.mark.parametrize("text", ["", "# ada\n\n"])
def test_a_file_without_users(check, protect, users, text):
    empty = users.with_name("empty")
    empty.write_text(text)
    code, said = check(section("AUTH", {"Users": empty}))
    assert code == 0 and re.search(r"warning: .*the file has no users, so that all logins fail", said)
    server = protect({"Match": "/a", "Users": users})
    with server.connect() as client:
        assert client.ask("/a/secret.txt", BOB).status == 200
        users.write_text(text)
        server.wait_log("the users of .*: loaded again: the file has no users, so that all logins fail")
        assert client.ask("/a/secret.txt", BOB).status == 401


def test_names_that_no_line_has(check, users, tmp_path):
    groups = tmp_path / "groups"
    groups.write_text("team: ada\nempty:\n")
    lines = ["user ada bib", "group team empty", "group teem tea team", "valid", "user josé Bob"]
    code, text = check(section("AUTH", {"Users": users, "Groups": groups, "Require": lines}))
    assert code == 0
    found = re.findall(r'sites/default:(\d+):\d+: warning: no line of "(\w+)" has the (user|group) "(\w+)"', text)
    first = int(found[0][0])
    assert [(int(line) - first, *rest) for line, *rest in found] == [
        (0, "Users", "user", "bib"),
        (2, "Groups", "group", "teem"),
        (2, "Groups", "group", "tea"),
        (4, "Users", "user", "Bob"),
    ]
    assert text.count("warning:") == 4


def test_names_are_checked_at_reloads(protect, users):
    """By the thread that makes the new generation, while the files of the former one are watched."""
    server = protect({"Users": users, "Require": "user bob eve"}, settings={"Workers": 1})
    server.wait_log('no line of "Users" has the user "eve"')
    with users.open("a") as file:
        file.write("eve:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\n")
    server.wait_log("the users of .*: loaded again")
    reload(server)
    assert server.log.count("no line of") == 1


LONG = section("AUTH_LIMITS", {"FailureDelay": "2s"})
LATE = "FailureDelay of [AUTH_LIMITS], {} ms, must be shorter than HandlerTimeout, {} ms"
SOME = "FailureDelay of [AUTH_LIMITS], 2000 ms, is not shorter than a HandlerTimeout of [LIMITS], 1500 ms"


@pytest.mark.parametrize(
    "timeouts, limits, code, message",
    [
        ({"SERVER": "2s"}, LONG, 1, LATE.format(2000, 2000)),
        ({"SERVER": "2001ms"}, LONG, 0, None),
        ({"SERVER": "900ms"}, "", 1, LATE.format(1000, 900)),  # the default delay
        ({"SERVER": "60s", "HOST": "1s"}, LONG, 1, LATE.format(2000, 1000)),
        ({"SERVER": "1s", "HOST": "60s"}, LONG, 0, None),
        ({"LIMITS": "1500ms"}, LONG, 0, SOME),
        ({"LIMITS": "3s"}, LONG, 0, None),
    ],
)
@pytest.mark.parametrize("login", [True, False])
def test_delays_and_timeouts(tmp_path, users, timeouts, limits, code, message, login):
    keys = lambda name, **more: {**more, **({"HandlerTimeout": timeouts[name]} if name in timeouts else {})}
    root = populate(tmp_path / "root", FILES)
    host = section("HOST", keys("HOST", ServerName="localhost", DocumentRoot=root))
    host += section("AUTH", {"Users": users} if login else {"Type": "Off"})
    host += section("LIMITS", keys("LIMITS", Match="/a")) if "LIMITS" in timeouts else ""
    main = section("SERVER", keys("SERVER", Listen="127.0.0.1:0")) + limits
    folder = write_config(tmp_path / "conf", root, files={"monkey.conf": main, "sites/default": host})
    done = run("-t", "-c", folder)
    assert done.returncode == (code if login else 0), done.stderr
    if login and message:
        assert message in done.stderr and re.search(r"failed logins of \[AUTH\] in \S*sites/default:\d+ ", done.stderr)
        assert not limits or "conf/monkey.conf:" in done.stderr
        assert done.stderr.count("FailureDelay of") == 1
    else:
        assert "FailureDelay" not in done.stderr


def test_mistakes_in_files(check, users, tmp_path):
    with users.open("a") as file:
        file.write("old:rqXexS6ZhobKA\n")
    code, text = check(section("AUTH", {"Users": users}))
    assert code == 1 and f"{users}:5:5: the password has a DES hash" in text
    groups = tmp_path / "groups"
    groups.write_text("team ada\n")
    code, text = check(section("AUTH", {"Users": users, "Groups": groups, "Require": "group team"}))
    assert code == 1 and f"{groups}:1:1: a line is the name of a group" in text


def test_rules_that_never_match(check, users):
    never = section("AUTH", {"Match": "/public", "Type": "Off"})
    code, text = check(section("AUTH", {"Users": users}) + never)
    assert code == 1 and "can never match" in text


# ── with other parts of the server ──


@pytest.mark.single_protocol
@pytest.mark.skipif(not build.speaks("h2"), reason="the preset has no h2")
def test_streams_of_one_connection(protect, users):
    """Streams wait for one hash; those that are cancelled meanwhile disturb no other."""
    server = protect({"Match": "/a", "Users": slow_users(users)}, settings={"Workers": 1})
    with server.connect_h2() as client:
        streams = [client.begin("/a/secret.txt", BOB) for _ in range(20)]
        other = client.begin("/a/secret.txt", basic("bob", "wrong"))
        for stream in streams[::2]:
            client.cancel(stream)
        assert {client.response(stream).status for stream in streams[1::2]} == {200}
        assert client.response(other).status == 401
    server.wait_log("password hashes were computed", 2)
    assert count_hashes(server) == 2


def test_failures_behind_a_proxy(protect, users):
    """The client counts, not the proxy."""
    limits = {"FailureDelay": "0s", "MaxFailures": 2, "FailureTime": "1h"}
    settings = {"TrustedProxies": "127.0.0.1", "RealIPHeader": "X-Forwarded-For"}
    server = protect({"Match": "/a", "Users": users}, limits=limits, settings=settings)
    with server.connect() as client:
        wrong = [basic("ada", str(n)) for n in range(3)]
        attacker, other = "X-Forwarded-For: 2001:db8::{:x}", "X-Forwarded-For: 2001:db8:0:1::1"
        got = [client.ask("/a/secret.txt", wrong[n], attacker.format(n)).status for n in range(3)]
        assert got == [401, 401, 429]  # one /64
        assert client.ask("/a/secret.txt", ADA, other).status == 200


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="the preset has no plugin dirlisting")
def test_listings(protect, users):
    """A listing has what the client would get."""
    server = protect(
        {"Match": "/a", "Users": users},
        {"Match": "/b", "Users": users, "Require": "user bob"},
        more=section("DIRLISTING", {"Match": "/"}),
        settings={"Indexfile": "none.html"},
    )

    def names(*fields):
        with server.connect() as client:
            answer = client.ask("/", "Accept: application/json", *fields)
            assert answer.status == 200
            return set(re.findall(r'"name": *"([^"]+?)/?"', answer.body.decode()))

    assert names() == {"index.html"}
    with server.connect() as client:
        assert client.ask("/a/secret.txt", ADA).status == client.ask("/a/secret.txt", BOB).status == 200
    assert names(ADA) == {"index.html", "a"}
    assert names(BOB) == {"index.html", "a", "b"}
    assert names(basic("bob", "wrong")) == {"index.html"}


@pytest.mark.skipif(not (build.PLUGINS / "mandril.so").exists(), reason="the preset has no plugin mandril")
@pytest.mark.parametrize("network, statuses", [("127.0.0.0/8", (200, 200)), ("10.0.0.0/8", (401, 200))])
def test_networks(protect, users, network, statuses):
    rules = section("RULES", {"Match": "/a", "Network": network, "Action": "allow"})
    rules += section("RULES", {"Match": "/a", "Action": "deny"})
    server = protect({"Match": "/a", "Users": users, "Satisfy": "any"}, more=rules)
    with server.connect() as client:
        assert tuple(client.ask("/a/secret.txt", *login).status for login in ((), (BOB,))) == statuses


@pytest.mark.skipif(
    not all((build.PLUGINS / f"{name}.so").exists() for name in ("mandril", "dirlisting")),
    reason="the preset has no plugin mandril or dirlisting",
)
@pytest.mark.parametrize("satisfy", ["any", "all"])
@pytest.mark.parametrize("order", ["rules first", "logins first"])
def test_listings_by_address_or_login(protect, users, satisfy, order):
    """A listing has exactly what single requests get, whichever of address and login lets them in. With the logins
    before the rules, where no rule can be known to them, it has no more than that."""
    rules = section("RULES", {"Match": "/a", "Network": "10.0.0.0/8", "Action": "allow"})
    rules += section("RULES", {"Match": "/a", "Action": "deny"}) + section("RULES", {"Match": "/b", "Action": "allow"})
    both = ("mandril", "auth") if order == "rules first" else ("auth", "mandril")
    load = section("PLUGINS", {"Load": ["liana", *both, "static", "dirlisting"]})
    server = protect(
        {"Match": "/a", "Users": users, "Satisfy": satisfy, "Require": "user bob"},
        {"Match": "/b", "Users": users, "Satisfy": "any"},
        more=rules + section("DIRLISTING", {"Match": "/"}),
        settings={"Indexfile": "none.html", "TrustedProxies": "127.0.0.1"},
        config={"plugins.load": load},
    )
    client = server.connect()
    for address in ("10.0.0.1", "192.0.2.1"):
        for login in ((), (ADA,), (BOB,), (basic("bob", "wrong"),)):
            headers = (f"X-Forwarded-For: {address}", *login)
            single = {path for path in ("a", "b") if client.ask(f"/{path}/", *headers).status == 200}
            page = client.ask("/", "Accept: application/json", *headers).body.decode()
            shown = set(re.findall(r'"name": *"([ab])/?"', page))
            assert shown <= single, (address, login)
            if order == "rules first":
                assert shown == single, (address, login)
                assert login or single == ({"a", "b"} if (satisfy, address) == ("any", "10.0.0.1") else {"b"})


# ── other programs ──


@pytest.mark.browser
@pytest.mark.single_protocol
def test_a_browser(protect, users, tmp_path, tmp_path_factory):
    """The page and all that belongs to it, at once, with one login that the browser remembers."""
    assets = {f"a/{n}.css": b"p { color: red }\n" for n in range(12)}
    links = "".join(f'<link rel="stylesheet" href="{n}.css">' for n in range(12))
    page = f"<!doctype html><title>inside</title>{links}<p>text".encode()
    server = protect({"Match": "/a", "Users": slow_users(users)}, limits={"MaxFailures": 3})
    populate(tmp_path / "root", {**assets, "a/page.html": page})
    with open_browser(tmp_path_factory.mktemp("browser"), ", THE LOGIN IS NOT TESTED") as browser:
        browser_page = browser.page()
        browser_page.navigate(f"http://bob:battery9x@127.0.0.1:{server.port}/a/page.html")
        assert browser_page.evaluate("document.title") == "inside"
        assert browser_page.evaluate("document.styleSheets.length") == 12
        assert {answer["status"] for answer in browser_page.answers() if "/a/" in answer["url"]} == {200}
        browser_page.close()
    server.wait_log("password hashes were computed")
    assert count_hashes(server) <= 2  # one for each worker at most


@pytest.mark.single_protocol
def test_curl(protect, users):
    server = protect({"Match": "/a", "Users": users})
    command = ["curl", "-sS", "-o", "-", "--anyauth", "-u", "josé:contraseña", f"{server.url}/a/secret.txt"]
    done = subprocess.run(command, capture_output=True, timeout=120)
    assert done.stdout == b"secret\n", done.stderr


@pytest.mark.skipif(not shutil.which("htpasswd"), reason="there is no htpasswd")
@pytest.mark.parametrize("option", ["-m", "-B", "-2", "-5", "-s"])
def test_files_of_htpasswd(protect, users, option):
    done = subprocess.run(["htpasswd", "-b", option, users, "other", "pässwörd 1"], capture_output=True)
    if done.returncode:
        pytest.skip("this htpasswd does not know the option")
    with protect({"Match": "/a", "Users": users}).connect() as client:
        assert client.ask("/a/secret.txt", basic("other", "pässwörd 1")).status == 200
