// SPDX-License-Identifier: Apache-2.0
/*
 * Revalidates entries. The name is opened as a request would open it, but as a path only (O_PATH), so that
 * links and folders on the way count as the policy says; then its version is compared. If the kernel would have to wait
 * for a disk, a thread does it, and the requests for the name wait for threads, too: what is due is not served.
 */
#include "worker.h"

#include <monkey/base/arena.h>

#include <errno.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SWEEP_MS = 1000, IDLE_SWEEPS = 20, EVICTED_MIN = 16 };

/* Files may have a quarter of the descriptors, and none of the last quarter. */
void sweep_limit_descriptors(struct cache *cache)
{
    struct rlimit limit;
    uint64_t wanted = cache->descriptors_wanted;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
        limit.rlim_cur = INT_MAX;
    uint64_t quarter = limit.rlim_cur / 4;
    cache->descriptors_max = wanted < quarter ? wanted : quarter;
    cache->fd_alarm = (int)(3 * quarter);
}

static bool has_descriptor_left(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

void sweep_evict_descriptors(struct cache *cache)
{
    struct mk_store_stats stats;
    sweep_limit_descriptors(cache);
    mk_store_get_stats(cache->store, ENTRY_DESCRIPTOR, &stats);
    if (stats.items)
        mk_store_evict(cache->store, ENTRY_DESCRIPTOR,
                       has_descriptor_left() ? stats.items / 2 + EVICTED_MIN : UINT64_MAX);
    mk_store_reclaim(cache->store);
}

/* Returns true to have the descriptor closed. */
static bool is_unused(struct mk_item *item, void *ctx)
{
    struct stat st;
    struct entry *e = entry_of(item);
    (void)ctx;
    if (atomic_exchange_explicit(&e->used, false, memory_order_relaxed))
        e->idle_sweeps = 0;
    else if (++e->idle_sweeps >= IDLE_SWEEPS)
        return true;
    return fstat(e->fd, &st) < 0 || st.st_nlink == 0;
}

static void count_store(struct cache *cache)
{
    pthread_mutex_lock(&cache->stats_lock);
    cache_counters_add_store(&cache->counters, cache->store, cache->counted);
    cache_counters_add_notify(&cache->counters, &cache->notify, &cache->notify_counted);
    pthread_mutex_unlock(&cache->stats_lock);
}

static bool has_entries(const struct cache *cache, enum entry_kind kind)
{
    struct mk_store_stats stats;
    mk_store_get_stats(cache->store, kind, &stats);
    return stats.items;
}

/* Returns true if it is this worker that sweeps now. */
static bool claim_sweep(struct cache *cache, uint64_t now_ms)
{
    uint64_t due = cache->next_sweep_ms;
    return now_ms >= due && atomic_compare_exchange_strong(&cache->next_sweep_ms, &due, now_ms + SWEEP_MS);
}

static void on_timer(struct mk_timer *timer)
{
    struct cache_worker *w = MK_CONTAINER_OF(timer, struct cache_worker, sweep);
    struct cache *cache = w->cache;
    uint64_t now_ms = mk_loop_now_ms(w->loop);
    if (claim_sweep(cache, now_ms))
        mk_store_each(cache->store, ENTRY_DESCRIPTOR, is_unused, NULL);
    bool has_folders = parents_sweep(w);
    has_folders |= notify_sweep(&cache->notify, now_ms);
    size_t waiting = mk_store_reclaim(cache->store); /* what this turn may have seen waits for the next sweep */
    count_store(cache);
    if (waiting || has_folders || has_entries(cache, ENTRY_DESCRIPTOR))
        sweep_schedule(w);
}

void sweep_init(struct cache_worker *w)
{
    mk_timer_init(&w->sweep, on_timer);
}

void sweep_schedule(struct cache_worker *w)
{
    if (mk_list_empty(&w->sweep.node))
        mk_timer_arm(mk_worker_loop(w->worker), &w->sweep, SWEEP_MS);
}

void sweep_resume(struct cache_worker *w)
{
    bool is_needed = mk_store_reclaim(w->cache->store) > 0;
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++)
        is_needed |= has_entries(w->cache, kind);
    if (is_needed)
        sweep_schedule(w);
}

void sweep_cancel(struct cache_worker *w)
{
    mk_timer_cancel(&w->sweep);
}

enum { CONFIRM_MS = 1000 };

/* ── comparing ── */

/* Finds out what a name is that was opened: `fd` may be -errno. Closes it. Any thread. */
static struct name_state stat_name(int fd)
{
    struct stat st;
    if (fd < 0)
        return (struct name_state){.err = -fd};
    struct name_state now = fstat(fd, &st) < 0 ? (struct name_state){.err = errno} : parents_describe(&st);
    close(fd);
    return now;
}

