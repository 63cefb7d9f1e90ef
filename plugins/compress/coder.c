// SPDX-License-Identifier: Apache-2.0
/*
 * zlib, libbrotlienc and libzstd (coder.h). Windows are small (zlib 32 KB, brotli 64 KB, zstd 128 KB): a server has
 * many of them at once, and what larger ones would find is little.
 */
#include "coder.h"

#include "heap.h"

#include <brotli/encode.h>
#include <errno.h>
#include <zlib.h>
#include <zstd.h>

enum { BROTLI_WINDOW_BITS = 16, ZSTD_WINDOW_BITS = 17, HINT_BYTES_MAX = 1 << 19 };

struct library {
    int (*open)(struct coder *c, int level, uint64_t size);
    int (*run)(struct coder *c, enum coder_op op, struct coder_data *data);
    void (*close)(struct coder *c);
};

struct coder {
    const struct library *library;
    struct mk_account *account;
    union {
        z_stream z;
        struct {
            BrotliEncoderState *brotli;
            struct heap heap;
            void *memory;
            size_t memory_bytes;
        };
        struct {
            ZSTD_CCtx *zstd;
            size_t zstd_bytes;
        };
    };
};

/* ── how much it will be ── */

/* Of a small body neither the window nor the tables of gzip need to be large. */
static int gzip_window_bits(uint64_t size)
{
    int bits = 10;
    while (bits < MAX_WBITS && ((uint64_t)1 << bits) < size)
        bits++;
    return bits;
}

static int gzip_memory_level(int window_bits)
{
    return window_bits - 7; /* 8 for 15, as is the library's custom */
}

/*
 * Kilobytes by level, measured, and more than that (libbrotlienc 1.0.9, libzstd 1.5.4): of bodies of up to 16 KB,
 * up to 64 KB, and others. A unit test measures them again.
 */
static const uint16_t brotli_kilobytes[CODER_BR_MAX + 1][3] = {
    {180, 180, 180},    {200, 200, 200},    {620, 1150, 1600},  {620, 1150, 1600},
    {1000, 2200, 2400}, {1000, 2200, 2500}, {1000, 2200, 2500},
};
static const uint16_t zstd_kilobytes[CODER_ZSTD_MAX + 1][3] = {
    {0, 0, 0},         {280, 540, 1050},  {400, 650, 1250},  {400, 900, 1800},  {400, 1350, 2650},
    {400, 1350, 2650}, {400, 1350, 2650}, {400, 1350, 2650}, {400, 1350, 2650}, {400, 1350, 2650},
    {400, 1350, 2650}, {600, 1650, 3200}, {600, 1650, 3200},
};

static size_t library_bytes_max(enum mk_coding coding, int level, uint64_t size)
{
    unsigned class = size <= 16 * 1024 ? 0 : size <= 64 * 1024 ? 1 : 2;
    int bits = gzip_window_bits(size);
    if (coding == MK_CODING_BR)
        return (size_t)brotli_kilobytes[level][class] * 1024;
    if (coding == MK_CODING_ZSTD)
        return (size_t)zstd_kilobytes[level][class] * 1024;
    /* zconf.h, and 16 KB for the rest of the state */
    return ((size_t)1 << (bits + 2)) + ((size_t)1 << (gzip_memory_level(bits) + 9)) + 16 * 1024;
}

size_t coder_bytes_max(enum mk_coding coding, int level, uint64_t size)
{
    return sizeof(struct coder) + library_bytes_max(coding, level, size);
}

/* ── memory of the account; what is given back comes without its size, which stands before it ── */

union prefix {
    size_t size;
    max_align_t align;
};

static void *take(void *account, size_t size)
{
    union prefix *p = size < SIZE_MAX - sizeof(*p) ? mk_account_alloc(account, size + sizeof(*p)) : NULL;
    if (!p)
        return NULL;
    p->size = size + sizeof(*p);
    return p + 1;
}

static void give_back(void *account, void *taken)
{
    union prefix *p = taken;
    if (p)
        mk_account_free(account, p - 1, p[-1].size);
}

/* ── gzip ── */

