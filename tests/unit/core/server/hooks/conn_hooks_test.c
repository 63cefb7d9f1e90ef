// SPDX-License-Identifier: Apache-2.0
/*
 * The hooks of connections: which plugins are called, where a PROXY header is required, and what plugins keep for a
 * connection.
 */
#include "testing.h"

#include <errno.h>
#include <sys/socket.h>

#include "http/conn.h"
#include "server/hooks/conn_hooks.h"
#include "server/plugins/plugin_states.h"
#include "server/worker/thread.h"

#include <monkey/hooks.h>

static char calls[64]; /* a character for each call: capitals for on_accept, digits for on_client */
static char refuser;

static void note(char name)
{
    calls[strlen(calls)] = name;
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

static int know_a(struct mk_connection *conn)
{
    (void)conn;
    return note_accept('1');
}

static int know_b(struct mk_connection *conn)
{
    (void)conn;
    return note_accept('2');
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

static const struct mk_connection_hooks hooks_a = {.on_accept = accept_a, .on_client = know_a, .on_close = close_a},
                                        hooks_b = {.on_client = know_b, .on_close = close_b},
                                        hooks_c = {.on_accept = accept_c, .on_close = close_c};
static const struct mk_plugin a = {.name = "a", .connections = &hooks_a}, b = {.name = "b", .connections = &hooks_b},
                              c = {.name = "c", .connections = &hooks_c}, none = {.name = "none"};

static struct mk__thread thread;
static struct mk_generation generation;
static struct mk__settings settings;
static struct mk_worker worker = {.generation = &generation};
static struct mk_account account;
static struct mk__listener listening;
static struct mk__listen_conf line = {.text = MK_STR("own"), .listener = &listening};
static struct mk__conn first, second;
static struct mk_connection *const conn = &first.handle;

static int set_up(void **state)
{
    (void)state;
    generation = (struct mk_generation){.settings = &settings, .plugins = {&a, &b, &none, &c}, .n_plugins = 4};
    settings = (struct mk__settings){.listen = {&line, 1}};
    line.mode.proxy = false;
    worker.loop = &thread.loop;
    thread = (struct mk__thread){.worker = &worker, .http = {.app_ctx = &thread, .account = &account}};
    mk_list_init(&thread.http.conns);
    first = second = (struct mk__conn){.http = &thread.http, .sock.io = {.fd = -1, .listener = &listening}};
    mk_list_add(&thread.http.conns, &first.link);
    mk_list_add(&thread.http.conns, &second.link);
    account = (struct mk_account){0};
    memset(calls, 0, sizeof(calls));
    refuser = '\0';
    return 0;
}

TEST(in_order_and_all, set_up)
{
    assert_int_equal(mk__conn_hooks_on_accept(conn, &thread), 0);
    assert_int_equal(mk__conn_hooks_on_client(conn, &thread), 0);
    mk__conn_hooks_on_close(conn, &thread);
    assert_string_equal(calls, "AC12abc");
    assert_ptr_equal(mk_connection_worker(conn), &worker);
}

/* Those that had accepted it hear of its end; the one that refused, and those behind it, do not. */
TEST(a_refusal, set_up)
{
    refuser = 'C';
    assert_int_equal(mk__conn_hooks_on_accept(conn, &thread), -EACCES);
    assert_string_equal(calls, "ACab");
    set_up(state);
    refuser = 'A';
    assert_int_equal(mk__conn_hooks_on_accept(conn, &thread), -EACCES);
    assert_string_equal(calls, "A");
    set_up(state);
    refuser = '1';
    assert_int_equal(mk__conn_hooks_on_client(conn, &thread), -EACCES);
    assert_string_equal(calls, "1");
}

TEST(what_is_asked_for_is_prepared, set_up)
{
    struct mk__listen_conf listener = {.mode.proxy = true};
    mk__conn_hooks_prepare(&generation);
    assert_true(generation.http.notify_accept && generation.http.notify_client && generation.http.notify_close);
    set_up(state);
    generation.plugins[0] = &none, generation.plugins[3] = &none;
    mk__conn_hooks_prepare(&generation);
    assert_true(!generation.http.notify_accept && generation.http.notify_client && generation.http.notify_close);
    set_up(state);
    generation.n_plugins = 0;
    mk__conn_hooks_prepare(&generation);
    assert_false(generation.http.notify_accept || generation.http.notify_client || generation.http.notify_close);
    settings.listen = (struct mk__listen_confs){&listener, 1};
    mk__conn_hooks_prepare(&generation);
    assert_true(generation.http.notify_accept && !generation.http.notify_close);
}

TEST(numbers, set_up)
{
    uint64_t number = mk_connection_id(conn);
    assert_true(number > 0);
    assert_int_equal(mk_connection_id(&second.handle), number + 1);
    assert_int_equal(mk_connection_id(conn), number);
}

static const struct {
    bool proxy;
    const char *peer;
    int result;
} cases[] = {{true, "10.0.0.1", 0}, {true, "11.0.0.1", -EACCES}, {false, "11.0.0.1", 0}};

TEST(listeners_for_proxies)
{
    struct mk_network trusted;
    assert_int_equal(mk_network_parse(MK_STR("10.0.0.0/8"), &trusted, NULL), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        set_up(state);
        thread.http.warned_ms = 1; /* it has just been said */
        generation.http.trusted_proxies.networks = (struct mk_networks){&trusted, 1};
        struct mk_loop loop = {.now_ms = 1};
        thread.http.loop = &loop;
        line.mode.proxy = cases[i].proxy;
        listening.proxy = !cases[i].proxy; /* of another generation */
        assert_int_equal(mk_address_parse(mk_str_c(cases[i].peer), &conn->peer.address), 0);
        assert_int_equal(mk__conn_hooks_on_accept(conn, &thread), cases[i].result);
        assert_int_equal(conn->peer.expects_proxy_header, cases[i].proxy);
        assert_string_equal(calls, cases[i].result ? "" : "AC"); /* no plugin meets a stranger there */
    }
}

TEST(proxies_by_their_clients, set_up)
{
    struct mk_network trusted[2];
    assert_int_equal(mk_network_parse(MK_STR("10.0.0.0/8"), &trusted[0], NULL), 0);
    assert_int_equal(mk_network_parse(MK_STR("unix"), &trusted[1], NULL), 0);
    generation.http.trusted_proxies.networks = (struct mk_networks){trusted, 2};
    assert_int_equal(mk_address_parse(MK_STR("10.0.0.1"), &conn->peer.address), 0);
    struct mk_address client = mk_connection_client(conn);
    assert_true(mk_address_equal(&client, &conn->peer.address) && mk_connection_is_proxy(conn));
    assert_int_equal(mk_address_parse(MK_STR("11.0.0.1"), &conn->peer.address), 0);
    assert_false(mk_connection_is_proxy(conn));
    conn->peer.address = (struct mk_address){.family = AF_UNIX};
    assert_true(mk_connection_is_proxy(conn));
    conn->peer.from_proxy_header = true; /* a socket of the proxy's machine */
    assert_false(mk_connection_is_proxy(conn));
}

/* ── states ── */

static char kept_a = 'x', kept_b = 'y', kept_2 = 'z';

static void release(void *state)
{
    note(*(char *)state);
}

TEST(states_of_a_connection, set_up)
{
    assert_null(mk_connection_state(conn, &a));
    assert_int_equal(account.bytes, 0);
    assert_int_equal(mk_connection_set_state(conn, &a, &kept_a, release), 0);
    assert_int_equal(mk_connection_set_state(conn, &b, &kept_b, NULL), 0);
    assert_int_equal(mk_connection_set_state(conn, &b, &kept_2, release), 0); /* replaces it */
    assert_int_equal(mk_connection_set_state(&second.handle, &b, &kept_b, release), 0);
    assert_ptr_equal(mk_connection_state(conn, &a), &kept_a);
    assert_ptr_equal(mk_connection_state(conn, &b), &kept_2);
    assert_ptr_equal(mk_connection_state(&second.handle, &b), &kept_b);
    assert_null(mk_connection_state(&second.handle, &a));
    assert_string_equal(calls, "");
    mk__conn_hooks_on_close(conn, &thread);
    assert_string_equal(calls, "abcxz");
    assert_null(mk_connection_state(conn, &a));
    mk__conn_hooks_on_close(&second.handle, &thread);
    assert_string_equal(calls, "abcxzabcy");
    assert_int_equal(account.bytes, 0);
}

static int accept_and_keep(struct mk_connection *new)
{
    return mk_connection_set_state(new, generation.plugins[0], &kept_a, release);
}

TEST(a_refused_connection_has_states, set_up)
{
    static const struct mk_connection_hooks hooks = {.on_accept = accept_and_keep, .on_close = close_a};
    static const struct mk_plugin keeper = {.name = "keeper", .connections = &hooks};
    generation.plugins[0] = &keeper;
    refuser = 'C';
    assert_int_equal(mk__conn_hooks_on_accept(conn, &thread), -EACCES);
    assert_string_equal(calls, "Cabx");
    assert_null(conn->states);
    assert_int_equal(account.bytes, 0);
}

TEST(states_without_place, set_up)
{
    static const struct mk_plugin stranger = {.name = "stranger"};
    assert_int_equal(mk_connection_set_state(conn, &stranger, &kept_a, release), -ENOENT);
    account.bytes_max = 1;
    assert_int_equal(mk_connection_set_state(conn, &a, &kept_a, release), -ENOMEM);
    assert_null(mk_connection_state(conn, &a));
    mk__conn_hooks_on_close(conn, &thread);
    assert_string_equal(calls, "abc");
}

/* A reload has removed a and added nothing; an exchange of the old generation still runs. */
TEST(states_of_a_removed_plugin, set_up)
{
    struct mk_generation next = {.settings = &settings, .plugins = {&b, &c}, .n_plugins = 2};
    struct mk_worker now = {.generation = &next, .loop = &thread.loop}, older = worker;
    assert_int_equal(mk_connection_set_state(conn, &a, &kept_a, release), 0);
    assert_int_equal(mk_connection_set_state(conn, &b, &kept_b, release), 0);
    assert_int_equal(mk_connection_set_state(&second.handle, &a, &kept_2, release), 0);
    thread.worker = &now;
    thread.replaced = &worker;
    worker.next = &older; /* from a reload before, with the same plugins */
    mk__worker_reload_forget(&older);
    assert_string_equal(calls, "");
    assert_int_equal(mk_connection_set_state(&second.handle, &a, &kept_2, release), 0); /* by the exchange */
    thread.replaced = NULL;
    worker.next = NULL;
    mk__worker_reload_forget(&worker);
    assert_string_equal(calls, "xz");
    assert_ptr_equal(mk_connection_state(conn, &b), &kept_b);
    assert_null(mk_connection_state(conn, &a));
    assert_int_equal(mk_connection_set_state(conn, &a, &kept_a, release), -ENOENT);
    mk__conn_hooks_on_close(conn, &thread);
    assert_string_equal(calls, "xzbcy");
    assert_int_equal(account.bytes, 0);
}
