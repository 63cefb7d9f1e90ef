// SPDX-License-Identifier: Apache-2.0
#include "login.h"
#include "passwords.h"

#include <monkey/base/base64.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static const struct mk_counter_info logins = {"auth", "logins", "logins of requests, by type and result",
                                              MK_COUNTER_SUM};

#define PLACE(type, result) ((type)*LOGIN_RESULTS + (result))
#define ROW(type, type_text, result, result_text) \
    [PLACE(type, result)] = {&logins, {"type", type_text, "result", result_text}}
#define ROWS(type, text) \
    ROW(type, text, LOGIN_ACCEPTED, "accepted"), ROW(type, text, LOGIN_MISSING, "missing"), \
        ROW(type, text, LOGIN_WRONG, "wrong"), ROW(type, text, LOGIN_FORBIDDEN, "forbidden"), \
        ROW(type, text, LOGIN_BLOCKED, "blocked"), ROW(type, text, LOGIN_BUSY, "busy")

enum { LOGIN_COUNTS = LOGIN_TYPES * LOGIN_RESULTS };

static const struct mk_counter_row rows[LOGIN_COUNTS] = {
    ROWS(LOGIN_PASSWORD, "password"),
    ROWS(LOGIN_TOKEN, "token"),
    ROWS(LOGIN_CERTIFICATE, "certificate"),
    ROWS(LOGIN_FORWARD, "forward"),
};

static const struct mk_counter *counters[LOGIN_COUNTS];

void login_counters_open(void)
{
    mk_counters_open(rows, LOGIN_COUNTS, counters);
}

void login_counters_add(enum login_type type, enum login_result result, const struct mk_worker *worker)
{
    assert(type < LOGIN_TYPES && result < LOGIN_RESULTS);
    mk_counter_add(counters[PLACE(type, result)], worker, 1);
}

/* 401 (RFC 9110 section 15.5.2) with WWW-Authenticate, which is valid until the exchange ends. */
static void send_challenge(struct mk_request *req, struct mk_str challenge)
{
    mk_response_error(req, 401);
    mk_response_header_ref(req, MK_STR("WWW-Authenticate"), challenge);
}

void respond_later(struct mk_request *req, int status, uint32_t wait_ms)
{
    char seconds[16];
    snprintf(seconds, sizeof(seconds), "%u", wait_ms / 1000 + (wait_ms % 1000 != 0));
    mk_response_error(req, status);
    mk_response_header(req, MK_STR("Retry-After"), mk_str_c(seconds));
    mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("no-store"));
}

/* Cuts the scheme off. Returns false if it is not Basic. */
static bool skip_scheme(struct mk_str *value)
{
    static const struct mk_str name = MK_STR_INIT("Basic");
    if (value->len < name.len || !mk_str_ieq(mk_str(value->p, name.len), name))
        return false;
    *value = mk_str(value->p + name.len, value->len - name.len);
    if (value->len && value->p[0] != ' ')
        return false; /* another scheme, whose name is longer */
    *value = mk_str_trim(*value);
    return true;
}

enum basic_result basic_read(struct mk_str value, struct basic_credentials *ret)
{
    struct mk_buf bytes;
    size_t at;
    ret->user = ret->password = MK_STR_NONE;
    if (!value.p || !skip_scheme(&value))
        return BASIC_NONE;
    mk_buf_init_fixed(&bytes, ret->bytes, sizeof(ret->bytes));
    if (mk_base64_decode(&bytes, value, MK_BASE64) < 0 || !htpasswd_is_text(mk_buf_str(&bytes), &at))
        return BASIC_MALFORMED;
    const char *colon = bytes.len ? memchr(ret->bytes, ':', bytes.len) : NULL;
    if (!colon)
        return BASIC_MALFORMED;
    ret->user = mk_str(ret->bytes, (size_t)(colon - ret->bytes));
    ret->password = mk_str(colon + 1, bytes.len - ret->user.len - 1);
    if (ret->user.len > HTPASSWD_NAME_MAX || ret->password.len > HASH_PASSWORD_MAX)
        return BASIC_MALFORMED;
    return BASIC_OK;
}

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
    return rules_keep_login(req, rule, user);
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
    send_challenge(login->req, login->rule->challenge);
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
        send_challenge(req, rule->challenge);
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
