// SPDX-License-Identifier: Apache-2.0
/*
 * WebSocket frames (RFC 6455 section 5): their heads, the order of fragments, the payload of Close. Pure.
 *
 *      0               1               2 ...
 *     │F│R│R│R│opcode │M│ 7 bits      │ 0, 2 or 8 bytes │ 0 or 4 bytes │ payload, XORed with the key
 *     │I│S│S│S│       │A│ of length   │ of length       │ of masking   │ if there is one (mask.h)
 *     │N│V│V│V│       │S│             │                 │ key          │
 *     │ │1│2│3│       │K│             │                 │              │
 *
 * Functions that find errors of the peer return 0 (or more) or the negated status code that the Close frame carries,
 * and store a sentence for the log, a literal, in `*ret_reason`.
 */
#ifndef MK_WEBSOCKET_FRAME_H
#define MK_WEBSOCKET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <monkey/kit/websocket.h>

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
