// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP/2 frames (RFC 9113 sections 4 and 6): bytes in, heads and payloads out. Pure and resumable; a reader belongs to
 * either side of a connection.
 *
 *     length 3 · type 1 · flags 1 · stream 4 │ pad length · priority │ content ... │ padding
 *     └─────────────── head ───────────────┘ └ kept in r->payload ──┘└ passed on ─┘└ skipped ┘
 *
 * The content of DATA, HEADERS and CONTINUATION is passed on as it arrives. All other frames are small: their payload
 * is kept until it is complete.
 */
#ifndef MK_HTTP_H2_FRAME_H
#define MK_HTTP_H2_FRAME_H

#include <monkey/base/str.h>

enum {
    MK__H2_FRAME_HEAD_BYTES = 9,
    MK__H2_FRAME_BYTES = 16 * 1024, /* largest payload, received and sent: SETTINGS_MAX_FRAME_SIZE */
    MK__H2_FRAME_KEPT_BYTES = 192,  /* of a payload that is kept: 32 entries of SETTINGS */
    MK__H2_FRAME_SETTING_BYTES = 6,
};

/* Frame types: section 6; RFC 9218 section 7.1. */
enum mk__h2_frame_type {
    MK__H2_FRAME_DATA = 0,
    MK__H2_FRAME_HEADERS = 1,
    MK__H2_FRAME_PRIORITY = 2,
    MK__H2_FRAME_RST_STREAM = 3,
    MK__H2_FRAME_SETTINGS = 4,
    MK__H2_FRAME_PUSH_PROMISE = 5,
    MK__H2_FRAME_PING = 6,
    MK__H2_FRAME_GOAWAY = 7,
    MK__H2_FRAME_WINDOW_UPDATE = 8,
    MK__H2_FRAME_CONTINUATION = 9,
    MK__H2_FRAME_PRIORITY_UPDATE = 16,
};

enum {
    MK__H2_FLAG_END_STREAM = 0x1,
    MK__H2_FLAG_ACK = 0x1, /* of SETTINGS and PING */
    MK__H2_FLAG_END_HEADERS = 0x4,
    MK__H2_FLAG_PADDED = 0x8,
    MK__H2_FLAG_PRIORITY = 0x20,
};

/* Section 6.5.2; RFC 8441 section 3; RFC 9218 section 2.1. */
enum mk__h2_setting {
    MK__H2_SETTING_HEADER_TABLE_SIZE = 1,
    MK__H2_SETTING_ENABLE_PUSH = 2,
    MK__H2_SETTING_MAX_CONCURRENT_STREAMS = 3,
    MK__H2_SETTING_INITIAL_WINDOW_SIZE = 4,
    MK__H2_SETTING_MAX_FRAME_SIZE = 5,
    MK__H2_SETTING_MAX_HEADER_LIST_SIZE = 6,
    MK__H2_SETTING_ENABLE_CONNECT_PROTOCOL = 8,
    MK__H2_SETTING_NO_RFC7540_PRIORITIES = 9,
};

/* Section 7. */
enum mk__h2_error {
    MK__H2_ERR_NO_ERROR = 0,
    MK__H2_ERR_PROTOCOL = 1,
    MK__H2_ERR_INTERNAL = 2,
    MK__H2_ERR_FLOW_CONTROL = 3,
    MK__H2_ERR_STREAM_CLOSED = 5,
    MK__H2_ERR_FRAME_SIZE = 6,
    MK__H2_ERR_REFUSED_STREAM = 7,
    MK__H2_ERR_COMPRESSION = 9,
    MK__H2_ERR_ENHANCE_YOUR_CALM = 11,
};

struct mk__h2_frame {
    uint32_t len; /* of the payload */
    int32_t stream_id;
    uint8_t type, flags;
};

struct mk__h2_frame_reader {
    struct mk__h2_frame frame;
    uint32_t content; /* bytes to be passed on */
    uint32_t rest;    /* bytes after them, which are skipped */
    uint8_t head_len; /* bytes of the head that were read; all: the payload follows */
    uint8_t kept_len; /* bytes of the payload that are kept, */
    uint8_t kept_max; /* and how many there will be */
    uint8_t payload[MK__H2_FRAME_KEPT_BYTES];
};

enum mk__h2_frame_event {
    MK__H2_READ_MORE,  /* the input is used up */
    MK__H2_READ_BEGIN, /* r->frame is complete */
    MK__H2_READ_BYTES, /* a part of the content */
    MK__H2_READ_END,   /* of the payload: of frames that are kept, its first r->kept_len bytes are in r->payload */
    MK__H2_READ_PADDING_ERROR, /* the padding is longer than the payload; nothing more can be read */
};

/* Takes the next event off `in`. `*ret_bytes` is the part of the content, in `in`. */
enum mk__h2_frame_event mk__h2_frame_read(struct mk__h2_frame_reader *r, struct mk_str *in, struct mk_str *ret_bytes);
/* Skips the payload of the frame that has begun: only its END follows. */
void mk__h2_frame_skip(struct mk__h2_frame_reader *r);

/*
 * Checks what the head of a frame says without knowledge of the connection: its length, and whether it belongs to a
 * stream. Returns MK__H2_ERR_NO_ERROR or the error, which ends the connection, also where section 6.3 would be content
 * with the stream.
 */
enum mk__h2_error mk__h2_frame_check(const struct mk__h2_frame *frame);

/* Returns the stream on which the stream of a HEADERS or PRIORITY frame depends; -1: the frame does not say. */
int32_t mk__h2_frame_dependency(const struct mk__h2_frame_reader *r);

/* Reads a number of four bytes. */
static inline uint32_t mk__h2_frame_get32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* Write a number, or the head of a frame. Return their end. */
char *mk__h2_frame_put32(char *to, uint32_t value);
char *mk__h2_frame_put_setting(char *to, enum mk__h2_setting setting, uint32_t value);
char *mk__h2_frame_put_head(char *to, size_t len, enum mk__h2_frame_type type, uint8_t flags, int32_t stream_id);

#endif
