// SPDX-License-Identifier: Apache-2.0
/* PROXY headers: the handshake_result does not depend on how the bytes arrive, and never stays open beyond the limit.
 */
#include <stdint.h>
#include <stdlib.h>

#include "http/message/proxy_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk__proxy_protocol whole, part;
    struct mk_str all = mk_str((const char *)data, size);
    int result = mk__proxy_protocol_read(all, &whole), early = MK_AGAIN;
    if (result == MK_AGAIN && size >= MK__PROXY_PROTOCOL_MAX)
        abort();
    if (result == 0 && (!whole.bytes || whole.bytes > size || whole.bytes > MK__PROXY_PROTOCOL_MAX))
        abort();
    for (size_t len = 0; len <= size && len <= 300 && early == MK_AGAIN; len++)
        early = mk__proxy_protocol_read(mk_str(all.p, len), &part);
    if (early != MK_AGAIN && early != result)
        abort();
    if (early == 0 && (part.bytes != whole.bytes || memcmp(&part.source, &whole.source, sizeof(part.source)) != 0))
        abort();
    return 0;
}
