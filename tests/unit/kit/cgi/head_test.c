// SPDX-License-Identifier: Apache-2.0
/*
 * The head of a script's response: each case whole and in pieces of every size, with a head that moves between two
 * calls, and flush against a page that cannot be read.
 */
#include "testing.h"

#include <monkey/kit/cgi.h>

#include <errno.h>

enum { FIELDS_MAX = 4 };

static const struct mk_response_limits limits = {.head_bytes_max = 200, .fields_max = FIELDS_MAX};

struct outcome {
    struct mk_cgi_head head;
    struct mk_field fields[FIELDS_MAX];
    int err;
};

/* Each call gets a copy of what has come so far. */
static struct outcome parse(struct mk_str in, size_t piece)
{
    struct outcome o = {.err = MK_AGAIN};
    mk_cgi_head_init(&o.head, &limits);
    for (size_t come = 0; come < in.len && o.err == MK_AGAIN;) {
        come += in.len - come < piece ? in.len - come : piece;
        char *copy = mk_test_guarded(in.p, come);
        o.err = mk_cgi_head_parse(&o.head, o.fields, mk_str(copy, come));
        mk_test_unguard(copy, come);
    }
    return o;
}

#define IN(text) MK_STR_INIT(text)

struct row {
    struct mk_str in;
    unsigned status, fields;
    size_t body;
    const char *location, *local;
    uint64_t length;
};

static const struct row rows[] = {
    {IN("Content-Type: text/plain\n\nhello"), .status = 200, .fields = 1, .body = 5},
    {IN("Content-Type: text/plain\r\n\r\nhello"), .status = 200, .fields = 1, .body = 5},
    {IN("content-type:text/plain\r\nA:\n\r\n\n"), .status = 200, .fields = 2, .body = 1},
    {IN("Status: 404 Not Found\n\n"), .status = 404, .fields = 1},
    {IN("Status: 404\nContent-Length: 5\n\nhello"), .status = 404, .fields = 2, .body = 5, .length = 5},
    {IN("status:\t599 \xc3\xa4\n\n"), .status = 599, .fields = 1},
    {IN("Location: /a?b\n\n"), .status = 302, .fields = 1, .location = "/a?b", .local = "/a?b"},
    {IN("Location: /\n\n"), .status = 302, .fields = 1, .location = "/", .local = "/"},
    {IN("Location: //other/a\n\n"), .status = 302, .fields = 1, .location = "//other/a"},
    {IN("Location: http://a/\n\n"), .status = 302, .fields = 1, .location = "http://a/"},
    {IN("Location: /a\nStatus: 303 See\n\n"), .status = 303, .fields = 2, .location = "/a"},
    {IN("Status: 301\nLocation: /a\n\n"), .status = 301, .fields = 2, .location = "/a"},
    {IN("HTTP: yes\n\n"), .status = 200, .fields = 1},
    {IN("A: b: c\nB:\t x \t\n\n"), .status = 200, .fields = 2},
    {IN("Name : a\nStatus\t: 404\r\n\n"), .status = 404, .fields = 2},
    {IN("Status: 600\n\n"), .status = 600, .fields = 1},
};

TEST(heads)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *row = &rows[i];
        for (size_t piece = 1; piece <= row->in.len; piece++) {
            struct outcome o = parse(row->in, piece);
            if (o.err != 0 || o.head.status != row->status)
                fail_msg("%.*s: %d, status %d", MK_STR_ARG(row->in), o.err, o.head.status);
            assert_int_equal(o.head.n_fields, row->fields);
            assert_int_equal(row->in.len - o.head.head_bytes, row->body);
            assert_int_equal(o.head.length, row->length);
            assert_str_equal(mk_span_str(row->in.p, o.head.location), row->location ? row->location : "");
            struct mk_str local = mk_cgi_find_local_redirect(&o.head, row->in);
            assert_str_equal(local, row->local ? row->local : "");
        }
    }
}

