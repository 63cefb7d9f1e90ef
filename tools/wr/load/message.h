// SPDX-License-Identifier: Apache-2.0
/*
 * The client's side of a WebSocket (RFC 6455): the handshake, a message that is sent, and the messages that are
 * received, which must have the same bytes. Pure and resumable, and independent of lib/kit/websocket, which it
 * measures.
 */
#ifndef WR_LOAD_MESSAGE_H
#define WR_LOAD_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <monkey/base/arena.h>

enum {
    MESSAGE_HANDSHAKE_MAX = 4096, /* the head of the answer to the handshake */
    MESSAGE_BYTES_MAX = 1 << 24,
};

/* What all connections send; read-only. */
struct message {
    struct mk_str handshake; /* the request */
    struct mk_str frame;     /* the message in a masked frame */
    struct mk_str text;      /* its bytes */
};

enum reader_state { READER_STATUS_LINE, READER_HEAD, READER_FRAME_HEAD, READER_PAYLOAD };

enum reader_event {
    READER_MORE,    /* all bytes were used */
    READER_OPENED,  /* the handshake is complete */
    READER_MESSAGE, /* a message is complete */
    READER_CLOSED,  /* a close frame */
};

/* What a connection receives; initialized with zeros. */
struct reader {
    uint8_t state; /* enum reader_state */
    bool in_message, is_control, is_last, is_wrong;
    uint8_t head_len;     /* bytes of the head of the frame that were read */
    uint8_t ends;         /* characters of the empty line that were read */
    uint16_t bytes;       /* of the answer to the handshake */
    uint64_t left;        /* of the payload of the frame */
    uint64_t len;         /* of the message so far */
    uint64_t frame_bytes; /* of all frames of the message, with their heads */
    unsigned char head[10];
};

/*
 * Prepares the handshake for `path` and a message of `bytes` printable characters. `headers`: more lines.
 * Returns 0 or -ENOMEM.
 */
int message_prepare(struct message *m, struct mk_arena *arena, struct mk_str host, struct mk_str path,
                    struct mk_str headers, size_t bytes, uint32_t key);

/*
 * Reads up to the next event, and stores in `*ret_used` how many bytes were used. With READER_MESSAGE `r->is_wrong`
 * tells whether the message differs from the one that was sent, and r->len and r->frame_bytes are its lengths.
 * Returns enum reader_event, or -EINVAL: malformed, or the handshake was refused; final.
 */
int reader_read(struct reader *r, const struct message *m, const char *in, size_t len, size_t *ret_used);

#endif
