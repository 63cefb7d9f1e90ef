// SPDX-License-Identifier: Apache-2.0
/*
 * Counting and refusing (server/capacity.h). A refusal costs as little as it can: nothing is parsed, nothing is waited
 * for.
 */
#include "server/capacity.h"

#include "base/log.h"
#include "http/date.h"
#include "server/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THROWN_AWAY_MAX = 256 * 1024 };

/* An answer to any request, HEAD too. */
#define BEFORE_DATE "HTTP/1.1 503 Service Unavailable\r\nDate: "
#define AFTER_DATE "\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

static void say_busy(int fd)
{
    char answer[] = BEFORE_DATE "Sun, 06 Nov 1994 08:49:37 GMT" AFTER_DATE, *date = answer + sizeof(BEFORE_DATE) - 1;
    mk__date_format(time(NULL), date);
    date[MK__DATE_BYTES] = AFTER_DATE[0]; /* where its NUL was */
    send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void fill_spare(struct mk__capacity *c)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int before = fd >= 0 ? atomic_exchange(&c->spare, fd) : 0;
    if (before > 0)
        close(before);
}

static void empty_spare(struct mk__capacity *c)
{
    int fd = atomic_exchange(&c->spare, 0);
    if (fd > 0)
        close(fd);
}

void mk__capacity_set(struct mk__capacity *c, const struct mk__settings *settings)
{
    c->connections_max = (unsigned)settings->connections_max;
    c->plan = settings->over_capacity;
    if (c->plan == MK__RESIST)
        empty_spare(c);
    else if (!c->spare)
        fill_spare(c);
}

void mk__capacity_release(struct mk__capacity *c)
{
    empty_spare(c);
}

bool mk__capacity_is_full(const struct mk__capacity *c)
{
    unsigned max = atomic_load_explicit(&c->connections_max, memory_order_relaxed);
    return max && atomic_load_explicit(&c->open, memory_order_relaxed) >= max;
}

bool mk__capacity_enter(struct mk__capacity *c)
{
    unsigned max = atomic_load_explicit(&c->connections_max, memory_order_relaxed);
    unsigned before = atomic_fetch_add_explicit(&c->open, 1, memory_order_relaxed);
    if (!max || before < max || mk__capacity_resists(c))
        return true;
    mk__capacity_leave(c);
    return false;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool is_log_due(struct mk__capacity *c)
{
    uint64_t last = c->complained_ms, before = last;
    return mk__log_due(&last, now_ms()) && atomic_compare_exchange_strong(&c->complained_ms, &before, last);
}

unsigned mk__capacity_made_room(struct mk__capacity *c, unsigned closed)
{
    unsigned evicted = atomic_fetch_add(&c->evicted, closed) + closed;
    if (closed && is_log_due(c))
        mk_log_warn("over capacity: %u connections were closed so far to make room for new ones (OverCapacity Resist)",
                    evicted);
    return closed;
}

static void complain(struct mk__capacity *c)
{
    unsigned refused = atomic_fetch_add(&c->refused, 1) + 1;
    if (is_log_due(c))
        mk_log_warn("over capacity: %u connections were refused so far (OverCapacity %s)", refused,
                    c->plan == MK__DROP ? "Drop" : "TooBusy");
}

/* Can clients read what is written without their transport's help? */
static bool is_plain(const struct mk__listening *listening)
{
    const struct mk_transport *transport = mk__sockets_way(listening).transport;
    return transport && !transport->open;
}

/*
 * Unread bytes would turn the close into a reset, which can overtake the answer. By syscall(2): ThreadSanitizer
 * believes that recv() writes to the buffer, which MSG_TRUNC does without.
 */
static void discard_input(int fd)
{
    syscall(SYS_recvfrom, fd, NULL, (size_t)THROWN_AWAY_MAX, MSG_TRUNC | MSG_DONTWAIT, NULL, NULL);
}

void mk__capacity_refuse(struct mk__capacity *c, const struct mk__listening *listening, int fd)
{
    if (c->plan == MK__TOO_BUSY && is_plain(listening)) {
        discard_input(fd);
        say_busy(fd);
        shutdown(fd, SHUT_WR);
    }
    close(fd);
    complain(c);
}

int mk__capacity_refuse_next(struct mk__capacity *c, const struct mk__listening *listening, int listener, int err)
{
    if (err != EMFILE && err != ENFILE)
        return err;
    int spare = atomic_exchange(&c->spare, 0);
    if (spare > 0)
        close(spare);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    err = fd < 0 ? errno : 0;
    if (fd >= 0)
        mk__capacity_refuse(c, listening, fd);
    fill_spare(c);
    return err;
}
