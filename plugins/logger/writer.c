// SPDX-License-Identifier: Apache-2.0
/*
 * The writer's thread and the registry (writer.h). Both belong to the process and not to a generation, so that lines of
 * several generations go to one descriptor in order.
 *
 *     asleep ── the first line (notified) ──► waiting ── Flush is over, or a ring is half full (flush_now) ──► writing
 *        ▲                                                                                                       │
 *        └──────────────────────────────────────── all is written ◄──────────────────────────────────────────────┘
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

enum { STACK_BYTES = 64 * 1024, BLOCKED_MAX = 64, FINAL_WRITE_MS = 1000 };

static struct {
    struct mk_list targets; /* log_targets_lock */
    pthread_t thread;
    bool running; /* log_targets_lock */
    int wake_fd;
    _Atomic uint32_t flush_ms;
    _Atomic bool notified;  /* it was told that there are lines */
    _Atomic bool flush_now; /* it was told not to wait for more */
    _Atomic bool reopen, stop;
} writer = {.targets = {&writer.targets, &writer.targets}};

/* ── messages to the writer ── */

static void wake_writer(void)
{
    uint64_t one = 1;
    while (write(writer.wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void signal_writer(_Atomic bool *what)
{
    if (!atomic_exchange(what, true))
        wake_writer();
}

void writer_send(struct log_producer *c, size_t bytes)
{
    uint64_t used = queue_commit(&c->queue, bytes);
    /* before a gate closes; a reload may have made the maximum smaller than the first ring */
    size_t much = (c->queue.first < c->queue.max ? c->queue.first : c->queue.max) / 2;
    if (MK_UNLIKELY(used >= much) && !c->target->stalled)
        signal_writer(&writer.flush_now);
    else if (!atomic_load(&writer.notified))
        signal_writer(&writer.notified);
}

void writer_reopen(void)
{
    pthread_mutex_lock(&log_targets_lock);
    if (writer.running)
        signal_writer(&writer.reopen);
    pthread_mutex_unlock(&log_targets_lock);
}

/* ── the registry ── */

static struct log_target *find_target(const struct log_dest *t)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&writer.targets, n, save) {
        struct log_target *s = MK_CONTAINER_OF(n, struct log_target, node);
        if (s->dest.kind == t->kind && mk_str_eq(s->dest.path, t->path))
            return s;
    }
    return NULL;
}

static struct log_target *add_target(const struct log_dest *t)
{
    size_t bytes = sizeof(struct log_target) + t->path.len + 1;
    struct log_target *s = mk_account_alloc(NULL, bytes);
    if (!s)
        return NULL;
    memset(s, 0, bytes);
    memcpy(s + 1, t->path.p, t->path.len);
    s->dest = (struct log_dest){t->kind, mk_str((const char *)(s + 1), t->path.len)};
    s->bytes = bytes;
    s->fd = -1;
    mk_list_init(&s->producers);
    mk_list_add(&writer.targets, &s->node);
    return s;
}

/* With log_targets_lock, or when no other thread can find the target. */
static void remove_target(struct log_target *s)
{
    mk_list_del(&s->node);
    log_target_close(s);
    mk_account_free(NULL, s, s->bytes);
}

static void free_producer(struct log_producer *c)
{
    queue_release(&c->queue);
    gate_free(c->gate);
    mk_account_free(NULL, c, sizeof(*c));
}

static void remove_producer(struct log_producer *c)
{
    mk_list_del(&c->node);
    c->target->lost_closed += c->lost_total;
    if (c->target->partial == c)
        c->target->partial = NULL;
    free_producer(c);
}

struct log_target *writer_get_target(const struct log_dest *dest)
{
    pthread_mutex_lock(&log_targets_lock);
    struct log_target *s = find_target(dest);
    if (!s)
        s = add_target(dest);
    if (s)
        s->users++;
    pthread_mutex_unlock(&log_targets_lock);
    return s;
}

void writer_put_target(struct log_target *s)
{
    pthread_mutex_lock(&log_targets_lock);
    if (--s->users == 0 && writer.running)
        signal_writer(&writer.flush_now);
    else if (s->users == 0)
        remove_target(s);
    pthread_mutex_unlock(&log_targets_lock);
}

static struct log_producer *find_producer(struct log_target *s, const void *owner)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&s->producers, n, save)
        if (MK_CONTAINER_OF(n, struct log_producer, node)->owner == owner)
            return MK_CONTAINER_OF(n, struct log_producer, node);
    return NULL;
}

