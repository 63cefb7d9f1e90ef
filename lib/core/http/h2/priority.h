// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses the stream that sends next (RFC 9218): the most urgent one. Among streams of the same urgency, those that are
 * not incremental are sent completely, in the order of the requests; then the incremental ones in turn.
 */
#ifndef MK_HTTP_H2_PRIORITY_H
#define MK_HTTP_H2_PRIORITY_H

#include <monkey/base/list.h>
#include <monkey/base/str.h>

#include <stdint.h>

enum { MK__H2_URGENCIES = 8, MK__H2_URGENCY_DEFAULT = 3 /* if the client sets none */ };

/* A stream in the scheduler. */
struct mk__h2_priority {
    struct mk_list node; /* in scheduler->ready[urgency], while it has something to send */
    int32_t id;
    uint8_t urgency;
    bool incremental;
    bool updated; /* set by a PRIORITY_UPDATE frame, which overrides the header */
};

enum { MK__H2_EARLY_MAX = 8 };

struct mk__h2_scheduler {
    struct mk_list ready[MK__H2_URGENCIES];
    struct mk__h2_priority early[MK__H2_EARLY_MAX]; /* of streams that have not started */
    unsigned n_early;                               /* how many there were so far */
};

void mk__h2_scheduler_init(struct mk__h2_scheduler *o);
/* Initializes the entry of stream `id`, which has nothing to send yet. */
void mk__h2_priority_init(struct mk__h2_priority *p, int32_t id);
/* Returns an entry for a stream that has not started. Only the last MK__H2_EARLY_MAX of them are kept. */
struct mk__h2_priority *mk__h2_scheduler_put_early(struct mk__h2_scheduler *o, int32_t id);
/* Applies the priority that was kept for a stream when it starts. */
void mk__h2_scheduler_take_early(const struct mk__h2_scheduler *o, struct mk__h2_priority *p);
/* Add or remove a stream: it has something to send, or not. Either may be called twice. */
void mk__h2_scheduler_add(struct mk__h2_scheduler *o, struct mk__h2_priority *p);
void mk__h2_scheduler_remove(struct mk__h2_priority *p);
/* After a frame of an incremental stream: the other incremental ones of its urgency are next. */
void mk__h2_scheduler_rotate(struct mk__h2_scheduler *o, struct mk__h2_priority *p);
/* Returns the first stream for which `may(p, ctx)` is true, or NULL. */
struct mk__h2_priority *mk__h2_scheduler_pick(const struct mk__h2_scheduler *o,
                                              bool (*may)(struct mk__h2_priority *p, void *ctx), void *ctx);

/*
 * Sets the priority from a Priority header or frame ("u=5, i"). Missing or invalid parameters get their defaults
 * (section 4). Moves a stream that has something to send.
 */
void mk__h2_priority_parse(struct mk__h2_scheduler *o, struct mk__h2_priority *p, struct mk_str field);

#endif
