// SPDX-License-Identifier: Apache-2.0
/* Output out of records: whole and byte by byte, error output, how responses end, and the codec of mk_http_client. */
#include "testing.h"

#include <monkey/kit/fastcgi.h>

#include <errno.h>

#define OUT "\1\6\0\1\0\5\1\0hello\0"
#define OOPS "\1\7\0\1\0\4\0\0oops"
#define END(status) "\1\3\0\1\0\10\0\0\0\0\0\0" status "\0\0\0"

/* What was decoded. */
struct outcome {
    char out[64], err[64];
    size_t out_len, err_len, left;
    int result;
};

static void add_error_output(struct mk_str bytes, void *ctx)
{
    struct outcome *o = ctx;
    memcpy(o->err + o->err_len, bytes.p, bytes.len);
    o->err_len += bytes.len;
}

/* Decodes pieces of `size` bytes, up to the first result that is final. */
static struct outcome decode(struct mk_str in, size_t size)
{
    struct mk_fastcgi_decoder d = {0};
    struct outcome o = {0};
    char piece[256];
    for (size_t at = 0; at < in.len && o.result == 0; at += size) {
        size_t len = in.len - at < size ? in.len - at : size;
        memcpy(piece, in.p + at, len);
        o.result = mk_fastcgi_decode(&d, piece, &len, &o.left, add_error_output, &o);
        if (o.result < 0)
            break;
        memcpy(o.out + o.out_len, piece, len);
        o.out_len += len;
    }
    return o;
}

static const struct {
    struct mk_str in;
    int result;
    const char *out, *err;
    size_t left; /* if it comes at once */
} rows[] = {
    {MK_STR_INIT(OUT), 0, "hello", "", 0},
    {MK_STR_INIT(OUT OOPS OUT END("\0")), 1, "hellohello", "oops", 0},
    {MK_STR_INIT(OUT "\1\6\0\1\0\0\0\0" END("\0") "xy"), 1, "hello", "", 2},
    {MK_STR_INIT(END("\1")), -EBUSY, "", "", 0},
    {MK_STR_INIT(OOPS END("\2")), -EBUSY, "", "oops", 0},
    {MK_STR_INIT(END("\3")), -ENOPROTOOPT, "", "", 0},
    {MK_STR_INIT(END("\4")), -EINVAL, "", "", 0},
    {MK_STR_INIT(END("\377")), -EINVAL, "", "", 0},
    {MK_STR_INIT("\1\3\0\1\0\7\0\0\0\0\0\0\0\0\0"), -EINVAL, "", "", 0},
    {MK_STR_INIT("HTTP/1.1 200 OK\r\n"), -EINVAL, "", "", 0},
};

TEST(any_pieces)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t size = 1; size <= rows[i].in.len; size++) {
            struct outcome o = decode(rows[i].in, size);
            assert_int_equal(o.result, rows[i].result);
            assert_str_equal(mk_str(o.out, o.out_len), rows[i].out);
            assert_str_equal(mk_str(o.err, o.err_len), rows[i].err);
            if (size == rows[i].in.len && o.result >= 0)
                assert_int_equal(o.left, rows[i].left);
        }
}

/* A check must not take an application that is overloaded for a failure of this process. */
TEST(codec)
{
    static const struct mk_response_limits limits = {.head_bytes_max = 100, .fields_max = 4};
    struct mk_fastcgi_response response = {0};
    struct mk_response_parser parser;
    struct mk_field fields[4];
    char bytes[] = OOPS OUT END("\0"), overloaded[] = END("\2");
    size_t len = sizeof(bytes) - 1;
    assert_int_equal(mk_fastcgi_codec.unwrap(&response, bytes, &len), 1);
    assert_str_equal(mk_str(bytes, len), "hello");
    mk_response_parser_init(&parser, &limits, MK_RESPONSE_TO_OTHER);
    assert_int_equal(mk_fastcgi_codec.parse_head(&response, &parser, fields, MK_STR("Status: 503\n\n")), 0);
    assert_int_equal(parser.status, 503);
    response = (struct mk_fastcgi_response){0};
    len = sizeof(overloaded) - 1;
    assert_int_equal(mk_fastcgi_codec.unwrap(&response, overloaded, &len), -EUSERS);
}
