// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets to other servers.
 */
#include "websocket.h"

#include <stdio.h>

enum { REASON_BYTES = 400 };

static void refuse_url(struct ws_worker *w, const char *url, const char *error)
{
    char reason[REASON_BYTES];
    snprintf(reason, sizeof(reason), "\"%s\": %s", url, error);
    ws_refuse(w, "connect", WS_INVALID, reason);
}

static struct ws_worker *check_call(const char *url)
{
    struct ws_worker *w = ws_find_worker();
    const char *wrong = NULL;
    if (!w || !w->base->loop)
        wrong = "it works only in callbacks of workers; the call did nothing";
    else if (!url)
        wrong = "the URL is NULL";
    else if (w->is_stopping)
        wrong = "the worker ends";
    if (!wrong)
        return w;
    ws_refuse(w, "connect", WS_INVALID, wrong);
    return NULL;
}

ws_request_t *ws_connect(const char *url, const ws_endpoint_t *endpoint, void *data)
{
    struct ws_worker *w = check_call(url);
    if (!w)
        return NULL;
    if (!w->client)
        w->client = ws_get_worker(w->base, w->service->clients);
    struct ws_conn *conn = w->client ? ws_conn_get(w, endpoint, NULL, WS_CHANNEL_ALL, data) : NULL;
    if (!conn)
        return NULL;
    const char *error = NULL;
    struct mk_ws *ws = mk_ws_connect(w->client, &conn->endpoint->settings, url, MK_WS_ALL_CHANNELS, conn, &error);
    if (!ws) {
        refuse_url(w, url, error);
        ws_conn_put(conn);
        return NULL;
    }
    conn->ws = ws;
    mk_list_add(&w->clients, &conn->node);
    return &conn->wr;
}

/* At a stop of the server the thread may have ended, and its loop is closed. */
void ws_connect_stop(struct ws_worker *w)
{
    w->is_stopping = true;
    while (!mk_list_empty(&w->clients)) {
        struct ws_conn *conn = MK_LIST_FIRST(&w->clients, struct ws_conn, node);
        mk_ws_end(conn->ws, MK_WS_GOING_AWAY, MK_STR_NONE);
    }
}
