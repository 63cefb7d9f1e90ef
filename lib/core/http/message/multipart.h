// SPDX-License-Identifier: Apache-2.0
/*
 * The texts around several ranges in one response: multipart/byteranges (RFC 9110 section 14.6).
 *
 *     head 0 │ range 0 │ head 1 │ range 1 │ ... │ the closing delimiter
 */
#ifndef MK_HTTP_MESSAGE_MULTIPART_H
#define MK_HTTP_MESSAGE_MULTIPART_H

#include <monkey/base/arena.h>

#include "http/message/range.h"

enum {
    MK__MULTIPART_MAX = 200,      /* parts of a response; zsync asks for 20, zchunk for 127 */
    MK__MULTIPART_GAP_BYTES = 80, /* about the overhead of a part: ranges that are closer are merged */
    MK__BOUNDARY_BYTES = 24,
};

struct mk__multipart {
    struct mk_str type;                         /* Content-Type of the response */
    uint64_t bytes;                             /* of the whole body */
    struct mk_str heads[MK__MULTIPART_MAX + 1]; /* before each range, and after the last one */
};

/*
 * Writes MK__BOUNDARY_BYTES random characters, 120 bits, so that a file cannot contain its own delimiter. Returns as
 * mk_random().
 */
int mk__multipart_make_boundary(char *ret_boundary);

/*
 * Builds the texts around `n` (1 to MK__MULTIPART_MAX) ranges of a file with this type and size (at most INT64_MAX).
 * They live in `arena`. Returns 0 or -ENOMEM.
 */
int mk__multipart_build(struct mk__multipart *m, struct mk_arena *arena, struct mk_str boundary,
                        const struct mk__range *ranges, unsigned n, struct mk_str type, uint64_t size);

#endif
