// SPDX-License-Identifier: Apache-2.0
/*
 * Opens counters by their names, and reads them (base/counters.h). Names are added under a lock of the process and of
 * the file, and are published by their number; readers take no lock.
 */
#include "base/counters_memory.h"

#include <monkey/buf.h>
#include <monkey/log.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum { LABELS_BYTES_MAX = 2048, LOCK_TRIES = 200, LOCK_PAUSE_US = 5000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool reported;
static struct mk_counter counters[MK_COUNTERS_MAX];
static const struct mk_counter spare_counter = {0};

/* ── names ── */

/* Other processes may have the same memory: an old one during an upgrade. One that is stopped must not delay us. */
static void lock_file(bool locked)
{
    struct flock lock = {.l_type = locked ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET};
    for (unsigned i = 0; fcntl(mk_counters_fd(), F_SETLK, &lock) < 0 && i < LOCK_TRIES; i++)
        usleep(LOCK_PAUSE_US);
}

static bool is_name(const char *name)
{
    size_t len = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;
    return len > 0 && len < 64 && !name[len] && (name[0] < '0' || name[0] > '9');
}

static void add_label_value(struct mk_buf *out, struct mk_str value)
{
    for (size_t i = 0; i < value.len && i < MK_COUNTER_LABEL_MAX; i++) {
        char c = value.p[i];
        if (c == '\n')
            mk_buf_add(out, "\\n", 2);
        else if (c == '"' || c == '\\')
            mk_buf_add(out, (char[2]){'\\', c}, 2);
        else
            mk_buf_add(out, (unsigned char)c < ' ' ? "?" : &c, 1);
    }
}

/* Returns false if a name is invalid, or if there are too many labels. */
static bool format_labels(struct mk_buf *out, const struct mk_counter_label *labels, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (!is_name(labels[i].name) || n > MK_COUNTER_LABELS_MAX)
            return false;
        mk_buf_addf(out, "%s%s=\"", i ? "," : "", labels[i].name);
        add_label_value(out, labels[i].value);
        mk_buf_add(out, "\"", 1);
    }
    return !out->err;
}

/* Returns where the bytes are in the heap, with a NUL behind them; 0: it is full. */
static uint32_t add_to_heap(struct mk__counters_head *h, const char *p, size_t len)
{
    uint32_t at = h->heap_bytes;
    if (at >= MK__COUNTER_HEAP_BYTES || len + 1 > MK__COUNTER_HEAP_BYTES - at)
        return 0;
    memcpy(h->heap + at, p, len);
    h->heap[at + len] = '\0';
    h->heap_bytes = at + (uint32_t)len + 1;
    return at;
}

static struct mk_str get_string(const struct mk__counters_head *h, uint32_t at, uint16_t len)
{
    return at <= MK__COUNTER_HEAP_BYTES && len <= MK__COUNTER_HEAP_BYTES - at ? mk_str(h->heap + at, len) : MK_STR_NONE;
}

static struct mk_str get_plugin(const struct mk__counters_head *h, const struct mk__counter_family *f)
{
    return get_string(h, f->strings, f->plugin_len);
}

static struct mk_str get_name(const struct mk__counters_head *h, const struct mk__counter_family *f)
{
    return get_string(h, f->strings + f->plugin_len + 1u, f->name_len);
}

static struct mk_str get_help(const struct mk__counters_head *h, const struct mk__counter_family *f)
{
    return get_string(h, f->strings + f->plugin_len + f->name_len + 2u, f->help_len);
}

static int add_family(struct mk__counters_head *h, const struct mk_counter_info *info, const char *plugin)
{
    uint32_t n = mk__counters_count_families();
    size_t plugin_len = strlen(plugin), name_len = strlen(info->name), help_len = strlen(info->help);
    if (n == MK_COUNTER_FAMILIES_MAX || help_len > UINT16_MAX ||
        plugin_len + name_len + help_len > MK__COUNTER_HEAP_BYTES / 2)
        return -ENOSPC;
    uint32_t at = add_to_heap(h, plugin, plugin_len);
    bool good = at && add_to_heap(h, info->name, name_len) && add_to_heap(h, info->help, help_len);
    if (!good)
        return -ENOSPC;
    h->families[n] = (struct mk__counter_family){at, (uint16_t)plugin_len, (uint16_t)name_len, (uint16_t)help_len,
                                                 (uint16_t)info->kind};
    atomic_store_explicit(&h->n_families, n + 1, memory_order_release);
    return (int)n;
}

/* Returns the family's index or -errno: -EINVAL if it exists with another kind. */
static int open_family(struct mk__counters_head *h, const struct mk_counter_info *info)
{
    const char *plugin = info->plugin ? info->plugin : "";
    for (unsigned i = 0, n = mk__counters_count_families(); i < n; i++) {
        const struct mk__counter_family *f = &h->families[i];
        if (mk_str_eq(get_name(h, f), mk_str_c(info->name)) && mk_str_eq(get_plugin(h, f), mk_str_c(plugin)))
            return f->kind == info->kind ? (int)i : -EINVAL;
    }
    return add_family(h, info, plugin);
}

static uint32_t hash_labels(unsigned family, struct mk_str labels)
{
    uint32_t hash = 0x811c9dc5u ^ family;
    for (size_t i = 0; i < labels.len; i++)
        hash = (hash ^ (unsigned char)labels.p[i]) * 0x01000193u;
    return hash;
}

