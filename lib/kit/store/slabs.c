// SPDX-License-Identifier: Apache-2.0
/*
 * Slabs and their blocks. A search takes the first block of its bin that is large enough, then one of the next bin that
 * has any: two looks at bit sets. What remains of a block is a separate free block.
 */
#include "store.h"

#include <assert.h>
#include <string.h>

enum {
    ALIGN = 16,
    BLOCK_MIN = 32,
    SLAB_MIN = 64 * 1024,
    SLAB_LAST = 16 * 1024, /* the least that is worth a slab when the budget ends */
    PAGE = 4096,
    OWN_SLAB = 1024 * 1024, /* blocks from here on have a slab each */
    SEARCHED = 8,           /* blocks of the bin that may be too small */
    WALKED = 4096,          /* blocks of a slab that a window is searched in */
    ROW_MIN = 5,            /* 2^5 == BLOCK_MIN */
};

/* In `bits`, below the size */
enum { FREE = 1, LAST = 2, CLOSED = 4, FLAGS = 15 };

struct mk__block {
    uint32_t before;               /* size of the block before this one; 0: it is the first of its slab */
    uint32_t bits;                 /* size and flags */
    struct mk__block *next, *prev; /* of its bin, while it is free */
};

enum { BLOCK_HEAD = 8 };

struct mk__slab {
    struct mk__slab *next, *prev;
    uint64_t bytes;
    uint64_t unused[5];
};

static_assert(sizeof(struct mk__slab) == 64 && sizeof(struct mk__block) <= BLOCK_MIN, "blocks are aligned");

/* ── blocks ── */

static uint32_t get_size(const struct mk__block *b)
{
    return b->bits & ~(uint32_t)FLAGS;
}

static struct mk__block *get_next(struct mk__block *b)
{
    return b->bits & LAST ? NULL : (struct mk__block *)(void *)((char *)b + get_size(b));
}

static struct mk__block *get_before(struct mk__block *b)
{
    return b->before ? (struct mk__block *)(void *)((char *)b - b->before) : NULL;
}

static struct mk__block *get_block(const void *p)
{
    return (struct mk__block *)((uintptr_t)p - BLOCK_HEAD);
}

static struct mk__block *get_first(struct mk__slab *slab)
{
    return (struct mk__block *)(void *)(slab + 1);
}

static bool is_whole_slab(const struct mk__block *b)
{
    return !b->before && b->bits & LAST;
}

static void set_size(struct mk__block *b, uint32_t size)
{
    b->bits = size | (b->bits & FLAGS);
    struct mk__block *next = get_next(b);
    if (next)
        next->before = size;
}

size_t mk__slabs_block_bytes(size_t bytes)
{
    size_t size = (bytes + BLOCK_HEAD + ALIGN - 1) / ALIGN * ALIGN;
    return size < BLOCK_MIN ? BLOCK_MIN : size;
}

/* Without the lock: while a block is used, only its mark of a closed slab changes. */
size_t mk__slabs_bytes_of(const void *p)
{
    return __atomic_load_n(&get_block(p)->bits, __ATOMIC_RELAXED) & ~(uint32_t)FLAGS;
}

/* ── bins ── */

static unsigned get_row(uint32_t size)
{
    unsigned row = 31 - (unsigned)__builtin_clz(size) - ROW_MIN;
    return row < MK__SLABS_ROWS ? row : MK__SLABS_ROWS - 1;
}

static unsigned get_column(uint32_t size, unsigned row)
{
    unsigned column = (size >> (row + ROW_MIN - 4)) - MK__SLABS_COLUMNS;
    return column < MK__SLABS_COLUMNS ? column : MK__SLABS_COLUMNS - 1;
}

static void add_free_bytes(struct mk__slabs *s, uint64_t n)
{
    uint64_t bytes = atomic_load_explicit(&s->free_bytes, memory_order_relaxed);
    atomic_store_explicit(&s->free_bytes, bytes + n, memory_order_relaxed);
}

static void put_in_bin(struct mk__slabs *s, struct mk__block *b)
{
    uint32_t size = get_size(b);
    unsigned row = get_row(size), column = get_column(size, row);
    struct mk__block **bin = &s->bins[row][column];
    b->prev = NULL;
    b->next = *bin;
    if (*bin)
        (*bin)->prev = b;
    *bin = b;
    s->rows |= 1U << row;
    s->columns[row] |= (uint16_t)(1U << column);
    add_free_bytes(s, size);
}

