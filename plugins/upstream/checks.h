// SPDX-License-Identifier: Apache-2.0
#ifndef UPSTREAM_CHECKS_H
#define UPSTREAM_CHECKS_H

#include "check_conf.h"
#include "groups.h"

#include <monkey/base/log_limit.h>
#include <monkey/kit/fastcgi.h>
#include <monkey/plugin.h>

/*
 * The check of a server: a request or a connection now and then, whose results the server keeps. In the thread of the
 * runner.
 *
 *     check_start ─► wait ─► mk_http_client ─► the result ─► server_note_check ─► wait ...
 */
/* How the checks of a group connect. */
struct check_client {
    const struct mk_transport *transport; /* NULL: plain sockets */
    struct mk_transport_client *settings;
};

struct check {
    struct check *next; /* of its group */
    const struct check_conf *conf;
    const struct check_client *client;
    struct server *server; /* held */
    const struct mk_dial_target *target;
    struct mk_str request; /* empty: a connection is enough */
    uint64_t id;
    struct mk_arena arena;    /* of target and request */
    struct mk_worker *worker; /* NULL: it is not running */
    struct mk_timer timer;
    struct mk_http_client exchange;
    struct mk_fastcgi_response fastcgi; /* of the exchange */
    struct mk_log_limit_row limit;      /* of lines about checks that this process cannot make */
};

/* Makes the check of a server; `conf` is one with a check. With CheckPort the server has a port. Returns 0 or -ENOMEM.
 */
int check_make(const struct check_conf *conf, const struct check_client *client, struct server *server,
               struct check **ret);
void check_free(struct check *check);

/* Start and stop it. `worker` is that of the runner. */
void check_start(struct check *check, struct mk_worker *worker);
void check_stop(struct check *check);

/*
 * What runs once for all workers, such as checks of servers and lookups of names: in the thread of the first worker of
 * the generation in use. No reload ends that thread.
 *
 *     generation_start   runner_init(), runner_add(): the users of this generation
 *     worker_serve       runner_start(): stops the users of the generation before, then starts these, in one turn
 *     worker_retire,     runner_stop(): the process ends, or has no such generation any more
 *     worker_stop
 *
 * So the users of two generations of a server never run at the same time, and those of one that is refused never do.
 * What lasts over reloads belongs to the process, and `start` finds it there. start and stop are called in the thread;
 * stop also after its end, when its loop is closed.
 */
/* Of a generation; in the caller's storage, which lasts as long as that. */
struct runner_user {
    struct runner_user *next;
    /* Begins. `worker` is one of the generation, and valid until stop(), which ends all that was begun with it. */
    void (*start)(struct runner_user *user, struct mk_worker *worker);
    void (*stop)(struct runner_user *user);
};

/* The users of a generation. */
struct runner {
    struct mk_list node; /* in the list of those that run, under its lock */
    struct runner_user *first;
    struct mk_worker *worker; /* NULL: they do not run; in the thread of the first worker */
};

/* Of the process (process.h). */
void runners_init(struct runners *all);
void runners_release(struct runners *all);

void runner_init(struct runner *runner);
/* Adds a user; before the generation is in use. They start in this order, and stop in the opposite one. */
void runner_add(struct runner *runner, struct runner_user *user);

/* Starts the users, if this is the first worker; in worker_serve. */
void runner_start(struct runners *all, struct runner *runner, struct mk_worker *worker);
/* Stops the users, if they run with this worker; in worker_retire and worker_stop. */
void runner_stop(struct runners *all, struct runner *runner, const struct mk_worker *worker);

/*
 * The checks of a generation: of each server of the groups that are checked. They run once for all workers.
 *
 *     generation_start   checks_add()
 *     host_start         checks_open(): settings of TLS, and mistakes of the configuration
 *     generation_stop    checks_free()
 */
/* Those of a group. */
struct check_group {
    struct check_group *next;
    const struct mk_upstream_group *group;
    const struct check_conf *conf;
    struct check_client client;
    struct check *first; /* NULL: it is not checked */
    uint32_t version;    /* of the servers that have checks */
};

struct checks {
    struct runner_user user;
    struct check_group *first;
    struct mk_worker *worker; /* while they run */
    struct mk_timer timer;    /* looks for servers of names that have come and gone */
    bool is_open;             /* checks_open() was called */
};

void checks_init(struct checks *checks);
/* Adds those of a group, which lasts as long. Returns 0 or -ENOMEM. */
int checks_add(struct checks *checks, const struct mk_upstream_group *group, const struct check_conf *conf);
/*
 * Opens the settings of TLS, and reports mistakes at their keys; the first call does it for all. Returns 0, -EINVAL or
 * -ENOMEM.
 */
int checks_open(struct checks *checks, struct mk_host *host);
/* Frees them; they do not run. */
void checks_free(struct checks *checks);

#endif
