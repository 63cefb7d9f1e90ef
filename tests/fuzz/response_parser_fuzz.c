// SPDX-License-Identifier: Apache-2.0
/*
 * The parser of responses: the first byte picks the request's method and the size of pieces. One piece, and pieces of
 * that size, must give the same heads, body and trailers, the same end and the same result.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <monkey/base/response_parser.h>

enum { FIELDS_MAX = 16, TRAILERS_BYTES_MAX = 200, INTERIM_MAX = 16 };

static const struct mk_response_limits limits = {
    .head_bytes_max = 1000,
    .fields_max = FIELDS_MAX,
    .chunked = {64, 200, TRAILERS_BYTES_MAX, 8},
};

struct outcome {
    struct mk_response_parser parser;
    struct mk_field fields[FIELDS_MAX];
    uint64_t hash, body_bytes;
    size_t used;
    unsigned interim;
    int err;
    char trailers[TRAILERS_BYTES_MAX];
    size_t trailers_len;
};

static void hash_bytes(struct outcome *o, struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        o->hash = o->hash * 31 + (unsigned char)s.p[i];
    o->hash = o->hash * 31 + 256;
}

/* A head is complete. Returns false if it was the last one. */
static bool take_head(struct outcome *o, const char *head)
{
    for (unsigned i = 0; i < o->parser.n_fields; i++) {
        hash_bytes(o, mk_span_str(head, o->fields[i].name));
        hash_bytes(o, mk_span_str(head, o->fields[i].value));
    }
    o->used += o->parser.head_bytes;
    if (o->parser.status >= 200 || o->parser.status == 101 || ++o->interim > INTERIM_MAX)
        return false;
    mk_response_parser_next(&o->parser);
    return true;
}

static void parse_heads(struct outcome *o, const char *in, size_t len, size_t piece)
{
    size_t come = 0;
    o->err = MK_AGAIN;
    while (o->err == MK_AGAIN && o->used + come < len) {
        size_t left = len - o->used - come;
        come += left < piece ? left : piece;
        o->err = mk_response_parser_head(&o->parser, o->fields, mk_str(in + o->used, come));
        if (o->err == 0 && take_head(o, in + o->used)) {
            come = 0;
            o->err = MK_AGAIN;
        }
    }
}

static void parse_body(struct outcome *o, const char *in, size_t len, size_t piece)
{
    struct mk_buf trailers;
    mk_buf_init_fixed(&trailers, o->trailers, sizeof(o->trailers));
    o->parser.chunked.trailers = &trailers;
    while (o->used < len && !o->parser.is_done && o->err == 0) {
        size_t left = len - o->used;
        struct mk_str body;
        ssize_t n = mk_response_parser_body(&o->parser, in + o->used, left < piece ? left : piece, &body);
        if (n == 0 || n > (ssize_t)left || (body.len && (body.p < in || body.p + body.len > in + len)))
            abort();
        o->err = n < 0 ? (int)n : 0;
        o->used += n < 0 ? 0 : (size_t)n;
        for (size_t i = 0; i < body.len; i++)
            o->hash = o->hash * 31 + (unsigned char)body.p[i];
        o->body_bytes += body.len;
    }
    o->trailers_len = trailers.len;
    if (trailers.err)
        abort(); /* the limit holds */
}

static void check_trailers(const struct outcome *o)
{
    struct mk_str rest = mk_str(o->trailers, o->trailers_len), name, value;
    while (o->parser.is_done && mk_chunked_next_trailer(&rest, &name, &value))
        if (!name.len)
            abort();
}

static struct outcome parse(const char *in, size_t len, size_t piece, enum mk_response_to to)
{
    struct outcome o = {0};
    mk_response_parser_init(&o.parser, &limits, to);
    parse_heads(&o, in, len, piece);
    if (o.err == 0 && o.parser.status >= 200)
        parse_body(&o, in, len, piece);
    check_trailers(&o);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const char *in = (const char *)data + 1;
    enum mk_response_to to = (enum mk_response_to)(data[0] >> 4) % 3;
    struct outcome whole = parse(in, size - 1, SIZE_MAX, to),
                   pieces = parse(in, size - 1, (size_t)data[0] % 16 + 1, to);
    if (whole.err != pieces.err || (whole.err == -EINVAL) != (whole.parser.fault.text != NULL))
        abort();
    if (whole.err != 0)
        return 0; /* how far it came depends on the pieces */
    if (whole.hash != pieces.hash || whole.body_bytes != pieces.body_bytes || whole.used != pieces.used ||
        whole.parser.is_done != pieces.parser.is_done || whole.parser.status != pieces.parser.status ||
        whole.parser.keep_alive != pieces.parser.keep_alive || whole.trailers_len != pieces.trailers_len)
        abort();
    return 0;
}
