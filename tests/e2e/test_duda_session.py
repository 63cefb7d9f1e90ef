# SPDX-License-Identifier: Apache-2.0
"""Sessions of web services: ids, expiry, concurrent writes, reloads and restarts, and files that are damaged."""

import errno
import hashlib
import itertools
import os
import re
import secrets
import threading
import time

import pytest

from harness.fakes import killed_at_the_end
from harness.redis import Redis, needs_redis
from harness.server import await_true, free_port, section
from harness.services import HEAD, build_service, needs_duda, patched, reload, web_service
from harness.ways import WAYS

pytestmark = needs_duda

STALE, IO, NOSPC, ALREADY = -errno.ESTALE, -errno.EIO, -errno.ENOSPC, -errno.EALREADY

SOURCE = """
#include <duda/duda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static duda_request_t *held;

static void say(duda_request_t *dr, int result, void *data)
{
    (void)data;
    response->printf(dr, "%d", result);
    response->end(dr, NULL);
}

static void do_get(duda_request_t *dr, int result, void *data)
{
    const char *value = result < 0 ? NULL : session->get(dr, qs->get(dr, "key"), NULL);
    (void)data;
    response->printf(dr, "%s", result < 0 ? "error" : value ? value : session->exists(dr) ? "empty" : "none");
    response->end(dr, NULL);
}

static void do_set(duda_request_t *dr, int result, void *data)
{
    (void)data;
    if (result == 0)
        result = session->set(dr, qs->get(dr, "key"), qs->get(dr, "value"), -1);
    if (result == 0 && qs->get(dr, "again"))
        result = session->set(dr, qs->get(dr, "again"), "again", -1);
    if (result == 0)
        result = session->save(dr, say, NULL);
    if (result < 0)
        say(dr, result, NULL);
}

static void do_big(duda_request_t *dr, int result, void *data)
{
    static char text[600];
    (void)data;
    (void)result;
    memset(text, 'x', sizeof(text));
    session->set(dr, qs->get(dr, "key"), text, sizeof(text));
    session->save(dr, say, NULL);
}

static void do_login(duda_request_t *dr, int result, void *data)
{
    (void)data;
    (void)result;
    session->renew(dr);
    session->set(dr, "user", "ada", -1);
    session->save(dr, say, NULL);
}

static void do_logout(duda_request_t *dr, int result, void *data)
{
    (void)data;
    (void)result;
    session->destroy(dr);
    session->save(dr, say, NULL);
}

static void do_anew(duda_request_t *dr, int result, void *data)
{
    (void)data;
    (void)result;
    session->destroy(dr);
    session->set(dr, "anew", session->get(dr, "user", NULL) ? "user is left" : "1", -1);
    session->save(dr, say, NULL);
}

static void do_hold(duda_request_t *dr, int result, void *data)
{
    (void)data;
    (void)result;
    session->set(dr, qs->get(dr, "key"), qs->get(dr, "value"), -1);
    held = dr;
}

static void do_remove_key(duda_request_t *dr, int result, void *data)
{
    (void)data;
    if (result == 0)
        result = session->remove(dr, qs->get(dr, "key"));
    if (result < 0 || session->get(dr, qs->get(dr, "key"), NULL))
        say(dr, result < 0 ? result : 1, NULL);
    else if ((result = session->save(dr, say, NULL)) < 0)
        say(dr, result, NULL);
}

static void do_forget(duda_request_t *dr, int result, void *data)
{
    (void)data;
    session->set(dr, "forgotten", "1", -1);
    say(dr, result, NULL);
}

static void do_late(duda_request_t *dr, int result, void *data)
{
    (void)data;
    (void)result;
    session->set(dr, "late", "1", -1);
    response->printf(dr, "body ");
    response->flush(dr);
    say(dr, session->save(dr, say, NULL), NULL);
}

static void hold_is_there(duda_request_t *dr)
{
    response->printf(dr, "%d", held != NULL);
    response->end(dr, NULL);
}

static void do_release(duda_request_t *dr)
{
    session->save(held, say, NULL);
    held = NULL;
    response->end(dr, NULL);
}

static void version(duda_request_t *dr)
{
    response->printf(dr, "%s", VERSION);
    response->end(dr, NULL);
}

static void early(duda_request_t *dr)
{
    response->printf(dr, "%d ", session->set(dr, "a", "b", -1));
    response->printf(dr, "%d %s", session->save(dr, say, NULL), session->get(dr, "a", NULL) ? "some" : "none");
    response->end(dr, NULL);
}

static void plain(duda_request_t *dr)
{
    int opened = session->open(dr, NULL, NULL);
    const char *value = opened == 0 ? session->get(dr, "a", NULL) : NULL;
    response->printf(dr, "%d %s", opened, value ? value : "none");
    response->end(dr, NULL);
}

#define ROUTE(name) \\
    static void name(duda_request_t *dr) \\
    { \\
        int result = session->open(dr, do_##name, NULL); \\
        if (result < 0) \\
            say(dr, result, NULL); \\
    }

ROUTE(get)
ROUTE(set)
ROUTE(big)
ROUTE(login)
ROUTE(logout)
ROUTE(anew)
ROUTE(hold)
ROUTE(forget)
ROUTE(remove_key)
ROUTE(late)

int duda_main(void)
{
    struct duda_session_conf conf = {CONF};
    if (session->init(&conf) < 0)
        return -1;
    router->get("/get", get);
    router->get("/set", set);
    router->get("/big", big);
    router->get("/login", login);
    router->get("/logout", logout);
    router->get("/anew", anew);
    router->get("/hold", hold);
    router->get("/held", hold_is_there);
    router->get("/release", do_release);
    router->get("/forget", forget);
    router->get("/late", late);
    router->get("/remove", remove_key);
    router->get("/early", early);
    router->get("/plain", plain);
    router->get("/version", version);
    return 0;
}
"""


