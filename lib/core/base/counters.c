// SPDX-License-Identifier: Apache-2.0
/*
 * Opens counters by their names, and reads them (base/counters.h). Names are added under a lock of the process and of
 * the file, and are published by their number; readers take no lock.
 */
#include "base/counters.h"

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>
#include <monkey/log.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum {
    LABELS_BYTES_MAX = 2048,
    LABELS_ROOM_MIN = 8, /* for names that grow, such as app9 and app10, when the place is used again */
    LOCK_TRIES = 200,
    LOCK_PAUSE_US = 5000,
    INDEX_FROM = 1024, /* counters; fewer are found in the list of their family */
    INDEX_SLOTS = 2 * MK_COUNTERS_MAX,
    INDEX_ENTRIES_MAX = INDEX_SLOTS * 3 / 4, /* those of former labels included */
};

void (*_Atomic mk__counters_before_read)(void);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool reported;
static struct mk_str retired_label; /* of unused counters */
static uint16_t n_holders[MK_COUNTERS_MAX];
static uint32_t places[MK_COUNTERS_MAX]; /* of the records of those that were opened */
static struct mk_counter counters[MK_COUNTERS_MAX];
static const struct mk_counter spare_counter = {MK__COUNTER_SPARE_SLOT};

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

static struct mk_str get_name(const struct mk__counter_family *f)
{
    return mk_str(f->text + f->plugin_len + 1, f->name_len);
}

static uint32_t place_of(const void *record)
{
    return (uint32_t)((const char *)record - (const char *)mk__counters_head);
}

/* Returns the place of a new record, or 0: the head is full. */
static uint32_t add_record(size_t bytes)
{
    struct mk__counters_head *h = mk__counters_head;
    uint32_t at = h->bytes;
    bytes = (bytes + 7) / 8 * 8;
    if (!mk__counters_memory_at(at, bytes))
        return 0;
    h->bytes = at + (uint32_t)bytes;
    return at;
}

static struct mk__counter_family *add_family(const struct mk_counter_info *info, struct mk_str plugin)
{
    struct mk__counters_head *h = mk__counters_head;
    size_t name_len = strlen(info->name), help_len = strlen(info->help);
    bool full = h->n_families >= MK_COUNTER_FAMILIES_MAX || help_len > UINT16_MAX;
    uint32_t at = full ? 0 : add_record(sizeof(struct mk__counter_family) + plugin.len + name_len + help_len + 3);
    struct mk__counter_family *f = at ? mk__counters_memory_at(at, sizeof(*f)) : NULL, *before;
    if (!f)
        return NULL;
    f->plugin_len = (uint16_t)plugin.len;
    f->name_len = (uint16_t)name_len;
    f->help_len = (uint16_t)help_len;
    f->kind = (uint8_t)info->kind;
    char *text = mempcpy(f->text, plugin.p, plugin.len);
    text = mempcpy(text + 1, info->name, name_len);
    memcpy(text + 1, info->help, help_len);
    before = mk__counters_memory_get_family(h->last);
    h->n_families++;
    h->last = at;
    atomic_store_explicit(before ? &before->next : &h->first, at, memory_order_release);
    return f;
}

/* Returns the family, or NULL: there are too many. */
static struct mk__counter_family *open_family(const struct mk_counter_info *info)
{
    struct mk_str plugin = info->plugin ? mk_str_c(info->plugin) : MK_STR(""), name = mk_str_c(info->name);
    struct mk__counter_family *f = NULL;
    unsigned n = 0;
    while ((f = mk__counters_memory_next_family(f)) && n++ < MK_COUNTER_FAMILIES_MAX)
        if (mk_str_eq(get_name(f), name) && mk_str_eq(mk__counters_memory_get_plugin(f), plugin))
            return f;
    return add_family(info, plugin);
}

static uint32_t hash_labels(struct mk_str labels)
{
    uint32_t hash = 0x811c9dc5u;
    for (size_t i = 0; i < labels.len; i++)
        hash = (hash ^ (unsigned char)labels.p[i]) * 0x01000193u;
    return hash;
}

static uint32_t count_cells(const struct mk__counter_family *f)
{
    return f->kind == MK_COUNTER_HISTOGRAM ? MK__COUNTER_HISTOGRAM_CELLS : 1;
}

