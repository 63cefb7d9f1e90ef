// SPDX-License-Identifier: Apache-2.0
/*
 * An answer as the load generator counts it, parsed by <monkey/base/response_parser.h>. A head that comes in several
 * pieces is collected; interim responses are skipped.
 */
#ifndef WR_LOAD_ANSWER_H
#define WR_LOAD_ANSWER_H

#include <monkey/base/buf.h>
#include <monkey/base/response_parser.h>

struct answer {
    struct mk_response_parser parser;
    bool is_begun;
    uint32_t head_bytes;  /* of all heads, those of 1xx included */
    uint64_t body_bytes;  /* decoded */
    uint64_t total_bytes; /* of all that was parsed: head, framing and body */
    struct mk_buf head;   /* the beginning of a head that is not complete */
};

/* Initializes and releases the storage of a connection's answers. */
void answer_init(struct answer *a, bool to_head);
void answer_release(struct answer *a);
/* Begins the next answer. */
void answer_begin(struct answer *a);

/*
 * Parses a piece and stores at most one span of the body, which points into `in`. Call again with the rest, until the
 * answer is done; what remains then belongs to the next answer.
 * Returns the number of bytes used, or -errno: malformed, above a limit or without memory; final.
 */
ssize_t answer_parse(struct answer *a, const char *in, size_t len, struct mk_str *ret_body);

/* Counts bytes of the body that were received but are not looked at: at most answer_skippable() of them. */
void answer_skip(struct answer *a, uint64_t n);
/* Returns how many bytes of a body with a length are certain to come next. */
uint64_t answer_skippable(const struct answer *a);

/* Ends the answer as the connection does. Returns 0 (the answer is whole) or -EPIPE. */
int answer_end(struct answer *a);

static inline bool answer_is_done(const struct answer *a)
{
    return a->parser.is_done;
}

/* Tells whether the connection ends with this answer. */
static inline bool answer_closes(const struct answer *a)
{
    return !a->parser.keep_alive;
}

#endif
