// SPDX-License-Identifier: Apache-2.0
/*
 * The streams that one side of an HTTP/2 connection has opened, by their numbers, and what is known of the others (RFC
 * 9113 section 5.1). Needs no memory but that of the streams. A table of zeros is one for the streams of a client.
 */
#ifndef MK_HTTP_H2_STREAMS_H
#define MK_HTTP_H2_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

enum { MK__H2_STREAMS_BUCKETS = 32, MK__H2_STREAMS_RESETS = 16 };

enum mk__h2_streams_state {
    MK__H2_STREAMS_IDLE,    /* it was not opened yet */
    MK__H2_STREAMS_SKIPPED, /* it was not opened when one with a higher number was: section 5.1.1 */
    MK__H2_STREAMS_OPEN,    /* mk__h2_streams_find() finds it */
    MK__H2_STREAMS_RESET,   /* it was reset here, perhaps: frames may have been on their way */
    MK__H2_STREAMS_CLOSED,  /* it has ended, and the peer must not send any more frames */
};

/* The entry of a stream. */
struct mk__h2_streams_node {
    struct mk__h2_streams_node *next; /* in its bucket */
    int32_t id;
};

struct mk__h2_streams {
    struct mk__h2_streams_node *buckets[MK__H2_STREAMS_BUCKETS];
    int32_t resets[MK__H2_STREAMS_RESETS]; /* the last ones that were reset here */
    uint32_t n_resets;                     /* how many there were so far */
    uint32_t n;                            /* entries */
    int32_t last_id;                       /* the highest number so far */
    int32_t skipped_from;                  /* the first number of those that were skipped last */
    bool is_even;                          /* a server has opened them: section 5.1.1 */
};

/* Notes the use of a number above `last_id`. */
void mk__h2_streams_open(struct mk__h2_streams *t, int32_t id);
/* Add or remove an entry. Its number has been opened. */
void mk__h2_streams_add(struct mk__h2_streams *t, struct mk__h2_streams_node *node, int32_t id);
void mk__h2_streams_remove(struct mk__h2_streams *t, struct mk__h2_streams_node *node);
/* Returns an entry; NULL: there is none. */
struct mk__h2_streams_node *mk__h2_streams_find(const struct mk__h2_streams *t, int32_t id);
/* Notes a stream that was reset here although its peer may send more. */
void mk__h2_streams_note_reset(struct mk__h2_streams *t, int32_t id);
/* Returns what is known of a number. */
enum mk__h2_streams_state mk__h2_streams_classify(const struct mk__h2_streams *t, int32_t id);

#endif
