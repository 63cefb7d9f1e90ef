# SPDX-License-Identifier: Apache-2.0
"""The package redis: commands, errors, lost connections, messages, and the calls of the original."""

import concurrent.futures
import contextlib
import errno
import itertools
import json
import re
import signal
import socket
import threading
import urllib.parse

import pytest

from harness import build
from harness.fakes import killed_at_the_end
from harness.names import needs_localhost
from harness.redis import Fake, Redis, needs_redis
from harness.server import REPORT, await_true, free_port
from harness.services import (
    HEAD,
    build_old_service,
    build_service,
    needs_duda,
    patched,
    reload,
    version_line,
    web_service,
)

pytestmark = [needs_duda, needs_redis]

SOURCE = HEAD + r"""
#include <duda/packages/redis/redis.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WORDS_MAX = 64 };

static duda_redis_t *db, *other;
static _Atomic long waiting, left, notified, without_request;
static _Thread_local struct duda_redis_arg words[4][WORDS_MAX];

static void print_reply(duda_request_t *dr, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_INTEGER)
        response->printf(dr, "%lld", reply->integer);
    else if (reply->type == REDIS_REPLY_NIL)
        response->printf(dr, "nil");
    else if (reply->type != REDIS_REPLY_ARRAY)
        response->printf(dr, "%s%.*s", reply->type == REDIS_REPLY_ERROR ? "-" : "", (int)reply->len, reply->str);
    else
        response->printf(dr, "[");
    for (size_t i = 0; i < reply->elements; i++) {
        print_reply(dr, reply->element[i]);
        response->printf(dr, i + 1 < reply->elements ? "," : "]");
    }
}

static void answer(duda_request_t *dr, int result, const redisReply *reply)
{
    if (result < 0)
        response->printf(dr, "error %d: %s", result, redis->error(db));
    else if (reply)
        print_reply(dr, reply);
    response->end(dr, NULL);
}

static unsigned split(duda_request_t *dr, const char *name, struct duda_redis_arg *to)
{
    static _Thread_local char text[4][65536];
    size_t row = (size_t)((struct duda_redis_arg (*)[WORDS_MAX])to - words);
    const char *value = qs->get(dr, name);
    unsigned n = 0;
    snprintf(text[row], sizeof(text[row]), "%s", value ? value : "");
    char *save;
    for (char *word = strtok_r(text[row], " ", &save); word && n < WORDS_MAX; word = strtok_r(NULL, " ", &save))
        to[n++] = (struct duda_redis_arg){word, -1};
    return n;
}

static void do_ask(duda_request_t *dr, void *data)
{
    redisReply *reply = NULL;
    (void)data;
    waiting++;
    int err = redis->ask_args(db, &reply, words[0], split(dr, "c", words[0]));
    if (err == -ECONNABORTED) {
        left++;
        return;
    }
    answer(dr, err, reply);
    free(reply);
}

static void handle_ask(duda_request_t *dr)
{
    dthread->handle(dr, do_ask, NULL);
}

/* A dthread that ignores the end of the service is abandoned. */
static void ask_for_ever(duda_request_t *dr, void *data)
{
    (void)dr;
    (void)data;
    waiting++;
    for (;;) {
        redisReply *reply = NULL;
        redis->ask(db, &reply, "GET a");
        free(reply);
    }
}

static void handle_for_ever(duda_request_t *dr)
{
    dthread->handle(dr, ask_for_ever, NULL);
}

static void do_get(duda_request_t *dr, void *data)
{
    redisReply *reply = NULL;
    (void)data;
    int err = redis->ask(db, &reply, "GET %s", qs->get(dr, "key"));
    answer(dr, err, reply);
    gc->add(dr, reply);
}

static void handle_get(duda_request_t *dr)
{
    dthread->handle(dr, do_get, NULL);
}

/* Any bytes, by both ways, in the same key. */
static void do_bytes(duda_request_t *dr, void *data)
{
    static const char bytes[] = "a\0b\r\n$ %s";
    size_t len = sizeof(bytes) - 1;
    redisReply *one = NULL, *two = NULL;
    (void)data;
    int err = redis->ask(db, NULL, "SET %s %b", "bytes 1", bytes, len);
    err = err ? err : redis->ask_args(db, NULL, DUDA_REDIS_ARGS({"SET", -1}, {"bytes 2", -1}, {bytes, (ssize_t)len}));
    err = err ? err : redis->ask(db, &one, "GET %s", "bytes 2");
    err = err ? err : redis->ask_args(db, &two, DUDA_REDIS_ARGS({"GET", -1}, {"bytes 1", 7}));
    bool same = !err && one->len == len && two->len == len && !memcmp(one->str, bytes, len + 1) &&
                !memcmp(two->str, bytes, len + 1);
    response->printf(dr, "%d %d", err, same);
    response->end(dr, NULL);
    free(one);
    free(two);
}

static void handle_bytes(duda_request_t *dr)
{
    dthread->handle(dr, do_bytes, NULL);
}

static void do_all(duda_request_t *dr, void *data)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct duda_redis_item items[4] = {0};
    unsigned n = 0;
    (void)data;
    for (; n < 4 && qs->get(dr, names[n]); n++)
        items[n] = (struct duda_redis_item){.args = words[n], .n_args = split(dr, names[n], words[n])};
    int err = redis->ask_all(db, items, n, qs->get(dr, "atomic"));
    response->printf(dr, "%d:", err);
    for (unsigned i = 0; i < n; i++) {
        response->printf(dr, " ");
        if (items[i].reply)
            print_reply(dr, items[i].reply);
        else
            response->printf(dr, "(%d)", items[i].result);
        free(items[i].reply);
    }
    response->printf(dr, " %s", err < 0 ? redis->error(db) : "");
    response->end(dr, NULL);
}

static void handle_all(duda_request_t *dr)
{
    dthread->handle(dr, do_all, NULL);
}

static void on_reply(duda_request_t *dr, int result, const redisReply *reply, void *data)
{
    notified++;
    if (data != &notified)
        abort();
    if (dr)
        answer(dr, result, reply);
    else
        without_request++;
}

static void handle_send(duda_request_t *dr)
{
    waiting++;
    int err = qs->get(dr, "key") ? redis->send(db, dr, on_reply, &notified, "GET %s", qs->get(dr, "key"))
                                 : redis->send_args(db, dr, on_reply, &notified, words[0], split(dr, "c", words[0]));
    if (err < 0)
        answer(dr, err, NULL);
}

/* Straight code outside of a dthread, commands without any word, a wrong server. */
static void handle_wrong(duda_request_t *dr)
{
    redisReply *reply = (redisReply *)&reply;
    int err = redis->ask(db, &reply, "PING");
    response->printf(dr, "%d %d %d %d %d %d", err, reply != NULL, redis->send(db, dr, NULL, NULL, " "),
                     redis->send_args(db, NULL, NULL, NULL, words[0], 0), redis->send(NULL, NULL, NULL, NULL, "PING"),
                     redis->subscribe(db, "late", 0, NULL, NULL));
    response->end(dr, NULL);
}

static void handle_counts(duda_request_t *dr)
{
    response->printf(dr, "waiting %ld left %ld notified %ld without %ld", (long)waiting, (long)left, (long)notified,
                     (long)without_request);
    response->end(dr, NULL);
}

/* ── messages ── */

static _Atomic long messages[4];

static void on_message(const char *channel, const char *message, size_t len, void *data)
{
    if (strncmp(channel, "news", 4) != 0 || strlen(message) != len)
        abort();
    ++*(_Atomic long *)data;
}

static void handle_messages(duda_request_t *dr)
{
    response->printf(dr, "%ld %ld %ld", (long)messages[0], (long)messages[1], (long)messages[2]);
    response->end(dr, NULL);
}

int duda_main(void)
{
    duda_load_package(redis, "redis");
    db = redis->open(&(struct duda_redis_conf){@CONF@});
    other = @OTHER@;
    if (@SUBSCRIBES@ &&
        (redis->subscribe(db, "news", 0, on_message, &messages[0]) < 0 ||
         redis->subscribe(db, "news*", DUDA_REDIS_PATTERN, on_message, &messages[1]) < 0 ||
         redis->subscribe(db, "news", DUDA_REDIS_ONE_WORKER, on_message, &messages[2]) < 0))
        return -1;
    router->get("/ask", handle_ask);
    router->get("/for-ever", handle_for_ever);
    router->get("/get", handle_get);
    router->get("/bytes", handle_bytes);
    router->get("/all", handle_all);
    router->get("/send", handle_send);
    router->get("/wrong", handle_wrong);
    router->get("/counts", handle_counts);
    router->get("/messages", handle_messages);
    return db ? 0 : -1;
}
"""


