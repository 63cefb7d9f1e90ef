// SPDX-License-Identifier: Apache-2.0
/*
 * A password hash that a thread of the pool computes, and the requests that wait for it. Requests of one worker with
 * the same client, file, name and password wait for one hash: a browser asks for a page and all that belongs to it at
 * once. In the worker's thread, except where a comment says something else.
 */
#ifndef AUTH_LOGIN_JOB_H
#define AUTH_LOGIN_JOB_H

#include "basic.h"
#include "rules.h"

enum job_result {
    JOB_ACCEPTED,
    JOB_REJECTED, /* the name or the password */
    JOB_SKIPPED,  /* the server stops */
};

struct job_waiter;
/* `user`: valid until it returns. The waiter does not wait any more. */
typedef void (*job_done_fn)(struct job_waiter *w, enum job_result result, struct mk_str user);

struct job_waiter {
    struct mk_list node;
    struct login_job *job; /* NULL: it does not wait */
    job_done_fn done;
};

/* A login to check. */
struct job_login {
    struct auth_process *process;
    const struct auth_limits *limits;
    const struct auth_rule *rule;
    const struct users *users;        /* with one user at least */
    const struct htpasswd_user *user; /* NULL: there is none of that name */
    const struct basic_credentials *credentials;
    struct mk_address client;
};

/*
 * Has `w->done` called when the login was checked, never within this function.
 * Returns 0, -EBUSY (the client has too many that are checked), -ENOBUFS (the queue is full), -EAGAIN (no thread) or
 * -ENOMEM.
 */
int job_start(struct job_waiter *w, struct mk_request *req, const struct job_login *login);

/* Ends the wait; `done` is not called. Does nothing if it does not wait. */
void job_leave(struct job_waiter *w);

/*
 * Writes a line about a login to the log, which names client and user (`.p` NULL: not known), and as mk_request_log()
 * peer, listener and host.
 */
void job_log(struct mk_request *req, enum mk_log_level level, struct mk_str user, const char *what);
/* Writes that a client has failed as often as MaxFailures allows. */
void job_log_blocked(struct mk_request *req);
/* Writes, once a minute at most, that the table of failures was too small for all clients. */
void job_log_evictions(struct auth_process *process, uint64_t now_ms);

/* The threads that compute hashes. */
extern const struct mk_thread_pool_type job_pool_type;

/* Returns the limits for clients. */
struct failures_limits job_failures_limits(const struct auth_limits *limits);

#endif
