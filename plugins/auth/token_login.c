// SPDX-License-Identifier: Apache-2.0
#include "login.h"
#include "token.h"

#include <assert.h>
#include <errno.h>

enum { TEXTS = 4 };

/* Returns true if `ret` is the decision of an entry that has not expired; false also without memory. */
static bool use_entry(struct text_cache *cache, const unsigned char *digest, struct bearer_decision *ret,
                      int64_t now_ms, struct mk_arena *arena)
{
    struct mk_str texts[TEXTS];
    int64_t end_ms;
    if (!text_cache_find(cache, digest, now_ms, texts, TEXTS, &end_ms))
        return false;
    for (unsigned i = 0; i < TEXTS; i++)
        if (texts[i].p && !(texts[i] = mk_arena_dup(arena, texts[i])).p)
            return false;
    *ret = (struct bearer_decision){TOKEN_OK, texts[0], texts[1], texts[2], texts[3], end_ms};
    return true;
}

void token_cache_decide(struct text_cache *cache, struct bearer_decision *ret, struct mk_str token,
                        const struct key_set *keys, const struct claims_rules *rules, int64_t now_ms,
                        struct mk_arena *arena)
{
    unsigned char digest[TEXT_CACHE_DIGEST_BYTES];
    const struct mk_str parts[] = {mk_str((const char *)&rules, sizeof(rules)), key_set_id(keys), token};
    bool hashed = cache && token.len <= JWS_BYTES_MAX && text_cache_hash(cache, parts, MK_COUNT_OF(parts), digest);
    if (hashed && use_entry(cache, digest, ret, now_ms, arena))
        return;
    bearer_decide(ret, token, keys, rules, now_ms, arena);
    if (hashed && ret->result == TOKEN_OK) {
        const struct mk_str texts[TEXTS] = {ret->subject, ret->issuer, ret->scope, ret->claims};
        text_cache_add(cache, digest, ret->end_ms, texts, TEXTS);
    }
}

/*
 * A list for one request. It has as many entries as the host has sections of tokens, and a few more
 * if keys change meanwhile.
 */
bool token_refusals_has(const struct token_refusal *first, const struct claims_rules *rules, const struct key_set *keys)
{
    struct mk_str id = key_set_id(keys);
    for (; first; first = first->next)
        if (first->rules == rules && memcmp(first->keys, id.p, sizeof(first->keys)) == 0)
            return true;
    return false;
}

struct token_refusal *token_refusals_add(struct token_refusal *first, const struct claims_rules *rules,
                                         const struct key_set *keys, struct mk_arena *arena)
{
    struct mk_str id = key_set_id(keys);
    struct token_refusal *refusal = mk_arena_alloc(arena, sizeof(*refusal));
    if (!refusal)
        return NULL;
    assert(id.len == sizeof(refusal->keys));
    *refusal = (struct token_refusal){.next = first, .rules = rules};
    memcpy(refusal->keys, id.p, id.len);
    return refusal;
}

enum { ARENA_BYTES_MAX = 64 * 1024, CHALLENGE_BYTES_MAX = 8192, RETRY_MS = 1000 };

/* A refused token whose response waits until FailureDelay has passed. In the arena of its request. */
struct refusal {
    struct mk_request *req;
    const struct auth_rule *rule;
    enum token_result result;
    struct mk_timer delay;
};

/* Decides about a token. What is decided lives in `arena`. */
static void decide_login(struct mk_request *req, const struct auth_rule *rule, struct mk_str token,
                         struct bearer_decision *ret, struct mk_arena *arena)
{
    struct auth_worker *worker = mk_worker_state(mk_request_worker(req), &mk_plugin_auth);
    token_cache_decide(worker->tokens, ret, token, rules_keys(req, rule), rule->claims,
                       mk_loop_wall_seconds(mk_request_loop(req)) * 1000, arena);
}

/* ── failures ── */

/* Returns 0, or how long the client has to wait because it has failed too often. */
static uint32_t get_wait_ms(struct mk_request *req)
{
    struct failures_limits limits = job_failures_limits(rules_limits(req));
    struct mk_address client = mk_request_client(req);
    return failures_wait_ms(rules_process(req)->failures, &client, mk_loop_now_ms(mk_request_loop(req)), &limits);
}

static void count_failure(struct mk_request *req)
{
    struct failures_limits limits = job_failures_limits(rules_limits(req));
    struct mk_address client = mk_request_client(req);
    struct auth_process *process = rules_process(req);
    uint64_t now_ms = mk_loop_now_ms(mk_request_loop(req));
    if (failures_add(process->failures, &client, now_ms, &limits))
        job_log_blocked(req);
    job_log_evictions(process, now_ms);
}

static void block_client(struct mk_request *req, uint32_t wait_ms)
{
    job_log(req, MK_LOG_DEBUG, MK_STR_NONE, "429 after too many failures (MaxFailures)");
    rules_count_login(req, LOGIN_TOKEN, LOGIN_BLOCKED);
    respond_later(req, 429, wait_ms);
}

/* ── responses ── */

/* Sends the response for a token that is missing or refused. */
static void send_refusal(struct mk_request *req, const struct auth_rule *rule, enum token_result result)
{
    struct mk_buf text;
    const struct token_meaning *meaning = token_result_meaning(result);
    if (meaning->status == 503) {
        respond_later(req, 503, RETRY_MS);
        return;
    }
    mk_buf_init(&text, CHALLENGE_BYTES_MAX);
    bearer_challenge(&text, rule->conf->realm, result, rule->claims);
    mk_response_error(req, meaning->status);
    mk_response_header(req, MK_STR("WWW-Authenticate"), mk_buf_str(&text));
    mk_buf_release(&text);
}

