// SPDX-License-Identifier: Apache-2.0
/*
 * Answers of the load generator (answer.h).
 */
#include "answer.h"

#include <errno.h>

enum { HEAD_BYTES_MAX = 65535, FIELDS_MAX = 256 };

static const struct mk_response_limits limits = {
    .head_bytes_max = HEAD_BYTES_MAX,
    .fields_max = FIELDS_MAX,
    .chunked =
        {
            .line_bytes_max = 4096,
            .ext_bytes_total_max = 64 * 1024,
            .trailer_bytes_max = 64 * 1024,
            .trailer_count_max = 1000,
        },
};

void answer_init(struct answer *a, bool to_head)
{
    *a = (struct answer){0};
    mk_buf_init(&a->head, HEAD_BYTES_MAX);
    mk_response_parser_init(&a->parser, &limits, to_head ? MK_RESPONSE_TO_HEAD : MK_RESPONSE_TO_OTHER);
}

void answer_release(struct answer *a)
{
    mk_buf_release(&a->head);
}

void answer_begin(struct answer *a)
{
    mk_response_parser_init(&a->parser, &limits, a->parser.to);
    a->is_begun = false;
    a->head_bytes = 0;
    a->body_bytes = a->total_bytes = 0;
    a->head.len = 0;
}

/* Parses a head from its first byte. Returns 0, MK_AGAIN or -errno. */
static int parse_head(struct answer *a, struct mk_str head)
{
    struct mk_field fields[FIELDS_MAX];
    mk_response_parser_init(&a->parser, &limits, a->parser.to);
    int r = mk_response_parser_head(&a->parser, fields, head);
    return r == 0 && a->parser.status == 101 ? -EPROTO : r; /* no request asks for another protocol */
}

/* Parses a head, of which `a->head` has the beginning. Returns the bytes used, or -errno. */
static ssize_t take_head(struct answer *a, const char *in, size_t len)
{
    size_t kept = a->head.len, room = HEAD_BYTES_MAX - kept;
    struct mk_str head = mk_str(in, len < room ? len : room);
    if (kept) {
        mk_buf_add(&a->head, in, head.len);
        head = mk_buf_str(&a->head);
    }
    int r = a->head.err ? a->head.err : parse_head(a, head);
    if (r < 0)
        return r;
    if (r != 0) {
        if (!kept)
            mk_buf_adds(&a->head, head);
        return a->head.err ? a->head.err : (ssize_t)(head.len - kept);
    }
    a->head.len = 0;
    a->head_bytes += a->parser.head_bytes;
    return (ssize_t)(a->parser.head_bytes - kept);
}

ssize_t answer_parse(struct answer *a, const char *in, size_t len, struct mk_str *ret_body)
{
    ssize_t n = 0;
    size_t used = 0;
    *ret_body = MK_STR_NONE;
    a->is_begun |= len > 0;
    while (used < len && n >= 0 && (!a->parser.head_bytes || a->parser.status < 200)) {
        n = take_head(a, in + used, len - used);
        used += n < 0 ? 0 : (size_t)n;
    }
    if (n >= 0 && used < len && !a->parser.is_done) {
        n = mk_response_parser_body(&a->parser, in + used, len - used, ret_body);
        used += n < 0 ? 0 : (size_t)n;
    }
    a->body_bytes += ret_body->len;
    a->total_bytes += used;
    return n < 0 ? n : (ssize_t)used;
}

void answer_skip(struct answer *a, uint64_t n)
{
    mk_response_parser_skip(&a->parser, n);
    a->body_bytes += n;
    a->total_bytes += n;
}

uint64_t answer_skippable(const struct answer *a)
{
    return a->parser.body == MK_RESPONSE_BODY_LENGTH ? a->parser.left : 0;
}

int answer_end(struct answer *a)
{
    return mk_response_parser_end(&a->parser);
}
