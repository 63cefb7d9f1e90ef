// SPDX-License-Identifier: Apache-2.0
/*
 * The representations of http/h2/hpack.h: RFC 7541 section 6.
 */
#include "http/h2/hpack.h"

#include "http/h2/hpack_table.h"
#include "http/h2/huffman.h"

#include <assert.h>
#include <errno.h>

enum {
    INDEXED = 0x80,
    LITERAL_INDEXED = 0x40,
    RESIZE = 0x20,
    LITERAL_NEVER = 0x10,
    LITERAL_PLAIN = 0x00,
    HUFFMAN = 0x80, /* of a string */
};

/* Integers are less: no string is as long, and no table as large. */
enum { INTEGER_BITS_MAX = 28 };

/* ── the decoder ── */

void mk__hpack_decoder_init(struct mk__hpack_decoder *d, struct mk_account *account)
{
    *d = (struct mk__hpack_decoder){.table = {.account = account, .size_max = MK__HPACK_TABLE_BYTES},
                                    .size_limit = MK__HPACK_TABLE_BYTES};
}

void mk__hpack_decoder_release(struct mk__hpack_decoder *d)
{
    mk__hpack_table_release(&d->table);
}

void mk__hpack_decode_begin(struct mk__hpack_decoder *d)
{
    d->begun = false;
}

struct input {
    const uint8_t *at, *end;
};

/* Reads what follows the prefix of an integer that is at least `value`. Returns 0, MK_AGAIN or -EINVAL. */
static int read_long_integer(struct input *in, uint32_t value, uint32_t *ret_value)
{
    for (unsigned shift = 0;; shift += 7) {
        if (in->at == in->end)
            return MK_AGAIN;
        uint8_t byte = *in->at++;
        value += (byte & 0x7fu) << shift;
        if (!(byte & 0x80))
            break;
        if (shift + 7 >= INTEGER_BITS_MAX)
            return -EINVAL;
    }
    *ret_value = value;
    return 0;
}

/* Reads an integer with a prefix of so many bits: section 5.1. Returns 0, MK_AGAIN or -EINVAL. */
static inline int read_integer(struct input *in, unsigned prefix_bits, uint32_t *ret_value)
{
    const uint32_t mask = (1u << prefix_bits) - 1;
    if (in->at == in->end)
        return MK_AGAIN;
    *ret_value = *in->at++ & mask;
    return *ret_value < mask ? 0 : read_long_integer(in, mask, ret_value);
}

/* A string as it was received. */
struct hpack_string {
    struct mk_str bytes;
    bool huffman;
};

/* Reads a string: section 5.2. Returns 0, MK_AGAIN or -EINVAL. */
static int read_string(struct input *in, struct hpack_string *ret_string)
{
    uint32_t len;
    bool huffman = in->at < in->end && *in->at & HUFFMAN;
    int r = read_integer(in, 7, &len);
    if (r == 0 && len > (size_t)(in->end - in->at))
        r = MK_AGAIN;
    if (r != 0)
        return r;
    *ret_string = (struct hpack_string){mk_str((const char *)in->at, len), huffman};
    in->at += len;
    return 0;
}

/* Where decoded strings go. */
struct room {
    char *p;
    size_t left;
};

static struct mk_str put_copy(struct room *room, struct mk_str s)
{
    assert(s.len <= room->left);
    struct mk_str copy = mk_str(room->p, s.len);
    if (s.len)
        memcpy(room->p, s.p, s.len);
    room->p += s.len;
    room->left -= s.len;
    return copy;
}

/* Decodes a string. Returns 0 or -EINVAL. */
static int decode_string(struct room *room, struct hpack_string s, struct mk__hpack_field *field,
                         struct mk_str *ret_text)
{
    *ret_text = s.bytes;
    if (s.huffman) {
        ssize_t len = mk__huffman_decode(s.bytes, room->p, room->left);
        if (len < 0)
            return (int)len;
        size_t kept = (size_t)len < room->left ? (size_t)len : room->left;
        field->cut |= kept < (size_t)len;
        field->bytes += (size_t)len - kept;
        *ret_text = mk_str(room->p, kept);
        room->p += kept;
        room->left -= kept;
    }
    field->bytes += ret_text->len;
    return 0;
}

/* Section 6.1. */
static int decode_indexed(const struct mk__hpack_decoder *d, struct input *in, struct mk__hpack_field *field)
{
    uint32_t index;
    int r = read_integer(in, 7, &index);
    if (r != 0)
        return r;
    if (!mk__hpack_table_get(&d->table, index, &field->row))
        return -EINVAL;
    field->bytes = field->row.name.len + field->row.value.len;
    return 0;
}

