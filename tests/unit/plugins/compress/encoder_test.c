// SPDX-License-Identifier: Apache-2.0
/* The coders of compress: what comes out is what went in, all of it after a flush, in the memory that was announced. */
#include "base/arena.h"
#include "plugins/compress/compress.h"
#include "testing.h"

#include <brotli/decode.h>
#include <limits.h>
#include <zlib.h>
#include <zstd.h>

enum { HEAP_BYTES = 4096, PIECES = 24 };

static _Alignas(16) char memory[HEAP_BYTES];

TEST(all_comes_back)
{
    struct fixed_heap heap;
    void *pieces[PIECES] = {NULL};
    uint32_t seed = 1;
    fixed_heap_init(&heap, memory, sizeof(memory));
    for (unsigned round = 0; round < 20000; round++) {
        seed = seed * 1664525 + 1013904223;
        unsigned i = (seed >> 8) % PIECES;
        size_t size = (seed >> 16) % 400;
        if (pieces[i]) {
            size_t n = *(unsigned short *)pieces[i];
            for (size_t k = 2; k < n; k++)
                assert_int_equal(((char *)pieces[i])[k], (char)i);
            assert_true(fixed_heap_free(&heap, pieces[i]));
            pieces[i] = NULL;
        } else if (size >= 2 && (pieces[i] = fixed_heap_alloc(&heap, size))) {
            assert_int_equal((uintptr_t)pieces[i] % 16, 0);
            memset(pieces[i], (int)i, size);
            *(unsigned short *)pieces[i] = (unsigned short)size;
        }
    }
    for (unsigned i = 0; i < PIECES; i++)
        if (pieces[i])
            fixed_heap_free(&heap, pieces[i]);
    assert_non_null(fixed_heap_alloc(&heap, HEAP_BYTES - 64));
    assert_true(heap.used_max <= HEAP_BYTES);
}

TEST(limits)
{
    struct fixed_heap heap;
    char other[16];
    fixed_heap_init(&heap, memory, sizeof(memory));
    assert_null(fixed_heap_alloc(&heap, SIZE_MAX));
    assert_null(fixed_heap_alloc(&heap, HEAP_BYTES));
    assert_non_null(fixed_heap_alloc(&heap, 0));
    assert_false(fixed_heap_free(&heap, other));
    assert_false(fixed_heap_free(&heap, memory + HEAP_BYTES));
    size_t n = 0;
    while (fixed_heap_alloc(&heap, 16))
        n++;
    assert_true(n > HEAP_BYTES / 80);
}

enum { PLAIN_BYTES = 3 * 1024 * 1024, CODED_BYTES = PLAIN_BYTES + 65536, PIECE_BYTES = 16 * 1024 };

static char plain[PLAIN_BYTES], coded[CODED_BYTES], again[PLAIN_BYTES + 1];

/* Words in a disorder that compresses about as text does. */
static void fill_plain(void)
{
    uint32_t seed = 1;
    for (size_t i = 0; i < PLAIN_BYTES; i++) {
        seed = i % 7 ? seed : seed * 1664525 + 1013904223;
        plain[i] = (char)("etaoinsh \nrdlucmfw"[(seed >> 20) % 16] + (i % 7 == 3 ? seed >> 29 : 0));
    }
}

static size_t decode_gzip(size_t n)
{
    z_stream z = {.next_in = (Bytef *)coded,
                  .avail_in = (uInt)n,
                  .next_out = (Bytef *)again,
                  .avail_out = sizeof(again)};
    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    int r = inflate(&z, Z_NO_FLUSH);
    assert_true(r == Z_OK || r == Z_STREAM_END);
    inflateEnd(&z);
    return z.total_out;
}

static size_t decode_brotli(size_t n)
{
    BrotliDecoderState *s = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    const uint8_t *in = (const uint8_t *)coded;
    uint8_t *out = (uint8_t *)again;
    size_t left = sizeof(again), total = 0;
    assert_int_not_equal(BrotliDecoderDecompressStream(s, &n, &in, &left, &out, &total), BROTLI_DECODER_RESULT_ERROR);
    BrotliDecoderDestroyInstance(s);
    return total;
}

static size_t decode_zstd(size_t n)
{
    ZSTD_DCtx *d = ZSTD_createDCtx();
    ZSTD_inBuffer in = {coded, n, 0};
    ZSTD_outBuffer out = {again, sizeof(again), 0};
    while (in.pos < in.size)
        assert_false(ZSTD_isError(ZSTD_decompressStream(d, &out, &in)));
    ZSTD_freeDCtx(d);
    return out.pos;
}

static const struct {
    enum mk_coding coding;
    int min, max, usual;
    size_t (*decode)(size_t n);
} codings[] = {
    {MK_CODING_GZIP, 1, ENCODER_GZIP_MAX, 4, decode_gzip},
    {MK_CODING_BR, 0, ENCODER_BR_MAX, 4, decode_brotli},
    {MK_CODING_ZSTD, 1, ENCODER_ZSTD_MAX, 3, decode_zstd},
};

/* Runs until `op` is done, with room for `room` bytes a call; what came out goes to `coded`. */
static void run(struct encoder *c, enum encoder_op op, const char *in, size_t n, size_t room, size_t *at)
{
    struct encoder_data data = {.in = in, .in_len = n};
    int r = MK_AGAIN;
    while (r == MK_AGAIN) {
        data.out = coded + *at;
        data.out_len = room < CODED_BYTES - *at ? room : CODED_BYTES - *at;
        r = encoder_run(c, op, &data);
        assert_true(r >= 0);
        *at = (size_t)(data.out - coded);
        if (op == ENCODER_PROCESS && data.in_len == 0)
            break;
    }
}

