// SPDX-License-Identifier: Apache-2.0
/*
 * The writer's thread and the registry (writer.h). Both are the state of the plugin's start and not of a generation, so
 * that lines of several generations go to one descriptor in order.
 *
 *     asleep ── the first line (notified) ──► waiting ── Flush is over, or a ring is half full (flush_now) ──► writing
 *        ▲                                                                                                       │
 *        └──────────────────────────────────────── all is written ◄──────────────────────────────────────────────┘
 */
#include "writer.h"

#include "gate.h"

#include <monkey/arena.h>
#include <monkey/log.h>
#include <monkey/thread_start.h>
#include <monkey/time.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024, BLOCKED_MAX = 64, FINAL_WRITE_MS = 1000 };

struct writer {
    struct mk_list targets; /* log_targets_lock */
    pthread_t thread;
    bool running; /* log_targets_lock */
    int wake_fd;
    _Atomic uint32_t flush_ms;
    _Atomic bool notified;  /* it was told that there are lines */
    _Atomic bool flush_now; /* it was told not to wait for more */
    _Atomic bool reopen, stop;
};

/* ── messages to the writer ── */

static void wake_writer(struct writer *w)
{
    uint64_t one = 1;
    while (write(w->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

/* Sets a flag of the writer, and wakes it if the flag was not set. */
static void signal_writer(struct writer *w, _Atomic bool *what)
{
    if (!atomic_exchange(what, true))
        wake_writer(w);
}

void writer_send(struct log_producer *producer, size_t bytes)
{
    struct writer *w = producer->target->writer;
    assert(bytes > 0 && bytes <= LINE_BYTES_MAX);
    uint64_t used = queue_commit(&producer->queue, bytes);
    /* before a gate closes; a reload may have made the maximum smaller than the first ring */
    size_t flush_bytes =
        (producer->queue.first < producer->queue.max ? producer->queue.first : producer->queue.max) / 2;
    if (MK_UNLIKELY(used >= flush_bytes) && !producer->target->stalled)
        signal_writer(w, &w->flush_now);
    else if (!atomic_load(&w->notified))
        signal_writer(w, &w->notified);
}

void writer_reopen(struct writer *w)
{
    pthread_mutex_lock(&log_targets_lock);
    if (w->running)
        signal_writer(w, &w->reopen);
    pthread_mutex_unlock(&log_targets_lock);
}

/* ── the registry ── */

static struct log_target *find_target(struct writer *w, const struct log_dest *dest)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&w->targets, n, save) {
        struct log_target *target = MK_CONTAINER_OF(n, struct log_target, node);
        if (target->dest.kind == dest->kind && mk_str_eq(target->dest.path, dest->path))
            return target;
    }
    return NULL;
}

static const struct mk_counter *open_lost_counter(const struct log_target *target)
{
    static const struct mk_counter_info info = {"logger", "lost_lines", "lines that could not be written, by log",
                                                MK_COUNTER_SUM};
    return mk_counter_open(&info, &(struct mk_counter_label){"log", mk_str_c(log_target_name(target))}, 1);
}

static struct log_target *add_target(struct writer *w, const struct log_dest *dest)
{
    size_t bytes = sizeof(struct log_target) + dest->path.len + 1;
    struct log_target *target = mk_account_alloc(NULL, bytes);
    if (!target)
        return NULL;
    memset(target, 0, bytes);
    memcpy(target + 1, dest->path.p, dest->path.len);
    target->dest = (struct log_dest){dest->kind, mk_str((const char *)(target + 1), dest->path.len)};
    target->writer = w;
    target->bytes = bytes;
    target->fd = -1;
    target->lost_counter = open_lost_counter(target);
    mk_list_init(&target->producers);
    mk_list_add(&w->targets, &target->node);
    return target;
}

/* With log_targets_lock, or when no other thread can find the target. */
static void remove_target(struct log_target *target)
{
    assert(target->users == 0 && mk_list_empty(&target->producers));
    mk_list_del(&target->node);
    log_target_close(target);
    mk_account_free(NULL, target, target->bytes);
}

static void free_producer(struct log_producer *producer)
{
    queue_release(&producer->queue);
    gate_free(producer->gate);
    mk_account_free(NULL, producer, sizeof(*producer));
}

static void remove_producer(struct log_producer *producer)
{
    assert(producer->users == 0 && !producer->owner);
    mk_list_del(&producer->node);
    producer->target->lost_closed += producer->lost_total;
    if (producer->target->partial == producer)
        producer->target->partial = NULL;
    free_producer(producer);
}

struct log_target *writer_get_target(struct writer *w, const struct log_dest *dest)
{
    pthread_mutex_lock(&log_targets_lock);
    struct log_target *target = find_target(w, dest);
    if (!target)
        target = add_target(w, dest);
    if (target)
        target->users++;
    pthread_mutex_unlock(&log_targets_lock);
    return target;
}

void writer_put_target(struct log_target *target)
{
    struct writer *w = target->writer;
    pthread_mutex_lock(&log_targets_lock);
    assert(target->users > 0);
    if (--target->users == 0 && w->running)
        signal_writer(w, &w->flush_now);
    else if (target->users == 0)
        remove_target(target);
    pthread_mutex_unlock(&log_targets_lock);
}

static struct log_producer *find_producer(struct log_target *target, const void *owner)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&target->producers, n, save)
        if (MK_CONTAINER_OF(n, struct log_producer, node)->owner == owner)
            return MK_CONTAINER_OF(n, struct log_producer, node);
    return NULL;
}

