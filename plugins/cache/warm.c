// SPDX-License-Identifier: Apache-2.0
#include "calls.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_cache;

/* ── the configuration ── */

/* Appends a file to the list of a preload. Returns 0, -EFBIG (it is too long) or another -errno. */
static int read_file(struct preload *p, const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = preload_read_list(p, fd);
    close(fd);
    return err;
}

/* Counts the entries of a list. Returns 0, -EFBIG (it is too long), -E2BIG (too many entries) or another -errno. */
static int check_list(const char *path)
{
    struct preload reader = {.walk = NULL};
    mk_buf_init(&reader.list, PRELOAD_LIST_BYTES_MAX);
    int err = read_file(&reader, path);
    struct mk_str rest = mk_buf_str(&reader.list), entry;
    uint64_t n = 0;
    while (err == 0 && path_list_next_line(&rest, &entry))
        err = ++n > PRELOAD_PATHS_MAX ? -E2BIG : 0;
    mk_buf_release(&reader.list);
    return err;
}

static int check_item(struct mk_host *host, const struct cache_rule *rule, unsigned nth)
{
    const struct warm_item *item = &rule->warm.items[nth];
    size_t offset = offsetof(struct cache_rule, warm);
    int err = item->is_folder ? 0 : check_list(item->text.p);
    if (err == 0)
        return 0;
    if (err == -EFBIG || err == -E2BIG)
        mk_host_error(host, rule, offset, nth,
                      "the list %s is too long: %d paths and 16 MB are the most; name a folder such as / instead",
                      item->text.p, PRELOAD_PATHS_MAX);
    else
        mk_host_error(host, rule, offset, nth,
                      "cannot read the list of paths %s: %s (a folder of the host ends with a slash)", item->text.p,
                      strerror(-err));
    return -EINVAL;
}

int warm_check_rule(struct mk_host *host, const struct cache_rule *rule)
{
    int result = 0;
    for (uint32_t i = 0; i < rule->warm.n; i++) {
        int err = check_item(host, rule, i);
        result = err < 0 ? err : result;
    }
    return result;
}

/* ── the items ── */

static const struct cache_rule *get_first_rule(const struct mk_host *host)
{
    return mk_host_conf(host, &directives_sections[DIRECTIVES_RULES]);
}

static bool has_warm(const struct mk_host *host)
{
    const struct cache_rule *rule = get_first_rule(host);
    while (rule && !rule->warm.n)
        rule = mk_host_conf_next(host, &directives_sections[DIRECTIVES_RULES], rule);
    return rule != NULL;
}

/* Ends a host: logs what was loaded. */
static void end_host(struct warm *w)
{
    const struct preload *p = &w->preload;
    if (w->has_preload && p->asked)
        mk_host_log(w->host, MK_LOG_INFO,
                    "cache: Warm has kept %" PRIu64 " files (%" PRIu64 " KB); %" PRIu64 " were there, %" PRIu64
                    " failed%s%s%s",
                    p->kept, p->kept_bytes / 1024, p->present, p->failed, p->failed ? ": " : "",
                    p->failed ? p->first_error : "", p->is_full ? "; the cache is full" : "");
    if (w->has_preload)
        preload_release(&w->preload);
    w->has_preload = w->has_item = false;
    w->host = mk_host_next(w->host);
    w->rule = w->host ? get_first_rule(w->host) : NULL;
    w->item = 0;
}

static int read_list(struct warm *w, const char *path)
{
    w->preload.list.len = w->preload.list_at = 0;
    return read_file(&w->preload, path);
}

static void open_item(struct warm *w)
{
    const struct warm_item *item = &w->rule->warm.items[w->item];
    int err = w->has_preload ? 0 : preload_init(&w->preload, w->cache, w->host);
    if (err < 0)
        return; /* nothing serves files */
    w->has_preload = true;
    w->preload.cancelled = &w->cancelled;
    err = item->is_folder ? preload_start_folder(&w->preload, item->text) : read_list(w, item->text.p);
    w->has_item = err == 0;
    if (err < 0)
        mk_host_log(w->host, MK_LOG_WARN, "cache: Warm %s cannot be read: %s", item->text.p, strerror(-err));
    w->item += err < 0;
}

