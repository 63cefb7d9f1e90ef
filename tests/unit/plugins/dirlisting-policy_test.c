// SPDX-License-Identifier: Apache-2.0
/* SHA-256 by the examples of FIPS 180 and all lengths around a block, and policies. */
#include "../../../plugins/dirlisting/policy.h"

#include "testing.h"

#include "../../../plugins/dirlisting/sha256.h"

static void assert_digest(struct mk_str text, const char *hex)
{
    unsigned char digest[SHA256_BYTES];
    char found[2 * SHA256_BYTES + 1];
    struct mk_buf out;
    mk_buf_init_fixed(&out, found, sizeof(found));
    sha256_digest(text, digest);
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        mk_buf_addf(&out, "%02x", digest[i]);
    assert_str_equal(mk_buf_str(&out), hex);
}

static void test_digests(void **state)
{
    static char million[1000000];
    (void)state;
    memset(million, 'a', sizeof(million));
    assert_digest(MK_STR(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest(MK_STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest(MK_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_digest(mk_str(million, sizeof(million)), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The digest of the digests of 0 to 130 letters; computed by another implementation. */
static void test_lengths(void **state)
{
    char text[131];
    unsigned char digests[131][SHA256_BYTES];
    (void)state;
    memset(text, 'b', sizeof(text));
    for (size_t n = 0; n < sizeof(text); n++)
        sha256_digest(mk_str(text, n), digests[n]);
    assert_digest(mk_str((const char *)digests, sizeof(digests)),
                  "e48d0d51ab0e5311c5dcb9ff038d7f4156f464cc8b4856d7d8fe82d0690feb86");
}

static void test_policies(void **state)
{
    static const struct template_codes codes = {
        .items = {{MK_STR("a{}"), false}, {MK_STR("1"), true}, {MK_STR("2"), true}}, .n = 3};
    static const struct template_codes none = {.n = 0};
    static const struct markup files = {.has_script_file = true, .has_style_file = true}, plain = {0};
    char storage[1024];
    struct mk_buf out;
    (void)state;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    policy_write(&out, &codes, &plain);
    assert_str_equal(mk_buf_str(&out), "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors "
                                       "'self'; font-src 'self'; img-src 'self' data:; style-src "
                                       "'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='; script-src "
                                       "'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s=' "
                                       "'sha256-1HNeOiZeFu7gP1lxi5tdAwGcB9i2xR+Q2jpmbuwTqzU='");
    out.len = 0;
    policy_write(&out, &none, &files);
    assert_non_null(strstr(mk_buf_cstr(&out), "style-src 'self'; script-src 'self'"));
    out.len = 0;
    policy_write(&out, &none, &plain);
    assert_non_null(strstr(mk_buf_cstr(&out), "style-src 'none'; script-src 'none'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
