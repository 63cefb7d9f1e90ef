// SPDX-License-Identifier: Apache-2.0
/*
 * Parses message heads (RFC 9112 sections 2 to 5): bytes in, spans out. Keeps no pointer to the bytes, so that they may
 * move between two calls, and searches each byte for the end of a line only once.
 *
 *     GET /index.html HTTP/1.1 CRLF Host: example.org CRLF CRLF body...
 *     └method┘ └─target─┘  minor     └name┘ └──value──┘         ▲ head_len
 */
#ifndef MK_HTTP_MESSAGE_PARSE_H
#define MK_HTTP_MESSAGE_PARSE_H

#include <monkey/header_id.h>
#include <monkey/request.h>
#include <monkey/str.h>

/* Offsets into the head, which is at most 64 KB - 1 long. */
struct mk__span {
    uint16_t at, len;
};

static inline struct mk_str mk__span_str(const char *base, struct mk__span span)
{
    return mk_str(base + span.at, span.len);
}

struct mk__field {
    struct mk__span name, value;
    uint16_t id; /* enum mk_header_id */
};

struct mk__parse_limits {
    uint32_t line_bytes_max; /* of the request line; above: 414 or 501 */
    uint32_t head_bytes_max; /* of the whole head; above: 431 */
    uint32_t fields_max;     /* above: 431 */
};

enum mk__parse_phase { MK__PARSE_START, MK__PARSE_FIELDS, MK__PARSE_DONE };

struct mk__parse {
    uint16_t phase;
    uint16_t seen_len; /* bytes searched for a line's end */
    uint16_t line_at;  /* where the current line begins */
    uint16_t head_len; /* when done */
    struct mk__span method_name, target;
    uint16_t n_fields;
    uint8_t method; /* enum mk_method */
    uint8_t minor;  /* of HTTP/1.x */
    uint8_t empty_lines;
    uint32_t seen; /* the fields of the head, a bit for each enum mk_header_id */
};

/*
 * Continues parsing `head`, which starts with the first byte of the message and may have grown since the last call. `p`
 * must be zeroed before the first call. `fields` has room for limits->fields_max and must keep its content between
 * calls. The limits may change between two calls.
 *
 * Returns 0 (the head is complete: p->head_len), MK_AGAIN (more bytes are needed) or the negative status to answer
 * with: -400, -414, -431, -501, -505. After an error the connection cannot be used any further.
 */
int mk__parse_head(struct mk__parse *p, struct mk__field *fields, const struct mk__parse_limits *limits,
                   struct mk_str head);

/* Returns a method by its name. */
enum mk_method mk__parse_method(struct mk_str name);

/* Tells whether `s` is a token (RFC 9110 section 5.6.2). */
bool mk__parse_is_token(struct mk_str s);

#endif
