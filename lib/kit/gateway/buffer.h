// SPDX-License-Identifier: Apache-2.0
/*
 * What a client does not take of a response, so that it does not hold the backend.
 *
 *     backend ─► client                        as long as the client takes what comes
 *     backend ─► spool ─► client               from when it has not for a while, until the spool is empty
 *
 * So a client that is fast costs no copy. A full disk and a budget that is used up leave the bytes with the backend.
 */
#ifndef MK_GATEWAY_BUFFER_H
#define MK_GATEWAY_BUFFER_H

#include "spooled.h"

#include <monkey/kit/gateway.h>

struct mk__gw_buffer;

/* Is called when bytes of the backend are to be read into the buffer, and there is room. */
typedef void (*mk__gw_buffer_fn)(struct mk__gw_buffer *b);

struct mk__gw_buffer {
    struct mk_request *req;
    const struct mk_gateway_buffer *limits; /* NULL: nothing is kept */
    struct mk__gw_spooled *spooled;         /* NULL: nothing waits */
    struct mk_timer timer;
    bool is_armed;
    bool is_live;      /* the response is a stream that has no use later */
    uint64_t asked_ms; /* when the client could take bytes last */
    mk__gw_buffer_fn fill;
};

/* Tells whether a response of this Content-Type is a stream whose bytes have no use later. */
bool mk__gw_buffer_is_live_type(struct mk_str type);

/* Prepares it; nothing is kept before mk__gw_buffer_begin(). */
void mk__gw_buffer_init(struct mk__gw_buffer *b, struct mk_request *req, mk__gw_buffer_fn fill);
/* Begins with the body of a response, whose head is set; event streams and the like are not kept. */
void mk__gw_buffer_begin(struct mk__gw_buffer *b, const struct mk_gateway_buffer *limits);
void mk__gw_buffer_release(struct mk__gw_buffer *b);

/* The client can take bytes. */
void mk__gw_buffer_note_asked(struct mk__gw_buffer *b);
/* There are, or may be, bytes of the backend that the client has not asked for: `fill` is called when they are due. */
void mk__gw_buffer_offer(struct mk__gw_buffer *b);

/* Returns 0 (MK_SPOOL_WRITE_MAX bytes can be added), MK_AGAIN (`fill` follows when they can) or -errno. */
int mk__gw_buffer_room(struct mk__gw_buffer *b);
/* Adds bytes, none or more, after mk__gw_buffer_room(). `end`: they are the last. Returns 0 or -errno. */
int mk__gw_buffer_add(struct mk__gw_buffer *b, struct mk_str bytes, bool end);

/* Tells whether bytes wait: they come before others. */
static inline bool mk__gw_buffer_has_bytes(const struct mk__gw_buffer *b)
{
    return b->spooled;
}
/* Gives the next bytes that wait. Returns their number, -EAGAIN (the response is woken) or another -errno. */
ssize_t mk__gw_buffer_read(struct mk__gw_buffer *b, char *to, size_t size);

#endif
