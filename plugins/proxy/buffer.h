// SPDX-License-Identifier: Apache-2.0
/*
 * What a client does not take of a response, so that it does not hold the backend.
 *
 *     backend ─► client                        as long as the client takes what comes
 *     backend ─► spool ─► client               from when it has not for a while, until the spool is empty
 *
 * So a client that is fast costs no copy. A full disk and a budget that is used up leave the bytes with the backend.
 */
#ifndef PROXY_BUFFER_H
#define PROXY_BUFFER_H

#include "conf.h"
#include "spooled.h"

struct buffer;

/* Is called when bytes of the backend are to be read into the buffer, and there is room. */
typedef void (*buffer_fn)(struct buffer *b);

struct buffer {
    struct mk_request *req;
    const struct proxy_buffer *limits; /* NULL: nothing is kept */
    struct spooled *spooled;           /* NULL: nothing waits */
    struct mk_timer timer;
    bool is_armed;
    bool is_live;      /* the response is a stream that has no use later */
    uint64_t asked_ms; /* when the client could take bytes last */
    buffer_fn fill;
};

/* Tells whether a response of this Content-Type is a stream whose bytes have no use later. */
bool buffer_is_live_type(struct mk_str type);

/* Prepares it; nothing is kept before buffer_begin(). */
void buffer_init(struct buffer *b, struct mk_request *req, buffer_fn fill);
/* Begins with the body of a response, whose head is set; event streams and the like are not kept. */
void buffer_begin(struct buffer *b, const struct proxy_buffer *limits);
void buffer_release(struct buffer *b);

/* The client can take bytes. */
void buffer_note_asked(struct buffer *b);
/* There are, or may be, bytes of the backend that the client has not asked for: `fill` is called when they are due. */
void buffer_offer(struct buffer *b);

/* Returns 0 (MK_SPOOL_WRITE_MAX bytes can be added), MK_AGAIN (`fill` follows when they can) or -errno. */
int buffer_room(struct buffer *b);
/* Adds bytes, none or more, behind buffer_room(). `end`: they are the last. Returns 0 or -errno. */
int buffer_add(struct buffer *b, struct mk_str bytes, bool end);

/* Tells whether bytes wait: they come before others. */
static inline bool buffer_has_bytes(const struct buffer *b)
{
    return b->spooled;
}
/* Gives the next bytes that wait. Returns their number, -EAGAIN (the response is woken) or another -errno. */
ssize_t buffer_read(struct buffer *b, char *to, size_t size);

#endif
