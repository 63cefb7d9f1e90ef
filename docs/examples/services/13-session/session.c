// SPDX-License-Identifier: Apache-2.0
/*
 * session: a basket that the server keeps for each browser, and a login.
 *
 *     curl -c jar -b jar -d item=book http://localhost:2001/session/basket
 *     curl -c jar -b jar -d name=ada -d password=analytical http://localhost:2001/session/login
 *     curl -c jar -b jar http://localhost:2001/session/
 *     curl -c jar -b jar -X POST http://localhost:2001/session/logout
 *
 * A callback before the handlers opens the session; each handler that changes it saves it, and responds when that is
 * done. The sessions are in memory; with .folder = "sessions" in the settings they are in DataDir, and outlive the
 * server, without another change.
 */
#include <duda/duda.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

DUDA_REGISTER("Duda I/O examples", "sessions");

enum { BASKET_BYTES = 200 };

/* ── the session of each request ── */

static void begin_handler(duda_request_t *dr, int result, void *data)
{
    (void)data;
    if (result == 0)
        router->next(dr);
    else
        response->error(dr, 503);
}

/* Stops the request until the session was read. */
static int open_session(duda_request_t *dr)
{
    if (session->open(dr, begin_handler, NULL) < 0)
        response->error(dr, 503);
    return -1;
}

static void respond_saved(duda_request_t *dr, int result, void *data)
{
    (void)data;
    if (result < 0) {
        response->error(dr, result == -ESTALE ? 409 : 503); /* 409: a logout came before it */
        return;
    }
    response->http_status(dr, 204);
    response->end(dr, NULL);
}

static void save_session(duda_request_t *dr)
{
    if (session->save(dr, respond_saved, NULL) < 0)
        response->error(dr, 503);
}

/* ── handlers ── */

static void show(duda_request_t *dr)
{
    const char *user = session->get(dr, "user", NULL), *basket = session->get(dr, "basket", NULL);
    response->http_content_type(dr, "txt");
    response->printf(dr, "%s: %s\n", user ? user : "guest", basket ? basket : "nothing");
    response->end(dr, NULL);
}

static void add_item(duda_request_t *dr)
{
    char text[BASKET_BYTES];
    const char *item = form->get(dr, "item"), *basket = session->get(dr, "basket", NULL);
    int len = item ? snprintf(text, sizeof(text), "%s%s%s", basket ? basket : "", basket ? ", " : "", item) : -1;
    if (len < 0 || (size_t)len >= sizeof(text) || session->set(dr, "basket", text, len) < 0)
        response->error(dr, 400);
    else
        save_session(dr);
}

static void empty_basket(duda_request_t *dr)
{
    if (session->remove(dr, "basket") < 0)
        response->error(dr, 503);
    else
        save_session(dr);
}

/* The session gets a new id with the login: the old one, which others may have seen or planted, ends. */
static void log_in(duda_request_t *dr)
{
    const char *name = form->get(dr, "name"), *password = form->get(dr, "password");
    if (!name || !password || strcmp(name, "ada") != 0 || strcmp(password, "analytical") != 0)
        response->error(dr, 403);
    else if (session->renew(dr) < 0 || session->set(dr, "user", name, -1) < 0)
        response->error(dr, 503);
    else
        save_session(dr);
}

static void log_out(duda_request_t *dr)
{
    session->destroy(dr);
    save_session(dr);
}

int duda_main(void)
{
    static const struct duda_session_conf conf = {.idle_s = 900, .absolute_s = 36000, .sessions_max = 1000};
    if (session->init(&conf) < 0 || router->before_all(open_session) < 0)
        return -1;
    return router->get("/", show) && router->post("/basket", add_item) && router->delete ("/basket", empty_basket) &&
                   router->post("/login", log_in) && router->post("/logout", log_out)
               ? 0
               : -1;
}
