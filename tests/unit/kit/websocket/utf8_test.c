// SPDX-License-Identifier: Apache-2.0
/* The validator of UTF-8: against a decoder of code points, in pieces, and flush against a guard page. */
#include "testing.h"

#include "websocket/frame.h"

/*
 * Decodes the first character by the definition. Returns its bytes, 0 if none can begin with these bytes, or -1 if they
 * are too few.
 */
static int decode(const uint8_t *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned len = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    uint32_t low = len > 1 ? p[0] & (0x7fu >> len) : p[0], high;
    if (!len)
        return 0;
    high = low;
    for (unsigned i = 1; i < len; i++) { /* the code points that the bytes so far allow */
        if (i < n && p[i] >> 6 != 2)
            return 0;
        low = low << 6 | (i < n ? p[i] & 0x3fu : 0);
        high = high << 6 | (i < n ? p[i] & 0x3fu : 0x3f);
    }
    if (high < least[len] || low > 0x10ffff || (low >= 0xd800 && high <= 0xdfff))
        return 0;
    return len <= n ? (int)len : -1;
}

enum handshake_result { BAD, INCOMPLETE, GOOD };

static enum handshake_result expect(const uint8_t *p, size_t n)
{
    while (n) {
        int len = decode(p, n);
        if (len <= 0)
            return len < 0 ? INCOMPLETE : BAD;
        p += len;
        n -= (size_t)len;
    }
    return GOOD;
}

static enum handshake_result get_result(const struct mk__utf8 *u, bool fine)
{
    assert_int_equal(fine, !u->bad);
    return !fine ? BAD : mk__utf8_complete(u) ? GOOD : INCOMPLETE;
}

static void check(const uint8_t *p, size_t n)
{
    struct mk__utf8 whole = {}, bytes = {};
    enum handshake_result expected = expect(p, n);
    bool fine = true;
    for (size_t i = 0; i < n && fine; i++) {
        fine = mk__utf8_feed(&bytes, p + i, 1);
        if (!fine)
            assert_int_equal(expect(p, i), INCOMPLETE + (expect(p, i) == GOOD)); /* not before, not after */
    }
    assert_int_equal(get_result(&bytes, fine), expected);
    assert_int_equal(get_result(&whole, mk__utf8_feed(&whole, p, n)), expected);
    assert_int_equal(mk__utf8_is_valid(p, n), expected == GOOD);
}

/* All beginnings of three bytes, and all of four in whose last byte only the ends of ranges matter. */
TEST(accepts_what_a_decoder_accepts)
{
    static const uint8_t lasts[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    for (unsigned n = 0; n < 1 << 24; n += n >> 16 < 0x80 ? 0xff : 1) {
        uint8_t p[4] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
        enum handshake_result expected = expect(p, 3);
        if (mk__utf8_is_valid(p, 3) != (expected == GOOD))
            fail_msg("%02x %02x %02x", p[0], p[1], p[2]);
        for (size_t i = 0; expected == INCOMPLETE && i < COUNT(lasts); i++) {
            p[3] = lasts[i];
            check(p, 4);
        }
    }
}

static size_t encode(uint8_t *to, uint32_t c)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (uint8_t)(0x80 | (c & 0x3f));
    to[0] = (uint8_t)(leads[n] | c);
    return n;
}

TEST(accepts_every_character)
{
    static uint8_t text[0x110000 * 4];
    struct mk__utf8 u = {};
    size_t n = 0;
    for (uint32_t c = 0; c < 0x110000; c++)
        n += c >= 0xd800 && c <= 0xdfff ? 0 : encode(text + n, c);
    assert_true(mk__utf8_is_valid(text, n));
    assert_int_equal(mk__utf8_prefix(text, n), n);
    for (size_t i = 0, piece = 1; i < n; i += piece, piece = piece % 101 + 1)
        assert_true(mk__utf8_feed(&u, text + i, piece < n - i ? piece : n - i));
    assert_true(mk__utf8_complete(&u));
}

/* Errors and ends at every place of texts of every length, whose last byte touches a page that cannot be read. */
TEST(finds_errors_at_every_place)
{
    static const char *const texts[] = {"0123456789abcdefghijklmnopqrstuvwxyz",
                                        "\xc3\xbc",
                                        "a\xe4\xb8\xad",
                                        "\xe4\xb8\xad",
                                        "\xf0\x9f\x98\x80",
                                        "b\xf4\x8f\xbf\xbf-0123456789",
                                        "\xed\x9f\xbf\xee\x80\x80\xc2\x80",
                                        "\xf0\x90\x80\x80\xe0\xa0\x80x"};
    static const uint8_t wrong[] = {'a',  0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2,
                                    0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff};
    for (size_t t = 0; t < COUNT(texts); t++) {
        for (size_t n = 1; n <= 150; n += n < 40 ? 1 : 11) {
            uint8_t *p = (uint8_t *)mk_test_guarded("", 0) - n;
            memset(p - 64, 0xf0, 64); /* not part of the text */
            for (size_t i = 0; i < n; i++)
                p[i] = (uint8_t)texts[t][i % strlen(texts[t])];
            check(p, n);
            for (size_t i = 0; i < n; i++) {
                uint8_t right = p[i];
                for (size_t w = 0; w < COUNT(wrong); w++) {
                    p[i] = wrong[w];
                    check(p, n);
                }
                p[i] = right;
            }
            mk_test_unguard((char *)p + n, 0);
        }
    }
}

/* Both pieces at their own place: neither is read before its beginning or behind its end. */
TEST(resumes_at_every_place)
{
    static const char text[] = "a\xf0\x9f\x98\x80\xe4\xb8\xad\xc3\xbc"
                               "b\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xe4\xb8\xad"
                               "\xe4\xb8\xad\xe4\xb8\xad\xc3\xbc\xc3\xbc\xc3\xbc the end of this text";
    size_t n = sizeof(text) - 1;
    for (size_t cut = 0; cut <= n; cut++) {
        struct mk__utf8 u = {};
        char *first = mk_test_guarded(text, cut), *second = mk_test_guarded(text + cut, n - cut);
        assert_true(mk__utf8_feed(&u, first, cut));
        assert_int_equal(mk__utf8_complete(&u), expect((const uint8_t *)text, cut) == GOOD);
        assert_true(mk__utf8_feed(&u, second, n - cut));
        assert_true(mk__utf8_complete(&u));
        assert_true(mk__utf8_feed(&u, "", 0));
        assert_false(mk__utf8_feed(&u, "\xbf", 1));
        assert_false(mk__utf8_feed(&u, "a", 1)); /* errors are final */
        assert_false(mk__utf8_complete(&u));
        mk_test_unguard(first, cut);
        mk_test_unguard(second, n - cut);
    }
}

TEST(cuts_after_a_character)
{
    static const struct {
        const char *text;
        size_t prefix;
    } rows[] = {{"", 0},
                {"abc", 3},
                {"a\xc3", 1},
                {"\xc3\xbc", 2},
                {"\xe4\xb8", 0},
                {"a\xe4\xb8\xad", 4},
                {"ab\xff"
                 "cd",
                 2},
                {"\xf0\x9f\x98\x80\xf0\x9f\x98", 4}};
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(mk__utf8_prefix(rows[i].text, strlen(rows[i].text)), rows[i].prefix);
}
