// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of http/h2/hpack_table.h.
 */
#include "http/h2/hpack_table.h"

#include "base/word.h"

#include <assert.h>
#include <errno.h>

/* ── the static table ── */

const struct mk__hpack_static mk__hpack_table_static[MK__HPACK_STATIC_ENTRIES] = {
    {MK_STR(":authority"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR(":method"), MK_STR("GET"), MK__HPACK_PLAIN, 1},
    {MK_STR(":method"), MK_STR("POST"), MK__HPACK_PLAIN, 0},
    {MK_STR(":path"), MK_STR("/"), MK__HPACK_PLAIN, 1},
    {MK_STR(":path"), MK_STR("/index.html"), MK__HPACK_PLAIN, 0},
    {MK_STR(":scheme"), MK_STR("http"), MK__HPACK_PLAIN, 1},
    {MK_STR(":scheme"), MK_STR("https"), MK__HPACK_PLAIN, 0},
    {MK_STR(":status"), MK_STR("200"), MK__HPACK_PLAIN, 6},
    {MK_STR(":status"), MK_STR("204"), MK__HPACK_PLAIN, 5},
    {MK_STR(":status"), MK_STR("206"), MK__HPACK_PLAIN, 4},
    {MK_STR(":status"), MK_STR("304"), MK__HPACK_PLAIN, 3},
    {MK_STR(":status"), MK_STR("400"), MK__HPACK_PLAIN, 2},
    {MK_STR(":status"), MK_STR("404"), MK__HPACK_PLAIN, 1},
    {MK_STR(":status"), MK_STR("500"), MK__HPACK_PLAIN, 0},
    {MK_STR("accept-charset"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("accept-encoding"), MK_STR("gzip, deflate"), MK__HPACK_PLAIN, 0},
    {MK_STR("accept-language"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("accept-ranges"), MK_STR(""), MK__HPACK_INDEXED, 0},
    {MK_STR("accept"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("access-control-allow-origin"), MK_STR(""), MK__HPACK_INDEXED, 0},
    {MK_STR("age"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("allow"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("authorization"), MK_STR(""), MK__HPACK_NEVER, 0},
    {MK_STR("cache-control"), MK_STR(""), MK__HPACK_INDEXED, 0},
    {MK_STR("content-disposition"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("content-encoding"), MK_STR(""), MK__HPACK_INDEXED, 0},
    {MK_STR("content-language"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("content-length"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("content-location"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("content-range"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("content-type"), MK_STR(""), MK__HPACK_INDEXED, 0},
    {MK_STR("cookie"), MK_STR(""), MK__HPACK_NEVER, 0},
    {MK_STR("date"), MK_STR(""), MK__HPACK_INDEXED, 0},
    {MK_STR("etag"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("expect"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("expires"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("from"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("host"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("if-match"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("if-modified-since"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("if-none-match"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("if-range"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("if-unmodified-since"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("last-modified"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("link"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("location"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("max-forwards"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("proxy-authenticate"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("proxy-authorization"), MK_STR(""), MK__HPACK_NEVER, 0},
    {MK_STR("range"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("referer"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("refresh"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("retry-after"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("server"), MK_STR(""), MK__HPACK_INDEXED, 0},
    {MK_STR("set-cookie"), MK_STR(""), MK__HPACK_NEVER, 0},
    {MK_STR("strict-transport-security"), MK_STR(""), MK__HPACK_INDEXED, 0},
    {MK_STR("transfer-encoding"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("user-agent"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("vary"), MK_STR(""), MK__HPACK_INDEXED, 0},
    {MK_STR("via"), MK_STR(""), MK__HPACK_PLAIN, 0},
    {MK_STR("www-authenticate"), MK_STR(""), MK__HPACK_PLAIN, 0},
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

/* Compares a name with one of the table; both have `len` bytes. */
static bool is_same_name(const char *name, const char *lower, size_t len)
{
    if (len < MK__WORD_BYTES / 2)
        return mk_str_ieq(mk_str(name, len), mk_str(lower, len));
    if (len < MK__WORD_BYTES)
        return mk__word_is_same_name(mk__word_load_short(name, len), mk__word_load_short(lower, len));
    for (size_t at = 0; at + MK__WORD_BYTES < len; at += MK__WORD_BYTES)
        if (!mk__word_is_same_name(mk__word_load(name + at), mk__word_load(lower + at)))
            return false;
    size_t last = len - MK__WORD_BYTES;
    return mk__word_is_same_name(mk__word_load(name + last), mk__word_load(lower + last));
}

unsigned mk__hpack_table_find_name(struct mk_str name)
{
    if (name.len > NAME_BYTES_MAX)
        return 0;
    for (unsigned i = first_of_length[name.len]; i < first_of_length[name.len + 1]; i++)
        if (is_same_name(name.p, mk__hpack_table_static[by_length[i] - 1].name.p, name.len))
            return by_length[i];
    return 0;
}

unsigned mk__hpack_table_find_value(unsigned first, struct mk_str value)
{
    const struct mk__hpack_static *row = &mk__hpack_table_static[first - 1];
    assert(first && first <= MK__HPACK_STATIC_ENTRIES);
    for (unsigned i = 0; i <= row->more; i++)
        if (row[i].value.len == value.len && mk_str_eq(row[i].value, value))
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

static bool get_static(uint32_t index, struct mk__hpack_row *ret_row)
{
    if (index == 0)
        return false;
    const struct mk__hpack_static *row = &mk__hpack_table_static[index - 1];
    *ret_row = (struct mk__hpack_row){row->name, row->value, (uint8_t)index, (uint8_t)index, NULL};
    return true;
}

bool mk__hpack_table_get(const struct mk__hpack_table *t, uint32_t index, struct mk__hpack_row *ret_row)
{
    if (index <= MK__HPACK_STATIC_ENTRIES)
        return get_static(index, ret_row);
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

uint32_t mk__hpack_table_find(const struct mk__hpack_table *t, unsigned name_index, struct mk_str value)
{
    const struct entry *entries = get_entries(t);
    const uint32_t mask = count_slots(t) - 1;
    const char *text = get_text(t);
    for (uint32_t i = t->n; i-- > 0;) {
        const struct entry *e = &entries[(t->first + i) & mask];
        if (e->name_index == name_index && e->value_len == value.len &&
            memcmp(text + e->at + e->name_len, value.p, value.len) == 0)
            return MK__HPACK_STATIC_ENTRIES + t->n - i;
    }
    return 0;
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
