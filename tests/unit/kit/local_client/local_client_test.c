// SPDX-License-Identifier: Apache-2.0
/* Which clients are on this machine, and which names a page of another site may not choose. */
#include "http/h1_fixture.h"

#include "server/worker/thread.h"

#include <monkey/kit/local_client.h>

#include <stdio.h>

static struct mk_address peer;
static bool names_host, is_here;

static int look_at_client(struct mk_request *req)
{
    req->ops->conn(req)->peer.address = peer;
    names_host = mk_local_client_names_host(req);
    is_here = mk_local_client_is_here(req);
    mk_response_end(req);
    return 0;
}

static const struct mk_plugin content = {.name = "content", .on_content = look_at_client};

static struct mk_generation generation;
static struct mk_host host;
static struct mk__limits limits = {.open = 1000};
static struct mk__thread thread = {.limits = &limits};
static struct mk_worker worker;

static void ask(const char *name)
{
    char text[128];
    const char *reason;
    const struct mk__vhost *first;
    struct mk_arena arena;
    mk_arena_init(&arena, NULL, 4096, NULL, 0);
    generation = (struct mk_generation){.plugins = {&content}, .n_plugins = 1, .hosts = &host, .default_host = &host};
    mk__generation_find_hooks(&generation);
    host = (struct mk_host){.generation = &generation, .started = 1};
    assert_int_equal(mk__vhost_init(&generation.vhosts, &arena, 2), 0);
    assert_int_equal(mk__vhost_add(&generation.vhosts, MK_STR("a.test"), &host, 0, &reason, &first), 0);
    assert_int_equal(mk__vhost_add(&generation.vhosts, MK_STR("*.b.test"), &host, 1, &reason, &first), 0);
    worker = (struct mk_worker){.generation = &generation};
    thread.worker = &worker;
    thread.receiver = (struct mk__receiver){.assigned = 1000};
    open_fixture(NULL);
    host.limits = w.settings.limits;
    w.http.app = &mk__request_hooks_app;
    w.http.app_ctx = &thread;
    snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name);
    mk_test_connect(&w, mk_str_c(text));
    mk_test_settle(&w);
    mk_test_fixture_close(&w);
    mk_arena_release(&arena);
}

TEST(names)
{
    static const struct {
        const char *host;
        bool expected;
    } cases[] = {
        {"localhost", true},
        {"LocalHost:80", true},
        {"127.0.0.1", true},
        {"192.0.2.1:8080", true},
        {"[::1]", true},
        {"[2001:db8::1]:80", true},
        {"a.test", true},
        {"x.b.test", true},
        {"rebound.test", false},
        {"localhost.evil.test", false},
        {"127.0.0.1.evil.test", false},
        {"", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        ask(cases[i].host);
        if (names_host != cases[i].expected)
            fail_msg("%s: %d", cases[i].host, names_host);
    }
}

static void expect_here(const char *address, const char *name, bool expected)
{
    assert_int_equal(mk_address_parse(mk_str_c(address), &peer), 0);
    ask(name);
    if (is_here != expected)
        fail_msg("%s, %s: %d", address, name, is_here);
}

TEST(addresses)
{
    expect_here("127.0.0.1", "localhost", true);
    expect_here("127.1.2.3", "127.0.0.1", true);
    expect_here("::1", "[::1]", true);
    expect_here("127.0.0.1", "rebound.test", false);
    expect_here("::1", "rebound.test", false);
    expect_here("192.0.2.1", "localhost", false);
    expect_here("::2", "localhost", false);
    expect_here("2001:db8::1", "localhost", false);
    peer = (struct mk_address){.family = AF_UNIX}; /* a browser does not get there */
    ask("rebound.test");
    assert_true(is_here);
}
