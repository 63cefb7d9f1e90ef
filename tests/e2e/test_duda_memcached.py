# SPDX-License-Identifier: Apache-2.0
"""The package memcached: against real servers, and against fakes that answer garbage, too late, or not at all."""

import contextlib
import json
import re
import shutil
import signal
import socket
import threading

import pytest

from harness import build
from harness.fakes import killed_at_the_end
from harness.memcached import PROGRAM, Fake, Memcached, each_command
from harness.names import needs_localhost
from harness.server import REPORT, await_true, free_port
from harness.services import (
    CPP,
    HEAD,
    build_cpp,
    build_service,
    needs_duda,
    patched,
    reload,
    version_line,
    web_service,
)

pytestmark = [
    needs_duda,
    pytest.mark.skipif(not PROGRAM, reason="memcached is not installed"),
    pytest.mark.skipif(not (build.PLUGINS / "packages/memcached.dpkg").exists(), reason="no package memcached"),
]

SERVICE = f"""{HEAD}
#include <duda/packages/memcached/memcached.h>
#include <errno.h>
#include <stdio.h>

static duda_memcached_t *cache;
static _Atomic long begun; /* calls that wait for a reply, or did */

static const char *const ops[] = {{
    "fetch", "fetch_touch", "recache", "touch", "store", "add", "replace", "append", "prepend", "remove", "invalidate",
    "increase", "decrease", "describe",
}};

static uint64_t number(duda_request_t *dr, const char *name)
{{
    const char *text = qs->get(dr, name);
    return text ? strtoull(text, NULL, 10) : 0;
}}

static void read_command(duda_request_t *dr, struct duda_memcached_command *c)
{{
    const char *value = qs->get(dr, "value"), *op = param->get(dr, "op");
    *c = (struct duda_memcached_command){{.key = param->get(dr, "key"), .value = value}};
    c->len = value ? strlen(value) : 0;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (strcmp(ops[i], op) == 0)
            c->op = (enum duda_memcached_op)i;
    c->ttl_s = (uint32_t)number(dr, "ttl");
    c->flags = (uint32_t)number(dr, "flags");
    c->cas = number(dr, "cas");
    c->n = number(dr, "n");
    c->initial = number(dr, "initial");
    c->creates = number(dr, "creates");
    c->recache_s = (uint32_t)number(dr, "recache");
}}

static void print(duda_request_t *dr, const struct duda_memcached_reply *r)
{{
    response->printf(dr, "result=%d value=%s len=%zu number=%llu cas=%llu ttl=%lld flags=%u%s%s%s|%s", r->result,
                     r->value ? r->value : "", r->len, (unsigned long long)r->number, (unsigned long long)r->cas,
                     (long long)r->ttl_s, r->flags, r->won ? " won" : "", r->busy ? " busy" : "",
                     r->stale ? " stale" : "", memcached->error(cache));
}}

static void wait_for_call(duda_request_t *dr, void *data)
{{
    struct duda_memcached_command c;
    struct duda_memcached_reply r;
    (void)data;
    read_command(dr, &c);
    begun++;
    int result = memcached->call(cache, &c, &r);
    if (result == -ECONNABORTED || result == -ECANCELED) {{
        msg->info("call %d", result);
        return;
    }}
    print(dr, &r);
    free(r.value);
    response->end(dr, NULL);
}}

static void call(duda_request_t *dr)
{{
    dthread->handle(dr, wait_for_call, NULL);
}}

static void on_reply(duda_request_t *dr, struct duda_memcached_reply *r, void *data)
{{
    if (r->result == -ECANCELED) {{
        msg->info("send %d", r->result); // the service ends, and so does the request, if it has not ended
        return;
    }}
    if (!dr || data != &cache) {{
        msg->info("no request %d", r->result);
        return;
    }}
    print(dr, r);
    response->end(dr, NULL);
}}

static void send(duda_request_t *dr)
{{
    struct duda_memcached_command c;
    read_command(dr, &c);
    int err = memcached->send(cache, dr, &c, on_reply, &cache);
    begun += err == 0;
    if (err == 0)
        return;
    response->printf(dr, "sent=%d|%s", err, memcached->error(cache));
    response->end(dr, NULL);
}}

static void fetch_many(duda_request_t *dr, void *data)
{{
    unsigned n = (unsigned)number(dr, "n");
    char (*texts)[16] = malloc(n * sizeof(*texts) + 1);
    const char **keys = malloc(n * sizeof(*keys) + 1);
    struct duda_memcached_reply *replies = calloc(n + 1, sizeof(*replies));
    unsigned found = 0, failed = 0;
    (void)data;
    for (unsigned i = 0; i < n; i++) {{
        snprintf(texts[i], sizeof(texts[i]), "k%u", i);
        keys[i] = texts[i];
    }}
    int err = memcached->fetch_many(cache, keys, n, replies);
    for (unsigned i = 0; i < n && n <= DUDA_MEMCACHED_MANY_MAX; i++) {{
        found += replies[i].result == 0 && strcmp(replies[i].value, keys[i]) == 0;
        failed += replies[i].result != 0 && replies[i].result != -ENOENT;
        free(replies[i].value);
    }}
    response->printf(dr, "%d found %u failed %u|%s", err, found, failed, memcached->error(cache));
    free(texts);
    free(keys);
    free(replies);
    response->end(dr, NULL);
}}

static void many(duda_request_t *dr)
{{
    dthread->handle(dr, fetch_many, NULL);
}}

/* Stores k0 to k99 at once. */
static void fill_all(duda_request_t *dr, void *data)
{{
    static char texts[100][16];
    struct duda_memcached_command commands[100];
    struct duda_memcached_reply replies[100];
    (void)data;
    for (int i = 0; i < 100; i++) {{
        int len = snprintf(texts[i], sizeof(texts[i]), "k%d", i);
        commands[i] = (struct duda_memcached_command){{
            .op = DUDA_MEMCACHED_STORE, .key = texts[i], .value = texts[i], .len = (size_t)len}};
    }}
    response->printf(dr, "%d", memcached->call_many(cache, commands, 100, replies));
    response->end(dr, NULL);
}}

static void fill(duda_request_t *dr)
{{
    dthread->handle(dr, fill_all, NULL);
}}

static void run_all(duda_request_t *dr, void *data)
{{
    struct duda_memcached_reply r;
    uint64_t n = 0;
    (void)data;
#define STEP(call) response->printf(dr, "%d ", call)
    STEP(memcached->store(cache, "a", "1", 1, 60));
    STEP(memcached->add(cache, "a", "2", 1, 0));
    STEP(memcached->replace(cache, "a", "3", 1, 0));
    STEP(memcached->append(cache, "a", "45", 2));
    STEP(memcached->prepend(cache, "a", "12", 2));
    STEP(memcached->touch(cache, "a", 100));
    STEP(memcached->invalidate(cache, "a", 0));
    STEP(memcached->fetch(cache, "a", &r));
    response->printf(dr, "%s/%lld ", r.value, (long long)r.ttl_s / 10);
    free(r.value);
    STEP(memcached->increase(cache, "n", 5, 0, &n));
    STEP(memcached->increase(cache, "n", 5, 0, &n));
    response->printf(dr, "n%llu ", (unsigned long long)n);
    STEP(memcached->decrease(cache, "n", 3, 0, &n));
    response->printf(dr, "n%llu ", (unsigned long long)n);
    STEP(memcached->decrease(cache, "n", 30, 0, NULL));
    STEP(memcached->remove(cache, "a"));
    STEP(memcached->remove(cache, "a"));
    STEP(memcached->append(cache, "a", "x", 1));
    STEP(memcached->replace(cache, "a", "x", 1, 0));
    STEP(memcached->touch(cache, "a", 1));
    STEP(memcached->fetch(cache, "a", &r));
    STEP(memcached->store(cache, "", "x", 1, 0));
    response->printf(dr, "(%s)", memcached->error(cache));
    response->end(dr, NULL);
}}

static void all(duda_request_t *dr)
{{
    dthread->handle(dr, run_all, NULL);
}}

/* wake() of others must not end the wait of a call, nor be lost. */
static void wake_it(void *data)
{{
    dthread->wake(*(duda_dthread_t *)data);
}}

static void call_and_wait(duda_request_t *dr, void *data)
{{
    duda_dthread_t own = dthread->running();
    struct duda_memcached_reply r;
    (void)data;
    dthread->create(wake_it, &own);
    int err = memcached->fetch(cache, "none", &r);
    int woken = dthread->wait(60000);
    response->printf(dr, "%d %d %d", err, woken, dthread->wait(0));
    response->end(dr, NULL);
}}

static void woken(duda_request_t *dr)
{{
    dthread->handle(dr, call_and_wait, NULL);
}}

/* Keys and values with any bytes. */
static void store_bytes(duda_request_t *dr, void *data)
{{
    static const char key[] = "a key\\0with\\r\\nany bytes", value[] = "x\\r\\nEN\\r\\n\\0y";
    char *large = calloc(1, 2 << 20);
    struct duda_memcached_reply r;
    struct duda_memcached_command c = {{.op = DUDA_MEMCACHED_STORE, .key = key, .key_len = sizeof(key)}};
    (void)data;
    c.value = value;
    c.len = sizeof(value);
    c.flags = 4000000000;
    response->printf(dr, "%d ", memcached->call(cache, &c, NULL));
    memset(&c.value, 0, sizeof(c.value));
    c.len = 0;
    c.op = DUDA_MEMCACHED_FETCH;
    response->printf(dr, "%d ", memcached->call(cache, &c, &r));
    response->printf(dr, "%d %u ", r.len == sizeof(value) && memcmp(r.value, value, sizeof(value)) == 0, r.flags);
    free(r.value);
    c.op = DUDA_MEMCACHED_DESCRIBE;
    response->printf(dr, "%d ", memcached->call(cache, &c, &r));
    response->printf(dr, "%d ", r.value && strstr(r.value, "exp=-1") == r.value);
    free(r.value);
    memset(large, 'k', 300);
    response->printf(dr, "%d ", memcached->store(cache, large, "x", 1, 0));
    large[250] = 0;
    response->printf(dr, "%d ", memcached->store(cache, large, "x", 1, 0));
    large[249] = ' ';
    response->printf(dr, "%d ", memcached->store(cache, large, "x", 1, 0));
    response->printf(dr, "%d ", memcached->store(cache, "large", large, (1 << 20) + 1, 0));
    response->printf(dr, "%d (%s)", memcached->store(cache, "large", large, 1 << 20, 0), memcached->error(cache));
    response->printf(dr, " %d", memcached->store(cache, "large", large, 1000000, 0));
    response->printf(dr, " %d", memcached->fetch(cache, "large", &r));
    response->printf(dr, " %d", r.len == 1000000 && memcmp(r.value, large, r.len) == 0);
    free(r.value);
    free(large);
    response->end(dr, NULL);
}}

static void bytes(duda_request_t *dr)
{{
    dthread->handle(dr, store_bytes, NULL);
}}

static void in_callback(duda_request_t *dr)
{{
    struct duda_memcached_reply r;
    response->printf(dr, "%d ", memcached->fetch(cache, "a", &r));
    response->printf(dr, "%d", memcached->fetch(NULL, "a", &r));
    response->end(dr, NULL);
}}

/* A dthread that ignores the end of the service is abandoned. */
static void call_for_ever(duda_request_t *dr, void *data)
{{
    struct duda_memcached_reply reply;
    (void)dr;
    (void)data;
    begun++;
    for (;;)
        memcached->fetch(cache, "a", &reply);
}}

static void for_ever(duda_request_t *dr)
{{
    dthread->handle(dr, call_for_ever, NULL);
}}

static void count_begun(duda_request_t *dr)
{{
    response->printf(dr, "%ld", begun);
    response->end(dr, NULL);
}}

int duda_main(void)
{{
    duda_load_package(memcached, "memcached");
    cache = memcached->open(&(struct duda_memcached_conf){{CONF}});
    router->get("/call/:op/:key", call);
    router->get("/send/:op/:key", send);
    router->get("/many", many);
    router->get("/fill", fill);
    router->get("/all", all);
    router->get("/woken", woken);
    router->get("/bytes", bytes);
    router->get("/callback", in_callback);
    router->get("/begun", count_begun);
    router->get("/for-ever", for_ever);
    return cache ? 0 : -1;
}}
"""