static struct mk__counter_series *add_series(struct mk__counter_family *f, struct mk_str labels, uint32_t hash)
{
    struct mk__counters_head *h = mk__counters_head;
    uint32_t cells = count_cells(f), slot = h->n_cells;
    bool full =
        h->n_series >= MK_COUNTERS_MAX || slot > MK__COUNTER_SPARE_SLOT || cells > MK__COUNTER_SPARE_SLOT - slot;
    uint16_t room = (uint16_t)((labels.len + LABELS_ROOM_MIN + 15) / 16 * 16);
    uint32_t at = full ? 0 : add_record(sizeof(struct mk__counter_series) + room + 1);
    struct mk__counter_series *s = at ? mk__counters_memory_at(at, sizeof(*s)) : NULL, *before;
    if (!s)
        return NULL;
    s->slot = slot;
    s->number = h->n_series++;
    s->hash = hash;
    s->labels_len = (uint16_t)labels.len;
    s->labels_max = room;
    memcpy(s->labels, labels.p, labels.len);
    h->n_cells = slot + cells;
    before = mk__counters_memory_get_series(f->last);
    f->last = at;
    atomic_store_explicit(before ? &before->next : &f->first, at, memory_order_release);
    return s;
}

static bool has_labels(const struct mk__counter_series *s, struct mk_str labels, uint32_t hash)
{
    return s->hash == hash && mk_str_eq(mk_str(s->labels, s->labels_len), labels);
}

static struct mk__counter_series *find_listed(const struct mk__counter_family *f, struct mk_str labels, uint32_t hash)
{
    struct mk__counter_series *s = NULL;
    unsigned n = 0;
    while ((s = mk__counters_memory_next_series(f, s)) && n++ < MK_COUNTERS_MAX)
        if (has_labels(s, labels, hash))
            return s;
    return NULL;
}

/* ── many counters: an index of this process, by family and labels, of records that other processes may add to ── */

struct index_slot {
    uint32_t family, series; /* their places */
};

/* It is allocated when it is first needed, and stays. */
static struct {
    uint32_t n; /* counters in it; 0: it is not in use */
    uint32_t entries;
    struct index_slot *slots;
} by_labels;

static unsigned first_slot(uint32_t family, uint32_t hash)
{
    return (hash ^ family * 0x9e3779b1u) % INDEX_SLOTS;
}

static int index_series(const struct mk__counter_family *f, const struct mk__counter_series *s, void *ctx)
{
    (void)ctx;
    unsigned i = first_slot(place_of(f), s->hash);
    while (by_labels.slots[i].series)
        i = (i + 1) % INDEX_SLOTS;
    by_labels.slots[i].family = place_of(f);
    by_labels.slots[i].series = place_of(s);
    by_labels.entries++;
    return 0;
}

/* Returns whether there is an index, which has all counters. */
static bool update_index(void)
{
    enum { BYTES = INDEX_SLOTS * sizeof(struct index_slot) };
    uint32_t n = mk__counters_head->n_series;
    if (n < INDEX_FROM) {
        by_labels.n = 0;
        return false;
    }
    if (by_labels.n == n && by_labels.entries < INDEX_ENTRIES_MAX)
        return true;
    if (!by_labels.slots && !(by_labels.slots = mk_account_alloc(NULL, BYTES)))
        return false;
    memset(by_labels.slots, 0, BYTES);
    by_labels.entries = 0;
    mk__counters_memory_visit(index_series, NULL);
    by_labels.n = n;
    return true;
}

static struct mk__counter_series *find_indexed(const struct mk__counter_family *f, struct mk_str labels, uint32_t hash)
{
    uint32_t family = place_of(f);
    for (unsigned i = first_slot(family, hash); by_labels.slots[i].series; i = (i + 1) % INDEX_SLOTS) {
        struct mk__counter_series *s = mk__counters_memory_get_series(by_labels.slots[i].series);
        if (s && by_labels.slots[i].family == family && has_labels(s, labels, hash))
            return s;
    }
    return NULL;
}

static struct mk__counter_series *find_series(const struct mk__counter_family *f, struct mk_str labels, bool indexed)
{
    uint32_t hash = hash_labels(labels);
    return indexed ? find_indexed(f, labels, hash) : find_listed(f, labels, hash);
}

/* ── places that are used again ── */

