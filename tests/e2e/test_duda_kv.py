# SPDX-License-Identifier: Apache-2.0
"""The package kv: a store that the workers of a service share, and the calls of the original."""

import shutil
import threading

import pytest

from harness.server import await_true
from harness.services import (
    CPP,
    HEAD,
    build_cpp,
    build_old_service,
    build_service,
    needs_duda,
    reload,
    version_line,
    web_service,
)

pytestmark = needs_duda

SERVICE = f"""{HEAD}
#include <duda/packages/kv/kv.h>
#include <stdio.h>

static duda_kv_t *store, *small;

static void count(duda_request_t *dr)
{{
    int64_t n = 0;
    int err = kv->add(store, param->get(dr, "name"), 1, 0, &n);
    response->printf(dr, "%d %lld", err, (long long)n);
    response->end(dr, NULL);
}}

static void put(duda_request_t *dr)
{{
    const char *ttl = qs->get(dr, "ttl"), *value = qs->get(dr, "value");
    int result = kv->put(small, param->get(dr, "name"), value, strlen(value), ttl ? (unsigned)atoi(ttl) : 0);
    response->printf(dr, "%d", result);
    response->end(dr, NULL);
}}

static void get(duda_request_t *dr)
{{
    char *value = kv->get(small, param->get(dr, "name"), NULL);
    response->printf(dr, "%s", value ? value : "none");
    gc->add(dr, value);
    response->end(dr, NULL);
}}

static int list_one(const char *key, const char *value, size_t len, void *data)
{{
    (void)len;
    return response->printf(data, "%s=%s ", key, value);
}}

static void list(duda_request_t *dr)
{{
    kv->each(small, qs->get(dr, "prefix"), list_one, dr);
    response->printf(dr, "(%zu)", kv->count(small));
    response->end(dr, NULL);
}}

int duda_main(void)
{{
    duda_load_package(kv, "kv");
    store = kv->open(NULL);
    small = kv->open(&(struct duda_kv_conf){{.items_max = 3, .evicts = true}});
    router->get("/count/:name", count);
    router->get("/put/:name", put);
    router->get("/get/:name", get);
    router->get("/list", list);
    return store && small ? 0 : -1;
}}
"""

OLD = """
#include "webservice.h"
#include "packages/kv/kv.h"

DUDA_REGISTER("tests", "kv");

static kv_conn_t conn;

void cb_store(duda_request_t *dr)
{
    int stored = kv->store(&conn, "name", -1, "ada", 3);
    int appended = kv->append_fmt(&conn, "name", 4, " %s", "lovelace");
    kv->store_fmt(&conn, "number", -1, "%d", 7);
    response->http_status(dr, 200);
    response->printf(dr, "%d %d", stored, appended);
    response->end(dr, NULL);
}

void cb_list(duda_request_t *dr)
{
    kv_cursor_t *cursor;
    kv->cursor_init(&conn, &cursor);
    response->http_status(dr, 200);
    KV_CURSOR_FOREACH(cursor)
    {
        char key[32] = "", data[64] = "";
        int key_len = sizeof(key) - 1;
        kv_int_t len = sizeof(data) - 1;
        kv->cursor_key(cursor, key, &key_len);
        kv->cursor_data(cursor, data, &len);
        response->printf(dr, "%s=%s;", key, data);
    }
    kv->cursor_release(&conn, cursor);
    response->end(dr, NULL);
}

int duda_main()
{
    duda_load_package(kv, "kv");
    map->static_add("/store", "cb_store");
    map->static_add("/list", "cb_list");
    return kv->init(&conn) == DUDA_KV_OK ? 0 : -1;
}
"""


def ask(server, target):
    with server.connect() as client:
        answer = client.ask(target, host="localhost")
    assert answer.status == 200
    return answer.body.decode()


def test_values(serve_services):
    server = serve_services({"web": SERVICE}, {"Workers": 2})
    assert ask(server, "/web/get/a") == "none"
    for name in "abc":
        assert ask(server, f"/web/put/{name}?value=1") == "0"
    assert ask(server, "/web/put/a?value=2") == "0"
    assert ask(server, "/web/put/ad?value=3") == "0"  # b is evicted: its last write is the longest ago
    assert ask(server, "/web/list?prefix=") == "a=2 ad=3 c=1 (3)"
    assert ask(server, "/web/list?prefix=a") == "a=2 ad=3 (3)"
    assert ask(server, "/web/put/a?value=4&ttl=5") == "0"
    assert ask(server, "/web/get/a") == "4"
    await_true(lambda: ask(server, "/web/get/a") == "none", 30, "the end of the item")


@pytest.mark.concurrent
def test_workers_share_a_store(serve_services):
    server = serve_services({"web": SERVICE}, {"Workers": 3})
    failures = []

    def count():
        try:
            with server.connect() as client:
                for _ in range(50):
                    assert client.ask("/web/count/n").body.startswith(b"0 ")
        except BaseException as error:  # reported by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert ask(server, "/web/count/n") == "0 301"


def test_a_store_ends_with_the_version_of_its_service(serve_services):
    server = serve_services({"web": SERVICE})
    assert ask(server, "/web/count/n") == "0 1"
    reload(server)
    assert ask(server, "/web/count/n") == "0 2"
    build_service(server.services, "web", SERVICE + version_line(2))
    reload(server)
    assert ask(server, "/web/count/n") == "0 1"


def test_the_calls_of_the_original(serve_services, tmp_path):
    build_old_service(tmp_path / "services", "old", OLD)
    server = serve_services({}, {"Workers": 1}, text=web_service("old"))
    assert ask(server, "/old/list") == ""
    assert ask(server, "/old/store") == "0 0"
    assert ask(server, "/old/list") == "name=ada lovelace;number=7;"


@pytest.mark.parametrize("compiler", [name for name in CPP if shutil.which(name)])
def test_a_service_in_cpp(serve_services, tmp_path, compiler):
    source = """
#include <duda/duda.h>
#include <duda/packages/kv/kv.h>

static duda_kv_t *store;

static void count(duda_request_t *dr)
{
    int64_t n = 0;
    kv->add(store, "n", 1, 0, &n);
    response->printf(dr, "%d", static_cast<int>(n));
    response->end(dr, nullptr);
}

int duda_main(void)
{
    duda_session_conf conf = {};
    conf.idle_s = 60;
    duda_load_package(kv, "kv");
    store = kv->open(nullptr);
    return store && session->init(&conf) == 0 && router->get("/", count) ? 0 : -1;
}
"""
    (tmp_path / "services").mkdir()
    build_cpp(tmp_path / "services", "cpp", source, compiler)
    server = serve_services({}, {"Workers": 1}, text=web_service("cpp"))
    assert [ask(server, "/cpp/") for _ in range(2)] == ["1", "2"]
