// SPDX-License-Identifier: Apache-2.0
/*
 * memcached: pages that take a while to make, kept in memcached. GET /memcached/page/NAME gives a page, and
 * DELETE makes it anew with the next request.
 *
 *     100 requests for a page ─► recache() ─► one has won: makes and stores it
 *                                        └──► 99 wait for it, or get the one that ends soon
 *
 * Without memcached each request makes its page: a cache that is gone costs time, and no request. The servers are in
 * the environment variable MEMCACHED_SERVERS.
 */
#include <duda/duda.h>
#include <duda/packages/memcached/memcached.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

DUDA_REGISTER("Duda I/O examples", "pages in memcached");

enum {
    KEPT_S = 60,    /* a page */
    RECACHE_S = 10, /* before its end one request makes it anew */
    WAIT_S = 5,     /* for the request that makes it */
    RETRY_MS = 20,
    RETRIES = 100,
    MAKING_MS = 50,
    KEY_BYTES = 100,
    TEXT_BYTES = 200,
};

static duda_memcached_t *cache;
static _Atomic long made;

static bool has_ended(int err)
{
    return err == -ECONNABORTED || err == -ECANCELED;
}

/* Returns 0: `page` has a value; or an error, and page->won: make it. */
static int find_page(const char *key, struct duda_memcached_reply *page)
{
    for (int i = 0; i < RETRIES; i++) {
        int err = memcached->recache(cache, key, WAIT_S, RECACHE_S, page);
        if (err != -ENOENT || !page->busy)
            return err;
        err = dthread->sleep(RETRY_MS); /* another request makes it */
        if (err < 0)
            return err;
    }
    return -ETIMEDOUT;
}

/* Returns 0, or an error if the request has ended. */
static int make_page(const char *name, char *text)
{
    int err = dthread->sleep(MAKING_MS); /* queries, templates ... */
    if (err == 0)
        snprintf(text, TEXT_BYTES, "all about %s, made %ld times\n", name, ++made);
    return err;
}

static void send_page(duda_request_t *dr, const char *text, const char *from)
{
    response->http_header(dr, from);
    response->printf(dr, "%s", text);
    response->end(dr, NULL);
}

static void show_page(duda_request_t *dr, void *data)
{
    struct duda_memcached_reply page = {0};
    char key[KEY_BYTES], text[TEXT_BYTES];
    const char *name = param->get(dr, "name");
    (void)data;
    snprintf(key, sizeof(key), "page:%s", name);
    int err = find_page(key, &page);
    if (has_ended(err))
        return; /* `dr` must not be used */
    if (err == 0 && !page.won) {
        gc->add(dr, page.value);
        send_page(dr, page.value, "X-Cache: hit");
        return;
    }
    free(page.value);
    if (err != 0 && err != -ENOENT)
        msg->warn("%s", memcached->error(cache));
    if (make_page(name, text) < 0)
        return;
    if (page.won && has_ended(memcached->store(cache, key, text, strlen(text), KEPT_S)))
        return;
    send_page(dr, text, page.won ? "X-Cache: stored" : "X-Cache: none");
}

static void forget_page(duda_request_t *dr, void *data)
{
    char key[KEY_BYTES];
    (void)data;
    snprintf(key, sizeof(key), "page:%s", param->get(dr, "name"));
    int err = memcached->remove(cache, key);
    if (has_ended(err))
        return;
    response->http_status(dr, err == 0 ? 204 : err == -ENOENT ? 404 : 503);
    response->end(dr, NULL);
}

static void handle(duda_request_t *dr, duda_event_fn fn)
{
    if (strlen(param->get(dr, "name")) > KEY_BYTES - 10)
        response->error(dr, 404);
    else if (!dthread->handle(dr, fn, NULL))
        response->error(dr, 503);
}

static void get_page(duda_request_t *dr)
{
    handle(dr, show_page);
}

static void remove_page(duda_request_t *dr)
{
    handle(dr, forget_page);
}

int duda_main(void)
{
    duda_load_package(memcached, "memcached");
    cache = memcached->open(&(struct duda_memcached_conf){.servers = getenv("MEMCACHED_SERVERS"), .timeout_ms = 500});
    return cache && router->get("/page/:name", get_page) && router->delete ("/page/:name", remove_page) ? 0 : -1;
}
