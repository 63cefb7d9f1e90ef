// SPDX-License-Identifier: Apache-2.0
/*
 * Header blocks: three of them in a row give the same fields however their bytes arrive, and the fields survive being
 * encoded and decoded again. The first bytes of the input say in which pieces they arrive, how large the encoder's
 * table may be, and where the blocks end.
 */
#include "http/h2/hpack.h"

#include <stdint.h>
#include <stdlib.h>

enum { BLOCKS = 3, ROOM_BYTES = 8192, SCRIPT_BYTES = 5 };

static uint64_t add(uint64_t sum, struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        sum = (sum ^ (uint8_t)s.p[i]) * 1099511628211u;
    return sum * 31 + s.len;
}

/* Encodes a field, and decodes it. */
static void pass_on(struct mk__hpack_encoder *e, struct mk__hpack_decoder *d, const struct mk__hpack_field *field)
{
    static char coded[4 * ROOM_BYTES], room[ROOM_BYTES];
    struct mk__hpack_field again;
    const struct mk__hpack_header header = {0, field->row.name, field->row.value};
    char *end = mk__hpack_encode(e, mk__hpack_encode_begin(e, coded), &header, 1);
    struct mk_str in = mk_str(coded, (size_t)(end - coded));
    if (in.len > field->bytes + MK__HPACK_FIELD_OVERHEAD + MK__HPACK_RESIZE_BYTES_MAX)
        abort();
    mk__hpack_decode_begin(d);
    if (mk__hpack_decode(d, &in, room, sizeof(room), &again) != 0 || in.len)
        abort();
    if (!mk_str_ieq(again.row.name, field->row.name) || !mk_str_eq(again.row.value, field->row.value))
        abort();
}

struct reader {
    struct mk__hpack_decoder decoder, copy;
    struct mk__hpack_encoder encoder;
    uint64_t sum;
};

/* Returns 0, MK_AGAIN (the block is not complete) or -errno. */
static int read_block(struct reader *r, const uint8_t *data, size_t size, size_t step)
{
    static char room[ROOM_BYTES];
    struct mk__hpack_field field;
    size_t at = 0;
    int result = 0;
    mk__hpack_decode_begin(&r->decoder);
    for (size_t len = 0; len < size;) {
        len = size - len < step ? size : len + step;
        char *copy = malloc(len - at + 1);
        if (!copy)
            abort();
        memcpy(copy, data + at, len - at);
        struct mk_str in = mk_str(copy, len - at);
        while ((result = mk__hpack_decode(&r->decoder, &in, room, sizeof(room), &field)) == 0) {
            r->sum = add(add(r->sum, field.row.name), field.row.value) + field.bytes + field.never_indexed;
            if (!field.cut)
                pass_on(&r->encoder, &r->copy, &field);
        }
        at = len - in.len;
        free(copy);
        if (result != MK_AGAIN)
            return result;
    }
    return at == size ? 0 : MK_AGAIN;
}

static uint64_t read_all(const uint8_t *script, const uint8_t *data, size_t size, size_t step)
{
    struct mk_account account = {.bytes = 0};
    struct reader r = {.sum = 0};
    mk__hpack_decoder_init(&r.decoder, &account);
    mk__hpack_decoder_init(&r.copy, &account);
    mk__hpack_encoder_init(&r.encoder, &account);
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t n = i + 1 == BLOCKS || script[2 + i] > size ? size : script[2 + i];
        int result = read_block(&r, data, n, step);
        r.sum = r.sum * 31 + (uint64_t)result;
        if (result != 0)
            break;
        mk__hpack_encode_resize(&r.encoder, script[4] * 16u);
        data += n;
        size -= n;
    }
    if (r.decoder.table.size > r.decoder.table.size_max || r.encoder.table.size > MK__HPACK_ENCODER_BYTES)
        abort();
    mk__hpack_decoder_release(&r.decoder);
    mk__hpack_decoder_release(&r.copy);
    mk__hpack_encoder_release(&r.encoder);
    if (account.bytes)
        abort();
    return r.sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < SCRIPT_BYTES || size > 4096)
        return 0;
    const uint8_t *in = data + SCRIPT_BYTES;
    size_t len = size - SCRIPT_BYTES;
    uint64_t sum = read_all(data, in, len, len ? len : 1);
    if (read_all(data, in, len, data[0] % 32 + 1u) != sum)
        abort();
    return 0;
}
