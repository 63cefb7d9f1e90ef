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
/* Returns the value of a line; empty: the block does not have it. */
static inline struct mk_str mk__block_value(const struct mk_response_block *block, enum mk_block_line line)
{
    return mk_str(block->text.p + block->values[line].at, block->values[line].len);
}

#endif
