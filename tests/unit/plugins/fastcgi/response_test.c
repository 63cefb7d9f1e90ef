// SPDX-License-Identifier: Apache-2.0
/* Responses out of records: what is left for the client, how they end, and heads as those of CGI. */
#include "testing.h"

#include <errno.h>

#include "plugins/fastcgi/fastcgi.h"

static struct fastcgi_response response;
static const struct mk_gateway_conf conf;

static struct mk_gateway_call make_call(bool keeps_conn)
{
    response = (struct fastcgi_response){0};
    return (struct mk_gateway_call){.protocol = &fastcgi_protocol,
                                    .conf = &conf,
                                    .state = &response,
                                    .keeps_conn = keeps_conn};
}

#define OUT "\1\6\0\1\0\5\1\0hello\0"
#define END(status) "\1\3\0\1\0\10\0\0\0\0\0\0" status "\0\0\0"

TEST(ends)
{
    static const struct {
        const char *bytes;
        size_t len;
        int result;
        size_t content;
        bool has_excess, is_kept;
    } rows[] = {
        {OUT, sizeof(OUT) - 1, 0, 5, false, false},
        {OUT OUT, 2 * (sizeof(OUT) - 1), 0, 10, false, false},
        {OUT END("\0"), sizeof(OUT END("\0")) - 1, 1, 5, false, true},
        {END("\0") "x", sizeof(END("\0")), 1, 0, true, false},
        {END("\1"), sizeof(END("\1")) - 1, -EBUSY, 0, false, false},
        {END("\2"), sizeof(END("\2")) - 1, -EBUSY, 0, false, false},
        {END("\3"), sizeof(END("\3")) - 1, -ENOPROTOOPT, 0, false, false},
        {END("\4"), sizeof(END("\4")) - 1, -EINVAL, 0, false, false},
        {"\1\3\0\1\0\7\0\0\0\0\0\0\0\0\0", 15, -EINVAL, 0, false, false},
        {"hello, world", 12, -EINVAL, 0, false, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char bytes[64];
        size_t len = rows[i].len;
        bool has_excess = false;
        struct mk_gateway_call call = make_call(true);
        memcpy(bytes, rows[i].bytes, len);
        assert_int_equal(response_unwrap(&call, bytes, &len, &has_excess), rows[i].result);
        assert_int_equal(has_excess, rows[i].has_excess);
        assert_int_equal(response_keeps_conn(&call), rows[i].is_kept);
        if (rows[i].result >= 0)
            assert_int_equal(len, rows[i].content);
    }
}

TEST(byte_by_byte)
{
    static const char all[] = OUT OUT END("\0");
    struct mk_gateway_call call = make_call(false);
    char out[16];
    size_t n = 0;
    for (size_t i = 0; i + 1 < sizeof(all); i++) {
        char byte = all[i];
        size_t len = 1;
        bool has_excess;
        assert_int_equal(response_unwrap(&call, &byte, &len, &has_excess), i + 2 == sizeof(all));
        if (len)
            out[n++] = byte;
    }
    assert_str_equal(mk_str(out, n), "hellohello");
    assert_false(response_keeps_conn(&call)); /* without KeepAlive */
}

TEST(heads)
{
    static const struct mk_response_limits limits = {.head_bytes_max = 100, .fields_max = 4};
    struct mk_field fields[4];
    struct mk_response_parser p;
    struct mk_gateway_call call = make_call(false);
    mk_response_parser_init(&p, &limits, MK_RESPONSE_TO_OTHER);
    assert_int_equal(response_parse_head(&call, &p, fields, MK_STR("Status: 404 No\r\n")), MK_AGAIN);
    assert_int_equal(response_parse_head(&call, &p, fields, MK_STR("Status: 404 No\r\nX: 1\r\n\r\n")), 0);
    assert_int_equal(p.status, 404);
    assert_int_equal(p.body, MK_RESPONSE_BODY_UNTIL_END);
}

/* Each fault of an application has its sentence. */
TEST(faults)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *text;
    } rows[] = {
        {"\2\6\0\1\0\0\0\0", 8, "it sends a record of another version than 1, or no FastCGI at all"},
        {"\1\6\0\2\0\0\0\0", 8, "it sends a record of another request"},
        {"\1\5\0\1\0\0\0\0", 8, "it sends a record of a type that no application sends"},
        {"\1\3\0\1\0\7\0\0\0\0\0\0\0\0\0", 15, "its FCGI_END_REQUEST is too short"},
        {END("\4"), sizeof(END("\4")) - 1, "its FCGI_END_REQUEST has an unknown status"},
        {END("\3"), sizeof(END("\3")) - 1, "it does not serve requests of responders (FCGI_UNKNOWN_ROLE)"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char bytes[64];
        size_t len = rows[i].len;
        bool has_excess;
        struct mk_gateway_call call = make_call(true);
        memcpy(bytes, rows[i].bytes, len);
        int err = response_unwrap(&call, bytes, &len, &has_excess);
        assert_true(err < 0);
        assert_string_equal(response_describe_fault(&call, err), rows[i].text);
    }
}

TEST(early_ends)
{
    static const char end[] = END("\0");
    char bytes[sizeof(end)];
    size_t len = sizeof(end) - 1;
    bool has_excess;
    struct mk_gateway_call call = make_call(true);
    assert_null(response_describe_fault(&call, -ETIMEDOUT));
    assert_string_equal(response_describe_fault(&call, -EPIPE), "it has closed the connection before FCGI_END_REQUEST");
    memcpy(bytes, end, len);
    assert_int_equal(response_unwrap(&call, bytes, &len, &has_excess), 1);
    assert_string_equal(response_describe_fault(&call, -EPIPE), "its response has ended before its head was complete");
    response.head.head_bytes = 10;
    assert_string_equal(response_describe_fault(&call, -EPIPE),
                        "its response has ended before the bytes of its Content-Length");
    call.protocol = &scgi_protocol;
    assert_string_equal(response_describe_fault(&call, -EPIPE),
                        "it has closed the connection before the bytes of its Content-Length");
    response.head.head_bytes = 0;
    assert_string_equal(response_describe_fault(&call, -EPIPE),
                        "it has closed the connection before the head of its response was complete");
}
