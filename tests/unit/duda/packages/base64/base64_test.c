// SPDX-License-Identifier: Apache-2.0
/* The package base64: vectors of RFC 4648, both alphabets, all bytes, wrong texts, and no memory. */
#include <duda/mem.h>
#include <duda/packages/base64/base64.h>

#include "testing.h"

#include <stdlib.h>

static const struct {
    const char *data, *text, *url;
} vectors[] = {
    {"", "", ""},
    {"f", "Zg==", "Zg"},
    {"fo", "Zm8=", "Zm8"},
    {"foo", "Zm9v", "Zm9v"},
    {"foob", "Zm9vYg==", "Zm9vYg"},
    {"fooba", "Zm9vYmE=", "Zm9vYmE"},
    {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
    {"\xfb\xff\xfe", "+//+", "-__-"},
};

static const char *const wrong[] = {
    "Zg",   "Zg=",  "Zg===", "Z===",    "====", "=",    "Zm9v=", "Zm9vZ",
    "Zm9-", "Zm9_", "Zm9.",  "Zm\2009", "Zh==", "Zm9=", "Z=g=",  "Zg==Zg==",
};

static const char *const wrong_urls[] = {"Zg==", "Z", "Zm9+", "Zm9/", "Zm 9v", "Zm9v\n", "Zh", "Zm9"};

static const struct duda_api_base64 *base64_api(void)
{
    return duda_package_main()->api;
}

static void check(void *result, const size_t *len, const char *expected, size_t expected_len)
{
    assert_non_null(result);
    assert_int_equal(*len, expected_len);
    assert_memory_equal(result, expected, expected_len);
    assert_int_equal(((char *)result)[*len], 0);
    free(result);
}

TEST(vectors)
{
    size_t len;
    base64 = base64_api();
    for (size_t i = 0; i < COUNT(vectors); i++) {
        size_t data_len = strlen(vectors[i].data), text_len = strlen(vectors[i].text), url_len = strlen(vectors[i].url);
        char *data = mk_test_guarded(vectors[i].data, data_len), *text = mk_test_guarded(vectors[i].text, text_len),
             *url = mk_test_guarded(vectors[i].url, url_len);
        check(base64->encode(data, data_len, &len), &len, vectors[i].text, text_len);
        check(base64->decode(text, text_len, &len), &len, vectors[i].data, data_len);
        check(base64->encode_url(data, data_len, &len), &len, vectors[i].url, url_len);
        check(base64->decode_url(url, url_len, &len), &len, vectors[i].data, data_len);
        mk_test_unguard(data, data_len);
        mk_test_unguard(text, text_len);
        mk_test_unguard(url, url_len);
    }
}

TEST(all_bytes)
{
    unsigned char data[1000];
    base64 = base64_api();
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 7);
    for (size_t n = 0; n <= sizeof(data); n++) {
        size_t text_len, len;
        unsigned char *text = base64->encode(data, n, &text_len);
        assert_int_equal(text_len, (n + 2) / 3 * 4);
        check(base64->decode(text, text_len, &len), &len, (char *)data, n);
        free(text);
    }
    free(base64->encode(data, 3, NULL));
    free(base64->decode("Zm9v", 4, NULL));
    assert_null(base64->decode("Zm9", 3, NULL));
}

TEST(line_breaks)
{
    size_t len;
    base64 = base64_api();
    check(base64->decode("Zm9v\r\n\tYm Fy\n", 13, &len), &len, "foobar", 6);
    check(base64->decode(" \n", 2, &len), &len, "", 0);
    assert_null(base64->decode("Zm9v\nY", 6, &len));
    assert_null(base64->decode("Zm9v\0", 5, &len));
    assert_null(base64->decode("Zm9v\v", 5, &len));
}

TEST(other_bytes)
{
    size_t len;
    base64 = base64_api();
    check(base64->decode_old("}Zm9v\r\nYm-Fy", 13, &len), &len, "foobar", 6);
    check(base64->decode_old("Zm8=Zm8=", 8, &len), &len, "fo", 2);
    check(base64->decode_old("Zg=\0=Zm9v", 9, &len), &len, "f", 1);
    check(base64->decode_old("", 0, &len), &len, "", 0);
    assert_null(base64->decode_old("{Zm9", 4, &len));
    assert_null(base64->decode_old("Z===", 4, &len));
    assert_null(base64->decode_old(NULL, 4, &len));
}

TEST(wrong_texts)
{
    base64 = base64_api();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        size_t len = 7;
        if (base64->decode(wrong[i], strlen(wrong[i]), &len) || len != 0)
            fail_msg("%s was decoded", wrong[i]);
    }
    for (size_t i = 0; i < COUNT(wrong_urls); i++) {
        size_t len = 7;
        if (base64->decode_url(wrong_urls[i], strlen(wrong_urls[i]), &len) || len != 0)
            fail_msg("%s was decoded", wrong_urls[i]);
    }
}

TEST(wrong_arguments)
{
    size_t len = 7;
    base64 = base64_api();
    assert_null(base64->encode(NULL, 1, &len));
    assert_null(base64->decode(NULL, 4, &len));
    assert_null(base64->encode("a", SIZE_MAX, &len));
    assert_null(base64->encode("a", SIZE_MAX / 2 + 1, &len));
    assert_int_equal(len, 0);
    check(base64->encode(NULL, 0, &len), &len, "", 0);
    check(base64->decode(NULL, 0, &len), &len, "", 0);
}

/* ── no memory ── */

static long countdown = -1;

static void *fail_alloc(size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static const struct duda_api_mem failing_mem = {.alloc = fail_alloc, .free = free};

TEST(without_memory)
{
    base64 = base64_api();
    for (long n = 0; n < 2; n++) {
        size_t len = 7;
        countdown = n;
        assert_null(base64->decode("Zm 9v", 5, &len));
        assert_int_equal(len, 0);
    }
    countdown = 0;
    assert_null(base64->encode("a", 1, NULL));
    countdown = 0;
    assert_null(base64->encode_url("a", 1, NULL));
    countdown = 0;
    assert_null(base64->decode_url("YQ", 2, NULL));
    countdown = -1;
}

static int set_up(void **state)
{
    (void)state;
    mem = &failing_mem;
    return 0;
}

TEST_FILE(set_up)
