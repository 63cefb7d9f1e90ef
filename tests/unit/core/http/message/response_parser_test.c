// SPDX-License-Identifier: Apache-2.0
/*
 * The parser of responses: each case whole and in pieces of every size, with a head that moves between two calls, and
 * flush against a page that cannot be read.
 */
#include "testing.h"

#include <monkey/base/response_parser.h>

#include <errno.h>

enum { FIELDS_MAX = 8 };

static const struct mk_response_limits limits = {
    .head_bytes_max = 256,
    .fields_max = FIELDS_MAX,
    .chunked = {.line_bytes_max = 64, .ext_bytes_total_max = 64, .trailer_bytes_max = 64, .trailer_count_max = 4},
};

struct outcome {
    struct mk_response_parser parser;
    struct mk_field fields[FIELDS_MAX];
    unsigned interim;
    int err;
    size_t used;
    char body[128], trailers[64];
    size_t body_len, trailers_len;
};

/* Parses the heads; each call gets a copy of what has come so far. Returns 0, MK_AGAIN or an error. */
static int parse_heads(struct outcome *o, const char *in, size_t len, size_t piece)
{
    size_t come = 0;
    int r = MK_AGAIN;
    while (r == MK_AGAIN && o->used + come < len) {
        size_t left = len - o->used - come;
        come += left < piece ? left : piece;
        char *copy = mk_test_guarded(in + o->used, come);
        r = mk_response_parser_head(&o->parser, o->fields, mk_str(copy, come));
        mk_test_unguard(copy, come);
        if (r != 0)
            continue;
        o->used += o->parser.head_bytes;
        come = 0;
        if (o->parser.status >= 200 || o->parser.status == 101)
            return 0;
        o->interim++;
        mk_response_parser_next(&o->parser);
        r = MK_AGAIN;
    }
    return r;
}

static void parse_body(struct outcome *o, const char *in, size_t len, size_t piece)
{
    struct mk_buf trailers;
    mk_buf_init_fixed(&trailers, o->trailers, sizeof(o->trailers));
    o->parser.chunked.trailers = &trailers;
    while (o->used < len && !o->parser.is_done && o->parser.status != 101 && o->err == 0) {
        size_t left = len - o->used;
        struct mk_str body;
        ssize_t n = mk_response_parser_body(&o->parser, in + o->used, left < piece ? left : piece, &body);
        if (n < 0) {
            o->err = (int)n;
            break;
        }
        assert_in_range(n, 1, left);
        if (body.len)
            memcpy(o->body + o->body_len, body.p, body.len);
        o->body_len += body.len;
        o->used += (size_t)n;
    }
    o->trailers_len = trailers.len;
}

static struct outcome parse(struct mk_str in, size_t piece, enum mk_response_to to)
{
    struct outcome o = {0};
    mk_response_parser_init(&o.parser, &limits, to);
    o.err = parse_heads(&o, in.p, in.len, piece);
    if (o.err == 0)
        parse_body(&o, in.p, in.len, piece);
    return o;
}

struct row {
    struct mk_str in;
    int status;
    const char *body;
    bool closes, open_end; /* `open_end`: lasts until the connection ends */
    size_t rest;           /* bytes of `in` that belong to no response */
    unsigned interim;
    enum mk_response_to to;
};

#define IN(text) \
    { \
        text, sizeof(text) - 1 \
    }

