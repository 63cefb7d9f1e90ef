// SPDX-License-Identifier: Apache-2.0
/*
 * Reads replies from the bytes of a server, with the parser of hiredis and limits of memory. Pure, but for the heap.
 *
 * hiredis keeps what it has not parsed yet, and never allocates by a length that the server has announced. What grows
 * is limited here: the bytes of one reply, with its structs, and a line without an end. Each reply is made one block of
 * the heap, so that services free it like other memory.
 */
#ifndef DUDA_PACKAGES_REDIS_READER_H
#define DUDA_PACKAGES_REDIS_READER_H

#include <duda/packages/redis/redis.h>

enum { REDIS_LINE_BYTES_MAX = 65536 };

struct redisReader;

struct redis_reader {
    struct redisReader *parser; /* NULL: not in use */
    size_t bytes_max;           /* of one reply */
    size_t bytes;               /* of the reply that is being read, as a tree */
    bool is_too_large;          /* it has more */
    const char *fault;          /* why it is none that the server may send here; or NULL */
    const char *error;          /* after a negative result of redis_reader_next() */
    char text[128];
};

/* Returns 0 or -ENOMEM. */
int redis_reader_init(struct redis_reader *r, size_t bytes_max);
/* Frees all. May be called again. */
void redis_reader_release(struct redis_reader *r);
/* Adds bytes of the server. Returns 0 or -ENOMEM. */
int redis_reader_feed(struct redis_reader *r, const char *bytes, size_t len);
/*
 * Cuts the next reply off, one block for mem->free(). Returns 1; 0 (more bytes are needed); or, with `r->error`,
 * -EPROTO, -EMSGSIZE or -ENOMEM, after which the reader can only be released.
 */
int redis_reader_next(struct redis_reader *r, redisReply **ret);
/* Returns a copy of a reply, or of a part of one, as one block; NULL without memory. */
redisReply *redis_reader_copy(const redisReply *reply);

/* Returns what an error reply such as "NOAUTH Authentication required." means: -EACCES ... -EREMOTEIO. Pure. */
int redis_status_of(const char *text);

#endif
