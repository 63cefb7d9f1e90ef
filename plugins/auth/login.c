// SPDX-License-Identifier: Apache-2.0
/*
 * Logins by name and password (login.h).
 */
#include "login.h"

#include "login_job.h"
#include "respond.h"

#include <errno.h>

enum { RETRY_MS = 1000 };

/* A request that waits for a hash, or until FailureDelay has passed. In its arena. */
struct login {
    struct job_waiter waiter;
    struct mk_request *req;
    const struct auth_rule *rule;
    struct mk_timer delay;
    uint64_t began_ms;
};

/* Lets a user in whose password is right. Returns as on_request. */
static int admit_user(struct mk_request *req, const struct auth_rule *rule, struct mk_str user)
{
    if (!rules_admits(req, rule, user)) {
        job_log(req, MK_LOG_INFO, user, "403, because \"Require\" does not name this user");
        rules_count_login(req, LOGIN_PASSWORD, LOGIN_FORBIDDEN);
        mk_response_error(req, 403);
        return 0;
    }
    rules_count_login(req, LOGIN_PASSWORD, LOGIN_ACCEPTED);
    return mk_request_set_user(req, user) < 0 ? -ENOMEM : MK_DECLINED;
}

/* The login was not checked. */
static void respond_busy(struct mk_request *req)
{
    rules_count_login(req, LOGIN_PASSWORD, LOGIN_BUSY);
    respond_later(req, 503, RETRY_MS);
}

/* ── requests that wait ── */

static void send_failure(struct mk_timer *timer)
{
    struct login *login = MK_CONTAINER_OF(timer, struct login, delay);
    respond_challenge(login->req, login->rule->challenge);
}

/* Responds when FailureDelay has passed since the request came, so that the time does not tell that of the hash. */
static void delay_failure(struct login *login)
{
    uint64_t now_ms = mk_loop_now_ms(mk_request_loop(login->req));
    rules_count_login(login->req, LOGIN_PASSWORD, LOGIN_WRONG);
    uint64_t end_ms = login->began_ms + rules_limits(login->req)->delay_ms;
    mk_timer_arm(mk_request_loop(login->req), &login->delay, end_ms > now_ms ? (uint32_t)(end_ms - now_ms) : 0);
}

static void continue_request(struct login *login, struct mk_str user)
{
    int r = admit_user(login->req, login->rule, user);
    if (r == MK_DECLINED)
        mk_request_decline(login->req);
    else if (r < 0)
        respond_later(login->req, 503, RETRY_MS);
}

static void finish_login(struct job_waiter *w, enum job_result result, struct mk_str user)
{
    struct login *login = MK_CONTAINER_OF(w, struct login, waiter);
    if (result == JOB_ACCEPTED)
        continue_request(login, user);
    else if (result == JOB_REJECTED)
        delay_failure(login);
    else
        respond_busy(login->req);
}

static void end_login(void *ctx)
{
    struct login *login = ctx;
    mk_timer_cancel(&login->delay);
    job_leave(&login->waiter);
}

static struct login *make_login(struct mk_request *req, const struct auth_rule *rule)
{
    struct login *login = mk_arena_alloc(mk_request_arena(req), sizeof(*login));
    if (!login)
        return NULL;
    *login = (struct login){.req = req, .rule = rule, .began_ms = mk_loop_now_ms(mk_request_loop(req))};
    login->waiter.done = finish_login;
    mk_timer_init(&login->delay, send_failure);
    return mk_arena_defer(mk_request_arena(req), end_login, login) < 0 ? NULL : login;
}

/* Has the hash computed, or fails at once if the file has no users. Returns 0, or -errno (nothing was begun). */
static int wait_for_hash(struct mk_request *req, const struct job_login *l)
{
    struct login *login = make_login(req, l->rule);
    if (!login)
        return -ENOMEM;
    if (l->users->n)
        return job_start(&login->waiter, req, l);
    delay_failure(login);
    return 0;
}

/* ── checks ── */

/* Returns true if the user's password is in the cache. */
static bool is_cached(const struct mk_request *req, const struct job_login *l)
{
    struct cache_key key;
    const struct basic_credentials *c = l->credentials;
    return l->user && cache_make_key(l->process->cache, l->user->hash, c->user, c->password, &key) &&
           cache_has(l->process->cache, &key, mk_loop_now_ms(mk_request_loop(req)));
}

static const char *explain_error(int err)
{
    return err == -EBUSY     ? "503, because this client has too many logins at once"
           : err == -ENOBUFS ? "503, because too many requests wait for a password hash (HashQueue)"
                             : strerror(-err);
}

static int check_login(struct mk_request *req, const struct job_login *l)
{
    struct failures_limits limits = job_failures_limits(l->limits);
    uint32_t wait_ms =
        failures_wait_ms(l->process->failures, &l->client, mk_loop_now_ms(mk_request_loop(req)), &limits);
    if (wait_ms) {
        job_log(req, MK_LOG_DEBUG, l->credentials->user, "429 after too many failures (MaxFailures)");
        rules_count_login(req, LOGIN_PASSWORD, LOGIN_BLOCKED);
        respond_later(req, 429, wait_ms);
        return 0;
    }
    if (is_cached(req, l))
        return admit_user(req, l->rule, l->credentials->user);
    int err = wait_for_hash(req, l);
    if (err < 0) {
        job_log(req, MK_LOG_WARN, l->credentials->user, explain_error(err));
        respond_busy(req);
    }
    return 0;
}

static struct job_login make_job_login(struct mk_request *req, const struct auth_rule *rule,
                                       const struct basic_credentials *credentials)
{
    const struct users *users = rules_users(req, rule);
    return (struct job_login){.process = rules_process(req),
                              .limits = rules_limits(req),
                              .rule = rule,
                              .users = users,
                              .user = users_find(users, credentials->user),
                              .credentials = credentials,
                              .client = mk_request_client(req)};
}

int login_check(struct mk_request *req, const struct auth_rule *rule)
{
    MK_UNINITIALIZED struct basic_credentials credentials;
    int r = 0;
    if (basic_read(mk_request_header(req, MK_HEADER_AUTHORIZATION), &credentials) == BASIC_OK) {
        struct job_login login = make_job_login(req, rule, &credentials);
        r = check_login(req, &login);
    } else {
        rules_count_login(req, LOGIN_PASSWORD, LOGIN_MISSING);
        respond_challenge(req, rule->challenge);
    }
    explicit_bzero(credentials.bytes, sizeof(credentials.bytes));
    return r;
}

bool login_holds(struct mk_request *req, const struct auth_rule *rule)
{
    MK_UNINITIALIZED struct basic_credentials credentials;
    bool holds = false;
    if (basic_read(mk_request_header(req, MK_HEADER_AUTHORIZATION), &credentials) == BASIC_OK) {
        struct job_login login = make_job_login(req, rule, &credentials);
        holds = is_cached(req, &login) && rules_admits(req, rule, credentials.user);
    }
    explicit_bzero(credentials.bytes, sizeof(credentials.bytes));
    return holds;
}