static const struct row rows[] = {
    {IN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), 200, "hello", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP"), 200, "hello", .rest = 4},
    {IN("HTTP/1.1 200\r\ncontent-length:5\r\n\r\nhello"), 200, "hello", .rest = 0},
    {IN("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"), 200, "", .rest = 0},
    {IN("HTTP/1.1 200 Sch\xc3\xb6n\tja\r\nContent-Length: 0\r\n\r\n"), 200, "", .rest = 0},
    {IN("HTTP/1.1 599 X\r\nContent-Length: 0\r\n\r\n"), 599, "", .rest = 0},
    {IN("HTTP/1.9 200 OK\r\nContent-Length: 0\r\n\r\n"), 200, "", .rest = 0},
    {IN("HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n"), 600, "", .rest = 0},
    {IN("HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n"), 999, "", .rest = 0},
    {IN("HTTP/1.1 204 No Content\r\n\r\nX"), 204, "", .rest = 1},
    {IN("HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc"), 204, "", .rest = 3, .closes = true},
    {IN("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 204, "", .rest = 5, .closes = true},
    {IN("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"), 204, "", .rest = 0},
    {IN("HTTP/1.1 304 Not Modified\r\n\r\n"), 304, "", .rest = 0},
    {IN("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), 304, "", .closes = true},
    {IN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHT"), 200, "", .rest = 2, .closes = true,
     .to = MK_RESPONSE_TO_HEAD},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), 200, "", .closes = true, .to = MK_RESPONSE_TO_HEAD},
    {IN("HTTP/1.1 200 OK\r\n\r\nHT"), 200, "", .rest = 2, .to = MK_RESPONSE_TO_HEAD},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nHT"), 200, "", .rest = 2, .to = MK_RESPONSE_TO_CONNECT},
    {IN("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"), 403, "no", .to = MK_RESPONSE_TO_CONNECT},
    {IN("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"), 404, "no", .closes = true},
    {IN("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n"), 200, "", .closes = true},
    {IN("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), 200, "",
     .closes = true},
    {IN("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na"), 200, "a", .closes = true},
    {IN("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\na"), 200, "a", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\n\r\nall of it"), 200, "all of it", .closes = true, .open_end = true},
    {IN("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nall"), 200, "all", .closes = true, .open_end = true},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\nHT"), 200, "hello!",
     .rest = 2},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\nA: b\r\n\r\n"), 200, "", .rest = 0},
    {IN("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"), 200, "a", .interim = 1},
    {IN("HTTP/1.1 100 C\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"), 200, "a",
     .interim = 1, .closes = true},
    {IN("HTTP/1.1 100 C\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"), 200, "a",
     .interim = 1},
    {IN("HTTP/1.1 103 H\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"), 200, "a",
     .interim = 1, .closes = true},
    {IN("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 204 N\r\n\r\n"), 204, "",
     .interim = 2},
    {IN("HTTP/1.1 101 S\r\nContent-Length: 0\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n\x81\x01"), 101, "", .rest = 2,
     .open_end = true},
    {IN("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x81\x01"), 101, "", .rest = 2,
     .open_end = true},
};

/* A fault from which a recipient recovers; what is read is the same as without it. */
static const struct row recovered[] = {
    {IN("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"), 200, "hello", .rest = 0},
    {IN("HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello"), 200, "hello", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello"), 200, "hello", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\nhello"), 200, "hello", .rest = 0},
    {IN("HTTP/1.1 200\nA: b\nContent-Length: 5\nC: d\n\nhello"), 200, "hello", .rest = 0},
    {IN("HTTP/1.1 103 H\nA: b\n\nHTTP/1.1 200 OK\nContent-Length: 1\n\na"), 200, "a", .interim = 1},
    {IN("HTTP/1.1 200 OK\r\nName : a\r\nContent-Length: 1\r\n\r\na"), 200, "a", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nName \t : a\r\nContent-Length \t: 1\r\n\r\na"), 200, "a", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"), 200, "a", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nConnection : close\r\nContent-Length: 1\r\n\r\na"), 200, "a", .closes = true},
    {IN("HTTP/1.1 200 OK\r\nUpgrade:\r\nContent-Length: 1\r\n\r\na"), 200, "a", .rest = 0},
    {IN("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1 \t \r\na\r\n0  \r\n\r\n"), 200, "a", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;\r\na\r\n0 ; \r\n\r\n"), 200, "a", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;b \r\na\r\n0;b=c \r\n\r\n"), 200, "a", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a(:=/=;;\r\na\r\n0;/\r\n\r\n"), 200, "a", .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;=a b\"\r\na\r\n0;\\ \"a;\\\r\n\r\n"), 200, "a",
     .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=\"b\\\r\na\r\n0;a==\"\"x\r\n\r\n"), 200, "a",
     .rest = 0},
    {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA \t: b\r\n\r\n"), 200, "", .rest = 0},
};

static void check_row(const struct row *row, const struct outcome *o)
{
    if (o->err != 0 || o->parser.status != row->status)
        fail_msg("%.*s: %d, status %d", MK_STR_ARG(row->in), o->err, o->parser.status);
    assert_int_equal(o->parser.is_done, !row->open_end);
    assert_int_equal(mk_response_parser_keeps_conn(&o->parser), !row->closes);
    assert_int_equal(o->used, row->in.len - row->rest);
    assert_int_equal(o->interim, row->interim);
    assert_str_equal(mk_str(o->body, o->body_len), row->body);
}

static void check_rows(const struct row *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t piece = 1; piece <= table[i].in.len; piece++) {
            struct outcome o = parse(table[i].in, piece, table[i].to);
            check_row(&table[i], &o);
        }
    }
}

