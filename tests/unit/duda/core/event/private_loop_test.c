// SPDX-License-Identifier: Apache-2.0
/* Private loops: descriptors, channels, and what the end of the service closes. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "service_slots.h"

#include "duda/core/common/current.h"
#include "duda/core/event/private_loop.h"
#include "duda/core/service/thread.h"

static struct service service;
static struct service_thread thread;
static struct mk_test_slots slots;

static int begin(void **state)
{
    (void)state;
    memset(&service, 0, sizeof(service));
    mk_test_slots_open(&slots, &service, NULL);
    thread = (struct service_thread){.service = &service};
    current = (struct current){.service = &service, .thread = &thread};
    thread_init(&service);
    threads_of(&service)->stop_fd = eventfd(0, 0);
    return private_loops_init(&service);
}

static int end(void **state)
{
    (void)state;
    private_loops_release(&service);
    thread_release(&service);
    current = (struct current){0};
    mk_test_slots_close(&slots);
    return 0;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

TEST(descriptors_that_are_ready_are_reported, begin, end)
{
    int a = eventfd(0, 0), b = eventfd(0, 0), mark;
    struct duda_event_loop *loop = private_loop_new(8);
    assert_non_null(loop);
    assert_int_equal(private_loop_add(loop, a, DUDA_EVENT_READ, &mark), 0);
    assert_int_equal(private_loop_add(loop, b, DUDA_EVENT_WRITE, NULL), 0);
    assert_int_equal(private_loop_wait(loop), 1);
    assert_int_equal(loop->events[0].fd, b);
    assert_int_equal(loop->events[0].mask, DUDA_EVENT_WRITE);
    eventfd_write(a, 1);
    assert_int_equal(private_loop_delete(loop, b), 0);
    assert_int_equal(private_loop_wait(loop), 1);
    assert_int_equal(loop->events[0].fd, a);
    assert_int_equal(loop->events[0].mask, DUDA_EVENT_READ);
    assert_ptr_equal(loop->events[0].data, &mark);
    assert_int_equal(private_loop_add(loop, a, DUDA_EVENT_RW, NULL), 0); /* changes it */
    assert_int_equal(private_loop_wait(loop), 1);
    assert_int_equal(loop->events[0].mask, DUDA_EVENT_RW);
    assert_null(loop->events[0].data);
    private_loop_free(loop);
    close(a);
    close(b);
}

/* The service closes a number without a call of the loop, and the number is used again. */
TEST(a_number_may_be_used_again, begin, end)
{
    struct duda_event_loop *loop = private_loop_new(8);
    int first = eventfd(1, 0);
    assert_int_equal(private_loop_add(loop, first, DUDA_EVENT_READ, NULL), 0);
    close(first);
    int second = eventfd(1, 0);
    assert_int_equal(second, first);
    assert_int_equal(private_loop_add(loop, second, DUDA_EVENT_READ, NULL), 0);
    assert_int_equal(private_loop_wait(loop), 1);
    assert_int_equal(loop->events[0].fd, second);
    private_loop_free(loop);
    close(second);
}

TEST(arguments, begin, end)
{
    struct duda_event_loop *loop = private_loop_new(1);
    static const int sizes[] = {-1, 0, 65537};
    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_null(private_loop_new(sizes[i]));
    assert_int_equal(private_loop_add(loop, -1, DUDA_EVENT_READ, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(private_loop_add(loop, 0, 0, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(private_loop_add(loop, 1 << 20, DUDA_EVENT_READ, NULL), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(private_loop_delete(loop, 0), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(private_loop_add_timeout(loop, 0), -1);
    assert_int_equal(errno, EINVAL);
    private_loop_free(loop);
    private_loop_free(NULL);
}

TEST(what_is_left_is_closed, begin, NULL)
{
    struct duda_event_loop *loop = private_loop_new(4);
    int read_end, write_end, closed_read, closed_write, own = eventfd(0, 0);
    int timer = private_loop_add_timeout(loop, 3600);
    assert_true(timer >= 0);
    assert_int_equal(private_loop_add_channel(loop, &read_end, &write_end), 0);
    assert_int_equal(private_loop_add_channel(loop, &closed_read, &closed_write), 0);
    assert_int_equal(private_loop_add(loop, own, DUDA_EVENT_READ, NULL), 0);
    close(closed_read);
    close(closed_write);
    int other = eventfd(0, 0), another = eventfd(0, 0); /* have the numbers of the channel now */
    assert_true(other == closed_read && another == closed_write);
    end(NULL);
    assert_false(is_open(timer) || is_open(read_end) || is_open(write_end));
    assert_true(is_open(own) && is_open(other) && is_open(another));
    close(own);
    close(other);
    close(another);
}

/* The end of the service ends a wait once; what comes through the channel before is reported. */
TEST(the_end_of_the_service_ends_the_wait, begin, end)
{
    struct duda_event_loop *loop = private_loop_new(4);
    int read_end, write_end;
    assert_int_equal(private_loop_add_channel(loop, &read_end, &write_end), 0);
    assert_int_equal(write(write_end, "x", 1), 1);
    assert_int_equal(private_loop_wait(loop), 1);
    assert_int_equal(loop->events[0].fd, read_end);
    atomic_store(&threads_of(&service)->stopping, true);
    assert_int_equal(private_loop_wait(loop), -1);
    assert_int_equal(errno, ECANCELED);
    assert_true(thread.end_notified);
}

static int make_loop(void *ctx)
{
    int fds[2];
    (void)ctx;
    struct duda_event_loop *loop = private_loop_new(4);
    int err = loop && private_loop_add_channel(loop, &fds[0], &fds[1]) == 0 ? 0 : -ENOMEM;
    private_loop_free(loop);
    if (err == 0) {
        close(fds[0]);
        close(fds[1]);
    }
    return err;
}

TEST(without_memory, begin, end)
{
    assert_int_equal(mk_test_failing_allocs(make_loop, NULL), 4);
}
