// SPDX-License-Identifier: Apache-2.0
/*
 * The writer's thread and its logs (<monkey/kit/log_writer.h>).
 *
 *     asleep ── the first line (notified) ──► waiting ── flush_ms, or a ring is half full (flush_now) ──► writing
 *        ▲                                                                                                  │
 *        └────────────────────────────────────── all is written ◄───────────────────────────────────────────┘
 *
 * Both flags are set while there is no thread, so that producers do not wake one; it begins with writing.
 */
#include "log_target.h"

#include <monkey/base/arena.h>
#include <monkey/base/file.h>
#include <monkey/base/poll.h>
#include <monkey/base/thread_start.h>
#include <monkey/base/time.h>

#include <assert.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

enum { STACK_BYTES = 64 * 1024, BLOCKED_MAX = 64, FLUSH_MS = 200, FINAL_WRITE_MS = 1000 };

/* ── targets ── */

static struct mk_log_target *find_target(struct mk_log_writer *w, const struct mk_log_dest *dest)
{
    MK_LIST_EACH_ITEM(&w->targets, struct mk_log_target, node, target) {
        if (target->dest.kind == dest->kind && mk_str_eq(target->dest.path, dest->path))
            return target;
    }
    return NULL;
}

static struct mk_log_target *add_target(struct mk_log_writer *w, const struct mk_log_dest *dest)
{
    size_t bytes = sizeof(struct mk_log_target) + dest->path.len + 1;
    struct mk_log_target *target = mk_account_zalloc(NULL, bytes);
    if (!target)
        return NULL;
    memcpy(target + 1, dest->path.p, dest->path.len);
    target->dest = (struct mk_log_dest){dest->kind, mk_str((const char *)(target + 1), dest->path.len)};
    target->type = w->type;
    target->writer = w;
    target->bytes = bytes;
    target->fd = -1;
    const struct mk_counter_label label = {"log", mk_str_c(mk__log_target_name(target))};
    target->lost_counter = w->type->lost ? mk_counter_open(w->type->lost, &label, 1) : NULL;
    mk_list_init(&target->producers);
    mk_list_add(&w->targets, &target->node);
    return target;
}

/* Returns the destination with the path of a standard stream replaced by that. */
static struct mk_log_dest normalize_dest(const struct mk_log_dest *dest)
{
    static const enum mk_log_dest_kind kinds[] = {
        [STDOUT_FILENO] = MK_LOG_DEST_STDOUT, [STDERR_FILENO] = MK_LOG_DEST_STDERR};
    int number = dest->kind == MK_LOG_DEST_FILE ? mk_file_std_stream(dest->path.p) : -1;
    return number < 0 ? *dest : (struct mk_log_dest){kinds[number], MK_STR("")};
}

struct mk_log_target *mk_log_target_get(struct mk_log_writer *w, const struct mk_log_dest *dest)
{
    assert(dest->kind != MK_LOG_DEST_OFF);
    struct mk_log_dest normal = normalize_dest(dest);
    pthread_mutex_lock(&mk__log_lock);
    struct mk_log_target *target = find_target(w, &normal);
    if (!target)
        target = add_target(w, &normal);
    if (target)
        target->users++;
    pthread_mutex_unlock(&mk__log_lock);
    return target;
}

int mk_log_target_check(struct mk_log_writer *w, const struct mk_log_dest *dest)
{
    pthread_mutex_lock(&mk__log_lock);
    const struct mk_log_target *target = find_target(w, dest);
    bool open = target && target->open;
    pthread_mutex_unlock(&mk__log_lock);
    return open || dest->kind != MK_LOG_DEST_FILE ? 0 : mk_file_check_output(dest->path.p);
}

/* ── rounds ── */

/* Returns the target after this one, the first one for NULL; NULL at the end. Only the caller removes targets. */
static struct mk_log_target *next_target(struct mk_log_writer *w, struct mk_log_target *target)
{
    pthread_mutex_lock(&mk__log_lock);
    struct mk_list *n = target ? target->node.next : w->targets.next;
    pthread_mutex_unlock(&mk__log_lock);
    return n == &w->targets ? NULL : MK_CONTAINER_OF(n, struct mk_log_target, node);
}

