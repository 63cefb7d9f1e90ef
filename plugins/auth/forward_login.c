// SPDX-License-Identifier: Apache-2.0
#include "login.h"

#include <monkey/kit/via.h>

#include <errno.h>

enum { RETRY_MS = 1000, REASON_BYTES = 512, LOOP_STATUS = 508 };

static_assert(1 + FORWARD_HEADERS_MAX <= TEXT_CACHE_TEXTS_MAX, "an entry has room for an answer");

/* A question about a request, in its arena. */
struct question {
    struct mk_request *req;
    const struct auth_rule *rule;
    struct auth_worker *worker;
    struct mk_http_client client;
    struct mk_buf head;
    struct mk_upstream_tries tries;
    struct mk_upstream_wait wait;
    struct mk_upstream_server *server;   /* of the group, which counts this request; NULL: none */
    const struct mk_backend_stats *lost; /* of the server that has not served it; NULL: none, or it is counted */
    struct mk_timer timer;               /* while it waits for one */
    uint64_t end_ms, sent_ms;
    bool is_open;                                  /* counted in the worker */
    bool is_keyed;                                 /* the answer may be kept */
    unsigned char digest[TEXT_CACHE_DIGEST_BYTES]; /* with is_keyed */
};

static struct auth_worker *get_worker(const struct mk_request *req)
{
    return mk_worker_state(mk_request_worker(req), &mk_plugin_auth);
}

static const struct forward_conf *get_conf(const struct auth_rule *rule)
{
    return &rule->conf->forward;
}

/* ── requests that pass ── */

/* Sets the headers of an answer in the request, or removes them; NULL: there is no answer. Returns 0 or -errno. */
static int set_headers(struct mk_request *req, const struct auth_rule *rule, const struct forward_answer *answer)
{
    const struct forward_names *copy = &get_conf(rule)->copy;
    struct mk_header_field headers[FORWARD_HEADERS_MAX];
    for (uint32_t i = 0; i < copy->n; i++)
        headers[i] = (struct mk_header_field){copy->items[i], answer ? answer->values[i] : MK_STR_NONE};
    int err = copy->n ? forward_keep_lines(req, copy) : 0;
    return copy->n && err == 0 ? mk_request_replace_headers(req, headers, copy->n) : err;
}

/* Lets a request pass whose user `Require` admits. Returns as on_request. */
static int admit_answer(struct mk_request *req, const struct auth_rule *rule, const struct forward_answer *answer)
{
    if (!rules_admits(req, rule, answer->user)) {
        job_log(req, MK_LOG_INFO, answer->user, "403, because \"Require\" does not name this user");
        rules_count_login(req, LOGIN_FORWARD, LOGIN_FORBIDDEN);
        mk_response_error(req, 403);
        return 0;
    }
    int err = set_headers(req, rule, answer);
    int r = err < 0 ? err : rules_keep_login(req, rule, answer->user.len ? answer->user : MK_STR_NONE);
    if (r == MK_DECLINED)
        rules_count_login(req, LOGIN_FORWARD, LOGIN_ACCEPTED);
    return r;
}

static int reject_connection(struct mk_request *req)
{
    job_log(req, MK_LOG_INFO, MK_STR_NONE,
            "400, because Connection or Trailer names a header of \"CopyHeaders\" or \"ForwardCacheBy\"");
    mk_response_error(req, 400);
    return 0;
}

int forward_login_strip(struct mk_request *req, const struct auth_rule *rule)
{
    if (!get_conf(rule)->copy.n)
        return MK_DECLINED;
    if (!forward_is_connection_valid(req, get_conf(rule)))
        return reject_connection(req);
    int err = set_headers(req, rule, NULL);
    return err < 0 ? err : MK_DECLINED;
}

/* ── the cache ── */

/* Makes the digest of the question about a request, or about another path. Returns false if nothing is kept. */
static bool make_digest(struct mk_request *req, const struct auth_rule *rule, struct mk_str subject,
                        unsigned char digest[TEXT_CACHE_DIGEST_BYTES])
{
    const struct text_cache *cache = get_worker(req)->answers;
    struct mk_buf deciding;
    if (!cache || !get_conf(rule)->cache_ms)
        return false;
    mk_buf_init(&deciding, FORWARD_SUBJECT_BYTES_MAX);
    forward_write_deciding(&deciding, req, get_conf(rule));
    const struct mk_str parts[] = {mk_str((const char *)&rule, sizeof(rule)), subject, mk_buf_str(&deciding)};
    bool done = !deciding.err && text_cache_hash(cache, parts, MK_COUNT_OF(parts), digest);
    mk_buf_release(&deciding);
    return done;
}