static struct log_producer *add_producer(struct log_target *s, struct mk_loop *owner, size_t bytes, bool wait)
{
    struct log_producer *c = mk_account_alloc(NULL, sizeof(*c));
    if (!c)
        return NULL;
    memset(c, 0, sizeof(*c));
    c->target = s;
    c->owner = owner;
    if (queue_init(&c->queue, bytes) < 0 || (wait && !(c->gate = gate_new(owner, &c->queue)))) {
        free_producer(c);
        return NULL;
    }
    mk_list_add(&s->producers, &c->node);
    return c;
}

/* A producer may be shared with another generation: its rings stay, the new settings apply from now on. */
struct log_producer *writer_get_producer(struct log_target *s, struct mk_loop *owner, size_t bytes, bool wait)
{
    pthread_mutex_lock(&log_targets_lock);
    struct log_producer *c = find_producer(s, owner);
    if (!c)
        c = add_producer(s, owner, bytes, wait);
    else if (wait && !c->gate)
        c->gate = gate_new(owner, &c->queue);
    if (c && wait && !c->gate)
        c = NULL;
    if (c)
        c->queue.max = bytes;
    if (c && c->users++ == 0)
        signal_writer(&writer.flush_now); /* so that the log is opened now */
    pthread_mutex_unlock(&log_targets_lock);
    return c;
}

void writer_put_producer(struct log_producer *c)
{
    pthread_mutex_lock(&log_targets_lock);
    if (--c->users == 0) {
        c->owner = NULL;
        signal_writer(&writer.flush_now);
    }
    pthread_mutex_unlock(&log_targets_lock);
}

/* ── rounds ── */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct log_target *next_target(struct log_target *s)
{
    pthread_mutex_lock(&log_targets_lock);
    struct mk_list *n = s ? s->node.next : writer.targets.next;
    pthread_mutex_unlock(&log_targets_lock);
    return n == &writer.targets ? NULL : MK_CONTAINER_OF(n, struct log_target, node);
}

/* Removes producers that were released and whose lines are all written; then the target, if it is unused. */
static void remove_unused(struct log_target *s)
{
    struct mk_list *n, *save;
    pthread_mutex_lock(&log_targets_lock);
    MK_LIST_EACH(&s->producers, n, save) {
        struct log_producer *c = MK_CONTAINER_OF(n, struct log_producer, node);
        if (!c->users && !queue_peek(&c->queue).len)
            remove_producer(c);
    }
    bool gone = !s->users && mk_list_empty(&s->producers);
    if (gone)
        mk_list_del(&s->node);
    pthread_mutex_unlock(&log_targets_lock);
    if (!gone)
        return;
    log_target_report_lost(s, 0, true);
    remove_target(s);
}

static bool has_producers(struct log_target *s)
{
    pthread_mutex_lock(&log_targets_lock);
    bool has = !mk_list_empty(&s->producers);
    pthread_mutex_unlock(&log_targets_lock);
    return has;
}

/* Opens the gates of producers that have room again. */
static void open_gates(struct log_target *s)
{
    struct mk_list *n, *save;
    pthread_mutex_lock(&log_targets_lock);
    MK_LIST_EACH(&s->producers, n, save) {
        struct log_producer *c = MK_CONTAINER_OF(n, struct log_producer, node);
        if (c->owner) /* else the loop of the gate may be gone */
            gate_check(c->gate);
    }
    pthread_mutex_unlock(&log_targets_lock);
}

/* Writes all logs once. Returns 0 (nothing is left), MK_AGAIN (call it again) or MK_DECLINED (try again later). */
static int write_all_targets(void)
{
    bool reopen = atomic_exchange(&writer.reopen, false);
    uint64_t now = now_ms();
    int result = 0;
    for (struct log_target *s = next_target(NULL), *next; s; s = next) {
        int r = has_producers(s) ? log_target_write(s, now, reopen) : 0;
        if (r == MK_AGAIN || (r == MK_DECLINED && result == 0))
            result = r;
        open_gates(s);
        log_target_report_lost(s, now, false);
        next = next_target(s);
        remove_unused(s);
    }
    return result;
}