def source(version="1", redis=None, redis_ms=30000, **conf):
    """
    The service with these settings of struct duda_session_conf: texts are quoted. `redis`: the address of the server
    that keeps the sessions, which has `redis_ms` to reply: a busy machine needs more than the usual 2 seconds.
    """
    rows = [f".{name} = {patched(value) if isinstance(value, str) else value}" for name, value in conf.items()]
    text = SOURCE
    if redis:
        opened = f'redis->open(&(struct duda_redis_conf){{.address = {patched(redis)}, .timeout_ms = {redis_ms}}})'
        rows.append(f".backend = redis->sessions({opened})")
        main = "int duda_main(void)\n{\n"
        text = text.replace(main, main + '    duda_load_package(redis, "redis");\n')
        text = text.replace("#include <stdio.h>", "#include <duda/packages/redis/redis.h>\n#include <stdio.h>", 1)
    return f"#define VERSION {patched(version)}\n" + text.replace("CONF", ", ".join(rows) or ".cookie = NULL")


class Browser:
    """Keeps the cookies that it gets, and sends them."""

    def __init__(self, server, cookies=None, prefix="/web", fields=()):
        self.server, self.cookies, self.prefix, self.rows = server, dict(cookies or {}), prefix, []
        self.fields = list(fields)
        self.connect = getattr(server, "open", server.connect)
        self.client, self.answers = self.connect(), 0

    def ask(self, path):
        if self.answers % 50 == 49:  # before the server closes the connection
            self.client = self.connect()
        self.answers += 1
        fields = [f"Cookie: {'; '.join(f'{name}={value}' for name, value in self.cookies.items())}"]
        answer = self.client.ask(self.prefix + path, *(fields if self.cookies else []), *self.fields)
        assert answer.status == 200, answer.status
        self.rows = [value for name, value in answer.fields if name.lower() == "set-cookie"]
        for row in self.rows:
            name, value = row.split(";")[0].split("=", 1)
            if "Max-Age=0" in row:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer.body.decode()

    def get(self, key):
        return self.ask(f"/get?key={key}")

    def set(self, key, value):
        return int(self.ask(f"/set?key={key}&value={value}"))

    @property
    def id(self):
        return next(iter(self.cookies.values()))

    def copy(self):
        return Browser(self.server, self.cookies, self.prefix)


@pytest.fixture
def redis(serve_services, tmp_path):
    """Starts Redis servers, which end before the server that uses them."""
    folders = (tmp_path / f"redis{n}" for n in itertools.count())
    with killed_at_the_end(lambda: Redis(next(folders))) as begin:
        yield begin


@pytest.fixture(params=["memory", "files", pytest.param("redis", marks=needs_redis)])
def start(request, serve_services, tmp_path, redis):
    """
    start(**conf): a server with the service, for each store; start.folder is that of the files, or None, and
    start.redis the Redis server, or None.
    """
    folder = tmp_path / "sessions" if request.param == "files" else None
    kept = redis() if request.param == "redis" else None
    store = {"folder": str(folder)} if folder else {"redis": kept.address} if kept else {}

    def begin(settings=None, files=None, listeners=1, **conf):
        settings = {"Workers": 2, **(settings or {})}
        return serve_services({"web": source(**store, **conf)}, settings, files=files, listeners=listeners)

    begin.folder, begin.redis, begin.store = folder, kept, store
    return begin


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "sessions"


def sessions_in(folder):
    return sorted(name for name in os.listdir(folder) if re.fullmatch("[0-9a-f]{40}", name))


# ── ids and cookies ──


def keys_in(redis):
    """The keys of sessions in Redis, without those of the sets."""
    return [key for key in redis.list("KEYS", "duda:session:*") if not key.endswith(":")]