/* Reads the name of a literal: an index, or 0 and a string. Returns 0, MK_AGAIN or -EINVAL. */
static int read_name(const struct mk__hpack_decoder *d, struct input *in, unsigned prefix_bits, uint32_t *ret_index,
                     struct mk__hpack_row *ret_row, struct hpack_string *ret_coded)
{
    int r = read_integer(in, prefix_bits, ret_index);
    if (r != 0)
        return r;
    if (*ret_index == 0)
        return read_string(in, ret_coded);
    return mk__hpack_table_get(&d->table, *ret_index, ret_row) ? 0 : -EINVAL;
}

static int decode_literal(struct mk__hpack_decoder *d, struct input *in, unsigned prefix_bits, bool adds,
                          struct room *room, struct mk__hpack_field *field)
{
    MK_UNINITIALIZED struct hpack_string name, value;
    struct mk__hpack_row *row = &field->row;
    uint32_t index;
    int r = read_name(d, in, prefix_bits, &index, row, &name);
    if (r == 0)
        r = read_string(in, &value);
    if (r != 0)
        return r;
    if (!index)
        *row = (struct mk__hpack_row){.name_index = 0};
    if (index > MK__HPACK_STATIC_ENTRIES && adds) /* adding the field may evict or move this entry */
        row->name = put_copy(room, row->name);
    row->static_index = 0;
    row->note = NULL;
    field->bytes = row->name.len;
    if (!index)
        r = decode_string(room, name, field, &row->name);
    return r == 0 ? decode_string(room, value, field, &row->value) : r;
}

/* Section 6.2.1. A field that was cut is larger than the table, and empties it. */
static int decode_added(struct mk__hpack_decoder *d, struct input *in, struct room *room, struct mk__hpack_field *field)
{
    int r = decode_literal(d, in, 6, true, room, field);
    if (r != 0)
        return r;
    return mk__hpack_table_add(&d->table, &field->row);
}

/* Section 6.3. Returns 0, MK_AGAIN or -EINVAL. */
static int decode_resize(struct mk__hpack_decoder *d, struct input *in)
{
    uint32_t size;
    int r = read_integer(in, 5, &size);
    if (r != 0)
        return r;
    if (d->begun || size > d->size_limit)
        return -EINVAL;
    mk__hpack_table_resize(&d->table, size);
    return 0;
}

static bool is_resize(uint8_t first)
{
    return (first & ~(RESIZE - 1)) == RESIZE;
}

/* Takes an index of one byte, which most fields are, off the input. Returns false if something else comes first. */
static bool decode_short_index(const struct mk__hpack_decoder *d, struct mk_str *in, struct mk__hpack_field *field)
{
    const uint8_t first = in->len ? (uint8_t)*in->p : 0;
    if (!(first & INDEXED) || first == UINT8_MAX || !mk__hpack_table_get(&d->table, first & ~INDEXED, &field->row))
        return false;
    field->bytes = field->row.name.len + field->row.value.len;
    *in = mk_str_after(*in, 1);
    return true;
}

static int decode_field(struct mk__hpack_decoder *d, struct input *in, struct room *room, struct mk__hpack_field *field)
{
    const uint8_t first = *in->at;
    assert(!is_resize(first));
    if (first & INDEXED)
        return decode_indexed(d, in, field);
    if (first & LITERAL_INDEXED)
        return decode_added(d, in, room, field);
    field->never_indexed = first & LITERAL_NEVER; /* sections 6.2.2 and 6.2.3 */
    return decode_literal(d, in, 4, false, room, field);
}

/* Takes table size updates, which only precede fields, and a field. Results as mk__hpack_decode(). */
static int decode_next(struct mk__hpack_decoder *d, struct mk_str *in, struct room *room, struct mk__hpack_field *field)
{
    const uint8_t *at = (const uint8_t *)in->p;
    struct input input = {at, at + in->len};
    int r = 0;
    while (r == 0 && input.at < input.end && is_resize(*input.at)) {
        r = decode_resize(d, &input);
        if (r == 0)
            *in = mk_str((const char *)input.at, (size_t)(input.end - input.at));
    }
    if (r != 0 || input.at == input.end)
        return r ? r : MK_AGAIN;
    r = decode_field(d, &input, room, field);
    if (r == 0)
        *in = mk_str((const char *)input.at, (size_t)(input.end - input.at));
    return r;
}

int mk__hpack_decode(struct mk__hpack_decoder *d, struct mk_str *in, char *room, size_t size,
                     struct mk__hpack_field *ret_field)
{
    struct room left = {room, size};
    assert(size >= MK__HPACK_TABLE_BYTES);
    ret_field->cut = ret_field->never_indexed = false;
    int r = decode_short_index(d, in, ret_field) ? 0 : decode_next(d, in, &left, ret_field);
    d->begun |= r == 0;
    return r;
}

/* ── the encoder ── */

void mk__hpack_encoder_init(struct mk__hpack_encoder *e, struct mk_account *account)
{
    *e = (struct mk__hpack_encoder){.table = {.account = account, .size_max = MK__HPACK_TABLE_BYTES},
                                    .size_wanted = MK__HPACK_ENCODER_BYTES,
                                    .size_least = MK__HPACK_ENCODER_BYTES};
}

