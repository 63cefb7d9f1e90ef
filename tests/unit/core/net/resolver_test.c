// SPDX-License-Identifier: Apache-2.0
/* Names: looked up elsewhere, remembered for a while, shared, bounded, and nothing that waits for a resolver. */
#include "dial_fixture.h"

static const struct test_host known[] = {
    {"one", 0, {"127.0.0.1"}},
    {"none", 0, {NULL}},
    {"away", -EAGAIN, {NULL}},
    {"both", 0, {"[::1]", "[::2]", "[::3]", "127.0.0.1", "127.0.0.2"}},
    {"many",
     0,
     {"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7", "127.0.0.8",
      "127.0.0.9"}},
    {NULL, 0, {NULL}},
};

struct asking {
    struct mk_task task;
    struct mk__resolver_entry *name;
    unsigned calls;
};

static void on_known(struct mk_task *task)
{
    struct asking *a = MK_CONTAINER_OF(task, struct asking, task);
    assert_int_equal(a->name->state, MK__RESOLVER_RESOLVED);
    a->calls++;
}

static int ask(struct asking *a, const char *host)
{
    a->name = NULL;
    a->calls = 0;
    mk_task_init(&a->task, on_known);
    return mk__resolver_get(&loop, mk_str_c(host), &a->task, &a->name);
}

static void await(struct asking *a)
{
    while (!a->calls) {
        await_wakeup();
        settle();
    }
    assert_int_equal(a->calls, 1);
}

/* Asks, waits, gives it back; `err` is what is known then. */
static void expect(const char *host, unsigned n, int err)
{
    struct asking a;
    int got = ask(&a, host);
    if (got == MK_AGAIN)
        await(&a);
    else
        assert_int_equal(got, 0);
    assert_int_equal(a.name->n, n);
    assert_int_equal(a.name->err, err);
    mk__resolver_put(a.name);
}

TEST(what_is_known_and_for_how_long)
{
    open_fixture(known);
    expect("one", 1, 0);
    assert_int_equal(asked, 1);
    pass(MK__RESOLVER_TTL_MS - 1);
    expect("ONE", 1, 0); /* names have no case */
    assert_int_equal(asked, 1);
    pass(1);
    expect("one", 1, 0);
    assert_int_equal(asked, 2);
    expect("away", 0, -EAGAIN);
    expect("none", 0, -ENXIO);
    expect("unknown", 0, -ENXIO);
    assert_int_equal(asked, 5);
    pass(MK__RESOLVER_NEGATIVE_TTL_MS - 1);
    expect("away", 0, -EAGAIN);
    assert_int_equal(asked, 5);
    pass(1);
    expect("away", 0, -EAGAIN);
    assert_int_equal(asked, 6);
    close_fixture();
}

TEST(families_take_turns)
{
    static const char *const order[] = {"[::1]:0", "127.0.0.1:0", "[::2]:0", "127.0.0.2:0", "[::3]:0"};
    struct asking a;
    open_fixture(known);
    assert_int_equal(ask(&a, "both"), MK_AGAIN);
    await(&a);
    assert_int_equal(a.name->n, COUNT(order));
    for (size_t i = 0; i < COUNT(order); i++) {
        struct mk_buf text;
        char storage[64];
        mk_buf_init_fixed(&text, storage, sizeof(storage));
        mk__addr_print(&a.name->addrs[i], &text);
        assert_string_equal(mk_buf_cstr(&text), order[i]);
    }
    mk__resolver_put(a.name);
    expect("many", MK_DIAL_ADDRESSES_MAX, 0);
    close_fixture();
}

TEST(one_lookup_for_all)
{
    struct asking a, b, c;
    open_fixture(known);
    gated = true;
    assert_int_equal(ask(&a, "one"), MK_AGAIN);
    assert_int_equal(ask(&b, "one"), MK_AGAIN);
    assert_int_equal(ask(&c, "one"), MK_AGAIN);
    assert_ptr_equal(a.name, b.name);
    mk_task_cancel(&b.task);
    mk__resolver_put(b.name);
    sem_post(&gate);
    await(&a);
    assert_int_equal(b.calls, 0);
    assert_int_equal(c.calls, 1);
    assert_int_equal(asked, 1);
    pass(MK__RESOLVER_TTL_MS);
    assert_int_equal(ask(&b, "one"), MK_AGAIN); /* a new one, next to what others still use */
    assert_ptr_not_equal(a.name, b.name);
    sem_post(&gate);
    await(&b);
    assert_int_equal(a.name->n, 1);
    mk__resolver_put(a.name);
    mk__resolver_put(b.name);
    mk__resolver_put(c.name);
    close_fixture();
}