static void take_from_bin(struct mk__slabs *s, struct mk__block *b)
{
    uint32_t size = get_size(b);
    unsigned row = get_row(size), column = get_column(size, row);
    if (b->next)
        b->next->prev = b->prev;
    if (b->prev)
        b->prev->next = b->next;
    else
        s->bins[row][column] = b->next;
    if (!s->bins[row][column])
        s->columns[row] &= (uint16_t) ~(1U << column);
    if (!s->columns[row])
        s->rows &= ~(1U << row);
    add_free_bytes(s, -(uint64_t)size);
}

/* Returns a block of the bin that has `size` bytes, among its first ones. */
static struct mk__block *search_bin(struct mk__block *b, uint32_t size)
{
    for (unsigned i = 0; b && i < SEARCHED; i++, b = b->next)
        if (get_size(b) >= size)
            return b;
    return NULL;
}

static struct mk__block *find_free(struct mk__slabs *s, uint32_t size)
{
    unsigned row = get_row(size), column = get_column(size, row);
    struct mk__block *b = search_bin(s->bins[row][column], size);
    if (b)
        return b;
    uint32_t columns = s->columns[row] & (uint32_t)(~1ULL << column);
    if (!columns) {
        uint32_t rows = s->rows & (uint32_t)(~1ULL << row);
        if (!rows)
            return NULL;
        row = (unsigned)__builtin_ctz(rows);
        columns = s->columns[row];
    }
    return s->bins[row][__builtin_ctz(columns)];
}

/* ── slabs ── */

void mk__slabs_init(struct mk__slabs *s, struct mk__budget *budget)
{
    s->budget = budget;
    pthread_mutex_init(&s->lock, NULL);
}

static void unmap_slab(struct mk__slabs *s, struct mk__slab *slab)
{
    uint64_t bytes = slab->bytes;
    if (slab->next)
        slab->next->prev = slab->prev;
    if (slab->prev)
        slab->prev->next = slab->next;
    else
        s->first = slab->next;
    s->map_bytes -= bytes;
    mk__pages_unmap(slab, bytes);
    mk__budget_give(s->budget, bytes);
}

void mk__slabs_release(struct mk__slabs *s)
{
    while (s->first)
        unmap_slab(s, s->first);
    pthread_mutex_destroy(&s->lock);
}

/* Takes the bytes of a new slab from the budget: fewer than usual at its end, 0 if there are not enough. */
static uint64_t take_slab_bytes(struct mk__slabs *s, uint32_t size)
{
    uint64_t least = (size + sizeof(struct mk__slab) + PAGE - 1) / PAGE * PAGE, bytes = SLAB_MIN;
    if (size >= OWN_SLAB)
        return mk__budget_take(s->budget, least, mk__budget_spare(s->budget)) ? least : 0;
    while (bytes < MK__PAGES_HUGE && (bytes < s->map_bytes || bytes < least))
        bytes *= 2;
    uint64_t left = mk__budget_left(s->budget) / PAGE * PAGE;
    if (bytes > left)
        bytes = left;
    if (bytes < least || bytes < SLAB_LAST)
        return 0;
    return mk__budget_take(s->budget, bytes, mk__budget_spare(s->budget)) ? bytes : 0;
}

/* Returns the only block of a new slab, which is free, but in no bin. */
static struct mk__block *add_slab(struct mk__slabs *s, uint32_t size)
{
    uint64_t bytes = take_slab_bytes(s, size);
    struct mk__slab *slab = bytes ? mk__pages_map(bytes) : NULL;
    if (!slab) {
        mk__budget_give(s->budget, bytes);
        return NULL;
    }
    slab->bytes = bytes;
    slab->next = s->first;
    if (s->first)
        s->first->prev = slab;
    s->first = slab;
    s->map_bytes += bytes;
    struct mk__block *b = get_first(slab);
    b->bits = (uint32_t)(bytes - sizeof(*slab)) | FREE | LAST;
    return b;
}

/* ── use ── */