static void *take_for_zlib(void *account, unsigned items, unsigned size)
{
    return take(account, (size_t)items * size);
}

static int open_gzip(struct coder *c, int level, uint64_t size)
{
    int bits = gzip_window_bits(size);
    c->z = (z_stream){.zalloc = take_for_zlib, .zfree = give_back, .opaque = c->account};
    int r = deflateInit2(&c->z, level, Z_DEFLATED, bits + 16 /* gzip */, gzip_memory_level(bits), Z_DEFAULT_STRATEGY);
    return r == Z_OK ? 0 : -ENOMEM;
}

static int run_gzip(struct coder *c, enum coder_op op, struct coder_data *data)
{
    static const int flushes[] = {[CODER_GO_ON] = Z_NO_FLUSH, [CODER_FLUSH] = Z_SYNC_FLUSH, [CODER_END] = Z_FINISH};
    z_stream *z = &c->z;
    z->next_in = (Bytef *)(uintptr_t)data->in;
    z->avail_in = (unsigned)data->in_len;
    z->next_out = (Bytef *)data->out;
    z->avail_out = (unsigned)data->out_len;
    int r = deflate(z, flushes[op]);
    data->in = (const char *)z->next_in;
    data->in_len = z->avail_in;
    data->out = (char *)z->next_out;
    data->out_len = z->avail_out;
    if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR /* there was nothing left to do */)
        return -EIO;
    return (op == CODER_END ? r == Z_STREAM_END : z->avail_out > 0) ? 0 : MK_AGAIN;
}

static void close_gzip(struct coder *c)
{
    deflateEnd(&c->z);
}

/* ── br ── */

/*
 * libbrotlienc, as Debian builds it, ends the process when it is refused memory. So it gets all that it may need at
 * the beginning. What goes beyond, which no test has seen, comes from the heap, whatever the account says.
 */
static void *take_for_brotli(void *heap, size_t size)
{
    void *taken = heap_take(heap, size);
    return taken ? taken : take(NULL, size);
}

static void give_back_of_brotli(void *heap, void *taken)
{
    if (taken && !heap_give_back(heap, taken))
        give_back(NULL, taken);
}

static int open_brotli(struct coder *c, int level, uint64_t size)
{
    /* a larger hint would choose tables of megabytes */
    uint32_t hint = size < HINT_BYTES_MAX ? (uint32_t)size : size == CODER_SIZE_UNKNOWN ? 0 : HINT_BYTES_MAX;
    c->memory_bytes = library_bytes_max(MK_CODING_BR, level, size);
    c->memory = mk_account_alloc(c->account, c->memory_bytes);
    if (!c->memory)
        return -ENOMEM;
    heap_init(&c->heap, c->memory, c->memory_bytes);
    c->brotli = BrotliEncoderCreateInstance(take_for_brotli, give_back_of_brotli, &c->heap);
    BrotliEncoderSetParameter(c->brotli, BROTLI_PARAM_QUALITY, (uint32_t)level);
    BrotliEncoderSetParameter(c->brotli, BROTLI_PARAM_LGWIN, BROTLI_WINDOW_BITS);
    BrotliEncoderSetParameter(c->brotli, BROTLI_PARAM_SIZE_HINT, hint);
    return 0;
}

static int run_brotli(struct coder *c, enum coder_op op, struct coder_data *data)
{
    static const BrotliEncoderOperation operations[] = {[CODER_GO_ON] = BROTLI_OPERATION_PROCESS,
                                                        [CODER_FLUSH] = BROTLI_OPERATION_FLUSH,
                                                        [CODER_END] = BROTLI_OPERATION_FINISH};
    const uint8_t *in = (const uint8_t *)data->in;
    uint8_t *out = (uint8_t *)data->out;
    if (!BrotliEncoderCompressStream(c->brotli, operations[op], &data->in_len, &in, &data->out_len, &out, NULL))
        return -EIO;
    data->in = (const char *)in;
    data->out = (char *)out;
    return data->in_len || BrotliEncoderHasMoreOutput(c->brotli) ? MK_AGAIN : 0;
}

