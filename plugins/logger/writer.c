// SPDX-License-Identifier: Apache-2.0
/*
 * The writer's thread and the registry (writer.h). That both are the process's, and not a generation's, is the point:
 * lines of several generations go to one descriptor, in order.
 *
 *     asleep ─── the first line (alarm) ──► waiting ─── Flush is over, or a ring is half full (urgent) ──► a round
 *        ▲                                                                                                  │
 *        └────────────────────────────── everything is written ◄─────────────────────────────────────────────┘
 */
#include "writer.h"

#include "gate.h"

#include <monkey/arena.h>
#include <monkey/log.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024, BLOCKED_MAX = 64, LAST_WORDS_MS = 1000 };

static struct {
    struct mk_list sinks; /* sinks_lock */
    pthread_t thread;
    bool running; /* sinks_lock */
    int wake_fd;
    _Atomic uint32_t flush_ms;
    _Atomic bool alarm;  /* it knows that there is something, or was told */
    _Atomic bool urgent; /* and that it should not wait for more */
    _Atomic bool reopen, stop;
} writer = {.sinks = {&writer.sinks, &writer.sinks}};

/* ── what others tell it ── */

static void wake(void)
{
    uint64_t one = 1;
    while (write(writer.wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void call(_Atomic bool *what)
{
    if (!atomic_exchange(what, true))
        wake();
}

void channel_send(struct channel *c, size_t bytes)
{
    uint64_t used = queue_commit(&c->queue, bytes);
    /* not later than a gate shuts; a reload may have made the whole queue smaller than its first ring */
    size_t much = (c->queue.first < c->queue.max ? c->queue.first : c->queue.max) / 2;
    if (MK_UNLIKELY(used >= much) && !c->sink->stuck)
        call(&writer.urgent);
    else if (!atomic_load(&writer.alarm))
        call(&writer.alarm);
}

void writer_reopen(void)
{
    pthread_mutex_lock(&sinks_lock);
    if (writer.running)
        call(&writer.reopen);
    pthread_mutex_unlock(&sinks_lock);
}

/* ── the registry ── */

static struct sink *find(const struct target *t)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&writer.sinks, n, save) {
        struct sink *s = MK_OWNER(n, struct sink, node);
        if (s->target.kind == t->kind && mk_str_eq(s->target.path, t->path))
            return s;
    }
    return NULL;
}

static struct sink *add(const struct target *t)
{
    size_t bytes = sizeof(struct sink) + t->path.len + 1;
    struct sink *s = mk_account_alloc(NULL, bytes);
    if (!s)
        return NULL;
    memset(s, 0, bytes);
    memcpy(s + 1, t->path.p, t->path.len);
    s->target = (struct target){t->kind, mk_str((const char *)(s + 1), t->path.len)};
    s->bytes = bytes;
    s->fd = -1;
    mk_list_init(&s->channels);
    mk_list_add(&writer.sinks, &s->node);
    return s;
}

/* Under the lock. */
static void forget_sink(struct sink *s)
{
    mk_list_del(&s->node);
    sink_close(s);
    mk_account_free(NULL, s, s->bytes);
}

static void free_channel(struct channel *c)
{
    queue_release(&c->queue);
    gate_free(c->gate);
    mk_account_free(NULL, c, sizeof(*c));
}

static void forget_channel(struct channel *c)
{
    mk_list_del(&c->node);
    c->sink->lost_gone += c->lost_total;
    if (c->sink->torn == c)
        c->sink->torn = NULL;
    free_channel(c);
}

struct sink *sink_get(const struct target *target)
{
    pthread_mutex_lock(&sinks_lock);
    struct sink *s = find(target);
    if (!s)
        s = add(target);
    if (s)
        s->users++;
    pthread_mutex_unlock(&sinks_lock);
    return s;
}

void sink_put(struct sink *s)
{
    pthread_mutex_lock(&sinks_lock);
    if (--s->users == 0 && writer.running)
        call(&writer.urgent);
    else if (s->users == 0)
        forget_sink(s);
    pthread_mutex_unlock(&sinks_lock);
}

static struct channel *find_channel(struct sink *s, const void *owner)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&s->channels, n, save)
        if (MK_OWNER(n, struct channel, node)->owner == owner)
            return MK_OWNER(n, struct channel, node);
    return NULL;
}