def test_values_stay(start):
    server = start()
    one, two = Browser(server), Browser(server)
    assert one.get("a") == "none"
    assert one.rows == []
    assert one.set("a", "1") == 0
    assert re.fullmatch("web-session=[0-9a-f]{32}; Path=/web; HttpOnly; SameSite=Lax", one.rows[0])
    assert one.set("b", "2") == 0
    assert one.rows == []  # the id is the same
    assert (one.get("a"), one.get("b"), one.get("c")) == ("1", "2", "empty")
    assert one.ask("/remove?key=b") == "0"
    assert (one.get("a"), one.get("b")) == ("1", "empty")
    assert one.ask("/remove?key=none") == "0"
    assert two.ask("/remove?key=a") == "0"  # without a session
    assert two.rows == []
    assert two.set("", "1") == -errno.EINVAL
    assert two.set("k" * 65, "1") == -errno.EINVAL
    assert two.get("a") == "none"
    assert two.set("a", "other") == 0
    assert one.id != two.id
    assert one.get("a") == "1"


def test_open_without_a_function(start):
    """It returns the result for sessions in memory, and a mistake for others."""
    one = Browser(start())
    assert one.set("a", "1") == 0
    is_slow = start.folder or start.redis
    assert one.ask("/plain") == (f"{-errno.EINVAL} none" if is_slow else "0 1")


def test_the_id_is_not_in_the_folder(serve_services, folder):
    server = serve_services({"web": source(folder=str(folder))})
    one = Browser(server)
    assert one.set("a", "1") == 0
    assert len(sessions_in(folder)) == 1
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert one.id not in path.name
        assert one.id.encode() not in path.read_bytes()
        assert bytes.fromhex(one.id) not in path.read_bytes()


@pytest.mark.parametrize("scheme, name", [("https", "__Host-"), ("wss", "__Host-"), ("WSS", "__Host-"), ("ws", "")])
def test_behind_a_proxy(serve_services, scheme, name):
    """A session that began over HTTPS is found by the handshake of a WebSocket, of which a proxy may say wss."""
    server = serve_services({"web": source()}, {"TrustedProxies": "127.0.0.1"})
    before = "https" if name else "http"
    fields = ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: "]
    one = Browser(server, fields=[fields[0], fields[1] + before])
    assert one.set("a", "1") == 0
    assert one.rows[0].startswith(name + "web-session=")
    one.fields[1] = fields[1] + scheme
    assert one.get("a") == "1"


@pytest.mark.parametrize("way", ["h1-tls", "h2-tls"])
def test_over_tls(serve_services, tmp_path, way):
    server = WAYS[way].start(serve_services, tmp_path, {"web": source(persistent=1, absolute_s=900)})
    one = Browser(server)
    assert one.set("a", "1") == 0
    attributes = "; Max-Age=900; Path=/; Secure; HttpOnly; SameSite=Lax"
    assert re.fullmatch("__Host-web-session=[0-9a-f]{32}" + attributes, one.rows[0])
    assert one.get("a") == "1"
    plain = Browser(server, {"web-session": one.id})  # which any host of the domain could have set
    assert plain.get("a") == "none"
    assert one.ask("/logout") == "0"
    assert one.rows[0].startswith("__Host-web-session=; Max-Age=0; ")
    assert "; Secure" in one.rows[0]


def test_fixation(start):
    """An id that an attacker plants is not used for a new session, and one of a session ends with the login."""
    server = start()
    planted = Browser(server, {"web-session": secrets.token_hex(16)})
    before = planted.id
    assert planted.ask("/login") == "0"
    assert planted.id != before
    assert Browser(server, {"web-session": before}).get("user") == "none"

    victim = Browser(server)
    assert victim.set("cart", "book") == 0
    attacker = victim.copy()
    assert attacker.get("cart") == "book"
    assert victim.ask("/login") == "0"
    assert victim.id != attacker.id
    assert (victim.get("user"), victim.get("cart")) == ("ada", "book")
    assert attacker.get("user") == "none"


def test_tampered_and_guessed_ids(start):
    server = start()
    one = Browser(server)
    assert one.set("a", "1") == 0
    right = one.id
    flipped = [right[:i] + ("0" if right[i] != "0" else "1") + right[i + 1 :] for i in range(32)]
    shapes = ["", right[:-1], right + "0", right[:-1] + "g", right.upper().replace("A", "a") + " ", '"' + right + '"']
    shapes += [f"{right[:16]}-{right[16:]}", "../" + right[3:], "%00" * 10, "." * 32, "/" * 32, "0" * 4000]
    if right.upper() != right:
        shapes.append(right.upper())
    for value in flipped + shapes + [secrets.token_hex(16) for _ in range(50)]:
        if value.strip() != right:
            assert Browser(server, {"web-session": value}).get("a") == "none", value
    assert one.get("a") == "1"


