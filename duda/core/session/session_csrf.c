// SPDX-License-Identifier: Apache-2.0
/*
 * Tokens against requests that other sites make a browser send: a digest of the session's key, which is a digest of its
 * id. So nothing is stored, a new id has a new token, and a token tells nothing about the id.
 */
#include "objects.h"
#include "request/request.h"
#include "session/session.h"

#include <monkey/base/sha1.h>

#include <errno.h>
#include <stdio.h>

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