static void assert_same(size_t i, size_t coded_len, size_t n)
{
    assert_int_equal(codings[i].decode(coded_len), n);
    assert_memory_equal(again, plain, n);
}

static void check_body(size_t i, int level, uint64_t size, size_t n, size_t room)
{
    struct mk_account account = {0};
    struct encoder *c = encoder_open(&account, codings[i].coding, level, size);
    size_t at = 0;
    assert_non_null(c);
    for (size_t k = 0; k < n; k += PIECE_BYTES)
        run(c, ENCODER_PROCESS, plain + k, n - k < PIECE_BYTES ? n - k : PIECE_BYTES, room, &at);
    run(c, ENCODER_FINISH, NULL, 0, room, &at);
    assert_same(i, at, n);
    assert_true(account.bytes > 0);
    encoder_close(c);
    assert_int_equal(account.bytes, 0);
}

TEST(bodies)
{
    static const size_t sizes[] = {0, 1, 1023, 1024, 4096, 16383, 16385, 65536, 65537, 1000000, PLAIN_BYTES};
    for (size_t i = 0; i < COUNT(codings); i++)
        for (size_t k = 0; k < COUNT(sizes); k++) {
            check_body(i, codings[i].usual, sizes[k], sizes[k], 1024);
            check_body(i, codings[i].usual, ENCODER_SIZE_UNKNOWN, sizes[k], 1024);
            check_body(i, codings[i].usual, ENCODER_SIZE_UNKNOWN, sizes[k], 60000);
        }
}

/* After each flush all that went in can be read, and a second one has nothing to say. */
TEST(flushes)
{
    for (size_t i = 0; i < COUNT(codings); i++) {
        struct mk_account account = {0};
        struct encoder *c = encoder_open(&account, codings[i].coding, codings[i].usual, ENCODER_SIZE_UNKNOWN);
        size_t at = 0, n = 0;
        for (size_t piece = 1; n + piece < 400000; piece = piece * 3 + 1) {
            run(c, ENCODER_PROCESS, plain + n, piece, 1024, &at);
            n += piece;
            run(c, ENCODER_FLUSH, NULL, 0, 1024, &at);
            assert_same(i, at, n);
        }
        run(c, ENCODER_FINISH, NULL, 0, 1024, &at);
        assert_same(i, at, n);
        encoder_close(c);
        assert_int_equal(account.bytes, 0);
    }
}

static size_t peak_of(size_t i, int level, uint64_t size, size_t n)
{
    struct mk_account account = {0};
    size_t peak = 0, at = 0;
    struct encoder *c = encoder_open(&account, codings[i].coding, level, size);
    mk__alloc_countdown = LONG_MAX;
    for (size_t k = 0; k < n; k += PIECE_BYTES) {
        at = 0;
        run(c, ENCODER_PROCESS, plain + k, n - k < PIECE_BYTES ? n - k : PIECE_BYTES, CODED_BYTES, &at);
        peak = account.bytes > peak ? account.bytes : peak;
    }
    at = 0;
    run(c, ENCODER_FINISH, NULL, 0, CODED_BYTES, &at);
    peak = account.bytes > peak ? account.bytes : peak;
    assert_int_equal(mk__alloc_countdown, LONG_MAX); /* nothing that might be refused in the middle */
    mk__alloc_countdown = -1;
    encoder_close(c);
    return peak;
}

/* Large bodies take long: they go through the levels at the ends and the one that is used without a choice. */
static bool is_chosen(size_t i, int level)
{
    return level == codings[i].min || level == codings[i].usual || level == codings[i].max;
}

TEST(memory_is_bounded)
{
    enum { SMALL_BODIES = 3 };
    static const struct {
        uint64_t size;
        size_t n;
    } bodies[] = {
        {1500, 1500}, {65536, 65536}, {65537, 65537}, {1000000, 1000000}, {ENCODER_SIZE_UNKNOWN, PLAIN_BYTES}};
    for (size_t i = 0; i < COUNT(codings); i++)
        for (int level = codings[i].min; level <= codings[i].max; level++)
            for (size_t k = 0; k < (is_chosen(i, level) ? COUNT(bodies) : SMALL_BODIES); k++) {
                size_t peak = peak_of(i, level, bodies[k].size, bodies[k].n);
                size_t max = encoder_bytes_max(codings[i].coding, level, bodies[k].size);
                if (peak > max)
                    fail_msg("coding %zu, level %d, %zu bytes: %zu, more than %zu", i, level, bodies[k].n, peak, max);
            }
}

TEST(no_memory)
{
    for (size_t i = 0; i < COUNT(codings); i++) {
        struct mk_account account = {.bytes_max = 16 * 1024};
        assert_null(encoder_open(&account, codings[i].coding, codings[i].usual, ENCODER_SIZE_UNKNOWN));
        assert_int_equal(account.bytes, 0);
    }
}

TEST(every_allocation_may_fail)
{
    for (size_t i = 0; i < COUNT(codings); i++) {
        struct encoder *c = NULL;
        for (long n = 0; !c; n++) {
            struct mk_account account = {0};
            mk__alloc_countdown = n;
            c = encoder_open(&account, codings[i].coding, codings[i].usual, ENCODER_SIZE_UNKNOWN);
            mk__alloc_countdown = -1;
            if (c) {
                encoder_close(c);
                assert_true(n > 0);
            }
            assert_int_equal(account.bytes, 0);
        }
    }
}

static int set_up(void **state)
{
    (void)state;
    fill_plain();
    return 0;
}

TEST_FILE(set_up)
