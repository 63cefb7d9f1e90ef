// SPDX-License-Identifier: Apache-2.0
/*
 * Identifiers of sessions, their digests and cookies, and the tokens that are bound to them.
 */
#include "objects.h"
#include "request/request.h"
#include "session/session.h"

#include <monkey/base/escape.h>
#include <monkey/base/random.h>
#include <monkey/base/sha1.h>
#include <monkey/kit/cookie.h>

#include <errno.h>
#include <stdio.h>

/* ── identifiers and cookies ── */

static const char secure_prefix[] = "__Host-";

/* ── ids ── */

int session_id_make(struct session_id *ret)
{
    return mk_random(ret, sizeof(*ret)) < 0 ? -EIO : 0;
}

void session_id_digest(const struct session_id *id, const struct session_store *store, struct session_key *ret)
{
    unsigned char text[sizeof(*id) + sizeof(store->owner)];
    memcpy(text, id, sizeof(*id));
    memcpy(text + sizeof(*id), &store->owner, sizeof(store->owner));
    mk_sha1(ret->bytes, text, sizeof(text));
}

void session_id_print(const struct session_id *id, bool is_old, struct mk_buf *out)
{
    for (size_t i = 0; i < SESSION_ID_BYTES; i++)
        mk_buf_addf(out, "%s%02x", is_old && i == SESSION_ID_BYTES / 2 ? "-" : "", id->bytes[i]);
}

static int get_digit(char c)
{
    return c >= 'A' && c <= 'F' ? -1 : mk_hex_value(c); /* one spelling for each id */
}

static bool parse_digits(const char *p, size_t n, unsigned char *to)
{
    for (size_t i = 0; i < n; i++) {
        int high = get_digit(p[2 * i]), low = get_digit(p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        to[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

bool session_id_parse(struct mk_str text, bool is_old, struct session_id *ret)
{
    size_t half = SESSION_ID_BYTES / 2, len = 2 * SESSION_ID_BYTES + (size_t)is_old;
    if (text.len != len || (is_old && text.p[2 * half] != '-'))
        return false;
    return parse_digits(text.p, half, ret->bytes) && parse_digits(text.p + 2 * half + is_old, half, ret->bytes + half);
}

/* ── cookies ── */

static bool is_secure(const struct duda_request *dr)
{
    return mk_str_eq(mk_request_scheme(dr->req), MK_STR("https"));
}

static const struct service_sessions *get_conf(const struct duda_request *dr)
{
    return sessions_of(dr->worker->service);
}

static struct mk_str print_name(const struct duda_request *dr, char *to, size_t size)
{
    const struct service_sessions *conf = get_conf(dr);
    int n = snprintf(to, size, "%s%s", is_secure(dr) && !conf->is_old ? secure_prefix : "", conf->cookie);
    return mk_str(to, (size_t)n);
}

bool session_cookie_find(struct duda_request *dr, struct session_key *ret, bool *ret_valid)
{
    char name[SESSION_COOKIE_NAME_BYTES + sizeof(secure_prefix)];
    struct session_id id;
    struct mk_str value = mk_request_cookie(dr->req, print_name(dr, name, sizeof(name)));
    *ret_valid = false;
    if (!value.p)
        return false;
    *ret_valid = session_id_parse(value, get_conf(dr)->is_old, &id);
    if (*ret_valid)
        session_id_digest(&id, get_conf(dr)->store, ret);
    return true;
}

static bool is_for_all_paths(const struct duda_request *dr, const struct service_sessions *conf)
{
    const struct service *s = dr->worker->service;
    return !s->self.url.len || (conf->is_old ? s->info->level == 2 : is_secure(dr));
}

int session_cookie_set(struct duda_request *dr, const struct session_id *id, int64_t expires)
{
    const struct service_sessions *conf = get_conf(dr);
    const struct service *s = dr->worker->service;
    char name[SESSION_COOKIE_NAME_BYTES + sizeof(secure_prefix)], value[2 * SESSION_ID_BYTES + 2];
    struct mk_buf id_text;
    struct mk_str cookie_name = print_name(dr, name, sizeof(name));
    if (!id && conf->is_old)
        return object_cookie_1.destroy(dr, cookie_name.p, (int)cookie_name.len);
    mk_buf_init_fixed(&id_text, value, sizeof(value));
    if (id)
        session_id_print(id, conf->is_old, &id_text);
    struct mk_cookie cookie = {
        .name = cookie_name,
        .value = mk_buf_str(&id_text),
        .path = is_for_all_paths(dr, conf) ? MK_STR("/") : mk_str_c(s->self.url.data),
        .max_age_s = conf->persistent ? conf->absolute_s : 0,
        .expires_s = expires,
        .same_site = MK_SAME_SITE_LAX,
        .secure = is_secure(dr),
        .http_only = true,
    };
    return id ? mk_response_cookie(dr->req, &cookie) : mk_response_remove_cookie(dr->req, &cookie);
}

/* ── tokens ── */

enum { DIGITS = 2 * MK_SHA1_BYTES };

static void print_token(const struct session_key *key, char to[DIGITS + 1])
{
    static const char purpose[] = "csrf";
    unsigned char text[sizeof(purpose) + sizeof(key->bytes)], digest[MK_SHA1_BYTES];
    memcpy(text, purpose, sizeof(purpose));
    memcpy(text + sizeof(purpose), key->bytes, sizeof(key->bytes));
    mk_sha1(digest, text, sizeof(text));
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(to + 2 * i, 3, "%02x", digest[i]);
}

const char *session_csrf_token(struct duda_request *dr, const struct session_state *s)
{
    char token[DIGITS + 1];
    if (!session_exists(s))
        return NULL;
    print_token(s->begins || s->renews ? &s->new_key : &s->key, token);
    return request_dup(dr, mk_str(token, DIGITS));
}

int session_csrf_check(struct duda_request *dr, const struct session_state *s)
{
    char token[DIGITS + 1];
    struct mk_str sent = mk_str_trim(mk_request_header_by_name(dr->req, MK_STR("X-CSRF-Token")));
    if (!sent.p)
        sent = mk_str_c(object_form.get(dr, "csrf_token"));
    if (!s->found)
        return -EACCES;
    print_token(&s->key, token);
    return mk_str_eq_secret(mk_str(token, DIGITS), sent) ? 0 : -EACCES;
}