def source(address, *, subscribes=False, other="NULL", **conf):
    """The service. Where no time is the matter, a busy machine has enough of it."""
    fields = [f".address = {patched(address)}"] if address else []
    for key, value in {"timeout_ms": 30000, "connect_timeout_ms": 30000, **conf}.items():
        fields.append(f".{key} = " + (f'"{value}"' if isinstance(value, str) else str(value)))
    text = SOURCE.replace("@CONF@", ", ".join(fields)).replace("@OTHER@", other)
    return text.replace("@SUBSCRIBES@", str(int(subscribes)))


@pytest.fixture
def redis(serve_services, tmp_path):
    """Starts Redis servers, which end before the server that uses them."""
    folders = (tmp_path / f"redis{n}" for n in itertools.count())
    with killed_at_the_end(lambda *args, **rest: Redis(next(folders), *args, **rest)) as start:
        yield start


@pytest.fixture
def fake(serve_services):
    with killed_at_the_end(Fake) as start:
        yield start


def ask(server, target, timeout=60):
    with server.connect(timeout=timeout) as client:
        answer = client.ask(target, host="localhost")
    assert answer.status == 200
    return answer.body.decode()


def run(server, command, how="ask"):
    return ask(server, f"/web/{how}?c=" + urllib.parse.quote(command))


