// SPDX-License-Identifier: Apache-2.0
/*
 * visitor: knows browsers again. GET /visitor gives a browser a random id in a cookie, and says which one it has;
 * DELETE /visitor has it forget the id.
 *
 *     cc -shared -fPIC $(pkg-config --cflags monkey) visitor.c -o visitor.so $(pkg-config --libs monkey-kit)
 */
#include <monkey/base/escape.h>
#include <monkey/base/random.h>
#include <monkey/kit/cookie.h>
#include <monkey/plugin.h>

#include <stdio.h>

enum { ID_BYTES = 16, YEAR_SECONDS = 365 * 86400 };

/* The attributes by which a browser finds the cookie again, to replace or to delete it. */
static struct mk_cookie get_cookie(struct mk_request *req)
{
    struct mk_cookie cookie = {
        .name = MK_STR("visitor"),
        .path = MK_STR("/visitor"),
        .max_age_s = YEAR_SECONDS,
        .same_site = MK_SAME_SITE_LAX,
        .secure = mk_str_eq(mk_request_scheme(req), MK_STR("https")),
        .http_only = true,
    };
    return cookie;
}

/* A client may send anything: only what make_id() writes is an id. */
static bool is_id(struct mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (mk_hex_value(text.p[i]) < 0)
            return false;
    return text.len == 2 * ID_BYTES;
}

static int make_id(char *text)
{
    unsigned char bytes[ID_BYTES];
    int err = mk_random(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return err;
}

static int greet(struct mk_request *req)
{
    char text[2 * ID_BYTES + 1];
    struct mk_str id = mk_request_cookie(req, MK_STR("visitor"));
    if (is_id(id)) {
        mk_response_write(req, MK_STR("You are "));
        mk_response_write(req, id);
        return 0;
    }
    int err = make_id(text);
    struct mk_cookie cookie = get_cookie(req);
    cookie.value = mk_str(text, sizeof(text) - 1);
    if (err == 0)
        err = mk_response_cookie(req, &cookie);
    if (err == 0)
        mk_response_write_ref(req, MK_STR("Welcome"));
    return err;
}

static int forget(struct mk_request *req)
{
    struct mk_cookie cookie = get_cookie(req);
    return mk_response_remove_cookie(req, &cookie);
}

static int answer(struct mk_request *req)
{
    if (!mk_str_eq(mk_request_path(req), MK_STR("/visitor")))
        return MK_DECLINED;
    enum mk_method method = mk_request_method(req);
    if (method != MK_GET && method != MK_DELETE) {
        mk_response_method_not_allowed(req, MK_STR("GET, DELETE"));
        return 0;
    }
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("no-store")); /* it is for this browser only */
    int err = method == MK_DELETE ? forget(req) : greet(req);
    if (err == 0)
        mk_response_end(req);
    return err;
}

MK_PLUGIN(visitor) = {
    MK_PLUGIN_HEAD("visitor", "1.0", "knows browsers again"),
    .on_content = answer,
};
