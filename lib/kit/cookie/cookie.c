// SPDX-License-Identifier: Apache-2.0
/*
 * Cookies (<monkey/kit/cookie.h>): reads Cookie, checks and writes Set-Cookie. Keeps nothing: each call is about one
 * cookie.
 */
#include <monkey/kit/cookie.h>

#include <errno.h>
#include <inttypes.h>

/* The end of the year 9999, the last one that four digits can write. */
#define SECONDS_MAX 253402300799

/* ── reading ── */

/* Cuts what is before the separator off `rest`, all of it if there is none. Returns whether there was one. */
static bool split_at(struct mk_str *rest, char separator, struct mk_str *ret)
{
    size_t len = rest->len;
    *ret = mk_str_split(rest, separator);
    return ret->len < len;
}

bool mk_cookie_next(struct mk_str *rest, struct mk_str *ret_name, struct mk_str *ret_value)
{
    while (rest->len) {
        struct mk_str pair;
        split_at(rest, ';', &pair);
        bool has_value = split_at(&pair, '=', ret_name);
        *ret_name = mk_str_trim(*ret_name);
        *ret_value = mk_str_trim(pair);
        if (has_value && ret_name->len)
            return true;
    }
    return false;
}

struct mk_str mk_cookie_find(struct mk_str header, struct mk_str name)
{
    struct mk_str found, value;
    while (mk_cookie_next(&header, &found, &value)) {
        if (mk_str_eq(found, name))
            return value;
    }
    return MK_STR_NONE;
}

struct mk_str mk_request_cookie(struct mk_request *req, struct mk_str name)
{
    return mk_cookie_find(mk_request_header(req, MK_HEADER_COOKIE), name);
}

/* ── checking ── */

static bool consists_of(struct mk_str s, bool (*is_allowed)(char c))
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_allowed(s.p[i]))
            return false;
    }
    return true;
}

static bool is_in_path(char c)
{
    return c >= ' ' && c < 0x7f && c != ';';
}

static bool is_in_domain(char c)
{
    return mk_is_name_byte(c, "-.");
}

static bool is_value(struct mk_str value)
{
    if (value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"')
        value = mk_str(value.p + 1, value.len - 2);
    return mk_str_is_visible(value, "\",;\\");
}

static bool is_pair(const struct mk_cookie *c)
{
    return c->name.len + c->value.len <= MK_COOKIE_PAIR_BYTES_MAX && mk_str_is_token(c->name) && is_value(c->value);
}

static bool is_scope(struct mk_str path, struct mk_str domain)
{
    return path.len && path.len <= MK_COOKIE_ATTRIBUTE_BYTES_MAX && path.p[0] == '/' && consists_of(path, is_in_path) &&
           domain.len <= MK_COOKIE_ATTRIBUTE_BYTES_MAX && (!domain.p || domain.len) &&
           consists_of(domain, is_in_domain);
}

static struct mk_str get_path(const struct mk_cookie *c)
{
    return c->path.p ? c->path : MK_STR("/");
}

/* The rules for names with prefixes (6265bis section 4.1.3), which browsers compare in any case of letters. */
static bool has_right_prefix(const struct mk_cookie *c)
{
    if (mk_str_istarts(c->name, MK_STR("__Host-")))
        return c->secure && !c->domain.p && mk_str_eq(get_path(c), MK_STR("/"));
    return !mk_str_istarts(c->name, MK_STR("__Secure-")) || c->secure;
}

static bool is_cookie(const struct mk_cookie *c)
{
    bool needs_secure = c->same_site == MK_SAME_SITE_NONE || c->partitioned;
    return is_pair(c) && is_scope(get_path(c), c->domain) && has_right_prefix(c) && c->max_age_s >= 0 &&
           c->expires_s >= 0 && c->expires_s <= SECONDS_MAX && (unsigned)c->same_site <= MK_SAME_SITE_NONE &&
           (c->secure || !needs_secure);
}

/* ── writing ── */

static void add_scope(struct mk_buf *out, const struct mk_cookie *c)
{
    static const char *const same_site[] = {"", "; SameSite=Lax", "; SameSite=Strict", "; SameSite=None"};
    struct mk_str path = get_path(c);
    mk_buf_addf(out, "; Path=%.*s", MK_STR_ARG(path));
    if (c->domain.p)
        mk_buf_addf(out, "; Domain=%.*s", MK_STR_ARG(c->domain));
    mk_buf_addf(out, "%s%s%s%s", c->secure ? "; Secure" : "", c->http_only ? "; HttpOnly" : "", same_site[c->same_site],
                c->partitioned ? "; Partitioned" : "");
}

static void add_expires(struct mk_buf *out, int64_t seconds)
{
    mk_buf_adds(out, MK_STR("; Expires="));
    mk_date_write(out, seconds);
}

int mk_cookie_write(struct mk_buf *out, const struct mk_cookie *cookie)
{
    if (!is_cookie(cookie))
        return -EINVAL;
    mk_buf_addf(out, "%.*s=%.*s", MK_STR_ARG(cookie->name), MK_STR_ARG(cookie->value));
    if (cookie->max_age_s)
        mk_buf_addf(out, "; Max-Age=%" PRId64, cookie->max_age_s);
    if (cookie->expires_s)
        add_expires(out, cookie->expires_s);
    add_scope(out, cookie);
    return out->err;
}

int mk_cookie_write_removal(struct mk_buf *out, const struct mk_cookie *cookie)
{
    struct mk_cookie removed = *cookie;
    removed.value = MK_STR_NONE;
    removed.max_age_s = removed.expires_s = 0;
    if (!is_cookie(&removed))
        return -EINVAL;
    mk_buf_addf(out, "%.*s=; Max-Age=0", MK_STR_ARG(removed.name));
    add_expires(out, 0);
    add_scope(out, &removed);
    return out->err;
}

/* ── headers ── */

static int add_header(struct mk_request *req, const struct mk_cookie *cookie,
                      int (*write)(struct mk_buf *out, const struct mk_cookie *cookie))
{
    MK_UNINITIALIZED MK_BUF_ON_STACK(value, MK_COOKIE_BYTES_MAX);
    int err = write(&value, cookie);
    return err < 0 ? err : mk_response_header(req, MK_STR("Set-Cookie"), mk_buf_str(&value));
}

int mk_response_cookie(struct mk_request *req, const struct mk_cookie *cookie)
{
    return add_header(req, cookie, mk_cookie_write);
}

int mk_response_remove_cookie(struct mk_request *req, const struct mk_cookie *cookie)
{
    return add_header(req, cookie, mk_cookie_write_removal);
}
