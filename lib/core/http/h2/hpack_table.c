// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of http/h2/hpack_table.h.
 */
#include "http/h2/hpack_table.h"

#include "base/word.h"

#include <assert.h>
#include <errno.h>

/* ── the static table ── */

#define ROW(index, name, value, indexing, more) \
    { \
        {MK_STR_INIT(name), MK_STR_INIT(value), index, index, NULL}, MK__HPACK_##indexing, more \
    }

const struct mk__hpack_static mk__hpack_table_static[MK__HPACK_STATIC_ENTRIES] = {
    ROW(1, ":authority", "", PLAIN, 0),
    ROW(2, ":method", "GET", PLAIN, 1),
    ROW(3, ":method", "POST", PLAIN, 0),
    ROW(4, ":path", "/", PLAIN, 1),
    ROW(5, ":path", "/index.html", PLAIN, 0),
    ROW(6, ":scheme", "http", PLAIN, 1),
    ROW(7, ":scheme", "https", PLAIN, 0),
    ROW(8, ":status", "200", PLAIN, 6),
    ROW(9, ":status", "204", PLAIN, 5),
    ROW(10, ":status", "206", PLAIN, 4),
    ROW(11, ":status", "304", PLAIN, 3),
    ROW(12, ":status", "400", PLAIN, 2),
    ROW(13, ":status", "404", PLAIN, 1),
    ROW(14, ":status", "500", PLAIN, 0),
    ROW(15, "accept-charset", "", PLAIN, 0),
    ROW(16, "accept-encoding", "gzip, deflate", PLAIN, 0),
    ROW(17, "accept-language", "", PLAIN, 0),
    ROW(18, "accept-ranges", "", INDEXED, 0),
    ROW(19, "accept", "", PLAIN, 0),
    ROW(20, "access-control-allow-origin", "", INDEXED, 0),
    ROW(21, "age", "", PLAIN, 0),
    ROW(22, "allow", "", PLAIN, 0),
    ROW(23, "authorization", "", NEVER, 0),
    ROW(24, "cache-control", "", INDEXED, 0),
    ROW(25, "content-disposition", "", PLAIN, 0),
    ROW(26, "content-encoding", "", INDEXED, 0),
    ROW(27, "content-language", "", PLAIN, 0),
    ROW(28, "content-length", "", PLAIN, 0),
    ROW(29, "content-location", "", PLAIN, 0),
    ROW(30, "content-range", "", PLAIN, 0),
    ROW(31, "content-type", "", INDEXED, 0),
    ROW(32, "cookie", "", NEVER, 0),
    ROW(33, "date", "", INDEXED, 0),
    ROW(34, "etag", "", PLAIN, 0),
    ROW(35, "expect", "", PLAIN, 0),
    ROW(36, "expires", "", PLAIN, 0),
    ROW(37, "from", "", PLAIN, 0),
    ROW(38, "host", "", PLAIN, 0),
    ROW(39, "if-match", "", PLAIN, 0),
    ROW(40, "if-modified-since", "", PLAIN, 0),
    ROW(41, "if-none-match", "", PLAIN, 0),
    ROW(42, "if-range", "", PLAIN, 0),
    ROW(43, "if-unmodified-since", "", PLAIN, 0),
    ROW(44, "last-modified", "", PLAIN, 0),
    ROW(45, "link", "", PLAIN, 0),
    ROW(46, "location", "", PLAIN, 0),
    ROW(47, "max-forwards", "", PLAIN, 0),
    ROW(48, "proxy-authenticate", "", PLAIN, 0),
    ROW(49, "proxy-authorization", "", NEVER, 0),
    ROW(50, "range", "", PLAIN, 0),
    ROW(51, "referer", "", PLAIN, 0),
    ROW(52, "refresh", "", PLAIN, 0),
    ROW(53, "retry-after", "", PLAIN, 0),
    ROW(54, "server", "", INDEXED, 0),
    ROW(55, "set-cookie", "", NEVER, 0),
    ROW(56, "strict-transport-security", "", INDEXED, 0),
    ROW(57, "transfer-encoding", "", PLAIN, 0),
    ROW(58, "user-agent", "", PLAIN, 0),
    ROW(59, "vary", "", INDEXED, 0),
    ROW(60, "via", "", PLAIN, 0),
    ROW(61, "www-authenticate", "", PLAIN, 0),
};

