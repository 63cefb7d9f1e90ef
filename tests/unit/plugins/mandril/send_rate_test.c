// SPDX-License-Identifier: Apache-2.0
/*
 * SendRate on a clock that stands still between steps: at no time has a client more than a full bucket and the rate
 * since then allow, and it gets all of it.
 */
#include "fixture.h"

enum { RATE = 10240, BURST = 2048, STEP_MS = 10 };

static struct limit *add_rate(const char *name, uint8_t rate_for)
{
    return add_limit(name, (struct limit_conf){.send_rate = RATE, .send_rate_for = rate_for});
}

/* Bytes of bodies, of responses whose heads come whole. */
struct counter {
    struct mk_test_client *client;
    size_t bytes;
};

static void count_bytes(struct counter *c)
{
    struct mk_str got = mk_test_received(c->client);
    const char *at = got.p, *end = got.p + got.len, *head;
    while (at < end && status_of(at) && (head = strstr(at, "\r\n\r\n"))) {
        size_t used = (size_t)(head + 4 - at);
        got.len -= used;
        at += used;
        while (at < end && !status_of(at)) /* bodies are NULs */
            at++;
    }
    c->bytes += got.len;
}

/*
 * Lets time pass until all have `bytes` together; checks at each step that they have no more than so many buckets
 * allow, behind `before` bytes. Returns the milliseconds.
 */
static uint64_t pass_until(struct counter *all, size_t n, size_t bytes, unsigned buckets, size_t before)
{
    size_t got = 0;
    for (uint64_t ms = 0; ms < MK_TEST_DAY_MS; ms += STEP_MS) {
        got = 0;
        for (size_t i = 0; i < n; i++) {
            count_bytes(&all[i]);
            got += all[i].bytes;
        }
        assert_true(got <= before + buckets * (BURST + RATE * ms / 1000));
        if (got >= bytes)
            return ms;
        mk_test_pass(&w, STEP_MS);
    }
    fail_msg("%zu of %zu bytes came", got, bytes);
    return 0;
}

/* Tells whether `ms` is what `bytes` take behind a burst, but for half a burst and a step of the timer. */
static void assert_takes(uint64_t ms, uint64_t bytes)
{
    uint64_t least = (bytes - BURST) * 1000 / RATE;
    assert_true(ms >= least && ms <= least + BURST * 1000 / 2 / RATE + 2 * STEP_MS);
}

TEST(one_response, open_guard, close_guard)
{
    static const uint8_t kinds[] = {SEND_RATE_CONNECTION, SEND_RATE_CLIENT};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        add_rate("slow", kinds[i]);
        struct counter c = {.client = connect_from("192.0.2.1", ASK("/big"))};
        assert_takes(pass_until(&c, 1, BIG_BYTES, 1, 0), BIG_BYTES);
        assert_int_equal(c.bytes, BIG_BYTES);
        mk_test_pass(&w, 200);
        assert_string_equal(mk_test_state(c.client), "idle");
        close_guard(state);
        open_guard(state);
    }
}

/* The second response finds what the first has left. A bucket that is full again gives a burst. */
TEST(responses_in_a_row, open_guard, close_guard)
{
    add_rate("slow", SEND_RATE_CONNECTION);
    struct counter c = {.client = connect_from("192.0.2.1", ASK("/big"))};
    uint64_t ms = pass_until(&c, 1, BIG_BYTES, 1, 0);
    mk_test_send(c.client, MK_STR(ASK("/big")));
    ms += pass_until(&c, 1, 2 * BIG_BYTES, 1, BIG_BYTES);
    assert_takes(ms, 2 * BIG_BYTES);
    mk_test_pass(&w, 1000);
    c.bytes = 0;
    mk_test_send(c.client, MK_STR(ASK("/big")));
    assert_takes(pass_until(&c, 1, BIG_BYTES, 1, 0), BIG_BYTES);
}

TEST(whose_rate_it_is, open_guard, close_guard)
{
    add_rate("slow", SEND_RATE_CLIENT);
    struct counter same[] = {{.client = connect_from("192.0.2.1", ASK("/big"))},
                             {.client = connect_from("192.0.2.1", ASK("/big"))}};
    assert_takes(pass_until(same, 2, 2 * BIG_BYTES, 1, 0), 2 * BIG_BYTES);
    struct counter others[] = {{.client = connect_from("192.0.2.2", ASK("/big"))},
                               {.client = connect_from("192.0.2.3", ASK("/big"))}};
    assert_takes(pass_until(others, 2, 2 * BIG_BYTES, 2, 0), BIG_BYTES);
}