/* Removes producers that were released and whose lines are all written; then the target, if it is unused. */
static void remove_unused(struct mk_log_target *target)
{
    pthread_mutex_lock(&mk__log_lock);
    MK_LIST_EACH_ITEM(&target->producers, struct mk_log_producer, node, producer) {
        if (!producer->users && !mk__log_queue_peek(&producer->queue).len)
            mk__producer_remove(producer);
    }
    bool is_unused = !target->users && mk_list_empty(&target->producers);
    if (is_unused)
        mk_list_del(&target->node);
    pthread_mutex_unlock(&mk__log_lock);
    if (!is_unused)
        return;
    mk__log_target_report_lost(target, 0, true);
    mk__log_target_close(target);
    mk_account_free(NULL, target, target->bytes);
}

static bool has_producers(struct mk_log_target *target)
{
    pthread_mutex_lock(&mk__log_lock);
    bool has = !mk_list_empty(&target->producers);
    pthread_mutex_unlock(&mk__log_lock);
    return has;
}

/* Calls on_written() of all producers. Returns whether there are new lines. */
static bool notify_producers(struct mk_log_target *target)
{
    bool more = false;
    if (!target->type->on_written)
        return false;
    pthread_mutex_lock(&mk__log_lock);
    MK_LIST_EACH_ITEM(&target->producers, struct mk_log_producer, node, producer)
        more |= target->type->on_written(producer);
    pthread_mutex_unlock(&mk__log_lock);
    return more;
}

/* Writes a log. Returns as mk__log_target_write(). */
static int write_target(struct mk_log_target *target, uint64_t now_ms, bool reopen)
{
    int r = has_producers(target) ? mk__log_target_write(target, now_ms, reopen) : 0;
    bool more = notify_producers(target);
    mk__log_target_report_lost(target, now_ms, false);
    return more && r == 0 ? MK_AGAIN : r;
}

/* Writes all logs once. Returns 0 (nothing is left), MK_AGAIN (call it again) or MK_DECLINED (try again later). */
static int write_all_targets(struct mk_log_writer *w)
{
    bool reopen = atomic_exchange(&w->reopen, false);
    uint64_t now = mk_time_monotonic_ms();
    int result = 0;
    for (struct mk_log_target *target = next_target(w, NULL), *next; target; target = next) {
        int r = write_target(target, now, reopen);
        if (r == MK_AGAIN || (r == MK_DECLINED && result == 0))
            result = r;
        next = next_target(w, target);
        remove_unused(target);
    }
    return result;
}

/* Lists the descriptors to wait for: the eventfd, and logs that are full. */
static nfds_t fill_pollfds(struct mk_log_writer *w, struct pollfd *list)
{
    nfds_t n = 0;
    list[n++] = (struct pollfd){.fd = w->wake_fd, .events = POLLIN};
    for (struct mk_log_target *target = next_target(w, NULL); target && n < BLOCKED_MAX;
         target = next_target(w, target))
        if (target->blocked && target->fd >= 0)
            list[n++] = (struct pollfd){.fd = target->fd, .events = POLLOUT};
    return n;
}

/* Waits for a signal, or until a log that was full can be written. Returns false on a timeout. */
static bool wait_for_event(struct mk_log_writer *w, int timeout_ms)
{
    struct pollfd list[BLOCKED_MAX];
    uint64_t count;
    nfds_t n = fill_pollfds(w, list);
    int ready = mk_poll(list, n, timeout_ms);
    if (ready > 0 && list[0].revents && read(w->wake_fd, &count, sizeof(count)) < 0)
        return true;
    for (nfds_t i = 1; ready > 0 && i < n; i++)
        if (list[i].revents)
            w->flush_now = true;
    return ready != 0;
}

static bool is_signalled(const struct mk_log_writer *w)
{
    return w->flush_now || w->reopen || w->stop;
}

