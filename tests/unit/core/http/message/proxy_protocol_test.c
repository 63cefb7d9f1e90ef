// SPDX-License-Identifier: Apache-2.0
/* PROXY protocol headers: each whole, byte by byte, followed by a request, and against a guard page. */
#include "testing.h"

#include <errno.h>

#include "http/message/proxy_protocol.h"

static int feed(const char *bytes, size_t len, struct mk__proxy_protocol *ret)
{
    char *copy = mk_test_guarded(bytes, len);
    int result = mk__proxy_protocol_read(mk_str(copy, len), ret);
    mk_test_unguard(copy, len);
    return result;
}

static void assert_source(const struct mk__proxy_protocol *header, const char *text)
{
    char storage[64];
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk_address_print(&header->source, &out);
    mk_buf_addf(&out, " %u", header->source.port);
    assert_str_equal(mk_buf_str(&out), text);
}

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\xc0\xa8\x00\x01\xc0\xa8\x00\x0b\xdc\x04\x01\xbb"
#define V6_A "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
#define V6_B "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02"
#define MAPPED "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x01"
#define TEN "0123456789"
#define PATH TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "12345678"

#define CASE(text, expected) \
    { \
        {text, sizeof(text) - 1}, expected \
    }

static const struct {
    struct mk_str bytes;
    const char *source; /* NULL: refused */
} cases[] = {
    /* section 2.1 */
    CASE("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", "192.168.0.1 56324"),
    CASE("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255 65535"),
    CASE("PROXY TCP6 ffff:f:f:f:f:f:f:f ::1 65535 0\r\n", "ffff:f:f:f:f:f:f:f 65535"),
    CASE("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535"),
    CASE("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n", "192.0.2.1 1"),
    CASE("PROXY UNKNOWN\r\n", "unknown 0"),
    CASE("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 "
         "65535\r\n",
         "unknown 0"),
    CASE("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\n", NULL),
    CASE("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\n\r\n", NULL),
    CASE("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443 \r\n", NULL),
    CASE("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443 1\r\n", NULL),
    CASE("PROXY TCP4 192.168.0.1 192.168.0.11 56324\r\n", NULL),
    CASE("PROXY TCP4 192.168.0.1  192.168.0.11 56324 443\r\n", NULL),
    CASE("PROXY  TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", NULL),
    CASE("PROXY TCP4 192.168.0.1 192.168.0.11 56324 65536\r\n", NULL),
    CASE("PROXY TCP4 192.168.0.1 192.168.0.11 056324 443\r\n", NULL),
    CASE("PROXY TCP4 192.168.0.1 192.168.0.11 +1 443\r\n", NULL),
    CASE("PROXY TCP4 192.168.0.256 192.168.0.11 56324 443\r\n", NULL),
    CASE("PROXY TCP4 192.168.0.1:1 192.168.0.11 56324 443\r\n", NULL),
    CASE("PROXY TCP4 ::1 ::1 56324 443\r\n", NULL),
    CASE("PROXY TCP6 192.168.0.1 192.168.0.11 56324 443\r\n", NULL),
    CASE("PROXY TCP6 192.168.0.1:0 192.168.0.11:0 56324 443\r\n", NULL),
    CASE("PROXY TCP6 [::1] [::1] 56324 443\r\n", NULL),
    CASE("PROXY UDP4 192.168.0.1 192.168.0.11 56324 443\r\n", NULL),
    CASE("PROXY tcp4 192.168.0.1 192.168.0.11 56324 443\r\n", NULL),
    CASE("PROXY \r\n", NULL),
    CASE("PROXY UNKNOWN " TEN TEN TEN TEN TEN TEN TEN TEN TEN "12\r\n", NULL), /* 108 bytes */
    CASE("proxy TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", NULL),
    CASE("GET / HTTP/1.1\r\n\r\n", NULL),
    CASE("\r\n\r\nGET / HTTP/1.1\r\n\r\n", NULL),
    CASE(" PROXY UNKNOWN\r\n", NULL),

    /* section 2.2 */
    CASE(SIGNATURE "\x21\x11\x00\x0c" V4, "192.168.0.1 56324"),
    CASE(SIGNATURE "\x21\x12\x00\x0c" V4, "192.168.0.1 56324"),
    CASE(SIGNATURE "\x21\x11\x00\x10" V4 "\x04\x00\x01\x00", "192.168.0.1 56324"), /* a value: NOOP */
    CASE(SIGNATURE "\x21\x21\x00\x24" V6_A V6_B "\x00\x50\x01\xbb", "2001:db8::1 80"),
    CASE(SIGNATURE "\x21\x21\x00\x24" MAPPED MAPPED "\x00\x50\x01\xbb", "192.0.2.1 80"),
    CASE(SIGNATURE "\x21\x31\x00\xd8" PATH PATH, "unix 0"),
    CASE(SIGNATURE "\x20\x00\x00\x00", "unknown 0"), /* LOCAL, as HAProxy asks for health */
    CASE(SIGNATURE "\x20\x11\x00\x0c" V4, "unknown 0"),
    CASE(SIGNATURE "\x20\xff\x00\x03"
                   "abc",
         "unknown 0"),
    CASE(SIGNATURE "\x21\x00\x00\x00", "unknown 0"),
    CASE(SIGNATURE "\x21\x00\x00\x02zz", "unknown 0"),
    CASE(SIGNATURE "\x21\x10\x00\x0c" V4, "unknown 0"),
    CASE(SIGNATURE "\x21\x11\x00\x0b\xc0\xa8\x00\x01\xc0\xa8\x00\x0b\xdc\x04\x01", NULL), /* too short */
    CASE(SIGNATURE "\x21\x21\x00\x0c" V4, NULL),
    CASE(SIGNATURE "\x21\x31\x00\x0c" V4, NULL),
    CASE(SIGNATURE "\x21\x41\x00\x0c" V4, NULL),
    CASE(SIGNATURE "\x21\x13\x00\x0c" V4, NULL),
    CASE(SIGNATURE "\x22\x11\x00\x0c" V4, NULL),
    CASE(SIGNATURE "\x11\x11\x00\x0c" V4, NULL),
    CASE(SIGNATURE "\x21\x11\x0f\xf1", NULL), /* one byte over the limit */
    CASE(SIGNATURE "\x21\x11\xff\xff", NULL),
    CASE("\r\n\r\n\0\r\nQUIT\r", NULL),
};

