// SPDX-License-Identifier: Apache-2.0
/*
 * zlib, libbrotlienc and libzstd. Windows are small (zlib 32 KB, brotli 64 KB, zstd 128 KB): a server has
 * many of them at once, and what larger ones would find is little.
 */
#include "compress.h"

#include <assert.h>
#include <brotli/encode.h>
#include <errno.h>
#include <stdint.h>
#include <zlib.h>
#include <zstd.h>

/*
 * A heap of fixed size: adjacent blocks, each with a header.
 */
struct fixed_heap_block {
    size_t size; /* without this header */
    bool used;
    _Alignas(16) char bytes[];
};

void fixed_heap_init(struct fixed_heap *heap, void *memory, size_t size)
{
    assert((uintptr_t)memory % 16 == 0 && size % 16 == 0 && size > sizeof(struct fixed_heap_block));
    *heap = (struct fixed_heap){.first = memory, .size = size};
    *heap->first = (struct fixed_heap_block){.size = size - sizeof(struct fixed_heap_block)};
}

/* Returns the next block; NULL after the last one. */
static struct fixed_heap_block *next_block(const struct fixed_heap *heap, struct fixed_heap_block *b)
{
    char *next = b->bytes + b->size;
    return next < (char *)heap->first + heap->size ? (struct fixed_heap_block *)next : NULL;
}

static void merge_free_blocks(const struct fixed_heap *heap, struct fixed_heap_block *b)
{
    struct fixed_heap_block *next;
    while (!b->used && (next = next_block(heap, b)) && !next->used)
        b->size += sizeof(*next) + next->size;
}

static void split_block(struct fixed_heap_block *b, size_t size)
{
    assert(b->size >= size && !b->used);
    if (b->size - size < sizeof(*b) * 2)
        return;
    struct fixed_heap_block *rest = (struct fixed_heap_block *)(b->bytes + size);
    *rest = (struct fixed_heap_block){.size = b->size - size - sizeof(*rest)};
    b->size = size;
}

void *fixed_heap_alloc(struct fixed_heap *heap, size_t size)
{
    if (size > heap->size)
        return NULL;
    size = (size + 15) & ~(size_t)15;
    for (struct fixed_heap_block *b = heap->first; b; b = next_block(heap, b)) {
        merge_free_blocks(heap, b);
        if (b->used || b->size < size)
            continue;
        split_block(b, size);
        b->used = true;
        size_t end = (size_t)(b->bytes + b->size - (char *)heap->first);
        heap->used_max = end > heap->used_max ? end : heap->used_max;
        return b->bytes;
    }
    return NULL;
}

bool fixed_heap_free(struct fixed_heap *heap, void *ptr)
{
    uintptr_t at = (uintptr_t)ptr, first = (uintptr_t)heap->first;
    if (at < first || at >= first + heap->size)
        return false;
    struct fixed_heap_block *b = (struct fixed_heap_block *)((char *)ptr - offsetof(struct fixed_heap_block, bytes));
    assert(b->used);
    b->used = false;
    return true;
}

enum { BROTLI_WINDOW_BITS = 16, ZSTD_WINDOW_BITS = 17, HINT_BYTES_MAX = 1 << 19 };

struct encoder_backend {
    int (*open)(struct encoder *e, int level, uint64_t size);
    int (*run)(struct encoder *e, enum encoder_op op, struct encoder_data *data);
    void (*close)(struct encoder *e);
};

struct encoder {
    const struct encoder_backend *backend;
    struct mk_account *account;
    union {
        z_stream z;
        struct {
            BrotliEncoderState *brotli;
            struct fixed_heap heap;
            void *memory;
            size_t memory_bytes;
        };
        struct {
            ZSTD_CCtx *zstd;
            size_t zstd_bytes;
        };
    };
};

/* ── memory ── */