/* Sleeps until there are lines, then for flush_ms or until it is notified not to wait. */
static void sleep_until_due(struct mk_log_writer *w, bool something_left)
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
static void write_remaining(struct mk_log_writer *w)
{
    uint64_t until = mk_time_monotonic_ms() + FINAL_WRITE_MS, now;
    int r;
    while ((r = write_all_targets(w)) != 0 && (now = mk_time_monotonic_ms()) < until) {
        bool may_progress = r == MK_AGAIN;
        for (struct mk_log_target *target = next_target(w, NULL); target; target = next_target(w, target))
            may_progress |= target->blocked;
        if (!may_progress)
            break;
        if (r == MK_DECLINED)
            wait_for_event(w, (int)(until - now));
    }
}

static void *run_writer(void *ctx)
{
    struct mk_log_writer *w = ctx;
    int r = 0;
    prctl(PR_SET_NAME, w->type->thread_name);
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

void mk_log_writer_reopen(struct mk_log_writer *w)
{
    pthread_mutex_lock(&mk__log_lock);
    if (w->running)
        mk__log_writer_signal(w, &w->reopen);
    pthread_mutex_unlock(&mk__log_lock);
}

/* With the lock. */
static int start_thread(struct mk_log_writer *w)
{
    if (w->wake_fd < 0 && (w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return -errno;
    w->stop = false;
    return mk_thread_start(&w->thread, STACK_BYTES, run_writer, w);
}

int mk_log_writer_start(struct mk_log_writer *w)
{
    pthread_mutex_lock(&mk__log_lock);
    int err = w->running ? 0 : start_thread(w);
    w->running = err == 0;
    pthread_mutex_unlock(&mk__log_lock);
    return err;
}

static bool has_lines(const struct mk_log_target *target)
{
    bool has = false;
    MK_LIST_EACH_ITEM(&target->producers, struct mk_log_producer, node, producer)
        has |= mk_log_producer_waiting(producer) > 0;
    return has;
}

/* Ends a target without references, while there is no thread: what cannot be written is lost. */
static void end_target(struct mk_log_target *target)
{
    int r = 0;
    while (r != MK_DECLINED && has_lines(target))
        r = write_target(target, mk_time_monotonic_ms(), false);
    mk__log_target_discard(target);
    remove_unused(target);
}

void mk_log_target_put(struct mk_log_target *target)
{
    struct mk_log_writer *w = target->writer;
    pthread_mutex_lock(&mk__log_lock);
    assert(target->users > 0);
    bool is_last = --target->users == 0, running = w->running;
    if (is_last && running)
        mk__log_writer_signal(w, &w->flush_now);
    else if (is_last)
        mk_list_del(&target->node); /* or a thread that starts now would find it */
    pthread_mutex_unlock(&mk__log_lock);
    if (is_last && !running)
        end_target(target);
}

/* Takes a target without references out of the list; NULL: there is none. */
static struct mk_log_target *take_unused(struct mk_log_writer *w)
{
    struct mk_log_target *found = NULL;
    pthread_mutex_lock(&mk__log_lock);
    MK_LIST_EACH_ITEM(&w->targets, struct mk_log_target, node, one)
        if (!one->users)
            found = one;
    if (found)
        mk_list_del(&found->node);
    pthread_mutex_unlock(&mk__log_lock);
    return found;
}

void mk_log_writer_stop(struct mk_log_writer *w)
{
    if (!w->running)
        return;
    mk__log_writer_signal(w, &w->stop);
    pthread_join(w->thread, NULL);
    pthread_mutex_lock(&mk__log_lock);
    w->notified = w->flush_now = true;
    w->running = false;
    pthread_mutex_unlock(&mk__log_lock);
    for (struct mk_log_target *target; (target = take_unused(w));)
        end_target(target);
}

void mk_log_writer_set_flush(struct mk_log_writer *w, uint32_t flush_ms)
{
    w->flush_ms = flush_ms;
}

struct mk_log_writer *mk_log_writer_new(const struct mk_log_writer_type *type)
{
    struct mk_log_writer *w = mk_account_alloc(NULL, sizeof(*w));
    if (!w)
        return NULL;
    *w = (struct mk_log_writer){.type = type, .wake_fd = -1, .flush_ms = FLUSH_MS, .notified = true, .flush_now = true};
    mk_list_init(&w->targets);
    return w;
}

void mk_log_writer_free(struct mk_log_writer *w)
{
    mk_log_writer_stop(w);
    assert(mk_list_empty(&w->targets));
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    mk_account_free(NULL, w, sizeof(*w));
}