static uint64_t sum_cells(uint32_t slot)
{
    uint64_t sum = 0;
    for (unsigned i = 0, n = mk__counters_memory_count_blocks(); i < n; i++) {
        const struct mk__counter_block *block = mk__counters_memory_get_block(i);
        sum += block ? atomic_load_explicit(&block->cells[slot], memory_order_relaxed) : 0;
    }
    return sum;
}

/* Returns whether labels of `len` bytes have room in a counter. */
static bool has_room(const struct mk__counter_family *f, const struct mk__counter_series *s, size_t len)
{
    return s->labels_max >= len && mk__counters_memory_at(place_of(s), sizeof(*s) + s->labels_max + 1u) &&
           mk__counters_memory_get_slot(s) + count_cells(f) <= MK__COUNTER_SPARE_SLOT;
}

/* Returns a hidden counter of the family, whose labels have room for others, or an unused one; NULL: there is none. */
static struct mk__counter_series *find_reusable(const struct mk__counter_family *f, size_t labels_len)
{
    struct mk__counter_series *s = NULL, *unused = NULL;
    unsigned n = 0;
    while ((s = mk__counters_memory_next_series(f, s)) && n++ < MK_COUNTERS_MAX) {
        enum mk__counter_state state = mk__counters_memory_get_state(s);
        bool is_held = s->number < MK_COUNTERS_MAX && n_holders[s->number]; /* another process may say otherwise */
        if (state == MK__COUNTER_SHOWN || is_held || !has_room(f, s, labels_len))
            continue;
        if (state == MK__COUNTER_HIDDEN)
            return s;
        unused = unused ? unused : s;
    }
    return unused;
}

static void set_labels(struct mk__counter_series *s, struct mk_str labels)
{
    s->hash = hash_labels(labels);
    s->labels_len = (uint16_t)labels.len;
    memcpy(s->labels, labels.p, labels.len);
    s->labels[labels.len] = '\0';
}

/*
 * Adds an unused counter to the total of those that were removed. Returns false if it has become that itself, so that
 * another place is to be found.
 */
static bool add_to_removed(const struct mk__counter_family *f, struct mk__counter_series *s, bool indexed)
{
    MK_BUF_ON_STACK(labels, LABELS_BYTES_MAX);
    mk__counter_labels_remove(mk_str(s->labels, s->labels_len), retired_label, &labels);
    struct mk__counter_series *total = find_series(f, mk_buf_str(&labels), indexed);
    uint32_t from = mk__counters_memory_get_slot(s), to = total ? mk__counters_memory_get_slot(total) : from;
    if (!total && has_room(f, s, labels.len)) {
        mk__counters_memory_lock_labels(true);
        set_labels(s, mk_buf_str(&labels));
        mk__counters_memory_unlock_labels();
        mk__counters_memory_set_state(s, MK__COUNTER_SHOWN);
        if (indexed)
            index_series(f, s, NULL);
        return false;
    }
    for (uint32_t i = 0; to != from && i < count_cells(f); i++)
        mk__counters_memory_add_shared(to + i, (int64_t)sum_cells(from + i));
    return true;
}

/*
 * Gives a hidden or unused counter of the family other labels, and takes it to 0: what it counted is gone, and nothing
 * adds to it any more, unless it is another process. Returns it; NULL: there is none.
 */
static struct mk__counter_series *reuse_series(const struct mk__counter_family *f, struct mk_str labels, bool indexed)
{
    bool may = atomic_load(&mk__counters_memory_has_reusable) && mk__counters_memory_is_own();
    struct mk__counter_series *s = may ? find_reusable(f, labels.len) : NULL;
    while (s && mk__counters_memory_get_state(s) == MK__COUNTER_UNUSED && !add_to_removed(f, s, indexed))
        s = find_reusable(f, labels.len);
    if (!s)
        return NULL;
    mk__counters_memory_lock_labels(true);
    set_labels(s, labels);
    mk__counters_memory_clear(s->slot, count_cells(f));
    mk__counters_memory_unlock_labels();
    return s;
}

/* Returns the counter of a family with these labels, which is added if it is new; NULL: there is no room for it. */
static struct mk__counter_series *open_series_of(struct mk__counter_family *f, struct mk_str labels)
{
    bool indexed = update_index();
    struct mk__counter_series *s = find_series(f, labels, indexed);
    if (s)
        return s;
    bool is_new = (s = add_series(f, labels, hash_labels(labels))) != NULL;
    if (!is_new)
        s = reuse_series(f, labels, indexed);
    if (s && indexed) {
        index_series(f, s, NULL);
        by_labels.n += is_new;
    }
    return s;
}

