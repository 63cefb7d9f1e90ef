// SPDX-License-Identifier: Apache-2.0
/* Base64: the vectors of RFC 4648, all bytes and lengths, what is no encoding, and full buffers. */
#include "testing.h"

#include <errno.h>

#include <monkey/base/base64.h>

static const struct {
    struct mk_str plain;
    const char *padded, *url;
} rows[] = {
    {MK_STR(""), "", ""},
    {MK_STR("f"), "Zg==", "Zg"},
    {MK_STR("fo"), "Zm8=", "Zm8"},
    {MK_STR("foo"), "Zm9v", "Zm9v"},
    {MK_STR("foob"), "Zm9vYg==", "Zm9vYg"},
    {MK_STR("fooba"), "Zm9vYmE=", "Zm9vYmE"},
    {MK_STR("foobar"), "Zm9vYmFy", "Zm9vYmFy"},
    {MK_STR("\0"), "AA==", "AA"},
    {MK_STR("\0\0\0\0"), "AAAAAA==", "AAAAAA"},
    {MK_STR("\xff\xef\xff\xfb"), "/+//+w==", "_-__-w"},
};

static int decode(struct mk_buf *b, struct mk_str text, enum mk_base64_form form)
{
    char *bytes = mk_test_guarded(text.p, text.len);
    mk_buf_init(b, 4096);
    int result = mk_base64_decode(b, mk_str(bytes, text.len), form);
    mk_test_unguard(bytes, text.len);
    return result;
}

static void check(struct mk_str plain, struct mk_str text, enum mk_base64_form form)
{
    struct mk_buf b;
    char *bytes = mk_test_guarded(plain.p, plain.len);
    mk_buf_init(&b, 4096);
    mk_base64_encode(&b, bytes, plain.len, form);
    assert_int_equal(b.err, 0);
    assert_true(mk_str_eq(mk_buf_str(&b), text));
    mk_buf_release(&b);
    mk_test_unguard(bytes, plain.len);

    assert_int_equal(decode(&b, text, form), 0);
    assert_true(mk_str_eq(mk_buf_str(&b), plain));
    mk_buf_release(&b);
}

TEST(encodes_and_decodes)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        check(rows[i].plain, mk_str_c(rows[i].padded), MK_BASE64);
        check(rows[i].plain, mk_str_c(rows[i].url), MK_BASE64_URL);
    }
}

TEST(decodes_what_it_encodes)
{
    char plain[256];
    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = (char)(i * 37 + 11);
    for (size_t n = 0; n <= sizeof(plain); n++) {
        for (int form = MK_BASE64; form <= MK_BASE64_URL; form++) {
            struct mk_buf b;
            mk_buf_init(&b, 4096);
            mk_buf_adds(&b, MK_STR("before"));
            mk_base64_encode(&b, plain, n, (enum mk_base64_form)form);
            assert_int_equal(b.len - 6, form == MK_BASE64 ? (n + 2) / 3 * 4 : (n * 4 + 2) / 3);
            check(mk_str(plain, n), mk_str(b.data + 6, b.len - 6), (enum mk_base64_form)form);
            mk_buf_release(&b);
        }
    }
}

TEST(rejects_what_is_no_encoding)
{
    static const struct {
        struct mk_str text;
        enum mk_base64_form form;
    } bad[] = {
        {MK_STR("Z"), MK_BASE64},         {MK_STR("Zg"), MK_BASE64},        {MK_STR("Zg="), MK_BASE64},
        {MK_STR("Zm8"), MK_BASE64},       {MK_STR("Z==="), MK_BASE64},      {MK_STR("===="), MK_BASE64},
        {MK_STR("="), MK_BASE64},         {MK_STR("Zg==Zg=="), MK_BASE64},  {MK_STR("Zm9v===="), MK_BASE64},
        {MK_STR("Zm=v"), MK_BASE64},      {MK_STR("Zm9v\n"), MK_BASE64},    {MK_STR("Zm9v\nZm8"), MK_BASE64},
        {MK_STR(" Zm9"), MK_BASE64},      {MK_STR("Zm9\0"), MK_BASE64},     {MK_STR("Zm9\xff"), MK_BASE64},
        {MK_STR("Zh=="), MK_BASE64},      {MK_STR("Zm9="), MK_BASE64},      {MK_STR("_-__"), MK_BASE64},
        {MK_STR("Zg=="), MK_BASE64_URL},  {MK_STR("Z"), MK_BASE64_URL},     {MK_STR("A"), MK_BASE64_URL},
        {MK_STR("AAAAA"), MK_BASE64_URL}, {MK_STR("Zm9vY"), MK_BASE64_URL}, {MK_STR("Zh"), MK_BASE64_URL},
        {MK_STR("Zm9"), MK_BASE64_URL},   {MK_STR("/+//"), MK_BASE64_URL},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct mk_buf b;
        if (decode(&b, bad[i].text, bad[i].form) != -EINVAL)
            fail_msg("%.*s", MK_STR_ARG(bad[i].text));
        assert_int_equal(b.len, 0);
        assert_int_equal(b.err, 0);
        mk_buf_release(&b);
    }
}

/* Each byte at each place of a group: exactly 64 of them are digits. */
TEST(knows_its_digits)
{
    for (size_t place = 0; place < 4; place++) {
        unsigned valid[2] = {0};
        for (unsigned byte = 0; byte < 256; byte++) {
            for (int form = MK_BASE64; form <= MK_BASE64_URL; form++) {
                char text[] = "AAAA";
                struct mk_buf b;
                text[place] = (char)byte;
                valid[form] += byte != '=' && decode(&b, mk_str(text, 4), (enum mk_base64_form)form) == 0;
                if (byte != '=')
                    mk_buf_release(&b);
            }
        }
        assert_int_equal(valid[MK_BASE64], 64);
        assert_int_equal(valid[MK_BASE64_URL], 64);
    }
}

TEST(respects_the_limit_of_the_buffer)
{
    char storage[8];
    struct mk_buf b;
    mk_buf_init_fixed(&b, storage, sizeof(storage));
    mk_base64_encode(&b, "foobar", 6, MK_BASE64);
    assert_int_equal(b.err, 0);
    mk_base64_encode(&b, "", 0, MK_BASE64);
    assert_int_equal(b.err, 0);
    mk_base64_encode(&b, "f", 1, MK_BASE64);
    assert_int_equal(b.err, -ENOBUFS);
    assert_int_equal(b.len, 8);
    mk_buf_init_fixed(&b, storage, 2);
    assert_int_equal(mk_base64_decode(&b, MK_STR("Zm9v"), MK_BASE64), -ENOBUFS);
    assert_int_equal(mk_base64_decode(&b, MK_STR("Zg=="), MK_BASE64), -ENOBUFS); /* sticky */
    assert_int_equal(b.len, 0);
}

static int encode_and_decode(void *ctx)
{
    struct mk_buf text, plain;
    (void)ctx;
    mk_buf_init(&text, 64);
    mk_buf_init(&plain, 64);
    mk_base64_encode(&text, "foobar", 6, MK_BASE64);
    int result = text.err ? text.err : mk_base64_decode(&plain, mk_buf_str(&text), MK_BASE64);
    mk_buf_release(&text);
    mk_buf_release(&plain);
    return result;
}

TEST(reports_missing_memory)
{
    assert_int_equal(mk_test_failing_allocs(encode_and_decode, NULL), 2);
}
