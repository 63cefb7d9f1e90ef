// SPDX-License-Identifier: Apache-2.0
/*
 * Logins by bearer tokens (token_login.h).
 */
#include "token_login.h"

#include <errno.h>

#include "login_job.h"
#include "respond.h"

enum { ARENA_BYTES_MAX = 64 * 1024, CHALLENGE_BYTES_MAX = 8192, RETRY_MS = 1000 };

/* Decides about the token of a request. What is decided lives in `arena`. */
static void decide(struct mk_request *req, const struct auth_rule *rule, struct bearer_decision *ret,
                   struct mk_arena *arena)
{
    struct mk_str token;
    struct auth_worker *worker = mk_worker_state(mk_request_worker(req), &mk_plugin_auth);
    *ret = (struct bearer_decision){.result = bearer_find(mk_request_header(req, MK_HEADER_AUTHORIZATION), &token)};
    if (ret->result == TOKEN_OK)
        token_cache_decide(worker->tokens, ret, token, rules_keys(req, rule), rule->claims,
                           mk_loop_wall_seconds(mk_request_loop(req)) * 1000, arena);
}

/* Sends the response for a token that is missing or refused. */
static void refuse_token(struct mk_request *req, const struct auth_rule *rule, enum token_result result)
{
    struct mk_buf text;
    const struct token_meaning *meaning = token_result_meaning(result);
    struct mk_address client = mk_request_client(req);
    if (result != TOKEN_ABSENT)
        job_log(MK_LOG_INFO, &client, MK_STR_NONE, meaning->reason);
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

/* Lets the user of a token in. Returns as on_request. */
static int admit_token(struct mk_request *req, const struct auth_rule *rule, const struct bearer_decision *d)
{
    struct mk_address client = mk_request_client(req);
    if (!rules_admits(req, rule, d->subject)) {
        job_log(MK_LOG_INFO, &client, d->subject, "403, because \"Require\" does not name this user");
        mk_response_error(req, 403);
        return 0;
    }
    if (mk_request_set_claims(req, d->claims) < 0 || (d->subject.p && mk_request_set_user(req, d->subject) < 0))
        return -ENOMEM;
    return MK_DECLINED;
}

int token_login_check(struct mk_request *req, const struct auth_rule *rule)
{
    struct mk_arena arena;
    struct bearer_decision decision;
    int r = 0;
    mk_arena_init(&arena, mk_request_account(req), ARENA_BYTES_MAX, NULL, 0);
    decide(req, rule, &decision, &arena);
    if (decision.result == TOKEN_OK)
        r = admit_token(req, rule, &decision);
    else
        refuse_token(req, rule, decision.result);
    mk_arena_release(&arena);
    return r;
}

bool token_login_holds(struct mk_request *req, const struct auth_rule *rule)
{
    struct mk_arena arena;
    struct bearer_decision decision;
    mk_arena_init(&arena, mk_request_account(req), ARENA_BYTES_MAX, NULL, 0);
    decide(req, rule, &decision, &arena);
    bool holds = decision.result == TOKEN_OK && rules_admits(req, rule, decision.subject);
    mk_arena_release(&arena);
    return holds;
}