def test_logout(start):
    server = start()
    one = Browser(server)
    one.ask("/login")
    copy = one.copy()
    assert one.ask("/logout") == "0"
    assert one.cookies == {}
    assert copy.get("user") == "none"
    assert copy.ask("/logout") == "0"  # of a session that is gone: the cookie goes
    assert copy.cookies == {}
    assert copy.ask("/logout") == "0"
    assert copy.rows == []


def test_a_session_anew(start):
    server = start()
    one = Browser(server)
    one.ask("/login")
    before = one.id
    assert one.ask("/anew") == "0"
    assert one.id != before
    assert (one.get("anew"), one.get("user")) == ("1", "empty")
    assert Browser(server, {"web-session": before}).get("user") == "none"


# ── ends ──


def test_expiry(start):
    """
    One session is used until its absolute end; another one ends before, because it is not. Times are whole seconds. A
    machine that is so busy that a second passes between two requests may end the first one early.
    """
    server = start(idle_s=2, absolute_s=6)
    used, idle = Browser(server), Browser(server)
    begin = last = time.monotonic()
    assert used.set("a", "1") == 0
    assert idle.set("a", "1") == 0
    idle_since, idle_value = time.monotonic(), None
    while (asked := time.monotonic()) and used.get("a") == "1":
        last = asked
        time.sleep(0.05)  # the server cannot notify of an end
        assert last < begin + 60, "it has no absolute end"
        if idle_value is None and last >= idle_since + 3.1:
            idle_value = idle.get("a")
    assert idle_value in ("none", None)
    now = time.monotonic()
    assert (now - begin >= 5 and idle_value) or now - last >= 1, "it has ended early, although it was used"


def test_the_bound(start):
    server = start(sessions_max=4)
    browsers = []
    for n in range(8):
        browsers.append(Browser(server))
        assert browsers[-1].set("n", n) == 0
        assert browsers[0].get("n") == "0"  # in use, so that it stays
    assert [b.get("n") for b in browsers] == ["0", *["none"] * 4, "5", "6", "7"]
    if start.folder:
        assert len(sessions_in(start.folder)) == 4
    if start.redis:
        assert len(keys_in(start.redis)) == 4


def test_the_bound_of_one_session(start):
    server = start(session_bytes=1000)
    one = Browser(server)
    assert one.ask("/big?key=a") == "0"
    assert int(one.ask("/big?key=b")) == NOSPC
    assert one.get("b") == "empty"
    assert len(one.get("a")) == 600


# ── several requests ──


@pytest.fixture
def held(start):
    """A request that has set held=1 in a session, and waits; and another browser with the session."""
    server = start({"Workers": 1})
    one = Browser(server)
    assert one.set("shared", "first") == 0
    other, waiting = one.copy(), server.connect()
    waiting.send(f"GET /web/hold?key=shared&value=held HTTP/1.1\r\nHost: x\r\nCookie: web-session={one.id}\r\n\r\n")
    await_true(lambda: other.ask("/held") == "1", 60, what="the held request")
    return other, waiting


def release(other, waiting):
    other.ask("/release")
    answer = waiting.response()
    return int(answer.body), answer


def test_no_other_key_is_lost(held):
    other, waiting = held
    assert other.set("other", "1") == 0
    assert other.set("shared", "second") == 0
    assert other.get("shared") == "second"
    assert release(other, waiting)[0] == 0
    assert (other.get("other"), other.get("shared")) == ("1", "held")  # the last save() wins


@pytest.mark.parametrize("end", ["/logout", "/login"])
def test_no_write_brings_a_session_back(held, end):
    other, waiting = held
    before = other.id
    other.ask(end)
    result, answer = release(other, waiting)
    assert result == STALE
    assert "set-cookie" not in [name.lower() for name, _ in answer.fields]
    assert Browser(other.server, {"web-session": before}).get("shared") == "none"


def test_a_client_that_leaves(start):
    server = start({"Workers": 1})
    one = Browser(server)
    assert one.set("a", "1") == 0
    for n in range(40):
        with server.connect() as client:
            path = f"/web/set?key=n&value={n}" if n % 2 else "/web/get?key=n"
            client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nCookie: web-session={one.id}\r\n\r\n")
            client.reset()
    assert one.get("a") == "1"
    assert "session->save" not in server.log  # which is no mistake of the service
    server.assert_healthy()


