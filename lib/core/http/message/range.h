// SPDX-License-Identifier: Apache-2.0
/*
 * Byte ranges (RFC 9110 section 14). Pure.
 */
#ifndef MK_HTTP_MESSAGE_RANGE_H
#define MK_HTTP_MESSAGE_RANGE_H

#include <stdint.h>

#include <monkey/base/str.h>

enum mk__range_result {
    MK__RANGE_IGNORE,        /* as without Range: 200 */
    MK__RANGE_OK,            /* 206 */
    MK__RANGE_UNSATISFIABLE, /* 416, with an unsatisfied Content-Range */
};

/*
 * Ranges in one field, before they are merged; with more the field is ignored. To merge so many takes less than 100 us.
 */
enum { MK__RANGES_MAX = 512 };

/* Positions of the first and the last byte: first <= last < size. */
struct mk__range {
    uint64_t first, last;
};

/*
 * Parses a Range field for a representation of `size` bytes. Stores the satisfiable ranges in the order of the field,
 * clamped, neither sorted nor merged, and their number in `*ret_n` (at least 1 with MK__RANGE_OK, else 0). Returns
 * MK__RANGE_IGNORE for other units, malformed values, a last position before the first, more than `max` ranges
 * (unsatisfiable ones count), and a suffix of an empty representation, which Content-Range cannot express.
 */
enum mk__range_result mk__range_parse(struct mk_str value, uint64_t size, struct mk__range *ranges, unsigned max,
                                      unsigned *ret_n);

/*
 * Merges ranges that overlap, touch, or have fewer than `gap` bytes (at least 1) between them. Keeps their order; a
 * merged range takes the place of its first one. Returns how many are left.
 */
unsigned mk__range_merge(struct mk__range *ranges, unsigned n, uint64_t gap);

#endif
