// SPDX-License-Identifier: Apache-2.0
/*
 * Compresses and decompresses messages with zlib. Senders flush zlib, which ends with an empty block that
 * is not compressed, and cut its last four bytes, the tail; receivers append them again.
 */
#include "ws.h"

#include <assert.h>
#include <errno.h>
#include <zlib.h>

static const uint8_t tail[] = {0x00, 0x00, 0xff, 0xff};

enum { TAIL_BYTES = sizeof(tail) };

/* ── memory; zlib frees without a size, so it is stored before the memory ── */

union alloc_header {
    size_t size;
    max_align_t align;
};

static void *alloc_for_zlib(void *account, unsigned items, unsigned size)
{
    size_t bytes = (size_t)items * size + sizeof(union alloc_header);
    union alloc_header *p = mk_account_alloc(account, bytes);
    if (!p)
        return NULL;
    p->size = bytes;
    return p + 1;
}

static void free_for_zlib(void *account, void *ptr)
{
    union alloc_header *p = ptr;
    if (p)
        mk_account_free(account, p - 1, p[-1].size);
}

static z_stream *new_stream(struct mk_account *account)
{
    z_stream *z = mk_account_alloc(account, sizeof(*z));
    if (z)
        *z = (z_stream){.zalloc = alloc_for_zlib, .zfree = free_for_zlib, .opaque = account};
    return z;
}

/* ── compressing ── */

/*
 * Level 6, zlib's default, makes messages of JSON 13 to 19 % shorter than level 1 and takes 6 to 10 times as long, in
 * which the worker does nothing else (zlib 1.2.13, 100 bytes to 1 MB, with a context).
 */
enum { LEVEL = 1, MEMORY_LEVEL = 8, FLUSH_ROOM = 8 /* <zlib.h> asks for more than 6 */ };

void mk__ws_deflater_init(struct mk__ws_deflater *d, struct mk_account *account, unsigned bits, bool no_context)
{
    assert(bits >= 9 && bits <= MAX_WBITS);
    *d = (struct mk__ws_deflater){.account = account,
                                  .level = LEVEL,
                                  .memory_level = MEMORY_LEVEL,
                                  .bits = (uint8_t)bits,
                                  .no_context = no_context};
}

void mk__ws_deflater_release(struct mk__ws_deflater *d)
{
    if (!d->z)
        return;
    deflateEnd(d->z);
    mk_account_free(d->account, d->z, sizeof(*d->z));
    d->z = NULL;
}

