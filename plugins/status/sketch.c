// SPDX-License-Identifier: Apache-2.0
#include "state.h"

#include <monkey/base/arena.h>
#include <monkey/base/hash.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* ── one thread ── */

static uint32_t hash_path(struct mk_str path)
{
    uint64_t hash = mk_hash_add(MK_HASH_EMPTY, path.p, path.len);
    return (uint32_t)(hash ^ hash >> 32);
}

static bool is_path(const struct sketch_path *p, struct mk_str path, uint32_t hash)
{
    return p->hash == hash && p->len == path.len && memcmp(p->path, path.p, path.len) == 0;
}

/* Returns the row of the path; NULL: it has none. */
static struct sketch_path *find_path(struct sketch_path *rows, unsigned n, struct mk_str path, uint32_t hash)
{
    for (unsigned i = 0; i < n; i++)
        if (is_path(&rows[i], path, hash))
            return &rows[i];
    return NULL;
}

static void set_path(struct sketch_path *p, struct mk_str path, uint32_t hash, uint64_t excess)
{
    assert(path.len <= SKETCH_PATH_BYTES);
    p->requests = p->excess = excess;
    p->total_us = p->max_us = 0;
    p->hash = hash;
    p->len = (uint16_t)path.len;
    memcpy(p->path, path.p, path.len);
}

static void count_request(struct sketch_path *p, uint64_t us)
{
    p->requests++;
    p->total_us += us;
    if (us > p->max_us)
        p->max_us = us;
}

static struct sketch_path *find_rarest(struct sketch_minute *m)
{
    struct sketch_path *rarest = m->busiest;
    for (unsigned i = 1; i < m->n_busiest; i++)
        if (m->busiest[i].requests < rarest->requests)
            rarest = &m->busiest[i];
    return rarest;
}

static void add_busiest(struct sketch_minute *m, struct mk_str path, uint32_t hash, uint64_t us)
{
    struct sketch_path *p = find_path(m->busiest, m->n_busiest, path, hash);
    if (!p && m->n_busiest < SKETCH_BUSIEST) {
        p = &m->busiest[m->n_busiest++];
        set_path(p, path, hash, 0);
    } else if (!p) {
        p = find_rarest(m);
        set_path(p, path, hash, p->requests);
    }
    count_request(p, us);
}

static struct sketch_path *find_fastest(struct sketch_minute *m)
{
    struct sketch_path *fastest = m->slowest;
    for (unsigned i = 1; i < m->n_slowest; i++)
        if (m->slowest[i].max_us < fastest->max_us)
            fastest = &m->slowest[i];
    return fastest;
}

static void add_slowest(struct sketch_minute *m, struct mk_str path, uint32_t hash, uint64_t us)
{
    struct sketch_path *p = NULL;
    if (m->n_slowest == SKETCH_SLOWEST) {
        p = find_fastest(m);
        if (us <= p->max_us)
            return; /* whether or not the path has a row: its slowest request stays the same */
    }
    struct sketch_path *same = find_path(m->slowest, m->n_slowest, path, hash);
    if (same)
        p = same;
    else if (!p)
        p = &m->slowest[m->n_slowest++];
    if (!same)
        set_path(p, path, hash, 0);
    count_request(p, us);
}

void sketch_add(struct sketch *sketch, uint64_t minute, struct mk_str path, uint64_t us)
{
    struct sketch_minute *m = &sketch->minutes[minute % SKETCH_MINUTES];
    if (path.len > SKETCH_PATH_BYTES)
        path.len = SKETCH_PATH_BYTES;
    uint32_t hash = hash_path(path);
    if (m->minute != minute) {
        m->minute = minute;
        m->n_busiest = m->n_slowest = 0;
    }
    add_busiest(m, path, hash, us);
    add_slowest(m, path, hash, us);
}

/* ── several threads ── */

static int compare_paths(const void *a, const void *b)
{
    const struct sketch_path *const *x = a, *const *y = b;
    if ((*x)->hash != (*y)->hash)
        return (*x)->hash < (*y)->hash ? -1 : 1;
    if ((*x)->len != (*y)->len)
        return (*x)->len < (*y)->len ? -1 : 1;
    return memcmp((*x)->path, (*y)->path, (*x)->len);
}

static bool comes_before(const struct sketch_path *a, const struct sketch_path *b, bool by_time)
{
    return by_time ? a->max_us > b->max_us : a->requests > b->requests;
}

/* Inserts the row in its order; the last one falls off a full list. */
static void insert_top(struct sketch_path *top, unsigned *n, const struct sketch_path *p, bool by_time)
{
    unsigned at = *n;
    while (at && comes_before(p, &top[at - 1], by_time))
        at--;
    if (at == SKETCH_TOP)
        return;
    *n += *n < SKETCH_TOP;
    memmove(&top[at + 1], &top[at], (*n - 1 - at) * sizeof(*top));
    top[at] = *p;
}

/* Adds up the rows of each path, and keeps the first ones. */
static unsigned pick_top(const struct sketch_path **rows, size_t n, bool by_time, struct sketch_path *top)
{
    unsigned kept = 0;
    qsort(rows, n, sizeof(*rows), compare_paths);
    for (size_t i = 0, next; i < n; i = next) {
        struct sketch_path sum = *rows[i];
        for (next = i + 1; next < n && compare_paths(&rows[i], &rows[next]) == 0; next++) {
            sum.requests += rows[next]->requests;
            sum.excess += rows[next]->excess;
            sum.total_us += rows[next]->total_us;
            sum.max_us = sum.max_us > rows[next]->max_us ? sum.max_us : rows[next]->max_us;
        }
        insert_top(top, &kept, &sum, by_time);
    }
    return kept;
}

/* Collects the rows of the minutes that count. */
static size_t collect_rows(struct sketch *const *sketches, unsigned n, uint64_t minute, bool by_time,
                           const struct sketch_path **rows)
{
    size_t found = 0;
    for (unsigned i = 0; i < n * SKETCH_MINUTES; i++) {
        const struct sketch *s = sketches[i / SKETCH_MINUTES];
        const struct sketch_minute *m = s ? &s->minutes[i % SKETCH_MINUTES] : NULL;
        if (!m || m->minute > minute || minute - m->minute >= SKETCH_MINUTES)
            continue;
        for (unsigned k = 0; k < (by_time ? m->n_slowest : m->n_busiest); k++)
            rows[found++] = by_time ? &m->slowest[k] : &m->busiest[k];
    }
    return found;
}

int sketch_merge(struct sketch *const *sketches, unsigned n, uint64_t minute, struct sketch_lists *ret)
{
    const struct sketch_path **rows;
    size_t bytes = (size_t)n * SKETCH_MINUTES * SKETCH_BUSIEST * sizeof(*rows);
    ret->n_busiest = ret->n_slowest = 0;
    if (!n)
        return 0;
    rows = mk_account_alloc(NULL, bytes);
    if (!rows)
        return -ENOMEM;
    ret->n_busiest = pick_top(rows, collect_rows(sketches, n, minute, false, rows), false, ret->busiest);
    ret->n_slowest = pick_top(rows, collect_rows(sketches, n, minute, true, rows), true, ret->slowest);
    mk_account_free(NULL, rows, bytes);
    return 0;
}
