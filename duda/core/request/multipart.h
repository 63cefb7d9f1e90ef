// SPDX-License-Identifier: Apache-2.0
/*
 * Bodies of the type multipart/form-data (RFC 7578, RFC 2046 section 5.1), in pieces of any length:
 *
 *     preamble ─► delimiter ─► head of a part ─► its content ─► delimiter ─► ... ─► closing delimiter ─► epilogue
 *
 * Pure. Names are as the client has sent them: browsers write %22 for a quote, and that is not decoded.
 */
#ifndef DUDA_CORE_REQUEST_MULTIPART_H
#define DUDA_CORE_REQUEST_MULTIPART_H

#include <monkey/base/str.h>

#include <stdbool.h>
#include <stdint.h>

enum { MULTIPART_BOUNDARY_MAX = 70, MULTIPART_HEAD_MAX = 4096 };

/* The strings are valid until the next call, and have no control bytes. */
struct multipart_part {
    struct mk_str name;
    struct mk_str file_name; /* without folders; empty: the client gives none */
    struct mk_str type;      /* Content-Type with its parameters; `.p` NULL: there is none */
    bool is_file;
};

/* Each returns 0, or -errno, with which multipart_feed() ends. */
struct multipart_events {
    int (*begin)(const struct multipart_part *part, void *ctx);
    /* The content in pieces, which are not empty, and point into what is fed or into the parser. */
    int (*data)(struct mk_str piece, void *ctx);
    int (*end)(void *ctx);
};

enum multipart_state {
    MULTIPART_PREAMBLE,
    MULTIPART_DELIMITER, /* after it */
    MULTIPART_PADDING,   /* blanks after it */
    MULTIPART_LINE_END,  /* CR */
    MULTIPART_CLOSING,   /* one dash */
    MULTIPART_HEAD,
    MULTIPART_CONTENT,
    MULTIPART_EPILOGUE,
    MULTIPART_STATES,
};

struct multipart {
    enum multipart_state state;
    uint8_t matched; /* bytes at the end of what was fed that a delimiter may begin with */
    uint8_t delimiter_len;
    uint16_t head_len;
    char delimiter[4 + MULTIPART_BOUNDARY_MAX]; /* CRLF, two dashes and the boundary */
    char head[MULTIPART_HEAD_MAX];
};

/* Begins a body with this Content-Type. Returns 0 or -EINVAL (another type, or no valid boundary). */
int multipart_init(struct multipart *m, struct mk_str content_type);

/*
 * Parses more of the body. What was fed in one call comes as one piece for each part.
 * Returns 0, -EBADMSG (it is none, or a part has no name), -EMSGSIZE (the head of a part is too long) or the error of
 * an event; it must not be called again after an error.
 */
int multipart_feed(struct multipart *m, struct mk_str data, const struct multipart_events *events, void *ctx);

/* Returns whether the closing delimiter was parsed: otherwise the end of the body is missing. */
static inline bool multipart_is_complete(const struct multipart *m)
{
    return m->state == MULTIPART_EPILOGUE;
}

#endif