TEST(two_at_a_time_and_a_full_table)
{
    static struct asking all[MK__RESOLVER_ENTRIES_MAX + 1];
    char host[16];
    open_fixture(known);
    gated = true;
    for (unsigned i = 0; i < MK__RESOLVER_ENTRIES_MAX; i++) {
        snprintf(host, sizeof(host), "n%u", i);
        assert_int_equal(ask(&all[i], host), MK_AGAIN);
    }
    assert_int_equal(ask(&all[MK__RESOLVER_ENTRIES_MAX], "more"), -EBUSY);
    while (asked < MK__RESOLVER_RUNNING_MAX)
        sched_yield();
    mk_task_cancel(&all[9].task); /* it is in the queue, and its result is not wanted any more */
    mk__resolver_put(all[9].name);
    assert_int_equal(ask(&all[9], "more"), MK_AGAIN);
    sem_post(&gate);
    await_wakeup();
    settle();
    while (asked < MK__RESOLVER_RUNNING_MAX + 1)
        sched_yield();
    gated = false;
    for (unsigned i = 0; i < MK__RESOLVER_RUNNING_MAX; i++)
        sem_post(&gate);
    for (unsigned i = 0; i < MK__RESOLVER_ENTRIES_MAX; i++) {
        if (!all[i].calls)
            await(&all[i]);
        assert_int_equal(all[i].name->err, -ENXIO);
    }
    assert_int_equal(asked, MK__RESOLVER_ENTRIES_MAX);
    assert_int_equal(ask(&all[MK__RESOLVER_ENTRIES_MAX], "one"),
                     MK_AGAIN); /* the oldest is forgotten, although it is in use */
    await(&all[MK__RESOLVER_ENTRIES_MAX]);
    for (unsigned i = 0; i <= MK__RESOLVER_ENTRIES_MAX; i++)
        mk__resolver_put(all[i].name);
    expect("n1", 0, -ENXIO);
    assert_int_equal(asked, MK__RESOLVER_ENTRIES_MAX + 1);
    expect("n0", 0, -ENXIO);
    assert_int_equal(asked, MK__RESOLVER_ENTRIES_MAX + 2);
    close_fixture();
}

TEST(closing_does_not_wait)
{
    struct asking a, b, c;
    open_fixture(known);
    gated = true;
    assert_int_equal(ask(&a, "one"), MK_AGAIN);
    assert_int_equal(ask(&b, "away"), MK_AGAIN);
    assert_int_equal(ask(&c, "both"), MK_AGAIN);
    mk_task_cancel(&a.task);
    mk__resolver_put(a.name);
    mk_task_cancel(&b.task);
    mk__resolver_put(b.name);
    mk_task_cancel(&c.task);
    mk__resolver_put(c.name);
    while (asked < 2)
        sched_yield();
    mk__resolver_close(&loop);
    mk__resolver_close(&loop);
    mk__loop_close(&loop);
    gated = false;
    sem_post(&gate);
    sem_post(&gate);
    await_threads();
    assert_int_equal(asked, 2);
    sem_destroy(&gate);
}

/* Names that are given back after the close: while the lookup runs, and when it has ended; one that has not begun. */
TEST(closing_with_names_that_are_held)
{
    struct asking before, after, queued, known_one;
    open_fixture(known);
    assert_int_equal(ask(&known_one, "none"), MK_AGAIN);
    await(&known_one);
    gated = true;
    asked = 0;
    assert_int_equal(ask(&before, "one"), MK_AGAIN);
    assert_int_equal(ask(&after, "both"), MK_AGAIN);
    assert_int_equal(ask(&queued, "many"), MK_AGAIN);
    while (asked < 2)
        sched_yield();
    mk__resolver_close(&loop);
    mk__loop_close(&loop);
    mk_task_cancel(&before.task);
    mk__resolver_put(before.name);
    gated = false;
    sem_post(&gate);
    sem_post(&gate);
    await_threads();
    mk_task_cancel(&after.task);
    mk__resolver_put(after.name);
    mk_task_cancel(&queued.task);
    mk__resolver_put(queued.name);
    mk__resolver_put(known_one.name);
    assert_int_equal(asked, 2);
    sem_destroy(&gate);
}

TEST(closing_with_an_answer_that_is_held)
{
    struct asking a;
    open_fixture(known);
    assert_int_equal(ask(&a, "one"), MK_AGAIN);
    await_wakeup();
    close_fixture();
    mk_task_cancel(&a.task);
    mk__resolver_put(a.name);
    assert_int_equal(a.calls, 0);
}

TEST(closing_with_an_answer_in_the_inbox)
{
    struct asking a;
    open_fixture(known);
    assert_int_equal(ask(&a, "one"), MK_AGAIN);
    mk_task_cancel(&a.task);
    mk__resolver_put(a.name);
    await_wakeup();
    close_fixture();
    assert_int_equal(a.calls, 0);
}

TEST(the_system)
{
    struct mk__addr addrs[MK_DIAL_ADDRESSES_MAX];
    struct asking a;
    assert_int_equal(mk__resolver_getaddrinfo("127.0.0.5", addrs, COUNT(addrs)), 1);
    assert_int_equal(addrs[0].in.sin_addr.s_addr, htonl(0x7f000005));
    assert_int_equal(addrs[0].len, sizeof(addrs[0].in));
    assert_int_equal(mk__resolver_getaddrinfo("::1", addrs, COUNT(addrs)), 1);
    assert_int_equal(addrs[0].len, sizeof(addrs[0].in6));
    assert_int_equal(mk__resolver_getaddrinfo("", addrs, COUNT(addrs)), -ENXIO);
    open_fixture(known);
    mk__resolver_close(&loop);
    assert_int_equal(ask(&a, "127.0.0.5"), MK_AGAIN);
    await(&a);
    assert_int_equal(a.name->n, 1);
    assert_int_equal(asked, 0);
    mk__resolver_put(a.name);
    close_fixture();
}

static int fail_once(void *ctx)
{
    struct asking a;
    (void)ctx;
    assert_int_equal(mk__loop_open(&loop, &test_poller, &test_clock, NULL), 0);
    int err = mk__resolver_open(&loop, look_up);
    if (err == 0)
        err = ask(&a, "one");
    if (err == MK_AGAIN) {
        await(&a);
        err = a.name->err;
        mk__resolver_put(a.name);
    }
    mk__resolver_close(&loop);
    mk__loop_close(&loop);
    return err;
}

TEST(failing_allocations)
{
    hosts = known;
    assert_int_equal(mk_test_failing_allocs(fail_once, NULL), 2);
}