/* Makes the end of a block that has more than `size` bytes a free block. */
static void split_block(struct mk__slabs *s, struct mk__block *b, uint32_t size)
{
    uint32_t rest = get_size(b) - size;
    if (rest < BLOCK_MIN || (is_whole_slab(b) && size >= OWN_SLAB))
        return;
    struct mk__block *end = (struct mk__block *)(void *)((char *)b + size);
    mk__pages_unpoison(end, sizeof(*end));
    end->bits = FREE | (b->bits & LAST);
    b->bits &= ~(uint32_t)LAST;
    set_size(end, rest);
    set_size(b, size);
    put_in_bin(s, end);
}

void *mk__slabs_alloc(struct mk__slabs *s, size_t bytes, size_t zeroed)
{
    assert(bytes <= MK__SLABS_BLOCK_MAX && zeroed <= bytes);
    uint32_t size = (uint32_t)mk__slabs_block_bytes(bytes);
    char *p = NULL;
    pthread_mutex_lock(&s->lock);
    struct mk__block *b = size < OWN_SLAB ? find_free(s, size) : NULL;
    if (b) {
        take_from_bin(s, b);
        s->n_empty -= is_whole_slab(b);
    } else {
        b = add_slab(s, size);
    }
    if (b) {
        b->bits &= ~(uint32_t)FREE;
        split_block(s, b, size);
        p = (char *)b + BLOCK_HEAD;
        mk__pages_unpoison(p, get_size(b) - BLOCK_HEAD);
        memset(p, 0, zeroed);
    }
    pthread_mutex_unlock(&s->lock);
    return p;
}

/* Returns the free block that b and its free neighbours make; it is in no bin. */
static struct mk__block *merge_block(struct mk__slabs *s, struct mk__block *b)
{
    struct mk__block *before = get_before(b), *next = get_next(b);
    bool binned = !(b->bits & CLOSED);
    if (next && next->bits & FREE) {
        if (binned)
            take_from_bin(s, next);
        b->bits |= next->bits & LAST;
        set_size(b, get_size(b) + get_size(next));
    }
    if (before && before->bits & FREE) {
        if (binned)
            take_from_bin(s, before);
        before->bits |= b->bits & LAST;
        set_size(before, get_size(before) + get_size(b));
        b = before;
    }
    mk__pages_poison((char *)b + sizeof(*b), get_size(b) - sizeof(*b));
    return b;
}

/* Keeps one slab without items for the next one, and gives others back. */
static void free_whole_slab(struct mk__slabs *s, struct mk__block *b)
{
    struct mk__slab *slab = (struct mk__slab *)(void *)b - 1;
    bool over = atomic_load_explicit(&s->budget->bytes, memory_order_relaxed) >
                atomic_load_explicit(&s->budget->max, memory_order_relaxed);
    if (b->bits & CLOSED)
        atomic_fetch_sub_explicit(&s->closing_bytes, slab->bytes, memory_order_relaxed);
    if (b->bits & CLOSED || over || s->n_empty || get_size(b) >= MK__PAGES_HUGE) {
        unmap_slab(s, slab);
        return;
    }
    s->n_empty++;
    put_in_bin(s, b);
}

void mk__slabs_free(struct mk__slabs *s, void *p)
{
    struct mk__block *b = get_block(p);
    pthread_mutex_lock(&s->lock);
    assert(!(b->bits & FREE));
    b->bits |= FREE;
    b = merge_block(s, b);
    if (is_whole_slab(b))
        free_whole_slab(s, b);
    else if (!(b->bits & CLOSED))
        put_in_bin(s, b);
    pthread_mutex_unlock(&s->lock);
}

/* ── making room ── */

struct window {
    struct mk__block *first, *end; /* end: the block after it, or NULL */
    uint32_t bytes, used;
};

static bool is_usable(const struct mk__block *b, bool (*may)(const void *p))
{
    return b->bits & FREE || may((const char *)b + BLOCK_HEAD);
}

/* Returns the window of the slab that has the least used bytes; one without blocks if there is none. */
static struct window find_window(struct mk__slab *slab, uint32_t size, bool (*may)(const void *p))
{
    struct window best = {0}, w = {.first = get_first(slab)};
    struct mk__block *b = w.first;
    for (unsigned i = 0; b && i < WALKED; i++) {
        struct mk__block *next = get_next(b);
        if (!is_usable(b, may)) {
            w = (struct window){.first = next};
            b = next;
            continue;
        }
        w.bytes += get_size(b);
        w.used += b->bits & FREE ? 0 : get_size(b);
        w.end = b = next;
        while (w.bytes - get_size(w.first) >= size) {
            w.bytes -= get_size(w.first);
            w.used -= w.first->bits & FREE ? 0 : get_size(w.first);
            w.first = get_next(w.first);
        }
        if (w.bytes >= size && (!best.first || w.used < best.used))
            best = w;
    }
    return best;
}

