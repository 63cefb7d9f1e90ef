// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP/2 frames: their heads and payloads are the same however the bytes arrive, and all of the content is passed on
 * once. The first byte of the input says in which pieces the rest arrives, and which frames are skipped.
 */
#include "http/h2/frame.h"

#include <stdint.h>
#include <stdlib.h>

static uint64_t add(uint64_t sum, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return sum;
}

/* Returns a sum of all events. */
static uint64_t read_all(const char *in, size_t len, size_t step, uint8_t skipped)
{
    struct mk__h2_frame_reader r = {.head_len = 0};
    uint64_t sum = 0;
    size_t content = 0;
    for (size_t at = 0; at < len; at += step) {
        struct mk_str piece = mk_str(in + at, len - at < step ? len - at : step), bytes;
        enum mk__h2_frame_event event;
        while ((event = mk__h2_frame_read(&r, &piece, &bytes)) != MK__H2_READ_MORE) {
            if (event == MK__H2_READ_PADDING_ERROR)
                return add(sum, "padding", 7);
            if (event == MK__H2_READ_BYTES) {
                sum = add(sum, bytes.p, bytes.len);
                content += bytes.len;
                continue;
            }
            uint32_t facts[] = {event,        r.frame.len,   (uint32_t)r.frame.stream_id,
                                r.frame.type, r.frame.flags, mk__h2_frame_check(&r.frame)};
            sum = add(sum, facts, sizeof(facts));
            if (event == MK__H2_READ_END) {
                if (content + r.kept_len > r.frame.len)
                    abort();
                sum = add(sum, r.payload, r.kept_len);
                continue;
            }
            content = 0;
            if (r.frame.type == skipped)
                mk__h2_frame_skip(&r);
        }
        if (piece.len)
            abort();
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *in = (const char *)data + 2;
    size_t len = size - 2;
    uint64_t sum = read_all(in, len, len ? len : 1, data[1]);
    if (read_all(in, len, data[0] % 32 + 1u, data[1]) != sum || read_all(in, len, 1, data[1]) != sum)
        abort();
    return 0;
}
