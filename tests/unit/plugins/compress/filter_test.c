// SPDX-License-Identifier: Apache-2.0
/*
 * A body that passes an encoder, in an environment without time: whichever allocation fails, the answer is whole, in
 * the coding or without it, or cut; and the worker's books are even at the end.
 */
#include "base/arena.h"
#include "http/h1_fixture.h"
#include "plugins/compress/compress.h"
#include "testing.h"

#include <errno.h>
#include <zlib.h>

TEST(streams_and_memory)
{
    const struct budget_limits limits = {.streams = 3};
    struct mk_account account = {.bytes_max = 1000}, unlimited = {0};
    assert_false(budget_reserve(&limits, &account, 501));
    assert_true(budget_reserve(&limits, &account, 300));
    assert_false(budget_reserve(&limits, &account, 201));
    assert_true(budget_reserve(&limits, &account, 200));
    assert_false(budget_reserve(&limits, &account, 1));
    assert_true(budget_reserve(&limits, &unlimited, 1 << 30));
    assert_false(budget_reserve(&limits, &unlimited, 1));
    budget_release(1 << 30);
    budget_release(200);
    budget_release(300);
    assert_true(budget_reserve(&limits, &account, 500));
    budget_release(500);
}

/* Works until the thread's clock has moved on by so much. */
static void work(const struct budget_limits *limits, uint64_t ns)
{
    uint64_t since = budget_clock(limits);
    while (budget_clock(limits) - since < ns)
        ;
    budget_spend(limits, since);
}

TEST(time)
{
    const struct budget_limits limits = {.cpu_percent = 2}; /* 2 ms of 100 */
    assert_true(budget_has_time(&limits, 1000));
    work(&limits, 1000);
    assert_true(budget_has_time(&limits, 1099));
    work(&limits, 3000000);
    assert_false(budget_has_time(&limits, 1099));
    assert_int_equal(budget_wait_ms(1000), 100);
    assert_int_equal(budget_wait_ms(1099), 1);
    assert_true(budget_has_time(&limits, 10000)); /* what was owed is paid, and nothing is saved up */
    work(&limits, 30000000);
    assert_false(budget_has_time(&limits, 10099));
    assert_false(budget_has_time(&limits, 10100 + 1200));
    assert_true(budget_has_time(&limits, 1000000000));
}

TEST(no_limit)
{
    const struct budget_limits all = {.cpu_percent = 100}, none = {0};
    assert_int_equal(budget_clock(&all), 0);
    assert_int_equal(budget_clock(&none), 0);
    budget_spend(&none, 0);
    assert_true(budget_has_time(&all, 0));
    assert_true(budget_has_time(&none, 0));
}

enum { BODY_BYTES = 30000 };

static struct budget_limits limits;
static enum mk_coding coding;
static int started; /* what filter_start() said */
static char plain[BODY_BYTES];

static void start(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    started = filter_start(req, coding, 4, ENCODER_SIZE_UNKNOWN, &limits, NULL);
}

static void answer_body(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    if (mk_response_write_ref(req, mk_str(plain, sizeof(plain))) < 0)
        mk_response_abort(req);
    else
        mk_response_end(req);
}

static struct mk_str ask(long countdown)
{
    limits.streams = 1;
    open_fixture(answer_body);
    w.on_response = start;
    mk__alloc_countdown = countdown;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.0\r\n\r\n"));
    mk_test_settle(&w);
    struct mk_str answer = c ? mk_test_received(c) : MK_STR_NONE; /* no memory for a connection */
    const char *end = answer.len ? strstr(answer.p, "\r\n\r\n") : NULL;
    return end ? mk_str(end + 4, answer.len - (size_t)(end + 4 - answer.p)) : MK_STR_NONE;
}

static void assert_books_are_even(void)
{
    struct mk_account account = {.bytes_max = 2000};
    assert_true(budget_reserve(&limits, &account, 1000)); /* one stream, all that there is */
    budget_release(1000);
}

static void assert_gzip_of_body(struct mk_str got)
{
    static char again[BODY_BYTES + 1];
    z_stream z = {.next_in = (Bytef *)(uintptr_t)got.p,
                  .avail_in = (uInt)got.len,
                  .next_out = (Bytef *)again,
                  .avail_out = sizeof(again)};
    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, BODY_BYTES);
    assert_memory_equal(again, plain, BODY_BYTES);
    inflateEnd(&z);
}

TEST(every_allocation_may_fail)
{
    for (coding = MK_CODING_GZIP; coding < MK_CODING_COUNT; coding++) {
        bool all_fine = false;
        unsigned whole = 0;
        for (long n = 0; !all_fine && n < 100; n++) {
            started = -1;
            struct mk_str got = ask(n);
            all_fine = mk__alloc_countdown >= 0;
            mk__alloc_countdown = -1;
            if (started == 0 && w.aborted == 0 && coding == MK_CODING_GZIP && got.len)
                assert_gzip_of_body(got);
            if (started < 0 && got.len >= BODY_BYTES) {
                assert_memory_equal(got.p, plain, BODY_BYTES);
                whole++;
            }
            close_fixture();
            assert_books_are_even();
        }
        assert_true(all_fine && started == 0 && whole > 0);
    }
}

TEST(no_room)
{
    coding = MK_CODING_GZIP;
    limits.streams = 1;
    assert_true(budget_reserve(&limits, &(struct mk_account){0}, 1));
    struct mk_str got = ask(-1);
    assert_int_equal(started, -EBUSY);
    assert_int_equal(got.len, BODY_BYTES);
    close_fixture();
    budget_release(1);
}

static int set_up(void **state)
{
    (void)state;
    coding_counters_open();
    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = "compress\n"[i * i % 9];
    return 0;
}

TEST_FILE(set_up)
