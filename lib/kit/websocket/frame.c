// SPDX-License-Identifier: Apache-2.0
/*
 * Parses and writes the heads of WebSocket frames and the payload of Close (frame.h).
 */
#include "frame.h"
#include "utf8.h"

#include <assert.h>

enum { FIN = 0x80, RSV1 = 0x40, RSV2_RSV3 = 0x30, OPCODE = 0x0f, MASK = 0x80, LENGTH = 0x7f, KEY_BYTES = 4 };

static int fail_parse(enum mk_ws_code code, const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return -(int)code;
}

/* ── the head ── */

enum opcode_class { RESERVED, DATA, CONTINUED, CONTROL };

static const uint8_t opcode_classes[OPCODE + 1] = {
    [MK__WS_OP_CONTINUATION] = CONTINUED, [MK__WS_OP_TEXT] = DATA,    [MK__WS_OP_BINARY] = DATA,
    [MK__WS_OP_CLOSE] = CONTROL,          [MK__WS_OP_PING] = CONTROL, [MK__WS_OP_PONG] = CONTROL,
};

/* The encodings of the length, by the seven bits of the second byte: up to 125, 126, 127. */
struct length_form {
    uint8_t bytes; /* after the second byte */
    uint64_t min;  /* below it a shorter form exists */
};

static const struct length_form length_forms[] = {{0, 0}, {2, 126}, {8, 1 << 16}};

static const struct length_form *find_form(unsigned seven)
{
    return &length_forms[seven < 126 ? 0 : seven - 125];
}

/* Returns what is wrong with the first byte, or NULL. */
static const char *check_first(unsigned byte, const struct mk__ws_rules *rules)
{
    unsigned class = opcode_classes[byte & OPCODE];
    if (byte & RSV2_RSV3)
        return "a reserved bit of a frame is set (RSV2 or RSV3)";
    if (class == RESERVED)
        return "a frame has a reserved opcode";
    if (class == CONTROL && !(byte & FIN))
        return "a control frame is fragmented";
    if (!(byte & RSV1))
        return NULL;
    if (!rules->rsv1)
        return "a reserved bit of a frame is set (RSV1), but no extension was negotiated";
    return class == DATA ? NULL : "the bit for compression (RSV1) is set in a frame that does not begin a message";
}

/* Returns what is wrong with the second byte of a frame with that opcode, or NULL. */
static const char *check_second(unsigned byte, unsigned opcode, const struct mk__ws_rules *rules)
{
    if (!(byte & MASK) != !rules->masked)
        return rules->masked ? "a frame of the client is not masked" : "a frame of the server is masked";
    if (mk__ws_opcode_is_control((uint8_t)opcode) && (byte & LENGTH) > MK__WS_CONTROL_BYTES_MAX)
        return "a control frame is longer than 125 bytes";
    return NULL;
}

/*
 * Reads the length from as many of its bytes as are there, and checks the range in which it then must be.
 * Returns 0, -1002 or -1009. `*ret_len` is the least that it can be.
 */
static int read_length(const uint8_t *p, size_t n, const struct length_form *form, uint64_t max, uint64_t *ret_len,
                       const char **ret_reason)
{
    static const char too_big[] = "a frame is longer than the limit";
    uint64_t least = 0, rest = ~(uint64_t)0 >> (64 - 8 * form->bytes);
    if (form->min > max)
        return fail_parse(MK_WS_TOO_BIG, too_big, ret_reason);
    for (unsigned i = 0; i < form->bytes && i < n; i++) {
        rest >>= 8;
        least |= (uint64_t)p[i] << 8 * (form->bytes - 1 - i);
    }
    if (least >> 63)
        return fail_parse(MK_WS_PROTOCOL_ERROR, "the length of a frame has more than 63 bits", ret_reason);
    if ((least | rest) < form->min)
        return fail_parse(MK_WS_PROTOCOL_ERROR, "the length of a frame is not in its shortest form", ret_reason);
    if (least > max)
        return fail_parse(MK_WS_TOO_BIG, too_big, ret_reason);
    *ret_len = least;
    return 0;
}

static int parse_length(const uint8_t *p, size_t n, const struct mk__ws_rules *rules, struct mk__ws_head *h,
                        const char **ret_reason)
{
    const struct length_form *form = find_form(p[1] & LENGTH);
    uint64_t max = mk__ws_opcode_is_control(h->opcode) ? MK__WS_CONTROL_BYTES_MAX : rules->frame_max;
    h->size = (uint8_t)(2 + form->bytes + (h->masked ? KEY_BYTES : 0));
    if (form->bytes)
        return read_length(p + 2, n - 2, form, max, &h->len, ret_reason);
    h->len = p[1] & LENGTH;
    return h->len <= max ? 0 : fail_parse(MK_WS_TOO_BIG, "a frame is longer than the limit", ret_reason);
}