def code(answer):
    found = re.match(r"error (-\d+): (.+)", answer)
    assert found, answer
    return -int(found[1]), found[2]


def is_at(answer, name):
    number, sentence = code(answer)
    assert number == getattr(errno, name), answer
    return sentence


def count(server):
    return dict(re.findall(r"(\w+) (\d+)", ask(server, "/web/counts")))


# ── commands ──


@pytest.mark.parametrize("how", ["ask", "send"])
def test_replies(serve_services, redis, how):
    server = serve_services({"web": source(redis().address)}, {"Workers": 1})
    assert run(server, "PING", how) == "PONG"
    assert run(server, "GET a", how) == "nil"
    assert run(server, "SET a 1", how) == "OK"
    assert ask(server, "/web/send?key=a" if how == "send" else "/web/get?key=a") == "1"
    assert run(server, "INCR a", how) == "2"
    assert run(server, "RPUSH l x y z", how) == "3"
    assert run(server, "LRANGE l 0 -1", how) == "[x,y,z]"
    assert run(server, "EVAL return{1,{2,{3,{'x',false}}},{}} 0", how) == "[1,[2,[3,[x,nil]]],[]"
    assert "WRONGTYPE" in is_at(run(server, "INCR l", how), "EREMOTEIO")
    assert "unknown command" in is_at(run(server, "NONSENSE", how), "EREMOTEIO")


def test_any_bytes(serve_services, redis):
    server = serve_services({"web": source(redis().address)}, {"Workers": 1})
    assert ask(server, "/web/bytes") == "0 1"
    assert ask(server, "/web/get?key=a%20b%0d%0aDEL%20bytes") == "nil"  # one word, whatever is in it


def test_several_at_once(serve_services, redis):
    server = serve_services({"web": source(redis().address)}, {"Workers": 1})
    rows = "a=SET%20n%205&b=INCR%20n&c=LPUSH%20n%20x&d=GET%20n"
    wrong = errno.EREMOTEIO
    text = "WRONGTYPE Operation against a key holding the wrong kind of value"
    assert ask(server, f"/web/all?{rows}") == f"-{wrong}: OK 6 (-{wrong}) 6 {text}"
    assert ask(server, f"/web/all?{rows}&atomic=1") == f"-{wrong}: OK 6 (-{wrong}) 6 {text}"
    refused = ask(server, "/web/all?a=SET%20n%207&b=GET&atomic=1")  # the server refuses one: none is run
    assert refused.startswith(f"-{wrong}: (-{wrong}) (-{wrong}) ERR wrong number of arguments"), refused
    assert ask(server, "/web/all?a=GET%20n&b=PING") == "0: 6 PONG "
    assert ask(server, "/web/all?a=GET%20n&b=PING&atomic=1") == "0: 6 PONG "
    assert ask(server, "/web/all?a=GET%20n&b=MULTI").startswith(f"-{errno.EINVAL}: 6 (-{errno.EINVAL}) ")
    assert ask(server, "/web/all?a=GET%20n&b=EXEC&atomic=1").startswith(f"-{errno.EINVAL}: ")
    assert ask(server, "/web/all").startswith(f"-{errno.EINVAL}: ")


@pytest.mark.parametrize("command", ["SELECT 1", "subscribe x", "BLPOP l 0", "MULTI", "XREAD BLOCK 0 STREAMS s 0",
                                     "CLIENT REPLY OFF", "AUTH x", "watch x", "QUIT"])
def test_commands_that_the_connection_cannot_take(serve_services, redis, command):
    server = serve_services({"web": source(redis().address)}, {"Workers": 1})
    assert "cannot be sent: " in is_at(run(server, command), "EINVAL")
    assert "cannot be sent: " in is_at(run(server, command, "send"), "EINVAL")
    assert run(server, "PING") == "PONG"


def test_mistakes(serve_services, redis):
    other = 'redis->open(&(struct duda_redis_conf){.user = "x"})'
    server = serve_services({"web": source(redis().address, other=other)}, {"Workers": 1})
    server.wait_log(r"redis->open\(.*`user` needs a `password`")
    codes = f"-{errno.EPERM} 0 -{errno.EINVAL} -{errno.EINVAL} -{errno.EINVAL} -{errno.EINVAL}"
    assert ask(server, "/web/wrong") == codes
    server.wait_log(r"redis->ask\(\): only a dthread can wait")
    server.wait_log(r"redis->subscribe\(\): it works only in duda_main\(\)")


@pytest.mark.parametrize("address, sentence", [("nowhere", ""), ("1.2.3.4.5:x", "port"), ("[::1", "")])
def test_wrong_addresses(serve_services, address, sentence):
    other = f'redis->open(&(struct duda_redis_conf){{.address = "{address}"}})'
    server = serve_services({"web": source("127.0.0.1:1", other=other)})
    if address != "nowhere":
        server.wait_log(r"redis->open\(\"" + re.escape(address) + r"\"\): .*" + sentence)
    assert server.alive


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("localhost", marks=needs_localhost)])
def test_a_unix_socket_and_a_host(serve_services, redis, host):
    one = redis()
    sources = {"web": source(f"unix:{one.socket}"), "name": source(f"{host}:{one.port}")}
    server = serve_services(sources, {"Workers": 2})
    assert run(server, "SET k v") == "OK"
    assert ask(server, "/name/get?key=k") == "v"