@pytest.mark.concurrent
def test_concurrent_writes(start):
    """Threads write keys of their own and a common one to one session, while others make sessions."""
    server = start({"Workers": 4})
    one = Browser(server)
    assert one.set("common", "none") == 0
    rounds, failures = 25, []

    def write(n):
        try:
            mine, fresh = one.copy(), Browser(server)
            for i in range(rounds):
                assert mine.ask(f"/set?key=k{n}&value={i}&again=common") == "0"
                assert mine.get(f"k{n}") == str(i)
                assert fresh.set("own", n) == 0
                assert fresh.ask("/login") == "0"
                assert fresh.get("own") == str(n)
        except BaseException as error:  # reported by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    last = one.copy()  # the connection of the first one may have been idle for KeepAliveTimeout
    assert [last.get(f"k{n}") for n in range(8)] == [str(rounds - 1)] * 8
    assert last.get("common") == "again"


# ── the life of the server ──


def test_reload_and_swap(start):
    server = start()
    one = Browser(server)
    one.ask("/login")
    reload(server)
    assert one.get("user") == "ada"
    for version in ("2", "3"):
        build_service(server.services, "web", source(version, **start.store))
        reload(server)
        one = one.copy()
        assert one.ask("/version") == version
        assert one.get("user") == "ada"
        assert one.set("version", version) == 0
        assert one.get("version") == version


@pytest.mark.concurrent
def test_swaps_under_load(start):
    """New versions take the store over while requests of the old ones, and their jobs, are under way."""
    server = start({"Workers": 2})
    stop, failures, counts = threading.Event(), [], [0] * 4

    def use(n):
        try:
            mine = Browser(server)
            while not stop.is_set():
                assert mine.set("n", counts[n]) == 0
                assert mine.get("n") == str(counts[n])
                counts[n] += 1
        except BaseException as error:  # reported by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=use, args=(n,)) for n in range(len(counts))]
    for thread in threads:
        thread.start()
    for version in ("2", "3", "4"):
        build_service(server.services, "web", source(version, **start.store))
        reload(server)
        seen = list(counts)
        await_true(lambda before=seen: failures or all(now > was for now, was in zip(counts, before)), seconds=60)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert Browser(server).ask("/version") == "4"


def test_restart_with_files(serve_services, folder):
    sources = {"web": source(folder=str(folder))}
    server = serve_services(sources)
    one = Browser(server)
    one.ask("/login")
    server.drop_clients()
    server.stop()
    again = Browser(serve_services(sources), one.cookies)
    assert again.get("user") == "ada"
    assert again.set("b", "2") == 0


def test_restart_without_files(serve_services):
    server = serve_services({"web": source()})
    one = Browser(server)
    one.ask("/login")
    server.drop_clients()
    server.stop()
    assert Browser(serve_services({"web": source()}), one.cookies).get("user") == "none"


def test_two_services_do_not_share_sessions(serve_services):
    """Although their cookies have the same name."""
    server = serve_services({"web": source(cookie="id"), "other": source(cookie="id")})
    one = Browser(server)
    one.ask("/login")
    assert Browser(server, one.cookies, prefix="/other").get("user") == "none"
    assert one.get("user") == "ada"


def test_hosts_of_one_name_do_not_share_sessions(start, site_root, tmp_path):
    """Two listeners may each have a host of a name; a reload restarts the service of neither."""
    ports = [free_port(), free_port()]
    listen = [f"127.0.0.1:{port}" for port in ports]

    def site(n):
        host = {"ServerName": "localhost", "DocumentRoot": site_root, "Listener": listen[n]}
        return section("HOST", host) + web_service("web")

    files = {"sites/default": site(0), "sites/other": site(1)}
    server = start({"Listen": listen}, files=files, listeners=2)
    pair = [type("Place", (), {"connect": lambda self, n=n: server.connect(n)})() for n in (0, 1)]
    one, other = (Browser(place) for place in pair)
    one.ask("/login")
    assert other.set("mine", "2") == 0
    lines = reload(server)
    assert not [line for line in lines if "service web" in line]
    assert Browser(pair[1], one.cookies).get("user") == "none"
    assert Browser(pair[0], other.cookies).get("mine") == "none"
    assert (one.copy().get("user"), other.copy().get("mine")) == ("ada", "2")


def test_a_refused_reload_keeps_limits(serve_services):
    """Those of a new version hold when it serves."""
    server = serve_services({"web": source(sessions_max=4)})
    browsers = [Browser(server) for _ in range(4)]
    for browser in browsers:
        browser.ask("/login")
    site = server.conf / "sites" / "default"
    before = site.read_text()
    build_service(server.services, "web", source("2", sessions_max=1))
    site.write_text(before + "    Nonsense 1\n")
    reload(server, accepted=False)
    site.write_text(before + section("RULES", {"Match": "/x", "Action": "deny", "File": "/none"}))
    reload(server, accepted=False)
    assert [browser.get("user") for browser in browsers] == ["ada"] * 4
    assert browsers[0].set("b", "2") == 0
    assert [browser.get("user") for browser in browsers] == ["ada"] * 4
    site.write_text(before)
    reload(server)
    assert browsers[3].copy().set("b", "2") == 0
    assert [browser.copy().get("user") for browser in browsers] == ["none"] * 3 + ["ada"]