static bool is_unchanged(const struct mk_item *item, const struct name_state *now)
{
    const struct entry *e = entry_of(item);
    switch (item->kind) {
    case ENTRY_MISSING:
        return now->err == e->err;
    case ENTRY_FOLDER:
        return !now->err && now->is_folder && entry_is_same(&now->id, &e->id);
    default:
        return !now->err && now->is_file && entry_is_same(&now->id, &e->id);
    }
}

static void remove_item(struct cache_worker *w, struct mk_item *item)
{
    mk_store_remove(w->cache->store, item);
    sweep_schedule(w);
}

/*
 * Confirms or removes an entry, by what its name is now. Returns whether it is valid. In the worker's thread: another
 * worker that does so at the same time may mix its place with this number, which then is none of that place.
 */
static bool apply_check(struct cache_worker *w, struct mk_item *item, const struct name_state *now)
{
    struct entry *e = entry_of(item);
    if (!is_unchanged(item, now)) {
        remove_item(w, item);
        return false;
    }
    if (now->place != NOTIFY_UNKNOWN) {
        if (e->place != now->place)
            atomic_store_explicit(&e->place, now->place, memory_order_release);
        atomic_store_explicit(&e->number, now->number, memory_order_release);
    }
    atomic_store_explicit(&e->checked_ms, now->since_ms, memory_order_release);
    return true;
}

/* Tells whether it is not known, because there was no descriptor. */
static bool is_short(const struct name_state *now)
{
    return now->err == EMFILE || now->err == ENFILE;
}

/* ── on a disk thread ── */

struct check_job {
    struct mk_job job;
    struct cache_worker *worker; /* its worker is held */
    struct mk_account *account;
    struct mk_item *item; /* held */
    const struct mk_file_root *root;
    void *context;
    uint64_t began_ms;
    uint32_t version; /* of the root, before the name was opened */
    struct name_state now;
    size_t bytes;
    char name[];
};

static void run_check(struct mk_job *job)
{
    struct check_job *c = MK_CONTAINER_OF(job, struct check_job, job);
    c->now = stat_name(c->root->open(c->context, c->name, MK_FILE_OPEN_PATH));
    c->now.since_ms = c->began_ms;
}

static void finish_check(struct mk_job *job)
{
    struct check_job *c = MK_CONTAINER_OF(job, struct check_job, job);
    struct entry *e = entry_of(c->item);
    struct mk_worker *worker = c->worker->worker;
    bool is_known = !is_short(&c->now) && c->root->version(c->context) == c->version;
    if (is_known && apply_check(c->worker, c->item, &c->now))
        cache_counters_add(&c->worker->cache->counters, COUNT_REVALIDATED, worker);
    atomic_store_explicit(&e->checking, false, memory_order_release);
    mk_item_put(c->item);
    mk_account_free(c->account, c, c->bytes);
    mk_worker_put(worker);
}

/* Has a disk thread revalidate the entry, unless one does already. Without memory nothing happens. */
static void start_check(struct cache_lookup *l, struct mk_item *item)
{
    struct entry *e = entry_of(item);
    size_t bytes = sizeof(struct check_job) + l->name->name.len + 1;
    if (atomic_exchange_explicit(&e->checking, true, memory_order_acquire))
        return;
    struct mk_account *account = mk_request_account(l->req);
    struct check_job *c = mk_account_alloc(account, bytes);
    if (!c) {
        e->checking = false;
        return;
    }
    *c = (struct check_job){.job = {.work = run_check, .done = finish_check},
                            .worker = l->worker,
                            .account = account,
                            .item = mk_item_get(item),
                            .root = l->name->root,
                            .context = l->name->context,
                            .began_ms = l->now_ms,
                            .version = l->name->version,
                            .bytes = bytes};
    memcpy(c->name, l->name->name.p, l->name->name.len + 1);
    mk_worker_get(l->worker->worker);
    if (mk_job_submit(mk_request_loop(l->req), &c->job) == 0)
        return;
    e->checking = false;
    mk_item_put(item);
    mk_worker_put(l->worker->worker);
    mk_account_free(account, c, bytes);
}

/* ── in the worker ── */

/* The kernel cannot tell at once what the name is. The entry is not served, while a thread finds out. */
static enum check_result wait_for_check(struct cache_lookup *l, struct mk_item *item, const struct name_state *now)
{
    start_check(l, item);
    cache_counters_add(&l->cache->counters, COUNT_WAITS, l->worker->worker);
    return is_short(now) ? CHECK_SHORT : CHECK_WAITS;
}

/* Opens the name for its state: the whole way, and with all that SymLink says. A name that is a link is not watched. */
static void open_and_stat(const struct cache_lookup *l, struct name_state *now)
{
    uint32_t flags = MK_FILE_OPEN_CACHED | MK_FILE_OPEN_PATH, place = now->place;
    int fd = load_open(l, flags | (notify_is_place(place) ? MK_FILE_OPEN_NO_LINKS : 0));
    if (fd == -ELOOP && notify_is_place(place)) {
        place = NOTIFY_NONE;
        fd = load_open(l, flags);
    }
    struct name_state opened = stat_name(fd);
    opened.since_ms = l->now_ms;
    opened.place = place;
    opened.number = now->number;
    *now = opened;
}