def source(*servers, **conf):
    """
    The service, with its servers and further fields of its struct duda_memcached_conf. Where no time is the matter, a
    busy machine has enough of it.
    """
    conf = {"timeout_ms": 30000, "connect_timeout_ms": 30000, **conf}
    fields = "".join(f", .{name} = {value}" for name, value in conf.items())
    addresses = " ".join(getattr(server, "address", server) for server in servers)
    return SERVICE.replace("CONF", f".servers = {patched(addresses)}{fields}")


def ask(server, target):
    with server.connect(timeout=60) as client:
        return client.ask(f"/t{target}", host="localhost").body.decode()


def result(text):
    return int(re.match(r"result=(-?\d+) ", text)[1])


class Asking:
    """Asks all targets at the same time, each over its own connection; `bodies` are in their order."""

    def __init__(self, server, targets):
        self.clients = [server.connect(timeout=120) for _ in targets]
        for client, target in zip(self.clients, targets):
            client.send(f"GET /t{target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def bodies(self):
        return [client.response("GET").body.decode() for client in self.clients]


@pytest.fixture
def caches(serve_services):  # ends before the server, which then has no connection any more
    with killed_at_the_end(Memcached) as start:
        yield start


@pytest.fixture
def fake(serve_services):
    with killed_at_the_end(Fake) as start:
        yield start


# ── a real server ──


def test_all_functions(serve_services, caches):
    server = serve_services({"t": source(caches())})
    expected = "0 -17 0 0 0 0 0 0 12345/10 0 0 n10 0 n7 0 0 -2 -2 -2 -2 -2 -22 (the key is empty)"
    assert re.sub("12345/9", "12345/10", ask(server, "/all")) == expected


def test_a_unix_socket(serve_services, caches, tmp_path):
    server = serve_services({"t": source(caches(path=tmp_path / "m"))})
    assert ask(server, "/all").startswith("0 -17 0 0 ")


def test_any_bytes(serve_services, caches):
    """The value of 1 MB is above what memcached takes with its defaults: item and value together."""
    server = serve_services({"t": source(cache := caches())})
    text = ask(server, "/bytes")
    assert text.startswith("0 0 1 4000000000 0 1 -22 0 -22 -90 -121 (memcached 127.0.0.1:")
    assert text.endswith(": it says: object too large for cache) 0 0 1")
    assert cache.stat("curr_items") == 3


@pytest.mark.parametrize("form", ["call", "send"])
def test_fields(serve_services, caches, form):
    server = serve_services({"t": source(caches())})

    def do(op, key, **query):
        return ask(server, f"/{form}/{op}/{key}?" + "&".join(f"{k}={v}" for k, v in query.items()))

    first = do("store", "a", value="one", flags=7, ttl=1000)
    assert first.startswith("result=0 value= len=0 ")
    got = do("fetch", "a")
    cas = int(re.search(r"cas=(\d+)", got)[1])
    assert re.match(r"result=0 value=one len=3 number=0 cas=\d+ ttl=(1000|9\d\d) flags=7\|$", got), got
    assert result(do("store", "a", value="two", cas=cas + 1000)) == -17
    assert result(do("store", "a", value="two", cas=cas)) == 0
    assert result(do("store", "b", value="two", cas=cas)) == -2
    assert "value=two" in do("fetch_touch", "a", ttl=0) and "ttl=-1 " in do("fetch", "a")
    assert result(do("increase", "n", n=2)) == -2
    assert "number=5 " in do("increase", "n", n=2, creates=1, initial=5)
    assert "number=7 " in do("increase", "n", n=2, creates=1, initial=5)
    assert "number=0 " in do("decrease", "n", n=9)
    failed = do("increase", "a", n=1)
    assert result(failed) == -121
    assert failed.endswith(": it says: cannot increment or decrement non-numeric value")
    assert result(do("fetch", "a")) == 0  # the connection continues
    assert result(do("store", "y", value="x", ttl=31536000)) == 0
    assert re.search(r"ttl=315(359|360)\d\d ", do("fetch", "y"))  # a year
    assert "exp=-1" in do("describe", "a") and result(do("describe", "none")) == -2
    assert result(do("remove", "a", cas=1)) == -17 and result(do("remove", "a")) == 0


def test_one_of_many_makes_a_value(serve_services, caches):
    server = serve_services({"t": source(caches())}, {"Workers": 2})
    ways = ["/call/recache/page?ttl=30", "/send/recache/page?ttl=30"] * 10
    bodies = Asking(server, ways).bodies()
    assert all(result(body) == -2 for body in bodies)
    assert sum(" won" in body for body in bodies) == 1 and sum(" busy" in body for body in bodies) == 19
    assert result(ask(server, "/call/store/page?value=new&ttl=60")) == 0
    body = ask(server, "/call/recache/page?ttl=30")
    assert "value=new" in body and "won" not in body and "busy" not in body
    assert result(ask(server, "/call/invalidate/page?ttl=60")) == 0
    bodies = Asking(server, ways).bodies()
    assert all("value=new" in body and " stale" in body for body in bodies)
    assert sum(" won" in body for body in bodies) == 1
    assert result(ask(server, "/call/store/page?value=newer&ttl=60")) == 0
    bodies = Asking(server, [f"{way}&recache=70" for way in ways]).bodies()  # it ends within 70 seconds
    assert all("value=newer" in body for body in bodies) and sum(" won" in body for body in bodies) == 1


def test_wake_of_others(serve_services, caches):
    server = serve_services({"t": source(caches())})
    assert ask(server, "/woken") == "-2 0 -11"


def test_wrong_calls(serve_services, caches):
    server = serve_services({"t": source(caches())})
    assert ask(server, "/callback") == "-1 -22"
    server.wait_log(r"memcached->fetch\(\): only a dthread can wait, in t\.duda")


@pytest.mark.parametrize(
    "conf, sentence",
    [
        ('.servers = "a b c:x"', r'server "c:x": the port must be a number from 1 to 65535'),
        ('.servers = " , "', "`servers` has no server"),
        ('.servers = "a:1 a:1"', 'server "a:1": it is there twice'),
        (f'.servers = "{" ".join(f"a:{n}" for n in range(1, 66))}"', 'server "a:65": there are more than 64 servers'),
        (".timeout_ms = 60001", "timeout_ms is 60000 at most"),
        (".value_bytes_max = 70000000", "value_bytes_max is 67108864 at most"),
        (".queue_bytes_max = 1000", "queue_bytes_max must be 1024 above value_bytes_max"),
    ],
)
def test_wrong_settings(serve_services, conf, sentence):
    server = serve_services({"t": SERVICE.replace("CONF", conf)})
    server.wait_log(re.escape(f"memcached->open(): {sentence}"))


def test_figures(serve_services, caches):
    """What the console of the service shows."""
    server = serve_services({"t": source(caches(), value_bytes_max=1000)}, keys={"t": {"Console": "/console/"}})
    ask(server, "/fill")
    ask(server, "/many?n=120")
    assert result(ask(server, "/call/store/x?value=" + "x" * 1001)) == -90
    ask(server, "/send/touch/k1")
    with server.connect() as client:
        figures = json.loads(client.ask("/t/console/", "Accept: application/json", host="localhost").body)["packages"]
    expected = {"commands": 222, "hits": 101, "misses": 20, "errors": 1}
    assert {name: figures[f"memcached_{name}"] for name in expected} == expected
    assert figures["memcached_connections"] == 2


# ── several servers ──


def test_several_servers(serve_services, caches):
    """Each has a part of the keys; the order in which they are named does not matter."""
    all_three = [caches() for _ in range(3)]
    server = serve_services({"t": source(*all_three), "u": source(*reversed(all_three))})
    assert ask(server, "/fill") == "0"
    assert ask(server, "/many?n=120") == "0 found 100 failed 0|"
    with server.connect() as client:
        assert client.ask("/u/many?n=120").body == b"0 found 100 failed 0|"
    shares = [one.stat("curr_items") for one in all_three]
    assert sum(shares) == 100 and min(shares) >= 15


def test_one_of_several_is_gone(serve_services, caches):
    all_three = [caches() for _ in range(3)]
    server = serve_services({"t": source(*all_three), "u": source(*all_three, skip_dead="true")})
    assert ask(server, "/fill") == "0"
    all_three[0].kill()
    body = ask(server, "/many?n=100")
    found, failed = map(int, re.search(r"found (\d+) failed (\d+)", body).groups())
    assert found + failed == 100 and 15 <= failed <= 60
    assert body.partition("|")[2].startswith(f"memcached {all_three[0].address}: ")

    def spread():
        with server.connect() as client:
            stored = client.ask("/u/fill").body == b"0"
            return stored and client.ask("/u/many?n=100").body == b"0 found 100 failed 0|"

    await_true(spread, 60, "the keys of the one that is gone are those of the others")
    for _ in range(100):
        assert spread(), "a command has found that the server is still gone"
    all_three[0].start()
    await_true(lambda: spread() and all_three[0].stat("curr_items") > 0, 60, "it has its keys again")


# ── servers that are gone ──


def test_no_server(serve_services):
    port = free_port()
    server = serve_services({"t": source(f"127.0.0.1:{port}")})
    for form in "call", "send":
        body = ask(server, f"/{form}/fetch/a")
        assert re.search(r"(result|sent)=-111[ |]", body), body
        assert f"memcached 127.0.0.1:{port}: Connection refused" in body
    sentence = f"memcached 127.0.0.1:{port}: Connection refused; it is tried again until the server replies"
    server.wait_log(f"warn  service t: {sentence}$")


def test_no_unix_socket(serve_services, tmp_path):
    server = serve_services({"t": source(f"unix:{tmp_path}/none")})
    assert result(ask(server, "/call/fetch/a")) == -111


def test_a_name_without_an_address(serve_services):
    server = serve_services({"t": source("nothing.invalid:11211", timeout_ms=30000, connect_timeout_ms=30000)})
    body = ask(server, "/call/fetch/a")
    assert result(body) in (-6, -11) and "|memcached nothing.invalid:11211: " in body


def test_killed_while_requests_wait(serve_services, caches):
    """kill -9 of a server that does not answer: each of 100 requests gets its error, and later ones succeed."""
    cache = caches()
    server = serve_services({"t": source(cache, timeout_ms=60000)}, {"Workers": 2})
    assert result(ask(server, "/call/store/a?value=1")) == 0
    cache.suspend(signal.SIGSTOP)
    asking = Asking(server, ["/call/fetch/a", "/send/fetch/a"] * 50)
    await_true(lambda: ask(server, "/begun") == "101", 60, "all wait, and the workers serve others")
    cache.kill()
    bodies = asking.bodies()
    assert len(bodies) == 100
    assert {int(re.search(r"=(-\d+)[ |]", body)[1]) for body in bodies} <= {-32, -111}
    assert all(f"memcached {cache.address}: " in body for body in bodies)
    cache.start()
    await_true(lambda: ask(server, "/call/store/a?value=2").startswith("result=0 "), 60, "it is used again")
    await_true(lambda: "value=2" in ask(server, "/call/fetch/a"), 60, "also by the other worker")


def test_a_restart_between_requests(serve_services, caches):
    """A connection that was closed while nothing waited costs no request."""
    cache = caches()
    server = serve_services({"t": source(cache)})
    for value in range(3):
        await_true(lambda value=value: ask(server, f"/call/store/a?value={value}").startswith("result=0 "), 60)
        assert f"value={value} " in ask(server, "/call/fetch/a")
        cache.kill()
        cache.start()


def test_a_server_that_hangs(serve_services, caches):
    cache = caches()
    server = serve_services({"t": source(cache, timeout_ms=3000)}, {"Workers": 1})
    await_true(lambda: result(ask(server, "/call/store/a?value=1")) == 0, 60, "its reply in time")
    cache.suspend(signal.SIGSTOP)
    bodies = Asking(server, ["/call/fetch/a", "/send/fetch/a"] * 50).bodies()
    for body in bodies:
        assert re.search(r"=-110[ |]", body) and f"memcached {cache.address}: " in body, body
    cache.suspend(signal.SIGCONT)
    await_true(lambda: ask(server, "/call/fetch/a").startswith("result=0 value=1 "), 60, "it is used again")
    server.wait_log(rf"memcached {cache.address}: connected again")


# ── servers that misbehave ──


def fixed(reply):
    """Answers mn, and the first command behind it with fixed bytes; OPAQUE is its number."""

    def serve(connection, file):
        for name, _, _, opaque in each_command(file):
            connection.sendall(b"MN\r\n" if name == b"mn" else reply.replace(b"OPAQUE", b"O" + opaque))

    return serve


@pytest.mark.parametrize(
    "reply, error, sentence",
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", -71, "its reply is not of the meta protocol"),
        (b"\x00\x01\x02", -71, "its reply is not of the meta protocol"),
        (b"VA 5 OPAQUE\r\nhelloworld\r\n", -71, "a value has another length than it says"),
        (b"VA 99999999999999999999 OPAQUE\r\n", -71, "the length of a value is no number, or above 1 GB"),
        (b"VA -1 OPAQUE\r\n", -71, "the length of a value is no number, or above 1 GB"),
        (b"VA 5 fx OPAQUE\r\nhello\r\n", -71, "a flag of a reply is malformed"),
        (b"VA 5 O77\r\nhello\r\n", -71, "its replies are not those of the commands"),
        (b"VA 5\r\nhello\r\n", -71, "its replies are not those of the commands"),
        (b"HD OPAQUE\r\n", -71, "its replies are not those of the commands"),
        (b"VA 5 OPAQUE" + b" " * 3000, -71, "a line of a reply is too long"),
        (b"VA 5 OPAQUE\nhello\n", -71, "a line of a reply has no end of a line"),
        (b"ERROR\r\n", -71, "it does not know the meta protocol, for which memcached 1.6 is needed"),
        (b"SERVER_ERROR out of \x1b[31mmemory\r\n", -121, "it says: out of ?[31mmemory"),
    ],
)
def test_garbage(serve_services, fake, reply, error, sentence):
    one = fake(fixed(reply))
    server = serve_services({"t": source(one, timeout_ms=30000)})
    body = ask(server, "/call/fetch/a")
    assert (result(body), body.partition("|")[2]) == (error, f"memcached {one.address}: {sentence}")


