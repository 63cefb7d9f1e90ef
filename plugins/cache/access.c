// SPDX-License-Identifier: Apache-2.0
/*
 * The decisions of access.h. Rules and logins have refused requests before this plugin is asked.
 */
#include "access.h"

#include <monkey/local_client.h>

bool access_allows(struct mk_request *req, struct cache_worker *w, const struct cache_rule *rule)
{
    unsigned missing;
    if (mk_request_user(req).p || mk_request_claims(req).p || mk_local_client_is_here(req))
        return true;
    if (mk_request_access(req) == 1 && mk_local_client_names_host(req))
        return true;
    if (mk_log_limit_is_due(&w->denied, 1, 0, mk_loop_now_ms(mk_request_loop(req)), &missing))
        mk_request_log(
            req, MK_LOG_WARN,
            "cache: Admin %.*s is not shown to this client: it has not logged in ([AUTH]), it is not on this machine, "
            "and no rule of [RULES] allows it, or it does not ask for a ServerName of the host",
            MK_STR_ARG(rule->admin));
    return false;
}

static struct mk_str strip_scheme(struct mk_str origin)
{
    const char *at = origin.len ? memmem(origin.p, origin.len, "://", 3) : NULL;
    return at ? mk_str(at + 3, origin.len - (size_t)(at + 3 - origin.p)) : MK_STR_NONE;
}

bool access_is_same_site(struct mk_request *req)
{
    struct mk_str site = mk_request_header_by_name(req, MK_STR("Sec-Fetch-Site"));
    if (site.p)
        return mk_str_eq(site, MK_STR("same-origin")) || mk_str_eq(site, MK_STR("none"));
    struct mk_str origin = mk_request_header_by_name(req, MK_STR("Origin"));
    struct mk_str authority = strip_scheme(origin), host = mk_request_header(req, MK_HEADER_HOST);
    return !origin.p || (authority.len && mk_str_ieq(authority, host));
}

void access_check_host(struct mk_host *host, const struct cache_rule *rule)
{
    if (!mk_host_is_public(host) || mk_host_has_section(host, MK_STR("RULES")) ||
        mk_host_has_section(host, MK_STR("AUTH")))
        return;
    mk_host_warn(
        host, rule, offsetof(struct cache_rule, admin), 0,
        "only clients on this machine see this page, because neither [RULES] nor [AUTH] protects it: a section "
        "[RULES] with \"Match %.*s\", \"Network 10.0.0.0/8\" and \"Action allow\" would let those of a network "
        "see it",
        MK_STR_ARG(rule->admin));
}
