// SPDX-License-Identifier: Apache-2.0
#include "frame.h"

#include <assert.h>
#include <string.h>

/* ── masks ── */

/* At any address, of bytes of any type. */
typedef uint64_t lanes __attribute__((vector_size(16), aligned(1), may_alias));

enum { MASK_BLOCK_BYTES = 4 * sizeof(lanes) };

/* All vectors are loaded before one is stored: `to` and `from` may be the same. */
static void mask_block(uint8_t *to, const uint8_t *from, uint64_t key)
{
    const lanes *in = (const lanes *)from, wide = {key, key};
    lanes *out = (lanes *)to, a = in[0] ^ wide, b = in[1] ^ wide, c = in[2] ^ wide, d = in[3] ^ wide;
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

/* Returns the key as it applies to the bytes from `offset` on, repeated. */
static uint64_t rotate_key(uint32_t key, size_t offset)
{
    uint8_t twice[2 * sizeof(key)];
    memcpy(twice, &key, sizeof(key));
    memcpy(twice + sizeof(key), &key, sizeof(key));
    uint32_t rotated;
    memcpy(&rotated, twice + offset % sizeof(key), sizeof(rotated));
    return (uint64_t)rotated << 32 | rotated;
}

void mk__ws_mask(void *to, const void *from, size_t n, uint32_t key, size_t offset)
{
    uint64_t wide = rotate_key(key, offset), word;
    const uint8_t *in = from;
    uint8_t *out = to, bytes[sizeof(wide)];
    for (; n >= MASK_BLOCK_BYTES; n -= MASK_BLOCK_BYTES, in += MASK_BLOCK_BYTES, out += MASK_BLOCK_BYTES)
        mask_block(out, in, wide);
    for (; n >= sizeof(word); n -= sizeof(word), in += sizeof(word), out += sizeof(word)) {
        memcpy(&word, in, sizeof(word));
        word ^= wide;
        memcpy(out, &word, sizeof(word));
    }
    memcpy(bytes, &wide, sizeof(bytes));
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] ^ bytes[i];
}

/*
 * ── UTF-8 ──
 *
 * The validator of UTF-8. Of 16 bytes at a time, each is compared with the three before it, and blocks of 64
 * bytes of ASCII are skipped. Characters that are cut by the ends of a piece, and short pieces, go byte by byte.
 */

typedef uint8_t vector __attribute__((vector_size(16)));
typedef int8_t signed_vector __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

enum { VECTOR = sizeof(vector), BLOCK = 4 * VECTOR, BEFORE = 3 };

/* ── one byte ── */

static bool is_ascii(uint8_t byte)
{
    return byte < 0x80;
}

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* What follows a first byte (RFC 3629 section 4, UTF8-tail is 80..BF); rows in order, each from `first` on. */
static const struct lead {
    uint8_t first, left, min, max;
} leads[] = {
    {0xf5, 0, 0xff, 0},    {0xf4, 3, 0x80, 0x8f}, {0xf1, 3, 0x80, 0xbf}, {0xf0, 3, 0x90, 0xbf}, {0xee, 2, 0x80, 0xbf},
    {0xed, 2, 0x80, 0x9f}, {0xe1, 2, 0x80, 0xbf}, {0xe0, 2, 0xa0, 0xbf}, {0xc2, 1, 0x80, 0xbf}, {0x80, 0, 0xff, 0},
};

static bool feed_lead(struct mk__utf8 *u, uint8_t byte)
{
    const struct lead *l = leads;
    if (is_ascii(byte))
        return true;
    while (byte < l->first)
        l++;
    u->left = l->left;
    u->min = l->min;
    u->max = l->max;
    u->bad = !l->left;
    return !u->bad;
}

static bool feed_byte(struct mk__utf8 *u, uint8_t byte)
{
    if (!u->left)
        return feed_lead(u, byte);
    u->bad = byte < u->min || byte > u->max;
    u->left--;
    u->min = 0x80;
    u->max = 0xbf;
    return !u->bad;
}

/* ── vectors ── */