@pytest.mark.parametrize("reply", [b"VA 10 OPAQUE\r\nabc", b"VA", b"", b"VA 3 OPAQUE\r\nabc"])
def test_replies_that_are_cut(serve_services, fake, reply):
    def serve(connection, file):
        for name, _, _, opaque in each_command(file):
            if name == b"mn":
                connection.sendall(b"MN\r\n")
                continue
            connection.sendall(reply.replace(b"OPAQUE", b"O" + opaque))
            return

    one = fake(serve)
    server = serve_services({"t": source(one, timeout_ms=30000)})
    body = ask(server, "/call/fetch/a")
    assert result(body) == -32
    assert body.endswith((": the server has closed the connection", ": the connection was lost"))


def test_a_greeting_that_is_an_error(serve_services, fake):
    """As of a server with too many connections."""
    one = fake(lambda connection, file: (file.readline(), connection.sendall(b"SERVER_ERROR Too many open\r\n")))
    server = serve_services({"t": source(one)})
    body = ask(server, "/call/fetch/a")
    assert result(body) == -121 and body.endswith(": it says: Too many open")


def test_a_value_that_is_too_long(serve_services, fake):
    """It is dropped as it comes, and the connection continues."""

    def serve(connection, file):
        for name, words, _, opaque in each_command(file):
            size = 5000000 if words and words[0] == b"long" else 3
            reply = b"VA %d O%s\r\n%s\r\n" % (size, opaque, b"x" * size)
            connection.sendall(b"MN\r\n" if name == b"mn" else reply)

    one = fake(serve)
    server = serve_services({"t": source(one, timeout_ms=60000, value_bytes_max=100, connections_max=1)})
    bodies = Asking(server, ["/call/fetch/a", "/call/fetch/long", "/call/fetch/b"]).bodies()
    assert [result(body) for body in bodies] == [0, -90, 0] and "value=xxx" in bodies[2]
    assert bodies[1].endswith(": the value is longer than value_bytes_max")
    assert one.accepted == 1