/* Returns the counter's number, -EINVAL (its name is that of another kind) or -ENOSPC. */
static int open_series(const struct mk_counter_info *info, struct mk_str labels, unsigned holders)
{
    struct mk__counter_family *f = open_family(info);
    if (f && f->kind != info->kind)
        return -EINVAL;
    struct mk__counter_series *s = f ? open_series_of(f, labels) : NULL;
    if (!s || s->number >= MK_COUNTERS_MAX)
        return -ENOSPC;
    uint32_t slot = mk__counters_memory_get_slot(s), number = s->number;
    if (counters[number].slot != slot) /* other threads may be reading it */
        counters[number].slot = slot;
    mk__counters_memory_set_state(s, MK__COUNTER_SHOWN);
    places[number] = place_of(s);
    n_holders[number] += holders;
    if (holders)
        f->is_held = true;
    return (int)number;
}

/* Logs once that a counter cannot be shown. */
static void report_error(const struct mk_counter_info *info, int err)
{
    if (reported)
        return;
    reported = true;
    mk_log_warn("counter %s %s is not shown: %s", info->plugin ? info->plugin : "monkey", info->name ? info->name : "",
                err == -ENOSPC ? "there are too many counters" : "its name, labels or kind are invalid");
}

static const struct mk_counter *open_counter(const struct mk_counter_info *info, const struct mk_counter_label *labels,
                                             unsigned n_labels, unsigned holders)
{
    MK_BUF_ON_STACK(b, LABELS_BYTES_MAX);
    bool good = is_name(info->name) && (!info->plugin || is_name(info->plugin)) && info->help &&
                info->kind <= MK_COUNTER_VALUE && format_labels(&b, labels, n_labels);
    pthread_mutex_lock(&mutex);
    int i = -EINVAL;
    if (good && mk__counters_head) {
        lock_file(true);
        i = open_series(info, mk_buf_str(&b), holders);
        lock_file(false);
    }
    if (i < 0 && mk__counters_head)
        report_error(info, i);
    pthread_mutex_unlock(&mutex);
    return i >= 0 ? &counters[i] : &spare_counter;
}

const struct mk_counter *mk_counter_open(const struct mk_counter_info *info, const struct mk_counter_label *labels,
                                         unsigned n_labels)
{
    return open_counter(info, labels, n_labels, 0);
}

const struct mk_counter *mk_counter_hold(const struct mk_counter_info *info, const struct mk_counter_label *labels,
                                         unsigned n_labels)
{
    return open_counter(info, labels, n_labels, 1);
}

/* Ends a hold, under the lock. Returns whether it was the last one. */
static bool end_hold(const struct mk_counter *counter)
{
    if (counter == &spare_counter)
        return false;
    assert(n_holders[counter - counters] > 0);
    return --n_holders[counter - counters] == 0;
}

void mk__counters_put(const struct mk_counter *counter)
{
    pthread_mutex_lock(&mutex);
    end_hold(counter);
    pthread_mutex_unlock(&mutex);
}

static void hide_series(const struct mk__counter_series *s)
{
    mk__counters_memory_set_state(s, MK__COUNTER_HIDDEN);
    atomic_store(&mk__counters_memory_has_reusable, true);
}

void mk_counter_put(const struct mk_counter *counter)
{
    pthread_mutex_lock(&mutex);
    if (end_hold(counter) && mk__counters_memory_may_hide()) {
        const struct mk__counter_series *s = mk__counters_memory_get_series(places[counter - counters]);
        if (s)
            hide_series(s);
    }
    pthread_mutex_unlock(&mutex);
}

static int hide_unheld(const struct mk__counter_family *f, const struct mk__counter_series *s, void *ctx)
{
    (void)ctx;
    if (f->plugin_len && f->is_held && s->number < MK_COUNTERS_MAX && !n_holders[s->number])
        hide_series(s);
    return 0;
}

void mk__counters_hide_unheld(void)
{
    pthread_mutex_lock(&mutex);
    if (mk__counters_memory_may_hide())
        mk__counters_memory_visit(hide_unheld, NULL);
    pthread_mutex_unlock(&mutex);
}

