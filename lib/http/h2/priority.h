// SPDX-License-Identifier: Apache-2.0
/*
 * Whose bytes leave first (RFC 9218): the most urgent streams; among those of one urgency each that is not incremental
 * whole, in the order of the requests, and the incremental ones in turn.
 */
#ifndef MK_HTTP_H2_PRIORITY_H
#define MK_HTTP_H2_PRIORITY_H

#include <monkey/list.h>
#include <monkey/str.h>

#include <stdint.h>

enum { MK__H2_URGENCIES = 8, MK__H2_URGENCY_DEFAULT = 3 /* of those who do not say */ };

/* A stream's place. */
struct mk__h2_priority {
    struct mk_list node; /* in order->ready[urgency], while it has something to send */
    int32_t id;
    uint8_t urgency;
    bool incremental;
    bool updated; /* by a frame, which counts more than the field */
};

enum { MK__H2_EARLY_MAX = 8 };

struct mk__h2_scheduler {
    struct mk_list ready[MK__H2_URGENCIES];
    struct mk__h2_priority early[MK__H2_EARLY_MAX]; /* of streams that are still to come */
    unsigned n_early;                               /* so far */
};

void mk__h2_scheduler_init(struct mk__h2_scheduler *o);
/* The place of stream `id`, which is not in the order yet. */
void mk__h2_priority_init(struct mk__h2_priority *p, int32_t id);
/* The place of a stream that is still to come, for as long as no more than a few are remembered after it. */
struct mk__h2_priority *mk__h2_scheduler_put_early(struct mk__h2_scheduler *o, int32_t id);
/* It has come: takes what was remembered. */
void mk__h2_scheduler_take_early(const struct mk__h2_scheduler *o, struct mk__h2_priority *p);
/* Has something to send from now on; or no more. Either may be said twice. */
void mk__h2_scheduler_add(struct mk__h2_scheduler *o, struct mk__h2_priority *p);
void mk__h2_scheduler_remove(struct mk__h2_priority *p);
/* Sent a frame: the others of its kind are next. */
void mk__h2_scheduler_rotate(struct mk__h2_scheduler *o, struct mk__h2_priority *p);
/* The first of whom `may(p, ctx)` is true; NULL: none. */
struct mk__h2_priority *mk__h2_scheduler_pick(const struct mk__h2_scheduler *o,
                                              bool (*may)(struct mk__h2_priority *p, void *ctx), void *ctx);

/*
 * What a Priority field or frame says ("u=5, i"); what it does not say, or says in a way that cannot be read, stays the
 * default (section 4). Moves a place that is in the order.
 */
void mk__h2_priority_parse(struct mk__h2_scheduler *o, struct mk__h2_priority *p, struct mk_str field);

#endif
