// SPDX-License-Identifier: Apache-2.0
/*
 * What stands around several ranges in one response: multipart/byteranges (RFC 9110 section 14.6).
 *
 *     head 0 │ range 0 │ head 1 │ range 1 │ ... │ the closing delimiter
 */
#ifndef MK_HTTP_MESSAGE_MULTIPART_H
#define MK_HTTP_MESSAGE_MULTIPART_H

#include <monkey/arena.h>

#include "http/message/range.h"

enum {
    MK__MULTIPART_MAX = 16,       /* parts of a response */
    MK__MULTIPART_GAP_BYTES = 80, /* about what a part costs: what lies closer together is cheaper in one */
    MK__BOUNDARY_BYTES = 24,
};

struct mk__multipart {
    struct mk_str type;                         /* the Content-Type of the whole */
    uint64_t bytes;                             /* of the whole body */
    struct mk_str heads[MK__MULTIPART_MAX + 1]; /* in front of each range, and behind the last one */
};

/*
 * Fills in MK__BOUNDARY_BYTES random characters, 120 bits: nobody can put into a file what will delimit it.
 * 0 or -errno when the kernel has no randomness yet.
 */
int mk__multipart_make_boundary(char *ret_boundary);

/*
 * The frame of `n` (1 to 16) ranges, merged, of a file with this type and size (at most INT64_MAX). Lives in `arena`.
 * 0 or -ENOMEM.
 */
int mk__multipart_build(struct mk__multipart *m, struct mk_arena *arena, struct mk_str boundary,
                        const struct mk__range *ranges, unsigned n, struct mk_str type, uint64_t size);

#endif
