// SPDX-License-Identifier: Apache-2.0
/*
 * The server as a whole, as its parts know it: what it runs with (server.c), and how it goes from one generation to
 * the next (reload.c). The clock of the process.
 */
#ifndef MK_SERVER_SERVER_H
#define MK_SERVER_SERVER_H

#include <monkey/monkey.h>

#include "server/thread.h"
#include "server/listen/balance.h"
#include "server/main_thread.h"

struct mk_server {
    struct mk__generation_source source;
    struct mk_generation *current; /* the one that is in use, or was loaded last */
    struct mk_generation *failed;  /* a later one that could not be used, for its problems */
    pthread_mutex_t lock;          /* of `running`: a stop may be hastened by another thread */
    bool running;                  /* the workers exist */
    bool listeners_open;           /* mk_server_listen() has opened the sockets for the start */
    bool handed_over;              /* others serve beside us */
    bool drained;                  /* and idle connections were closed all the same */
    struct mk__listeners listeners;
    struct mk__thread_pool thread_pool;
    struct mk__thread **workers;
    unsigned n_workers;
    struct mk__main_thread *main_thread; /* with the fair scheduler, or from the first reload on */
    struct mk__limits limits;
    struct mk__handoff_slots handoff_slots;
    struct mk__balancer balancer;
    uint64_t fd_limit_before; /* the limit, before any settings changed it */
};

/* A new generation from the source; 0 or -errno, and perhaps a generation that holds the problems. */
int mk__server_load(struct mk_server *s, struct mk_generation **ret_g);
/* Frees it, if there is one; nobody may hold it. */
void mk__server_free_generation(struct mk_generation **g);

/* A worker that does not run yet; `loops` as for mk__thread_open(). NULL: no memory or descriptors. */
struct mk__thread *mk__server_open_worker(struct mk_server *s, struct mk_generation *g, unsigned index, unsigned loops);

void mk__server_report_listener(struct mk_generation *g, unsigned nth, int err);
/* Could its error log be written? 0 or -EINVAL, and a problem of the configuration. */
int mk__server_check_log(struct mk_generation *g);
/* Tells the log about the listeners that it does not know yet. */
void mk__server_log_listeners(struct mk_server *s);
/* Does the process context accept, under the settings in use? */
bool mk__server_has_balancer(const struct mk_server *s);
/* Begins and ends to feed the workers; both ends find the process context open. The first: 0 or -ENOMEM. */
int mk__server_start_balancer(struct mk_server *s);
void mk__server_stop_balancer(struct mk_server *s);

/* Sets the limit of descriptors that the settings have, and warns when the system does not allow it. */
void mk__server_limit_descriptors(struct mk_server *s, const struct mk__settings *settings);
/* A problem, if it would not. */
void mk__server_check_descriptors(struct mk_server *s);

#endif