def test_a_name_that_is_none(serve_services):
    server = serve_services({"web": source("host.invalid:6379", timeout_ms=700)}, {"Workers": 1})
    number, sentence = code(run(server, "PING"))
    assert number in (errno.ENXIO, errno.EAGAIN, errno.ETIMEDOUT) and "host.invalid:6379" in sentence


def test_a_database(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(one.address, db=3), "zero": source(one.address)}, {"Workers": 1})
    assert run(server, "SET k three") == "OK"
    assert ask(server, "/zero/get?key=k") == "nil"
    assert ask(server, "/web/get?key=k") == "three"


def test_a_database_that_is_none(serve_services, redis):
    server = serve_services({"web": source(redis().address, db=99)}, {"Workers": 1})
    assert "DB index is out of range" in is_at(run(server, "GET k"), "EREMOTEIO")


# ── servers that refuse ──


def test_passwords(serve_services, redis):
    one = redis(password="secret")
    sources = {"web": source(one.address, password="secret"), "none": source(one.address)}
    sources["wrong"] = source(one.address, password="other")
    one.ask("ACL", "SETUSER", "ada", "on", ">lovelace", "~own:*", "+get", "+set")
    sources["ada"] = source(one.address, user="ada", password="lovelace")
    server = serve_services(sources, {"Workers": 1})
    assert run(server, "SET own:k v") == "OK"
    assert "NOAUTH" in is_at(ask(server, "/none/get?key=k"), "EACCES")
    assert "WRONGPASS" in is_at(ask(server, "/wrong/get?key=k"), "EACCES")
    assert "WRONGPASS" in is_at(ask(server, "/wrong/get?key=k"), "EACCES")
    assert ask(server, "/ada/get?key=own:k") == "v"
    assert "NOPERM" in is_at(ask(server, "/ada/get?key=k"), "EACCES")
    assert not re.search("secret|lovelace", server.log)


def test_a_full_server(serve_services, redis):
    one = redis("--maxmemory", "100mb", "--maxmemory-policy", "noeviction")
    server = serve_services({"web": source(one.address)}, {"Workers": 1})
    assert run(server, "SET k v") == "OK"
    one.ask("CONFIG", "SET", "maxmemory", "1kb")
    assert "OOM" in is_at(run(server, "SET k w"), "ENOSPC")
    assert run(server, "GET k") == "v"


def test_a_replica(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(one.address)}, {"Workers": 1})
    one.ask("REPLICAOF", "127.0.0.1", free_port())
    assert "READONLY" in is_at(run(server, "SET k v"), "EROFS")


@pytest.mark.parametrize("sentence, name", [
    ("LOADING Redis is loading the dataset in memory", "EAGAIN"),
    ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "EAGAIN"),
    ("NOAUTH Authentication required.", "EACCES"),
    ("MISCONF Redis is configured to save RDB snapshots", "ENOSPC"),
])
def test_error_replies(serve_services, fake, sentence, name):
    one = fake(f"-{sentence}\r\n".encode())
    server = serve_services({"web": source(one.address)}, {"Workers": 1})
    for how in ("ask", "send"):
        assert is_at(run(server, "GET k", how), name) == sentence
    assert one.accepted == 1  # an error is a reply


GARBAGE = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "zeros": bytes(1000),
    "integer": b":12x\r\n",
    "line": b"+" + b"x" * 200000,
    "depth": b"*1\r\n" * 40 + b"$1\r\nx\r\n",
    "negative": b"$-7\r\n",
    "bulk": b"$99999999999999999999999\r\nxxx",
    "two": b"+OK\r\n?",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage(serve_services, fake, kind):
    one = fake(GARBAGE[kind])
    server = serve_services({"web": source(one.address, timeout_ms=20000)}, {"Workers": 1})
    answer = run(server, "GET k")
    if kind == "two":
        assert answer == "OK"
    else:
        assert "not the protocol of Redis" in is_at(answer, "EPROTO")
    await_true(lambda: run(server, "GET k", "send") != "", 30, "an answer")


@pytest.mark.parametrize("text", [b"$900000\r\n" + b"x" * 300000, b"*1000000\r\n", b"*2000000000\r\n",
                                  b"*15000\r\n" + b"*9000\r\n" * 100], ids=["bulk", "array", "huge", "nested"])
def test_replies_that_are_too_large(serve_services, fake, text):
    one = fake(text)
    server = serve_services({"web": source(one.address, reply_bytes_max=200000)}, {"Workers": 1})
    assert "200000 bytes of reply_bytes_max" in is_at(run(server, "GET k"), "EMSGSIZE")
    assert server.memory_kb() < 2000000


