// SPDX-License-Identifier: Apache-2.0
/*
 * Conditions for requests (conditions.h). A method of GET holds for HEAD, too: both read the same.
 */
#include "conditions.h"

#include <assert.h>
#include <errno.h>

/* ── reading ── */

static bool is_token_byte(char c)
{
    return (mk_lower(c) >= 'a' && mk_lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_name(struct mk_str s)
{
    size_t i = 0;
    while (i < s.len && is_token_byte(s.p[i]))
        i++;
    return s.len > 0 && i == s.len;
}

/* Parses what stands behind the name: `!` negates, `=` is the whole value, `~` an expression, else a part of it. */
static int parse_value(struct header_condition *h, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str text = h->text;
    h->negated = text.len && text.p[0] == '!';
    text = mk_str(text.p + h->negated, text.len - h->negated);
    char first = text.len ? text.p[0] : '\0';
    h->kind = first == '~' ? HEADER_REGEX : first == '=' ? HEADER_EQUALS : HEADER_CONTAINS;
    h->value = first == '=' ? mk_str(text.p + 1, text.len - 1) : text;
    if (h->kind == HEADER_REGEX)
        return mk_pattern_parse(&h->regex, text, arena, error);
    if (h->kind == HEADER_EQUALS || text.len)
        return 0;
    mk_buf_addf(error, "a header needs a text, =text, ~expression or one of these behind !");
    return -EINVAL;
}

int conditions_parse_header(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                            struct mk_buf *error)
{
    struct header_condition **last = field, *h = mk_arena_zalloc(arena, sizeof(*h));
    struct mk_str name = value->n ? value->words[0] : MK_STR("");
    if (!h)
        return -ENOMEM;
    if (!is_name(name)) {
        mk_buf_addf(error, "a condition for a header is its name and a value, such as User-Agent ~*bot");
        return -EINVAL;
    }
    size_t used = value->text.len > name.len ? name.len + 1 : name.len;
    h->name = mk_arena_dup(arena, name);
    h->text = mk_arena_dup(arena, mk_str(value->text.p + used, value->text.len - used));
    if (!h->name.p || !h->text.p)
        return -ENOMEM;
    while (*last)
        last = &(*last)->next;
    *last = h;
    return parse_value(h, arena, error);
}

/* ── matching ── */

static bool match_method(const struct mk_conf_list *methods, struct mk_str method)
{
    for (uint32_t i = 0; i < methods->n; i++)
        if (mk_str_eq(methods->items[i], method) ||
            (mk_str_eq(methods->items[i], MK_STR("GET")) && mk_str_eq(method, MK_STR("HEAD"))))
            return true;
    return !methods->n;
}

static bool contains_text(struct mk_str value, struct mk_str part)
{
    for (size_t i = 0; i + part.len <= value.len; i++)
        if (mk_str_ieq(mk_str(value.p + i, part.len), part))
            return true;
    return false;
}

static int match_value(const struct header_condition *h, struct mk_str value)
{
    switch (h->kind) {
    case HEADER_EQUALS:
        return mk_str_eq(value, h->value);
    case HEADER_REGEX:
        return mk_pattern_match(&h->regex, value);
    default:
        return contains_text(value, h->value);
    }
}

static struct mk_str get_header(const struct conditions_subject *subject, struct mk_str name)
{
    return subject->req ? mk_request_header_by_name(subject->req, name) : mk_explain_header(subject->explained, name);
}

static int match_headers(const struct header_condition *h, const struct conditions_subject *subject)
{
    for (; h; h = h->next) {
        struct mk_str value = get_header(subject, h->name);
        int found = match_value(h, value.p ? value : MK_STR(""));
        if (found < 0)
            return found;
        if (found == h->negated)
            return 0;
    }
    return 1;
}

/* Returns the host in a URI without its port; empty for what is no URI with a host. */
static struct mk_str find_uri_host(struct mk_str uri)
{
    const char *host = uri.len ? memmem(uri.p, uri.len, "://", 3) : NULL;
    if (!host)
        return MK_STR("");
    struct mk_str rest = mk_str(host + 3, (size_t)(uri.p + uri.len - host) - 3);
    size_t end = 0;
    while (end < rest.len && !memchr("/?#\\", rest.p[end], 4))
        end++;
    const char *at = end ? memrchr(rest.p, '@', end) : NULL; /* behind user information */
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

int conditions_match(const struct conditions *c, const struct conditions_subject *subject)
{
    if (!match_method(&c->methods, subject->method))
        return 0;
    int found = c->match.text.p ? mk_pattern_match(&c->match, subject->path) : 1;
    if (found <= 0)
        return found;
    if (c->foreign_referer && !has_foreign_referer(subject))
        return 0;
    return match_headers(c->headers, subject);
}

/* ── covering ── */

static bool cover_methods(const struct mk_conf_list *methods, const struct mk_conf_list *later)
{
    if (methods->n && !later->n)
        return false;
    uint32_t i = 0;
    while (i < later->n && match_method(methods, later->items[i]))
        i++;
    return i == later->n;
}

static bool has_header(const struct header_condition *h, const struct header_condition *wanted)
{
    while (h && !(mk_str_ieq(h->name, wanted->name) && mk_str_eq(h->text, wanted->text)))
        h = h->next;
    return h != NULL;
}

bool conditions_cover(const struct conditions *c, const struct conditions *later)
{
    if (c->match.text.p && (!later->match.text.p || !mk_pattern_covers(&c->match, &later->match)))
        return false;
    if (!cover_methods(&c->methods, &later->methods) || (c->foreign_referer && !later->foreign_referer))
        return false;
    const struct header_condition *h = c->headers;
    while (h && has_header(later->headers, h))
        h = h->next;
    return !h;
}
