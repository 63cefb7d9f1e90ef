// SPDX-License-Identifier: Apache-2.0
/*
 * Counts and refuses connections (server/listen/limits.h). A refusal costs as little as possible: the request is not
 * parsed, and no event is waited for.
 */
#include "server/listen/limits.h"

#include "base/clock.h"
#include "base/log.h"
#include "http/message/date.h"
#include "server/counts.h"
#include "server/listen/listeners.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DISCARD_BYTES_MAX = 256 * 1024 };

/* A response to any request, HEAD included. */
#define BEFORE_DATE "HTTP/1.1 503 Service Unavailable\r\nDate: "
#define AFTER_DATE "\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

static void send_503(int fd)
{
    char answer[] = BEFORE_DATE "Sun, 06 Nov 1994 08:49:37 GMT" AFTER_DATE, *date = answer + sizeof(BEFORE_DATE) - 1;
    mk__date_format(time(NULL), date);
    date[MK__DATE_BYTES] = AFTER_DATE[0]; /* where its NUL was */
    send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Returns a descriptor above 0, which means none: a program may have closed its stdin. */
static int move_from_0(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 1);
    close(fd);
    return moved;
}

static void open_reserve_fd(struct mk__limits *c)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd == 0)
        fd = move_from_0(fd);
    int before = fd >= 0 ? atomic_exchange(&c->reserve_fd, fd) : 0;
    if (before > 0)
        close(before);
}

static void close_reserve_fd(struct mk__limits *c)
{
    int fd = atomic_exchange(&c->reserve_fd, 0);
    if (fd > 0)
        close(fd);
}

static struct rlimit get_fd_limits(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    return limit;
}

uint64_t mk__limits_hard_fd_limit(void)
{
    return get_fd_limits().rlim_max;
}

/* A reload without FDLimit sets the limit that was in force before. */
static void set_fd_limit(struct mk__limits *c, uint64_t wanted)
{
    struct rlimit limit = get_fd_limits();
    if (!wanted && !c->fd_limit_before)
        return;
    if (!c->fd_limit_before)
        c->fd_limit_before = limit.rlim_cur;
    if (!wanted)
        wanted = c->fd_limit_before;
    limit.rlim_cur = wanted < limit.rlim_max ? (rlim_t)wanted : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted)
        mk_log_warn("FDLimit %" PRIu64 " is more than the hard limit (ulimit -Hn), which is used instead: %" PRIu64,
                    wanted, (uint64_t)limit.rlim_max);
}

/* Three quarters of the limit: below, connections and files do not compete. */
static int get_fd_alarm(void)
{
    rlim_t limit = get_fd_limits().rlim_cur;
    return limit > INT_MAX ? INT_MAX : (int)(limit / 4 * 3);
}

void mk__limits_set(struct mk__limits *c, const struct mk__settings *settings)
{
    set_fd_limit(c, (uint64_t)settings->descriptors_max);
    c->fd_alarm = get_fd_alarm();
    c->connections_max = (unsigned)settings->connections_max;
    c->policy = settings->over_capacity;
    if (c->policy == MK__OVER_CAPACITY_RESIST)
        close_reserve_fd(c);
    else if (!c->reserve_fd)
        open_reserve_fd(c);
}

void mk__limits_release(struct mk__limits *c)
{
    close_reserve_fd(c);
}

bool mk__limits_is_full(const struct mk__limits *c)
{
    unsigned max = atomic_load_explicit(&c->connections_max, memory_order_relaxed);
    return max && atomic_load_explicit(&c->open, memory_order_relaxed) >= max;
}

bool mk__limits_add_conn(struct mk__limits *c)
{
    unsigned max = atomic_load_explicit(&c->connections_max, memory_order_relaxed);
    unsigned before = atomic_fetch_add_explicit(&c->open, 1, memory_order_relaxed);
    if (!max || before < max || mk__limits_evicts(c))
        return true;
    mk__limits_remove_conn(c);
    return false;
}

static bool is_log_due(struct mk__limits *c)
{
    uint64_t last = c->warned_ms, before = last;
    uint64_t now_ms = mk__clock_system.now_ms(mk__clock_system.ctx);
    return mk__log_is_due(&last, now_ms) && atomic_compare_exchange_strong(&c->warned_ms, &before, last);
}

unsigned mk__limits_count_evicted(struct mk__limits *c, unsigned closed)
{
    unsigned evicted = atomic_fetch_add(&c->evicted, closed) + closed;
    mk__counts_add(MK__COUNT_EVICTED, closed);
    if (closed && is_log_due(c))
        mk_log_warn("over capacity: %u connections were closed so far to make room for new ones (OverCapacity Resist)",
                    evicted);
    return closed;
}

static void warn_refused(struct mk__limits *c)
{
    unsigned refused = atomic_fetch_add(&c->refused, 1) + 1;
    mk__counts_add(MK__COUNT_REFUSED_OVER_CAPACITY, 1);
    if (is_log_due(c))
        mk_log_warn("over capacity: %u connections were refused so far (OverCapacity %s)", refused,
                    c->policy == MK__OVER_CAPACITY_DROP ? "Drop" : "TooBusy");
}

/* Returns whether clients can read a response that bypasses the transport. */
static bool is_plaintext(const struct mk__listener *listener)
{
    const struct mk_transport *transport = mk__listeners_mode(listener).transport;
    return transport && !transport->open;
}

/*
 * Unread bytes would turn close(2) into a reset, which can overtake the response. Uses syscall(2), because
 * ThreadSanitizer assumes that recv() writes to the buffer; with MSG_TRUNC it does not.
 */
static void discard_input(int fd)
{
    syscall(SYS_recvfrom, fd, NULL, (size_t)DISCARD_BYTES_MAX, MSG_TRUNC | MSG_DONTWAIT, NULL, NULL);
}

void mk__limits_reject(struct mk__limits *c, const struct mk__listener *listener, int fd)
{
    assert(fd >= 0);
    if (c->policy == MK__OVER_CAPACITY_TOO_BUSY && is_plaintext(listener)) {
        discard_input(fd);
        send_503(fd);
        shutdown(fd, SHUT_WR);
    }
    close(fd);
    warn_refused(c);
}

int mk__limits_reject_next(struct mk__limits *c, const struct mk__listener *listener, int listen_fd, int err)
{
    assert(err > 0);
    if (err != EMFILE && err != ENFILE)
        return err;
    int reserve_fd = atomic_exchange(&c->reserve_fd, 0);
    if (reserve_fd > 0)
        close(reserve_fd);
    int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    err = fd < 0 ? errno : 0;
    if (fd >= 0)
        mk__limits_reject(c, listener, fd);
    open_reserve_fd(c);
    return err;
}
