// SPDX-License-Identifier: Apache-2.0
/*
 * Byte ranges: eight bytes of size, then the field. Every range must lie inside the representation; merged ones
 * lie apart, lose nothing, and add no more than the gaps between them.
 */
#include <stdint.h>
#include <stdlib.h>

#include "http/range.h"

enum { GAP = 80 };

static void insist(int condition)
{
    if (!condition)
        abort();
}

static bool is_within(const struct mk__range *r, const struct mk__range *of)
{
    return of->first <= r->first && r->last <= of->last;
}

static bool are_apart(const struct mk__range *a, const struct mk__range *b)
{
    return (a->last < b->first && b->first - a->last > GAP) || (b->last < a->first && a->first - b->last > GAP);
}

static void check_merged(const struct mk__range *before, unsigned n, const struct mk__range *after, unsigned left)
{
    insist(left >= 1 && left <= n);
    for (unsigned i = 0; i < n; i++) {
        unsigned holders = 0;
        for (unsigned k = 0; k < left; k++)
            holders += is_within(&before[i], &after[k]);
        insist(holders == 1);
    }
    for (unsigned i = 0; i < left; i++)
        for (unsigned k = 0; k < i; k++)
            insist(are_apart(&after[i], &after[k]));
    insist(is_within(&before[0], &after[0])); /* the client's order */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk__range ranges[MK__RANGES_MAX], merged[MK__RANGES_MAX];
    uint64_t bytes;
    unsigned n = 99;

    if (size < sizeof(bytes))
        return 0;
    memcpy(&bytes, data, sizeof(bytes));
    struct mk_str value = mk_str((const char *)data + sizeof(bytes), size - sizeof(bytes));
    enum mk__range_result result = mk__range_parse(value, bytes, ranges, MK__RANGES_MAX, &n);
    insist(n <= MK__RANGES_MAX && (n > 0) == (result == MK__RANGE_OK));
    for (unsigned i = 0; i < n; i++)
        insist(ranges[i].first <= ranges[i].last && ranges[i].last < bytes);
    if (!n)
        return 0;
    memcpy(merged, ranges, n * sizeof(*ranges));
    check_merged(ranges, n, merged, mk__range_merge(merged, n, GAP));
    return 0;
}