static struct log_producer *add_producer(struct log_target *target, struct mk_loop *owner, size_t bytes, bool wait)
{
    struct log_producer *producer = mk_account_alloc(NULL, sizeof(*producer));
    if (!producer)
        return NULL;
    memset(producer, 0, sizeof(*producer));
    producer->target = target;
    producer->lost_counter = target->lost_counter;
    producer->owner = owner;
    if (queue_init(&producer->queue, bytes) < 0 || (wait && !(producer->gate = gate_new(owner, &producer->queue)))) {
        free_producer(producer);
        return NULL;
    }
    mk_list_add(&target->producers, &producer->node);
    return producer;
}

/* A producer may be shared with another generation: its rings stay, the new settings apply from now on. */
struct log_producer *writer_get_producer(struct log_target *target, struct mk_loop *owner, size_t bytes, bool wait)
{
    struct writer *w = target->writer;
    pthread_mutex_lock(&log_targets_lock);
    assert(w->running && target->users > 0);
    struct log_producer *producer = find_producer(target, owner);
    if (!producer)
        producer = add_producer(target, owner, bytes, wait);
    else if (wait && !producer->gate)
        producer->gate = gate_new(owner, &producer->queue);
    if (producer && wait && !producer->gate)
        producer = NULL;
    if (producer)
        producer->queue.max = bytes;
    if (producer && producer->users++ == 0)
        signal_writer(w, &w->flush_now); /* so that the log is opened now */
    pthread_mutex_unlock(&log_targets_lock);
    return producer;
}

void writer_put_producer(struct log_producer *producer)
{
    struct writer *w = producer->target->writer;
    pthread_mutex_lock(&log_targets_lock);
    assert(producer->users > 0);
    if (--producer->users == 0) {
        producer->owner = NULL;
        signal_writer(w, &w->flush_now);
    }
    pthread_mutex_unlock(&log_targets_lock);
}

/* ── rounds ── */

/* Returns the target behind this one, the first one for NULL; NULL at the end. Only the caller removes targets. */
static struct log_target *next_target(struct writer *w, struct log_target *target)
{
    pthread_mutex_lock(&log_targets_lock);
    struct mk_list *n = target ? target->node.next : w->targets.next;
    pthread_mutex_unlock(&log_targets_lock);
    return n == &w->targets ? NULL : MK_CONTAINER_OF(n, struct log_target, node);
}

/* Removes producers that were released and whose lines are all written; then the target, if it is unused. */
static void remove_unused(struct log_target *target)
{
    struct mk_list *n, *save;
    pthread_mutex_lock(&log_targets_lock);
    MK_LIST_EACH(&target->producers, n, save) {
        struct log_producer *producer = MK_CONTAINER_OF(n, struct log_producer, node);
        if (!producer->users && !queue_peek(&producer->queue).len)
            remove_producer(producer);
    }
    bool gone = !target->users && mk_list_empty(&target->producers);
    if (gone)
        mk_list_del(&target->node);
    pthread_mutex_unlock(&log_targets_lock);
    if (!gone)
        return;
    log_target_report_lost(target, 0, true);
    remove_target(target);
}

static bool has_producers(struct log_target *target)
{
    pthread_mutex_lock(&log_targets_lock);
    bool has = !mk_list_empty(&target->producers);
    pthread_mutex_unlock(&log_targets_lock);
    return has;
}

/* Opens the gates of producers that have room again. */
static void open_gates(struct log_target *target)
{
    struct mk_list *n, *save;
    pthread_mutex_lock(&log_targets_lock);
    MK_LIST_EACH(&target->producers, n, save) {
        struct log_producer *producer = MK_CONTAINER_OF(n, struct log_producer, node);
        if (producer->owner) /* else the loop of the gate may be gone */
            gate_check(producer->gate);
    }
    pthread_mutex_unlock(&log_targets_lock);
}

/* Writes all logs once. Returns 0 (nothing is left), MK_AGAIN (call it again) or MK_DECLINED (try again later). */
static int write_all_targets(struct writer *w)
{
    bool reopen = atomic_exchange(&w->reopen, false);
    uint64_t now = mk_time_monotonic_ms();
    int result = 0;
    for (struct log_target *target = next_target(w, NULL), *next; target; target = next) {
        int r = has_producers(target) ? log_target_write(target, now, reopen) : 0;
        if (r == MK_AGAIN || (r == MK_DECLINED && result == 0))
            result = r;
        open_gates(target);
        log_target_report_lost(target, now, false);
        next = next_target(w, target);
        remove_unused(target);
    }
    return result;
}

