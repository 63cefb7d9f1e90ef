// SPDX-License-Identifier: Apache-2.0
/*
 * Accepts connections (server/listen/acceptor.h). When descriptors or memory run out, or every call fails, the acceptor
 * pauses instead of spinning on a socket that stays readable.
 */
#include "server/listen/acceptor.h"

#include "base/log.h"
#include "loop/loop.h"
#include "net/addr.h"
#include "net/listen.h"
#include "server/listen/limits.h"
#include "server/listen/listeners.h"

#include <monkey/base/arena.h>
#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * A batch is one event among those of open connections, each of which waits for it: an accept takes 25 us. A turn with
 * many events is long, and new connections would wait for many such turns: its batch has a quarter of their number.
 */
enum { BATCH_MIN = 16, BATCH_SHARE = 4, RETRY_MS = 100, FREE_FDS_MS = 1, FD_RESERVE_MAX = 64 };

static int start_watching(struct mk__acceptor *a);

static bool is_resource_error(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

static const char *describe_error(int err)
{
    return err == EUSERS ? "there are MaxConnections connections" : strerror(err);
}

static void stop_watching(struct mk__acceptor *a, uint32_t delay_ms)
{
    mk_event_del(a->loop, &a->event);
    mk_timer_arm(a->loop, &a->retry, delay_ms);
}

static void pause_accepting(struct mk__acceptor *a, int err)
{
    assert(err > 0 && mk_list_empty(&a->retry.node));
    if (mk__log_is_due(&a->warned_ms, mk_loop_now_ms(a->loop)))
        mk_log_warn("accept: %s; trying again every %d ms", describe_error(err), RETRY_MS);
    stop_watching(a, RETRY_MS);
}

/* Errors of the connection that was to be accepted, not of the listening socket: accept(2). */
static bool is_transient_error(int err)
{
    return err == ECONNABORTED || err == EINTR || err == EPROTO || err == EPERM || err == ENETDOWN ||
           err == ENOPROTOOPT || err == EHOSTDOWN || err == ENONET || err == EHOSTUNREACH || err == ENETUNREACH;
}

/* Returns the first descriptor number that is kept for files: a connection without one can hardly be answered. */
static int get_fd_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
        return INT_MAX;
    int all = (int)limit.rlim_cur;
    return all - (all / 8 < FD_RESERVE_MAX ? all / 8 : FD_RESERVE_MAX);
}

/* At MaxConnections idle connections are closed only when another connection waits. */
static bool has_pending(const struct mk__acceptor *a)
{
    struct pollfd one = {.fd = a->event.fd, .events = POLLIN};
    return poll(&one, 1, 0) != 0;
}

/* Asks others for descriptors. Returns whether it was the first time, so that accepting is to be tried again soon. */
static bool ask_for_fds(struct mk__acceptor *a, int err)
{
    if (!a->callbacks->free_fds || a->asked_for_fds || (err != EMFILE && err != ENFILE))
        return false;
    a->callbacks->free_fds(a);
    return a->asked_for_fds = true;
}

