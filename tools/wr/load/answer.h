// SPDX-License-Identifier: Apache-2.0
/*
 * Parses HTTP/1.1 answers as a client sees them (RFC 9112). Pure and resumable: bytes in, spans of the body out; it
 * reads nothing and allocates nothing.
 *
 *     head ─┬─ 1xx ─► head                                    (100 Continue: another head follows)
 *           ├─ HEAD, 204, 304, Content-Length: 0 ─► done
 *           ├─ Content-Length ─► body ─► done
 *           ├─ chunked ─► chunks ─► done
 *           └─ neither ─► body until the connection ends
 */
#ifndef WR_LOAD_ANSWER_H
#define WR_LOAD_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <monkey/str.h>

#include "http/message/chunked.h"

enum {
    ANSWER_LINE_MAX = 256,       /* of Content-Length, Transfer-Encoding and Connection; other lines may be longer */
    ANSWER_HEAD_MAX = 64 * 1024, /* of all heads of an answer, 1xx included */
};

enum answer_state {
    ANSWER_STATUS_LINE,
    ANSWER_HEADER,
    ANSWER_LENGTH,
    ANSWER_CHUNKS,
    ANSWER_UNTIL_END,
    ANSWER_DONE,
    ANSWER_MALFORMED,
};

struct answer {
    uint8_t state; /* enum answer_state */
    bool to_head;  /* answers a HEAD request: there is no body */
    bool close;    /* the connection ends with this answer */
    bool has_length, chunked, http10, keep_alive;
    uint16_t status;
    uint16_t line_len;    /* of the line that a former piece began */
    uint32_t head_bytes;  /* of the head, or of all heads with 1xx */
    uint64_t length;      /* as announced */
    uint64_t left;        /* of a body with a length */
    uint64_t body_bytes;  /* decoded */
    uint64_t total_bytes; /* of all that was parsed: head, framing and body */
    struct mk__chunked chunks;
    char line[ANSWER_LINE_MAX];
};

/* Begins an answer; `to_head`: to a HEAD request. */
void answer_init(struct answer *a, bool to_head);

/*
 * Parses a piece and stores at most one span of the body, which points into `in`. Call again with the rest, until the
 * state is ANSWER_DONE; what remains then belongs to the next answer.
 * Returns the number of bytes used, or -EINVAL: malformed, or above a limit; final.
 */
ssize_t answer_parse(struct answer *a, const char *in, size_t len, struct mk_str *ret_body);

/* Counts bytes of the body that were received but are not looked at: at most answer_skippable() of them. */
void answer_skip(struct answer *a, uint64_t n);

/* Ends the answer as the connection does. Returns 0 (the answer is whole) or -EPIPE. */
int answer_end(struct answer *a);

static inline bool answer_is_begun(const struct answer *a)
{
    return a->total_bytes > 0;
}

/* Returns how many bytes of the body are certain to come next. */
static inline uint64_t answer_skippable(const struct answer *a)
{
    return a->state == ANSWER_LENGTH ? a->left : 0;
}

#endif
