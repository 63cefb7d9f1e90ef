// SPDX-License-Identifier: Apache-2.0
#ifndef AUTH_LOGIN_H
#define AUTH_LOGIN_H

#include "rules.h"

/*
 * The responses of the plugin: the server's or the host's pages, with the headers that belong to the status.
 */
/* 429 or 503 with Retry-After. */
void respond_later(struct mk_request *req, int status, uint32_t wait_ms);

/*
 * Checks the login of a request by name and password. What takes a password hash is done in the threads of the pool,
 * while the request waits:
 *
 *     on_request ─► failed too often: 429
 *                ─► cache has it: done
 *                ─► job_start() ─► hash in another thread ─► done, or 401 after FailureDelay
 *                              └─► queue full: 503
 *
 * If the client leaves, the hash is not computed, or its result is dropped.
 */
/*
 * Checks the login.
 * Returns as on_request: MK_DECLINED (it is right), 0 (a response was sent, or the request waits) or -errno.
 */
int login_check(struct mk_request *req, const struct auth_rule *rule);

/*
 * Returns true if the credentials of a request are right for another rule, too, and the cache has them: nothing is
 * computed or counted. With CacheTime 0 that is never known.
 */
bool login_holds(struct mk_request *req, const struct auth_rule *rule);

/*
 * A password hash that a thread of the pool computes, and the requests that wait for it. Requests of one worker with
 * the same client, file, name and password wait for one hash: a browser asks for a page and all that belongs to it at
 * once. In the worker's thread, except where a comment says something else.
 */
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

/*
 * Checks the login of a request by a bearer token. It takes 10 to 160 us for a token that the worker has not seen,
 * which is about a TLS handshake, and is done in the worker's loop.
 *
 *     on_request ─► no token: 401 at once
 *                ─► failed too often: 429, nothing is verified
 *                ─► verified, or the cache has it ─► done
 *                                                ─► wrong: counted, 401 after FailureDelay
 *                                                ─► expired, or without a scope: 401 or 403 at once
 */
/*
 * Checks the token.
 * Returns as on_request: MK_DECLINED (it is right; its claims are those of the request), 0 (a response was sent, or the
 * request waits for FailureDelay) or -errno.
 */
int token_login_check(struct mk_request *req, const struct auth_rule *rule);

/*
 * Returns true if the token of a request is right for another rule, too; nothing is counted. A token that is refused is
 * verified once for each rule and its keys, however often this is asked in one exchange.
 */
bool token_login_holds(struct mk_request *req, const struct auth_rule *rule);

/*
 * Logins of `Type Forward`: a server is asked about each request, which waits for the answer.
 *
 *     on_request ─► the cache has an answer: done
 *                ─► ForwardRequests are under way: 503
 *                ─► question ─► 2xx: CopyHeaders are set, done
 *                           ─► a redirect or 4xx: the client gets it
 *                           ─► no answer, 5xx: another server of the group, else 503
 *
 * No failure lets a request pass. If the client leaves, the question is cancelled.
 */
enum { FORWARD_CACHE_SETS = 256, FORWARD_CACHE_BYTES_MAX = 4096 }; /* of the cache of answers; of one answer */

/*
 * Asks about the request.
 * Returns as on_request: MK_DECLINED (it passes), 0 (a response was sent, or the request waits) or -errno.
 */
int forward_login_check(struct mk_request *req, const struct auth_rule *rule);

/*
 * Removes the headers of CopyHeaders that the client has sent, from a request that passes without a question.
 * Returns MK_DECLINED, 0 (400 was sent) or -errno.
 */
int forward_login_strip(struct mk_request *req, const struct auth_rule *rule);

/* Returns true if the cache has an answer that lets a GET of another path pass. Nothing is asked or counted. */
bool forward_login_holds(struct mk_request *req, const struct auth_rule *rule, struct mk_str path);

#endif
