// SPDX-License-Identifier: Apache-2.0
/*
 * The pages and removals. A page is a heap of its rows, with the last one at the top.
 */
#include "calls.h"

#include <monkey/base/arena.h>
#include <monkey/base/escape.h>
#include <monkey/kit/json.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

const char *const scan_sorts[SCAN_SORTS + 1] = {
    [SCAN_HITS] = "hits", [SCAN_BYTES] = "bytes", [SCAN_AGE] = "age", [SCAN_NAME] = "name"};

struct scan {
    const struct places *places;
    const struct scan_query *query;
    struct scan_row *rows;
    unsigned n;
    uint64_t total, left, ages[SCAN_AGES]; /* `left`: rows after the cursor */
    int err;
};

/* ── order ── */

/* Returns less than 0 if `a` comes before `b`. */
static int order_rows(enum scan_sort sort, const struct scan_row *a, const struct scan_row *b)
{
    int r = sort == SCAN_NAME ? mk_str_compare(mk_str(a->path, a->path_len), mk_str(b->path, b->path_len))
                              : (a->value < b->value) - (a->value > b->value);
    return r ? r : (a->hash > b->hash) - (a->hash < b->hash);
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    return order_rows(*(const enum scan_sort *)ctx, a, b);
}

static bool is_behind_cursor(const struct scan_query *q, const struct scan_row *row)
{
    struct scan_row at = {.value = q->after.value, .hash = q->after.hash, .path_len = q->after.path_len};
    at.path = (char *)(uintptr_t)q->after.path;
    return !q->after.is_set || order_rows(q->sort, row, &at) > 0;
}

bool scan_read_cursor(struct mk_str text, enum scan_sort sort, struct scan_cursor *ret)
{
    ret->is_set = true;
    ret->value = ret->hash = ret->path_len = 0;
    if (text.len < 18 || text.p[text.len - 17] != ':')
        return false;
    for (size_t i = text.len - 16; i < text.len; i++) {
        int digit = mk_hex_value(text.p[i]);
        if (digit < 0)
            return false;
        ret->hash = ret->hash << 4 | (uint64_t)digit;
    }
    struct mk_str position = mk_str(text.p, text.len - 17);
    if (sort != SCAN_NAME)
        return mk_str_u64(position, UINT64_MAX, &ret->value);
    ssize_t n = mk_path_normalize(position, ret->path, sizeof(ret->path));
    ret->path_len = n < 0 ? 0 : (size_t)n;
    return n > 0;
}

/* ── the heap ── */

static void swap_rows(struct scan_row *a, struct scan_row *b)
{
    struct scan_row row = *a;
    *a = *b;
    *b = row;
}

static void sink_first(struct scan *s)
{
    for (unsigned i = 0, child; (child = 2 * i + 1) < s->n; i = child) {
        if (child + 1 < s->n && order_rows(s->query->sort, &s->rows[child + 1], &s->rows[child]) > 0)
            child++;
        if (order_rows(s->query->sort, &s->rows[child], &s->rows[i]) <= 0)
            return;
        swap_rows(&s->rows[i], &s->rows[child]);
    }
}

static void raise_last(struct scan *s)
{
    for (unsigned i = s->n - 1, parent; i > 0; i = parent) {
        parent = (i - 1) / 2;
        if (order_rows(s->query->sort, &s->rows[i], &s->rows[parent]) <= 0)
            return;
        swap_rows(&s->rows[i], &s->rows[parent]);
    }
}

static void free_path(struct scan_row *row)
{
    mk_account_free(NULL, row->path, row->path_len);
}

/* Adds a row, whose path is copied, if it belongs to the page. */
static void add_row(struct scan *s, struct scan_row row)
{
    bool is_full = s->n == s->query->limit;
    if (is_full && order_rows(s->query->sort, &row, &s->rows[0]) >= 0)
        return;
    char *path = mk_account_alloc(NULL, row.path_len);
    if (!path) {
        s->err = -ENOMEM;
        return;
    }
    memcpy(path, row.path, row.path_len);
    row.path = path;
    if (is_full) {
        free_path(&s->rows[0]);
        s->rows[0] = row;
        sink_first(s);
    } else {
        s->rows[s->n++] = row;
        raise_last(s);
    }
}

/* ── entries ── */

static struct scan_row describe_entry(const struct mk_item *item, const struct entry_key_bytes *key, uint64_t now_ms)
{
    const struct entry *e = entry_of(item);
    uint64_t checked_ms = e->checked_ms;
    return (struct scan_row){
        .hash = item->hash,
        .file_bytes = e->id.bytes,
        .memory_bytes = sizeof(*item) + item->key_bytes + item->data_bytes,
        .age_ms = now_ms > e->loaded_ms ? now_ms - e->loaded_ms : 0,
        .checked_ms = now_ms > checked_ms ? now_ms - checked_ms : 0,
        .hits = e->hits,
        .kind = item->kind,
        .coding = key->coding,
    };
}

static uint64_t get_value(const struct scan_row *row, enum scan_sort sort)
{
    return sort == SCAN_HITS ? row->hits : sort == SCAN_BYTES ? row->memory_bytes : row->age_ms;
}

static void count_age(struct scan *s, uint64_t age_ms)
{
    static const uint64_t ends_ms[SCAN_AGES - 1] = {60000, 600000, 3600000, 86400000};
    unsigned i = 0;
    while (i < SCAN_AGES - 1 && age_ms >= ends_ms[i])
        i++;
    s->ages[i]++;
}

