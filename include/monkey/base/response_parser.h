// SPDX-License-Identifier: Apache-2.0
/*
 * Parses HTTP/1 responses as a client sees them (RFC 9112). Pure and resumable: bytes in, spans out; it reads nothing,
 * allocates nothing and keeps no pointer to the bytes.
 *
 *     init ─► head ─┬─ 1xx ─► next ─► head                     an interim response: another head follows
 *                   ├─ 101, or 2xx of a CONNECT                 a tunnel: no message follows
 *                   ├─ HEAD, 204, 304, Content-Length: 0        no body
 *                   ├─ Content-Length ─► body ─► done
 *                   ├─ chunked ─► body ─► done                  with trailers
 *                   └─ neither ─► body ─► end                   until the connection ends
 *
 * What two recipients could take differently is malformed, because an answer is smuggled through such a difference: two
 * lengths, a length next to a transfer coding, a coding in HTTP/1.0 or one that is not chunked, folded lines, a CR
 * without LF, an LF without CR in a chunk line, NUL and other control bytes, names that are no tokens.
 *
 * What has a fault but one meaning is accepted, as RFC 9110 section 2.4 allows and other proxies do: LF alone ends a
 * line of the head (RFC 9112 section 2.2), blanks before a colon are left out (section 5.1), and blanks behind the size
 * of a chunk, and extensions of any form, are skipped up to the end of their line. A length or a coding where no body
 * may be is ignored, but told (mk_response_parser_keeps_conn()): a body may come late.
 * docs/internals/backend-responses.md compares with others. Any thread.
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_RESPONSE_PARSER_H
#define MONKEY_RESPONSE_PARSER_H

#include "chunked.h"
#include "header_id.h"

MK_C_BEGIN

/* A part of a head: offsets, because the head may move in memory. A head has at most 64 KB - 1. */
struct mk_span {
    uint16_t at, len;
};

/* Returns that part of the head at `base`. */
static inline struct mk_str mk_span_str(const char *base, struct mk_span span)
{
    return mk_str(base + span.at, span.len);
}

/* A line of a head, without blanks around the value. */
struct mk_field {
    struct mk_span name, value;
    uint16_t id; /* enum mk_header_id; of a name that it does not have: MK_HEADER_OTHER */
};

/* How far a head is, of a response or a request. Zeroed before the first byte; private to the library. */
struct mk_head_parser {
    uint16_t phase;
    uint16_t seen_len; /* bytes searched for a line's end */
    uint16_t line_at;  /* where the current line begins */
    uint16_t head_len; /* when done */
    struct mk_span method_name, target;
    uint16_t n_fields;
    uint8_t method; /* enum mk_method */
    uint8_t minor;  /* of HTTP/1.x */
    uint8_t empty_lines;
    uint16_t status;
    uint32_t seen; /* the fields of the head, a bit for each enum mk_header_id */
};

struct mk_response_limits {
    uint16_t head_bytes_max; /* of one head */
    uint16_t fields_max;     /* of one head */
    struct mk_chunked_limits chunked;
};

/* What the request allows the response to be. */
enum mk_response_to {
    MK_RESPONSE_TO_OTHER,
    MK_RESPONSE_TO_HEAD,    /* has no body */
    MK_RESPONSE_TO_CONNECT, /* has no body if it is a 2xx: the connection is a tunnel */
};

/* Why a response is malformed, for the log. */
struct mk_response_fault {
    const char *text; /* of a literal; NULL: nothing is wrong */
    struct mk_span line;
    uint16_t number; /* of the line, from 1; 0: it is none of the head */
};

enum mk_response_body {
    MK_RESPONSE_BODY_NONE,
    MK_RESPONSE_BODY_LENGTH,
    MK_RESPONSE_BODY_CHUNKED,
    MK_RESPONSE_BODY_UNTIL_END,
};