static bool find_answer(struct mk_request *req, const struct auth_rule *rule, const unsigned char *digest,
                        struct forward_answer *ret)
{
    ret->n = get_conf(rule)->copy.n;
    return text_cache_find(get_worker(req)->answers, digest, (int64_t)mk_loop_now_ms(mk_request_loop(req)), ret->texts,
                           1 + ret->n, NULL);
}

bool forward_login_holds(struct mk_request *req, const struct auth_rule *rule, struct mk_str path)
{
    unsigned char digest[TEXT_CACHE_DIGEST_BYTES];
    struct forward_answer answer;
    struct mk_buf subject;
    if (!get_conf(rule)->cache_ms || !forward_is_connection_valid(req, get_conf(rule)))
        return false;
    mk_buf_init(&subject, FORWARD_SUBJECT_BYTES_MAX);
    forward_write_subject(&subject, req, path);
    bool holds = !subject.err && make_digest(req, rule, mk_buf_str(&subject), digest) &&
                 find_answer(req, rule, digest, &answer) && rules_admits(req, rule, answer.user);
    mk_buf_release(&subject);
    return holds;
}

/* ── the end of a question ── */

/* Ends all that is under way. May be called again. */
static void end_question(void *ctx)
{
    struct question *q = ctx;
    if (!q->is_open)
        return;
    q->is_open = false;
    q->worker->n_questions--;
    mk_timer_cancel(&q->timer);
    mk_http_client_cancel(&q->client);
    if (q->rule->forward->group)
        q->rule->forward->upstreams->cancel(&q->wait);
    if (q->server)
        q->rule->forward->upstreams->end(q->server, mk_request_worker(q->req));
    q->server = NULL;
    mk_buf_release(&q->head);
}

static void respond_busy(struct mk_request *req)
{
    rules_count_login(req, LOGIN_FORWARD, LOGIN_BUSY);
    respond_later(req, 503, RETRY_MS);
}

/* There is no decision. */
static void fail_question(struct question *q, const char *reason)
{
    const struct mk_str to = get_conf(q->rule)->to.text, server = q->server ? q->server->name : MK_STR("");
    mk_request_log(q->req, MK_LOG_ERROR, "auth: %.*s%s%.*s decides nothing, and the request gets 503: %s",
                   MK_STR_ARG(to), server.len ? ", server " : "", MK_STR_ARG(server), reason);
    end_question(q);
    respond_busy(q->req);
}

/* A question comes back to where it was asked: a server of the group would ask it again, too. */
static void reject_loop(struct mk_request *req, const struct auth_rule *rule, const char *reason)
{
    const struct mk_str to = get_conf(rule)->to.text;
    mk_request_log(req, MK_LOG_WARN,
                   "auth: %.*s%s, and the request gets 508: what the question asks for must not be below a section "
                   "with \"Type Forward\": write \"Type Off\" for its path",
                   MK_STR_ARG(to), reason);
    rules_count_login(req, LOGIN_FORWARD, LOGIN_BUSY);
    mk_response_error(req, LOOP_STATUS);
}

static void continue_request(struct mk_request *req, int r)
{
    if (r == MK_DECLINED)
        mk_request_decline(req);
    else if (r < 0)
        respond_busy(req);
}

/* Returns as on_request. */
static int use_answer(struct question *q, const struct mk_http_response *response, struct mk_arena *arena)
{
    const struct forward_conf *conf = get_conf(q->rule);
    struct forward_answer answer;
    int err = forward_read_answer(&answer, conf, response, arena);
    if (err < 0)
        return err;
    if (q->is_keyed)
        text_cache_add(q->worker->answers, q->digest, (int64_t)mk_loop_now_ms(mk_request_loop(q->req)) + conf->cache_ms,
                       answer.texts, 1 + answer.n);
    int r = admit_answer(q->req, q->rule, &answer);
    return r == MK_DECLINED && conf->set_cookie && forward_pass_cookies(q->req, response) < 0 ? -ENOMEM : r;
}

static void pass_request(struct question *q, const struct mk_http_response *response)
{
    struct mk_arena arena;
    end_question(q);
    mk_arena_init(&arena, mk_request_account(q->req), FORWARD_VALUES_BYTES_MAX, NULL, 0);
    int r = use_answer(q, response, &arena);
    mk_arena_release(&arena);
    continue_request(q->req, r);
}