/* Moves on to the next rule that has items, or the next host. Returns false at the end. */
static bool find_item(struct warm *w)
{
    while (w->host) {
        if (w->rule && w->item < w->rule->warm.n && !w->preload.is_full)
            return true;
        w->rule = w->rule ? mk_host_conf_next(w->host, &directives_sections[DIRECTIVES_RULES], w->rule) : NULL;
        w->item = 0;
        if (!w->rule)
            end_host(w);
    }
    return false;
}

/* Works for a moment. Returns whether something is left. */
static bool run_slice(struct warm *w)
{
    if (w->cancelled || !find_item(w))
        return false;
    if (!w->has_item)
        open_item(w);
    if (!w->has_preload)
        w->item++;
    if (w->has_item && !preload_slice(&w->preload, w->now_ms, w->wall_seconds)) {
        w->has_item = false;
        w->item++;
    }
    return true;
}

/* ── the job ── */

static void end_run(struct warm *w)
{
    while (w->host)
        end_host(w);
    pthread_mutex_lock(&w->lock);
    w->has_ended = true;
    pthread_cond_broadcast(&w->ended);
    pthread_mutex_unlock(&w->lock);
}

/* While workers wait, the thread of the job does all of it: nothing else is to be done. */
static void run_job(struct mk_job *job)
{
    struct warm *w = MK_CONTAINER_OF(job, struct warm, job);
    bool more = run_slice(w);
    while (more && w->is_awaited)
        more = run_slice(w);
    if (!more)
        end_run(w);
}

static int submit_job(struct warm *w)
{
    struct mk_loop *loop = mk_worker_loop(w->worker);
    w->now_ms = mk_loop_now_ms(loop);
    w->wall_seconds = mk_loop_wall_seconds(loop);
    return mk_job_submit(loop, &w->job);
}

static void finish_job(struct mk_job *job)
{
    struct warm *w = MK_CONTAINER_OF(job, struct warm, job);
    sweep_schedule(mk_worker_state(w->worker, &mk_plugin_cache));
    bool has_ended = w->has_ended; /* before the disk thread has it again */
    if (!has_ended && submit_job(w) == 0)
        return;
    if (!has_ended)
        end_run(w);
    mk_worker_put(w->worker);
}

/* Under the lock. */
static void start_run(struct warm *w, struct mk_worker *worker)
{
    w->has_started = true;
    w->host = mk_generation_first_host(w->generation);
    w->rule = get_first_rule(w->host);
    w->worker = mk_worker_get(worker);
    w->job = (struct mk_job){.work = run_job, .done = finish_job};
    if (submit_job(w) == 0)
        return;
    w->has_ended = true;
    mk_worker_put(worker);
    mk_log_warn("cache: Warm cannot be loaded, because no thread can be started");
}

/* Waits for the end, up to a time. Under the lock. */
static void wait_for_end(struct warm *w, uint32_t wait_ms)
{
    struct timespec end;
    int err = 0;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += wait_ms / 1000;
    end.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    while (!w->has_ended && err == 0)
        err = pthread_cond_timedwait(&w->ended, &w->lock, &end);
    w->is_awaited = false;
}

void warm_serve(struct warm *w, struct mk_worker *worker, uint32_t wait_ms)
{
    if (!w->is_needed)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_awaited |= !w->has_started && wait_ms;
    if (!w->has_started)
        start_run(w, worker);
    if (wait_ms)
        wait_for_end(w, wait_ms);
    pthread_mutex_unlock(&w->lock);
}

void warm_cancel(struct warm *w)
{
    w->cancelled = true;
}

/* ── life ── */

void warm_init(struct warm *w, struct cache *cache, struct mk_generation *g)
{
    pthread_condattr_t attributes;
    w->cache = cache;
    w->generation = g;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->ended, &attributes);
    pthread_condattr_destroy(&attributes);
}

void warm_find_hosts(struct warm *w)
{
    for (const struct mk_host *host = mk_generation_first_host(w->generation); host; host = mk_host_next(host))
        w->is_needed |= has_warm(host);
}

void warm_release(struct warm *w)
{
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
}