def test_late_replies_are_dropped(serve_services, fake):
    """The reply to the slow command comes when it has timed out, and before those of the next ones."""
    timed_out = threading.Event()

    def serve(connection, file):
        for name, words, _, opaque in each_command(file):
            if name == b"mn":
                connection.sendall(b"MN\r\n")
                continue
            connection.sendall(b"VA 4")  # bytes that come show that the server is not stuck
            if words[0] == b"slow":
                timed_out.wait(60)
            connection.sendall(b" O%s\r\n%-4s\r\n" % (opaque, words[0]))

    one = fake(serve)
    server = serve_services({"t": source(one, timeout_ms=1500, connections_max=1)})
    body = ask(server, "/call/fetch/slow")
    assert result(body) == -110 and body.endswith(("no reply within 1500 ms", "it does not reply"))
    timed_out.set()
    await_true(lambda: "value=fast" in ask(server, "/call/fetch/fast"), 60, "the next command has its own reply")


def test_a_server_that_is_silent(serve_services, fake):
    """It takes connections and commands, and never answers."""
    one = fake(lambda connection, file: [line for line in file])
    server = serve_services({"t": source(one, timeout_ms=200)})
    bodies = Asking(server, ["/call/fetch/a"] * 20).bodies()
    assert {result(body) for body in bodies} == {-110}
    assert result(ask(server, "/call/fetch/a")) == -110


