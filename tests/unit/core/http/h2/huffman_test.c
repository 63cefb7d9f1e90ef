// SPDX-License-Identifier: Apache-2.0
/* The Huffman code of HPACK: the strings of RFC 7541 appendix C, every byte, every length, and what is malformed. */
#include "testing.h"

#include "http/h2/huffman.h"

#include <errno.h>

static const struct {
    const char *text, *coded;
    size_t len;
} cases[] = {
    {"", "", 0},
    {"www.example.com", "\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff", 12},
    {"no-cache", "\xa8\xeb\x10\x64\x9c\xbf", 6},
    {"custom-key", "\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f", 8},
    {"custom-value", "\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf", 9},
    {"302", "\x64\x02", 2},
    {"private", "\xae\xc3\x77\x1a\x4b", 5},
    {"Mon, 21 Oct 2013 20:13:21 GMT",
     "\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff", 22},
    {"https://www.example.com", "\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3", 17},
    {"gzip", "\x9b\xd9\xab", 3},
};

/* Into room of every size, at the end of which a guard page begins. */
static void check_decoding(struct mk_str coded, struct mk_str text)
{
    char *in = mk_test_guarded(coded.p, coded.len);
    for (size_t size = text.len + 2; size-- > 0;) {
        char room[256];
        memset(room, '#', sizeof(room));
        assert_int_equal(mk__huffman_decode(mk_str(in, coded.len), room, size), text.len);
        size_t kept = size < text.len ? size : text.len;
        assert_memory_equal(room, text.p, kept);
        assert_int_equal(room[kept], '#');
    }
    mk_test_unguard(in, coded.len);
}

TEST(strings_of_the_rfc)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_str text = mk_str_c(cases[i].text);
        assert_int_equal(mk__huffman_encoded_len(text), cases[i].len);
        char *to = mk_test_guarded(cases[i].coded, cases[i].len);
        memset(to, 0, cases[i].len);
        assert_ptr_equal(mk__huffman_encode(to, text), to + cases[i].len);
        assert_memory_equal(to, cases[i].coded, cases[i].len);
        mk_test_unguard(to, cases[i].len);
        check_decoding(mk_str(cases[i].coded, cases[i].len), text);
    }
}

/* Each byte once, twice, and so on, so that each code begins at each bit. */
TEST(every_byte)
{
    for (unsigned byte = 0; byte < 256; byte++)
        for (size_t len = 1; len <= 9; len++) {
            char text[9], coded[64];
            memset(text, (int)byte, len);
            size_t n = (size_t)(mk__huffman_encode(coded, mk_str(text, len)) - coded);
            assert_int_equal(n, mk__huffman_encoded_len(mk_str(text, len)));
            check_decoding(mk_str(coded, n), mk_str(text, len));
        }
}

/* One string of all bytes, in an order in which short and long codes alternate. */
TEST(all_bytes)
{
    char text[256], coded[1024], decoded[256];
    for (unsigned i = 0; i < 256; i++)
        text[i] = (char)(i * 37);
    size_t n = (size_t)(mk__huffman_encode(coded, mk_str(text, 256)) - coded);
    assert_int_equal(mk__huffman_decode(mk_str(coded, n), decoded, sizeof(decoded)), 256);
    assert_memory_equal(decoded, text, 256);
}

TEST(malformed)
{
    static const struct {
        const char *coded;
        size_t len;
    } bad[] = {
        {"\xff", 1},                 /* eight bits of padding */
        {"\x1f\xff", 2},             /* 'a' and more than seven */
        {"\x1e", 1},                 /* 'a' with padding of another kind */
        {"\x18", 1},                 /* likewise, of zeros */
        {"\xff\xff\xff\xff", 4},     /* the end-of-string symbol, and two bits */
        {"\x1f\xff\xff\xff\xff", 5}, /* behind 'a' */
        {"\xfe", 1},                 /* a code that has no end */
        {"\xff\xff\xff", 3},
    };
    char room[16];
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(mk__huffman_decode(mk_str(bad[i].coded, bad[i].len), room, sizeof(room)), -EINVAL);
    assert_int_equal(mk__huffman_decode(mk_str("\x1f", 1), room, sizeof(room)), 1);
}
