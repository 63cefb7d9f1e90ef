// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the figures of a service (stats.h).
 */
#include "console/stats.h"

#include "crash/crash_object.h"
#include "service/service.h"
#include "task/task_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ── pages ── */

/* Documentation/admin-guide/mm/pagemap.rst of Linux; an entry is a word. */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_OF_FILE (UINT64_C(1) << 61) /* or of shared memory: not a private copy */

enum { ENTRIES = 512 };

int stats_count_pages(uintptr_t begin, uintptr_t end, uint64_t *ret_resident, uint64_t *ret_private)
{
    uint64_t entries[ENTRIES];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int err = 0, fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    *ret_resident = *ret_private = 0;
    if (fd < 0)
        return -errno;
    for (uintptr_t at = begin / page, last = (end + page - 1) / page; at < last && err == 0;) {
        size_t n = last - at < ENTRIES ? last - at : ENTRIES;
        ssize_t got = pread(fd, entries, n * sizeof(entries[0]), (off_t)(at * sizeof(entries[0])));
        n = got > 0 ? (size_t)got / sizeof(entries[0]) : 0;
        err = n ? 0 : got < 0 ? -errno : -EIO;
        for (size_t i = 0; i < n; i++) {
            *ret_resident += entries[i] & PAGE_PRESENT ? page : 0;
            *ret_private += entries[i] & PAGE_PRESENT && !(entries[i] & PAGE_OF_FILE) ? page : 0;
        }
        at += n;
    }
    close(fd);
    return err;
}

static void read_memory(struct stats_memory *m, const struct service *s)
{
    uintptr_t begin = s->object ? s->object->begin : 0, end = s->object ? s->object->end : 0;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    begin -= begin % page;
    end += -end % page;
    m->copy_bytes = s->file.bytes;
    m->mapped_bytes = end - begin;
    m->has_pages = end > begin && stats_count_pages(begin, end, &m->resident_bytes, &m->private_bytes) == 0;
    m->settings_bytes = s->settings_bytes;
    m->request_bytes = (uint64_t)mk_counter_read(counts_of(s)->request_memory);
}

/* ── counters ── */

static void set_times(struct stats_times *times, const uint64_t *buckets, uint64_t sum_us)
{
    times->sum_us = sum_us;
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++)
        times->n += buckets[i];
    times->p50_us = mk_counter_quantile_us(buckets, 0.5);
    times->p90_us = mk_counter_quantile_us(buckets, 0.9);
    times->p99_us = mk_counter_quantile_us(buckets, 0.99);
}

/* Reads a row, and adds it to the sum of all. */
static void read_row(struct stats_row *row, const struct route_counts *counts, struct stats_row *total)
{
    row->methods = counts->methods;
    row->pattern = counts->pattern;
    for (unsigned i = 0; i < COUNTS_CLASSES; i++) {
        row->classes[i] = (uint64_t)mk_counter_read(counts->classes[i]);
        row->responses += row->classes[i];
        total->classes[i] += row->classes[i];
    }
    total->responses += row->responses;
    for (unsigned i = 0; i < COUNTS_FAILURES; i++) {
        row->failures[i] = (uint64_t)mk_counter_read(counts->failures[i]);
        total->failures[i] += row->failures[i];
    }
}

static void read_rows(struct stats *f, const struct counts *counts)
{
    uint64_t all[MK_COUNTER_BUCKETS] = {0}, all_us = 0;
    f->n = counts->n;
    for (unsigned i = 0; i < counts->n; i++) {
        uint64_t buckets[MK_COUNTER_BUCKETS] = {0};
        read_row(&f->rows[i], &counts->rows[i], &f->total);
        uint64_t us = mk_counter_read_histogram(counts->rows[i].duration, buckets);
        set_times(&f->rows[i].times, buckets, us);
        all_us += us;
        for (unsigned k = 0; k < MK_COUNTER_BUCKETS; k++)
            all[k] += buckets[k];
    }
    set_times(&f->total.times, all, all_us);
}

static void read_tasks(struct stats_tasks *tasks, const struct service *s)
{
    const struct task_pool *pool = atomic_load_explicit(&task_service_of(s)->pool, memory_order_acquire);
    if (!pool)
        return;
    tasks->has_any = true;
    tasks->queued = mk_counter_read(pool->counts.queued);
    tasks->running = mk_counter_read(pool->counts.running);
    tasks->done = (uint64_t)mk_counter_read(pool->counts.done);
    tasks->refused = (uint64_t)mk_counter_read(pool->counts.refused);
}

void stats_read(struct stats *f, const struct service *s)
{
    struct last_lines *last = atomic_load(&last_lines_of(s)->ring);
    memset(f, 0, offsetof(struct stats, lines));
    f->service = s;
    f->wall_s = time(NULL);
    f->uptime_s = f->wall_s > s->started_s ? f->wall_s - s->started_s : 0;
    f->active = mk_counter_read(counts_of(s)->active);
    f->crashes = mk_counter_read(counts_of(s)->crashes);
    read_rows(f, counts_of(s));
    read_tasks(&f->tasks, s);
    read_memory(&f->memory, s);
    if (last)
        f->n_lines = last_lines_read(last, f->lines, &f->messages);
}