/* Moves the first slab to the end of the list. */
static void rotate_slabs(struct mk__slabs *s)
{
    struct mk__slab *slab = s->first, *last = slab;
    if (!slab || !slab->next)
        return;
    while (last->next)
        last = last->next;
    s->first = slab->next;
    s->first->prev = NULL;
    slab->prev = last;
    slab->next = NULL;
    last->next = slab;
}

/* Holds the used blocks from `b` up to `end`. */
static unsigned hold_blocks(struct mk__block *b, const struct mk__block *end, bool (*may)(const void *p),
                            bool (*hold)(void *p), void **held, unsigned max)
{
    unsigned n = 0;
    for (; b && b != end && n < max; b = get_next(b)) {
        void *p = (char *)b + BLOCK_HEAD;
        if (!(b->bits & FREE) && may(p) && hold(p))
            held[n++] = p;
    }
    return n;
}

unsigned mk__slabs_window(struct mk__slabs *s, size_t bytes, bool (*may)(const void *p), bool (*hold)(void *p),
                          void **held, unsigned max)
{
    uint32_t size = (uint32_t)mk__slabs_block_bytes(bytes);
    unsigned n = 0;
    pthread_mutex_lock(&s->lock);
    for (struct mk__slab *slab = s->first; slab && !n; slab = slab->next) {
        if (get_first(slab)->bits & CLOSED)
            continue;
        struct window w = find_window(slab, size, may);
        if (w.first)
            n = hold_blocks(w.first, w.end, may, hold, held, max);
    }
    rotate_slabs(s);
    pthread_mutex_unlock(&s->lock);
    return n;
}

static void close_slab(struct mk__slabs *s, struct mk__slab *slab)
{
    atomic_fetch_add_explicit(&s->closing_bytes, slab->bytes, memory_order_relaxed);
    for (struct mk__block *b = get_first(slab); b; b = get_next(b)) {
        if (b->bits & FREE)
            take_from_bin(s, b);
        __atomic_store_n(&b->bits, b->bits | CLOSED, __ATOMIC_RELAXED);
    }
    struct mk__block *b = get_first(slab);
    if (b->bits & FREE && is_whole_slab(b)) {
        s->n_empty--;
        free_whole_slab(s, b);
    }
}

/* Returns the open slab to close for `bytes` bytes: the smallest that has them, else the largest; NULL without any. */
static struct mk__slab *choose_slab(struct mk__slabs *s, uint64_t bytes)
{
    struct mk__slab *best = NULL;
    for (struct mk__slab *slab = s->first; slab; slab = slab->next) {
        if (get_first(slab)->bits & CLOSED)
            continue;
        bool fits = slab->bytes >= bytes;
        if (!best || (fits ? slab->bytes < best->bytes || best->bytes < bytes : slab->bytes > best->bytes))
            best = slab;
    }
    return best;
}

void mk__slabs_close(struct mk__slabs *s, uint64_t bytes)
{
    pthread_mutex_lock(&s->lock);
    uint64_t closed = atomic_load_explicit(&s->closing_bytes, memory_order_relaxed);
    while (closed < bytes) {
        struct mk__slab *slab = choose_slab(s, bytes - closed);
        if (!slab)
            break;
        closed += slab->bytes;
        close_slab(s, slab);
    }
    pthread_mutex_unlock(&s->lock);
}

unsigned mk__slabs_closing(struct mk__slabs *s, bool (*may)(const void *p), bool (*hold)(void *p), void **held,
                           unsigned max)
{
    unsigned n = 0;
    pthread_mutex_lock(&s->lock);
    for (struct mk__slab *slab = s->first; slab && n < max; slab = slab->next)
        if (get_first(slab)->bits & CLOSED)
            n += hold_blocks(get_first(slab), NULL, may, hold, held + n, max - n);
    pthread_mutex_unlock(&s->lock);
    return n;
}