struct mk_response_parser {
    const struct mk_response_limits *limits;
    struct mk_head_parser head;
    uint8_t to; /* enum mk_response_to */
    /* Valid once mk_response_parser_head() has returned 0: */
    uint8_t body; /* enum mk_response_body */
    uint8_t minor;
    bool expects_body; /* a head without a body has a length or a coding: the body may come late */
    bool has_length;   /* Content-Length, also where there is no body */
    bool has_upgrade;  /* the field Upgrade */
    bool keep_alive;   /* the connection may be used again after this response, if the client wants it */
    bool is_done;      /* the response is complete; never after a head of 1xx */
    uint16_t status;   /* 100 to 999 */
    uint16_t head_bytes;
    uint16_t n_fields;
    uint64_t length;                /* with has_length */
    uint64_t left;                  /* of a body with a length */
    struct mk_chunked chunked;      /* `trailers` may be set after the head */
    struct mk_response_fault fault; /* after -EINVAL */
};

/* Begins the response to a request. `limits` must stay valid. */
MK_API void mk_response_parser_init(struct mk_response_parser *p, const struct mk_response_limits *limits,
                                    enum mk_response_to to);
/*
 * Continues with a head. `head` begins with its first byte and has grown since the last call, and may have moved;
 * `fields` has room for limits->fields_max and keeps its content between calls. Bytes after head_bytes are not used.
 * Returns 0 (the head is complete), MK_AGAIN (more bytes are needed), -EINVAL (malformed) or -EMSGSIZE (above a limit).
 * Errors are final.
 */
MK_API int mk_response_parser_head(struct mk_response_parser *p, struct mk_field *fields, struct mk_str head);
/* After a 1xx: begins the next head of the same response. The caller limits their number. */
MK_API void mk_response_parser_next(struct mk_response_parser *p);
/*
 * Takes a piece of the body, and stores at most one span of it, which points into `in`. Call again with the rest until
 * `in` is used up or `p->is_done` is set; what remains then belongs to no response.
 * Returns the number of bytes of `in` that were used, -EINVAL or -EMSGSIZE. Errors are final.
 */
MK_API ssize_t mk_response_parser_body(struct mk_response_parser *p, const char *in, size_t len,
                                       struct mk_str *ret_body);
/*
 * Returns how many bytes of the body are certain to come next, without framing between them; UINT64_MAX until the
 * connection ends. A caller that has moved some of them elsewhere, as splice(2) does, calls mk_response_parser_skip()
 * with their number.
 */
MK_API uint64_t mk_response_parser_skippable(const struct mk_response_parser *p);
MK_API void mk_response_parser_skip(struct mk_response_parser *p, uint64_t n);
/*
 * Tells whether a request of another client may use the connection behind the complete response: it persists, and no
 * late body can be taken for the next response.
 */
static inline bool mk_response_parser_keeps_conn(const struct mk_response_parser *p)
{
    return p->keep_alive && !p->expects_body;
}
/* The connection has ended. Returns 0 (the response is complete) or -EPIPE (it was cut). */
MK_API int mk_response_parser_end(struct mk_response_parser *p);

/*
 * Continues with the field lines of a head, which a script begins with; `p` is zeroed at first. The rest is as for
 * mk_response_parser_head().
 * Returns 0 (the head is complete: p->head_len), MK_AGAIN, -EINVAL with `*fault`, whose first line is 1, or -EMSGSIZE.
 */
MK_API int mk_response_fields(struct mk_head_parser *p, struct mk_field *fields,
                              const struct mk_response_limits *limits, struct mk_str head,
                              struct mk_response_fault *fault);

/* Sets all of a fault. Returns -EINVAL. */
MK_API int mk_response_fault_set(struct mk_response_fault *fault, const char *text, unsigned number,
                                 struct mk_span line);

/*
 * Adds to `out` what is wrong, with the line of the head at `head`, which is cut, and whose bytes are escaped if they
 * are not printable: `line 2 of its head, "X Name: a": its name has ...`. There must be a fault.
 */
MK_API void mk_response_fault_describe(const struct mk_response_fault *fault, const char *head, struct mk_buf *out);

MK_C_END

#endif
