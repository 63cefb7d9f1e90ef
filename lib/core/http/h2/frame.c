// SPDX-License-Identifier: Apache-2.0
/*
 * The reader of http/h2/frame.h, and what the heads of frames must say.
 */
#include "http/h2/frame.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

enum { PRIORITY_BYTES = 5 };

/* ── the reader ── */

static bool passes_content(uint8_t type)
{
    return type == MK__H2_FRAME_DATA || type == MK__H2_FRAME_HEADERS || type == MK__H2_FRAME_CONTINUATION;
}

static bool is_padded(const struct mk__h2_frame *frame)
{
    return frame->flags & MK__H2_FLAG_PADDED &&
           (frame->type == MK__H2_FRAME_DATA || frame->type == MK__H2_FRAME_HEADERS);
}

static bool has_priority(const struct mk__h2_frame *frame)
{
    return frame->type == MK__H2_FRAME_HEADERS && frame->flags & MK__H2_FLAG_PRIORITY;
}

/* Returns how many bytes of the payload are kept. */
static uint8_t count_kept(const struct mk__h2_frame *frame)
{
    uint32_t kept = frame->len;
    if (passes_content(frame->type))
        kept = (uint32_t)is_padded(frame) + (has_priority(frame) ? PRIORITY_BYTES : 0);
    return kept < MK__H2_FRAME_KEPT_BYTES ? (uint8_t)kept : MK__H2_FRAME_KEPT_BYTES;
}

/* The head, which is in r->payload, is complete. */
static void begin_payload(struct mk__h2_frame_reader *r)
{
    const uint8_t *head = r->payload;
    r->frame = (struct mk__h2_frame){.len = mk__h2_frame_get32(head) >> 8,
                                     .type = head[3],
                                     .flags = head[4],
                                     .stream_id = (int32_t)(mk__h2_frame_get32(head + 5) & INT32_MAX)};
    r->kept_len = 0;
    r->kept_max = count_kept(&r->frame);
    r->content = r->rest = 0;
    if (r->kept_max <= r->frame.len)
        *(passes_content(r->frame.type) ? &r->content : &r->rest) = r->frame.len - r->kept_max;
}

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Takes up to `n` bytes off `in`. Returns how many. */
static size_t take_bytes(struct mk_str *in, size_t n, uint8_t *to)
{
    n = smaller_of(n, in->len);
    if (to && n)
        memcpy(to, in->p, n);
    *in = mk_str_after(*in, n);
    return n;
}

static enum mk__h2_frame_event read_head(struct mk__h2_frame_reader *r, struct mk_str *in)
{
    size_t left = MK__H2_FRAME_HEAD_BYTES - r->head_len;
    r->head_len = (uint8_t)(r->head_len + take_bytes(in, left, r->payload + r->head_len));
    if (r->head_len < MK__H2_FRAME_HEAD_BYTES)
        return MK__H2_READ_MORE;
    begin_payload(r);
    return MK__H2_READ_BEGIN;
}

/* Reads what is kept of the payload. Returns false if the payload is shorter than its parts. */
static bool read_kept(struct mk__h2_frame_reader *r, struct mk_str *in)
{
    if (r->kept_max > r->frame.len)
        return false;
    size_t left = (size_t)(r->kept_max - r->kept_len);
    r->kept_len = (uint8_t)(r->kept_len + take_bytes(in, left, r->payload + r->kept_len));
    if (r->kept_len < r->kept_max || !is_padded(&r->frame))
        return true;
    uint8_t pad = r->payload[0];
    if (pad > r->content)
        return false;
    r->content -= pad;
    r->rest += pad;
    return true;
}

enum mk__h2_frame_event mk__h2_frame_read(struct mk__h2_frame_reader *r, struct mk_str *in, struct mk_str *ret_bytes)
{
    if (r->head_len < MK__H2_FRAME_HEAD_BYTES)
        return read_head(r, in);
    if (r->kept_len < r->kept_max && !read_kept(r, in))
        return MK__H2_READ_PADDING_ERROR;
    if (r->kept_len < r->kept_max)
        return MK__H2_READ_MORE;
    if (r->content && in->len) {
        *ret_bytes = mk_str(in->p, smaller_of(r->content, in->len));
        r->content -= (uint32_t)take_bytes(in, ret_bytes->len, NULL);
        return MK__H2_READ_BYTES;
    }
    if (!r->content)
        r->rest -= (uint32_t)take_bytes(in, r->rest, NULL);
    if (r->content || r->rest)
        return MK__H2_READ_MORE;
    r->head_len = 0;
    return MK__H2_READ_END;
}