static int add_series(struct mk__counters_head *h, unsigned family, struct mk_str labels, uint32_t hash)
{
    uint32_t n = mk__counters_count_series(), slot = h->n_cells;
    uint32_t cells = h->families[family].kind == MK_COUNTER_HISTOGRAM ? MK__COUNTER_HISTOGRAM_CELLS : 1;
    if (n == MK_COUNTERS_MAX || slot > MK__COUNTER_CELLS_MAX || cells > MK__COUNTER_CELLS_MAX - slot)
        return -ENOSPC;
    uint32_t at = add_to_heap(h, labels.p, labels.len);
    if (!at)
        return -ENOSPC;
    h->series[n] = (struct mk__counter_series){slot, at, (uint16_t)labels.len, (uint16_t)family, hash};
    h->n_cells = slot + cells;
    atomic_store_explicit(&h->n_series, n + 1, memory_order_release);
    return (int)n;
}

static int open_series(struct mk__counters_head *h, const struct mk_counter_info *info, struct mk_str labels)
{
    int family = open_family(h, info);
    if (family < 0)
        return family;
    uint32_t hash = hash_labels((unsigned)family, labels);
    for (unsigned i = 0, n = mk__counters_count_series(); i < n; i++) {
        const struct mk__counter_series *s = &h->series[i];
        if (s->hash == hash && s->family == family && mk_str_eq(get_string(h, s->labels, s->labels_len), labels))
            return (int)i;
    }
    return add_series(h, (unsigned)family, labels, hash);
}

/* Logs once that a counter cannot be shown. */
static void report(const struct mk_counter_info *info, int err)
{
    if (reported)
        return;
    reported = true;
    mk_log_warn("counter %s %s is not shown: %s", info->plugin ? info->plugin : "monkey", info->name ? info->name : "",
                err == -ENOSPC ? "there are too many counters" : "its name, labels or kind are invalid");
}

const struct mk_counter *mk_counter_open(const struct mk_counter_info *info, const struct mk_counter_label *labels,
                                         unsigned n_labels)
{
    char text[LABELS_BYTES_MAX];
    struct mk_buf b;
    mk_buf_init_fixed(&b, text, sizeof(text));
    bool good = is_name(info->name) && (!info->plugin || is_name(info->plugin)) && info->help &&
                info->kind <= MK_COUNTER_HISTOGRAM && format_labels(&b, labels, n_labels);
    pthread_mutex_lock(&mutex);
    int i = -EINVAL;
    if (good && mk__counters_head) {
        lock_file(true);
        i = open_series(mk__counters_head, info, mk_buf_str(&b));
        lock_file(false);
    }
    if (i >= 0 && counters[i].slot != mk__counters_get_slot(&mk__counters_head->series[i]))
        counters[i].slot = mk__counters_get_slot(&mk__counters_head->series[i]);
    else if (i < 0 && mk__counters_head)
        report(info, i);
    pthread_mutex_unlock(&mutex);
    return i >= 0 ? &counters[i] : &spare_counter;
}

/* ── reading ── */

static uint64_t sum_cells(uint32_t slot)
{
    uint64_t sum = 0;
    for (unsigned i = 0, n = mk__counters_count_blocks(); i < n; i++) {
        const mk__cell *cells = mk__counters_get_block(i);
        sum += cells ? atomic_load_explicit(&cells[slot], memory_order_relaxed) : 0;
    }
    return sum;
}

int64_t mk_counter_read(const struct mk_counter *counter)
{
    return mk__counters_head && counter != &spare_counter ? (int64_t)sum_cells(counter->slot) : 0;
}

static int visit_series(const struct mk__counter_series *s, struct mk_counter_value *value, mk_counter_fn fn, void *ctx)
{
    uint64_t buckets[MK_COUNTER_BUCKETS];
    value->labels = get_string(mk__counters_head, s->labels, s->labels_len);
    value->value = (int64_t)sum_cells(mk__counters_get_slot(s));
    value->buckets = NULL;
    if (value->kind == MK_COUNTER_HISTOGRAM) {
        value->sum_us = (uint64_t)value->value;
        value->value = 0;
        for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++)
            value->value += (int64_t)(buckets[i] = sum_cells(mk__counters_get_slot(s) + 1 + i));
        value->buckets = buckets;
    }
    return fn(value, ctx);
}

static int visit_family(unsigned family, mk_counter_fn fn, void *ctx)
{
    const struct mk__counter_family *f = &mk__counters_head->families[family];
    struct mk_counter_value value = {.plugin = get_plugin(mk__counters_head, f),
                                     .name = get_name(mk__counters_head, f),
                                     .help = get_help(mk__counters_head, f),
                                     .kind = f->kind};
    int r = 0;
    for (unsigned i = 0, n = mk__counters_count_series(); i < n && r == 0; i++)
        if (mk__counters_head->series[i].family == family)
            r = visit_series(&mk__counters_head->series[i], &value, fn, ctx);
    return r;
}

int mk_counters_each(mk_counter_fn fn, void *ctx)
{
    int r = 0;
    for (unsigned i = 0, n = mk__counters_head ? mk__counters_count_families() : 0; i < n && r == 0; i++)
        r = visit_family(i, fn, ctx);
    return r;
}

uint64_t mk_counter_quantile_us(const uint64_t *buckets, double share)
{
    uint64_t all = 0, below = 0;
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++)
        all += buckets[i];
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS && all; i++) {
        below += buckets[i];
        if (below > 0 && (double)below >= share * (double)all)
            return mk_counter_bucket_end_us(i < MK_COUNTER_BUCKETS - 1 ? i : i - 1);
    }
    return 0;
}