static struct channel *add_channel(struct sink *s, struct mk_loop *owner, size_t bytes, bool wait)
{
    struct channel *c = mk_account_alloc(NULL, sizeof(*c));
    if (!c)
        return NULL;
    memset(c, 0, sizeof(*c));
    c->sink = s;
    c->owner = owner;
    if (queue_init(&c->queue, bytes) < 0 || (wait && !(c->gate = gate_new(owner, &c->queue)))) {
        free_channel(c);
        return NULL;
    }
    mk_list_add(&s->channels, &c->node);
    return c;
}

/* One that exists may be another generation's: its rings stay, what is new counts from now on. */
struct channel *channel_get(struct sink *s, struct mk_loop *owner, size_t bytes, bool wait)
{
    pthread_mutex_lock(&sinks_lock);
    struct channel *c = find_channel(s, owner);
    if (!c)
        c = add_channel(s, owner, bytes, wait);
    else if (wait && !c->gate)
        c->gate = gate_new(owner, &c->queue);
    if (c && wait && !c->gate)
        c = NULL;
    if (c)
        c->queue.max = bytes;
    if (c && c->users++ == 0)
        call(&writer.urgent); /* the log is opened now */
    pthread_mutex_unlock(&sinks_lock);
    return c;
}

void channel_put(struct channel *c)
{
    pthread_mutex_lock(&sinks_lock);
    if (--c->users == 0) {
        c->owner = NULL;
        call(&writer.urgent);
    }
    pthread_mutex_unlock(&sinks_lock);
}

/* ── rounds ── */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct sink *next_sink(struct sink *s)
{
    pthread_mutex_lock(&sinks_lock);
    struct mk_list *n = s ? s->node.next : writer.sinks.next;
    pthread_mutex_unlock(&sinks_lock);
    return n == &writer.sinks ? NULL : MK_OWNER(n, struct sink, node);
}

/* Whose owners have gone, and whose lines are all written. */
static void sweep(struct sink *s)
{
    struct mk_list *n, *save;
    pthread_mutex_lock(&sinks_lock);
    MK_LIST_EACH(&s->channels, n, save) {
        struct channel *c = MK_OWNER(n, struct channel, node);
        if (!c->users && !queue_peek(&c->queue).len)
            forget_channel(c);
    }
    bool gone = !s->users && mk_list_empty(&s->channels);
    if (gone)
        mk_list_del(&s->node);
    pthread_mutex_unlock(&sinks_lock);
    if (!gone)
        return;
    sink_tell_lost(s, 0, true);
    forget_sink(s);
}

static bool has_channels(struct sink *s)
{
    pthread_mutex_lock(&sinks_lock);
    bool has = !mk_list_empty(&s->channels);
    pthread_mutex_unlock(&sinks_lock);
    return has;
}

/* Requests that wait go on where enough was written. */
static void open_gates(struct sink *s)
{
    struct mk_list *n, *save;
    pthread_mutex_lock(&sinks_lock);
    MK_LIST_EACH(&s->channels, n, save) {
        struct channel *c = MK_OWNER(n, struct channel, node);
        if (c->owner) /* else the loop that would take the message may be gone */
            gate_check(c->gate);
    }
    pthread_mutex_unlock(&sinks_lock);
}

/* All logs once. What none of them has left: 0; MK_AGAIN, more at once; MK_DECLINED, later. */
static int serve_all(void)
{
    bool reopen = atomic_exchange(&writer.reopen, false);
    uint64_t now = now_ms();
    int result = 0;
    for (struct sink *s = next_sink(NULL), *next; s; s = next) {
        int r = has_channels(s) ? sink_serve(s, now, reopen) : 0;
        if (r == MK_AGAIN || (r == MK_DECLINED && result == 0))
            result = r;
        open_gates(s);
        sink_tell_lost(s, now, false);
        next = next_sink(s);
        sweep(s);
    }
    return result;
}