def test_a_reply_of_the_largest_size(serve_services, redis):
    one = redis()
    one.ask("SET", "k", "x" * 190000)
    one.ask("SET", "l", "x" * 200000)
    server = serve_services({"web": source(one.address, reply_bytes_max=200000)}, {"Workers": 1})
    assert run(server, "GET k") == "x" * 190000
    is_at(run(server, "GET l"), "EMSGSIZE")
    await_true(lambda: run(server, "PING") == "PONG", 20, "the next connection")


@pytest.mark.parametrize("closes", [False, True])
def test_a_server_that_says_nothing(serve_services, fake, closes):
    """It accepts, and never replies; or it closes each connection."""
    one = fake(None, closes=closes)
    server = serve_services({"web": source(one.address, timeout_ms=30000 if closes else 300)}, {"Workers": 1})
    for how in ("ask", "send") * 3:
        assert code(run(server, "GET k", how))[0] in ((errno.EPIPE,) if closes else (errno.ETIMEDOUT,))
    await_true(lambda: code(run(server, "GET k"))[0] and one.accepted > 1, 20, "another connection")


def test_no_server(serve_services):
    server = serve_services({"web": source(f"127.0.0.1:{free_port()}", timeout_ms=1000)}, {"Workers": 1})
    for how in ("ask", "send", "ask"):
        assert "Connection refused" in is_at(run(server, "GET k", how), "ECONNREFUSED")
    assert len(re.findall("Connection refused; it is tried again", server.log)) == 1


# ── lost connections ──


def send(client, number):
    """Asks in one of two ways, and does not wait for the answer."""
    how = "ask" if number % 2 else "send"
    client.send(f"GET /web/{how}?c=GET%20k HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


def in_parallel(n, function):
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return list(pool.map(lambda _: function(), range(n)))


def connect_workers(server, n):
    """Until each has a connection: commands that wait for the first one have their error at the end of their time."""

    def are_connected():
        answers = in_parallel(8, lambda: run(server, "PING"))
        return answers == ["PONG"] * 8 and run(server, "CLIENT LIST").count(" addr=") == n

    await_true(are_connected, 60, "the connection of each worker")


@pytest.mark.parametrize("how", ["ask", "send"])
def test_kill_while_100_requests_wait(serve_services, redis, how):
    one = redis()
    settings = {"Workers": 2, "HandlerTimeout": "5m"}  # longer than all other waits
    server = serve_services({"web": source(one.address, timeout_ms=60000)}, settings)
    connect_workers(server, 2)
    all_of_them = str(int(count(server)["waiting"]) + 100)
    one.signal(signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        waiting = [pool.submit(run, server, "GET k", how) for _ in range(100)]
        await_true(lambda: count(server)["waiting"] == all_of_them, 60, "the requests, which all wait")
        one.kill()
        answers = [code(each.result()) for each in waiting]  # of each client, within less than timeout_ms
    assert len(answers) == 100
    assert {number for number, _ in answers} <= {errno.EPIPE, errno.ECONNREFUSED}
    one.start()
    await_true(lambda: run(server, "SET k v", how) == "OK", 30, "the next connection")
    answers = ["v"] * 20  # the other worker may still wait for its next try
    await_true(lambda: in_parallel(20, lambda: run(server, "GET k", how)) == answers, 30, "both connections")
    server.wait_log("connected again")


def test_kill_and_no_return(serve_services, redis):
    """Commands that find no server have their error at the end of their time, and at once when it was gone as long."""
    one = redis()
    server = serve_services({"web": source(one.address, timeout_ms=500)}, {"Workers": 2})
    connect_workers(server, 2)
    one.kill()
    for _ in range(3):
        answers = [code(answer)[0] for answer in in_parallel(100, lambda: run(server, "GET k"))]
        assert set(answers) <= {errno.EPIPE, errno.ECONNREFUSED}


def test_a_server_that_closes_each_connection_for_messages(serve_services, fake):
    """It is tried again and again, without a line for each time."""
    one = fake(b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", closes=True)
    server = serve_services({"web": source(one.address, subscribes=True)}, {"Workers": 1})
    await_true(lambda: one.accepted > 8, 60, "further connections")
    assert len(re.findall("it is tried again", server.log)) <= 2


def test_a_short_stop_is_waited_for(serve_services, redis):
    """Commands that were not sent yet wait for the next connection, within their time."""
    one = redis()
    server = serve_services({"web": source(one.address, timeout_ms=30000)}, {"Workers": 1})
    before = server.descriptors()
    assert run(server, "PING") == "PONG"
    one.kill()
    await_true(lambda: server.descriptors() <= before, 20, "the end of the connection")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(run, server, "INCR n") for _ in range(20)]
        one.start()
        answers = [one.result() for one in waiting]
    assert sorted(map(int, answers)) == list(range(1, 21))


def test_a_connection_that_redis_closes(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(one.address)}, {"Workers": 1})
    for _ in range(5):
        assert run(server, "SET k v") == "OK"
        one.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await_true(lambda: "v" == run(server, "GET k"), 20, "the next connection")
    assert "tried again" not in server.log


def run_in_time(server, command):
    """The answer, where a busy machine takes the time of a command now and then."""
    answers = []

    def is_in_time():
        answers.append(run(server, command))
        return not answers[-1].startswith(f"error -{errno.ETIMEDOUT}:")

    await_true(is_in_time, 60, "an answer in time")
    return answers[-1]


def test_a_server_that_hangs_and_continues(serve_services, redis):
    """Late replies belong to no other command."""
    one = redis()
    server = serve_services({"web": source(one.address, timeout_ms=3000)}, {"Workers": 1})
    assert run_in_time(server, "SET k v") == "OK"
    one.signal(signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for late in [pool.submit(run, server, "INCR n", how) for how in ("ask", "send")]:
            is_at(late.result(), "ETIMEDOUT")
    one.signal(signal.SIGCONT)
    await_true(lambda: run(server, "GET k") == "v", 60, "the reply")
    assert run_in_time(server, "GET n") == "2"
    assert run_in_time(server, "GET k") == "v"


def test_many_timeouts_make_a_new_connection(serve_services, fake):
    one = fake(None)
    server = serve_services({"web": source(one.address, timeout_ms=200)}, {"Workers": 1})
    in_parallel(5, lambda: is_at(run(server, "GET k"), "ETIMEDOUT"))
    one.answer = b"+OK\r\n"
    await_true(lambda: run(server, "GET k") == "OK", 30, "the reply")
    assert one.accepted > 1


def test_too_many_wait(serve_services, fake):
    one = fake(None)
    server = serve_services({"web": source(one.address, timeout_ms=3000, pending_max=5)}, {"Workers": 1})
    numbers = in_parallel(20, lambda: code(run(server, "GET k"))[0])
    assert set(numbers) == {errno.EBUSY, errno.ETIMEDOUT}
    assert numbers.count(errno.ETIMEDOUT) >= 5


def test_clients_that_leave(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(one.address, timeout_ms=60000)}, {"Workers": 1})
    assert run(server, "SET k v") == "OK"
    one.signal(signal.SIGSTOP)
    clients = [server.connect() for _ in range(20)]
    for number, client in enumerate(clients):
        send(client, number)
    await_true(lambda: count(server)["waiting"] == "21", 30, "the commands")
    for client in clients:
        client.reset()
    await_true(lambda: count(server)["left"] == "10", 30, "the end of the dthreads")
    one.signal(signal.SIGCONT)
    await_true(lambda: count(server)["notified"] == "10", 30, "the callbacks")
    assert count(server)["without"] == "10"
    assert run(server, "GET k") == "v"


# ── several workers, reloads and stops ──


@pytest.mark.concurrent
def test_many_requests_in_several_workers(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(one.address, subscribes=True)}, {"Workers": 3})

    def ask_many():
        with server.connect(timeout=60) as client:
            for number in range(40):
                how = ("ask", "send")[number % 2]
                assert re.fullmatch(rb"\d+", client.ask(f"/web/{how}?c=INCR%20n", host="localhost").body)

    in_parallel(10, ask_many)
    assert run(server, "GET n") == "400"