/* The first indices of all names, sorted by the length of the name; those that most responses have come first. */
static const uint8_t by_length[] = {
    21, 60, 33, 34, 59, 37, 38, 45, 4,  22, 50, 54, 19, 32, 35, 8,  2,  6,  36, 51, 52, 46, 39, 42, 55, 1,
    58, 53, 31, 47, 44, 18, 24, 30, 23, 41, 28, 15, 16, 17, 26, 27, 29, 61, 40, 57, 48, 25, 43, 49, 56, 20,
};

enum { NAME_BYTES_MAX = 27 };

/* The first of `by_length` whose name has this length. */
static const uint8_t first_of_length[NAME_BYTES_MAX + 2] = {0,  0,  0,  0,  2,  8,  11, 15, 21, 24, 24, 27, 28, 30, 36,
                                                            38, 40, 44, 46, 47, 50, 50, 50, 50, 50, 50, 51, 51, 52};

unsigned mk__hpack_table_find_name(struct mk_str name)
{
    if (name.len > NAME_BYTES_MAX)
        return 0;
    for (unsigned i = first_of_length[name.len]; i < first_of_length[name.len + 1]; i++)
        if (mk__word_is_same_text(name.p, mk__hpack_table_static[by_length[i] - 1].row.name.p, name.len))
            return by_length[i];
    return 0;
}

unsigned mk__hpack_table_find_value(unsigned first, struct mk_str value)
{
    const struct mk__hpack_static *row = &mk__hpack_table_static[first - 1];
    assert(first && first <= MK__HPACK_STATIC_ENTRIES);
    for (unsigned i = 0; i <= row->more; i++)
        if (mk_str_eq(row[i].row.value, value))
            return first + i;
    return 0;
}

/* ── the dynamic table ── */

struct entry {
    uint16_t at; /* of the name in the text; the value follows it */
    uint16_t name_len, value_len;
    uint8_t name_index, note;
};

enum { ROOM_BYTES_MIN = 256 };

/* How many entries a block has room for: none is smaller than MK__HPACK_ENTRY_BYTES. */
static uint32_t count_slots(const struct mk__hpack_table *t)
{
    return t->room / MK__HPACK_ENTRY_BYTES;
}

static struct entry *get_entries(const struct mk__hpack_table *t)
{
    return (void *)t->block;
}

static struct entry *get_entry(const struct mk__hpack_table *t, uint32_t i)
{
    return &get_entries(t)[(t->first + i) & (count_slots(t) - 1)]; /* a power of two */
}

static char *get_text(const struct mk__hpack_table *t)
{
    return t->block + count_slots(t) * sizeof(struct entry);
}

static size_t block_bytes(const struct mk__hpack_table *t)
{
    return count_slots(t) * sizeof(struct entry) + t->room;
}

bool mk__hpack_table_get_entry(const struct mk__hpack_table *t, uint32_t index, struct mk__hpack_row *ret_row)
{
    assert(index > MK__HPACK_STATIC_ENTRIES);
    uint32_t age = index - MK__HPACK_STATIC_ENTRIES - 1;
    if (age >= t->n)
        return false;
    struct entry *e = get_entry(t, t->n - 1 - age);
    const char *text = get_text(t) + e->at;
    *ret_row = (struct mk__hpack_row){.name = mk_str(text, e->name_len),
                                      .value = mk_str(text + e->name_len, e->value_len),
                                      .name_index = e->name_index,
                                      .note = &e->note};
    return true;
}

static inline bool is_entry(const struct entry *e, const char *text, unsigned name_index, struct mk_str value)
{
    return e->name_index == name_index && mk_str_eq(mk_str(text + e->at + e->name_len, e->value_len), value);
}

