// SPDX-License-Identifier: Apache-2.0
/*
 * Takes the output of applications out of records (<monkey/kit/fastcgi.h>).
 */
#include <monkey/kit/fastcgi.h>

#include <errno.h>

static void add_end(struct mk_fastcgi_decoder *d, struct mk_str bytes)
{
    size_t room = sizeof(d->end) - d->end_len, n = bytes.len < room ? bytes.len : room;
    memcpy(d->end + d->end_len, bytes.p, n);
    d->end_len = (uint8_t)(d->end_len + n);
}

/* The response has ended. Returns 1, -EBUSY, -ENOPROTOOPT or -EINVAL. */
static int read_end(struct mk_fastcgi_decoder *d)
{
    static const int results[] = {[MK_FASTCGI_COMPLETE] = 1,
                                  [MK_FASTCGI_CANT_MPX_CONN] = -EBUSY,
                                  [MK_FASTCGI_OVERLOADED] = -EBUSY,
                                  [MK_FASTCGI_UNKNOWN_ROLE] = -ENOPROTOOPT};
    unsigned status = d->end[4];
    d->fault = !mk_fastcgi_has_end(d)            ? "its FCGI_END_REQUEST is too short"
               : status >= MK_COUNT_OF(results)  ? "its FCGI_END_REQUEST has an unknown status"
               : results[status] == -ENOPROTOOPT ? "it does not serve requests of responders (FCGI_UNKNOWN_ROLE)"
                                                 : NULL;
    return !mk_fastcgi_has_end(d) || status >= MK_COUNT_OF(results) ? -EINVAL : results[status];
}

/* Moves a part of the output to `to`. Returns its number of bytes. */
static size_t take_output(const struct mk_fastcgi_part *part, char *to)
{
    if (part->type != MK_FASTCGI_STDOUT || !part->bytes.len)
        return 0;
    memmove(to, part->bytes.p, part->bytes.len);
    return part->bytes.len;
}

int mk_fastcgi_decode(struct mk_fastcgi_decoder *d, char *bytes, size_t *len, size_t *ret_left,
                      mk_fastcgi_stderr_fn on_stderr, void *ctx)
{
    struct mk_str in = mk_str(bytes, *len);
    struct mk_fastcgi_part part;
    int result = 0;
    *len = 0;
    while (in.len && result == 0) {
        ssize_t n = mk_fastcgi_read(&d->reader, in, &part);
        if (n < 0) {
            d->fault = d->reader.fault;
            return -EINVAL;
        }
        in = mk_str(in.p + n, in.len - (size_t)n);
        *len += take_output(&part, bytes + *len);
        if (part.type == MK_FASTCGI_STDERR && part.bytes.len && on_stderr)
            on_stderr(part.bytes, ctx);
        if (part.type == MK_FASTCGI_END_REQUEST && part.bytes.len)
            add_end(d, part.bytes);
        if (part.type == MK_FASTCGI_END_REQUEST && part.is_last)
            result = read_end(d);
    }
    *ret_left = in.len;
    return result;
}

/* ── for mk_http_client ── */

static int unwrap_records(void *state, char *bytes, size_t *len)
{
    struct mk_fastcgi_response *r = state;
    size_t left;
    int result = mk_fastcgi_decode(&r->decoder, bytes, len, &left, NULL, NULL);
    return result == -EBUSY ? -EUSERS : result;
}

static int parse_head(void *state, struct mk_response_parser *p, struct mk_field *fields, struct mk_str head)
{
    struct mk_fastcgi_response *r = state;
    return mk_cgi_parse_response(&r->head, p, fields, head);
}

const struct mk_http_client_codec mk_fastcgi_codec = {.unwrap = unwrap_records, .parse_head = parse_head};