/* Lists the descriptors to wait for: the eventfd, and logs that are full. */
static nfds_t fill_pollfds(struct pollfd *list)
{
    nfds_t n = 0;
    list[n++] = (struct pollfd){.fd = writer.wake_fd, .events = POLLIN};
    for (struct log_target *s = next_target(NULL); s && n < BLOCKED_MAX; s = next_target(s))
        if (s->blocked && s->fd >= 0)
            list[n++] = (struct pollfd){.fd = s->fd, .events = POLLOUT};
    return n;
}

/* Returns false on a timeout. */
static bool wait_for_event(int timeout_ms)
{
    struct pollfd list[BLOCKED_MAX];
    uint64_t count;
    nfds_t n = fill_pollfds(list);
    int ready = poll(list, n, timeout_ms);
    if (ready > 0 && list[0].revents && read(writer.wake_fd, &count, sizeof(count)) < 0)
        return true;
    for (nfds_t i = 1; ready > 0 && i < n; i++)
        if (list[i].revents)
            writer.flush_now = true;
    return ready != 0;
}

static bool is_signalled(void)
{
    return writer.flush_now || writer.reopen || writer.stop;
}

/* Sleeps until there are lines, then for Flush or until it is told not to wait. */
static void sleep_until_due(bool something_left)
{
    if (something_left)
        writer.notified = true;
    while (!writer.notified && !is_signalled())
        wait_for_event(-1);
    uint64_t until = now_ms() + writer.flush_ms;
    for (uint64_t now; !is_signalled() && (now = now_ms()) < until;)
        wait_for_event((int)(until - now));
}

/* Writes what is left at the end, for FINAL_WRITE_MS at most. */
static void write_remaining(void)
{
    uint64_t until = now_ms() + FINAL_WRITE_MS, now;
    int r;
    while ((r = write_all_targets()) != 0 && (now = now_ms()) < until) {
        bool may_pass = r == MK_AGAIN;
        for (struct log_target *s = next_target(NULL); s; s = next_target(s))
            may_pass |= s->blocked;
        if (!may_pass)
            break;
        if (r == MK_DECLINED)
            wait_for_event((int)(until - now));
    }
    for (struct log_target *s = next_target(NULL); s; s = next_target(s)) {
        log_target_discard(s);
        log_target_report_lost(s, 0, true);
    }
}

static void *run_writer(void *ctx)
{
    int r = 0;
    prctl(PR_SET_NAME, "monkey: logger");
    while (!writer.stop) {
        if (r != MK_AGAIN)
            sleep_until_due(r != 0);
        /* before the rings are read: a line that is added later notifies again */
        atomic_exchange(&writer.notified, false);
        atomic_exchange(&writer.flush_now, false);
        r = write_all_targets();
    }
    write_remaining();
    return ctx;
}

/* ── start and stop ── */

static int start_writer_thread(void)
{
    pthread_attr_t attr;
    sigset_t all, before;
    writer.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (writer.wake_fd < 0)
        return -errno;
    writer.stop = false;
    writer.flush_now = false;
    writer.notified = false;
    writer.reopen = false;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&writer.thread, &attr, run_writer, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (err)
        close(writer.wake_fd);
    return -err;
}

int writer_start(uint32_t flush_ms)
{
    pthread_mutex_lock(&log_targets_lock);
    writer.flush_ms = flush_ms;
    int err = writer.running ? 0 : start_writer_thread();
    writer.running = err == 0;
    pthread_mutex_unlock(&log_targets_lock);
    return err;
}

void writer_stop(void)
{
    if (!writer.running)
        return;
    signal_writer(&writer.stop);
    pthread_join(writer.thread, NULL);
    close(writer.wake_fd);
    writer.running = false;
    for (struct log_target *s = next_target(NULL), *next; s; s = next) {
        next = next_target(s);
        remove_unused(s);
    }
}