/* Seldom, and so not part of a hit. */
static __attribute__((noinline)) enum check_result check_name(struct cache_lookup *l, struct mk_item *item)
{
    struct name_state now;
    if (!parents_stat(l, item, &now))
        open_and_stat(l, &now);
    sweep_schedule(l->worker);
    if (!lookup_is_in_root(l))
        return CHECK_WAITS;
    if (now.err == EAGAIN || is_short(&now))
        return wait_for_check(l, item, &now);
    if (!apply_check(l->worker, item, &now))
        return CHECK_CHANGED;
    cache_counters_add(&l->cache->counters, COUNT_REVALIDATED, l->worker->worker);
    l->worker->last_item = item;
    l->worker->last_turn = l->turn;
    return CHECK_VALID;
}

/*
 * A new entry is revalidated once more: the kernel shows the new length of a file that is being truncated before its
 * new times, so that it looked settled when it was loaded.
 */
static bool is_unconfirmed(const struct cache_lookup *l, const struct entry *e, uint64_t checked_ms)
{
    return checked_ms < e->loaded_ms + CONFIRM_MS && l->now_ms >= e->loaded_ms + CONFIRM_MS;
}

/*
 * A name that was not looked for yet is looked at. One that the kernel does not watch is left to the interval; but it
 * may only be that a folder was closed or moved when it was to be watched, so that it is tried again after such
 * changes.
 */
static bool may_have_changed(const struct cache_lookup *l, const struct entry *e)
{
    const struct notify *n = &l->cache->notify;
    uint64_t number = atomic_load_explicit(&e->number, memory_order_acquire); /* before the place */
    uint32_t place = atomic_load_explicit(&e->place, memory_order_acquire);
    if (MK_LIKELY(notify_is_place(place)))
        return notify_number(n, place) != number;
    return place == NOTIFY_UNKNOWN || notify_all(n) != number >> 32;
}

/* Returns whether the entry is to be revalidated before it is served. */
static bool is_due(const struct cache_lookup *l, const struct mk_item *item)
{
    const struct cache_worker *w = l->worker;
    const struct entry *e = entry_of(item);
    uint64_t checked_ms = atomic_load_explicit(&e->checked_ms, memory_order_acquire);
    if (checked_ms <= l->name->root->opened_ms(l->name->context))
        return true;
    switch (l->policy->mode) {
    case FILES_IMMUTABLE:
        return is_unconfirmed(l, e, checked_ms);
    case FILES_NOTIFY:
        return checked_ms + l->policy->interval_ms <= l->now_ms || may_have_changed(l, e);
    case FILES_REVALIDATE:
        return checked_ms + l->policy->interval_ms <= l->now_ms;
    default:
        return w->last_item != item || w->last_turn != l->turn;
    }
}

/* Returns whether all changes of the file are known without asking. */
static bool is_watched(const struct cache_lookup *l, const struct entry *e)
{
    return l->policy->mode == FILES_NOTIFY && notify_is_place(e->place) && !e->has_other_names;
}

/* With a long interval hits show that the folders of an entry are used, otherwise that is left to its revalidation. */
static void touch_folders(const struct cache_lookup *l, const struct entry *e)
{
    uint32_t place = atomic_load_explicit(&e->place, memory_order_relaxed);
    if (l->policy->mode == FILES_NOTIFY && l->policy->interval_ms >= NOTIFY_SWEEP_MS / 2 && notify_is_place(place))
        notify_touch(&l->cache->notify, place);
}

/* A file that is sent from its descriptor may have been written in place since then. */
static enum check_result check_descriptor(struct cache_lookup *l, struct mk_item *item)
{
    struct file_identity now;
    const struct entry *e = entry_of(item);
    if (entry_identify_fd(e->fd, &now) == 0 && entry_is_same(&now, &e->id))
        return CHECK_VALID;
    remove_item(l->worker, item);
    return CHECK_CHANGED;
}

enum check_result check_entry(struct cache_lookup *l, struct mk_item *item)
{
    bool is_descriptor = item->kind == ENTRY_DESCRIPTOR;
    enum check_result r = CHECK_VALID;
    bool is_due_now = is_due(l, item);
    if (is_due_now)
        r = check_name(l, item);
    else
        touch_folders(l, entry_of(item));
    if (!is_due_now && is_descriptor && l->policy->mode != FILES_IMMUTABLE && !is_watched(l, entry_of(item)))
        r = check_descriptor(l, item);
    if (r == CHECK_VALID && is_descriptor && !atomic_load_explicit(&entry_of(item)->used, memory_order_relaxed))
        atomic_store_explicit(&entry_of(item)->used, true, memory_order_relaxed);
    return r;
}
