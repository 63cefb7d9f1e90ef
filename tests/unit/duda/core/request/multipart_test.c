// SPDX-License-Identifier: Apache-2.0
/* Bodies of multipart/form-data as lists of parts, in pieces of every length; each piece flush against a guard page. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "duda/core/request/multipart.h"

/* What the parser has reported, as "[name|file name|type:content]" for each part. */
struct report {
    char text[16384];
    size_t len;
    int fails_at; /* the event that fails, from 1 */
    int n;
};

static void add(struct report *r, struct mk_str s)
{
    assert_true(r->len + s.len < sizeof(r->text));
    memcpy(r->text + r->len, s.p, s.len);
    r->len += s.len;
    r->text[r->len] = '\0';
}

static int next_result(struct report *r)
{
    return ++r->n == r->fails_at ? -EIO : 0;
}

static int begin(const struct multipart_part *part, void *ctx)
{
    struct report *r = ctx;
    add(r, MK_STR("["));
    add(r, part->name);
    if (part->is_file) {
        add(r, MK_STR("|"));
        add(r, part->file_name);
    }
    if (part->type.p) {
        add(r, MK_STR("|"));
        add(r, part->type);
    }
    add(r, MK_STR(":"));
    return next_result(r);
}

static int data(struct mk_str piece, void *ctx)
{
    struct report *r = ctx;
    assert_true(piece.len > 0);
    add(r, piece);
    return next_result(r);
}

static int end(void *ctx)
{
    struct report *r = ctx;
    add(r, MK_STR("]"));
    return next_result(r);
}

static const struct multipart_events events = {begin, data, end};

/* Feeds a body in pieces of at most `step` bytes. Returns the result; -EPIPE: the closing delimiter is missing. */
static int feed(const char *type, const char *body, size_t len, size_t step, struct report *r)
{
    static struct multipart m;
    assert_int_equal(multipart_init(&m, mk_str_c(type)), 0);
    for (size_t at = 0; at < len; at += step) {
        size_t n = len - at < step ? len - at : step;
        char *piece = mk_test_guarded(body + at, n);
        int err = multipart_feed(&m, mk_str(piece, n), &events, r);
        mk_test_unguard(piece, n);
        if (err)
            return err;
    }
    return multipart_is_complete(&m) ? 0 : -EPIPE;
}

#define FORM "multipart/form-data; boundary=xy"
#define FIELD(name) "Content-Disposition: form-data; name=\"" name "\"\r\n"

