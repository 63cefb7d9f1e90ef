// SPDX-License-Identifier: Apache-2.0
/* Values that a service sends to descriptors. */
#include "testing.h"

#include <errno.h>
#include <sys/socket.h>

#include "service_slots.h"

#include "duda/core/event/signals.h"

static struct service service;
static struct mk_test_slots slots;

static int begin(void **state)
{
    (void)state;
    memset(&service, 0, sizeof(service));
    mk_test_slots_open(&slots, &service, NULL);
    return signals_init(&service);
}

static int end(void **state)
{
    (void)state;
    mk_test_slots_close(&slots);
    return 0;
}

/* Returns the next value; 0: there is none; -1: the other end was closed. */
static int64_t read_value(int fd)
{
    uint64_t value = 0;
    ssize_t n = recv(fd, &value, sizeof(value), MSG_DONTWAIT);
    if (n < 0)
        assert_int_equal(errno, EAGAIN);
    return n == 0 ? -1 : (int64_t)value;
}

TEST(each_descriptor_gets_each_value, begin, end)
{
    int a = signals_open_fd(&service), b = signals_open_fd(&service);
    assert_true(a >= 0 && b >= 0);
    signals_send(&service, 7);
    signals_send(&service, UINT64_C(1) << 40);
    for (int i = 0; i < 2; i++) {
        int fd = i ? b : a;
        assert_int_equal(read_value(fd), 7);
        assert_int_equal(read_value(fd), INT64_C(1) << 40);
        assert_int_equal(read_value(fd), 0);
    }
    signals_release(&service);
    assert_int_equal(read_value(a), -1);
    assert_int_equal(read_value(b), -1);
    close(a);
    close(b);
}

/* The service has closed its end: the place is free again, and the others get their values. */
TEST(a_reader_may_leave, begin, end)
{
    int all[SIGNAL_FDS_MAX];
    for (int i = 0; i < SIGNAL_FDS_MAX; i++)
        assert_true((all[i] = signals_open_fd(&service)) >= 0);
    assert_int_equal(signals_open_fd(&service), -EMFILE);
    close(all[0]);
    close(all[100]);
    signals_send(&service, 5);
    assert_int_equal(signals_of(&service)->n, SIGNAL_FDS_MAX - 2);
    for (int i = 1; i < SIGNAL_FDS_MAX; i++)
        if (i != 100)
            assert_int_equal(read_value(all[i]), 5);
    all[0] = signals_open_fd(&service);
    assert_true(all[0] >= 0);
    signals_release(&service);
    for (int i = 0; i < SIGNAL_FDS_MAX; i++)
        if (i != 100)
            close(all[i]);
}

/* A reader that does not read loses values, never what was sent before, and stays. */
TEST(values_are_lost_if_nothing_reads, begin, end)
{
    uint64_t sent = 0;
    int fd = signals_open_fd(&service);
    assert_true(fd >= 0);
    while (!signals_of(&service)->lost)
        signals_send(&service, ++sent);
    signals_send(&service, ++sent);
    assert_int_equal(signals_of(&service)->lost, 2);
    for (uint64_t n = 1; n <= sent - 2; n++)
        assert_int_equal(read_value(fd), n);
    assert_int_equal(read_value(fd), 0);
    signals_send(&service, 1234);
    assert_int_equal(read_value(fd), 1234);
    signals_release(&service);
    close(fd);
}

TEST(none_is_opened_after_the_end, begin, end)
{
    signals_end(signals_of(&service));
    assert_int_equal(signals_open_fd(&service), -ESHUTDOWN);
    signals_send(&service, 1);
    signals_release(&service);
}