/* A small body needs neither a large window nor large tables. */
static int get_gzip_window_bits(uint64_t size)
{
    int bits = 10;
    while (bits < MAX_WBITS && ((uint64_t)1 << bits) < size)
        bits++;
    return bits;
}

static int get_gzip_memory_level(int window_bits)
{
    return window_bits - 7; /* 8 for 15, as the library's default */
}

/*
 * Kilobytes by level for bodies of up to 16 KB, up to 64 KB, and larger ones: measured (libbrotlienc 1.0.9, libzstd
 * 1.5.4) and rounded up. A unit test measures them again.
 */
static const uint16_t brotli_kilobytes[ENCODER_BR_MAX + 1][3] = {
    {180, 180, 180},    {200, 200, 200},    {620, 1150, 1600},  {620, 1150, 1600},
    {1000, 2200, 2400}, {1000, 2200, 2500}, {1000, 2200, 2500},
};
static const uint16_t zstd_kilobytes[ENCODER_ZSTD_MAX + 1][3] = {
    {0, 0, 0},         {280, 540, 1050},  {400, 650, 1250},  {400, 900, 1800},  {400, 1350, 2650},
    {400, 1350, 2650}, {400, 1350, 2650}, {400, 1350, 2650}, {400, 1350, 2650}, {400, 1350, 2650},
    {400, 1350, 2650}, {600, 1650, 3200}, {600, 1650, 3200},
};

/* Returns the most that the library allocates for a body of `size`. */
static size_t get_library_bytes_max(enum mk_coding coding, int level, uint64_t size)
{
    assert(coding != MK_CODING_BR || (level >= 0 && level <= ENCODER_BR_MAX));
    assert(coding != MK_CODING_ZSTD || (level >= 1 && level <= ENCODER_ZSTD_MAX));
    unsigned class = size <= 16 * 1024 ? 0 : size <= 64 * 1024 ? 1 : 2;
    int bits = get_gzip_window_bits(size);
    if (coding == MK_CODING_BR)
        return (size_t)brotli_kilobytes[level][class] * 1024;
    if (coding == MK_CODING_ZSTD)
        return (size_t)zstd_kilobytes[level][class] * 1024;
    /* zconf.h, and 16 KB for the rest of the state */
    return ((size_t)1 << (bits + 2)) + ((size_t)1 << (get_gzip_memory_level(bits) + 9)) + 16 * 1024;
}

size_t encoder_bytes_max(enum mk_coding coding, int level, uint64_t size)
{
    return sizeof(struct encoder) + get_library_bytes_max(coding, level, size);
}

/* ── allocation from the account; the libraries free without a size, so it is stored before the memory ── */

union alloc_header {
    size_t size;
    max_align_t align;
};

static void *alloc_counted(void *account, size_t size)
{
    union alloc_header *p = size < SIZE_MAX - sizeof(*p) ? mk_account_alloc(account, size + sizeof(*p)) : NULL;
    if (!p)
        return NULL;
    p->size = size + sizeof(*p);
    return p + 1;
}

static void free_counted(void *account, void *ptr)
{
    union alloc_header *p = ptr;
    if (p)
        mk_account_free(account, p - 1, p[-1].size);
}

/* ── gzip ── */

static void *alloc_for_zlib(void *account, unsigned items, unsigned size)
{
    return alloc_counted(account, (size_t)items * size);
}

static int open_gzip(struct encoder *e, int level, uint64_t size)
{
    int bits = get_gzip_window_bits(size);
    e->z = (z_stream){.zalloc = alloc_for_zlib, .zfree = free_counted, .opaque = e->account};
    int r =
        deflateInit2(&e->z, level, Z_DEFLATED, bits + 16 /* gzip */, get_gzip_memory_level(bits), Z_DEFAULT_STRATEGY);
    return r == Z_OK ? 0 : -ENOMEM;
}