/* Lists the descriptors to wait for: the eventfd, and logs that are full. */
static nfds_t fill_pollfds(struct writer *w, struct pollfd *list)
{
    nfds_t n = 0;
    list[n++] = (struct pollfd){.fd = w->wake_fd, .events = POLLIN};
    for (struct log_target *target = next_target(w, NULL); target && n < BLOCKED_MAX; target = next_target(w, target))
        if (target->blocked && target->fd >= 0)
            list[n++] = (struct pollfd){.fd = target->fd, .events = POLLOUT};
    return n;
}

/* Waits for a signal, or until a log that was full can be written. Returns false on a timeout. */
static bool wait_for_event(struct writer *w, int timeout_ms)
{
    struct pollfd list[BLOCKED_MAX];
    uint64_t count;
    nfds_t n = fill_pollfds(w, list);
    int ready = poll(list, n, timeout_ms);
    if (ready > 0 && list[0].revents && read(w->wake_fd, &count, sizeof(count)) < 0)
        return true;
    for (nfds_t i = 1; ready > 0 && i < n; i++)
        if (list[i].revents)
            w->flush_now = true;
    return ready != 0;
}

static bool is_signalled(const struct writer *w)
{
    return w->flush_now || w->reopen || w->stop;
}

/* Sleeps until there are lines, then for Flush or until it is notified not to wait. */
static void sleep_until_due(struct writer *w, bool something_left)
{
    if (something_left)
        w->notified = true;
    while (!w->notified && !is_signalled(w))
        wait_for_event(w, -1);
    uint64_t until = mk_time_monotonic_ms() + w->flush_ms;
    for (uint64_t now; !is_signalled(w) && (now = mk_time_monotonic_ms()) < until;)
        wait_for_event(w, (int)(until - now));
}

/* Writes what is left at the end, for FINAL_WRITE_MS at most. */
static void write_remaining(struct writer *w)
{
    uint64_t until = mk_time_monotonic_ms() + FINAL_WRITE_MS, now;
    int r;
    while ((r = write_all_targets(w)) != 0 && (now = mk_time_monotonic_ms()) < until) {
        bool may_progress = r == MK_AGAIN;
        for (struct log_target *target = next_target(w, NULL); target; target = next_target(w, target))
            may_progress |= target->blocked;
        if (!may_progress)
            break;
        if (r == MK_DECLINED)
            wait_for_event(w, (int)(until - now));
    }
    for (struct log_target *target = next_target(w, NULL); target; target = next_target(w, target)) {
        log_target_discard(target);
        log_target_report_lost(target, 0, true);
    }
}

static void *run_writer(void *ctx)
{
    struct writer *w = ctx;
    int r = 0;
    prctl(PR_SET_NAME, "monkey: logger");
    while (!w->stop) {
        if (r != MK_AGAIN)
            sleep_until_due(w, r != 0);
        /* before the rings are read: a line that is added later notifies again */
        atomic_exchange(&w->notified, false);
        atomic_exchange(&w->flush_now, false);
        r = write_all_targets(w);
    }
    write_remaining(w);
    return NULL;
}

/* ── start and stop ── */

static int start_writer_thread(struct writer *w)
{
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->wake_fd < 0)
        return -errno;
    w->stop = false;
    w->flush_now = false;
    w->notified = false;
    w->reopen = false;
    int err = mk_thread_start(&w->thread, STACK_BYTES, run_writer, w);
    if (err < 0)
        close(w->wake_fd);
    return err;
}

int writer_start(struct writer *w)
{
    pthread_mutex_lock(&log_targets_lock);
    int err = w->running ? 0 : start_writer_thread(w);
    w->running = err == 0;
    pthread_mutex_unlock(&log_targets_lock);
    return err;
}

void writer_set_flush(struct writer *w, uint32_t flush_ms)
{
    w->flush_ms = flush_ms;
}

struct writer *writer_new(void)
{
    struct writer *w = mk_account_alloc(NULL, sizeof(*w));
    if (!w)
        return NULL;
    memset(w, 0, sizeof(*w));
    mk_list_init(&w->targets);
    return w;
}

static void stop_writer_thread(struct writer *w)
{
    signal_writer(w, &w->stop);
    pthread_join(w->thread, NULL);
    close(w->wake_fd);
    w->running = false;
    for (struct log_target *target = next_target(w, NULL), *next; target; target = next) {
        next = next_target(w, target);
        remove_unused(target);
    }
}

void writer_free(struct writer *w)
{
    if (w->running)
        stop_writer_thread(w);
    mk_account_free(NULL, w, sizeof(*w));
}
