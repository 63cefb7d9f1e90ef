// SPDX-License-Identifier: Apache-2.0
/* The HTTP context of a thread: initialized when each allocation fails, and new settings. */
#include "testing.h"

#include "harness.h"

static struct mk_test_fixture w;

static int open_and_close(void *ctx)
{
    (void)ctx;
    long left = mk__alloc_countdown;
    mk__alloc_countdown = -1;
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    mk__alloc_countdown = left;
    int err = mk_test_http_open(&w);
    mk_test_fixture_close(&w); /* checks the account */
    return err;
}

TEST(opens)
{
    assert_int_equal(mk_test_failing_allocs(open_and_close, NULL), 3);
}

/* A reload amid a head: what was read is kept, the rest is rejected if it is above the new limits. */
TEST(limits_sink_amid_a_head)
{
    struct mk__context_buffers none = {0};
    struct mk__http_settings lower;
    for (uint32_t fields_max = 1; fields_max <= 10; fields_max++) {
        assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
        assert_int_equal(mk_test_http_open(&w), 0);
        struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.1\r\nHost: h\r\n"));
        for (int i = 0; i < 9; i++)
            mk_test_send(c, MK_STR("a: 1\r\n"));
        mk_test_settle(&w);
        lower = w.settings;
        lower.head.fields_max = fields_max;
        mk__http_apply_settings(&w.http, &lower, &none);
        for (int i = 0; i < 30; i++)
            mk_test_send(c, MK_STR("b: 1\r\n"));
        mk_test_settle(&w);
        assert_true(mk_str_starts(mk_test_received(c), MK_STR("HTTP/1.1 431 ")));
        mk_test_fixture_close(&w);
    }
}
