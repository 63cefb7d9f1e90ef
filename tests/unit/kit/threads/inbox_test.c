// SPDX-License-Identifier: Apache-2.0
/* The inbox of a thread: order, and its end before, in and after that of the loop. */
#include "testing.h"

#include "loop/loop.h"

#include <monkey/kit/inbox.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>

static struct mk_loop loop;
static struct mk_inbox inbox;
static char trail[64];
static unsigned calls;
static bool closes;

struct letter {
    struct mk_inbox_item item;
    char letter;
};

static struct letter letters[] = {{.letter = 'a'}, {.letter = 'b'}, {.letter = 'c'}, {.letter = 'd'}};

static void note(const struct mk_inbox_item *first)
{
    for (; first; first = first->next) {
        size_t n = strlen(trail);
        trail[n] = MK_CONTAINER_OF((uintptr_t)first, struct letter, item)->letter;
        trail[n + 1] = '\0';
    }
}

static void on_items(struct mk_inbox *in, struct mk_inbox_item *first)
{
    assert_ptr_equal(in, &inbox);
    calls++;
    note(first);
    if (closes)
        assert_null(mk_inbox_close(in));
}

static int set_up(void **state)
{
    (void)state;
    trail[0] = '\0';
    calls = 0;
    closes = false;
    assert_int_equal(mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    mk_inbox_open(&inbox, &loop, on_items);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (!inbox.closed)
        mk_inbox_close(&inbox);
    mk_inbox_release(&inbox);
    if (!mk_loop_has_ended(&loop))
        mk__loop_close(&loop);
    return 0;
}

static void add(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(mk_inbox_add(&inbox, &letters[i].item), 0);
}

TEST(items_arrive_together, set_up, tear_down)
{
    add(3);
    assert_int_equal(mk__loop_turn(&loop), 0);
    assert_string_equal(trail, "abc");
    assert_int_equal(calls, 1);
    assert_int_equal(mk_inbox_add(&inbox, &letters[3].item), 0);
    assert_int_equal(mk__loop_turn(&loop), 0);
    assert_string_equal(trail, "abcd");
}

TEST(closed_while_items_wait, set_up, tear_down)
{
    add(2);
    note(mk_inbox_close(&inbox));
    assert_string_equal(trail, "ab");
    assert_int_equal(mk_inbox_add(&inbox, &letters[0].item), -ECANCELED);
    mk__loop_close(&loop); /* runs the messages that are left */
    assert_int_equal(calls, 0);
}

TEST(closed_while_items_are_taken, set_up, tear_down)
{
    closes = true;
    add(2);
    assert_int_equal(mk__loop_turn(&loop), 0);
    assert_string_equal(trail, "ab");
    assert_int_equal(mk_inbox_add(&inbox, &letters[0].item), -ECANCELED);
}

TEST(the_loop_has_ended_before, set_up, tear_down)
{
    add(1);
    mk__loop_close(&loop);
    assert_string_equal(trail, "a");
    add(2);
    note(mk_inbox_close(&inbox));
    assert_string_equal(trail, "aab");
    assert_int_equal(calls, 1);
}

static unsigned taken;

static void take(struct mk_inbox *in, struct mk_inbox_item *first)
{
    (void)in;
    for (; first; first = first->next)
        taken++;
}

static void *add_many(void *ctx)
{
    struct mk_inbox_item *items = ctx;
    for (unsigned i = 0; i < 1000; i++)
        while (mk_inbox_add(&inbox, &items[i]) == -EAGAIN)
            sched_yield();
    return NULL;
}

/* The loop ends while threads still add: each item is taken once, or left in the inbox, or refused. */
TEST(threads_add_while_the_loop_ends)
{
    static struct mk_inbox_item items[2][1000];
    for (unsigned round = 0; round < 50; round++) {
        pthread_t threads[2];
        taken = 0;
        assert_int_equal(mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL), 0);
        mk_inbox_open(&inbox, &loop, take);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, add_many, items[i]), 0);
        while (taken < round * 20)
            assert_int_equal(mk__loop_turn(&loop), 0);
        mk__loop_close(&loop);
        for (unsigned i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        take(&inbox, mk_inbox_close(&inbox));
        assert_int_equal(taken, 2000);
        mk_inbox_release(&inbox);
    }
}
