// SPDX-License-Identifier: Apache-2.0
/* The hooks of connections: which plugins are called, and where a PROXY header is required. */
#include "testing.h"

#include <errno.h>

#include "http/client_addr.h"
#include "server/conn_hooks.h"
#include "server/thread.h"

static char told[64]; /* a character for each call: capitals for on_accept */
static char refuser;

static void note(char name)
{
    told[strlen(told)] = name;
}

static int note_accept(char name)
{
    note(name);
    return name == refuser ? -EACCES : 0;
}

static int accept_a(struct mk_connection *conn)
{
    (void)conn;
    return note_accept('A');
}

static int accept_c(struct mk_connection *conn)
{
    (void)conn;
    return note_accept('C');
}

static void close_a(struct mk_connection *conn)
{
    (void)conn;
    note('a');
}

static void close_b(struct mk_connection *conn)
{
    (void)conn;
    note('b');
}

static void close_c(struct mk_connection *conn)
{
    (void)conn;
    note('c');
}

static const struct mk_plugin a = {.name = "a", .on_accept = accept_a, .on_close = close_a},
                              b = {.name = "b", .on_close = close_b},
                              c = {.name = "c", .on_accept = accept_c, .on_close = close_c}, none = {.name = "none"};

static struct mk__thread thread;
static struct mk_generation generation;
static struct mk__settings settings;
static struct mk_worker worker = {.generation = &generation};
static struct mk__context http;
static struct mk__listener listening;
static struct mk__listen_conf line = {.text = MK_STR("own"), .listener = &listening};
static struct mk__peer peer;
static uint64_t id;
static const struct mk_io io = {.fd = -1, .listener = &listening};
static struct mk_connection conn = {&io, &peer, &http, &id};

static int prepare(void **state)
{
    (void)state;
    generation = (struct mk_generation){.settings = &settings, .plugins = {&a, &b, &none, &c}, .n_plugins = 4};
    settings = (struct mk__settings){.listen = {&line, 1}};
    line.mode.proxy = false;
    thread.worker = &worker;
    http.app_ctx = &thread;
    peer = (struct mk__peer){0};
    id = 0;
    memset(told, 0, sizeof(told));
    refuser = '\0';
    return 0;
}

static void test_in_order_and_all(void **state)
{
    (void)state;
    assert_int_equal(mk__conn_hooks_on_accept(&conn, &thread), 0);
    mk__conn_hooks_on_close(&conn, &thread);
    assert_string_equal(told, "ACabc");
    assert_ptr_equal(mk_connection_worker(&conn), &worker);
}

/* Those that had accepted it hear of its end; the one that refused, and those behind it, do not. */
static void test_a_refusal(void **state)
{
    (void)state;
    refuser = 'C';
    assert_int_equal(mk__conn_hooks_on_accept(&conn, &thread), -EACCES);
    assert_string_equal(told, "ACab");
    prepare(state);
    refuser = 'A';
    assert_int_equal(mk__conn_hooks_on_accept(&conn, &thread), -EACCES);
    assert_string_equal(told, "A");
}

static void test_what_is_asked_for_is_prepared(void **state)
{
    struct mk__listen_conf listener = {.mode.proxy = true};
    (void)state;
    mk__conn_hooks_prepare(&generation);
    assert_true(generation.http.notify_accept && generation.http.notify_close);
    prepare(state);
    generation.plugins[0] = &none, generation.plugins[3] = &none;
    mk__conn_hooks_prepare(&generation);
    assert_true(!generation.http.notify_accept && generation.http.notify_close);
    prepare(state);
    generation.n_plugins = 0;
    mk__conn_hooks_prepare(&generation);
    assert_false(generation.http.notify_accept || generation.http.notify_close);
    settings.listen = (struct mk__listen_confs){&listener, 1};
    mk__conn_hooks_prepare(&generation);
    assert_true(generation.http.notify_accept && !generation.http.notify_close);
}

static void test_numbers(void **state)
{
    uint64_t other = 0;
    struct mk_connection second = {&io, &peer, &http, &other};
    (void)state;
    uint64_t first = mk_connection_id(&conn);
    assert_true(first > 0);
    assert_int_equal(mk_connection_id(&second), first + 1);
    assert_int_equal(mk_connection_id(&conn), first);
}

static const struct {
    bool proxy;
    const char *peer;
    int result;
} cases[] = {{true, "10.0.0.1", 0}, {true, "11.0.0.1", -EACCES}, {false, "11.0.0.1", 0}};

static void test_listeners_for_proxies(void **state)
{
    struct mk_network trusted;
    assert_int_equal(mk_network_parse(MK_STR("10.0.0.0/8"), &trusted, NULL), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        prepare(state);
        http.warned_ms = 1; /* it has just been said */
        generation.http.trusted_proxies.networks = (struct mk_networks){&trusted, 1};
        struct mk_loop loop = {.now_ms = 1};
        http.loop = &loop;
        line.mode.proxy = cases[i].proxy;
        listening.proxy = !cases[i].proxy; /* of another generation */
        assert_int_equal(mk_address_parse(mk_str_c(cases[i].peer), &peer.address), 0);
        assert_int_equal(mk__conn_hooks_on_accept(&conn, &thread), cases[i].result);
        assert_int_equal(peer.expects_proxy_header, cases[i].proxy);
        assert_string_equal(told, cases[i].result ? "" : "AC"); /* no plugin meets a stranger there */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_in_order_and_all, prepare),
        cmocka_unit_test_setup(test_a_refusal, prepare),
        cmocka_unit_test_setup(test_what_is_asked_for_is_prepared, prepare),
        cmocka_unit_test_setup(test_numbers, prepare),
        cmocka_unit_test(test_listeners_for_proxies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
