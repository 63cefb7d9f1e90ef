// SPDX-License-Identifier: Apache-2.0
/*
 * Dials of a test, and what came of them. Each test has its own environment, and must leave no descriptor behind.
 */
#ifndef MK_UNIT_NET_DIAL_CALLS_H
#define MK_UNIT_NET_DIAL_CALLS_H

#include "dial_places.h"
#include "dial_fixture.h"

static struct mk_arena arena;
static unsigned descriptors;

enum { NOT_YET = -100000 };

static struct mk_dial dials[2];
static int results[2];
static unsigned calls;

static inline void on_done(struct mk_dial *dial, int fd)
{
    assert_null(dial->loop);
    calls++;
    results[dial - dials] = fd;
    memset(dial, 0xa5, sizeof(*dial)); /* it is ours again */
}

static inline const struct mk_dial_target *target_of(const char *text)
{
    const struct mk_dial_target *target;
    const char *error;
    assert_int_equal(mk_dial_target_parse(&arena, mk_str_c(text), 0, &target, &error), 0);
    return target;
}

static inline void start_nth(unsigned nth, const char *text, const struct mk_dial_options *options)
{
    results[nth] = NOT_YET;
    mk_dial_start(&dials[nth], &loop, target_of(text), options, on_done);
    assert_int_equal(results[nth], NOT_YET);
}

static inline void start(const char *text, uint32_t timeout_ms)
{
    struct mk_dial_options options = {.timeout_ms = timeout_ms};
    calls = 0;
    start_nth(0, text, &options);
}

/* Waits, in real time only, until the kernel or a lookup has something to say. */
static inline void await_event(void)
{
    struct pollfd ready = {.fd = loop.poll_fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 5000), 1);
    settle();
}

static inline int result(void)
{
    settle();
    while (results[0] == NOT_YET)
        await_event();
    return results[0];
}

/* The name is known, and no address has answered yet. */
static inline void expect_waiting(void)
{
    settle();
    while (results[0] == NOT_YET && dials[0].name &&
           ((const struct mk__resolver_entry *)dials[0].name)->state != MK__RESOLVER_RESOLVED)
        await_event();
    assert_int_equal(results[0], NOT_YET);
}

static inline void expect_connected(void)
{
    int fd = result();
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    assert_true(fd >= 0);
    assert_int_equal(calls, 1);
    assert_int_equal(poll(&ready, 1, 5000), 1);
    assert_int_equal(ready.revents, POLLOUT);
    close(fd);
}

static inline int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static struct test_host known[8];

static inline int open_test(void **state)
{
    (void)state;
    descriptors = mk_test_descriptors();
    memset(known, 0, sizeof(known));
    n_places = calls = 0;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    open_fixture(known);
    return 0;
}

static inline int close_test(void **state)
{
    (void)state;
    close_places();
    pass(100000); /* no late callback, no timer is left */
    close_fixture();
    mk_arena_release(&arena);
    return mk_test_descriptors() == descriptors ? 0 : -1;
}

#endif