static bool visit_entry(struct mk_item *item, void *ctx)
{
    struct scan *s = ctx;
    MK_UNINITIALIZED char path[PATH_BYTES];
    const struct entry_key_bytes *key = entry_key_of(item);
    unsigned at = 0;
    size_t n = s->err ? 0 : places_find_path(s->places, key, &at, path);
    if (!n || !mk_str_starts(mk_str(path, n), s->query->prefix))
        return false;
    struct scan_row row = describe_entry(item, key, s->query->now_ms);
    row.path = path;
    row.path_len = n;
    row.value = get_value(&row, s->query->sort);
    s->total++;
    count_age(s, row.age_ms);
    if (is_behind_cursor(s->query, &row)) {
        s->left++;
        add_row(s, row);
    }
    return false;
}

/* ── writing ── */

void scan_write_row(const struct scan_row *row, struct mk_buf *out)
{
    mk_json_str(out, "path", mk_str(row->path, row->path_len));
    mk_json_cstr(out, "kind", entry_kind_name(row->kind));
    if (row->coding)
        mk_json_str(out, "coding", mk_coding_name(row->coding));
    mk_json_number(out, "hits", row->hits);
    mk_json_number(out, "file_bytes", (int64_t)row->file_bytes);
    mk_json_number(out, "memory_bytes", (int64_t)row->memory_bytes);
    mk_json_number(out, "age_ms", (int64_t)row->age_ms);
    mk_json_number(out, "checked_ms", (int64_t)row->checked_ms);
}

static void write_object(const struct scan_row *row, struct mk_buf *out)
{
    mk_json_open(out, NULL, '{');
    scan_write_row(row, out);
    mk_json_close(out, '}');
}

static void write_next(const struct scan *s, struct mk_buf *out)
{
    const struct scan_row *last = &s->rows[s->n - 1];
    MK_BUF_ON_STACK(next, 3 * PATH_BYTES + 32);
    if (s->query->sort == SCAN_NAME)
        mk_path_encode(&next, mk_str(last->path, last->path_len));
    else
        mk_buf_addf(&next, "%" PRIu64, last->value);
    mk_buf_addf(&next, ":%016" PRIx64, last->hash);
    mk_json_str(out, "next", mk_buf_str(&next));
}

static void write_page(struct scan *s, struct mk_buf *out)
{
    static const char *const ages[SCAN_AGES] = {"minute", "ten_minutes", "hour", "day", "older"};
    mk_json_number(out, "total", (int64_t)s->total);
    mk_json_open(out, "ages", '{');
    for (unsigned i = 0; i < SCAN_AGES; i++)
        mk_json_number(out, ages[i], (int64_t)s->ages[i]);
    mk_json_close(out, '}');
    mk_json_open(out, "entries", '[');
    for (unsigned i = 0; i < s->n; i++)
        write_object(&s->rows[i], out);
    mk_json_close(out, ']');
    if (s->left > s->n)
        write_next(s, out);
}

/* ── a page ── */

/* Collects the rows of the page in their order. Returns 0 or -ENOMEM; call release_page() in any case. */
static int collect_page(struct scan *s, struct cache *cache)
{
    enum scan_sort sort = s->query->sort;
    s->rows = mk_account_alloc(NULL, s->query->limit * sizeof(*s->rows));
    if (!s->rows)
        return -ENOMEM;
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++)
        mk_store_each(cache->store, kind, visit_entry, s);
    if (s->n)
        qsort_r(s->rows, s->n, sizeof(*s->rows), compare_rows, &sort);
    return s->err;
}

static void release_page(struct scan *s)
{
    while (s->n)
        free_path(&s->rows[--s->n]);
    mk_account_free(NULL, s->rows, s->query->limit * sizeof(*s->rows));
}

int scan_write_entries(struct cache *cache, const struct places *places, const struct scan_query *query,
                       struct mk_buf *out)
{
    struct scan s = {.places = places, .query = query};
    int err = collect_page(&s, cache);
    if (err == 0)
        write_page(&s, out);
    release_page(&s);
    return err < 0 ? err : out->err;
}

int scan_each(struct cache *cache, const struct places *places, const struct scan_query *query, scan_row_fn fn,
              void *ctx)
{
    struct scan s = {.places = places, .query = query};
    int err = collect_page(&s, cache);
    for (unsigned i = 0; err == 0 && i < s.n; i++)
        fn(&s.rows[i], ctx);
    release_page(&s);
    return err;
}

/* ── removing ── */

struct removal {
    const struct places *places;
    const struct scan_target *target;
    uint64_t n;
};

/* Returns the path without the suffix of a variant: "/a.js" for "/a.js.br". */
static struct mk_str strip_coding(struct mk_str path, uint8_t coding)
{
    const char *dot = coding ? memrchr(path.p, '.', path.len) : NULL;
    return dot ? mk_str(path.p, (size_t)(dot - path.p)) : path;
}

static bool is_path_of(const struct scan_target *target, struct mk_str path, uint8_t coding)
{
    if (!target->path.len)
        return mk_str_starts(path, target->prefix);
    return mk_str_eq(path, target->path) || mk_str_eq(strip_coding(path, coding), target->path);
}

static bool is_target(struct mk_item *item, void *ctx)
{
    struct removal *r = ctx;
    MK_UNINITIALIZED char text[PATH_BYTES];
    const struct entry_key_bytes *key = entry_key_of(item);
    unsigned at = 0;
    size_t n;
    while ((n = places_find_path(r->places, key, &at, text)))
        if (is_path_of(r->target, mk_str(text, n), key->coding)) {
            r->n++;
            return true;
        }
    return false;
}

uint64_t scan_remove(struct cache *cache, const struct places *places, const struct scan_target *target)
{
    struct removal r = {places, target, 0};
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++)
        mk_store_each(cache->store, kind, is_target, &r);
    return r.n;
}