TEST(connections_have_their_own, open_guard, close_guard)
{
    add_rate("slow", SEND_RATE_CONNECTION);
    struct counter both[] = {{.client = connect_from("192.0.2.1", ASK("/big"))},
                             {.client = connect_from("192.0.2.1", ASK("/big"))}};
    assert_takes(pass_until(both, 2, 2 * BIG_BYTES, 2, 0), BIG_BYTES);
}

static unsigned count_buckets(struct mk_test_client *c)
{
    const struct conn_state *kept = mk_connection_state(&mk_test_connection(c)->handle, &mk_plugin_mandril);
    unsigned n = 0;
    struct list { /* as struct conn_bucket begins */
        const struct list *next;
    };
    for (const struct list *b = kept ? (const struct list *)(const void *)kept->buckets : NULL; b; b = b->next)
        n++;
    return n;
}

/* Sections have buckets of their own in a connection. One that is full is freed when another is asked for. */
TEST(buckets_of_a_connection, open_guard, close_guard)
{
    struct limit *first = add_rate("first", SEND_RATE_CONNECTION);
    struct mk_when_value method = {.text = MK_STR("GET")};
    struct mk_when_condition is_get = {.subject = MK_WHEN_METHOD, .values = &method, .n = 1};
    guard.limit_confs[0].when.when = (struct mk_when){&is_get, 1};
    add_rate("rest", SEND_RATE_CONNECTION);
    struct counter c = {.client = connect_from("192.0.2.1", ASK("/big"))};
    assert_int_equal(count_buckets(c.client), 1);
    pass_until(&c, 1, BIG_BYTES, 1, 0);
    mk_test_send(c.client, MK_STR("PUT /big HTTP/1.1\r\nHost: h\r\n\r\n"));
    mk_test_pass(&w, BURST * 1000 / 2 / RATE + STEP_MS); /* when the end of the first one is read */
    assert_int_equal(count_buckets(c.client), 2);
    mk_test_pass(&w, 4000);
    mk_test_send(c.client, MK_STR("PUT / HTTP/1.1\r\nHost: h\r\n\r\n"));
    mk_test_settle(&w);
    assert_int_equal(count_buckets(c.client), 1);
    assert_int_equal(first->base.zone->refs, 1);
}

/* A reload replaces the section: the response continues, and the next one finds the bucket by the name. */
TEST(a_bucket_lasts_over_reloads, open_guard, close_guard)
{
    add_rate("slow", SEND_RATE_CONNECTION);
    struct counter c = {.client = connect_from("192.0.2.1", ASK("/big"))};
    uint64_t ms = pass_until(&c, 1, BIG_BYTES, 1, 0);
    remove_sections();
    add_rate("slow", SEND_RATE_CONNECTION);
    mk_test_send(c.client, MK_STR(ASK("/big")));
    ms += pass_until(&c, 1, 2 * BIG_BYTES, 1, BIG_BYTES);
    assert_takes(ms, 2 * BIG_BYTES);
}

TEST(a_client_that_leaves, open_guard, close_guard)
{
    static const uint8_t kinds[] = {SEND_RATE_CONNECTION, SEND_RATE_CLIENT};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        remove_sections();
        struct limit *limit = add_rate("slow", kinds[i]);
        struct mk_test_client *c = connect_from("192.0.2.1", ASK("/big"));
        mk_test_pass(&w, 100);
        mk_test_reset(c);
        mk_test_settle(&w);
        assert_string_equal(mk_test_state(c), "closed");
        assert_int_equal(limit->base.zone->refs, 1);
    }
}

TEST(every_allocation_may_fail, open_guard, close_guard)
{
    static const uint8_t kinds[] = {SEND_RATE_CONNECTION, SEND_RATE_CLIENT};
    close_guard(state);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        bool all_fine = false;
        for (long n = 0; !all_fine; n++) {
            assert_true(n < 200);
            open_guard(state);
            add_rate("slow", kinds[i]);
            guard.peer = "192.0.2.1";
            mk__alloc_countdown = n;
            struct mk_test_client *client = mk_test_connect(&w, MK_STR(ASK("/big")));
            mk_test_pass(&w, 5000);
            all_fine = mk__alloc_countdown >= 0;
            mk__alloc_countdown = -1;
            struct counter c = {.client = client};
            if (client)
                count_bytes(&c);
            assert_true(all_fine ? c.bytes == BIG_BYTES : c.bytes <= BIG_BYTES);
            close_guard(state);
        }
    }
    open_guard(state);
}

TEST_FILE(make_folder, mk_test_folder_remove)