int mk__ws_head_parse(const void *bytes, size_t n, const struct mk__ws_rules *rules, struct mk__ws_head *ret,
                      const char **ret_reason)
{
    const uint8_t *p = bytes;
    const char *wrong = n > 0 ? check_first(p[0], rules) : NULL;
    if (!wrong && n > 1)
        wrong = check_second(p[1], p[0] & OPCODE, rules);
    if (wrong)
        return fail_parse(MK_WS_PROTOCOL_ERROR, wrong, ret_reason);
    if (n < 2)
        return 0;

    *ret = (struct mk__ws_head){.fin = p[0] & FIN, .rsv1 = p[0] & RSV1, .masked = p[1] & MASK, .opcode = p[0] & OPCODE};
    int err = parse_length(p, n, rules, ret, ret_reason);
    if (err < 0)
        return err;
    if (n < ret->size)
        return 0;
    if (ret->masked)
        memcpy(&ret->key, p + ret->size - KEY_BYTES, KEY_BYTES);
    return ret->size;
}

size_t mk__ws_head_write(uint8_t to[MK__WS_HEAD_BYTES_MAX], const struct mk__ws_head *h)
{
    unsigned seven = h->len < 126 ? (unsigned)h->len : h->len < 1 << 16 ? 126 : 127;
    const struct length_form *form = find_form(seven);
    size_t n = 2;
    assert(opcode_classes[h->opcode & OPCODE] != RESERVED && !(h->opcode & ~OPCODE) && !(h->len >> 63));
    assert(!mk__ws_opcode_is_control(h->opcode) || (h->fin && h->len <= MK__WS_CONTROL_BYTES_MAX));
    to[0] = (uint8_t)((h->fin ? FIN : 0) | (h->rsv1 ? RSV1 : 0) | h->opcode);
    to[1] = (uint8_t)((h->masked ? MASK : 0) | seven);
    for (unsigned left = form->bytes; left > 0; left--)
        to[n++] = (uint8_t)(h->len >> 8 * (left - 1));
    if (h->masked) {
        memcpy(to + n, &h->key, KEY_BYTES);
        n += KEY_BYTES;
    }
    return n;
}

/* ── fragments ── */

int mk__ws_sequence_step(struct mk__ws_sequence *s, const struct mk__ws_head *h, const char **ret_reason)
{
    if (mk__ws_opcode_is_control(h->opcode))
        return 0;
    if (h->opcode == MK__WS_OP_CONTINUATION) {
        if (!s->open)
            return fail_parse(MK_WS_PROTOCOL_ERROR, "a continuation frame continues no message", ret_reason);
    } else {
        if (s->open)
            return fail_parse(MK_WS_PROTOCOL_ERROR, "a message begins before the last one has ended", ret_reason);
        s->opcode = h->opcode;
        s->compressed = h->rsv1;
    }
    s->open = !h->fin;
    return 0;
}

/* ── Close ── */

bool mk__ws_code_is_valid(unsigned code)
{
    static const uint16_t ranges[][2] = {{1000, 1003}, {1007, 1014}, {3000, 4999}};
    for (size_t i = 0; i < MK_COUNT_OF(ranges); i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

int mk__ws_close_parse(const void *bytes, size_t n, uint16_t *ret_code, struct mk_str *ret_text,
                       const char **ret_reason)
{
    const uint8_t *p = bytes;
    *ret_code = MK_WS_NO_STATUS;
    *ret_text = MK_STR_NONE;
    if (n == 0)
        return 0;
    if (n == 1)
        return fail_parse(MK_WS_PROTOCOL_ERROR, "the payload of a Close frame is one byte", ret_reason);
    uint16_t code = (uint16_t)(p[0] << 8 | p[1]);
    if (!mk__ws_code_is_valid(code))
        return fail_parse(MK_WS_PROTOCOL_ERROR, "a Close frame has a code that must not be sent", ret_reason);
    if (!mk__utf8_is_valid(p + 2, n - 2))
        return fail_parse(MK_WS_INVALID_DATA, "the text of a Close frame is not UTF-8", ret_reason);
    *ret_code = code;
    *ret_text = mk_str((const char *)p + 2, n - 2);
    return 0;
}

size_t mk__ws_close_write(uint8_t to[MK__WS_CONTROL_BYTES_MAX], uint16_t code, struct mk_str text)
{
    if (code == MK_WS_NO_STATUS)
        return 0;
    assert(mk__ws_code_is_valid(code));
    size_t room = text.len < MK__WS_REASON_BYTES_MAX ? text.len : (size_t)MK__WS_REASON_BYTES_MAX;
    size_t n = mk__utf8_prefix(text.p, room);
    to[0] = (uint8_t)(code >> 8);
    to[1] = (uint8_t)code;
    if (n)
        memcpy(to + 2, text.p, n);
    return 2 + n;
}