TEST(rows)
{
    check_rows(rows, COUNT(rows));
}

TEST(recovers)
{
    check_rows(recovered, COUNT(recovered));
}

static const struct mk_str malformed[] = {
    /* the status line */
    IN("HTTP/2 200 OK\r\n\r\n"),
    IN("HTTP/2.0 200 OK\r\n\r\n"),
    IN("http/1.1 200 OK\r\n\r\n"),
    IN("HTTP/1.1 2000\r\n\r\n"),
    IN("HTTP/1.1 20\r\n\r\n"),
    IN("HTTP/1.1 20x OK\r\n\r\n"),
    IN("HTTP/1.1  200\r\n\r\n"),
    IN("HTTP/1.1\t200 OK\r\n\r\n"),
    IN("HTTP/1.1 000 X\r\n\r\n"),
    IN("HTTP/1.1 099 X\r\n\r\n"),
    IN("HTTP/1.1 1000 X\r\n\r\n"),
    IN("HTTP/1.1 0200 X\r\n\r\n"),
    IN("HTTP/1.1 -10 X\r\n\r\n"),
    IN("HTTP/1.1 200\tOK\r\n\r\n"),
    IN("HTTP/1.1 200 O\0K\r\n\r\n"),
    IN("HTTP/1.1 200 O\rK\r\n\r\n"),
    IN("HTTP/1.1 200 \x7f\r\n\r\n"),
    IN("hello\r\n"),
    IN("\r\nHTTP/1.1 200 OK\r\n\r\n"),
    IN("\nHTTP/1.1 200 OK\r\n\r\n"),
    IN(" HTTP/1.1 200 OK\r\n\r\n"),
    /* fields */
    IN("HTTP/1.1 200 OK\r\n: no name\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nA: b\r\n folded: c\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\n first: c\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nA: \x01\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nA\0: b\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\n\xc3\xa4: b\r\n\r\n"),
    /* framing */
    IN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
    IN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
    IN("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello"),
    IN("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello"),
    IN("HTTP/1.1 200 OK\r\nContent-Length: 5,5\r\n\r\nhello"),
    IN("HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello"),
    IN("HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\nhello"),
    IN("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello"),
    IN("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n"),
    IN("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
    IN("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \nhello\r\n0\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a\nhello\r\n0\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a\rhello\r\n0\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a\0\r\nhello\r\n0\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 x\r\nhello\r\n0\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n0\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA b: c\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nContent-Length : 5\r\nContent-Length: 6\r\n\r\nhello"),
    IN("HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\r\nA: b\r\n\r\n"),
    IN("HTTP/1.1 200 OK\nA: b\n c\n\n"),
    IN("HTTP/1.1 200 OK\r\n : b\r\n\r\n"),
    IN("HTTP/1.1 200 OK\r\nA b : c\r\n\r\n"),
    IN("HTTP/1.1 100 Continue\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
};

TEST(refuses)
{
    for (size_t i = 0; i < COUNT(malformed); i++)
        for (size_t piece = 1; piece <= malformed[i].len; piece++)
            if (parse(malformed[i], piece, MK_RESPONSE_TO_OTHER).err != -EINVAL)
                fail_msg("%.*s is accepted", MK_STR_ARG(malformed[i]));
}

/* What a log says of a malformed response, whole and in pieces. */
TEST(faults)
{
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define X30 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    static const struct {
        struct mk_str in;
        const char *text;
    } table[] = {
        {IN("HTTP/2 200\r\n"), "line 1 of its head, \"HTTP/2 200\": it is no status line of HTTP/1"},
        {IN("HTTP/1.1 200 OK\r\nA: b\r\nX Y: a\"\r\n"),
         "line 3 of its head, \"X Y: a\"\": its name is empty, or has a byte that no name has"},
        {IN("HTTP/1.1 200 OK\nA: b\0\x1b\xe4\n"), "line 2 of its head, \"A: b%00%1B%E4\": it has a control byte"},
        {IN("HTTP/1.1 200 OK\r\nA: b\r\n\tc\r\n"),
         "line 3 of its head, \"%09c\": it is folded, or begins with a blank"},
        {IN("HTTP/1.1 200 OK\r\n" X30 X30 X30 "\r\n"), "line 2 of its head, \"" X30 X30 "...\": it has no colon"},
        {IN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA:b\r\nContent-Length: 5\r\n\r\n"),
         "line 4 of its head, \"Content-Length: 5\": it has a Content-Length before"},
        {IN("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
         "line 2 of its head, \"Content-Length: x\": its Content-Length is no number"},
        {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
         "line 2 of its head, \"Transfer-Encoding: chunked\": it has a Content-Length, too"},
        {IN("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
         "line 2 of its head, \"Transfer-Encoding: chunked\": HTTP/1.0 has no Transfer-Encoding"},
        {IN("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
         "line 2 of its head, \"Transfer-Encoding: gzip\": its Transfer-Encoding is not chunked alone"},
        {IN(CHUNKED "x"), "the size of a chunk is malformed"},
        {IN(CHUNKED "11111111111111111"), "the size of a chunk is malformed"},
        {IN(CHUNKED "1;\1"), "an extension of a chunk is malformed"},
        {IN(CHUNKED "1\rx"), "a line with the size of a chunk has a CR without LF"},
        {IN(CHUNKED "1\r\n!X"), "a chunk has no CRLF at its end"},
        {IN(CHUNKED "0\r\nA\r"), "a line of its trailer section is malformed"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        for (size_t piece = 1; piece <= table[i].in.len; piece++) {
            char text[200];
            struct mk_buf out;
            struct outcome o = parse(table[i].in, piece, MK_RESPONSE_TO_OTHER);
            mk_buf_init_fixed(&out, text, sizeof(text));
            assert_int_equal(o.err, -EINVAL);
            mk_response_fault_describe(&o.parser.fault, table[i].in.p, &out);
            assert_str_equal(mk_buf_str(&out), table[i].text);
        }
    }
}

TEST(fields)
{
    const struct mk_str in = MK_STR("HTTP/1.1 200 OK\r\nContent-Type:text/plain \r\nX-A: \tb  c\r\nEmpty:\r\n\r\n");
    for (size_t piece = 1; piece <= in.len; piece++) {
        struct outcome o = parse(in, piece, MK_RESPONSE_TO_HEAD);
        assert_int_equal(o.err, 0);
        assert_int_equal(o.parser.n_fields, 3);
        assert_int_equal(o.fields[0].id, MK_HEADER_CONTENT_TYPE);
        assert_int_equal(o.fields[1].id, MK_HEADER_OTHER);
        assert_str_equal(mk_span_str(in.p, o.fields[0].value), "text/plain");
        assert_str_equal(mk_span_str(in.p, o.fields[1].name), "X-A");
        assert_str_equal(mk_span_str(in.p, o.fields[1].value), "b  c");
        assert_int_equal(o.fields[2].value.len, 0);
    }
}

/* A head with a field of `n` bytes, and so 29 + n in all. */
static int parse_long(size_t n, size_t piece)
{
    char in[512] = "HTTP/1.1 204 N\r\nX: ";
    size_t len = strlen(in);
    memset(in + len, 'x', n);
    memcpy(in + len + n, "\r\n\r\n", 4);
    return parse(mk_str(in, len + n + 4), piece, MK_RESPONSE_TO_OTHER).err;
}

static int parse_many(unsigned fields)
{
    char storage[512];
    struct mk_buf in;
    mk_buf_init_fixed(&in, storage, sizeof(storage));
    mk_buf_adds(&in, MK_STR("HTTP/1.1 204 N\r\n"));
    for (unsigned i = 0; i < fields; i++)
        mk_buf_adds(&in, MK_STR("X: y\r\n"));
    mk_buf_adds(&in, MK_STR("\r\n"));
    assert_int_equal(in.err, 0);
    return parse(mk_buf_str(&in), 3, MK_RESPONSE_TO_OTHER).err;
}

TEST(limits)
{
    for (size_t piece = 1; piece < 400; piece = piece * 2 + 1) {
        assert_int_equal(parse_long(256 - 23, piece), 0);
        assert_int_equal(parse_long(256 - 22, piece), -EMSGSIZE);
        assert_int_equal(parse_long(400, piece), -EMSGSIZE);
    }
    assert_int_equal(parse_many(FIELDS_MAX), 0);
    assert_int_equal(parse_many(FIELDS_MAX + 1), -EMSGSIZE);
    char line[300];
    memset(line, 'x', sizeof(line));
    assert_int_equal(parse(mk_str(line, sizeof(line)), 7, MK_RESPONSE_TO_OTHER).err, -EMSGSIZE);
}

TEST(trailers)
{
    const struct mk_str in = MK_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                    "3\r\nabc\r\n0\r\nA \t: b : c \r\nD:\r\n\r\n");
    for (size_t piece = 1; piece <= in.len; piece++) {
        struct outcome o = parse(in, piece, MK_RESPONSE_TO_OTHER);
        struct mk_str rest = mk_str(o.trailers, o.trailers_len), name, value;
        assert_true(o.parser.is_done);
        assert_true(mk_chunked_next_trailer(&rest, &name, &value));
        assert_str_equal(name, "A");
        assert_str_equal(value, "b : c");
        assert_true(mk_chunked_next_trailer(&rest, &name, &value));
        assert_str_equal(name, "D");
        assert_int_equal(value.len, 0);
        assert_false(mk_chunked_next_trailer(&rest, &name, &value));
    }
}

/* Parses a head that is complete. */
static struct mk_response_parser parse_head(const char *head)
{
    struct mk_response_parser p;
    struct mk_field fields[FIELDS_MAX];
    mk_response_parser_init(&p, &limits, MK_RESPONSE_TO_OTHER);
    assert_int_equal(mk_response_parser_head(&p, fields, mk_str_c(head)), 0);
    return p;
}

TEST(skips)
{
    struct mk_str body;
    struct mk_response_parser p = parse_head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert_int_equal(mk_response_parser_skippable(&p), 5);
    mk_response_parser_skip(&p, 2);
    assert_int_equal(mk_response_parser_skippable(&p), 3);
    mk_response_parser_skip(&p, 3);
    assert_true(p.is_done);

    p = parse_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_int_equal(mk_response_parser_skippable(&p), 0);
    assert_int_equal(mk_response_parser_body(&p, "5\r\na", 4, &body), 4);
    assert_int_equal(mk_response_parser_skippable(&p), 4);
    mk_response_parser_skip(&p, 4);
    assert_int_equal(mk_response_parser_skippable(&p), 0);
    assert_int_equal(mk_response_parser_body(&p, "\r\n0\r\n\r\n", 7, &body), 7);
    assert_true(p.is_done);

    p = parse_head("HTTP/1.1 200 OK\r\n\r\n");
    assert_true(mk_response_parser_skippable(&p) == UINT64_MAX);
    mk_response_parser_skip(&p, 100000);
    assert_int_equal(mk_response_parser_end(&p), 0);
    assert_int_equal(mk_response_parser_skippable(&p), 0);
}

TEST(end)
{
    struct mk_response_parser p;
    struct mk_field fields[FIELDS_MAX];
    mk_response_parser_init(&p, &limits, MK_RESPONSE_TO_OTHER);
    assert_int_equal(mk_response_parser_end(&p), -EPIPE);
    assert_int_equal(mk_response_parser_head(&p, fields, MK_STR("HTTP/1.1 200 OK\r\n")), MK_AGAIN);
    assert_int_equal(mk_response_parser_end(&p), -EPIPE);
    p = parse_head("HTTP/1.1 200 OK\r\n\r\n");
    assert_int_equal(mk_response_parser_end(&p), 0);
    assert_true(p.is_done);
    p = parse_head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert_int_equal(mk_response_parser_end(&p), -EPIPE);
    p = parse_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_int_equal(mk_response_parser_end(&p), -EPIPE);
    p = parse_head("HTTP/1.1 103 Early Hints\r\n\r\n");
    assert_int_equal(mk_response_parser_end(&p), -EPIPE);
    p = parse_head("HTTP/1.1 204 No Content\r\n\r\n");
    assert_int_equal(mk_response_parser_end(&p), 0);
}
