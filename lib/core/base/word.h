// SPDX-License-Identifier: Apache-2.0
/*
 * Looks at eight bytes at a time, on any processor. The first byte in memory is the lowest one of a word. A mark is bit
 * 7 of a byte. Functions that mark bytes are exact up to the first mark; bytes after it may be marked without a
 * reason, because a carry passes from byte to byte.
 */
#ifndef MK_BASE_WORD_H
#define MK_BASE_WORD_H

#include <monkey/base/str.h>

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MK__WORD_BYTES = 8 };

/* A word of eight such bytes. */
#define MK__WORD_OF(byte) (UINT64_MAX / 255 * (unsigned char)(byte))

static inline uint64_t mk__word_load(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

/* Loads the `len` bytes of a text of 4 to 8 bytes; those in its middle twice. */
static inline uint64_t mk__word_load_short(const char *p, size_t len)
{
    uint32_t first, last;
    memcpy(&first, p, sizeof(first));
    memcpy(&last, p + len - sizeof(last), sizeof(last));
    return (uint64_t)last << 32 | first;
}

/* Marks the bytes below `limit`, which is at most 0x80. */
static inline uint64_t mk__word_mark_below(uint64_t word, unsigned char limit)
{
    return (word - MK__WORD_OF(limit)) & ~word & MK__WORD_OF(0x80);
}

/* Marks the bytes that are `byte`. */
static inline uint64_t mk__word_mark(uint64_t word, unsigned char byte)
{
    return mk__word_mark_below(word ^ MK__WORD_OF(byte), 1);
}

/*
 * Tells whether `mark` marks a byte in a text of at least 4 bytes. It may get some bytes twice.
 */
static inline bool mk__word_has_marks(const char *p, size_t len, uint64_t (*mark)(uint64_t word))
{
    assert(len >= MK__WORD_BYTES / 2);
    if (len < MK__WORD_BYTES)
        return mark(mk__word_load_short(p, len));
    uint64_t marks = mark(mk__word_load(p + len - MK__WORD_BYTES));
    for (size_t at = 0; at < len - MK__WORD_BYTES; at += MK__WORD_BYTES)
        marks |= mark(mk__word_load(p + at));
    return marks;
}

/*
 * Tells whether a word is `lower` but for the case of letters. In `lower`, letters have bit 6 and other bytes do not:
 * bit 5 may differ in letters only.
 */
static inline bool mk__word_is_same_name(uint64_t word, uint64_t lower)
{
    return (word | (lower & MK__WORD_OF(0x40)) >> 1) == lower;
}

/* Returns which byte of a word has the first mark; there is one. */
static inline unsigned mk__word_first(uint64_t marks)
{
    return (unsigned)__builtin_ctzll(marks) / 8;
}

/* Compares a name with one in lower case, as mk__word_is_same_name() does; both have `len` bytes. */
static inline bool mk__word_is_same_text(const char *name, const char *lower, size_t len)
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

#endif