static const struct {
    const char *body;
    int result;
    const char *report;
} cases[] = {
    {"--xy\r\n" FIELD("a") "\r\n1\r\n--xy--\r\n", 0, "[a:1]"},
    {"--xy\r\n" FIELD("a") "\r\n1\r\n--xy--", 0, "[a:1]"},
    {"--xy\r\n" FIELD("a") "\r\n\r\n--xy--", 0, "[a:]"},
    {"--xy\r\n" FIELD("a") "\r\n1\r\n--xy\r\n" FIELD("b") "\r\n2\r\n--xy--", 0, "[a:1][b:2]"},
    {"preamble\r\n--xy\r\n" FIELD("a") "\r\n1\r\n--xy--epilogue\r\n--xy\r\n", 0, "[a:1]"},
    {"--x\r\n--xy \t\r\n" FIELD("a") "\r\n1\r\n--xy--", 0, "[a:1]"},
    {"--xy--", 0, ""},
    /* content that looks like a delimiter, or a part of one */
    {"--xy\r\n" FIELD("a") "\r\n\r\r\n-\r\n--\r\n--x\r\n --xy\r--xy\n--xy\r\n--xy--", 0,
     "[a:\r\r\n-\r\n--\r\n--x\r\n --xy\r--xy\n--xy]"},
    {"--xy\r\n" FIELD("a") "\r\n--xy\r\n--xy--", 0, "[a:--xy]"},
    {"--xy\r\n" FIELD("a") "\r\n\r\n\r\n--xy--", 0, "[a:\r\n]"},
    {"--xy\r\n" FIELD("a") "\r\n\r\n--x\r\n--x\r\n--xy--", 0, "[a:\r\n--x\r\n--x]"},
    /* heads */
    {"--xy\r\nContent-Disposition: form-data; name=f; filename=\"a.txt\"\r\nContent-Type: text/plain; charset=x\r\n\r\n"
     "1\r\n--xy--",
     0, "[f|a.txt|text/plain; charset=x:1]"},
    {"--xy\r\ncontent-type:a/b\r\nX-Other: 1\r\nCONTENT-DISPOSITION:FORM-DATA;NAME=\"f\" ;; "
     "FileName=\"\";\r\n\r\n1\r\n--xy--",
     0, "[f||a/b:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=\"a\\\"b;c\\\\d\\e\"\r\n\r\n1\r\n--xy--", 0, "[a\"b;c\\d\\e:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=\"a%22b\"\r\n\r\n1\r\n--xy--", 0, "[a%22b:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=\"\"\r\n\r\n1\r\n--xy--", 0, "[:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=f; filename=\"../../etc/passwd\"\r\n\r\n1\r\n--xy--", 0,
     "[f|passwd:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=f; filename=\"C:\\dir\\a.txt\"\r\n\r\n1\r\n--xy--", 0,
     "[f|a.txt:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=f; filename=\"a/..\"\r\n\r\n1\r\n--xy--", 0, "[f|:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=f; filename=\"a/\"\r\n\r\n1\r\n--xy--", 0, "[f|:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=f; filename*=UTF-8''a.txt\r\n\r\n1\r\n--xy--", 0, "[f|:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=f; filename*=x; filename=a\r\n\r\n1\r\n--xy--", 0, "[f|a:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=\"f\\\"; filename=\"a\\b\\\"\r\n\r\n1\r\n--xy--", 0, "[f\\|:1]"},
    {"--xy\r\nContent-Disposition: form-data; name=\"f\\\"g\" ; filename=\"a\" \r\n\r\n1\r\n--xy--", 0, "[f\"g|a:1]"},
    /* mistakes */
    {"", -EPIPE, ""},
    {"no delimiter", -EPIPE, ""},
    {"--xy\r\n" FIELD("a") "\r\n1", -EPIPE, "[a:1"},
    {"--xy\r\n" FIELD("a") "\r\n1\r\n--xy", -EPIPE, "[a:1]"},
    {"--xy\r\n" FIELD("a") "\r\n1\r\n--xy-", -EPIPE, "[a:1]"},
    {"--xy\r\n" FIELD("a") "\r\n1\r\n--xyz\r\n--xy--", -EBADMSG, "[a:1]"},
    {"--xy\r\n" FIELD("a") "\r\n1\r\n--xy -", -EBADMSG, "[a:1]"},
    {"--xy\r\n" FIELD("a") "\r\n1\r\n--xy\rx", -EBADMSG, "[a:1]"},
    {"--xy\r\n" FIELD("a") "\r\n1\r\n--xy-x", -EBADMSG, "[a:1]"},
    {"--xy\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Type: a/b\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data; filename=a\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: attachment; name=a\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data; name=\"a\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data; name=\"a\" b\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data; name\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data; name=a; name=b\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data; name=a; filename=b; filename=c\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\n" FIELD("a") FIELD("b") "\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data;\r\n name=a\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data; name=a\n\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data; name=\"a\tb\001\"\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nContent-Disposition: form-data; name=\"a\tb\"\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\nno colon\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
    {"--xy\r\n: x\r\n\r\n1\r\n--xy--", -EBADMSG, ""},
};

TEST(bodies_in_pieces_of_every_length)
{
    static struct report r;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t len = strlen(cases[i].body);
        for (size_t step = 1; step <= len + 1; step++) {
            r = (struct report){.len = 0};
            int result = feed(FORM, cases[i].body, len, step, &r);
            if (result != cases[i].result || strcmp(r.text, cases[i].report) != 0)
                fail_msg("body %zu, pieces of %zu: %d and \"%s\", not %d and \"%s\"", i, step, result, r.text,
                         cases[i].result, cases[i].report);
        }
    }
}

/* A piece that is fed whole comes as one piece for each part: pointers into it may be kept. */
TEST(content_is_contiguous)
{
    static struct report r;
    static const char body[] = "--xy\r\n" FIELD("a") "\r\n\r\n--x\r\n-\r\r\n--xy--";
    r = (struct report){.len = 0};
    assert_int_equal(feed(FORM, body, sizeof(body) - 1, sizeof(body), &r), 0);
    assert_int_equal(r.n, 3); /* begin, data, end */
}

