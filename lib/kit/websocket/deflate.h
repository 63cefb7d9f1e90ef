// SPDX-License-Identifier: Apache-2.0
/*
 * The payloads of permessage-deflate (RFC 7692 section 7.2), by zlib. Memory comes from an account.
 *
 *     a context           bytes
 *     to compress         2^(bits + 2) + 2^(memory level + 9) + 7 KB: 263 KB with 15 and 8, 10 KB with 9 and 1
 *     to decompress       2^bits + 10 KB, from the first compressed message on
 *     ... shrunk          at most 2^bits: what later messages may refer to
 *
 * Both are created by the first message that needs them. One that compresses can be freed between any two messages; the
 * next one is then compressed without references to those before, which every peer accepts.
 */
#ifndef MK_WEBSOCKET_DEFLATE_H
#define MK_WEBSOCKET_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <monkey/base/arena.h>
#include <monkey/base/buf.h>

struct z_stream_s;

/* ── compressing ── */

struct mk__ws_deflater {
    struct mk_account *account;
    struct z_stream_s *z; /* NULL: not created yet, or freed */
    uint8_t level;        /* 1 (fast) to 9 (small) */
    uint8_t memory_level; /* 1 to 9 */
    uint8_t bits;         /* of the window: 9 to 15 */
    bool no_context;      /* no message refers to those before */
};

/*
 * Sets the fields, with level 1 and memory level 8, which can be changed before the first message; allocates nothing.
 * The account may be NULL.
 */
void mk__ws_deflater_init(struct mk__ws_deflater *d, struct mk_account *account, unsigned bits, bool no_context);

/*
 * Appends the payload of a message of `n` bytes, which are not in `out`.
 * Returns 0, -ENOBUFS (the payload and 12 bytes more may be longer than the maximum of `out`), -EMSGSIZE (4 GB or
 * more) or -ENOMEM. After an error nothing is appended, and the next message does not refer to those before.
 */
int mk__ws_deflater_compress(struct mk__ws_deflater *d, const void *data, size_t n, struct mk_buf *out);

/* Frees the memory. The deflater can be used again. */
void mk__ws_deflater_release(struct mk__ws_deflater *d);

/* Its account is there no more: what is freed from now on is not counted. */
void mk__ws_deflater_forget_account(struct mk__ws_deflater *d);

/* ── decompressing ── */

struct mk__ws_inflater {
    struct mk_account *account;
    struct z_stream_s *z; /* NULL: not created yet, shrunk or freed */
    char *window;         /* of a shrunk one */
    uint32_t window_len;
    uint8_t bits;           /* of the peer's window: 8 to 15 */
    uint8_t tail_used;      /* bytes of the tail of the current message */
    bool no_context;        /* no message of the peer refers to those before */
    bool begun;             /* a message is under way */
    bool empty;             /* it has no bytes yet */
    bool ended;             /* the last of its bytes ended a block that is marked as the last one */
    bool aligned;           /* the last bytes ended a block, and no bits are left */
    uint64_t message_max;   /* decompressed bytes of a message */
    uint64_t message_bytes; /* of the current one */
};

/* Input that is left, and room for output; each call advances both. */
struct mk__ws_inflate_data {
    const uint8_t *in;
    size_t in_len;
    uint8_t *out;
    size_t out_len;
};

/* Sets the fields; allocates nothing. The account may be NULL. */
void mk__ws_inflater_init(struct mk__ws_inflater *i, struct mk_account *account, unsigned bits, bool no_context,
                          uint64_t message_max);

/*
 * Decompresses a piece of a message; `last`: it is the last one, and may be empty.
 * Returns 0 (all input is used; with `last` the message has ended, too), MK_AGAIN (call again with more room, and
 * `last` as before), -1007 (not valid, or cut), -1009 (longer than `message_max`) or -1011 (no memory); with an error a
 * sentence in `*ret_reason`, and the inflater can only be released. Output before an error is valid.
 */
int mk__ws_inflater_feed(struct mk__ws_inflater *i, struct mk__ws_inflate_data *data, bool last,
                         const char **ret_reason);

/*
 * Frees as much memory as possible until the next message. Does nothing within a message, or if there is no memory for
 * the window's copy.
 */
void mk__ws_inflater_shrink(struct mk__ws_inflater *i);

/* Frees the memory. */
void mk__ws_inflater_release(struct mk__ws_inflater *i);

/* Its account is there no more, as for deflaters. */
void mk__ws_inflater_forget_account(struct mk__ws_inflater *i);

#endif
