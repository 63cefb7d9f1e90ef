// SPDX-License-Identifier: Apache-2.0
/*
 * Byte ranges: eight bytes of size, then the field. Every range must lie inside the representation; merged ones
 * lie apart, lose nothing, and add no more than the gaps between them. Of several ranges the frames are made, too:
 * the body that a client would read is put together of a file that repeats itself, and read as a client does.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/message/multipart.h"

enum { GAP = MK__MULTIPART_GAP_BYTES, BODY_BYTES = 1 << 16, PERIOD = 251 };

static void insist(int condition)
{
    if (!condition)
        abort();
}

static bool is_within(const struct mk__range *r, const struct mk__range *of)
{
    return of->first <= r->first && r->last <= of->last;
}

static bool are_apart(const struct mk__range *a, const struct mk__range *b)
{
    return (a->last < b->first && b->first - a->last > GAP) || (b->last < a->first && a->first - b->last > GAP);
}

static void check_merged(const struct mk__range *before, unsigned n, const struct mk__range *after, unsigned left)
{
    insist(left >= 1 && left <= n);
    for (unsigned i = 0; i < n; i++) {
        unsigned holders = 0;
        for (unsigned k = 0; k < left; k++)
            holders += is_within(&before[i], &after[k]);
        insist(holders == 1);
    }
    for (unsigned i = 0; i < left; i++)
        for (unsigned k = 0; k < i; k++)
            insist(are_apart(&after[i], &after[k]));
    insist(is_within(&before[0], &after[0])); /* the client's order */
}

/* ── multipart/byteranges ── */

static char file_byte(uint64_t at)
{
    return (char)(at % PERIOD);
}

/* The body as it is sent; 0 when it is too long to be put together here. */
static size_t make_body(char *body, const struct mk__multipart *m, const struct mk__range *ranges, unsigned n)
{
    size_t len = 0;
    if (m->bytes > BODY_BYTES)
        return 0;
    for (unsigned i = 0; i <= n; i++) {
        memcpy(body + len, m->heads[i].p, m->heads[i].len);
        len += m->heads[i].len;
        for (uint64_t at = i < n ? ranges[i].first : 1, end = i < n ? ranges[i].last : 0; at <= end; at++)
            body[len++] = file_byte(at);
    }
    return len;
}

static void insist_text(struct mk_str *body, const char *text)
{
    insist(mk_str_starts(*body, mk_str_c(text)));
    *body = mk_str(body->p + strlen(text), body->len - strlen(text));
}

static uint64_t read_number(struct mk_str *body)
{
    size_t digits = 0;
    uint64_t value;
    while (digits < body->len && body->p[digits] >= '0' && body->p[digits] <= '9')
        digits++;
    insist(mk_str_u64(mk_str(body->p, digits), UINT64_MAX, &value));
    *body = mk_str(body->p + digits, body->len - digits);
    return value;
}

/* One part: what its Content-Range says is what it brings. */
static void read_part(struct mk_str *body, const struct mk__range *range, uint64_t size)
{
    insist_text(body, "\r\n--edge\r\n");
    insist_text(body, "Content-Type: text/x; y=z\r\nContent-Range: bytes ");
    uint64_t first = read_number(body);
    insist_text(body, "-");
    uint64_t last = read_number(body);
    insist_text(body, "/");
    insist(read_number(body) == size && first == range->first && last == range->last);
    insist_text(body, "\r\n\r\n");
    insist(last - first < body->len);
    for (uint64_t at = first; at <= last; at++)
        insist(body->p[at - first] == file_byte(at));
    *body = mk_str(body->p + (last - first + 1), body->len - (size_t)(last - first + 1));
}

static void check_frames(const struct mk__range *ranges, unsigned n, uint64_t size)
{
    static char bytes[BODY_BYTES];
    struct mk__multipart m;
    struct mk_arena arena;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    insist(mk__multipart_build(&m, &arena, MK_STR("edge"), ranges, n, MK_STR("text/x; y=z"), size) == 0);
    insist(mk_str_eq(m.type, MK_STR("multipart/byteranges; boundary=edge")));
    struct mk_str body = mk_str(bytes, make_body(bytes, &m, ranges, n));
    if (body.len) {
        insist(body.len == m.bytes); /* as Content-Length has announced it */
        for (unsigned i = 0; i < n; i++)
            read_part(&body, &ranges[i], size);
        insist_text(&body, "\r\n--edge--\r\n");
        insist(body.len == 0);
    }
    mk_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk__range ranges[MK__RANGES_MAX], merged[MK__RANGES_MAX];
    uint64_t bytes;
    unsigned n = 99;

    if (size < sizeof(bytes))
        return 0;
    memcpy(&bytes, data, sizeof(bytes));
    struct mk_str value = mk_str((const char *)data + sizeof(bytes), size - sizeof(bytes));
    enum mk__range_result result = mk__range_parse(value, bytes, ranges, MK__RANGES_MAX, &n);
    insist(n <= MK__RANGES_MAX && (n > 0) == (result == MK__RANGE_OK));
    for (unsigned i = 0; i < n; i++)
        insist(ranges[i].first <= ranges[i].last && ranges[i].last < bytes);
    if (!n)
        return 0;
    memcpy(merged, ranges, n * sizeof(*ranges));
    unsigned left = mk__range_merge(merged, n, GAP);
    check_merged(ranges, n, merged, left);
    if (left <= MK__MULTIPART_MAX && bytes <= INT64_MAX) /* which no file exceeds */
        check_frames(merged, left, bytes);
    return 0;
}
