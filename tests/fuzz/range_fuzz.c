// SPDX-License-Identifier: Apache-2.0
/* Byte ranges: eight bytes of size, then the field. Every range must lie inside the representation. */
#include <stdint.h>
#include <stdlib.h>

#include "http/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MAX = 4 };
    struct mk__range ranges[MAX];
    uint64_t bytes;
    unsigned n = 99;

    if (size < sizeof(bytes))
        return 0;
    memcpy(&bytes, data, sizeof(bytes));
    struct mk_str value = mk_str((const char *)data + sizeof(bytes), size - sizeof(bytes));
    enum mk__range_result result = mk__range_parse(value, bytes, ranges, MAX, &n);
    if (n > MAX || (n > 0) != (result == MK__RANGE_OK))
        abort();
    for (unsigned i = 0; i < n; i++)
        if (ranges[i].first > ranges[i].last || ranges[i].last >= bytes)
            abort();
    return 0;
}