@pytest.mark.concurrent
def test_reload_and_swap_under_load(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(one.address)}, {"Workers": 2})
    stop, answers = threading.Event(), []

    def ask_on():
        while not stop.is_set():
            answers.append(run(server, "INCR n"))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(ask_on) for _ in range(4)]
        for number in range(4):
            if number % 2:
                build_service(server.services, "web", source(one.address) + version_line(number))
            reload(server)
            seen = len(answers)
            await_true(lambda n=seen: len(answers) > n + 5, 30, "further answers")
        stop.set()
        for one_running in running:
            one_running.result()
    assert sorted(map(int, answers)) == list(range(1, len(answers) + 1))


def test_a_stop_while_commands_wait(serve_services, fake):
    one = fake(None)
    server = serve_services({"web": source(one.address, timeout_ms=60000)}, {"Workers": 2, "ShutdownTimeout": "200ms"})
    clients = [server.connect() for _ in range(10)]
    for number, client in enumerate(clients):
        send(client, number)
    await_true(lambda: one.accepted, 20, "the connection")
    server.stop()


@pytest.mark.parametrize("end", ["swap", "stop"])
def test_a_dthread_that_ignores_the_end(serve_services, fake, end):
    one = fake(None)
    server = serve_services({"web": source(one.address, timeout_ms=60000)}, {"Workers": 1, "ShutdownTimeout": "1s"})
    clients = [server.connect() for _ in range(5)]
    for client in clients:
        client.sock.sendall(b"GET /web/for-ever HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await_true(lambda: count(server)["waiting"] == "5", 60, "all wait")
    if end == "swap":
        build_service(server.services, "web", source(one.address, timeout_ms=60000) + version_line(2))
        reload(server)
        server.wait_log("service web: 5 dthreads had not ended although the service has", 1, 60)
        await_true(lambda: count(server)["waiting"] == "0", 60, "the new version serves")
    else:
        server.stop()


@pytest.mark.parametrize("end", ["swap", "stop", "stop with clients"])
def test_the_end_while_it_connects(serve_services, end):
    """The server's queue of connections is full: the connection is neither made nor refused."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = listener.getsockname()
        for _ in range(4):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(address)
        text = source("127.0.0.1:%d" % address[1], timeout_ms=60000, connect_timeout_ms=60000)
        server = serve_services({"web": text}, {"Workers": 1, "ShutdownTimeout": "1s"})
        client = server.connect()
        send(client, 1)
        await_true(lambda: count(server)["waiting"] == "1", 60, "it waits")
        if end == "swap":
            build_service(server.services, "web", text + version_line(2))
            reload(server)
            await_true(lambda: count(server)["waiting"] == "0", 60, "the new version serves")
        if end == "stop with clients":
            send(server.connect(), 0)
            await_true(lambda: count(server)["waiting"] == "2", 60, "both wait")
            server.send_signal(signal.SIGTERM)
            assert server.wait() == 0 and not REPORT.search(server.log), server.log[-6000:]
        else:
            server.stop()


# ── messages ──


def test_messages(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(one.address, subscribes=True)}, {"Workers": 2})

    def await_subscribers():
        await_true(lambda: one.ask("PUBSUB", "NUMPAT") == "1" and one.ask("PUBLISH", "none", "x") == "0"
                   and "addr" in one.ask("CLIENT", "LIST", "TYPE", "pubsub")
                   and one.ask("CLIENT", "LIST", "TYPE", "pubsub").count("psub=1") == 2
                   and one.ask("CLIENT", "LIST", "TYPE", "pubsub").count(" sub=1 ") == 2, 30, "the subscriptions")

    await_subscribers()
    assert run(server, "PUBLISH news hello") == "4"  # two channels and two patterns
    await_true(lambda: ask(server, "/web/messages") == "2 2 1", 20, "the messages")
    one.kill()
    one.start()
    await_subscribers()
    one.ask("PUBLISH", "news", "again")
    one.ask("PUBLISH", "newspaper", "x")
    await_true(lambda: ask(server, "/web/messages") == "4 6 2", 20, "the messages of the next connection")


# ── figures ──


CONSOLE = {"web": {"Console": "/console/"}}


def read_figures(server):
    """How many commands there were, errors, connections made again, and commands that wait."""
    with server.connect(timeout=60) as client:
        answer = client.ask("/web/console/", "Accept: application/json", host="localhost")
    found = json.loads(answer.body)["packages"]
    return [found[f"redis_{name}"] for name in ("commands", "errors", "reconnects", "waiting")]


def test_an_error_counts_once(serve_services, fake):
    """A command that has timed out stays until the connection ends, which is after the third one."""
    server = serve_services({"web": source(fake(None).address, timeout_ms=300)}, {"Workers": 1}, keys=CONSOLE)
    for how in ("ask", "send", "ask"):
        is_at(run(server, "GET k", how), "ETIMEDOUT")
    await_true(lambda: read_figures(server) == [3, 3, 0, 0], what="three errors")


def test_figures(serve_services, redis):
    one = redis()
    server = serve_services({"web": source(one.address, timeout_ms=60000)}, {"Workers": 2}, keys=CONSOLE)

    def figures():
        return read_figures(server)

    for command in ("SET k v", "GET k", "NONSENSE", "PING"):
        run(server, command)
    await_true(lambda: figures() == [4, 1, 0, 0], 20, "the figures")
    one.signal(signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(run, server, "GET k") for _ in range(3)]
        await_true(lambda: figures() == [7, 1, 0, 3], 20, "the commands that wait")
        one.kill()
        assert {code(each.result())[0] for each in waiting} <= {errno.EPIPE, errno.ECONNREFUSED}
    one.start()

    def is_connected_again():
        # Each worker has its own connection; only one that had one before counts it as made again.
        return run(server, "SET k v") == "OK" and run(server, "GET k") == "v" and figures()[2] > 0

    await_true(is_connected_again, 30, "the next connections")
    commands, errors, reconnects, waits = figures()
    assert commands > 7 and errors >= 4 and reconnects in (1, 2) and waits == 0


# ── the page ──


def test_the_examples_of_the_page(serve_services, redis):
    """All compile; the first one is asked."""
    text = (build.TOP / "docs/reference/duda/redis.md").read_text()
    blocks = re.findall(r"^```c\n(.*?)^```$", text, re.S | re.M)
    first = blocks[0].replace("127.0.0.1:6379", redis().address)
    used = "    (void)save_picture, (void)move_money, (void)listen_to_news;\n"
    first = first.replace("    duda_load_package", used + "    duda_load_package")
    main = first[first.index("int duda_main") :]
    source = HEAD + "#include <errno.h>\n" + first.replace(main, "") + "".join(blocks[1:]) + main
    server = serve_services({"page": source}, {"Workers": 1})
    assert [ask(server, "/page/") for _ in range(2)] == ["visit 1\n", "visit 2\n"]


# ── the original API ──

OLD = r"""
#include <stdlib.h>
#include "webservice.h"
#include "packages/redis/redis.h"

DUDA_REGISTER("tests", "redis");

static int connected, disconnected, failed;

void on_connect(const redisAsyncContext *c, int status)
{
    if (status != REDIS_OK) {
        printf("Error: %s\n", c->errstr);
        failed++;
        return;
    }
    connected++;
}

void on_disconnect(const redisAsyncContext *c, int status)
{
    if (status == REDIS_OK)
        disconnected++;
}

void on_reply(redisAsyncContext *c, void *r, void *privdata)
{
    redisReply *reply = r;
    duda_request_t *dr = redis->getDudarequest(c);

    response->cont(dr);
    response->http_status(dr, reply ? 200 : 502);
    if (reply)
        response->printf(dr, "%s=%s", (char *)privdata, reply->type == REDIS_REPLY_STRING ? reply->str : "?");
    if (reply)
        redis->disconnect(c);
    response->end(dr, NULL);
}

void cb_get(duda_request_t *dr)
{
    redisAsyncContext *rc = redis->connect("@HOST@", atoi(@PORT@), dr);

    if (rc == NULL || rc->err) {
        response->http_status(dr, 500);
        response->end(dr, NULL);
        return;
    }
    redis->attach(rc, dr);
    redis->setConnectCallback(rc, on_connect);
    redis->setDisconnectCallback(rc, on_disconnect);
    response->wait(dr);
    redis->command(rc, NULL, NULL, "SET key %b", "value", (size_t) 5);
    redis->command(rc, on_reply, "key", "GET key");
}

void on_message(redisAsyncContext *c, void *r, void *privdata)
{
    redisReply *reply = r;
    duda_request_t *dr = redis->getDudarequest(c);

    if (!reply || !dr || strcmp(reply->element[0]->str, "message") != 0)
        return;
    response->cont(dr);
    response->http_status(dr, 200);
    response->printf(dr, "%s: %s", reply->element[1]->str, reply->element[2]->str);
    redis->free(c);
    response->end(dr, NULL);
}

void cb_listen(duda_request_t *dr)
{
    redisAsyncContext *rc = redis->connect("@HOST@", atoi(@PORT@), dr);

    redis->attach(rc, dr);
    response->wait(dr);
    redis->command(rc, on_message, NULL, "SUBSCRIBE news");
}

/* Contexts with an error, which the service does not free: 900 in each call, of the 1,000 that a worker may have. */
void cb_wrong(duda_request_t *dr)
{
    int n = 0;
    for (int i = 0; i < 900; i++) {
        redisAsyncContext *rc = redis->connect("127.0.0.1", -1, dr);
        n += rc && rc->err && redis->attach(rc, dr) == REDIS_ERR;
    }
    response->http_status(dr, 200);
    response->printf(dr, "%i", n);
    response->end(dr, NULL);
}

void cb_counts(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%i %i %i", connected, disconnected, failed);
    response->end(dr, NULL);
}

int duda_main()
{
    duda_load_package(redis, "redis");
    map->static_add("/get", "cb_get");
    map->static_add("/listen", "cb_listen");
    map->static_add("/wrong", "cb_wrong");
    map->static_add("/counts", "cb_counts");
    return 0;
}
"""


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("localhost", marks=needs_localhost)])
def test_the_calls_of_the_original(serve_services, redis, tmp_path, host):
    one = redis()
    text = OLD.replace("@HOST@", host).replace("@PORT@", patched(one.port))
    build_old_service(tmp_path / "services", "old", text)
    server = serve_services({}, {"Workers": 1}, text=web_service("old"))
    for _ in range(3):
        assert ask(server, "/old/wrong") == "900"
        assert ask(server, "/old/get") == "key=value"
    await_true(lambda: ask(server, "/old/counts") == "3 3 0", 20, "the ends of the connections")
    with server.connect() as client:
        client.send(b"GET /old/listen HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await_true(lambda: one.ask("PUBLISH", "news", "hello") == "1", 20, "the subscription")
        assert client.response().body == b"news: hello"
    one.kill()
    with server.connect(timeout=60) as client:
        assert client.ask("/old/get", host="localhost").status == 502
    await_true(lambda: ask(server, "/old/counts") == "3 3 1", 20, "the error")


def test_contexts_without_a_request(serve_services, redis, tmp_path):
    """connect(ip, port) of the summer of 2012. The reply comes behind the response, whose request has ended."""
    one = redis()
    source = (build.TOP / "tests/duda/old/tally.c").read_text()
    build_old_service(tmp_path / "services", "tally", source)
    server = serve_services({}, {"Workers": 1}, text=web_service("tally"))
    for n in (1, 2):
        assert ask(server, f"/tally/tally/count/{one.port}") == "counted\n"
        server.wait_log(f"tally: tally {n}, no request, {n} ended")
    await_true(lambda: server.log.count("tally: disconnected 0") == 2, 20, "the ends of the connections")
    assert server.log.count("tally: connected 0") == 2
