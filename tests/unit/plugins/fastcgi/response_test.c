// SPDX-License-Identifier: Apache-2.0
/* Responses out of records: what is left for the client, how they end, and heads as those of CGI. */
#include "testing.h"

#include <errno.h>

#include "plugins/fastcgi/protocol.h"
#include "plugins/fastcgi/response.h"

static struct fastcgi_response response;
static const struct mk_gateway_conf kept = {.keep_alive = 1}, closed;

static struct mk_gateway_call make_call(const struct mk_gateway_conf *conf)
{
    response = (struct fastcgi_response){0};
    return (struct mk_gateway_call){.protocol = &fastcgi_protocol, .conf = conf, .state = &response};
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
        struct mk_gateway_call call = make_call(&kept);
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
    struct mk_gateway_call call = make_call(&closed);
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

static int parse(const char *head, enum mk_response_to to, struct mk_response_parser *p)
{
    static const struct mk_response_limits limits = {.head_bytes_max = 100, .fields_max = 4};
    static struct mk_field fields[4];
    struct mk_gateway_call call = make_call(&closed);
    mk_response_parser_init(p, &limits, to);
    return response_parse_head(&call, p, fields, mk_str_c(head));
}

TEST(heads)
{
    static const struct {
        const char *head;
        enum mk_response_to to;
        int result;
        unsigned status;
        enum mk_response_body body;
        bool is_done;
    } rows[] = {
        {"X: 1\n\n", MK_RESPONSE_TO_OTHER, 0, 200, MK_RESPONSE_BODY_UNTIL_END, false},
        {"Status: 404 No\r\nX: 1\r\n\r\n", MK_RESPONSE_TO_OTHER, 0, 404, MK_RESPONSE_BODY_UNTIL_END, false},
        {"Content-Length: 5\n\n", MK_RESPONSE_TO_OTHER, 0, 200, MK_RESPONSE_BODY_LENGTH, false},
        {"Content-Length: 0\n\n", MK_RESPONSE_TO_OTHER, 0, 200, MK_RESPONSE_BODY_LENGTH, true},
        {"Content-Length: 5\n\n", MK_RESPONSE_TO_HEAD, 0, 200, MK_RESPONSE_BODY_NONE, true},
        {"Status: 304\n\n", MK_RESPONSE_TO_OTHER, 0, 304, MK_RESPONSE_BODY_NONE, true},
        {"Location: /x\n\n", MK_RESPONSE_TO_OTHER, 0, 302, MK_RESPONSE_BODY_UNTIL_END, false},
        {"X: 1\n", MK_RESPONSE_TO_OTHER, MK_AGAIN, 0, 0, false},
        {"HTTP/1.1 200 OK\n\n", MK_RESPONSE_TO_OTHER, -EINVAL, 0, 0, false},
        {"Status: 100\n\n", MK_RESPONSE_TO_OTHER, -EINVAL, 0, 0, false},
        {"A: 1\nB: 1\nC: 1\nD: 1\nE: 1\n\n", MK_RESPONSE_TO_OTHER, -EMSGSIZE, 0, 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_response_parser p;
        assert_int_equal(parse(rows[i].head, rows[i].to, &p), rows[i].result);
        if (rows[i].result != 0)
            continue;
        assert_int_equal(p.status, rows[i].status);
        assert_int_equal(p.body, rows[i].body);
        assert_int_equal(p.is_done, rows[i].is_done);
        assert_int_equal(p.head_bytes, strlen(rows[i].head));
    }
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
        struct mk_gateway_call call = make_call(&kept);
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
    struct mk_gateway_call call = make_call(&kept);
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
