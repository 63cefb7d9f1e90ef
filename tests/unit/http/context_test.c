// SPDX-License-Identifier: Apache-2.0
/* The HTTP context of a thread: initialized when each allocation fails, and the Server and Date lines. */
#include "testing.h"

#include "harness.h"

static struct mk_test_world w;

static int open_and_close(void *ctx)
{
    (void)ctx;
    long left = mk__alloc_countdown;
    mk__alloc_countdown = -1;
    assert_int_equal(mk_test_world_open(&w, NULL), 0);
    mk__alloc_countdown = left;
    int err = mk_test_http_open(&w);
    mk_test_world_close(&w); /* checks the account */
    return err;
}

static void test_opens(void **state)
{
    (void)state;
    assert_int_equal(mk_test_failing_allocs(open_and_close, NULL), 3);
}

static void test_the_lines_of_the_second(void **state)
{
    (void)state;
    assert_int_equal(mk_test_world_open(&w, NULL), 0);
    assert_int_equal(mk_test_http_open(&w), 0);
    assert_str_equal(mk__context_date_lines(&w.http), "Server: x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    mk_test_pass(&w, 999);
    assert_str_equal(mk__context_date_lines(&w.http), "Server: x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    mk_test_pass(&w, 1);
    mk__loop_turn(&w.loop);
    assert_str_equal(mk__context_date_lines(&w.http), "Server: x\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
    w.settings.server_line = MK_STR("");
    mk_test_pass(&w, 1000);
    mk__loop_turn(&w.loop);
    assert_str_equal(mk__context_date_lines(&w.http), "Date: Sun, 06 Nov 1994 08:49:39 GMT\r\n");
    mk_test_world_close(&w);
}

/* A reload amid a head: what was read is kept, the rest is rejected if it is above the new limits. */
static void test_limits_sink_amid_a_head(void **state)
{
    struct mk__context_buffers none = {0};
    struct mk__http_settings lower;
    (void)state;
    for (uint32_t fields_max = 1; fields_max <= 10; fields_max++) {
        assert_int_equal(mk_test_world_open(&w, NULL), 0);
        assert_int_equal(mk_test_http_open(&w), 0);
        struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.1\r\nHost: h\r\n"));
        for (int i = 0; i < 9; i++)
            mk_test_send(c, MK_STR("a: 1\r\n"));
        mk_test_settle(&w);
        lower = w.settings;
        lower.head.fields_max = fields_max;
        mk__context_apply_settings(&w.http, &lower, &none);
        for (int i = 0; i < 30; i++)
            mk_test_send(c, MK_STR("b: 1\r\n"));
        mk_test_settle(&w);
        assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 431 ")));
        mk_test_world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opens),
        cmocka_unit_test(test_the_lines_of_the_second),
        cmocka_unit_test(test_limits_sink_amid_a_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
