// SPDX-License-Identifier: Apache-2.0
#ifndef MK_WEBSOCKET_FRAME_H
#define MK_WEBSOCKET_FRAME_H

#include <monkey/kit/websocket.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The masking of payloads (RFC 6455 section 5.3): byte i of a frame's payload is XORed with byte i mod 4 of the key.
 * Masking and unmasking are the same. Pure.
 */

/*
 * Masks `n` bytes, which stand `offset` bytes after the beginning of the payload. `key` is as in the frame, in the
 * order of memory. `to` and `from` are the same, or do not overlap.
 */
void mk__ws_mask(void *to, const void *from, size_t n, uint32_t key, size_t offset);

/*
 * Checks that text is UTF-8 (RFC 3629), piece by piece: surrogates, overlong forms and values above U+10FFFF are
 * errors. A piece is rejected if no continuation could make it valid, even if its last character is incomplete. Pure.
 */

/* Initialized with zeros; text can begin again when mk__utf8_complete() is true. */
struct mk__utf8 {
    uint8_t left;     /* bytes that the last character still needs */
    uint8_t min, max; /* of the next one of them */
    bool bad;         /* an error was found: all calls fail */
};

/* Takes the next piece into account. Returns false if the text is not UTF-8. */
bool mk__utf8_feed(struct mk__utf8 *u, const void *bytes, size_t n);

/* Returns true if the text so far is UTF-8 and does not end within a character. */
static inline bool mk__utf8_complete(const struct mk__utf8 *u)
{
    return !u->left && !u->bad;
}

/* Returns true if `n` bytes are UTF-8. */
bool mk__utf8_is_valid(const void *bytes, size_t n);

/* Returns how many bytes at the beginning are complete valid characters. One byte at a time: for short texts. */
size_t mk__utf8_prefix(const void *bytes, size_t n);

/*
 * WebSocket frames (RFC 6455 section 5): their heads, the order of fragments, the payload of Close. Pure.
 *
 *      0               1               2 ...
 *     │F│R│R│R│opcode │M│ 7 bits      │ 0, 2 or 8 bytes │ 0 or 4 bytes │ payload, XORed with the key
 *     │I│S│S│S│       │A│ of length   │ of length       │ of masking   │ if there is one
 *     │N│V│V│V│       │S│             │                 │ key          │
 *     │ │1│2│3│       │K│             │                 │              │
 *
 * Functions that find errors of the peer return 0 (or more) or the negated status code that the Close frame carries,
 * and store a sentence for the log, a literal, in `*ret_reason`.
 */
enum mk__ws_opcode {
    MK__WS_OP_CONTINUATION = 0,
    MK__WS_OP_TEXT = 1,
    MK__WS_OP_BINARY = 2,
    MK__WS_OP_CLOSE = 8,
    MK__WS_OP_PING = 9,
    MK__WS_OP_PONG = 10,
};

enum {
    MK__WS_HEAD_BYTES_MAX = 14,
    MK__WS_CONTROL_BYTES_MAX = 125,                         /* the payload of a control frame */
    MK__WS_REASON_BYTES_MAX = MK__WS_CONTROL_BYTES_MAX - 2, /* after the code of Close */
};

struct mk__ws_head {
    bool fin, rsv1, masked;
    uint8_t opcode; /* enum mk__ws_opcode */
    uint8_t size;   /* bytes of the head */
    uint64_t len;   /* bytes of the payload, below 2^63 */
    uint32_t key;   /* as in memory; 0 if not masked */
};

/* What frames of this peer may be. */
struct mk__ws_rules {
    bool masked;        /* they must be masked, as those of clients; else they must not be, as those of servers */
    bool rsv1;          /* permessage-deflate is in use */
    uint64_t frame_max; /* the longest payload of a data frame */
};

/* The message whose fragments are under way. Initialized with zeros. */
struct mk__ws_sequence {
    uint8_t opcode;  /* of the message of the last data frame: MK__WS_OP_TEXT or _BINARY; 0 before the first */
    bool compressed; /* its first frame had RSV1 */
    bool open;       /* its last frame is still to come */
};

/* Returns true for Close, Ping, Pong and the reserved opcodes above them. */
static inline bool mk__ws_opcode_is_control(uint8_t opcode)
{
    return opcode & 8;
}

/*
 * Parses the head of a frame from `n` bytes. An error is returned with the first byte that shows it.
 * Returns the size of the head, 0 (it is incomplete: call again with the same bytes and more), -1002 or -1009. `*ret`
 * is complete only with a size.
 */
int mk__ws_head_parse(const void *bytes, size_t n, const struct mk__ws_rules *rules, struct mk__ws_head *ret,
                      const char **ret_reason);

/* Writes a head with the shortest encoding of `h->len`; `h->size` is not read. Returns its size. */
size_t mk__ws_head_write(uint8_t to[MK__WS_HEAD_BYTES_MAX], const struct mk__ws_head *h);

/*
 * Checks that a frame may follow the ones before, and takes it into account. Control frames may stand anywhere.
 * Returns 0 or -1002.
 */
int mk__ws_sequence_step(struct mk__ws_sequence *s, const struct mk__ws_head *h, const char **ret_reason);

/* Sets the reason of a close. Returns the code, negative. */
static inline int mk__ws_return_fault(enum mk_ws_code code, const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return -(int)code;
}

/* Returns true for a status code that an endpoint may send (RFC 6455 section 7.4). */
bool mk__ws_code_is_valid(unsigned code);

/*
 * Parses the unmasked payload of Close. `*ret_text` points into it. An empty payload has code 1005.
 * Returns 0, -1002 (one byte, or a code that must not be sent) or -1007 (the text is not UTF-8).
 */
int mk__ws_close_parse(const void *bytes, size_t n, uint16_t *ret_code, struct mk_str *ret_text,
                       const char **ret_reason);

/*
 * Writes the payload of Close: nothing for MK_WS_NO_STATUS, else the code, which must be valid, and as many
 * complete characters of `text` as there is room for, up to the first byte that is not UTF-8.
 * Returns the bytes written.
 */
size_t mk__ws_close_write(uint8_t to[MK__WS_CONTROL_BYTES_MAX], uint16_t code, struct mk_str text);

#endif
