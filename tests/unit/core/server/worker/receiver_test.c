// SPDX-License-Identifier: Apache-2.0
/* Connections on their way from the control thread to a worker: in order, counted, and the messages used again. */
#include "testing.h"

#include <errno.h>

#include "loop/loop.h"
#include "server/listen/acceptor.h"
#include "server/worker/receiver.h"

static struct mk_loop loop;
static struct mk__receiver receiver;
static int served[256], result;
static unsigned n_served, ends;

static int serve(void *ctx, const struct mk__listener *listener, const struct mk__accepted *accepted)
{
    assert_ptr_equal(ctx, &loop);
    assert_ptr_equal(listener, &receiver);
    assert_int_equal(accepted->peer.port, accepted->fd);
    served[n_served++] = accepted->fd;
    return result;
}

static void on_end(void *ctx)
{
    assert_ptr_equal(ctx, &loop);
    ends++;
}

static const struct mk__receiver_callbacks callbacks = {.serve = serve, .on_end = on_end};

static int hand_over(int fd)
{
    struct mk__accepted accepted = {.fd = fd, .peer = {.port = (uint16_t)fd}};
    return mk__receiver_send(&receiver, (const struct mk__listener *)(const void *)&receiver, &accepted);
}

static int set_up(void **state)
{
    (void)state;
    n_served = ends = 0;
    result = 0;
    mk__receiver_init(&receiver, &loop, true, &callbacks, &loop);
    return mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL);
}

static void close_all(void)
{
    mk__loop_close(&loop);
    while (mk__receiver_load(&receiver))
        mk__receiver_count_closed(&receiver);
    mk__receiver_release(&receiver);
}

TEST(order_and_load, set_up)
{
    for (int i = 0; i < 100; i++)
        assert_int_equal(hand_over(i), 0);
    mk_post(&loop, &receiver.end_message);
    assert_int_equal(mk__receiver_load(&receiver), 100);
    assert_int_equal(mk__loop_turn(&loop), 0);
    assert_int_equal(n_served, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(served[i], i);
    assert_int_equal(ends, 1); /* after the last connection */
    assert_false(receiver.enabled);
    mk__receiver_count_accepted(&receiver);
    assert_int_equal(mk__receiver_load(&receiver), 101);
    mk__receiver_count_closed(&receiver);
    assert_int_equal(mk__receiver_load(&receiver), 100);
    close_all();
}

static void ignore_message(struct mk_message *message)
{
    (void)message;
}

static int hand_over_some(void *ctx)
{
    struct mk_message wakeup = {.fn = ignore_message};
    int err = 0;
    (void)ctx;
    mk_post(&loop, &wakeup); /* the turn does not wait if nothing was handed off */
    for (int i = 0; i < 3 && err == 0; i++)
        err = hand_over(i);
    assert_int_equal(mk__loop_turn(&loop), 0);
    n_served = 0;
    return err;
}

/* Without memory nothing is sent or counted; a message that was taken needs no memory again. */
TEST(messages_are_used_again, set_up)
{
    assert_int_equal(mk_test_failing_allocs(hand_over_some, NULL), 2);
    assert_int_equal(mk__receiver_load(&receiver), 0 + 1 + 3); /* of the third round, the first message is an old one */
    assert_int_equal(mk_test_failing_allocs(hand_over_some, NULL), 0);
    close_all();
}

TEST(no_memory_in_the_worker, set_up)
{
    result = -ENOMEM;
    assert_int_equal(hand_over(3), 0);
    assert_int_equal(mk__loop_turn(&loop), 0);
    assert_true(receiver.out_of_memory);
    mk__receiver_count_closed(&receiver);
    assert_false(receiver.out_of_memory);
    close_all();
}

/* What waits in the inbox is passed on when the loop is closed. */
TEST(the_end, set_up)
{
    assert_int_equal(hand_over(3), 0);
    assert_int_equal(hand_over(4), 0);
    close_all();
    assert_int_equal(n_served, 2);
}
