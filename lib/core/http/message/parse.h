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

#include <monkey/base/header_id.h>
#include <monkey/base/response_parser.h>
#include <monkey/base/str.h>
#include <monkey/request.h>

struct mk__parse_limits {
    uint32_t line_bytes_max; /* of the request line; above: 414 or 501 */
    uint32_t head_bytes_max; /* of the whole head; above: 431 */
    uint32_t fields_max;     /* above: 431 */
};

enum mk__parse_phase { MK__PARSE_START, MK__PARSE_FIELDS, MK__PARSE_DONE };

/*
 * Continues parsing `head`, which starts with the first byte of the message and may have grown since the last call. `p`
 * must be zeroed before the first call. `fields` has room for limits->fields_max and must keep its content between
 * calls. The limits may change between two calls.
 *
 * Returns 0 (the head is complete: p->head_len), MK_AGAIN (more bytes are needed) or the negative status to answer
 * with: -400, -414, -431, -501, -505. After an error the connection cannot be used any further.
 */
int mk__parse_head(struct mk_head_parser *p, struct mk_field *fields, const struct mk__parse_limits *limits,
                   struct mk_str head);

/*
 * Reads the field lines from the current one on that are well-formed and complete, `fields_max` in all at most, without
 * a search for the end of each. Returns how many.
 */
unsigned mk__parse_fields(struct mk_head_parser *p, struct mk_field *fields, unsigned fields_max, struct mk_str head);

/*
 * Reads one field line, which begins at `line` in the head at `base`. Returns what follows its CRLF, or NULL: there
 * is no well-formed line before `end`.
 */
const char *mk__parse_field(struct mk_field *field, const char *base, const char *line, const char *end);

/* Returns a method by its name. */
enum mk_method mk__parse_method(struct mk_str name);

/* Returns the number of a field name, in any case of letters. */
uint8_t mk__parse_header_id(struct mk_str name);

/* Tells whether `s` is a token (RFC 9110 section 5.6.2). */
bool mk__parse_is_token(struct mk_str s);
/* Tells whether `s` is a token without capitals, as names of HTTP/2 fields are (RFC 9113 section 8.2.1). */
bool mk__parse_is_lower_token(struct mk_str s);
/* Tells whether `s` is not empty and may be in a request line as its target. */
bool mk__parse_is_target(struct mk_str s);
/* Tells whether `s` has no control byte but the tab, so that it cannot end its line. */
bool mk__parse_has_value_bytes(struct mk_str s);
/* Tells whether `s` is a field value, without spaces and tabs at its ends (RFC 9110 section 5.5). */
bool mk__parse_is_value(struct mk_str s);

#endif
