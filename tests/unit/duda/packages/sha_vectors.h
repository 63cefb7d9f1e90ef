// SPDX-License-Identifier: Apache-2.0
/*
 * The tests of both packages of digests. Allocations of libcrypto fail on demand: it must get its functions before it
 * allocates anything.
 */
#ifndef MK_UNIT_SHA_VECTORS_H
#define MK_UNIT_SHA_VECTORS_H

#include <duda/packages/sha1/sha1.h>
#include <duda/packages/sha256/sha256.h>

#include "testing.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>

struct vector {
    const char *text;
    unsigned times; /* how often it is repeated */
    const char *hex;
};

struct hmac_vector {
    const char *key;
    unsigned key_times;
    const char *text;
    unsigned times;
    const char *hex;
};

static struct functions {
    int (*encode)(const void *data, size_t len, unsigned char *digest);
    struct duda_digest *(*init)(void);
    int (*update)(struct duda_digest *d, const void *data, size_t len);
    int (*final)(struct duda_digest *d, unsigned char *digest);
    void (*abort)(struct duda_digest *d);
    int (*hmac)(const void *key, size_t key_len, const void *data, size_t len, unsigned char *digest);
    bool (*is_equal)(const void *a, const void *b, size_t len);
    char *(*hex)(const unsigned char *digest, char *text);
    size_t bytes;
    const struct vector *vectors;
    size_t n_vectors;
    const struct hmac_vector *hmacs;
    size_t n_hmacs;
} functions;

enum { DIGEST_BYTES_MAX = SHA256_DIGEST_LENGTH, HEX_BYTES_MAX = DUDA_SHA256_HEX_BYTES };

/* ── memory ── */

static _Thread_local long countdown = -1;

static void *fail_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static void *fail_realloc(void *ptr, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return countdown >= 0 && countdown-- == 0 ? NULL : realloc(ptr, size);
}

static void free_memory(void *ptr, const char *file, int line)
{
    (void)file;
    (void)line;
    free(ptr);
}

static void use_failing_memory(void)
{
    if (CRYPTO_set_mem_functions(fail_malloc, fail_realloc, free_memory) != 1)
        abort();
}

/* ── texts ── */

static char *repeat(const char *text, unsigned times, size_t *ret_len)
{
    size_t len = strlen(text);
    char *all = malloc(len * times + 1);
    for (unsigned i = 0; i < times; i++)
        memcpy(all + i * len, text, len);
    *ret_len = len * times;
    return all;
}

static bool has_hex(const unsigned char *digest, const char *expected)
{
    char text[HEX_BYTES_MAX];
    return strcmp(functions.hex(digest, text), expected) == 0;
}

TEST(vectors)
{
    unsigned char digest[DIGEST_BYTES_MAX];
    for (size_t i = 0; i < functions.n_vectors; i++) {
        size_t len;
        char *text = repeat(functions.vectors[i].text, functions.vectors[i].times, &len);
        char *guarded = mk_test_guarded(text, len);
        assert_int_equal(functions.encode(guarded, len, digest), 0);
        assert_true(has_hex(digest, functions.vectors[i].hex));
        mk_test_unguard(guarded, len);
        free(text);
    }
    assert_int_equal(functions.encode(NULL, 0, digest), 0);
    assert_true(has_hex(digest, functions.vectors[0].hex));
}

TEST(hmac_vectors)
{
    unsigned char digest[DIGEST_BYTES_MAX];
    for (size_t i = 0; i < functions.n_hmacs; i++) {
        const struct hmac_vector *v = &functions.hmacs[i];
        size_t key_len, len;
        char *key = repeat(v->key, v->key_times, &key_len), *text = repeat(v->text, v->times, &len);
        assert_int_equal(functions.hmac(key, key_len, text, len, digest), 0);
        assert_true(has_hex(digest, v->hex));
        free(key);
        free(text);
    }
    assert_int_equal(functions.hmac(NULL, 0, NULL, 0, digest), 0);
    assert_true(has_hex(digest, functions.hmacs[functions.n_hmacs - 1].hex));
}

