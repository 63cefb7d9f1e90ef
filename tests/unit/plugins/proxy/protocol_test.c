// SPDX-License-Identifier: Apache-2.0
/* Headers of the PROXY protocol, of both versions. */
#include "testing.h"

#include "plugins/proxy/proxy.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define ROW(version, client, server, text) \
    { \
        version, client, server, \
        { \
            text, sizeof(text) - 1 \
        } \
    }

/* An address with a port; "": unknown. */
static struct mk_address parse(const char *text)
{
    struct mk_address address = {0};
    if (*text)
        assert_int_equal(mk_address_parse(mk_str_c(text), &address), 0);
    return address;
}

TEST(writes)
{
    static const struct {
        enum proxy_send_proxy version;
        const char *client, *server;
        struct mk_str text;
    } rows[] = {
        ROW(PROXY_SEND_PROXY_V1, "192.0.2.1:1", "192.0.2.2:443", "PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n"),
        ROW(PROXY_SEND_PROXY_V1, "[2001:db8::1]:65535", "[::1]:80", "PROXY TCP6 2001:db8::1 ::1 65535 80\r\n"),
        ROW(PROXY_SEND_PROXY_V1, "", "192.0.2.2:443", "PROXY UNKNOWN\r\n"),
        ROW(PROXY_SEND_PROXY_V1, "192.0.2.1:1", "", "PROXY TCP4 192.0.2.1 0.0.0.0 1 0\r\n"),
        ROW(PROXY_SEND_PROXY_V2, "192.0.2.1:258", "192.0.2.2:443",
            SIGNATURE "\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\1\2\1\xbb"),
        ROW(PROXY_SEND_PROXY_V2, "[2001:db8::1]:1", "192.0.2.2:443",
            SIGNATURE "\x21\x21\0\x24\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
                      "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\2\0\1\1\xbb"),
        ROW(PROXY_SEND_PROXY_V2, "", "192.0.2.2:443", SIGNATURE "\x21\0\0\0"),
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char storage[PROXY_HEADER_BYTES_MAX];
        struct mk_buf out;
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        proxy_header_write(&out, rows[i].version, parse(rows[i].client), parse(rows[i].server));
        assert_int_equal(out.err, 0);
        assert_int_equal(out.len, rows[i].text.len);
        assert_memory_equal(out.data, rows[i].text.p, out.len);
    }
}

TEST(longest_header_fits)
{
    const char *longest = "[1111:2222:3333:4444:5555:6666:7777:8888]:65535";
    char storage[PROXY_HEADER_BYTES_MAX];
    struct mk_buf out;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    proxy_header_write(&out, PROXY_SEND_PROXY_V1, parse(longest), parse(longest));
    assert_int_equal(out.err, 0);
}