static int open_deflater(struct mk__ws_deflater *d)
{
    if (d->z)
        return 0;
    z_stream *z = new_stream(d->account);
    if (!z)
        return -ENOMEM;
    if (deflateInit2(z, d->level, Z_DEFLATED, -d->bits, d->memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
        mk_account_free(d->account, z, sizeof(*z));
        return -ENOMEM;
    }
    d->z = z;
    return 0;
}

/* Reserves room in `out`, at least FLUSH_ROOM. Returns 0, -ENOBUFS (without the sticky error) or -ENOMEM. */
static int reserve_output(struct mk_buf *out, size_t want)
{
    size_t room = out->max - out->len;
    if (room < FLUSH_ROOM)
        return -ENOBUFS;
    return mk_buf_reserve(out, want < room ? want : room);
}

/* Compresses and flushes the input of `z`. Returns 0 or -errno. */
static int flush_into(z_stream *z, struct mk_buf *out)
{
    do {
        int err = reserve_output(out, z->avail_in / 2 + 8 * FLUSH_ROOM);
        if (err < 0)
            return err;
        size_t room = out->size - out->len;
        z->next_out = (Bytef *)out->data + out->len;
        z->avail_out = room < UINT32_MAX ? (uInt)room : UINT32_MAX;
        uInt before = z->avail_out;
        int r = deflate(z, Z_SYNC_FLUSH);
        out->len += before - z->avail_out;
        assert(r == Z_OK || r == Z_BUF_ERROR /* the last call filled the room exactly */);
        (void)r;
    } while (z->avail_out == 0);
    assert(z->avail_in == 0);
    return 0;
}

int mk__ws_deflater_compress(struct mk__ws_deflater *d, const void *data, size_t n, struct mk_buf *out)
{
    size_t start = out->len;
    if (out->err)
        return out->err;
    if (n >= UINT32_MAX)
        return -EMSGSIZE;
    if (n == 0) { /* zlib would have nothing to flush: what is left of an empty block (RFC 7692 section 7.2.3.6) */
        mk_buf_addc(out, 0);
        return out->err;
    }
    int err = open_deflater(d);
    if (err < 0)
        return err;
    d->z->next_in = (Bytef *)(uintptr_t)data;
    d->z->avail_in = (uInt)n;
    err = flush_into(d->z, out);
    if (err < 0) {
        out->len = start;
        deflateReset(d->z);
        return err;
    }
    assert(out->len - start > TAIL_BYTES && memcmp(out->data + out->len - TAIL_BYTES, tail, TAIL_BYTES) == 0);
    out->len -= TAIL_BYTES;
    if (d->no_context)
        deflateReset(d->z);
    return 0;
}

/* ── decompressing ── */

/* Of data_type, after a call with Z_BLOCK. */
enum { AT_END_OF_BLOCK = 128, UNUSED_BITS = 63 };

void mk__ws_inflater_init(struct mk__ws_inflater *i, struct mk_account *account, unsigned bits, bool no_context,
                          uint64_t message_max)
{
    assert(bits >= 8 && bits <= MAX_WBITS);
    *i = (struct mk__ws_inflater){.account = account,
                                  .bits = (uint8_t)bits,
                                  .no_context = no_context,
                                  .message_max = message_max};
}

static void free_inflate(struct mk__ws_inflater *i)
{
    if (!i->z)
        return;
    inflateEnd(i->z);
    mk_account_free(i->account, i->z, sizeof(*i->z));
    i->z = NULL;
}

static void free_window(struct mk__ws_inflater *i)
{
    if (i->window)
        mk_account_free(i->account, i->window, i->window_len);
    i->window = NULL;
    i->window_len = 0;
}

void mk__ws_inflater_release(struct mk__ws_inflater *i)
{
    free_inflate(i);
    free_window(i);
}

void mk__ws_inflater_shrink(struct mk__ws_inflater *i)
{
    uInt len = 0;
    if (!i->z || i->begun)
        return;
    if (inflateGetDictionary(i->z, NULL, &len) == Z_OK && len > 0) {
        i->window = mk_account_alloc(i->account, len);
        if (!i->window)
            return;
        i->window_len = len;
        inflateGetDictionary(i->z, (Bytef *)i->window, &len);
    }
    free_inflate(i);
}

/* Creates the stream, with the window of a shrunk one. Returns 0 or -ENOMEM. */
static int open_inflater(struct mk__ws_inflater *i)
{
    if (i->z)
        return 0;
    i->z = new_stream(i->account);
    if (!i->z)
        return -ENOMEM;
    if (inflateInit2(i->z, -i->bits) != Z_OK ||
        (i->window && inflateSetDictionary(i->z, (const Bytef *)i->window, i->window_len) != Z_OK)) {
        free_inflate(i);
        return -ENOMEM;
    }
    free_window(i);
    return 0;
}

/*
 * Calls inflate() once. At the limit of the message one byte is its room: if there is output, it is too much.
 * Returns 0 or the error.
 */
static int inflate_once(struct mk__ws_inflater *i, struct mk__ws_inflate_data *d, int flush, const char **ret_reason)
{
    uint64_t allowed = i->message_max - i->message_bytes;
    size_t room = d->out_len < allowed ? d->out_len : (size_t)allowed;
    uint8_t beyond;
    z_stream *z = i->z;
    z->next_in = (Bytef *)(uintptr_t)d->in;
    z->avail_in = d->in_len < UINT32_MAX ? (uInt)d->in_len : UINT32_MAX;
    z->next_out = allowed ? d->out : &beyond;
    z->avail_out = allowed ? room < UINT32_MAX ? (uInt)room : UINT32_MAX : 1;

    uInt in_before = z->avail_in, out_before = z->avail_out;
    int r = inflate(z, flush);
    size_t used = in_before - z->avail_in, written = out_before - z->avail_out;
    d->in += used;
    d->in_len -= used;
    if (written && !allowed)
        return mk__ws_return_fault(MK_WS_TOO_BIG, "a decompressed message is longer than the limit", ret_reason);
    d->out += written;
    d->out_len -= written;
    i->message_bytes += written;
    if (used)
        i->ended = false;
    if (used || written)
        i->aligned = (z->data_type & (AT_END_OF_BLOCK | UNUSED_BITS)) == AT_END_OF_BLOCK;
    if (r == Z_STREAM_END) { /* a last block; others may follow (RFC 7692 section 7.2.3.4) */
        i->ended = true;
        inflateResetKeep(z); /* keeps the window */
    } else if (r == Z_MEM_ERROR) {
        return mk__ws_return_fault(MK_WS_INTERNAL_ERROR, "there is no memory to decompress a message", ret_reason);
    } else if (r != Z_OK && r != Z_BUF_ERROR /* nothing to do */) {
        return mk__ws_return_fault(MK_WS_INVALID_DATA, "a compressed message is not valid", ret_reason);
    }
    return 0;
}

/* Decompresses all input. Returns 0, MK_AGAIN or the error. */
static int inflate_input(struct mk__ws_inflater *i, struct mk__ws_inflate_data *d, int flush, const char **ret_reason)
{
    do {
        if (!d->out_len && i->message_bytes < i->message_max)
            return MK_AGAIN;
        int err = inflate_once(i, d, flush, ret_reason);
        if (err < 0)
            return err;
    } while (d->in_len || !i->z->avail_out);
    return 0;
}

/* Decompresses the tail, unless the message needs none. Returns 0, MK_AGAIN or the error. */
static int inflate_tail(struct mk__ws_inflater *i, struct mk__ws_inflate_data *d, const char **ret_reason)
{
    if (i->empty || (i->ended && !i->tail_used))
        return 0; /* not as the RFC has it, but clear */
    struct mk__ws_inflate_data end = {tail + i->tail_used, TAIL_BYTES - i->tail_used, d->out, d->out_len};
    int result = inflate_input(i, &end, Z_BLOCK, ret_reason);
    i->tail_used = (uint8_t)(TAIL_BYTES - end.in_len);
    d->out = end.out;
    d->out_len = end.out_len;
    if (result == 0 && !i->aligned)
        return mk__ws_return_fault(MK_WS_INVALID_DATA, "a compressed message is cut", ret_reason);
    return result;
}

static void begin_message(struct mk__ws_inflater *i)
{
    i->begun = i->empty = true;
    i->ended = false;
    i->tail_used = 0;
    i->message_bytes = 0;
}

int mk__ws_inflater_feed(struct mk__ws_inflater *i, struct mk__ws_inflate_data *data, bool last,
                         const char **ret_reason)
{
    if (open_inflater(i) < 0)
        return mk__ws_return_fault(MK_WS_INTERNAL_ERROR, "there is no memory to decompress a message", ret_reason);
    if (!i->begun)
        begin_message(i);
    if (data->in_len)
        i->empty = false;
    int result = i->tail_used ? 0 : inflate_input(i, data, Z_SYNC_FLUSH, ret_reason);
    if (result == 0 && last)
        result = inflate_tail(i, data, ret_reason);
    if (result || !last)
        return result;
    i->begun = false;
    if (i->no_context)
        inflateReset(i->z);
    return 0;
}

/* ── accounts ── */

void mk__ws_deflater_forget_account(struct mk__ws_deflater *d)
{
    d->account = NULL;
    if (d->z)
        d->z->opaque = NULL;
}

void mk__ws_inflater_forget_account(struct mk__ws_inflater *i)
{
    i->account = NULL;
    if (i->z)
        i->z->opaque = NULL;
}
