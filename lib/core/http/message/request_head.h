// SPDX-License-Identifier: Apache-2.0
/*
 * Interprets a parsed head: where the body ends, whether the connection stays open, which host is requested (RFC 9112
 * sections 3.2, 6, 9; RFC 9110 sections 7.2, 10.1.1). Pure.
 */
#ifndef MK_HTTP_MESSAGE_REQUEST_HEAD_H
#define MK_HTTP_MESSAGE_REQUEST_HEAD_H

#include "http/message/parse.h"
#include "http/message/uri.h"

enum mk__body_kind { MK__BODY_NONE, MK__BODY_LENGTH, MK__BODY_CHUNKED };

struct mk__request_head {
    uint8_t body;    /* enum mk__body_kind */
    bool keep_alive; /* the client allows it */
    bool expects_continue;
    struct mk_span path; /* undecoded; len 0 means "/" */
    struct mk_span query;
    struct mk_span host; /* without port */
    bool has_query;
    bool asterisk;       /* OPTIONS * */
    uint64_t body_bytes; /* of MK__BODY_LENGTH */
};

/* A Host field that was read before, most often the same as in the next head: it need not be checked again. */
struct mk__host_memo {
    uint8_t len; /* of the value; 0: there is none yet */
    struct mk_span name;
    char value[58];
};

/*
 * Reads and updates `memo`, which may be NULL. Returns 0 or a negative status: -400, -417, -501. After -400 and -501
 * the connection cannot be used any further.
 */
int mk__request_head_read(const struct mk_head_parser *p, const struct mk_field *fields, const char *base,
                          struct mk__host_memo *memo, struct mk__request_head *ret_head);

#endif