void mk__hpack_encoder_release(struct mk__hpack_encoder *e)
{
    mk__hpack_table_release(&e->table);
}

void mk__hpack_encode_resize(struct mk__hpack_encoder *e, uint32_t size)
{
    e->size_wanted = size < MK__HPACK_ENCODER_BYTES ? size : MK__HPACK_ENCODER_BYTES;
    if (e->size_wanted < e->size_least)
        e->size_least = e->size_wanted;
}

static inline char *put_integer(char *to, uint8_t first, unsigned prefix_bits, size_t value)
{
    const unsigned mask = (1u << prefix_bits) - 1;
    if (value < mask) {
        *to++ = (char)(first | value);
        return to;
    }
    *to++ = (char)(first | mask);
    for (value -= mask; value >= 0x80; value >>= 7)
        *to++ = (char)(value | 0x80);
    *to++ = (char)value;
    return to;
}

/* Section 4.2: a table that was smaller in the meantime has lost its entries, which the peer must learn. */
char *mk__hpack_encode_begin(struct mk__hpack_encoder *e, char *to)
{
    if (e->size_least == e->table.size_max && e->size_wanted == e->table.size_max)
        return to;
    const uint32_t sizes[] = {e->size_least, e->size_wanted};
    for (size_t i = 0; i < MK_COUNT_OF(sizes); i++)
        if (sizes[i] != e->table.size_max) {
            mk__hpack_table_resize(&e->table, sizes[i]);
            to = put_integer(to, RESIZE, 5, sizes[i]);
        }
    e->size_least = e->size_wanted;
    return to;
}

static inline char *put_plain(char *to, struct mk_str s)
{
    to = put_integer(to, 0, 7, s.len);
    if (s.len)
        memcpy(to, s.p, s.len);
    return to + s.len;
}

static char *put_name(char *to, struct mk_str name)
{
    to = put_integer(to, 0, 7, name.len);
    for (size_t i = 0; i < name.len; i++)
        *to++ = mk_lower(name.p[i]);
    return to;
}

/* Only of a field that is sent once for many responses: for others, the time is worth more than the bytes. */
static char *put_huffman(char *to, struct mk_str s)
{
    size_t len = mk__huffman_encoded_len(s);
    if (len >= s.len)
        return put_plain(to, s);
    return mk__huffman_encode(put_integer(to, HUFFMAN, 7, len), s);
}

/* Makes a field an entry of the table. Apart, because most are in it. */
static MK_COLD __attribute__((noinline)) char *put_added(struct mk__hpack_encoder *e, char *to, unsigned name_index,
                                                         struct mk_str value)
{
    const struct mk__hpack_row row = {mk__hpack_table_static[name_index - 1].row.name, value, (uint8_t)name_index, 0,
                                      NULL};
    bool adds = mk__hpack_table_add(&e->table, &row) == 0;
    to = put_integer(to, adds ? LITERAL_INDEXED : LITERAL_PLAIN, adds ? 6 : 4, name_index);
    return put_huffman(to, value);
}

/* Encodes a field that is the same in many responses: by its index, or as an entry of the table from now on. */
static inline char *put_indexed(struct mk__hpack_encoder *e, char *to, unsigned name_index, struct mk_str value)
{
    uint32_t index = mk__hpack_table_find(&e->table, name_index, value);
    return index ? put_integer(to, INDEXED, 7, index) : put_added(e, to, name_index, value);
}

static inline char *put_known(struct mk__hpack_encoder *e, char *to, unsigned name_index, struct mk_str value)
{
    const struct mk__hpack_static *first = &mk__hpack_table_static[name_index - 1];
    const uint8_t indexing = first->indexing;
    if (indexing == MK__HPACK_INDEXED)
        return put_indexed(e, to, name_index, value);
    bool may_be_row = first->row.value.len || !value.len;
    unsigned index = may_be_row ? mk__hpack_table_find_value(name_index, value) : 0;
    if (index)
        return put_integer(to, INDEXED, 7, index);
    to = put_integer(to, indexing == MK__HPACK_NEVER ? LITERAL_NEVER : LITERAL_PLAIN, 4, name_index);
    return put_plain(to, value);
}

char *mk__hpack_encode(struct mk__hpack_encoder *e, char *to, const struct mk__hpack_header *headers, unsigned n)
{
    for (const struct mk__hpack_header *h = headers; h < headers + n; h++) {
        unsigned name_index = h->name_index ? h->name_index : mk__hpack_table_find_name(h->name);
        if (name_index) {
            to = put_known(e, to, name_index, h->value);
        } else {
            *to++ = LITERAL_PLAIN;
            to = put_plain(put_name(to, h->name), h->value);
        }
    }
    return to;
}
