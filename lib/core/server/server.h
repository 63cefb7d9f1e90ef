// SPDX-License-Identifier: Apache-2.0
/*
 * struct mk_server and the functions that server.c, reload.c and others share. It lives as long as the
 * process. The functions run in the main thread.
 */
#ifndef MK_SERVER_SERVER_H
#define MK_SERVER_SERVER_H

#include <monkey/monkey.h>

#include "loop/job.h"
#include "server/worker/thread.h"
#include "server/worker/balancer.h"
#include "server/worker/control_thread.h"

#include <limits.h>

/* In this order; a stop leads back to the first. */
enum mk__server_state {
    MK__SERVER_STOPPED,
    MK__SERVER_LISTENING, /* mk_server_listen() has opened the listeners for the next start */
    MK__SERVER_RUNNING,
    MK__SERVER_HANDED_OVER, /* another process has the listeners too */
    MK__SERVER_DRAINING,    /* likewise, and mk_server_drain_now() was called */
};

struct mk__embedded;
/* What the functions in lib/embed/, which the program `monkey` does without, do at other calls. */
struct mk__embedded_ops {
    void (*stopped)(struct mk__embedded *embedded); /* the workers are gone */
    void (*free)(struct mk__embedded *embedded);
};

struct mk_server {
    struct mk__generation_source source;
    struct mk_generation *current; /* in use, or loaded last */
    struct mk_generation *failed;  /* a later one that could not be used, kept for its problems */
    pthread_mutex_t lock; /* of `state`, `workers` ...: other threads may call mk_server_stop_now() and so on */
    _Atomic(enum mk__server_state) state; /* read without the lock too */
    struct mk__listeners listeners;
    struct mk_thread_pool thread_pool;
    struct mk__thread **workers;
    unsigned n_workers;
    struct mk__control_thread *control_thread; /* NULL before the first reload, unless the scheduler is fair */
    struct mk__limits limits;
    struct mk__balancer balancer;
    bool counts;                             /* the memory of the counters is open; the server works without */
    uint32_t generations;                    /* that have served so far */
    mk_server_command_fn command_fn;         /* of mk_server_on_command() */
    struct mk_server_reload *asked, *served; /* reloads that plugins have asked for, under `lock` */
    bool reloading, stop_requested;          /* the second by mk_server_stop_now(); both under `lock` */
    _Atomic(pid_t) caller;                   /* the thread between mk__server_enter() and mk__server_leave() */
    const char *_Atomic refusal;             /* why the last call failed, if that is a mistake of the program */
    int error;                               /* -errno of the last load, start or reload; 0: it succeeded */
    pid_t pid;                               /* the process that has started it */
    bool is_stale;                           /* what was loaded is not what the program has passed since */
    _Atomic bool in_turn;                    /* of a worker in the thread of the caller */
    struct mk__embedded *embedded;           /* of lib/embed/; NULL: its functions were not called */
    const struct mk__embedded_ops *embedded_ops;
    mk_server_is_own_fn is_own_fn; /* of mk_server_on_check() */
    void *is_own_ctx;
    char folder[PATH_MAX]; /* of source.file */
};

/* Returns whether the workers exist. */
static inline bool mk__server_is_running(const struct mk_server *s)
{
    return s->state >= MK__SERVER_RUNNING;
}

/* Returns whether its one worker runs in the thread that calls mk_server_run_once(). */
static inline bool mk__server_is_in_caller(const struct mk_server *s)
{
    return s->source.program && s->source.program->in_caller;
}

/*
 * Checks that this process and thread may call functions of the server now, and forgets the former refusal.
 * Returns 0 or, with an explanation in s->refusal, -EINVAL (there is no server), -EPERM (another process or thread) or
 * -EDEADLK (called by a hook or handler).
 */
int mk__server_begin_call(struct mk_server *s);
/* The same for a call that waits or runs hooks: until mk__server_leave() all others are refused. */
MK_COLD int mk__server_enter(struct mk_server *s);
MK_COLD void mk__server_leave(struct mk_server *s);
/*
 * Refuses a call that is a mistake of the program: logs the sentence and keeps it. An assertion in debug builds.
 * Returns `err`.
 */
MK_COLD int mk__server_refuse(struct mk_server *s, int err, const char *sentence);

/* Ends all workers, those that are retiring too, without waiting for it. Under the lock. */
MK_COLD void mk__server_stop_workers(struct mk_server *s);
/* Changes the state under the lock. */
void mk__server_set_state(struct mk_server *s, enum mk__server_state state);

/* Loads a generation from the source. Returns 0 or -errno; even then `*ret_g` may be one, which holds the problems. */
MK_COLD int mk__server_load(struct mk_server *s, struct mk_generation **ret_g);
/* Makes a worker that does not run yet; `loops` as `workers` of mk__thread_open(). Returns 0 or -errno. */
MK_COLD int mk__server_open_worker(struct mk_server *s, struct mk_generation *g, unsigned index, unsigned loops,
                                   struct mk__thread **ret);

/*
 * Around a reload: begin takes the reloads that plugins have asked for so far, end tells them the result.
 */
MK_COLD void mk__server_begin_asked(struct mk_server *s);
MK_COLD void mk__server_end_asked(struct mk_server *s, int err);
/* Logs the listeners that were not logged yet. */
MK_COLD void mk__server_log_listeners(struct mk_server *s);

#endif
