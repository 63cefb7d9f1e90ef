// SPDX-License-Identifier: Apache-2.0
/*
 * A loop with real descriptors on a clock of the test's: time passes only when nothing is ready, so that a wait of
 * ten seconds is tested to the millisecond at once. And a resolver that knows what the test has said.
 */
#ifndef MK_UNIT_NET_DIAL_FIXTURE_H
#define MK_UNIT_NET_DIAL_FIXTURE_H

#include "folder.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "net/resolver.h"

static struct mk_loop loop;
static uint64_t now_ms, limit_ms;
static bool is_idle, refuses_events;

static uint64_t test_now_ms(void *ctx)
{
    (void)ctx;
    return now_ms;
}

static int64_t test_wall_seconds(void *ctx)
{
    (void)ctx;
    return 0;
}

static uint64_t test_now_us(void *ctx)
{
    return test_now_ms(ctx) * 1000;
}

static const struct mk__clock test_clock = {.now_ms = test_now_ms,
                                            .now_us = test_now_us,
                                            .wall_seconds = test_wall_seconds};

static int test_open(struct mk_loop *l)
{
    return mk__poller_epoll.open(l);
}

static void test_close(struct mk_loop *l)
{
    mk__poller_epoll.close(l);
}

static int test_control(struct mk_loop *l, int op, struct mk_event *event, uint32_t events)
{
    return refuses_events && op == EPOLL_CTL_ADD ? -ENOSPC : mk__poller_epoll.control(l, op, event, events);
}

static int test_wait(struct mk_loop *l, int timeout_ms)
{
    int n = mk__poller_epoll.wait(l, 0);
    if (n || timeout_ms == 0)
        return n;
    is_idle = timeout_ms < 0 || now_ms + (uint64_t)timeout_ms > limit_ms;
    now_ms = is_idle ? limit_ms : now_ms + (uint64_t)timeout_ms;
    return 0;
}

static const struct mk__poller test_poller = {test_open, test_close, test_control, test_wait};

static inline void pass(uint64_t ms)
{
    limit_ms = now_ms + ms;
    for (is_idle = false; !is_idle;)
        assert_int_equal(mk__loop_turn(&loop), 0);
}

static inline void settle(void)
{
    pass(0);
}

/* Waits, in real time, until a thread has something to say; it is not read yet. */
static inline void await_wakeup(void)
{
    struct pollfd wakeup = {.fd = loop.wakeup_event.fd, .events = POLLIN};
    assert_int_equal(poll(&wakeup, 1, 5000), 1);
}

/* ── the resolver ── */

struct test_host {
    const char *name;
    int err;
    const char *addrs[10]; /* without port */
};

static const struct test_host *hosts; /* ends without a name */
static atomic_uint asked, answered;   /* lookups that began, and that ended */
static sem_t gate;
static atomic_bool gated; /* each lookup waits for a post */
static unsigned threads_before;

static int find_host(const char *name, struct mk__addr *ret, unsigned max)
{
    const struct test_host *h = hosts;
    unsigned n = 0;
    while (h->name && strcmp(h->name, name) != 0)
        h++;
    if (!h->name || h->err)
        return h->name ? h->err : -ENXIO;
    for (; n < max && h->addrs[n]; n++) {
        ret[n] = (struct mk__addr){0};
        mk__addr_parse_host(mk_str_c(h->addrs[n]), &ret[n]);
    }
    return (int)n;
}

/* How many threads this process has. */
static inline unsigned threads(void)
{
    unsigned n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "Threads: %u", &n) == 1)
            break;
    fclose(f);
    return n;
}

/* There is no notification when a detached thread has ended. */
static inline void await_threads(void)
{
    while (answered < asked || threads() > threads_before)
        sched_yield();
}

static int look_up(const char *name, struct mk__addr *ret, unsigned max)
{
    asked++;
    while (gated && sem_wait(&gate) < 0)
        ;
    int n = find_host(name, ret, max);
    answered++;
    return n;
}

static void *do_nothing(void *ctx)
{
    return ctx;
}

static inline void open_fixture(const struct test_host *known)
{
    pthread_t first; /* sanitizers start their own thread with the first one */
    assert_int_equal(pthread_create(&first, NULL, do_nothing, NULL), 0);
    pthread_join(first, NULL);
    threads_before = threads();
    now_ms = 5000;
    hosts = known;
    asked = answered = 0;
    gated = refuses_events = false;
    sem_init(&gate, 0, 0);
    assert_int_equal(mk__loop_open(&loop, &test_poller, &test_clock, NULL), 0);
    assert_int_equal(mk__resolver_open(&loop, look_up), 0);
}

static inline void close_fixture(void)
{
    mk__resolver_close(&loop);
    mk__loop_close(&loop);
    await_threads();
    sem_destroy(&gate);
}

#endif