static int run_gzip(struct encoder *e, enum encoder_op op, struct encoder_data *data)
{
    static const int flushes[] = {
        [ENCODER_PROCESS] = Z_NO_FLUSH, [ENCODER_FLUSH] = Z_SYNC_FLUSH, [ENCODER_FINISH] = Z_FINISH};
    z_stream *z = &e->z;
    z->next_in = (Bytef *)(uintptr_t)data->in;
    z->avail_in = (unsigned)data->in_len;
    z->next_out = (Bytef *)data->out;
    z->avail_out = (unsigned)data->out_len;
    int r = deflate(z, flushes[op]);
    data->in = (const char *)z->next_in;
    data->in_len = z->avail_in;
    data->out = (char *)z->next_out;
    data->out_len = z->avail_out;
    if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR /* there was nothing to do */)
        return -EIO;
    return (op == ENCODER_FINISH ? r == Z_STREAM_END : z->avail_out > 0) ? 0 : MK_AGAIN;
}

static void close_gzip(struct encoder *e)
{
    deflateEnd(&e->z);
}

/* ── br ── */

/*
 * libbrotlienc, as Debian builds it, exits the process if an allocation fails. So all that it may need is allocated
 * when it is opened. More than that, which no test has seen, comes from the heap regardless of the account.
 */
static void *alloc_for_brotli(void *heap, size_t size)
{
    void *ptr = fixed_heap_alloc(heap, size);
    return ptr ? ptr : alloc_counted(NULL, size);
}

static void free_for_brotli(void *heap, void *ptr)
{
    if (ptr && !fixed_heap_free(heap, ptr))
        free_counted(NULL, ptr);
}

static int open_brotli(struct encoder *e, int level, uint64_t size)
{
    /* with a larger hint the library uses tables of megabytes */
    uint32_t hint = size < HINT_BYTES_MAX ? (uint32_t)size : size == ENCODER_SIZE_UNKNOWN ? 0 : HINT_BYTES_MAX;
    e->memory_bytes = get_library_bytes_max(MK_CODING_BR, level, size);
    e->memory = mk_account_alloc(e->account, e->memory_bytes);
    if (!e->memory)
        return -ENOMEM;
    fixed_heap_init(&e->heap, e->memory, e->memory_bytes);
    e->brotli = BrotliEncoderCreateInstance(alloc_for_brotli, free_for_brotli, &e->heap);
    BrotliEncoderSetParameter(e->brotli, BROTLI_PARAM_QUALITY, (uint32_t)level);
    BrotliEncoderSetParameter(e->brotli, BROTLI_PARAM_LGWIN, BROTLI_WINDOW_BITS);
    BrotliEncoderSetParameter(e->brotli, BROTLI_PARAM_SIZE_HINT, hint);
    return 0;
}

static int run_brotli(struct encoder *e, enum encoder_op op, struct encoder_data *data)
{
    static const BrotliEncoderOperation operations[] = {[ENCODER_PROCESS] = BROTLI_OPERATION_PROCESS,
                                                        [ENCODER_FLUSH] = BROTLI_OPERATION_FLUSH,
                                                        [ENCODER_FINISH] = BROTLI_OPERATION_FINISH};
    const uint8_t *in = (const uint8_t *)data->in;
    uint8_t *out = (uint8_t *)data->out;
    if (!BrotliEncoderCompressStream(e->brotli, operations[op], &data->in_len, &in, &data->out_len, &out, NULL))
        return -EIO;
    data->in = (const char *)in;
    data->out = (char *)out;
    return data->in_len || BrotliEncoderHasMoreOutput(e->brotli) ? MK_AGAIN : 0;
}

static void close_brotli(struct encoder *e)
{
    BrotliEncoderDestroyInstance(e->brotli);
    mk_account_free(e->account, e->memory, e->memory_bytes);
}

/* ── zstd ── */

/* The library allocates from the heap itself; counts that on the account. */
static void account_zstd(struct encoder *e, size_t bytes)
{
    assert(e->account->bytes >= e->zstd_bytes);
    e->account->bytes += bytes - e->zstd_bytes;
    e->zstd_bytes = bytes;
}

