// SPDX-License-Identifier: Apache-2.0
/*
 * The server as a whole, as its parts know it: what it runs with (server.c), and how it goes from one generation to
 * the next (reload.c). The clock of the process.
 */
#ifndef MK_SERVER_SERVER_H
#define MK_SERVER_SERVER_H

#include <monkey/monkey.h>

#include "server/sockets.h"
#include "server/worker.h"

struct mk_server {
    struct mk__source source;
    struct mk_generation *now;    /* the one that is in use, or was loaded last */
    struct mk_generation *failed; /* a later one that could not be used, for its problems */
    pthread_mutex_t lock;         /* of `running`: a stop may be hastened by another thread */
    bool running;                 /* the workers exist */
    struct mk__sockets sockets;
    struct mk__jobs jobs;
    struct mk__worker **workers;
    unsigned n_workers;
    struct mk__keeper *keeper; /* from the first reload on */
};

/* A new generation from the source; 0 or -errno, and perhaps a generation that holds the problems. */
int mk__server_load(struct mk_server *s, struct mk_generation **ret_g);
/* Frees it, if there is one; nobody may hold it. */
void mk__server_forget(struct mk_generation **g);

/* A worker that does not run yet; NULL: no memory or descriptors. */
struct mk__worker *mk__server_open_worker(struct mk_server *s, struct mk_generation *g, unsigned index,
                                          unsigned workers);

/* Waits for the workers that a reload sent away (the jobs must still run); then frees what is left of them. */
void mk__keeper_wait(struct mk__keeper *keeper);
void mk__keeper_free(struct mk__keeper *keeper);
/* Hastens the end of those workers. Any thread. */
void mk__keeper_stop_workers(struct mk__keeper *keeper);

void mk__server_report_listener(struct mk_generation *g, unsigned nth, int err);
/* Tells the log about the listeners that it does not know yet. */
void mk__server_say_where(struct mk_server *s);

#endif