static void close_brotli(struct coder *c)
{
    BrotliEncoderDestroyInstance(c->brotli);
    mk_account_free(c->account, c->memory, c->memory_bytes);
}

/* ── zstd ── */

/* The library takes its memory from the heap by itself; the account is told all the same. */
static void count_zstd(struct coder *c, size_t bytes)
{
    c->account->bytes += bytes - c->zstd_bytes;
    c->zstd_bytes = bytes;
}

static bool has_room(const struct mk_account *a, size_t bytes)
{
    return !a->bytes_max || (bytes <= a->bytes_max && a->bytes <= a->bytes_max - bytes);
}

static void close_zstd(struct coder *c)
{
    count_zstd(c, 0);
    ZSTD_freeCCtx(c->zstd);
}

static bool set_zstd(ZSTD_CCtx *zstd, ZSTD_cParameter parameter, int value)
{
    return !ZSTD_isError(ZSTD_CCtx_setParameter(zstd, parameter, value));
}

static bool set_up_zstd(ZSTD_CCtx *zstd, int level, uint64_t size)
{
    if (!zstd || !set_zstd(zstd, ZSTD_c_compressionLevel, level) || !set_zstd(zstd, ZSTD_c_windowLog, ZSTD_WINDOW_BITS))
        return false;
    if (size != CODER_SIZE_UNKNOWN)
        return !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(zstd, size));
    /* from level 4 on the tables for a body of unknown length would not be those for this window, but larger */
    return level < 4 ||
           (set_zstd(zstd, ZSTD_c_hashLog, ZSTD_WINDOW_BITS) && set_zstd(zstd, ZSTD_c_chainLog, ZSTD_WINDOW_BITS - 1));
}

static int open_zstd(struct coder *c, int level, uint64_t size)
{
    size_t bytes = library_bytes_max(MK_CODING_ZSTD, level, size);
    if (!has_room(c->account, bytes))
        return -ENOMEM;
    count_zstd(c, bytes);
    c->zstd = ZSTD_createCCtx();
    if (set_up_zstd(c->zstd, level, size))
        return 0;
    close_zstd(c);
    return -ENOMEM;
}

static int run_zstd(struct coder *c, enum coder_op op, struct coder_data *data)
{
    static const ZSTD_EndDirective directives[] = {
        [CODER_GO_ON] = ZSTD_e_continue, [CODER_FLUSH] = ZSTD_e_flush, [CODER_END] = ZSTD_e_end};
    ZSTD_inBuffer in = {data->in, data->in_len, 0};
    ZSTD_outBuffer out = {data->out, data->out_len, 0};
    size_t left = ZSTD_compressStream2(c->zstd, &out, &in, directives[op]);
    data->in += in.pos;
    data->in_len -= in.pos;
    data->out += out.pos;
    data->out_len -= out.pos;
    count_zstd(c, ZSTD_sizeof_CCtx(c->zstd));
    if (ZSTD_isError(left))
        return -EIO;
    return data->in_len || (op != CODER_GO_ON && left) ? MK_AGAIN : 0;
}

/* ── all of them ── */

static const struct library libraries[MK_CODING_COUNT] = {
    [MK_CODING_GZIP] = {open_gzip, run_gzip, close_gzip},
    [MK_CODING_BR] = {open_brotli, run_brotli, close_brotli},
    [MK_CODING_ZSTD] = {open_zstd, run_zstd, close_zstd},
};

struct coder *coder_open(struct mk_account *account, enum mk_coding coding, int level, uint64_t size)
{
    struct coder *c = mk_account_alloc(account, sizeof(*c));
    if (!c)
        return NULL;
    *c = (struct coder){.library = &libraries[coding], .account = account};
    if (c->library->open(c, level, size) == 0)
        return c;
    mk_account_free(account, c, sizeof(*c));
    return NULL;
}

void coder_close(struct coder *c)
{
    c->library->close(c);
    mk_account_free(c->account, c, sizeof(*c));
}

int coder_run(struct coder *c, enum coder_op op, struct coder_data *data)
{
    return c->library->run(c, op, data);
}