def end(server):
    """A stop while the clients wait; server.stop() would close their connections before."""
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0
    assert not REPORT.search(server.log), server.log[-6000:]


@pytest.fixture
def full():
    """The address of a listener whose queue is full: the kernel does not answer further connections."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield "127.0.0.1:%d" % listener.getsockname()[1]


def test_a_server_that_does_not_accept(serve_services, full):
    server = serve_services({"t": source(full, timeout_ms=30000, connect_timeout_ms=200)})
    bodies = Asking(server, ["/call/fetch/a", "/send/fetch/a"] * 5).bodies()
    assert all(f"|memcached {full}: no connection within its time" in body for body in bodies)
    assert result(ask(server, "/call/fetch/a")) == -110
    other = serve_services({"t": source(full, timeout_ms=200, connect_timeout_ms=30000)})
    assert ask(other, "/call/fetch/a").endswith(f"|memcached {full}: no reply within 200 ms")


@pytest.mark.parametrize("name", ["full", pytest.param("localhost", marks=needs_localhost)])
def test_a_stop_while_it_connects(serve_services, full, name):
    address = full.replace("127.0.0.1", "localhost") if name == "localhost" else full
    conf = {"timeout_ms": 60000, "connect_timeout_ms": 60000}
    server = serve_services({"t": source(address, **conf)}, {"Workers": 2, "ShutdownTimeout": "1s"})
    asking = Asking(server, ["/call/fetch/a", "/send/fetch/a"] * 10)
    await_true(lambda: ask(server, "/begun") == "20", 60, "all wait")
    end(server)
    assert asking


def test_limits(serve_services, fake):
    """What waits is limited: the commands by their number and by their bytes."""
    started, held = threading.Semaphore(0), threading.Event()

    def serve(connection, file):
        for name, _, _, opaque in each_command(file):
            started.release()
            held.wait(60)
            connection.sendall(b"MN\r\n" if name == b"mn" else b"EN O%s\r\n" % opaque)

    one = fake(serve)
    server = serve_services({"t": source(one, timeout_ms=60000, pending_max=10, connections_max=1)}, {"Workers": 1})
    first = Asking(server, ["/call/fetch/a"] * 20)
    assert started.acquire(timeout=60)
    await_true(lambda: ask(server, "/begun") == "20", 60, "all have called")
    body = ask(server, "/call/fetch/a")
    assert result(body) == -16 and body.endswith("|pending_max commands of this worker wait for replies")
    held.set()
    results = [result(body) for body in first.bodies()]
    assert sorted(set(results)) == [-16, -2] and results.count(-2) == 10


def test_the_queue(serve_services, caches):
    """Bytes that wait to be sent are limited, too: what is refused was not sent."""
    cache = caches()
    one = source(cache, value_bytes_max=100, queue_bytes_max=1200, connections_max=1)
    server = serve_services({"t": one}, {"Workers": 1})
    assert ask(server, "/fill") == "-16"
    stored = cache.stat("curr_items")
    assert 0 < stored < 100
    assert ask(server, "/many?n=10").startswith("0 found 10 failed 0|")


# ── clients and services that go ──


def test_clients_that_leave(serve_services, caches):
    cache = caches()
    server = serve_services({"t": source(cache, timeout_ms=60000)}, {"Workers": 1})
    assert result(ask(server, "/call/store/a?value=1")) == 0
    cache.suspend(signal.SIGSTOP)
    asking = Asking(server, ["/call/fetch/a", "/send/fetch/a"] * 10)
    await_true(lambda: ask(server, "/begun") == "21", 60, "all wait")
    for client in asking.clients:
        client.reset()
    server.wait_log("service t: call -103", 10, 60)
    cache.suspend(signal.SIGCONT)
    server.wait_log("service t: no request 0", 10, 60)
    assert "value=1" in ask(server, "/call/fetch/a")


@pytest.mark.parametrize("way", ["swap", "stop"])
def test_the_end_of_a_service(serve_services, caches, way):
    """Commands wait: a new version, and a stop, tell them -ECANCELED."""
    cache = caches()
    server = serve_services({"t": source(cache, timeout_ms=60000)}, {"Workers": 2, "ShutdownTimeout": "1s"})
    assert result(ask(server, "/call/store/a?value=1")) == 0
    cache.suspend(signal.SIGSTOP)
    asking = Asking(server, ["/call/fetch/a", "/send/fetch/a"] * 10)
    await_true(lambda: ask(server, "/begun") == "21", 60, "all wait")
    if way == "swap":
        build_service(server.services, "t", source(cache, timeout_ms=60000) + version_line(2))
        reload(server)
        server.wait_log("service t: (call -103|call -125|send -125)", 20, 60)
        cache.suspend(signal.SIGCONT)
        await_true(lambda: "value=1" in ask(server, "/call/fetch/a"), 60, "the new version serves")
    else:
        end(server)
        assert len(re.findall("service t: (call -103|call -125|send -125)", server.log)) == 20
    assert asking


@pytest.mark.parametrize("way", ["swap", "stop"])
def test_a_dthread_that_ignores_the_end(serve_services, caches, way):
    cache = caches()
    server = serve_services({"t": source(cache, timeout_ms=60000)}, {"Workers": 1, "ShutdownTimeout": "1s"})
    cache.suspend(signal.SIGSTOP)
    asking = Asking(server, ["/for-ever"] * 5)
    await_true(lambda: ask(server, "/begun") == "5", 60, "all wait")
    if way == "swap":
        build_service(server.services, "t", source(cache, timeout_ms=60000) + version_line(2))
        reload(server)
        server.wait_log("service t: 5 dthreads had not ended although the service has", 1, 60)
        cache.suspend(signal.SIGCONT)
        await_true(lambda: ask(server, "/fill") == "0", 60, "the new version serves")
    else:
        end(server)
    assert asking


@needs_localhost
def test_names_are_looked_up(serve_services, caches):
    cache = caches()
    server = serve_services({"t": source(f"localhost:{cache.port}", timeout_ms=30000)})
    assert ask(server, "/all").startswith("0 -17 0 0 ")


# ── concurrency ──


@pytest.mark.concurrent
@pytest.mark.single_protocol  # some clients send bytes of HTTP/1.1
def test_reloads_under_load(serve_services, caches):
    """Requests of several clients, while the service is replaced, its server restarted, and clients leave."""
    cache = caches()
    text = source(cache, timeout_ms=20000)
    server = serve_services({"t": text}, {"Workers": 3, "KeepAliveTimeout": "60s"})
    failures, done = [], threading.Event()

    def load(number):
        try:
            while not done.is_set():
                with server.connect(timeout=120) as client:
                    for i in range(20):
                        answer = client.ask(f"/t/call/store/{number}-{i}?value={number}")
                        assert answer.status == 200, answer
                        answer = client.ask(f"/t/send/fetch/{number}-{i}")
                        assert b"value=%d " % number in answer.body or b"=-" in answer.body, answer
                        answer = client.ask("/t/many?n=50")
                        assert answer.status == 200, answer
                with server.connect() as client:
                    client.send(b"GET /t/call/fetch/a HTTP/1.1\r\nHost: localhost\r\n\r\n")
        except BaseException as error:  # reported by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=load, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for number in range(4):
        build_service(server.services, "t", text + version_line(number))
        reload(server)
        cache.kill()
        cache.start()
    done.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    await_true(lambda: ask(server, "/fill") == "0", 60, "it is used again")
    await_true(lambda: ask(server, "/many?n=120") == "0 found 100 failed 0|", 60, "also by the other workers")


@pytest.mark.parametrize("compiler", [name for name in CPP if shutil.which(name)])
def test_a_service_in_cpp(serve_services, tmp_path, caches, compiler):
    text = """