uint32_t mk__hpack_table_find(struct mk__hpack_table *t, unsigned name_index, struct mk_str value)
{
    if (!t->n) /* there may be no block either */
        return 0;
    const struct entry *entries = get_entries(t);
    const uint32_t mask = count_slots(t) - 1;
    const char *text = get_text(t);
    uint16_t *hint = &t->hints[name_index % MK__HPACK_HINTS];
    uint32_t i = ((uint32_t)*hint - t->first) & mask;
    if (i >= t->n || !is_entry(&entries[*hint & mask], text, name_index, value))
        for (i = t->n; i-- > 0;)
            if (is_entry(&entries[(t->first + i) & mask], text, name_index, value))
                break;
    if (i >= t->n)
        return 0;
    *hint = (uint16_t)((t->first + i) & mask);
    return MK__HPACK_STATIC_ENTRIES + t->n - i;
}

static void evict_oldest(struct mk__hpack_table *t)
{
    const struct entry *e = get_entry(t, 0);
    assert(t->n);
    t->size -= MK__HPACK_ENTRY_BYTES + (uint32_t)e->name_len + e->value_len;
    t->first = (uint16_t)((t->first + 1) % count_slots(t));
    t->n--;
}

static void evict_above(struct mk__hpack_table *t, uint32_t size)
{
    while (t->size > size)
        evict_oldest(t);
    if (!t->n)
        t->text_end = 0;
}

/* Moves the entries to another block, which may be the same, so that its text begins with that of the oldest one. */
static void move_entries(const struct mk__hpack_table *from, struct mk__hpack_table *to)
{
    const uint32_t base = from->n ? get_entry(from, 0)->at : 0;
    for (uint32_t i = 0; i < from->n; i++) {
        struct entry e = *get_entry(from, i);
        e.at = (uint16_t)(e.at - base);
        *get_entry(to, i) = e;
    }
    memmove(get_text(to), get_text(from) + base, from->text_end - base);
    to->text_end = from->text_end - base;
}

/* Replaces the block by one for entries of `size`. Returns 0 or -ENOMEM. */
static int grow_block(struct mk__hpack_table *t, uint32_t size)
{
    struct mk__hpack_table larger = *t;
    if (larger.room < ROOM_BYTES_MIN)
        larger.room = ROOM_BYTES_MIN;
    while (larger.room < size)
        larger.room *= 2;
    larger.block = mk_account_alloc(t->account, block_bytes(&larger));
    if (!larger.block)
        return -ENOMEM;
    larger.first = 0;
    if (t->block) {
        move_entries(t, &larger);
        mk_account_free(t->account, t->block, block_bytes(t));
    }
    *t = larger;
    return 0;
}

int mk__hpack_table_add(struct mk__hpack_table *t, const struct mk__hpack_row *row)
{
    const struct mk_str *name = &row->name, *value = &row->value;
    size_t len = name->len + value->len;
    if (len + MK__HPACK_ENTRY_BYTES > t->size_max) {
        evict_above(t, 0);
        return 0;
    }
    uint32_t size = (uint32_t)len + MK__HPACK_ENTRY_BYTES;
    evict_above(t, t->size_max - size);
    if (t->size + size > t->room && grow_block(t, t->size + size) < 0)
        return -ENOMEM;
    if (len > t->room - t->text_end)
        move_entries(t, t);
    char *text = get_text(t) + t->text_end;
    *get_entry(t, t->n++) =
        (struct entry){(uint16_t)t->text_end, (uint16_t)name->len, (uint16_t)value->len, row->name_index, 0};
    memcpy(text, name->p, name->len);
    if (value->len)
        memcpy(text + name->len, value->p, value->len);
    t->text_end += (uint32_t)len;
    t->size += size;
    return 0;
}

void mk__hpack_table_resize(struct mk__hpack_table *t, uint32_t size_max)
{
    evict_above(t, size_max);
    t->size_max = size_max;
}

void mk__hpack_table_release(struct mk__hpack_table *t)
{
    if (t->block)
        mk_account_free(t->account, t->block, block_bytes(t));
    t->block = NULL;
}
