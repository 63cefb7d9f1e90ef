// SPDX-License-Identifier: Apache-2.0
/* SHA-1: the vectors of RFC 3174, and lengths at the border of a block, from Python's hashlib. */
#include "testing.h"

#include <stdio.h>

#include <monkey/base/sha1.h>

static void check(const char *data, size_t len, const char *expected)
{
    uint8_t digest[MK_SHA1_BYTES];
    char hex[2 * MK_SHA1_BYTES + 1];
    char *bytes = mk_test_guarded(data, len);
    mk_sha1(digest, bytes, len);
    for (size_t i = 0; i < MK_SHA1_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(hex, expected);
    mk_test_unguard(bytes, len);
}

TEST(digests_the_vectors_of_the_rfc)
{
    static char as[1000000], digits[640];
    memset(as, 'a', sizeof(as));
    for (size_t i = 0; i < sizeof(digits); i++)
        digits[i] = (char)('0' + i % 8);
    check("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    check("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
    check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    check(as, sizeof(as), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    check(digits, sizeof(digits), "dea356a2cddd90c7a7ecedc5ebb563934f460452");
}

TEST(digests_lengths_around_a_block)
{
    static const struct {
        size_t len;
        const char *digest;
    } rows[] = {
        {55, "c4622048cfef59b72875839ee7ae1cbcf55e7658"},  {56, "ddc12942656468475970fa4fa49161f52ed138e4"},
        {57, "c3299df7d6a56509d38a55d09ccf403d4a56d044"},  {63, "7f8c3fa49f1297bd8b9feb964b6b419987f9f0d1"},
        {64, "a334b47180c61fd522f99905ec02c36f9e848211"},  {65, "dd27d9eb923d39687e10872c3e8133ba2f0a68a1"},
        {119, "bea949473b1ec34747ce121c3293624b5d9d8f84"}, {120, "bf05266acd3ec21592b4d42aaea97fa6f3e51926"},
        {127, "b2b4bfd7b2112a167b77a600cca227593523c406"}, {128, "3b1953091899492377f686c266b81d84b5d40f70"},
        {129, "4fd6558b2a93925fb7129447e1d1fac8cff56287"}, {1000, "2c4169b2993df842a68ce33d5a1120339ab1057f"},
    };
    char data[1000];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 37 + 11);
    for (size_t i = 0; i < COUNT(rows); i++)
        check(data, rows[i].len, rows[i].digest);
}
