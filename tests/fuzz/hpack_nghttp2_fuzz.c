// SPDX-License-Identifier: Apache-2.0
/*
 * HPACK, compared with nghttp2: the same blocks give the same fields, or both refuse them; what either encodes, the
 * other one decodes.
 */
#include "http/h2/hpack.h"

#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdlib.h>

enum { ROOM_BYTES = 16384, FIELDS_MAX = 64 };

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

static struct mk_account account;
static char room[ROOM_BYTES];

static uint64_t add(uint64_t sum, struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        sum = (sum ^ (uint8_t)s.p[i]) * 1099511628211u;
    return sum * 31 + s.len;
}

/* Return a sum of the fields; `*ret_err` is 0, or less for a block that is malformed. */
static uint64_t decode(struct mk__hpack_decoder *d, struct mk_str block, int *ret_err)
{
    struct mk__hpack_field field;
    uint64_t sum = 0;
    mk__hpack_decode_begin(d);
    while ((*ret_err = mk__hpack_decode(d, &block, room, sizeof(room), &field)) == 0)
        sum = add(add(sum, field.row.name), field.row.value) + field.never_indexed;
    *ret_err = *ret_err == MK_AGAIN && block.len == 0 ? 0 : -1;
    return sum;
}

static uint64_t inflate(nghttp2_hd_inflater *inflater, struct mk_str block, int *ret_err)
{
    uint64_t sum = 0;
    int flags = 0;
    *ret_err = 0;
    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv nv;
        ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, (const uint8_t *)block.p, block.len, 1);
        if (n < 0) {
            *ret_err = -1;
            return sum;
        }
        block = mk_str(block.p + n, block.len - (size_t)n);
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            sum = add(add(sum, mk_str((char *)nv.name, nv.namelen)), mk_str((char *)nv.value, nv.valuelen)) +
                  (nv.flags & NGHTTP2_NV_FLAG_NO_INDEX);
    }
    nghttp2_hd_inflate_end_headers(inflater);
    return sum;
}

/* Both decode the same blocks. */
static void compare_decoders(const uint8_t *data, size_t size)
{
    struct mk__hpack_decoder d;
    nghttp2_hd_inflater *inflater;
    int err = 0, other_err = 0;
    mk__hpack_decoder_init(&d, &account);
    CHECK(nghttp2_hd_inflate_new(&inflater) == 0);
    while (size > 1 && !err) {
        size_t n = data[0] < size - 1 ? data[0] : size - 1;
        struct mk_str block = mk_str((const char *)data + 1, n);
        uint64_t sum = decode(&d, block, &err), other_sum = inflate(inflater, block, &other_err);
        CHECK(err == other_err && (err || sum == other_sum));
        CHECK(err || d.table.size == nghttp2_hd_inflate_get_dynamic_table_size(inflater));
        data += n + 1;
        size -= n + 1;
    }
    nghttp2_hd_inflate_del(inflater);
    mk__hpack_decoder_release(&d);
}

static const char *const names[] = {"server",  "date",    "content-type", "x-a",   "set-cookie",
                                    ":status", "x-other", "cookie",       ":path", "vary"};

/* Fields of a block from the input: a name and the length of a value for each byte. Returns how many bytes it took. */
static size_t make_fields(const uint8_t *data, size_t size, nghttp2_nv *nv, size_t *ret_n)
{
    size_t at = 0, n = 0;
    while (n < FIELDS_MAX && at < size && data[at] != 0xff) {
        const char *name = names[data[at] % MK_COUNT_OF(names)];
        size_t len = data[at] / MK_COUNT_OF(names);
        at++;
        len = len < size - at ? len : size - at;
        nv[n++] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                               .namelen = strlen(name),
                               .value = (uint8_t *)(uintptr_t)(data + at),
                               .valuelen = len,
                               .flags = len % 5 ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX};
        at += len;
    }
    *ret_n = n;
    return at < size ? at + 1 : at;
}

static uint64_t sum_fields(const nghttp2_nv *nv, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = add(add(sum, mk_str((char *)nv[i].name, nv[i].namelen)), mk_str((char *)nv[i].value, nv[i].valuelen));
    return sum;
}

/* Adds up the fields of a block without their flags, which each encoder chooses. */
static uint64_t decode_fields(struct mk__hpack_decoder *d, struct mk_str block)
{
    struct mk__hpack_field field;
    uint64_t sum = 0;
    mk__hpack_decode_begin(d);
    while (mk__hpack_decode(d, &block, room, sizeof(room), &field) == 0)
        sum = add(add(sum, field.row.name), field.row.value);
    CHECK(block.len == 0);
    return sum;
}

static uint64_t inflate_fields(nghttp2_hd_inflater *inflater, struct mk_str block)
{
    uint64_t sum = 0;
    int flags = 0;
    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv nv;
        ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, (const uint8_t *)block.p, block.len, 1);
        CHECK(n >= 0);
        block = mk_str(block.p + n, block.len - (size_t)n);
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            sum = add(add(sum, mk_str((char *)nv.name, nv.namelen)), mk_str((char *)nv.value, nv.valuelen));
    }
    nghttp2_hd_inflate_end_headers(inflater);
    return sum;
}

struct pair {
    struct mk__hpack_decoder decoder;
    struct mk__hpack_encoder encoder;
    nghttp2_hd_inflater *inflater;
    nghttp2_hd_deflater *deflater;
};

static void exchange_block(struct pair *p, const nghttp2_nv *nv, size_t n)
{
    static char coded[65536];
    ssize_t len = nghttp2_hd_deflate_hd(p->deflater, (uint8_t *)coded, sizeof(coded), nv, n);
    CHECK(len >= 0);
    CHECK(decode_fields(&p->decoder, mk_str(coded, (size_t)len)) == sum_fields(nv, n));
    char *end = mk__hpack_encode_begin(&p->encoder, coded);
    for (size_t i = 0; i < n; i++) {
        const struct mk__hpack_header header = {0, mk_str((char *)nv[i].name, nv[i].namelen),
                                                mk_str((char *)nv[i].value, nv[i].valuelen)};
        end = mk__hpack_encode(&p->encoder, end, &header, 1);
    }
    CHECK(inflate_fields(p->inflater, mk_str(coded, (size_t)(end - coded))) == sum_fields(nv, n));
}

/* What either encodes, the other one decodes; the sizes of both tables change in between. */
static void exchange_blocks(const uint8_t *data, size_t size)
{
    struct pair p;
    mk__hpack_decoder_init(&p.decoder, &account);
    mk__hpack_encoder_init(&p.encoder, &account);
    CHECK(nghttp2_hd_inflate_new(&p.inflater) == 0 && nghttp2_hd_deflate_new(&p.deflater, 4096) == 0);
    while (size) {
        nghttp2_nv nv[FIELDS_MAX];
        size_t n, used = make_fields(data, size, nv, &n);
        uint32_t table = data[0] * 16u;
        exchange_block(&p, nv, n);
        CHECK(nghttp2_hd_deflate_change_table_size(p.deflater, table) == 0);
        CHECK(nghttp2_hd_inflate_change_table_size(p.inflater, table) == 0);
        mk__hpack_encode_resize(&p.encoder, table);
        data += used;
        size -= used;
    }
    nghttp2_hd_inflate_del(p.inflater);
    nghttp2_hd_deflate_del(p.deflater);
    mk__hpack_encoder_release(&p.encoder);
    mk__hpack_decoder_release(&p.decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096)
        return 0;
    compare_decoders(data, size);
    exchange_blocks(data, size);
    CHECK(account.bytes == 0);
    return 0;
}
