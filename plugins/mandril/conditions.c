// SPDX-License-Identifier: Apache-2.0
/*
 * Conditions for requests (conditions.h).
 */
#include "conditions.h"

/* ── matching ── */

static struct mk_str get_header(const struct conditions_subject *subject, struct mk_str name)
{
    return subject->req ? mk_request_header_by_name(subject->req, name) : mk_explain_header(subject->explained, name);
}

/* Returns the host in a URI without its port; empty for what is no URI with a host. */
static struct mk_str find_uri_host(struct mk_str uri)
{
    const char *host = uri.len ? memmem(uri.p, uri.len, "://", 3) : NULL;
    if (!host)
        return MK_STR("");
    struct mk_str rest = mk_str_until(mk_str_after(uri, (size_t)(host - uri.p) + 3), "/?#\\");
    size_t end = rest.len;
    const char *at = end ? memrchr(rest.p, '@', end) : NULL; /* after user information */
    size_t start = at ? (size_t)(at - rest.p) + 1 : 0;
    bool bracketed = start < end && rest.p[start] == '[';
    const char *port = memchr(rest.p + start, bracketed ? ']' : ':', end - start);
    size_t len = port ? (size_t)(port - rest.p) + bracketed - start : end - start;
    return mk_str(rest.p + start, len);
}

/* Returns whether the request comes from a page of another host. Requests without Referer do not. */
static bool has_foreign_referer(const struct conditions_subject *subject)
{
    struct mk_request *req = subject->req;
    struct mk_str referer = req ? mk_request_header(req, MK_HEADER_REFERER) : get_header(subject, MK_STR("Referer"));
    if (!referer.len)
        return false;
    struct mk_str host = find_uri_host(referer);
    const struct mk_host *own = req ? mk_request_host_conf(req) : subject->host;
    struct mk_str asked = req ? mk_request_host(req) : subject->explained->name;
    return !host.len || (!mk_host_has_name(own, host) && !mk_str_ieq(host, asked));
}

static struct mk_str find_header(void *ctx, struct mk_str name)
{
    return get_header(ctx, name);
}

int conditions_match(const struct conditions *c, const struct conditions_subject *subject)
{
    int found = c->match.text.p ? mk_pattern_match(&c->match, subject->path) : 1;
    if (found <= 0)
        return found;
    if (c->foreign_referer && !has_foreign_referer(subject))
        return 0;
    struct conditions_subject own = *subject;
    struct mk_str query = own.req ? mk_request_query(own.req) : own.explained->query;
    return mk_when_holds(&c->when, &(struct mk_when_request){own.method, query, find_header, &own});
}

bool conditions_cover(const struct conditions *c, const struct conditions *later)
{
    if (c->match.text.p && (!later->match.text.p || !mk_pattern_covers(&c->match, &later->match)))
        return false;
    return (!c->foreign_referer || later->foreign_referer) && mk_when_covers(&c->when, &later->when);
}
