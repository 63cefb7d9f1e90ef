// SPDX-License-Identifier: Apache-2.0
/*
 * permessage-deflate: two messages with any payload, decompressed whole, and in pieces by an inflater that is shrunk
 * between them, give the same, within the limit. The same bytes as messages come back from a round trip.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "websocket/ws.h"

enum { MESSAGE_MAX = 60000 };

static struct mk_account account;

static void expect(bool fine)
{
    if (!fine)
        abort();
}

struct outcome {
    int result;
    size_t n;
    uint8_t bytes[MESSAGE_MAX];
};

static void inflate_message(struct mk__ws_inflater *i, const uint8_t *p, size_t len, size_t piece, size_t room,
                            struct outcome *o)
{
    const char *reason = NULL;
    size_t at = 0;
    o->n = 0;
    do {
        size_t n = len - at < piece ? len - at : piece;
        struct mk__ws_inflate_data d = {.in = p + at, .in_len = n};
        at += n;
        do {
            uint8_t to[4096];
            d.out = to;
            d.out_len = room;
            o->result = mk__ws_inflater_feed(i, &d, at == len, &reason);
            expect(o->n + (room - d.out_len) <= MESSAGE_MAX);
            memcpy(o->bytes + o->n, to, room - d.out_len);
            o->n += room - d.out_len;
        } while (o->result == MK_AGAIN);
        expect(o->result < 0 || d.in_len == 0);
    } while (o->result == 0 && at < len);
    expect((reason != NULL) == (o->result < 0));
    expect(o->result == 0 || o->result == -1007 || o->result == -1009);
}

static void check_pieces(const uint8_t *data, size_t size, size_t cut, uint8_t how)
{
    static struct outcome whole, pieces;
    struct mk__ws_inflater a, b;
    unsigned bits = how & 1 ? 15 : 9;
    mk__ws_inflater_init(&a, &account, bits, how & 2, MESSAGE_MAX);
    mk__ws_inflater_init(&b, &account, bits, how & 2, MESSAGE_MAX);
    for (unsigned message = 0; message < 2; message++) {
        const uint8_t *p = message ? data + cut : data;
        size_t len = message ? size - cut : cut;
        inflate_message(&a, p, len, SIZE_MAX, 4096, &whole);
        inflate_message(&b, p, len, how / 4 % 8 + 1, how / 32 * 500 + 7, &pieces);
        if (bits < 15 && (whole.result < 0 || pieces.result < 0))
            break; /* zlib accepts longer distances within the output of one call */
        expect(whole.result == pieces.result && whole.n == pieces.n && memcmp(whole.bytes, pieces.bytes, whole.n) == 0);
        if (whole.result < 0)
            break;
        mk__ws_inflater_shrink(&b);
    }
    mk__ws_inflater_release(&a);
    mk__ws_inflater_release(&b);
}

static void check_round_trip(const uint8_t *data, size_t size, size_t cut, uint8_t how)
{
    static struct outcome o;
    struct mk__ws_inflater i;
    struct mk__ws_deflater d;
    unsigned bits = 9 + how % 7;
    mk__ws_inflater_init(&i, &account, bits, how & 2, MESSAGE_MAX);
    mk__ws_deflater_init(&d, &account, bits, how & 2);
    d.memory_level = how % 9 + 1;
    d.level = how / 9 % 9 + 1;
    for (unsigned message = 0; message < 2; message++) {
        const uint8_t *p = message ? data + cut : data;
        size_t len = message ? size - cut : cut;
        struct mk_buf payload;
        mk_buf_init(&payload, message ? 100000 : how * 4u + 1);
        int result = mk__ws_deflater_compress(&d, p, len, &payload);
        expect(message ? result == 0 : !payload.err);
        if (result == 0) {
            inflate_message(&i, (const uint8_t *)payload.data, payload.len, how / 4 + 1u, 4096, &o);
            expect(o.result == 0 && o.n == len && (len == 0 || memcmp(o.bytes, p, len) == 0));
        }
        mk_buf_release(&payload);
    }
    mk__ws_inflater_release(&i);
    mk__ws_deflater_release(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > MESSAGE_MAX)
        return 0;
    uint8_t how = data[0];
    size_t cut = data[1];
    data += 2;
    size -= 2;
    if (cut > size)
        cut = size;
    check_pieces(data, size, cut, how);
    check_round_trip(data, size, cut, how);
    expect(account.bytes == 0);
    return 0;
}