static bool has_account_room(const struct mk_account *a, size_t bytes)
{
    return !a->bytes_max || (bytes <= a->bytes_max && a->bytes <= a->bytes_max - bytes);
}

static void close_zstd(struct encoder *e)
{
    account_zstd(e, 0);
    ZSTD_freeCCtx(e->zstd);
}

static bool set_zstd_param(ZSTD_CCtx *zstd, ZSTD_cParameter parameter, int value)
{
    return !ZSTD_isError(ZSTD_CCtx_setParameter(zstd, parameter, value));
}

static bool configure_zstd(ZSTD_CCtx *zstd, int level, uint64_t size)
{
    if (!zstd || !set_zstd_param(zstd, ZSTD_c_compressionLevel, level) ||
        !set_zstd_param(zstd, ZSTD_c_windowLog, ZSTD_WINDOW_BITS))
        return false;
    if (size != ENCODER_SIZE_UNKNOWN)
        return !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(zstd, size));
    /* from level 4 on, the tables for a body of unknown length would be larger than this window needs */
    return level < 4 || (set_zstd_param(zstd, ZSTD_c_hashLog, ZSTD_WINDOW_BITS) &&
                         set_zstd_param(zstd, ZSTD_c_chainLog, ZSTD_WINDOW_BITS - 1));
}

static int open_zstd(struct encoder *e, int level, uint64_t size)
{
    size_t bytes = get_library_bytes_max(MK_CODING_ZSTD, level, size);
    if (!has_account_room(e->account, bytes))
        return -ENOMEM;
    account_zstd(e, bytes);
    e->zstd = ZSTD_createCCtx();
    if (configure_zstd(e->zstd, level, size))
        return 0;
    close_zstd(e);
    return -ENOMEM;
}

static int run_zstd(struct encoder *e, enum encoder_op op, struct encoder_data *data)
{
    static const ZSTD_EndDirective directives[] = {
        [ENCODER_PROCESS] = ZSTD_e_continue, [ENCODER_FLUSH] = ZSTD_e_flush, [ENCODER_FINISH] = ZSTD_e_end};
    ZSTD_inBuffer in = {data->in, data->in_len, 0};
    ZSTD_outBuffer out = {data->out, data->out_len, 0};
    size_t left = ZSTD_compressStream2(e->zstd, &out, &in, directives[op]);
    data->in += in.pos;
    data->in_len -= in.pos;
    data->out += out.pos;
    data->out_len -= out.pos;
    account_zstd(e, ZSTD_sizeof_CCtx(e->zstd));
    if (ZSTD_isError(left))
        return -EIO;
    return data->in_len || (op != ENCODER_PROCESS && left) ? MK_AGAIN : 0;
}

/* ── the interface ── */

static const struct encoder_backend backends[MK_CODING_COUNT] = {
    [MK_CODING_GZIP] = {open_gzip, run_gzip, close_gzip},
    [MK_CODING_BR] = {open_brotli, run_brotli, close_brotli},
    [MK_CODING_ZSTD] = {open_zstd, run_zstd, close_zstd},
};

struct encoder *encoder_open(struct mk_account *account, enum mk_coding coding, int level, uint64_t size)
{
    assert(coding > MK_CODING_IDENTITY && coding < MK_CODING_COUNT);
    struct encoder *e = mk_account_alloc(account, sizeof(*e));
    if (!e)
        return NULL;
    *e = (struct encoder){.backend = &backends[coding], .account = account};
    if (e->backend->open(e, level, size) == 0)
        return e;
    mk_account_free(account, e, sizeof(*e));
    return NULL;
}

void encoder_close(struct encoder *e)
{
    e->backend->close(e);
    mk_account_free(e->account, e, sizeof(*e));
}

int encoder_run(struct encoder *e, enum encoder_op op, struct encoder_data *data)
{
    assert(op <= ENCODER_FINISH);
    return e->backend->run(e, op, data);
}