static int retire_unused(const struct mk__counter_family *f, const struct mk__counter_series *s, void *ctx)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    bool may = f->plugin_len == 0 && s->number < MK_COUNTERS_MAX && !n_holders[s->number] &&
               mk__counters_memory_get_state(s) == MK__COUNTER_SHOWN;
    struct mk_str labels = mk_str(s->labels, s->labels_len);
    struct mk_str value = may ? mk_counter_label_get(labels, mk_str_c(ctx), storage) : MK_STR("");
    if (!value.len || mk_str_eq(value, MK_STR(MK__COUNTER_REMOVED)))
        return 0;
    mk__counters_memory_set_state(s, MK__COUNTER_UNUSED);
    atomic_store(&mk__counters_memory_has_reusable, true);
    return 0;
}

void mk__counters_retire_unused(const char *label)
{
    pthread_mutex_lock(&mutex);
    retired_label = mk_str_c(label);
    if (mk__counters_head)
        mk__counters_memory_visit(retire_unused, (void *)(uintptr_t)label);
    pthread_mutex_unlock(&mutex);
}

void mk_counters_open(const struct mk_counter_row *rows, unsigned n, const struct mk_counter **to)
{
    for (unsigned i = 0; i < n; i++) {
        struct mk_counter_label labels[MK_COUNTER_ROW_LABELS_MAX];
        unsigned n_labels = 0;
        for (const char *const *text = rows[i].labels; n_labels < MK_COUNTER_ROW_LABELS_MAX && *text; text += 2)
            labels[n_labels++] = (struct mk_counter_label){text[0], mk_str_c(text[1])};
        const struct mk_counter *counter = mk_counter_open(rows[i].info, labels, n_labels);
        if (to[i] != counter)
            to[i] = counter;
    }
}

/* ── reading ── */

int64_t mk_counter_read(const struct mk_counter *counter)
{
    return mk__counters_head && counter != &spare_counter ? (int64_t)sum_cells(counter->slot) : 0;
}

void mk_counter_set(const struct mk_counter *counter, int64_t value)
{
    pthread_mutex_lock(&mutex);
    if (mk__counters_head && counter != &spare_counter) {
        lock_file(true);
        mk__counters_memory_add_shared(counter->slot, value - mk_counter_read(counter));
        lock_file(false);
    }
    pthread_mutex_unlock(&mutex);
}

uint64_t mk_counter_read_histogram(const struct mk_counter *counter, uint64_t *buckets)
{
    if (!mk__counters_head || counter == &spare_counter)
        return 0;
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++)
        buckets[i] += sum_cells(counter->slot + 1 + i);
    return sum_cells(counter->slot);
}

struct reader {
    mk_counter_fn fn;
    void *ctx;
};

static int read_series(const struct mk__counter_family *f, const struct mk__counter_series *s, void *ctx)
{
    struct reader *reader = ctx;
    uint64_t buckets[MK_COUNTER_BUCKETS];
    if (mk__counters_memory_get_state(s) == MK__COUNTER_HIDDEN)
        return 0;
    uint32_t slot = mk__counters_memory_get_slot(s);
    struct mk_counter_value value = {.plugin = mk__counters_memory_get_plugin(f),
                                     .name = get_name(f),
                                     .help = mk_str(f->text + f->plugin_len + f->name_len + 2, f->help_len),
                                     .labels = mk_str(s->labels, s->labels_len),
                                     .kind = f->kind,
                                     .value = (int64_t)sum_cells(slot)};
    if (value.kind == MK_COUNTER_HISTOGRAM) {
        value.sum_us = (uint64_t)value.value;
        value.value = 0;
        for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++)
            value.value += (int64_t)(buckets[i] = sum_cells(slot + 1 + i));
        value.buckets = buckets;
    }
    return reader->fn(&value, reader->ctx);
}

int mk_counters_each(mk_counter_fn fn, void *ctx)
{
    struct reader reader = {fn, ctx};
    void (*before_read)(void) = mk__counters_before_read;
    if (!mk__counters_head)
        return 0;
    if (before_read)
        before_read();
    mk__counters_memory_free_dead(false); /* an old process that was killed after its upgrade still has levels */
    mk__counters_memory_lock_labels(false);
    int r = mk__counters_memory_visit(read_series, &reader);
    mk__counters_memory_unlock_labels();
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