void mk__h2_frame_skip(struct mk__h2_frame_reader *r)
{
    assert(r->head_len == MK__H2_FRAME_HEAD_BYTES && !r->kept_len);
    r->kept_max = 0;
    r->content = 0;
    r->rest = r->frame.len;
}

int32_t mk__h2_frame_dependency(const struct mk__h2_frame_reader *r)
{
    const uint8_t *at = r->payload + is_padded(&r->frame);
    if (r->frame.type != MK__H2_FRAME_PRIORITY && !has_priority(&r->frame))
        return -1;
    return (int32_t)(mk__h2_frame_get32(at) & INT32_MAX);
}

/* ── what the head of a frame must say ── */

/* On which streams a type of frames is. */
enum where { ANYWHERE, ON_STREAM, ON_CONNECTION };

struct rule {
    uint32_t len_min, len_max;
    uint32_t multiple; /* of which the length is one; 0: of any */
    uint8_t where;     /* enum where */
    bool is_empty_ack; /* with the flag ACK it has no payload */
    bool is_forbidden; /* section 8.4: clients push nothing, and we have disabled it in the other direction */
};

#define LENGTH(least, most) .len_min = least, .len_max = most
#define ANY_LENGTH LENGTH(0, MK__H2_FRAME_BYTES)

static const struct rule rules[] = {
    [MK__H2_FRAME_DATA] = {ANY_LENGTH, .where = ON_STREAM},
    [MK__H2_FRAME_HEADERS] = {ANY_LENGTH, .where = ON_STREAM},
    [MK__H2_FRAME_PRIORITY] = {LENGTH(PRIORITY_BYTES, PRIORITY_BYTES), .where = ON_STREAM},
    [MK__H2_FRAME_RST_STREAM] = {LENGTH(4, 4), .where = ON_STREAM},
    [MK__H2_FRAME_SETTINGS] = {ANY_LENGTH, .multiple = MK__H2_FRAME_SETTING_BYTES, .where = ON_CONNECTION,
                               .is_empty_ack = true},
    [MK__H2_FRAME_PUSH_PROMISE] = {ANY_LENGTH, .is_forbidden = true},
    [MK__H2_FRAME_PING] = {LENGTH(8, 8), .where = ON_CONNECTION},
    [MK__H2_FRAME_GOAWAY] = {LENGTH(8, MK__H2_FRAME_BYTES), .where = ON_CONNECTION},
    [MK__H2_FRAME_WINDOW_UPDATE] = {LENGTH(4, 4)},
    [MK__H2_FRAME_CONTINUATION] = {ANY_LENGTH, .where = ON_STREAM},
    [10 ... 15] = {ANY_LENGTH},
    [MK__H2_FRAME_PRIORITY_UPDATE] = {LENGTH(4, MK__H2_FRAME_BYTES), .where = ON_CONNECTION},
};

static const struct rule rule_of_unknown = {ANY_LENGTH};

enum mk__h2_error mk__h2_frame_check(const struct mk__h2_frame *frame)
{
    const struct rule *rule = frame->type < MK_COUNT_OF(rules) ? &rules[frame->type] : &rule_of_unknown;
    bool is_ack = rule->is_empty_ack && frame->flags & MK__H2_FLAG_ACK;
    uint32_t len_min = passes_content(frame->type) ? count_kept(frame) : rule->len_min; /* section 4.2 */
    if (rule->is_forbidden || (rule->where == ON_STREAM && !frame->stream_id) ||
        (rule->where == ON_CONNECTION && frame->stream_id))
        return MK__H2_ERR_PROTOCOL;
    if (frame->len >= len_min && frame->len <= (is_ack ? 0 : rule->len_max) &&
        !(rule->multiple && frame->len % rule->multiple))
        return MK__H2_ERR_NO_ERROR;
    return MK__H2_ERR_FRAME_SIZE;
}

/* ── writing ── */

char *mk__h2_frame_put32(char *to, uint32_t value)
{
    const uint32_t bytes = htobe32(value);
    return mempcpy(to, &bytes, sizeof(bytes));
}

char *mk__h2_frame_put_setting(char *to, enum mk__h2_setting setting, uint32_t value)
{
    *to++ = (char)(setting >> 8);
    *to++ = (char)setting;
    return mk__h2_frame_put32(to, value);
}

char *mk__h2_frame_put_head(char *to, size_t len, enum mk__h2_frame_type type, uint8_t flags, int32_t stream_id)
{
    assert(len < 1u << 24 && stream_id >= 0);
    to = mk__h2_frame_put32(to, (uint32_t)len << 8 | type);
    *to++ = (char)flags;
    return mk__h2_frame_put32(to, (uint32_t)stream_id);
}
