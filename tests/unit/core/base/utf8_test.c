// SPDX-License-Identifier: Apache-2.0
/* UTF-8: every character, what no character is, and which bytes are replaced together. */
#include "testing.h"

#include <monkey/base/buf.h>
#include <monkey/base/utf8.h>

/* Encodes any number below 2^21 in `n` bytes, as RFC 3629 describes for characters. */
static struct mk_str encode(uint32_t c, unsigned n, char to[4])
{
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(marks[n] | c);
    return mk_str(to, n);
}

static unsigned count_bytes(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

TEST(every_number)
{
    char bytes[4];
    for (uint32_t c = 0; c < 1 << 21; c++) {
        unsigned n = count_bytes(c);
        bool is_character = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
        struct mk_str s = encode(c, n, bytes);
        assert_int_equal(mk_utf8_length(s), is_character ? n : 0);
        if (n > 1)
            assert_int_equal(mk_utf8_length(mk_str(s.p, n - 1)), 0); /* cut */
        for (unsigned more = n + 1; more <= 4; more++)
            assert_int_equal(mk_utf8_length(encode(c, more, bytes)), 0); /* overlong */
    }
}

TEST(replacements)
{
    static const struct {
        const char *in, *out; /* a question mark for each U+FFFD */
    } rows[] = {
        {"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x92z", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x92z"},
        {"a\xf1\x80\x80\xe1\x80\xc2"
         "b\x80"
         "c\x80\xbf"
         "d",
         "a???b?c??d"}, /* table 3-8 of the Unicode standard */
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82"
         "A",
         "????????A"}, /* table 3-9 */
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf"
         "A",
         "????????A"}, /* table 3-10 */
        {"\xf4\x91\x92\x93\xff"
         "A\x80\xbf"
         "B",
         "?????A??B"}, /* table 3-11 */
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
         "A",
         "????A"}, /* table 3-12 */
        {"\xf0\x9f\x90", "?"},
        {"\xff\xfe", "??"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[64];
        struct mk_buf out;
        size_t len = strlen(rows[i].in);
        char *copy = mk_test_guarded(rows[i].in, len);
        struct mk_str rest = mk_str(copy, len);
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        while (rest.len) {
            struct mk_str character = mk_utf8_next(&rest);
            mk_buf_adds(&out, mk_str_eq(character, MK_UTF8_REPLACEMENT) ? MK_STR("?") : character);
        }
        assert_string_equal(mk_buf_cstr(&out), rows[i].out);
        mk_test_unguard(copy, len);
    }
}
