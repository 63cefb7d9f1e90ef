// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the handshake and the frame of a message, and reads what the server sends.
 */
#include "message.h"

#include <errno.h>
#include <string.h>

#include <monkey/base/buf.h>

enum { FIN = 0x80, RESERVED = 0x70, OPCODE = 0x0f, CONTROL = 0x08, CLOSE = 0x08, MASK = 0x80, LENGTH = 0x7f };

/* ── what is sent ── */

static struct mk_str make_handshake(struct mk_arena *arena, struct mk_str host, struct mk_str path,
                                    struct mk_str headers)
{
    struct mk_buf out;
    mk_buf_init(&out, 1 << 20);
    mk_buf_addf(&out,
                "GET %.*s HTTP/1.1\r\nHost: %.*s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%.*s\r\n",
                MK_STR_ARG(path), MK_STR_ARG(host), MK_STR_ARG(headers));
    struct mk_str copy = out.err ? MK_STR_NONE : mk_arena_dup(arena, mk_buf_str(&out));
    mk_buf_release(&out);
    return copy;
}

/* Writes the head of a masked text frame. Returns its size. */
static size_t write_head(unsigned char *to, size_t len, const unsigned char *key)
{
    size_t size = len < 126 ? 0 : len < 65536 ? 2 : 8;
    to[0] = FIN | 1;
    to[1] = (unsigned char)(MASK | (size == 0 ? len : size == 2 ? 126 : 127));
    for (size_t i = 0; i < size; i++)
        to[2 + i] = (unsigned char)((uint64_t)len >> 8 * (size - 1 - i));
    memcpy(to + 2 + size, key, 4);
    return 2 + size + 4;
}

int message_prepare(struct message *m, struct mk_arena *arena, struct mk_str host, struct mk_str path,
                    struct mk_str headers, size_t bytes, uint32_t key)
{
    unsigned char *text = mk_arena_alloc(arena, bytes), *frame = mk_arena_alloc(arena, 14 + bytes), mask[4];
    m->handshake = make_handshake(arena, host, path, headers);
    if (!text || !frame || !m->handshake.p)
        return -ENOMEM;
    memcpy(mask, &key, sizeof(mask));
    size_t n = write_head(frame, bytes, mask);
    for (size_t i = 0; i < bytes; i++) {
        text[i] = (unsigned char)(' ' + i % 95);
        frame[n + i] = text[i] ^ mask[i % 4];
    }
    m->text = mk_str((char *)text, bytes);
    m->frame = mk_str((char *)frame, n + bytes);
    return 0;
}

/* ── what is received ── */

/* Takes one byte of the answer to the handshake. Returns enum reader_event or -EINVAL. */
static int take_head_byte(struct reader *r, char c)
{
    static const char wanted[] = "HTTP/1.1 101 ", end[] = "\r\n\r\n";
    if (++r->bytes > MESSAGE_HANDSHAKE_MAX)
        return -EINVAL;
    if (r->state == READER_STATUS_LINE) {
        if (c != wanted[r->bytes - 1])
            return -EINVAL;
        if (r->bytes == sizeof(wanted) - 1)
            r->state = READER_HEAD;
        return READER_MORE;
    }
    r->ends = c == end[r->ends] ? (uint8_t)(r->ends + 1) : c == '\r';
    if (r->ends < 4)
        return READER_MORE;
    r->state = READER_FRAME_HEAD;
    return READER_OPENED;
}

/* Checks the first byte of a frame: nothing is compressed, and fragments follow each other. */
static bool is_frame_valid(const struct reader *r)
{
    unsigned char opcode = r->head[0] & OPCODE;
    if (r->head[0] & RESERVED || r->head[1] & MASK)
        return false;
    if (opcode & CONTROL)
        return opcode <= 0x0a && r->head[0] & FIN && r->head[1] <= 125;
    return opcode <= 2 && r->in_message == (opcode == 0);
}

static void begin_payload(struct reader *r)
{
    unsigned size = r->head_len - 2;
    uint64_t len = size ? 0 : r->head[1];
    for (unsigned i = 0; i < size; i++)
        len = len << 8 | r->head[2 + i];
    r->is_control = r->head[0] & CONTROL;
    r->left = len;
    r->state = READER_PAYLOAD;
    if (r->is_control)
        return;
    r->frame_bytes = (r->in_message ? r->frame_bytes : 0) + r->head_len + len;
    r->is_last = r->head[0] & FIN;
    if (!r->in_message) {
        r->is_wrong = (r->head[0] & OPCODE) != 1;
        r->len = 0;
    }
    r->in_message = true;
}

/* Returns READER_MORE or -EINVAL. */
static int take_frame_byte(struct reader *r, char c)
{
    r->head[r->head_len++] = (unsigned char)c;
    if (r->head_len < 2)
        return READER_MORE;
    if (!is_frame_valid(r))
        return -EINVAL;
    unsigned length = r->head[1] & LENGTH, size = length < 126 ? 2 : length == 126 ? 4 : 10;
    if (r->head_len == size)
        begin_payload(r);
    return READER_MORE;
}

static void compare_payload(struct reader *r, const struct message *m, const char *in, size_t n)
{
    bool fits = r->len <= m->text.len && n <= m->text.len - r->len;
    if (!fits || (n && memcmp(m->text.p + r->len, in, n) != 0))
        r->is_wrong = true;
    r->len += n;
}

/* The payload of a frame is complete. */
static int end_frame(struct reader *r, const struct message *m)
{
    r->state = READER_FRAME_HEAD;
    r->head_len = 0;
    if (r->is_control)
        return (r->head[0] & OPCODE) == CLOSE ? READER_CLOSED : READER_MORE;
    if (!r->is_last)
        return READER_MORE;
    r->in_message = false;
    r->is_wrong |= r->len != m->text.len;
    return READER_MESSAGE;
}

static int take_payload(struct reader *r, const struct message *m, const char *in, size_t n)
{
    if (!r->is_control)
        compare_payload(r, m, in, n);
    r->left -= n;
    return r->left ? READER_MORE : end_frame(r, m);
}

int reader_read(struct reader *r, const struct message *m, const char *in, size_t len, size_t *ret_used)
{
    size_t at = 0;
    int event = READER_MORE;
    while (at < len && event == READER_MORE) {
        if (r->state <= READER_HEAD) {
            event = take_head_byte(r, in[at++]);
        } else if (r->state == READER_FRAME_HEAD) {
            event = take_frame_byte(r, in[at++]);
            if (event == READER_MORE && r->state == READER_PAYLOAD && !r->left)
                event = take_payload(r, m, in, 0);
        } else {
            size_t n = r->left < len - at ? (size_t)r->left : len - at;
            event = take_payload(r, m, in + at, n);
            at += n;
        }
    }
    *ret_used = at;
    return event;
}
