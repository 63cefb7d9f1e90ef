// SPDX-License-Identifier: Apache-2.0
/* The masking of payloads: every length, offset and alignment, in place and as a copy, against a guard page. */
#include "testing.h"

#include "websocket/frame.h"

static const uint8_t key_bytes[] = {0x37, 0xfa, 0x21, 0x3d};

static uint32_t get_key(void)
{
    uint32_t key;
    memcpy(&key, key_bytes, sizeof(key));
    return key;
}

TEST(masks_the_example_of_the_rfc)
{
    char text[] = "Hello";
    mk__ws_mask(text, text, 5, get_key(), 0);
    assert_memory_equal(text, "\x7f\x9f\x4d\x51\x58", 5);
    mk__ws_mask(text, text, 5, get_key(), 0);
    assert_string_equal(text, "Hello");
}

TEST(masks_every_length)
{
    enum { BYTES = 300 };
    uint8_t from[BYTES], expected[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        from[i] = (uint8_t)(i * 7);
    for (size_t n = 0; n <= BYTES; n++) {
        size_t offset = n % 7 + ((size_t)1 << 40);
        for (size_t i = 0; i < n; i++)
            expected[i] = from[i] ^ key_bytes[(offset + i) % 4];
        char *in = mk_test_guarded(from, n), *out = mk_test_guarded("", n ? 1 : 0) - (n ? n - 1 : 0);
        mk__ws_mask(out, in, n, get_key(), offset);
        assert_memory_equal(out, expected, n);
        assert_memory_equal(in, from, n);
        mk__ws_mask(in, in, n, get_key(), offset);
        assert_memory_equal(in, expected, n);
        mk_test_unguard(in, n);
        mk_test_unguard(out, n);
    }
}

/* The offset carries the key over the border, also at odd addresses. */
TEST(masks_in_pieces)
{
    enum { BYTES = 200 };
    uint8_t whole[BYTES] = {0}, pieces[BYTES] = {0};
    mk__ws_mask(whole, whole, BYTES, get_key(), 0);
    for (size_t cut = 0; cut <= BYTES; cut++) {
        memset(pieces, 0, sizeof(pieces));
        mk__ws_mask(pieces, pieces, cut, get_key(), 0);
        mk__ws_mask(pieces + cut, pieces + cut, BYTES - cut, get_key(), cut);
        assert_memory_equal(pieces, whole, BYTES);
    }
}