static void refuse_request(struct question *q, const struct mk_http_response *response)
{
    unsigned status = response->status;
    enum login_result result = status == 401 || status < 400 ? LOGIN_MISSING
                               : status == 403               ? LOGIN_FORBIDDEN
                                                             : LOGIN_WRONG;
    end_question(q);
    rules_count_login(q->req, LOGIN_FORWARD, result);
    forward_send_refusal(q->req, response);
}

/* The server has found the loop, or another one behind it. */
static void end_loop(struct question *q)
{
    const struct mk_str server = q->server ? q->server->name : MK_STR("");
    MK_BUF_ON_STACK(reason, REASON_BYTES);
    mk_buf_addf(&reason, "%s%.*s responds with 508: the question has come back there, or to a server that it asks",
                server.len ? ", server " : "", MK_STR_ARG(server));
    end_question(q);
    reject_loop(q->req, q->rule, mk_buf_cstr(&reason));
}

/* ── servers ── */

static bool ask_other_server(struct question *q, const struct mk_http_response *response);

/* The response decides nothing. */
static void drop_response(struct question *q, const struct mk_http_response *response)
{
    MK_BUF_ON_STACK(reason, REASON_BYTES);
    if (response->err < 0)
        mk_buf_addf(&reason, "%s", response->error);
    else
        mk_buf_addf(&reason, "it responds with %u", response->status);
    if (!ask_other_server(q, response))
        fail_question(q, mk_buf_cstr(&reason));
}

static void report_outcome(const struct question *q, const struct mk_http_response *r)
{
    const struct forward *f = q->rule->forward;
    const struct mk_upstream_outcome outcome = {.err = r->err,
                                                .status = r->status,
                                                .head_ms =
                                                    (uint32_t)(mk_loop_now_ms(mk_request_loop(q->req)) - q->sent_ms),
                                                .is_connected = r->is_connected};
    if (q->server && !mk_dial_error_is_own(r->err))
        f->upstreams->report(f->group, q->server, mk_request_worker(q->req), &outcome);
}

static void on_response(struct mk_http_client *client, const struct mk_http_response *response)
{
    static void (*const actions[])(struct question * q, const struct mk_http_response *response) = {
        [FORWARD_PASS] = pass_request, [FORWARD_REFUSE] = refuse_request, [FORWARD_INVALID] = drop_response};
    struct question *q = MK_CONTAINER_OF(client, struct question, client);
    report_outcome(q, response);
    if (response->err == 0 && response->status == LOOP_STATUS) {
        end_loop(q);
        return;
    }
    actions[response->err < 0 ? FORWARD_INVALID : forward_decide(response->status)](q, response);
}

/* Returns the time that is left; 0: none. */
static uint32_t get_left_ms(const struct question *q)
{
    uint64_t now_ms = mk_loop_now_ms(mk_request_loop(q->req));
    return q->end_ms > now_ms ? (uint32_t)(q->end_ms - now_ms) : 0;
}

static const struct mk_backend_stats *find_stats(const struct question *q, const struct mk_upstream_server *server)
{
    const struct mk_target_stats *stats = &q->rule->forward->stats;
    return server ? mk_target_stats_find(stats, server->name) : stats->backend;
}

static void send_question(struct question *q)
{
    const struct forward *f = q->rule->forward;
    uint32_t left_ms = get_left_ms(q);
    const struct mk_http_client_options options = {
        .target = q->server ? q->server->target : f->conf->to.dial,
        .transport = f->transport,
        .settings = f->settings,
        .worker = mk_request_worker(q->req),
        .head = mk_buf_str(&q->head),
        .timeout_ms = left_ms ? left_ms : 1,
        .body_bytes_max = FORWARD_BODY_BYTES_MAX,
        .idle = forward_binds_connection(q->req) ? NULL : &q->worker->idle,
        .stats = find_stats(q, q->server),
    };
    mk_timer_cancel(&q->timer);
    if (q->lost)
        mk_backend_stats_add(q->lost, MK_BACKEND_RETRIES + q->tries.failure, mk_request_worker(q->req), 1);
    q->lost = NULL;
    q->sent_ms = mk_loop_now_ms(mk_request_loop(q->req));
    mk_http_client_start(&q->client, mk_request_loop(q->req), &options, on_response);
}

/* The group has no server. */
static void fail_choice(struct question *q, int err)
{
    MK_BUF_ON_STACK(reason, REASON_BYTES);
    q->rule->forward->upstreams->explain(q->rule->forward->group, err, &reason);
    fail_question(q, mk_buf_cstr(&reason));
}

static void end_wait(struct mk_upstream_wait *wait, int err, struct mk_upstream_server *server)
{
    struct question *q = MK_CONTAINER_OF(wait, struct question, wait);
    q->server = err == 0 ? server : NULL;
    if (err == 0)
        send_question(q);
    else
        fail_choice(q, err);
}

