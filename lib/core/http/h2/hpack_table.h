// SPDX-License-Identifier: Apache-2.0
/*
 * The static and the dynamic table of HPACK (RFC 7541 section 2.3, appendix A), which http/h2/hpack.c uses in both
 * directions.
 *
 *     block = entries: where the text of each is ── text: name value name value ...
 *                      └ a ring, the oldest first      └ oldest first, moved to the front when the end is reached
 *
 * The block is allocated with the first entry and grows with what is in it, so that an idle connection takes little.
 */
#ifndef MK_HTTP_H2_HPACK_TABLE_H
#define MK_HTTP_H2_HPACK_TABLE_H

#include <monkey/base/arena.h>
#include <monkey/base/str.h>

enum {
    MK__HPACK_STATIC_ENTRIES = 61,
    MK__HPACK_TABLE_BYTES = 4096, /* of both tables, until SETTINGS say something else */
    MK__HPACK_ENTRY_BYTES = 32,   /* added to the length of an entry: section 4.1 */
};

/* The first indices of the names that most responses have. */
enum {
    MK__HPACK_STATUS = 8,
    MK__HPACK_ACCEPT_RANGES = 18,
    MK__HPACK_CONTENT_ENCODING = 26,
    MK__HPACK_CONTENT_LENGTH = 28,
    MK__HPACK_CONTENT_TYPE = 31,
    MK__HPACK_DATE = 33,
    MK__HPACK_ETAG = 34,
    MK__HPACK_LAST_MODIFIED = 44,
    MK__HPACK_SERVER = 54,
};

/* How the encoder represents fields of a name. */
enum mk__hpack_indexing {
    MK__HPACK_PLAIN,   /* differs from response to response */
    MK__HPACK_INDEXED, /* is the same for many responses: added to the table */
    MK__HPACK_NEVER,   /* is a secret: section 7.1.3 */
};

/* A name and a value of either table. */
struct mk__hpack_row {
    struct mk_str name, value;
    uint8_t name_index;   /* of a row of the static table with this name; 0: it has none, or none is known */
    uint8_t static_index; /* of the row of the static table that this is; 0: it is none */
    uint8_t *note;        /* of the entry: a number of the caller, 0 at first; NULL: it has none */
};

struct mk__hpack_static {
    struct mk__hpack_row row;
    uint8_t indexing; /* enum mk__hpack_indexing */
    uint8_t more;     /* how many rows with the same name follow */
};

/* Row 0 is that of index 1. Rows of one name follow each other. */
extern const struct mk__hpack_static mk__hpack_table_static[MK__HPACK_STATIC_ENTRIES];

/* Returns the first index of a name, in any case of letters; 0: the table does not have it. */
unsigned mk__hpack_table_find_name(struct mk_str name);
/* Returns the index of a value, from the first index of its name on; 0: none. */
unsigned mk__hpack_table_find_value(unsigned first, struct mk_str value);

/*
 * The encoder's table remembers where it has found an entry of a name, in `hints` by the name's index: a look there
 * finds most fields. A hint may be wrong.
 */
enum { MK__HPACK_HINTS = 16 };

struct mk__hpack_table {
    struct mk_account *account;
    char *block;       /* NULL: no entry was added yet */
    uint32_t room;     /* the greatest size that the block has room for */
    uint32_t size;     /* of the entries, as section 4.1 counts */
    uint32_t size_max; /* above: the oldest ones are evicted */
    uint32_t text_end; /* where the text of the next entry begins */
    uint16_t first, n; /* the oldest entry, and how many there are */
    uint16_t hints[MK__HPACK_HINTS];
};

/* Gets the entry of an index after the static table. Returns false if there is none. */
bool mk__hpack_table_get_entry(const struct mk__hpack_table *t, uint32_t index, struct mk__hpack_row *ret_row);
/* Gets the row of an index. Returns false if there is none. */
static inline bool mk__hpack_table_get(const struct mk__hpack_table *t, uint32_t index, struct mk__hpack_row *ret_row)
{
    if (index == 0 || index > MK__HPACK_STATIC_ENTRIES)
        return index && mk__hpack_table_get_entry(t, index, ret_row);
    *ret_row = mk__hpack_table_static[index - 1].row;
    return true;
}
/* Returns the index of an entry by the index that its name has in the static table; 0: there is none. */
uint32_t mk__hpack_table_find(struct mk__hpack_table *t, unsigned name_index, struct mk_str value);
/*
 * Adds an entry, and evicts those that have no room any more; one that is larger than the table empties it. Its strings
 * must not be in the table. Returns 0 or -ENOMEM.
 */
int mk__hpack_table_add(struct mk__hpack_table *t, const struct mk__hpack_row *row);
/* Changes the greatest size, which evicts entries. */
void mk__hpack_table_resize(struct mk__hpack_table *t, uint32_t size_max);
void mk__hpack_table_release(struct mk__hpack_table *t);

#endif