static const struct {
    struct mk_str in;
    const char *text; /* a part of what is said */
} refused[] = {
    {IN("\n"), "does not begin with header fields"},
    {IN("\r\nContent-Type: a\n\n"), "does not begin with header fields"},
    {IN("<html>\n"), "does not begin with header fields"},
    {IN("no colon\n"), "does not begin with header fields"},
    {IN(": no name\n"), "does not begin with header fields"},
    {IN(" Name: a\n"), "does not begin with header fields"},
    {IN("A: b\n folded: c\n"), "line 2 of its head, \" folded: c\": it is folded"},
    {IN("A: b\n\tfolded\n"), "it is folded"},
    {IN("A: b\0c\n"), "does not begin with header fields"},
    {IN("A\0: b\n"), "does not begin with header fields"},
    {IN("A: b\rc\n"), "does not begin with header fields"},
    {IN("A: b\r\r\n"), "does not begin with header fields"},
    {IN("A: \x1b[1m\n"), "does not begin with header fields"},
    {IN("A: \x7f\n"), "does not begin with header fields"},
    {IN("\xc3\xa4: b\n"), "does not begin with header fields"},
    {IN("A\"B: b\n"), "does not begin with header fields"},
    {IN("Status: 100 Continue\n\n"), "a Status is from"},
    {IN("Status: 1000\n\n"), "a Status is"},
    {IN("Status: 20\n\n"), "a Status is"},
    {IN("Status: 2000\n\n"), "a Status is"},
    {IN("Status: OK\n\n"), "a Status is"},
    {IN("Status: -20\n\n"), "a Status is"},
    {IN("Status:\n\n"), "a Status is"},
    {IN("Status: 200\nstatus: 200\n\n"), "it has a Status before"},
    {IN("Location:\n\n"), "its Location is empty"},
    {IN("Location: /a\nLocation: /a\n\n"), "it has a Location before"},
    {IN("Content-Type: a\nContent-Type: a\n\n"), "it has a Content-Type before"},
    {IN("Content-Length: 5\nContent-Length: 5\n\n"), "it has a Content-Length before"},
    {IN("Content-Length: 5, 5\n\n"), "its Content-Length is no number"},
    {IN("Content-Length: +5\n\n"), "its Content-Length is no number"},
    {IN("Content-Length:\n\n"), "its Content-Length is no number"},
    {IN("Content-Length: 9223372036854775808\n\n"), "its Content-Length is no number"},
    {IN("Transfer-Encoding: chunked\n\n"), "Transfer-Encoding is the server's"},
    {IN("HTTP/1.1 200 OK\n"), "a non-parsed header script"},
    {IN("HTTP/1.0 200\r\n"), "a non-parsed header script"},
};

TEST(refuses)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        for (size_t piece = 1; piece <= refused[i].in.len; piece++) {
            char text[300];
            struct mk_buf said;
            struct outcome o = parse(refused[i].in, piece);
            mk_buf_init_fixed(&said, text, sizeof(text));
            if (o.err != -EINVAL)
                fail_msg("%.*s: %d", MK_STR_ARG(refused[i].in), o.err);
            mk_response_fault_describe(&o.head.fault, refused[i].in.p, &said);
            if (!strstr(mk_buf_cstr(&said), refused[i].text))
                fail_msg("%.*s: %s", MK_STR_ARG(refused[i].in), mk_buf_cstr(&said));
        }
    }
    assert_int_equal(parse(MK_STR("A:1\nB:1\nC:1\nD:1\nE:1\n"), 3).err, -EMSGSIZE);
}

/* A head that fits exactly is accepted, one with a byte more is not, and one that does not end never is. */
TEST(limit)
{
    for (size_t bytes = 190; bytes < 210; bytes++) {
        char text[256];
        memset(text, 'a', sizeof(text));
        memcpy(text, "A: ", 3);
        memcpy(text + bytes - 2, "\n\n", 2);
        for (size_t piece = 1; piece <= bytes; piece += 7)
            assert_int_equal(parse(mk_str(text, bytes), piece).err, bytes <= limits.head_bytes_max ? 0 : -EMSGSIZE);
    }
    char text[256];
    memset(text, 'a', sizeof(text));
    assert_int_equal(parse(mk_str(text, 199), 199).err, MK_AGAIN);
    assert_int_equal(parse(mk_str(text, 200), 1).err, -EMSGSIZE);
}

TEST(fields)
{
    const struct mk_str in = MK_STR("X-A: \tb  c\r\nEmpty:\nContent-Length: 007\n\n");
    struct outcome o = parse(in, 3);
    assert_int_equal(o.err, 0);
    assert_str_equal(mk_span_str(in.p, o.fields[0].name), "X-A");
    assert_str_equal(mk_span_str(in.p, o.fields[0].value), "b  c");
    assert_str_equal(mk_span_str(in.p, o.fields[1].name), "Empty");
    assert_str_equal(mk_span_str(in.p, o.fields[1].value), "");
    assert_true(o.head.has_length);
    assert_int_equal(o.head.length, 7);
}
