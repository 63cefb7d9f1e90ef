// SPDX-License-Identifier: Apache-2.0
/* Accept-Encoding: weights stay within a thousand, and the choices come to an end, the best first. */
#include <stdint.h>
#include <stdlib.h>

#include <monkey/request.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t offered[] = {MK_CODING_BR, MK_CODING_ZSTD, MK_CODING_GZIP};
    struct mk_accept accept;
    enum mk_coding coding;
    unsigned before = 1000, n = 0;

    mk_accept_encoding(mk_str((const char *)data, size), &accept);
    for (unsigned i = 0; i < MK_CODING_COUNT; i++)
        if (accept.weight[i] > 1000)
            abort();
    for (struct mk_accept left = accept; mk_accept_next(&left, offered, sizeof(offered), &coding); n++) {
        if (coding == MK_CODING_IDENTITY || !accept.weight[coding] || accept.weight[coding] > before)
            abort();
        if (accept.weight[coding] < accept.weight[MK_CODING_IDENTITY])
            abort();
        before = accept.weight[coding];
    }
    if (n > sizeof(offered))
        abort();
    return 0;
}
