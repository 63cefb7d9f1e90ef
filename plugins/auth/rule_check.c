// SPDX-License-Identifier: Apache-2.0
/*
 * Checks of rules (rule_check.h).
 */
#include "rule_check.h"

#include <errno.h>
#include <inttypes.h>

enum { PLACE_BYTES = 1024 };

/* ── users and groups ── */

/* Returns true if a line of the file has the name. `value` is what was made of the file. */
static bool has_name(const struct auth_file *file, const void *value, struct mk_str name)
{
    return file->kind == AUTH_FILE_USERS ? users_find(value, name) != NULL : groups_have(value, name);
}

/* Warns of the names of one line of `Require` that the file does not have. `nth`: which line. */
static void check_line(struct mk_host *host, const struct auth_rule *rule, const struct auth_require *r, unsigned nth)
{
    struct mk_watched_ref ref;
    bool is_user = r->kind == AUTH_REQUIRE_USER;
    const struct auth_file *file = is_user ? rule->users : rule->groups;
    if (!file || r->kind == AUTH_REQUIRE_VALID)
        return;
    mk_watched_ref_peek(&ref, file->watched);
    for (uint32_t i = 0; i < r->names.n; i++)
        if (!has_name(file, mk_watched_ref_get(&ref), r->names.items[i]))
            mk_host_warn(host, rule->conf, offsetof(struct auth_conf, require), nth,
                         "no line of \"%s\" has the %s \"%.*s\"", is_user ? "Users" : "Groups",
                         is_user ? "user" : "group", (int)r->names.items[i].len, r->names.items[i].p);
    mk_watched_ref_release(&ref);
}

static void check_names(struct mk_host *host, const struct auth_rule *rule)
{
    unsigned nth = 0;
    for (const struct auth_require *r = rule->conf->require; r; r = r->next)
        check_line(host, rule, r, nth++);
}

/* ── certificates ── */

/* Reports a section that asks for a client certificate where the handshake does not. Returns 0 or -EINVAL. */
static int check_certificate(struct mk_host *host, const struct auth_conf *c)
{
    if (!c->client_certificate || mk_host_asks_certificate(host))
        return 0;
    mk_host_error(host, c, offsetof(struct auth_conf, client_certificate), 0,
                  "this host asks no client for a certificate: set \"ClientCertificate Optional\" in its [TLS]");
    return -EINVAL;
}

/* ── delays ── */

/* Returns the first section with a login whose failures are delayed, or NULL. */
static const struct auth_conf *find_login(const struct auth_host *h)
{
    unsigned i = 0;
    while (i < h->n && h->rules[i].conf->type != AUTH_BASIC && h->rules[i].conf->type != AUTH_BEARER)
        i++;
    return i < h->n ? h->rules[i].conf : NULL;
}

/*
 * Compares FailureDelay with HandlerTimeout, which would end the wait with 503. The message names the section with the
 * login, `c`, because neither of the two may be in a file. Returns 0 or -EINVAL.
 */
static int check_delay(struct mk_host *host, const struct auth_conf *c)
{
    const struct auth_limits *limits = settings_limits(mk_host_generation(host));
    uint32_t least_ms, delay_ms = limits->delay_ms, timeout_ms = mk_host_handler_timeout_ms(host, &least_ms);
    const size_t offset = offsetof(struct auth_limits, delay_ms);
    MK_BUF_ON_STACK(text, PLACE_BYTES);
    mk_host_conf_origin(host, c, &text);
    if (delay_ms >= timeout_ms)
        mk_host_error(host, limits, offset, 0,
                      "FailureDelay of [AUTH_LIMITS], %" PRIu32 " ms, must be shorter than HandlerTimeout, %" PRIu32
                      " ms: failed logins of [AUTH] in %s would get 503",
                      delay_ms, timeout_ms, mk_buf_cstr(&text));
    else if (delay_ms >= least_ms)
        mk_host_warn(host, limits, offset, 0,
                     "FailureDelay of [AUTH_LIMITS], %" PRIu32 " ms, is not shorter than a HandlerTimeout of [LIMITS], "
                     "%" PRIu32 " ms: failed logins of [AUTH] in %s get 503 for its paths",
                     delay_ms, least_ms, mk_buf_cstr(&text));
    return delay_ms >= timeout_ms ? -EINVAL : 0;
}

/* Warns of a ForwardTimeout that HandlerTimeout ends before: the log has another reason then. */
static void check_forward_timeout(struct mk_host *host, const struct auth_conf *c)
{
    uint32_t least_ms;
    mk_host_handler_timeout_ms(host, &least_ms);
    if (c->type == AUTH_FORWARD && c->forward.timeout_ms >= least_ms)
        mk_host_warn(host, c, offsetof(struct auth_conf, forward.timeout_ms), 0,
                     "ForwardTimeout, %" PRIu32 " ms, is not shorter than HandlerTimeout, %" PRIu32
                     " ms: requests get 503 for that",
                     c->forward.timeout_ms, least_ms);
}

int rule_check(struct mk_host *host, const struct auth_host *h)
{
    const struct auth_conf *login = find_login(h);
    int err = login ? check_delay(host, login) : 0;
    for (unsigned i = 0; i < h->n; i++) {
        check_names(host, &h->rules[i]);
        check_forward_timeout(host, h->rules[i].conf);
        if (check_certificate(host, h->rules[i].conf) < 0)
            err = -EINVAL;
    }
    return err;
}