static void check(size_t i, int result, const struct mk__proxy_protocol *header, size_t len)
{
    if (result != (cases[i].source ? 0 : -EPROTO))
        fail_msg("case %zu: %d", i, result);
    if (result < 0)
        return;
    assert_int_equal(header->bytes, len);
    assert_source(header, cases[i].source);
}

TEST(every_case_every_way)
{
    struct mk__proxy_protocol header;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_str bytes = cases[i].bytes;
        char behind[512];
        int result = MK_AGAIN;
        check(i, feed(bytes.p, bytes.len, &header), &header, bytes.len);
        for (size_t len = 0; len <= bytes.len && result == MK_AGAIN; len++)
            result = feed(bytes.p, len, &header);
        check(i, result, &header, bytes.len);
        memcpy(behind, bytes.p, bytes.len);
        memcpy(behind + bytes.len, "GET / \r\n", 8);
        check(i, feed(behind, bytes.len + 8, &header), &header, bytes.len);
    }
}

TEST(a_mistake_is_seen_at_once)
{
    static const struct mk_str wrong[] = {MK_STR("G"), MK_STR("PROXX"), MK_STR("\n"), MK_STR("\r\n\r\nQ"),
                                          MK_STR(SIGNATURE "\x31")};
    struct mk__proxy_protocol header;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(feed(wrong[i].p, wrong[i].len - 1, &header), MK_AGAIN);
        assert_int_equal(feed(wrong[i].p, wrong[i].len, &header), -EPROTO);
    }
}

/* A line without an end is rejected at its maximal length; a block with TLVs is accepted up to its limit. */
TEST(limits)
{
    static char bytes[MK__PROXY_PROTOCOL_MAX + 1];
    struct mk__proxy_protocol header;
    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, "PROXY UNKNOWN ", 14);
    assert_int_equal(feed(bytes, MK__PROXY_PROTOCOL_V1_MAX - 1, &header), MK_AGAIN);
    assert_int_equal(feed(bytes, MK__PROXY_PROTOCOL_V1_MAX, &header), -EPROTO);
    memcpy(bytes + MK__PROXY_PROTOCOL_V1_MAX - 2, "\r\n", 2);
    assert_int_equal(feed(bytes, sizeof(bytes), &header), 0);
    assert_int_equal(header.bytes, MK__PROXY_PROTOCOL_V1_MAX);
    memcpy(bytes, SIGNATURE "\x21\x11\x0f\xf0" V4, 28);
    assert_int_equal(feed(bytes, MK__PROXY_PROTOCOL_MAX - 1, &header), MK_AGAIN);
    assert_int_equal(feed(bytes, MK__PROXY_PROTOCOL_MAX, &header), 0);
    assert_int_equal(header.bytes, MK__PROXY_PROTOCOL_MAX);
    assert_source(&header, "192.168.0.1 56324");
}