/* Returns the descriptor, or -errno. */
static int accept_next(const struct mk__acceptor *a, struct mk__accepted *ret)
{
    struct mk__addr addr;
    addr.len = sizeof(addr.un);
    ret->fd = accept4(a->event.fd, &addr.sa, &addr.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (ret->fd < 0)
        return -errno;
    mk__addr_to_address(&addr, &ret->peer);
    return ret->fd;
}

static int serve_accepted(struct mk__acceptor *a, const struct mk__accepted *accepted)
{
    a->asked_for_fds = false;
    int fd = accepted->fd, r = a->callbacks->on_accept(a, accepted);
    if (r == -ENOMEM && !a->callbacks->evict(a))
        return ENOMEM;
    if (fd >= a->fd_limit && !a->callbacks->evict(a))
        return EMFILE;
    return r == MK_AGAIN ? EBUSY : 0;
}

/*
 * Accepts one connection. Returns 0, the positive errno for which the batch ends (EBUSY: descriptors become free when
 * the turn ends), or -errno: only this connection could not be accepted.
 */
static int accept_one(struct mk__acceptor *a)
{
    bool evicts = mk__limits_evicts(a->limits);
    if (evicts && mk__limits_is_full(a->limits))
        return !has_pending(a) ? EAGAIN : a->callbacks->evict(a) ? 0 : EUSERS;
    struct mk__accepted accepted;
    int fd = accept_next(a, &accepted), err = -fd;
    if (fd >= 0 && (evicts || fd < a->fd_limit) && mk__limits_add_conn(a->limits))
        return serve_accepted(a, &accepted);
    if (fd >= 0) {
        mk__limits_reject(a->limits, a->listener, fd);
        return 0;
    }
    if (is_transient_error(err))
        return fd;
    if (ask_for_fds(a, err))
        return EBUSY;
    if (is_resource_error(err))
        return !evicts                  ? mk__limits_reject_next(a->limits, a->listener, a->event.fd, err)
               : a->callbacks->evict(a) ? 0
                                        : err;
    return err;
}

/*
 * Accepts a batch of connections. Returns 0, or the positive errno that ended it. If no connection of a whole batch
 * could be accepted, that errno ends it, too: something refuses every call, such as a security module or a sandbox.
 */
static int accept_batch(struct mk__acceptor *a)
{
    int share = a->loop->batch_len / BATCH_SHARE, most = share > BATCH_MIN ? share : BATCH_MIN, err = 0, failed = 0;
    for (int i = 0; i < most && err <= 0; i++) {
        err = accept_one(a);
        failed += err < 0;
    }
    return err > 0 ? err : failed == most ? -err : 0;
}

static void on_ready(struct mk_event *event, uint32_t events)
{
    struct mk__acceptor *a = MK_CONTAINER_OF(event, struct mk__acceptor, event);
    (void)events;
    int err = accept_batch(a);
    if (err == EINVAL)
        mk_event_del(a->loop, &a->event); /* another worker has shut the shared socket down */
    else if (err == EBUSY && a->asked_for_fds)
        stop_watching(a, FREE_FDS_MS);
    else if (err != 0 && err != EAGAIN && err != EBUSY)
        pause_accepting(a, err);
}

/* The lowest free number tells whether the descriptors below the limit are all in use. */
static bool is_short_of_fds(const struct mk__acceptor *a)
{
    int fd = fcntl(a->event.fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0)
        close(fd);
    return fd < 0 || fd >= a->fd_limit;
}

static void on_retry(struct mk_timer *timer)
{
    struct mk__acceptor *a = MK_CONTAINER_OF(timer, struct mk__acceptor, retry);
    assert(a->open);
    if (a->asked_for_fds)
        a->callbacks->free_fds(a); /* what was given back in the last turn is closed now */
    bool waits = mk__limits_evicts(a->limits) && is_short_of_fds(a) && !a->callbacks->evict(a);
    if (waits || start_watching(a) < 0)
        mk_timer_arm(a->loop, &a->retry, RETRY_MS);
}

static int start_watching(struct mk__acceptor *a)
{
    a->event.ready = on_ready;
    return mk_event_add(a->loop, &a->event, EPOLLIN | (a->exclusive ? EPOLLEXCLUSIVE : 0));
}

int mk__acceptor_open(struct mk__acceptor *a, struct mk_loop *loop, int fd, bool exclusive,
                      const struct mk__acceptor_callbacks *callbacks, void *ctx)
{
    assert(fd >= 0 && a->limits && !a->open);
    *a = (struct mk__acceptor){.loop = loop,
                               .callbacks = callbacks,
                               .ctx = ctx,
                               .limits = a->limits,
                               .listener = a->listener,
                               .exclusive = exclusive,
                               .fd_limit = get_fd_limit(),
                               .event.fd = fd};
    mk_timer_init(&a->retry, on_retry);
    int err = start_watching(a);
    a->open = err == 0;
    return err;
}

void mk__acceptor_retry(struct mk__acceptor *a)
{
    if (!a->open || mk_list_empty(&a->retry.node))
        return;
    mk_timer_cancel(&a->retry);
    on_retry(&a->retry);
}

void mk__acceptor_update_fd_limit(struct mk__acceptor *a)
{
    a->fd_limit = get_fd_limit();
}

void mk__acceptor_stop(struct mk__acceptor *a)
{
    if (!a->open)
        return;
    a->open = false;
    mk_event_del(a->loop, &a->event);
    mk_timer_cancel(&a->retry);
}

void mk__acceptor_close(struct mk__acceptor *a)
{
    if (!a->open)
        return;
    if (a->listener && a->listener->owner != MK__LISTENER_OWNED) { /* another process accepts what waits */
        mk__acceptor_stop(a);
        return;
    }
    bool is_unix = a->listener && a->listener->addr.sa.sa_family == AF_UNIX;
    int err = 0;
    if (is_unix)
        shutdown(a->event.fd, SHUT_RD); /* new connections are refused at once; those in the queue stay there */
    else
        mk__listen_retire(a->event.fd);
    while (err == 0 || err == EBUSY)
        err = accept_batch(a);
    mk__acceptor_stop(a);
    if (!is_unix)
        shutdown(a->event.fd, SHUT_RD); /* which resets those in the queue */
}

/* ── the acceptors of a loop ── */

void mk__acceptors_free(struct mk__acceptors *list)
{
    for (unsigned i = 0; i < list->n; i++)
        mk_account_free(NULL, list->items[i], sizeof(*list->items[i]));
    mk_account_free(NULL, list->items, list->n * sizeof(struct mk__acceptor *));
    *list = (struct mk__acceptors){0};
}

static int add_acceptor(struct mk__acceptors *list, const struct mk__listener *listener, int fd)
{
    struct mk__acceptor **items = mk_account_alloc(NULL, (list->n + 1) * sizeof(struct mk__acceptor *));
    struct mk__acceptor *one = mk_account_alloc(NULL, sizeof(*one));
    if (!items || !one) {
        mk_account_free(NULL, items, 0);
        mk_account_free(NULL, one, 0);
        return -ENOMEM;
    }
    *one = (struct mk__acceptor){.event.fd = fd, .listener = listener};
    if (list->n)
        memcpy(items, list->items, list->n * sizeof(*items));
    items[list->n++] = one;
    mk_account_free(NULL, list->items, 0);
    list->items = items;
    return 0;
}

int mk__acceptors_make(struct mk__acceptors *list, const struct mk__listeners *listeners, unsigned index,
                       unsigned loops)
{
    assert(index < loops);
    *list = (struct mk__acceptors){0};
    MK_LIST_EACH_ITEM(&listeners->open, const struct mk__listener, node, one) {
        for (unsigned i = 0; one->state != MK__LISTENER_UNCLAIMED; i++) {
            int fd = mk__listeners_worker_fd(one, index, loops, i);
            if (fd < 0)
                break;
            if (add_acceptor(list, one, fd) < 0) {
                mk__acceptors_free(list);
                return -ENOMEM;
            }
        }
    }
    return 0;
}

int mk__acceptors_open(struct mk__acceptors *list, mk__acceptors_open_fn open, void *ctx)
{
    int result = 0;
    for (unsigned i = 0; i < list->n; i++) {
        struct mk__acceptor *a = list->items[i];
        int err = a->open ? 0 : open(ctx, a);
        if (err == 0)
            continue;
        mk_log_error("cannot accept at %.*s: %s", MK_STR_ARG(a->listener->name.text), strerror(-err));
        result = err;
    }
    return result;
}

void mk__acceptors_close(struct mk__acceptors *list)
{
    for (unsigned i = 0; i < list->n; i++)
        mk__acceptor_close(list->items[i]);
}

static int find_acceptor(const struct mk__acceptors *list, const struct mk__acceptor *wanted)
{
    for (unsigned i = 0; i < list->n; i++)
        if (list->items[i]->event.fd == wanted->event.fd && list->items[i]->listener == wanted->listener)
            return (int)i;
    return -1;
}

/* Moves the acceptors that both lists have from `old` to `next`: they stay open. */
static void keep_unchanged(struct mk__acceptors *old, struct mk__acceptors *next)
{
    for (unsigned i = 0; i < next->n; i++) {
        int k = find_acceptor(old, next->items[i]);
        if (k < 0)
            continue;
        struct mk__acceptor *kept = old->items[k];
        old->items[k] = next->items[i];
        next->items[i] = kept;
    }
}

void mk__acceptors_replace(struct mk__acceptors *list, struct mk__acceptors *next, mk__acceptors_open_fn open,
                           void *ctx)
{
    struct mk__acceptors old = *list;
    keep_unchanged(&old, next);
    *list = *next;
    *next = old;
    mk__acceptors_open(list, open, ctx);
    for (unsigned i = 0; i < list->n; i++)
        mk__acceptor_update_fd_limit(list->items[i]);
    for (unsigned i = 0; i < old.n; i++)
        if (old.items[i]->listener->state != MK__LISTENER_UNCLAIMED)
            mk__acceptor_stop(old.items[i]);
        else
            mk__acceptor_close(old.items[i]);
}
