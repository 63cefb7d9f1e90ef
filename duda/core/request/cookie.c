// SPDX-License-Identifier: Apache-2.0
/*
 * The objects `cookie` and "cookie.1". What is a cookie, <monkey/kit/cookie.h> knows; here is what the original API
 * allows besides.
 */
#include "request/cookie.h"

#include "common/api_error.h"
#include "objects.h"
#include "request/request.h"

#include <errno.h>

/* ── writing ── */

struct mk_cookie cookie_from(const struct duda_cookie *c, const char *path)
{
    return (struct mk_cookie){
        .name = mk_str_c(c->name),
        .value = mk_str_c(c->value),
        .path = mk_str_c(c->path ? c->path : path),
        .domain = mk_str_c(c->domain),
        .max_age_s = c->max_age,
        .expires_s = c->expires,
        .same_site = (enum mk_same_site)c->same_site,
        .secure = c->secure,
        .http_only = c->http_only,
    };
}

/* Returns whether the text has no byte with which an old service could break the header. */
static bool is_old_text(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < ' ' || c == 0x7f || c == ';')
            return false;
    }
    return true;
}

int cookie_write_old(struct mk_buf *out, struct mk_str name, struct mk_str value, const char *path, int64_t expires)
{
    if (!name.len || !is_old_text(name) || !is_old_text(value) || memchr(name.p, '=', name.len) ||
        name.len + value.len > MK_COOKIE_PAIR_BYTES_MAX)
        return -EINVAL;
    mk_buf_addf(out, "%.*s=%.*s; path=%s", MK_STR_ARG(name), MK_STR_ARG(value), path);
    if (expires > 0) {
        mk_buf_adds(out, MK_STR("; expires="));
        mk_date_write(out, expires);
    }
    return out->err;
}

/* ── the object ── */

REQUEST_CALL(const char *get_cookie(duda_request_t *dr, const char *name), request_check, "cookie->get()", NULL,
             request_dup(dr, mk_request_cookie(dr->req, mk_str_c(name))))

REQUEST_CALL(int compare_cookie(duda_request_t *dr, const char *name, const char *text), request_check, "cookie->cmp()",
             -1, request_compare(mk_request_cookie(dr->req, mk_str_c(name)), text))

static const char *get_next(duda_request_t *dr, size_t *at, const char **ret_value)
{
    if (request_check(dr, "cookie->next()") < 0 || !at || !ret_value)
        return NULL;
    struct mk_str all = mk_request_header(dr->req, MK_HEADER_COOKIE), name, value;
    struct mk_arena *arena = mk_request_arena(dr->req);
    if (*at > all.len)
        return NULL;
    struct mk_str rest = mk_str(all.p + *at, all.len - *at);
    bool found = mk_cookie_next(&rest, &name, &value);
    *at = all.len - rest.len;
    *ret_value = found ? mk_arena_dup(arena, value).p : NULL;
    return *ret_value ? mk_arena_dup(arena, name).p : NULL;
}

static const char *get_path(const duda_request_t *dr)
{
    const struct duda_self *self = &dr->worker->service->self;
    return self->url.len ? self->url.data : "/";
}

static int report_error(duda_request_t *dr, const char *call, int err)
{
    if (err == -EINVAL)
        api_error_log(dr->worker, call,
                      "a field is wrong: the name is a token, and the value has no spaces, control characters, \",;\\");
    else if (err < 0 && err != -ENOMEM)
        api_error_report(dr->worker, call, err);
    return err;
}

static int set_cookie(duda_request_t *dr, const struct duda_cookie *cookie)
{
    if (request_check(dr, "cookie->set()") < 0 || !cookie)
        return -EINVAL;
    struct mk_cookie c = cookie_from(cookie, get_path(dr));
    return report_error(dr, "cookie->set()", mk_response_cookie(dr->req, &c));
}

static int remove_cookie(duda_request_t *dr, const struct duda_cookie *cookie)
{
    if (request_check(dr, "cookie->remove()") < 0 || !cookie)
        return -EINVAL;
    struct mk_cookie c = cookie_from(cookie, get_path(dr));
    return report_error(dr, "cookie->remove()", mk_response_remove_cookie(dr->req, &c));
}

const struct duda_api_cookie object_cookie = {
    .get = get_cookie,
    .cmp = compare_cookie,
    .set = set_cookie,
    .remove = remove_cookie,
    .next = get_next,
};

/* ── levels 0 to 2 ── */

static struct mk_str str_of(const char *p, int len)
{
    return p && len > 0 ? mk_str(p, (size_t)len) : MK_STR("");
}

static int set_old(duda_request_t *dr, const char *key, int key_len, const char *value, int value_len, int expires)
{
    if (request_check(dr, "cookie->set()") < 0)
        return -1;
    MK_BUF_ON_STACK(out, MK_COOKIE_BYTES_MAX);
    const char *path = dr->worker->service->info->level == 2 ? "/" : get_path(dr); /* as in each of them */
    int err = cookie_write_old(&out, str_of(key, key_len), str_of(value, value_len), path, expires);
    return err < 0 || mk_response_header(dr->req, MK_STR("Set-Cookie"), mk_buf_str(&out)) < 0 ? -1 : 0;
}

/* The date of the original, Fri, 12 Sep 1980 11:43:00 GMT. */
enum { EXPIRED = 337606980 };

static int destroy_cookie(duda_request_t *dr, const char *key, int key_len)
{
    return set_old(dr, key, key_len, "deleted", (int)strlen("deleted"), EXPIRED);
}

static int get_old(duda_request_t *dr, const char *key, char **ret_value, int *ret_len)
{
    if (request_check(dr, "cookie->get()") < 0 || !ret_value || !ret_len)
        return -1;
    struct mk_str value = mk_request_cookie(dr->req, mk_str_c(key));
    if (value.p)
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
    .cmp = compare_cookie,
    .destroy = destroy_cookie,
};