static void end_delay(struct mk_timer *timer)
{
    struct refusal *refusal = MK_CONTAINER_OF(timer, struct refusal, delay);
    send_refusal(refusal->req, refusal->rule, refusal->result);
}

static void cancel_delay(void *ctx)
{
    struct refusal *refusal = ctx;
    mk_timer_cancel(&refusal->delay);
}

/* Sends the response after FailureDelay. Returns 0 or -ENOMEM. */
static int delay_refusal(struct mk_request *req, const struct auth_rule *rule, enum token_result result)
{
    struct refusal *refusal = mk_arena_alloc(mk_request_arena(req), sizeof(*refusal));
    if (!refusal)
        return -ENOMEM;
    *refusal = (struct refusal){.req = req, .rule = rule, .result = result};
    mk_timer_init(&refusal->delay, end_delay);
    if (mk_arena_defer(mk_request_arena(req), cancel_delay, refusal) < 0)
        return -ENOMEM;
    mk_timer_arm(mk_request_loop(req), &refusal->delay, rules_limits(req)->delay_ms);
    return 0;
}

static enum login_result get_login_result(enum token_result result)
{
    int status = token_result_meaning(result)->status;
    return result == TOKEN_ABSENT ? LOGIN_MISSING
           : status == 503        ? LOGIN_BUSY
           : status == 403        ? LOGIN_FORBIDDEN
                                  : LOGIN_WRONG;
}

/* Logs and counts a token that is refused, and responds. Returns as on_request. */
static int refuse_token(struct mk_request *req, const struct auth_rule *rule, enum token_result result)
{
    const struct token_meaning *meaning = token_result_meaning(result);
    rules_count_login(req, LOGIN_TOKEN, get_login_result(result));
    if (result != TOKEN_ABSENT)
        job_log(req, MK_LOG_INFO, MK_STR_NONE, meaning->reason);
    if (meaning->is_failure) {
        count_failure(req);
        return delay_refusal(req, rule, result);
    }
    send_refusal(req, rule, result);
    return 0;
}

/* Lets the user of a token in. Returns as on_request. */
static int admit_token(struct mk_request *req, const struct auth_rule *rule, const struct bearer_decision *d)
{
    if (!rules_admits(req, rule, d->subject)) {
        job_log(req, MK_LOG_INFO, d->subject, "403, because \"Require\" does not name this user");
        rules_count_login(req, LOGIN_TOKEN, LOGIN_FORBIDDEN);
        mk_response_error(req, 403);
        return 0;
    }
    int r = mk_request_set_claims(req, d->claims) < 0 ? -ENOMEM : rules_keep_login(req, rule, d->subject);
    if (r == MK_DECLINED)
        rules_count_login(req, LOGIN_TOKEN, LOGIN_ACCEPTED);
    return r;
}

/* Verifies a token. Returns as on_request. */
static int check_token(struct mk_request *req, const struct auth_rule *rule, struct mk_str token)
{
    struct mk_arena arena;
    struct bearer_decision decision;
    mk_arena_init(&arena, mk_request_account(req), ARENA_BYTES_MAX, NULL, 0);
    decide_login(req, rule, token, &decision, &arena);
    int r = decision.result == TOKEN_OK ? admit_token(req, rule, &decision) : refuse_token(req, rule, decision.result);
    mk_arena_release(&arena);
    return r;
}

int token_login_check(struct mk_request *req, const struct auth_rule *rule)
{
    struct mk_str token;
    enum token_result found = bearer_find(mk_request_header(req, MK_HEADER_AUTHORIZATION), &token);
    if (found != TOKEN_OK)
        return refuse_token(req, rule, found);
    uint32_t wait_ms = get_wait_ms(req);
    if (!wait_ms)
        return check_token(req, rule, token);
    block_client(req, wait_ms);
    return 0;
}

/* ── other paths ── */

static bool was_refused(struct mk_request *req, const struct auth_rule *rule)
{
    const struct auth_exchange *x = mk_request_state(req, &mk_plugin_auth);
    return x && token_refusals_has(x->refusals, rule->claims, rules_keys(req, rule));
}

/* Keeps a refusal for the rest of the exchange, unless there is no memory. */
static void keep_refusal(struct mk_request *req, const struct auth_rule *rule, enum token_result result)
{
    struct auth_exchange *x = rules_get_exchange(req);
    struct token_refusal *first =
        x ? token_refusals_add(x->refusals, rule->claims, rules_keys(req, rule), mk_request_arena(req)) : NULL;
    if (first)
        x->refusals = first;
    job_log(req, MK_LOG_DEBUG, MK_STR_NONE, token_result_meaning(result)->reason);
}

bool token_login_holds(struct mk_request *req, const struct auth_rule *rule)
{
    struct mk_arena arena;
    struct mk_str token;
    struct bearer_decision decision;
    if (bearer_find(mk_request_header(req, MK_HEADER_AUTHORIZATION), &token) != TOKEN_OK || get_wait_ms(req) ||
        was_refused(req, rule))
        return false;
    mk_arena_init(&arena, mk_request_account(req), ARENA_BYTES_MAX, NULL, 0);
    decide_login(req, rule, token, &decision, &arena);
    if (decision.result != TOKEN_OK)
        keep_refusal(req, rule, decision.result);
    bool holds = decision.result == TOKEN_OK && rules_admits(req, rule, decision.subject);
    mk_arena_release(&arena);
    return holds;
}