# ── Redis ──


def test_two_servers_share_sessions_in_redis(serve_services, redis):
    one = redis()
    sources = {"web": source(redis=one.address)}
    first, second = (serve_services(sources, {"Workers": 2}) for _ in range(2))
    browser = Browser(first)
    browser.ask("/login")
    other = Browser(second, browser.cookies)
    assert other.get("user") == "ada"
    assert other.set("b", "2") == 0
    assert browser.get("b") == "2"
    assert browser.ask("/logout") == "0"
    assert other.get("user") == "none"
    assert not keys_in(one)


def test_what_redis_knows(serve_services, redis):
    """Redis holds no id, and each key has its own expiry."""
    one = redis()
    server = serve_services({"web": source(redis=one.address, idle_s=1000, absolute_s=500)})
    browser = Browser(server)
    browser.set("a", "b" * 50)
    (key,) = keys_in(one)
    assert re.fullmatch(r"duda:session:\{localhost@default/web\}:[0-9a-f]{40}", key)
    assert browser.id.replace("-", "") not in key
    assert 400 <= int(one.ask("TTL", key)) <= 500
    one.ask("HSET", key, "e", "1")  # its end, whatever Redis does by itself
    assert browser.get("a") == "none"
    assert not keys_in(one)


def test_redis_is_gone_and_comes_back(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(redis=one.address, redis_ms=5000)}, {"Workers": 1})
    browser = Browser(server)
    assert browser.set("a", "1") == 0
    one.kill()
    await_true(lambda: browser.get("a") == "error", 30, "an error")
    assert browser.set("a", "2") == IO
    assert Browser(server).set("a", "2") == IO
    server.wait_log("the sessions in Redis cannot be used: Redis 127.0.0.1:")
    one.start()
    await_true(lambda: browser.get("a") == "none", 30, "Redis")  # it keeps no files here
    assert browser.set("a", "3") == 0 and browser.get("a") == "3"


def test_redis_forgets_its_scripts(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(redis=one.address)}, {"Workers": 1})
    browser = Browser(server)
    for value in "123":
        assert browser.set("a", value) == 0
        one.ask("SCRIPT", "FLUSH")
        assert browser.get("a") == value


def test_a_key_of_something_else_in_redis(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(redis=one.address)}, {"Workers": 1})
    browser = Browser(server)
    assert browser.set("a", "1") == 0
    (key,) = keys_in(one)
    one.ask("DEL", key)
    one.ask("SET", key, "x")
    assert browser.get("a") == "error"
    server.wait_log("the sessions in Redis cannot be used: .*WRONGTYPE")
    one.ask("DEL", key)
    one.ask("HSET", key, "e", "9999999999999", "u", "9999999999999", "k", "x", "k" + "y" * 65, "x")
    assert browser.get("a") == "error"


def test_redis_is_full(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(redis=one.address)}, {"Workers": 1})
    browser = Browser(server)
    assert browser.set("a", "1") == 0
    one.ask("CONFIG", "SET", "maxmemory", "1kb")
    assert browser.set("a", "2") == IO
    assert Browser(server).set("a", "1") == IO
    server.wait_log("the sessions in Redis cannot be used: .*maxmemory")
    assert browser.get("a") == "1"  # reading continues
    assert browser.ask("/logout") == "0"


# ── files ──


def test_a_file_that_was_cut(serve_services, folder):
    server = serve_services({"web": source(folder=str(folder))})
    one = Browser(server)
    one.ask("/login")
    path = folder / sessions_in(folder)[0]
    os.truncate(path, path.stat().st_size - 3)
    assert one.get("user") == "none"
    server.wait_log(f"service web: the session file {path} was cut, damaged or made by something else")
    assert not path.exists()
    assert one.set("a", "1") == 0
    assert one.get("a") == "1"


def test_a_file_of_something_else(serve_services, folder):
    server = serve_services({"web": source(folder=str(folder))})
    one = Browser(server)
    one.ask("/login")
    path = folder / sessions_in(folder)[0]
    path.write_bytes(os.urandom(5000))
    assert one.get("user") == "none"
    path.symlink_to("/etc/passwd")
    assert one.get("user") == "none"
    assert not path.is_symlink()
    server.wait_log("was cut, damaged or made by something else", 2)


