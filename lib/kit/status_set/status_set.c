// SPDX-License-Identifier: Apache-2.0
/*
 * Reads sets of statuses (<monkey/kit/status_set.h>).
 */
#include <monkey/kit/status_set.h>

#include <errno.h>

static bool parse_status(struct mk_str text, uint64_t *ret)
{
    return text.len == 3 && mk_str_u64(text, MK_STATUS_SET_LAST, ret) && *ret >= MK_STATUS_SET_FIRST;
}

int mk_status_set_add(struct mk_status_set *set, struct mk_str word)
{
    uint64_t first, last;
    bool is_range = word.len == 7 && word.p[3] == '-';
    struct mk_str begin = is_range ? mk_str(word.p, 3) : word, end = is_range ? mk_str(word.p + 4, 3) : word;
    if (!parse_status(begin, &first) || !parse_status(end, &last) || first > last)
        return -EINVAL;
    for (uint64_t bit = first - MK_STATUS_SET_FIRST; bit <= last - MK_STATUS_SET_FIRST; bit++)
        set->bits[bit / 64] |= UINT64_C(1) << (bit % 64);
    return 0;
}
