// SPDX-License-Identifier: Apache-2.0
/*
 * struct mk_server and the functions that server.c, reload.c and listen/worker_load.c share. It lives as long as the
 * process. The functions run in the thread that starts, reloads and stops the server.
 */
#ifndef MK_SERVER_SERVER_H
#define MK_SERVER_SERVER_H

#include <monkey/monkey.h>

#include "server/thread.h"
#include "server/listen/balance.h"
#include "server/main_thread.h"

struct mk_server {
    struct mk__generation_source source;
    struct mk_generation *current; /* in use, or loaded last */
    struct mk_generation *failed;  /* a later one that could not be used, kept for its problems */
    pthread_mutex_t lock;          /* of `running` and `workers`: another thread may call mk_server_stop_now() */
    bool running;                  /* the workers exist */
    bool listeners_open;           /* by mk_server_listen(), for the next start */
    bool handed_over;              /* another process has the listeners too */
    bool drained;                  /* mk_server_drain_now() was called after that */
    struct mk__listeners listeners;
    struct mk__thread_pool thread_pool;
    struct mk__thread **workers;
    unsigned n_workers;
    struct mk__main_thread *main_thread; /* NULL before the first reload, unless the scheduler is fair */
    struct mk__limits limits;
    struct mk__handoff_slots handoff_slots;
    struct mk__balancer balancer;
    uint64_t fd_limit_before; /* RLIMIT_NOFILE before FDLimit changed it; 0: it did not */
};

/* Loads a generation from the source. Returns 0 or -errno; even then `*ret_g` may be one, which holds the problems. */
int mk__server_load(struct mk_server *s, struct mk_generation **ret_g);
/* Frees the generation, if there is one, and sets it to NULL. No other reference may be left. */
void mk__server_free_generation(struct mk_generation **g);

/* Makes a worker that does not run yet; `loops` as `workers` of mk__thread_open(). NULL: no memory or descriptors. */
struct mk__thread *mk__server_open_worker(struct mk_server *s, struct mk_generation *g, unsigned index, unsigned loops);

/* Adds the error of the n-th Listen to the generation's problems. */
void mk__server_report_listener(struct mk_generation *g, unsigned nth, int err);
/* Checks that ErrorLog can be written. Returns 0, or -EINVAL with an error among the generation's problems. */
int mk__server_check_log(struct mk_generation *g);
/* Logs the listeners that were not logged yet. */
void mk__server_log_listeners(struct mk_server *s);
/* Returns whether the settings in use have the fair scheduler. */
bool mk__server_has_balancer(const struct mk_server *s);
/* Start and stop handing connections to the workers; the main thread is open. The first returns 0 or -ENOMEM. */
int mk__server_start_balancer(struct mk_server *s);
void mk__server_stop_balancer(struct mk_server *s);

/* Sets RLIMIT_NOFILE to FDLimit, and logs a warning when the hard limit is lower. */
void mk__server_limit_descriptors(struct mk_server *s, const struct mk__settings *settings);
/* Adds a warning to the configuration's problems when the hard limit is lower than FDLimit. */
void mk__server_check_descriptors(struct mk_server *s);

#endif