#include <duda/duda.h>
#include <duda/packages/memcached/memcached.h>

static duda_memcached_t *cache;

static void count(duda_request_t *dr, void *)
{
    uint64_t n = 0;
    memcached->increase(cache, "n", 1, 0, &n);
    response->printf(dr, "%d", static_cast<int>(n));
    response->end(dr, nullptr);
}

static void handler(duda_request_t *dr)
{
    dthread->handle(dr, count, nullptr);
}

int duda_main(void)
{
    duda_memcached_conf conf = {};
    conf.servers = "SERVER";
    duda_load_package(memcached, "memcached");
    cache = memcached->open(&conf);
    return cache && router->get("/", handler) ? 0 : -1;
}
"""
    (tmp_path / "services").mkdir()
    build_cpp(tmp_path / "services", "t", text.replace("SERVER", caches().address), compiler)
    server = serve_services({}, {"Workers": 1}, text=web_service("t"))
    assert [ask(server, "/") for _ in range(2)] == ["1", "2"]


# ── the page ──

PAGE = build.TOP / "docs/reference/duda/memcached.md"
HEADER = build.TOP / "include/duda/packages/memcached/memcached.h"


def test_the_page(serve_services):
    """It names all functions; they are called here or in the example; and its own examples are a service."""
    text = PAGE.read_text()
    table = HEADER.read_text().partition("struct duda_api_memcached {")[2]
    functions = re.findall(r"^    \S.*\(\*(\w+)\)\(", table, re.M)
    example = next(build.TOP.glob("docs/examples/services/*-memcached/memcached.c")).read_text()
    assert len(functions) == 18
    assert [name for name in functions if not re.search(rf"`[^`\n]*\b{name}\b", text)] == []
    assert [name for name in functions if f"memcached->{name}(" not in SERVICE + example] == []
    service, more = re.findall(r"^```c\n(.*?)^```$", text, re.S | re.M)
    service = "#include <errno.h>\n" + service.replace("10.0.0.1:11211 10.0.0.2:11211", "127.0.0.1:1")
    more = more.replace("static void count", "void count(duda_request_t *dr);\nvoid count")
    server = serve_services({"t": service.replace("int duda_main", f"{more}\nint duda_main")})
    assert ask(server, "/") == "memcached 127.0.0.1:1: Connection refused\n"