/* The logs that will say when they take lines again. */
static nfds_t watch(struct pollfd *list)
{
    nfds_t n = 0;
    list[n++] = (struct pollfd){.fd = writer.wake_fd, .events = POLLIN};
    for (struct sink *s = next_sink(NULL); s && n < BLOCKED_MAX; s = next_sink(s))
        if (s->blocked && s->fd >= 0)
            list[n++] = (struct pollfd){.fd = s->fd, .events = POLLOUT};
    return n;
}

/* False when the time is over. */
static bool wait(int timeout_ms)
{
    struct pollfd list[BLOCKED_MAX];
    uint64_t count;
    nfds_t n = watch(list);
    int ready = poll(list, n, timeout_ms);
    if (ready > 0 && list[0].revents && read(writer.wake_fd, &count, sizeof(count)) < 0)
        return true;
    for (nfds_t i = 1; ready > 0 && i < n; i++)
        if (list[i].revents)
            writer.urgent = true;
    return ready != 0;
}

static bool is_called(void)
{
    return writer.urgent || writer.reopen || writer.stop;
}

/* Sleeps while there is nothing to do, then for as long as lines may wait for company. */
static void sleep_until_due(bool something_left)
{
    if (something_left)
        writer.alarm = true;
    while (!writer.alarm && !is_called())
        wait(-1);
    uint64_t until = now_ms() + writer.flush_ms;
    for (uint64_t now; !is_called() && (now = now_ms()) < until;)
        wait((int)(until - now));
}

/* Whoever does not take lines now has a little time. */
static void write_last(void)
{
    uint64_t until = now_ms() + LAST_WORDS_MS, now;
    int r;
    while ((r = serve_all()) != 0 && (now = now_ms()) < until) {
        bool may_pass = r == MK_AGAIN;
        for (struct sink *s = next_sink(NULL); s; s = next_sink(s))
            may_pass |= s->blocked;
        if (!may_pass)
            break;
        if (r == MK_DECLINED)
            wait((int)(until - now));
    }
    for (struct sink *s = next_sink(NULL); s; s = next_sink(s)) {
        sink_give_up(s);
        sink_tell_lost(s, 0, true);
    }
}

static void *run(void *ctx)
{
    int r = 0;
    prctl(PR_SET_NAME, "monkey: logger");
    while (!writer.stop) {
        if (r != MK_AGAIN)
            sleep_until_due(r != 0);
        /* before the rings are looked at: whoever puts a line in later calls again */
        atomic_exchange(&writer.alarm, false);
        atomic_exchange(&writer.urgent, false);
        r = serve_all();
    }
    write_last();
    return ctx;
}

/* ── start and stop ── */

static int start_thread(void)
{
    pthread_attr_t attr;
    sigset_t all, before;
    writer.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (writer.wake_fd < 0)
        return -errno;
    writer.stop = false;
    writer.urgent = false;
    writer.alarm = false;
    writer.reopen = false;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&writer.thread, &attr, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (err)
        close(writer.wake_fd);
    return -err;
}

int writer_start(uint32_t flush_ms)
{
    pthread_mutex_lock(&sinks_lock);
    writer.flush_ms = flush_ms;
    int err = writer.running ? 0 : start_thread();
    writer.running = err == 0;
    pthread_mutex_unlock(&sinks_lock);
    return err;
}

void writer_stop(void)
{
    if (!writer.running)
        return;
    call(&writer.stop);
    pthread_join(writer.thread, NULL);
    close(writer.wake_fd);
    writer.running = false;
    for (struct sink *s = next_sink(NULL), *next; s; s = next) {
        next = next_sink(s);
        sweep(s);
    }
}
