// SPDX-License-Identifier: Apache-2.0
/*
 * Cookies (cookie.h), and the objects `cookie` and "cookie.1".
 */
#include "cookie.h"

#include "objects.h"
#include "request.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

/* The end of the year 9999, the last one that four digits can write. */
#define SECONDS_MAX 253402300799

/* ── reading ── */

static bool cut_at(struct mk_str *rest, char separator, struct mk_str *ret)
{
    const char *end = rest->len ? memchr(rest->p, separator, rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->p) : rest->len;
    *ret = mk_str(rest->p, len);
    *rest = mk_str(rest->p + len + (end != NULL), rest->len - len - (end != NULL));
    return end;
}

bool cookie_cut(struct mk_str *header, struct mk_str *ret_name, struct mk_str *ret_value)
{
    while (header->len) {
        struct mk_str pair;
        cut_at(header, ';', &pair);
        bool has_value = cut_at(&pair, '=', ret_name);
        *ret_name = mk_str_trim(*ret_name);
        *ret_value = mk_str_trim(pair);
        if (has_value && ret_name->len)
            return true;
    }
    return false;
}

bool cookie_find(struct mk_str header, struct mk_str name, struct mk_str *ret_value)
{
    struct mk_str found;
    while (cookie_cut(&header, &found, ret_value)) {
        if (mk_str_eq(found, name))
            return true;
    }
    return false;
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

static bool is_visible(char c)
{
    return c > ' ' && c < 0x7f;
}

static bool is_in_token(char c)
{
    return is_visible(c) && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

static bool is_in_value(char c)
{
    return is_visible(c) && !strchr("\",;\\", c);
}

static bool is_in_path(char c)
{
    return (c == ' ' || is_visible(c)) && c != ';';
}

static bool is_in_domain(char c)
{
    char l = mk_lower(c);
    return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

/* Bytes with which an old service may not break the header. */
static bool is_in_old_text(char c)
{
    return (unsigned char)c >= ' ' && c != 0x7f && c != ';';
}

static bool is_value(struct mk_str value)
{
    if (value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"')
        value = mk_str(value.p + 1, value.len - 2);
    return consists_of(value, is_in_value);
}

static bool is_pair(const struct duda_cookie *c)
{
    struct mk_str name = mk_str_c(c->name), value = mk_str_c(c->value);
    return name.len && name.len + value.len <= COOKIE_PAIR_BYTES_MAX && consists_of(name, is_in_token) &&
           is_value(value);
}

static bool is_scope(const char *path, const char *domain)
{
    struct mk_str p = mk_str_c(path), d = mk_str_c(domain);
    return p.len && p.len <= COOKIE_ATTRIBUTE_BYTES_MAX && p.p[0] == '/' && consists_of(p, is_in_path) &&
           d.len <= COOKIE_ATTRIBUTE_BYTES_MAX && (!domain || d.len) && consists_of(d, is_in_domain);
}

static bool has_prefix(const char *name, struct mk_str prefix)
{
    struct mk_str n = mk_str_c(name);
    return n.len >= prefix.len && mk_str_ieq(mk_str(n.p, prefix.len), prefix);
}

/* The rules for names with prefixes (RFC 6265bis section 4.1.3), which browsers compare in any case of letters. */
static bool has_right_prefix(const struct duda_cookie *c, const char *path)
{
    if (has_prefix(c->name, MK_STR("__Host-")))
        return c->secure && !c->domain && strcmp(path, "/") == 0;
    return !has_prefix(c->name, MK_STR("__Secure-")) || c->secure;
}

static bool is_cookie(const struct duda_cookie *c, const char *path)
{
    return is_pair(c) && is_scope(path, c->domain) && has_right_prefix(c, path) && c->max_age >= 0 && c->expires >= 0 &&
           c->expires <= SECONDS_MAX && c->same_site >= DUDA_SAME_SITE_UNSET && c->same_site <= DUDA_SAME_SITE_NONE &&
           (c->same_site != DUDA_SAME_SITE_NONE || c->secure);
}

/* ── writing ── */

/* Appends a date as RFC 9110 section 5.6.7 has it, in every locale. */
static void add_date(struct mk_buf *out, int64_t seconds)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t t = (time_t)seconds;
    struct tm tm;
    if (gmtime_r(&t, &tm))
        mk_buf_addf(out, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon],
                    tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static void add_life(struct mk_buf *out, const struct duda_cookie *c)
{
    if (c->max_age)
        mk_buf_addf(out, "; Max-Age=%" PRId64, c->max_age);
    if (c->expires) {
        mk_buf_addf(out, "; Expires=");
        add_date(out, c->expires);
    }
}

static void add_scope(struct mk_buf *out, const struct duda_cookie *c, const char *path)
{
    static const char *const same_site[] = {"", "; SameSite=Lax", "; SameSite=Strict", "; SameSite=None"};
    mk_buf_addf(out, "; Path=%s", path);
    if (c->domain)
        mk_buf_addf(out, "; Domain=%s", c->domain);
    mk_buf_addf(out, "%s%s%s", c->secure ? "; Secure" : "", c->http_only ? "; HttpOnly" : "", same_site[c->same_site]);
}

int cookie_write(struct mk_buf *out, const struct duda_cookie *cookie, const char *path)
{
    path = cookie->path ? cookie->path : path;
    if (!is_cookie(cookie, path))
        return -EINVAL;
    mk_buf_addf(out, "%s=%s", cookie->name, cookie->value ? cookie->value : "");
    add_life(out, cookie);
    add_scope(out, cookie, path);
    return out->err;
}

int cookie_write_removal(struct mk_buf *out, const struct duda_cookie *cookie, const char *path)
{
    path = cookie->path ? cookie->path : path;
    if (!is_cookie(cookie, path))
        return -EINVAL;
    mk_buf_addf(out, "%s=; Max-Age=0; Expires=", cookie->name);
    add_date(out, 0);
    add_scope(out, cookie, path);
    return out->err;
}

int cookie_write_old(struct mk_buf *out, struct mk_str name, struct mk_str value, const char *path, int64_t expires)
{
    if (!name.len || !consists_of(name, is_in_old_text) || !consists_of(value, is_in_old_text) ||
        memchr(name.p, '=', name.len) || name.len + value.len > COOKIE_PAIR_BYTES_MAX)
        return -EINVAL;
    mk_buf_addf(out, "%.*s=%.*s; path=%s", MK_STR_ARG(name), MK_STR_ARG(value), path);
    if (expires > 0) {
        mk_buf_addf(out, "; expires=");
        add_date(out, expires);
    }
    return out->err;
}

/* ── the object ── */

static struct mk_str get_header(duda_request_t *dr)
{
    return mk_request_header(dr->req, MK_HEADER_COOKIE);
}

static const char *get(duda_request_t *dr, const char *name)
{
    if (request_check(dr, "cookie->get()") < 0)
        return NULL;
    struct mk_str value;
    if (!cookie_find(get_header(dr), mk_str_c(name), &value))
        return NULL;
    return mk_arena_dup(mk_request_arena(dr->req), value).p;
}

static int compare(duda_request_t *dr, const char *name, const char *text)
{
    if (request_check(dr, "cookie->cmp()") < 0)
        return -1;
    struct mk_str value;
    return cookie_find(get_header(dr), mk_str_c(name), &value) && mk_str_eq(value, mk_str_c(text)) ? 0 : -1;
}

static const char *get_next(duda_request_t *dr, size_t *at, const char **ret_value)
{
    if (request_check(dr, "cookie->next()") < 0 || !at || !ret_value)
        return NULL;
    struct mk_str all = get_header(dr), name, value;
    struct mk_arena *arena = mk_request_arena(dr->req);
    if (*at > all.len)
        return NULL;
    struct mk_str rest = mk_str(all.p + *at, all.len - *at);
    bool found = cookie_cut(&rest, &name, &value);
    *at = all.len - rest.len;
    *ret_value = found ? mk_arena_dup(arena, value).p : NULL;
    return *ret_value ? mk_arena_dup(arena, name).p : NULL;
}

static const char *get_path(const duda_request_t *dr)
{
    const struct duda_self *self = &dr->worker->service->self;
    return self->url.len ? self->url.data : "/";
}

static int add_header(duda_request_t *dr, const struct mk_buf *value, int err)
{
    return err < 0 ? err : mk_response_header(dr->req, MK_STR("Set-Cookie"), mk_buf_str(value));
}

static int set(duda_request_t *dr, const struct duda_cookie *cookie)
{
    if (request_check(dr, "cookie->set()") < 0 || !cookie)
        return -EINVAL;
    char text[COOKIE_BYTES_MAX];
    struct mk_buf value;
    mk_buf_init_fixed(&value, text, sizeof(text));
    return add_header(dr, &value, cookie_write(&value, cookie, get_path(dr)));
}

static int remove_cookie(duda_request_t *dr, const struct duda_cookie *cookie)
{
    if (request_check(dr, "cookie->remove()") < 0 || !cookie)
        return -EINVAL;
    char text[COOKIE_BYTES_MAX];
    struct mk_buf value;
    mk_buf_init_fixed(&value, text, sizeof(text));
    return add_header(dr, &value, cookie_write_removal(&value, cookie, get_path(dr)));
}

const struct duda_api_cookie object_cookie = {
    .get = get,
    .cmp = compare,
    .set = set,
    .remove = remove_cookie,
    .next = get_next,
};

/* ── levels 0 to 2 ── */

static struct mk_str counted(const char *p, int len)
{
    return p && len > 0 ? mk_str(p, (size_t)len) : MK_STR("");
}

static int set_old(duda_request_t *dr, const char *key, int key_len, const char *value, int value_len, int expires)
{
    if (request_check(dr, "cookie->set()") < 0)
        return -1;
    char text[COOKIE_BYTES_MAX];
    struct mk_buf out;
    mk_buf_init_fixed(&out, text, sizeof(text));
    int err = cookie_write_old(&out, counted(key, key_len), counted(value, value_len), get_path(dr), expires);
    return add_header(dr, &out, err) < 0 ? -1 : 0;
}

/* The date of the original, Fri, 12 Sep 1980 11:43:00 GMT. */
enum { EXPIRED = 337606980 };

static int destroy(duda_request_t *dr, const char *key, int key_len)
{
    return set_old(dr, key, key_len, "deleted", (int)strlen("deleted"), EXPIRED);
}

static int get_old(duda_request_t *dr, const char *key, char **ret_value, int *ret_len)
{
    if (request_check(dr, "cookie->get()") < 0 || !ret_value || !ret_len)
        return -1;
    struct mk_str value;
    if (!cookie_find(get_header(dr), mk_str_c(key), &value))
        return -1;
    value = mk_arena_dup(mk_request_arena(dr->req), value);
    if (!value.p)
        return -1;
    *ret_value = (char *)(uintptr_t)value.p;
    *ret_len = (int)value.len;
    return 0;
}

const struct duda_api_cookie_1 object_cookie_1 = {
    .set = set_old,
    .get = get_old,
    .cmp = compare,
    .destroy = destroy,
};