/* NULs count as other bytes, and it does not matter where pieces begin. */
TEST(pieces)
{
    unsigned char whole[DIGEST_BYTES_MAX], digest[DIGEST_BYTES_MAX], data[300];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i % 7 ? i : 0);
    assert_int_equal(functions.encode(data, sizeof(data), whole), 0);
    for (size_t piece = 1; piece < sizeof(data); piece++) {
        struct duda_digest *d = functions.init();
        for (size_t at = 0; at < sizeof(data); at += piece)
            assert_int_equal(functions.update(d, data + at, piece < sizeof(data) - at ? piece : sizeof(data) - at), 0);
        assert_int_equal(functions.update(d, NULL, 0), 0);
        assert_int_equal(functions.final(d, digest), 0);
        assert_true(functions.is_equal(whole, digest, functions.bytes));
    }
    data[7]++;
    assert_int_equal(functions.encode(data, sizeof(data), digest), 0);
    assert_false(functions.is_equal(whole, digest, functions.bytes));
    functions.abort(functions.init());
    functions.abort(NULL);
}

TEST(equal)
{
    assert_true(functions.is_equal("a\0b", "a\0b", 3));
    assert_false(functions.is_equal("a\0b", "a\0c", 3));
    assert_true(functions.is_equal("a", "b", 0));
    assert_true(functions.is_equal(NULL, NULL, 0));
    assert_false(functions.is_equal(NULL, "a", 1));
}

static bool is_zero(const unsigned char *digest)
{
    static const unsigned char zeros[DIGEST_BYTES_MAX];
    return memcmp(digest, zeros, functions.bytes) == 0;
}

TEST(wrong_arguments)
{
    unsigned char digest[DIGEST_BYTES_MAX];
    memset(digest, 1, sizeof(digest));
    assert_int_equal(functions.encode(NULL, 1, digest), -EINVAL);
    assert_true(is_zero(digest));
    assert_int_equal(functions.encode("a", 1, NULL), -EINVAL);
    memset(digest, 1, sizeof(digest));
    assert_int_equal(functions.hmac(NULL, 1, "a", 1, digest), -EINVAL);
    assert_true(is_zero(digest));
    assert_int_equal(functions.hmac("k", 1, NULL, 1, digest), -EINVAL);
    assert_int_equal(functions.hmac("k", 1, "a", 1, NULL), -EINVAL);
    assert_int_equal(functions.update(NULL, "a", 1), -EINVAL);
    memset(digest, 1, sizeof(digest));
    assert_int_equal(functions.final(NULL, digest), -EINVAL);
    assert_true(is_zero(digest));
    assert_int_equal(functions.final(functions.init(), NULL), -EINVAL);
    struct duda_digest *d = functions.init();
    assert_int_equal(functions.update(d, "a", 1), 0);
    assert_int_equal(functions.update(d, NULL, 1), -EINVAL);
    memset(digest, 1, sizeof(digest));
    assert_true(functions.final(d, digest) < 0); /* the digest would not be that of the whole text */
    assert_true(is_zero(digest));
}

/* ── errors and threads ── */

static int encode_abc(unsigned char *digest)
{
    return functions.encode("abc", 3, digest);
}

static int encode_pieces(unsigned char *digest)
{
    struct duda_digest *d = functions.init();
    functions.update(d, "abc", 3); /* final() tells of its errors, too */
    return functions.final(d, digest);
}

static int encode_hmac(unsigned char *digest)
{
    return functions.hmac("Jefe", 4, "what do ya want for nothing?", 28, digest);
}

/* Each allocation fails once: an error and zeros, or, where libcrypto can do without it, the right digest. */
static long fail_each(int (*run)(unsigned char *digest), const char *hex)
{
    for (long n = 0;; n++) {
        unsigned char digest[DIGEST_BYTES_MAX];
        memset(digest, 1, sizeof(digest));
        countdown = n;
        int err = run(digest);
        bool all_fine = countdown >= 0;
        countdown = -1;
        assert_true(err == 0 ? has_hex(digest, hex) : !all_fine && is_zero(digest));
        if (all_fine)
            return n;
    }
}

TEST(without_memory)
{
    assert_true(fail_each(encode_abc, functions.vectors[1].hex) > 0);
    assert_true(fail_each(encode_pieces, functions.vectors[1].hex) > 0);
    assert_true(fail_each(encode_hmac, functions.hmacs[1].hex) > 0);
}

enum { THREADS = 4, ROUNDS = 500 };

static void *use_in_thread(void *arg)
{
    unsigned char digest[DIGEST_BYTES_MAX];
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (encode_abc(digest) < 0 || !has_hex(digest, functions.vectors[1].hex) || encode_pieces(digest) < 0 ||
            !has_hex(digest, functions.vectors[1].hex) || encode_hmac(digest) < 0 ||
            !has_hex(digest, functions.hmacs[1].hex))
            return arg;
    }
    return NULL;
}

TEST(threads)
{
    pthread_t threads[THREADS];
    void *result;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_in_thread, &threads), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
}

#endif