static void end_time(struct mk_timer *timer)
{
    fail_question(MK_CONTAINER_OF(timer, struct question, timer), "no server of the group had room in ForwardTimeout");
}

/* Asks `To`, or a server of the group, now or after a wait. Returns 0, -ENXIO, -EBUSY or -ENOMEM. */
static int choose_server(struct question *q)
{
    const struct forward *f = q->rule->forward;
    int r = f->group ? f->upstreams->choose(f->group, q->req, &q->tries, &q->wait, end_wait, &q->server) : 0;
    if (r == 0)
        send_question(q);
    else if (r == MK_AGAIN)
        mk_timer_arm(mk_request_loop(q->req), &q->timer, get_left_ms(q));
    return r < 0 ? r : 0;
}

/* Asks another server of the group, after this response or error. Returns whether there is one. */
static bool ask_other_server(struct question *q, const struct mk_http_response *response)
{
    struct mk_upstream_server *former = q->server;
    if (!former || !get_left_ms(q))
        return false;
    q->tries.status = response->status;
    q->tries.failure = response->err == 0       ? MK_UPSTREAM_STATUS
                       : response->is_connected ? MK_UPSTREAM_SENT
                                                : MK_UPSTREAM_NOT_REACHED;
    q->server = NULL;
    q->lost = find_stats(q, former);
    bool is_asked = choose_server(q) == 0;
    if (!is_asked) {
        q->server = former;
        return false;
    }
    q->rule->forward->upstreams->end(former, mk_request_worker(q->req));
    return true;
}

/* ── questions ── */

/* Makes a question that ends with the exchange. Returns NULL without memory. */
static struct question *make_question(struct mk_request *req, const struct auth_rule *rule, struct mk_str subject)
{
    struct question *q = mk_arena_zalloc(mk_request_arena(req), sizeof(*q));
    if (!q || mk_arena_defer(mk_request_arena(req), end_question, q) < 0)
        return NULL;
    q->req = req;
    q->rule = rule;
    q->worker = get_worker(req);
    q->end_ms = mk_loop_now_ms(mk_request_loop(req)) + get_conf(rule)->timeout_ms;
    mk_timer_init(&q->timer, end_time);
    mk_buf_init(&q->head, FORWARD_HEAD_BYTES_MAX);
    forward_write_head(&q->head, req, get_conf(rule), subject, rule->forward->via_mark);
    q->worker->n_questions++;
    q->is_open = true;
    return q;
}

/* Returns as on_request; `digest` NULL: the answer is not kept. */
static int ask_question(struct mk_request *req, const struct auth_rule *rule, struct mk_str subject,
                        const unsigned char *digest)
{
    if (get_worker(req)->n_questions >= rules_limits(req)->questions) {
        job_log(req, MK_LOG_WARN, MK_STR_NONE, "503, because ForwardRequests are under way");
        respond_busy(req);
        return 0;
    }
    struct question *q = make_question(req, rule, subject);
    if (!q)
        return -ENOMEM;
    if (q->head.err) {
        fail_question(q, "there is no memory for the question");
        return 0;
    }
    q->is_keyed = digest != NULL;
    if (digest)
        memcpy(q->digest, digest, TEXT_CACHE_DIGEST_BYTES);
    int err = choose_server(q);
    if (err < 0)
        fail_choice(q, err);
    return 0;
}

static int check_subject(struct mk_request *req, const struct auth_rule *rule, struct mk_str subject)
{
    unsigned char digest[TEXT_CACHE_DIGEST_BYTES];
    struct forward_answer answer;
    bool is_keyed = make_digest(req, rule, subject, digest);
    if (is_keyed && find_answer(req, rule, digest, &answer))
        return admit_answer(req, rule, &answer);
    return ask_question(req, rule, subject, is_keyed ? digest : NULL);
}

int forward_login_check(struct mk_request *req, const struct auth_rule *rule)
{
    struct mk_buf subject;
    if (!forward_is_connection_valid(req, get_conf(rule)))
        return reject_connection(req);
    if (mk_via_is_loop(mk_request_header_by_name(req, MK_STR("Via")), rule->forward->via_mark)) {
        reject_loop(req, rule, ": a loop: the question about a request comes back to this server");
        return 0;
    }
    mk_buf_init(&subject, FORWARD_SUBJECT_BYTES_MAX);
    forward_write_subject(&subject, req, MK_STR_NONE);
    int r = subject.err ? -ENOMEM : check_subject(req, rule, mk_buf_str(&subject));
    mk_buf_release(&subject);
    return r;
}
