// SPDX-License-Identifier: Apache-2.0
/*
 * digest: tokens that a client cannot forge, and the digest of an upload of any size.
 *
 *     curl 'http://localhost:2001/digest/token?user=ada'              a token for this user, for an hour
 *     curl http://localhost:2001/digest/user/TOKEN                    the user, or 403
 *     curl -T FILE http://localhost:2001/digest/sha256                what sha256sum prints
 *
 * A token is the text "time:user" and its HMAC, both as base64 for URLs. The key is made when the service starts, so
 * that tokens end with the process; a service that keeps them reads its key from a file of ConfDir.
 */
#include <duda/duda.h>
#include <duda/packages/base64/base64.h>
#include <duda/packages/sha256/sha256.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

DUDA_REGISTER("Duda I/O examples", "digests");

enum { KEY_BYTES = 32, TEXT_BYTES = 100, TOKEN_SECONDS = 3600 };

static unsigned char key[KEY_BYTES];

/* ── tokens ── */

/* Returns base64 that is freed with the request, or NULL. */
static const char *encode(duda_request_t *dr, const void *bytes, size_t len)
{
    char *text = base64->encode_url(bytes, len, NULL);
    if (gc->add(dr, text) == 0)
        return text;
    free(text);
    return NULL;
}

static void make_token(duda_request_t *dr)
{
    unsigned char mac[SHA256_DIGEST_LENGTH];
    char text[TEXT_BYTES];
    const char *user = qs->get(dr, "user");
    int len = user ? snprintf(text, sizeof(text), "%lld:%s", (long long)xtime->now() + TOKEN_SECONDS, user) : -1;
    if (len < 0 || (size_t)len >= sizeof(text)) {
        response->error(dr, 400);
        return;
    }
    int err = sha256->hmac(key, sizeof(key), text, (size_t)len, mac);
    const char *first = encode(dr, text, (size_t)len), *second = encode(dr, mac, sizeof(mac));
    if (err < 0 || !first || !second) {
        response->error(dr, 500);
        return;
    }
    response->printf(dr, "%s.%s\n", first, second);
    response->end(dr, NULL);
}

/* Returns the decoded text if the HMAC is that of the text, and the time is not over; NULL otherwise. */
static char *check_token(const char *token)
{
    unsigned char mac[SHA256_DIGEST_LENGTH];
    const char *dot = strchr(token, '.');
    size_t len = 0, mac_len = 0;
    char *text = dot ? base64->decode_url(token, (size_t)(dot - token), &len) : NULL;
    unsigned char *given = dot ? base64->decode_url(dot + 1, strlen(dot + 1), &mac_len) : NULL;
    bool right = text && given && mac_len == sizeof(mac) && sha256->hmac(key, sizeof(key), text, len, mac) == 0 &&
                 sha256->is_equal(mac, given, sizeof(mac)) && strtoll(text, NULL, 10) >= xtime->now();
    free(given);
    if (right)
        return text;
    free(text);
    return NULL;
}

static void show_user(duda_request_t *dr)
{
    char *text = check_token(param->get(dr, "token"));
    if (!text) {
        response->error(dr, 403);
        return;
    }
    response->printf(dr, "%s\n", strchr(text, ':') + 1);
    response->end(dr, NULL);
    free(text);
}

/* ── the digest of an upload ── */

struct upload {
    struct duda_digest *digest;
};

static void free_upload(void *ptr)
{
    struct upload *u = ptr;
    sha256->abort(u->digest); /* NULL, if the upload was complete */
    free(u);
}

static void send_digest(duda_request_t *dr, struct upload *u)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char text[DUDA_SHA256_HEX_BYTES];
    int err = sha256->final(u->digest, digest);
    u->digest = NULL;
    if (err < 0) {
        response->error(dr, 500);
        return;
    }
    response->printf(dr, "%s\n", sha256->hex(digest, text));
    response->end(dr, NULL);
}

/* An error of update() is also that of final(). */
static void add_piece(duda_request_t *dr, const char *piece, size_t len, bool end, void *data)
{
    struct upload *u = data;
    sha256->update(u->digest, piece, len);
    if (end)
        send_digest(dr, u);
}

static void begin_upload(duda_request_t *dr)
{
    struct upload *u = calloc(1, sizeof(*u));
    if (!u || gc->add_destroy(dr, u, free_upload) < 0) {
        free(u);
        response->error(dr, 503);
        return;
    }
    u->digest = sha256->init();
    request->read(dr, 0, add_piece, u);
}

int duda_main(void)
{
    duda_load_package(base64, "base64");
    duda_load_package(sha256, "sha256");
    if (getrandom(key, sizeof(key), 0) != sizeof(key))
        return -1;
    struct duda_route *upload = router->put("/sha256", begin_upload);
    if (!upload || router->stream_body(upload) < 0)
        return -1;
    return router->get("/token", make_token) && router->get("/user/:token", show_user) ? 0 : -1;
}