static vector load_vector(const uint8_t *p)
{
    vector v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static bool has_bits(vector v)
{
    halves h = (halves)v;
    return h[0] | h[1];
}

static vector fill_vector(uint8_t byte)
{
    return (vector){} + byte;
}

/* Returns a vector with the highest bit set where one of the bytes of a block is no ASCII. */
static vector find_non_ascii(const uint8_t *p)
{
    return (load_vector(p) | load_vector(p + VECTOR) | load_vector(p + 2 * VECTOR) | load_vector(p + 3 * VECTOR)) &
           fill_vector(0x80);
}

/*
 * Returns a vector with a bit set where one of 16 bytes is an error after the three bytes before it, which are valid so
 * far. A first byte at the end is not yet compared with what follows it.
 */
static vector find_errors(const uint8_t *p)
{
    vector now = load_vector(p), last = load_vector(p - 1);
    vector continuations = (vector)((signed_vector)now < (signed_vector)fill_vector(0xc0));
    vector expected = (vector)(last >= fill_vector(0xc0)) | (vector)(load_vector(p - 2) >= fill_vector(0xe0)) |
                      (vector)(load_vector(p - 3) >= fill_vector(0xf0));
    vector errors = continuations ^ expected;
    errors |= (vector)((now & 0xfe) == fill_vector(0xc0)) | (vector)(now >= fill_vector(0xf5));
    errors |= (vector)(last == fill_vector(0xe0)) & (vector)(now < fill_vector(0xa0));  /* overlong */
    errors |= (vector)(last == fill_vector(0xed)) & (vector)(now >= fill_vector(0xa0)); /* a surrogate */
    errors |= (vector)(last == fill_vector(0xf0)) & (vector)(now < fill_vector(0x90));  /* overlong */
    errors |= (vector)(last == fill_vector(0xf4)) & (vector)(now >= fill_vector(0x90)); /* above U+10FFFF */
    return errors;
}

/* Returns where the character of the bytes before `i` begins if it may be incomplete, else `i`. */
static size_t find_last_lead(const uint8_t *p, size_t i)
{
    for (size_t back = 1; back <= BEFORE; back++)
        if (!is_continuation(p[i - back]))
            return i - back;
    return i;
}

/* Returns as find_errors(), for the first bytes of a text: as if ASCII were before them. */
static vector find_first_errors(const uint8_t *p)
{
    uint8_t bytes[BEFORE + VECTOR] = {};
    memcpy(bytes + BEFORE, p, VECTOR);
    return find_errors(bytes + BEFORE);
}

/* Returns as find_errors(), for a block. After ASCII, a block of ASCII has none. */
static vector find_block_errors(const uint8_t *p)
{
    if (is_ascii(p[-1]) && !has_bits(find_non_ascii(p)))
        return (vector){};
    return find_errors(p) | find_errors(p + VECTOR) | find_errors(p + 2 * VECTOR) | find_errors(p + 3 * VECTOR);
}

/*
 * Checks `n` bytes, at least a vector, that begin with a character.
 * Returns where the last character begins if it may be incomplete, else `n`; `*ret_bad` is set after an error before
 * it.
 */
static size_t check_vectors(const uint8_t *p, size_t n, bool *ret_bad)
{
    vector errors = find_first_errors(p);
    size_t i = VECTOR;
    for (; n - i >= BLOCK && !has_bits(errors); i += BLOCK)
        errors = find_block_errors(p + i);
    for (; n - i >= VECTOR; i += VECTOR)
        errors |= find_errors(p + i);
    if (i < n && n >= BEFORE + VECTOR) { /* some of these bytes are compared twice */
        errors |= find_errors(p + n - VECTOR);
        i = n;
    }
    *ret_bad = has_bits(errors);
    return find_last_lead(p, i);
}

bool mk__utf8_feed(struct mk__utf8 *u, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t i = 0;
    while (i < n && u->left && !u->bad)
        feed_byte(u, p[i++]);
    if (n - i >= VECTOR && !u->bad)
        i += check_vectors(p + i, n - i, &u->bad);
    while (i < n && !u->bad)
        feed_byte(u, p[i++]);
    return !u->bad;
}

bool mk__utf8_is_valid(const void *bytes, size_t n)
{
    struct mk__utf8 u = {};
    return mk__utf8_feed(&u, bytes, n) && mk__utf8_complete(&u);
}

size_t mk__utf8_prefix(const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    struct mk__utf8 u = {};
    size_t end = 0;
    for (size_t i = 0; i < n && feed_byte(&u, p[i]); i++)
        if (!u.left)
            end = i + 1;
    return end;
}

/* ── frames ── */

enum { FIN = 0x80, RSV1 = 0x40, RSV2_RSV3 = 0x30, OPCODE = 0x0f, MASK = 0x80, LENGTH = 0x7f, KEY_BYTES = 4 };

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
        return mk__ws_return_fault(MK_WS_TOO_BIG, too_big, ret_reason);
    for (unsigned i = 0; i < form->bytes && i < n; i++) {
        rest >>= 8;
        least |= (uint64_t)p[i] << 8 * (form->bytes - 1 - i);
    }
    if (least >> 63)
        return mk__ws_return_fault(MK_WS_PROTOCOL_ERROR, "the length of a frame has more than 63 bits", ret_reason);
    if ((least | rest) < form->min)
        return mk__ws_return_fault(MK_WS_PROTOCOL_ERROR, "the length of a frame is not in its shortest form",
                                   ret_reason);
    if (least > max)
        return mk__ws_return_fault(MK_WS_TOO_BIG, too_big, ret_reason);
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
    return h->len <= max ? 0 : mk__ws_return_fault(MK_WS_TOO_BIG, "a frame is longer than the limit", ret_reason);
}

int mk__ws_head_parse(const void *bytes, size_t n, const struct mk__ws_rules *rules, struct mk__ws_head *ret,
                      const char **ret_reason)
{
    const uint8_t *p = bytes;
    const char *wrong = n > 0 ? check_first(p[0], rules) : NULL;
    if (!wrong && n > 1)
        wrong = check_second(p[1], p[0] & OPCODE, rules);
    if (wrong)
        return mk__ws_return_fault(MK_WS_PROTOCOL_ERROR, wrong, ret_reason);
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
            return mk__ws_return_fault(MK_WS_PROTOCOL_ERROR, "a continuation frame continues no message", ret_reason);
    } else {
        if (s->open)
            return mk__ws_return_fault(MK_WS_PROTOCOL_ERROR, "a message begins before the last one has ended",
                                       ret_reason);
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
        return mk__ws_return_fault(MK_WS_PROTOCOL_ERROR, "the payload of a Close frame is one byte", ret_reason);
    uint16_t code = (uint16_t)(p[0] << 8 | p[1]);
    if (!mk__ws_code_is_valid(code))
        return mk__ws_return_fault(MK_WS_PROTOCOL_ERROR, "a Close frame has a code that must not be sent", ret_reason);
    if (!mk__utf8_is_valid(p + 2, n - 2))
        return mk__ws_return_fault(MK_WS_INVALID_DATA, "the text of a Close frame is not UTF-8", ret_reason);
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
