// SPDX-License-Identifier: Apache-2.0
/* The request of a check, and which changes make it another check. */
#include "testing.h"

#include "plugins/upstream/checks.h"

static struct check_conf conf;
static const struct check_client plain;
static struct pool *pool;
static struct server *server;

static int set_up(void **state)
{
    (void)state;
    conf = (struct check_conf){.what = {CHECK_HTTP, MK_STR("/health")}, .method = MK_STR("GET")};
    conf.statuses.bits[1] = UINT64_C(1) << 36; /* 200 */
    pool = pool_hold(MK_STR("app"));
    server = servers_hold(pool, MK_STR("127.0.0.1:8080"), MK_STR_NONE);
    assert_non_null(server);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    server_release(server);
    pool_release(pool);
    return 0;
}

/* ── requests ── */

static struct check *make(void)
{
    struct check *check;
    assert_int_equal(check_make(&conf, &plain, server, &check), 0);
    return check;
}

TEST(a_request, set_up, tear_down)
{
    conf.headers = (struct check_headers){{MK_STR("A: b\r\n"), MK_STR("C: d\r\n")}, 2};
    struct check *check = make();
    assert_str_equal(check->request, "GET /health HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: monkey (check)\r\n"
                                     "Connection: close\r\nA: b\r\nC: d\r\n\r\n");
    assert_ptr_equal(check->target, server->base.target);
    check_free(check);
    conf.what.kind = CHECK_TCP;
    check = make();
    assert_int_equal(check->request.len, 0);
    check_free(check);
}

TEST(hosts_and_ports, set_up, tear_down)
{
    static const struct {
        const char *server, *host;
        int port;
        const char *target, *field;
    } rows[] = {
        {"127.0.0.1:8080", "", 0, "127.0.0.1:8080", "Host: 127.0.0.1:8080\r\n"},
        {"127.0.0.1", "", 0, "127.0.0.1", "Host: 127.0.0.1\r\n"},
        {"127.0.0.1:8080", "", 80, "127.0.0.1", "Host: 127.0.0.1\r\n"},
        {"127.0.0.1:8080", "", 81, "127.0.0.1:81", "Host: 127.0.0.1:81\r\n"},
        {"[::1]:8080", "", 81, "[::1]:81", "Host: [::1]:81\r\n"},
        {"a.internal", "", 81, "a.internal:81", "Host: a.internal:81\r\n"},
        {"a.internal", "b:1", 81, "a.internal:81", "Host: b:1\r\n"},
        {"unix:/run/a.sock", "", 0, "unix:/run/a.sock", "Host: localhost\r\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct server *other = servers_hold(pool, mk_str_c(rows[i].server), MK_STR_NONE);
        struct check *check;
        conf.host = mk_str_c(rows[i].host);
        conf.port = rows[i].port;
        assert_int_equal(check_make(&conf, &plain, other, &check), 0);
        assert_str_equal(check->target->text, rows[i].target);
        assert_non_null(memmem(check->request.p, check->request.len, rows[i].field, strlen(rows[i].field)));
        check_free(check);
        server_release(other);
    }
}

/* Times and counts do not make it another one. */
TEST(what_makes_another_check, set_up, tear_down)
{
    struct check_conf before = conf;
    struct check *check = make(), *other;
    uint64_t id = check->id;
    check_free(check);
    for (int i = 0; i < 12; i++) {
        conf = before;
        switch (i) {
        case 0:
            conf.interval_ms = conf.timeout_ms = 1;
            break;
        case 1:
            conf.down = conf.up = 7;
            break;
        case 2:
            conf.what.path = MK_STR("/healthy");
            break;
        case 3:
            conf.method = MK_STR("HEAD");
            break;
        case 4:
            conf.host = MK_STR("a");
            break;
        case 5:
            conf.text = MK_STR("a");
            break;
        case 6:
            conf.statuses.bits[0] = 1;
            break;
        case 7:
            conf.port = 1;
            break;
        case 8:
            conf.is_tls = true;
            break;
        case 9:
            conf.what.kind = CHECK_TCP;
            break;
        case 10:
            conf.what.kind = CHECK_FASTCGI;
            break;
        default:
            conf.headers = (struct check_headers){{MK_STR("A: b\r\n")}, 1};
        }
        other = make();
        assert_int_equal(other->id != id, i >= 2);
        check_free(other);
    }
}

static int make_once(void *ctx)
{
    struct check *check;
    (void)ctx;
    conf.port = 81;
    int err = check_make(&conf, &plain, server, &check);
    if (err == 0)
        check_free(check);
    return err;
}

TEST(each_allocation_fails, set_up, tear_down)
{
    assert_true(mk_test_failing_allocs(make_once, NULL) > 3);
}
