// SPDX-License-Identifier: Apache-2.0
/*
 * Byte ranges (RFC 9110 section 14). Pure.
 */
#ifndef MK_HTTP_MESSAGE_RANGE_H
#define MK_HTTP_MESSAGE_RANGE_H

#include <stdint.h>

#include <monkey/str.h>

enum mk__range_result {
    MK__RANGE_IGNORE,        /* answer as if there were no Range: 200 */
    MK__RANGE_OK,            /* 206 */
    MK__RANGE_UNSATISFIABLE, /* 416, with an unsatisfied Content-Range */
};

/* As many ranges as anybody may ask for in one field; beyond that it is ignored. */
enum { MK__RANGES_MAX = 64 };

/* Positions of the first and the last byte: first <= last < size. */
struct mk__range {
    uint64_t first, last;
};

/*
 * Reads a Range field for a representation of `size` bytes. The satisfiable ranges are stored in the
 * client's order, clamped, neither sorted nor merged; `*ret_n` tells how many (at least 1 with
 * MK__RANGE_OK, else 0). Ignored: other units, garbled values, a last position before the first, more
 * than `max` ranges (unsatisfiable ones count). Of an empty representation a suffix is the whole, which
 * no Content-Range can say: ignored too.
 */
enum mk__range_result mk__range_parse(struct mk_str value, uint64_t size, struct mk__range *ranges, unsigned max,
                                      unsigned *ret_n);

/*
 * Merges those of `n` ranges that overlap, touch, or have fewer than `gap` bytes (at least 1) between them. The
 * order stays the client's; what was merged stands where the first of it stood. Returns how many are left.
 */
unsigned mk__range_merge(struct mk__range *ranges, unsigned n, uint64_t gap);

#endif