TEST(events_that_fail)
{
    static struct report r;
    static const char body[] = "--xy\r\n" FIELD("a") "\r\n1\r\n--xy\r\n" FIELD("b") "\r\n2\r\n--xy--";
    for (int n = 1; n <= 6; n++)
        for (size_t step = 1; step < sizeof(body); step++) {
            r = (struct report){.fails_at = n};
            assert_int_equal(feed(FORM, body, sizeof(body) - 1, step, &r), -EIO);
            assert_int_equal(r.n, n);
        }
}

TEST(long_heads)
{
    static struct report r;
    static char body[2 * MULTIPART_HEAD_MAX];
    static const char fixed[] = "--xy\r\n" FIELD("a") "X: ", rest[] = "\r\n\r\n1\r\n--xy--";
    const size_t head = sizeof(fixed) - 1 - strlen("--xy\r\n") + strlen("\r\n\r\n");
    for (int over = 0; over < 2; over++) {
        size_t fill = MULTIPART_HEAD_MAX - head + (size_t)over;
        int n = snprintf(body, sizeof(body), "%s%*s%s", fixed, (int)fill, "v", rest);
        r = (struct report){.len = 0};
        assert_int_equal(feed(FORM, body, (size_t)n, 7, &r), over ? -EMSGSIZE : 0);
    }
}

static const struct {
    const char *type;
    int result;
} types[] = {
    {FORM, 0},
    {"Multipart/Form-Data;Boundary=\"a b'()+_,-./:=?c\"", 0},
    {"multipart/form-data; charset=utf-8; boundary=----WebKitFormBoundary0", 0},
    {"multipart/form-data; boundary=1234567890123456789012345678901234567890123456789012345678901234567890", 0},
    {"multipart/form-data; boundary=12345678901234567890123456789012345678901234567890123456789012345678901", -EINVAL},
    {"multipart/form-data", -EINVAL},
    {"multipart/form-data; boundary=", -EINVAL},
    {"multipart/form-data; boundary=\"\"", -EINVAL},
    {"multipart/form-data; boundary=\"a \"", -EINVAL},
    {"multipart/form-data; boundary=\"a", -EINVAL},
    {"multipart/form-data; boundary=\"a\\\"\"", -EINVAL},
    {"multipart/form-data; boundary=a\xc3\xbc", -EINVAL},
    {"multipart/form-data boundary=a", -EINVAL},
    {"multipart/mixed; boundary=a", -EINVAL},
    {"application/x-www-form-urlencoded", -EINVAL},
    {"", -EINVAL},
};

TEST(content_types)
{
    static struct multipart m;
    for (size_t i = 0; i < COUNT(types); i++) {
        size_t len = strlen(types[i].type);
        char *type = mk_test_guarded(types[i].type, len);
        if (multipart_init(&m, mk_str(type, len)) != types[i].result)
            fail_msg("\"%s\"", types[i].type);
        mk_test_unguard(type, len);
    }
    assert_int_equal(multipart_init(&m, MK_STR_NONE), -EINVAL);
}

/* The longest delimiter, over pieces. */
TEST(long_boundary)
{
    static struct report r;
    char boundary[MULTIPART_BOUNDARY_MAX + 1], type[128], body[512];
    memset(boundary, '-', sizeof(boundary) - 1);
    boundary[sizeof(boundary) - 1] = '\0';
    snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", boundary);
    int n = snprintf(body, sizeof(body), "--%s\r\n" FIELD("a") "\r\n\r\n--%.*s\r\n--%s--", boundary,
                     MULTIPART_BOUNDARY_MAX - 1, boundary, boundary);
    char content[128];
    snprintf(content, sizeof(content), "[a:\r\n--%.*s]", MULTIPART_BOUNDARY_MAX - 1, boundary);
    for (size_t step = 1; step <= (size_t)n; step++) {
        r = (struct report){.len = 0};
        assert_int_equal(feed(type, body, (size_t)n, step, &r), 0);
        assert_string_equal(r.text, content);
    }
}
