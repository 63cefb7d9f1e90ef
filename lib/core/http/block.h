// SPDX-License-Identifier: Apache-2.0
/*
 * Header lines that were formatted before (struct mk_response_block): reads them again. Pure. Each line is
 * "Name: value\r\n".
 */
#ifndef MK_HTTP_BLOCK_H
#define MK_HTTP_BLOCK_H

#include <monkey/request.h>

#include "http/message/validators.h"

/* Takes the first line off `lines`. Returns false if there is none. */
bool mk__block_next(struct mk_str *lines, struct mk_str *ret_name, struct mk_str *ret_value);
/* Returns the value of the first line with this name; `.p` NULL: there is none. */
struct mk_str mk__block_find(struct mk_str lines, struct mk_str name);

enum { MK__BLOCK_ETAG_BYTES = MK__ETAG_BYTES + 8 /* with a coding and its hyphen */ };
/*
 * Writes the entity tag of a file and a NUL; a coding is added to it, since the bytes differ from those of the file
 * without it: "size-time" becomes "size-time-br". Returns the length without the NUL.
 */
size_t mk__block_format_etag(const struct mk_file *file, bool weak, char out[MK__BLOCK_ETAG_BYTES]);
/*
 * Tells whether the time of a file says when it was changed. In images, stores and archives that are made reproducible
 * all files have one of 1970, whatever their version is.
 */
bool mk__block_has_date(const struct mk_file *file);
/* Tells whether the entity tag of a file differs from that of another version of the same size. */
bool mk__block_has_etag(const struct mk_file *file);
/* The lengths of the names of the lines. */
static const uint8_t mk__block_name_len[MK_BLOCK_LINES] = {
    [MK_BLOCK_LAST_MODIFIED] = 13,    [MK_BLOCK_ETAG] = 4,           [MK_BLOCK_CONTENT_TYPE] = 12,
    [MK_BLOCK_CONTENT_ENCODING] = 16, [MK_BLOCK_ACCEPT_RANGES] = 13,
};

/* Returns the value of a line that begins at `*at`, which becomes the end of the line; empty: there is no such line. */
static inline struct mk_str mk__block_take_value(const struct mk_response_block *block, enum mk_block_line line,
                                                 uint32_t *at)
{
    const uint32_t len = block->value_len[line], value_at = *at + mk__block_name_len[line] + 2u;
    if (!len)
        return MK_STR("");
    *at = value_at + len + 2;
    return mk_str(block->text.p + value_at, len);
}

/* Returns the value of a line; empty: the block does not have it. */
static inline struct mk_str mk__block_value(const struct mk_response_block *block, enum mk_block_line line)
{
    uint32_t at = 0;
    for (unsigned before = 0; before < line; before++)
        mk__block_take_value(block, before, &at);
    return mk__block_take_value(block, line, &at);
}

/* Returns where the lines begin that a 304 does not repeat. */
static inline uint32_t mk__block_content_at(const struct mk_response_block *block)
{
    uint32_t at = 0;
    mk__block_take_value(block, MK_BLOCK_LAST_MODIFIED, &at);
    mk__block_take_value(block, MK_BLOCK_ETAG, &at);
    return at;
}

#endif