def test_a_folder_that_cannot_be_used(serve_services, folder):
    server = serve_services({"web": source(folder=str(folder))})
    one = Browser(server)
    assert one.set("a", "1") == 0
    folder.chmod(0o755)
    assert one.get("a") == "error"
    assert one.set("a", "2") == IO
    server.wait_log(f"service web: the sessions in {folder} cannot be used: the folder must belong to the server's")
    assert server.log.count("cannot be used") == 1
    folder.chmod(0o700)
    assert one.get("a") == "1"
    if os.geteuid() != 0:
        folder.chmod(0o500)
        assert one.set("a", "2") == IO
        folder.chmod(0o700)
    assert one.set("a", "3") == 0
    assert one.get("a") == "3"


def test_a_folder_whose_parent_is_missing(serve_services, tmp_path):
    server = serve_services({"web": source(folder=str(tmp_path / "none" / "sessions"))})
    one = Browser(server)
    assert one.set("a", "1") == IO
    assert one.rows == []
    server.wait_log("none/sessions cannot be used: No such file or directory")


def test_a_folder_below_datadir(serve_services, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    server = serve_services({"web": source(folder="sessions")}, keys={"web": {"DataDir": data}})
    assert Browser(server).set("a", "1") == 0
    assert len(sessions_in(data / "sessions")) == 1


# ── mistakes ──


@pytest.mark.parametrize(
    "conf, sentence",
    [
        ({"cookie": "a b"}, "`cookie` must be a token"),
        ({"cookie": "__Host-a"}, "`cookie` must be a token"),
        ({"idle_s": 40000000}, "`idle_s` and `absolute_s` must be at most 31622400"),
        ({"sessions_max": 1000001}, "`sessions_max` must be at most"),
        ({"folder": "/tmp/x", "sessions_max": 100001}, "`sessions_max` must be at most"),
        ({"session_bytes": 65536}, "`session_bytes` must be at most 65535"),
        ({"session_bytes": 5000, "bytes_max": 4999}, "`session_bytes` must be at most 65535, and at most `bytes_max`"),
        ({"folder": ""}, "`folder` must have 1 to 1024 bytes"),
        ({"folder": "sessions"}, "`folder` is relative, but the section [WEB_SERVICE] does not set DataDir "
                                  "(dudac sets it if the folder `data` exists)"),
    ],
)
def test_wrong_settings(serve_services, conf, sentence):
    server = serve_services({"web": source(**conf)})
    server.wait_log(re.escape(f"service web: session->init(): {sentence}"))
    with server.connect() as client:
        assert client.ask("/web/get").status == 503


def test_calls_in_the_wrong_order(start):
    server = start()
    one = Browser(server)
    assert one.ask("/early") == "-22 -22 none"
    server.wait_log("session->set.*: session->open.* has not called its function yet")


def test_changes_that_are_not_saved(start):
    server = start()
    one = Browser(server)
    assert one.ask("/forget") == "0"
    assert one.rows == []
    server.wait_log("session->set.*: the request has ended without session->save.*: nothing was written")


def test_a_save_behind_the_head(start):
    server = start()
    one = Browser(server)
    assert one.ask("/late") == f"body {ALREADY}"
    assert one.rows == []
    server.wait_log("session->save.*: the head was sent")


def test_without_init(serve_services):
    text = HEAD + """
static void fn(duda_request_t *dr, int result, void *data)
{
    (void)dr, (void)result, (void)data;
}
static void ask(duda_request_t *dr)
{
    response->printf(dr, "%d", session->open(dr, fn, NULL));
    response->end(dr, NULL);
}
int duda_main(void)
{
    router->get("/", ask);
    return 0;
}
"""
    server = serve_services({"web": text})
    assert Browser(server).ask("/") == "-22"
    server.wait_log("session->open.*: duda_main.* has not called session->init")


# ── tokens against requests of other sites ──

CSRF = HEAD + """
#include <errno.h>

static void end(duda_request_t *dr, int result, void *data)
{
    response->printf(dr, "%d %s", result, (const char *)data);
    response->end(dr, NULL);
}

static void do_begin(duda_request_t *dr, int result, void *data)
{
    const char *none = session->csrf_token(dr);
    (void)data;
    if (none || result < 0 || session->renew(dr) < 0 || session->set(dr, "user", "ada", -1) < 0)
        end(dr, 1, "");
    else
        session->save(dr, end, (void *)session->csrf_token(dr));
}

static void do_renew(duda_request_t *dr, int result, void *data)
{
    int before = session->csrf_check(dr);
    (void)result, (void)data;
    session->renew(dr);
    if (session->csrf_check(dr) != before)
        end(dr, 1, "");
    else
        session->save(dr, end, (void *)session->csrf_token(dr));
}

static void do_token(duda_request_t *dr, int result, void *data)
{
    const char *token = session->csrf_token(dr);
    (void)data;
    end(dr, result, (void *)(token ? token : "none"));
}

static void do_check(duda_request_t *dr, int result, void *data)
{
    (void)data;
    end(dr, result < 0 ? result : session->csrf_check(dr), "");
}

static void do_destroy(duda_request_t *dr, int result, void *data)
{
    (void)result, (void)data;
    session->destroy(dr);
    end(dr, session->csrf_token(dr) ? 1 : 0, "");
}

#define ROUTE(name) \\
    static void name(duda_request_t *dr) \\
    { \\
        session->open(dr, do_##name, NULL); \\
    }

ROUTE(begin)
ROUTE(renew)
ROUTE(token)
ROUTE(check)
ROUTE(destroy)

static void early(duda_request_t *dr)
{
    end(dr, session->csrf_check(dr), session->csrf_token(dr) ? "some" : "none");
}

int duda_main(void)
{
    const char *folder = getenv("SESSIONS");
    if (session->init(&(struct duda_session_conf){.folder = folder && *folder ? folder : NULL}) < 0)
        return -1;
    return router->get("/begin", begin) && router->get("/renew", renew) && router->get("/token", token) &&
        router->post("/check", check) && router->get("/destroy", destroy) && router->get("/early", early) ? 0 : -1;
}
"""


class Form:
    """A browser that sends forms."""

    def __init__(self, server):
        self.server, self.cookie = server, None

    def ask(self, path, *fields, **rest):
        with self.server.connect() as client:
            answer = client.ask(f"/web{path}", *fields, *([self.cookie] if self.cookie else []), **rest)
        if cookie := answer["Set-Cookie"]:
            self.cookie = f"Cookie: {cookie.split(';')[0]}"
        result, text = answer.body.decode().split(" ")
        return (int(result), text) if text else int(result)

    def check(self, *fields, body=b""):
        return self.ask("/check", "Content-Type: application/x-www-form-urlencoded", *fields, method="POST", body=body)


@pytest.mark.parametrize("folder", ["", "sessions"])
def test_csrf_tokens(serve_services, tmp_path, monkeypatch, folder):
    monkeypatch.setenv("SESSIONS", str(tmp_path / folder) if folder else "")
    server = serve_services({"web": CSRF}, {"Workers": 2})
    ada, eve, denied = Form(server), Form(server), -errno.EACCES
    assert ada.ask("/token") == (0, "none") and ada.check(body=b"csrf_token=") == denied
    result, token = ada.ask("/begin")
    assert result == 0 and re.fullmatch("[0-9a-f]{40}", token) and ada.ask("/token") == (0, token)
    assert ada.check(body=b"a=b&csrf_token=" + token.encode()) == ada.check(f"X-CSRF-Token: {token}") == 0
    assert ada.check(f"X-CSRF-Token: {'0' * 40}", body=b"csrf_token=" + token.encode()) == denied
    for wrong in ("", token[:-1], token + "0", token.upper() + "x", token[:-1] + ("1" if token[-1] == "0" else "0")):
        assert ada.check(body=f"csrf_token={wrong}".encode()) == ada.check(f"X-CSRF-Token: {wrong}") == denied
    other = eve.ask("/begin")[1]
    assert other != token and eve.check(f"X-CSRF-Token: {token}") == denied
    assert eve.check(f"X-CSRF-Token: {other}") == 0 and Form(server).check(f"X-CSRF-Token: {token}") == denied
    new = ada.ask("/renew")[1]
    assert new not in (token, other) and ada.ask("/token") == (0, new)
    assert ada.check(f"X-CSRF-Token: {token}") == denied and ada.check(f"X-CSRF-Token: {new}") == 0
    of_no_session = hashlib.sha1(b"csrf\0" + bytes(20)).hexdigest()
    assert Form(server).check(f"X-CSRF-Token: {of_no_session}") == denied
    assert ada.ask("/destroy") == 0 and ada.ask("/early") == (-errno.EINVAL, "none")


# ── other tokens ──

RANDOM = HEAD + """
#include <errno.h>

static void token(duda_request_t *dr)
{
    char text[101], one[2], none[1] = "x";
    if (session->random_token(none, 1) != -EINVAL || session->random_token(NULL, 9) != -EINVAL || none[0] != 'x')
        abort();
    response->printf(dr, "%d %d ", session->random_token(text, sizeof(text)), session->random_token(one, sizeof(one)));
    response->printf(dr, "%s %s", text, one);
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/token", token) ? 0 : -1;
}
"""


def test_random_tokens(serve_services):
    server = serve_services({"web": RANDOM}, {"Workers": 1})
    with server.connect() as client:
        rows = [client.ask("/web/token").body.decode() for _ in range(100)]
    assert all(re.fullmatch(r"0 0 [\w-]{100} [\w-]", row, re.A) for row in rows)
    assert len({row.split()[2] for row in rows}) == 100
    assert len(set("".join(row.split()[2] for row in rows))) == 64
    server.wait_log(r"session->random_token\(\): Invalid argument, in web.duda")
