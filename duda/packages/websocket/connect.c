// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets to other servers.
 */
#include "websocket.h"

#include <stdio.h>

enum { REASON_BYTES = 400 };

static void refuse_url(struct ws_part *part, const char *url, const char *error)
{
    char reason[REASON_BYTES];
    snprintf(reason, sizeof(reason), "\"%s\": %s", url, error);
    ws_refuse(part, "connect", WS_INVALID, reason);
}

static struct ws_part *check_call(const char *url)
{
    struct ws_part *part = ws_find_part();
    const char *wrong = NULL;
    if (!part || !part->base->loop)
        wrong = "it works only in callbacks of workers; the call did nothing";
    else if (!url)
        wrong = "the URL is NULL";
    else if (part->is_stopping)
        wrong = "the worker ends";
    if (!wrong)
        return part;
    ws_refuse(part, "connect", WS_INVALID, wrong);
    return NULL;
}

ws_request_t *ws_connect(const char *url, const ws_endpoint_t *endpoint, void *data)
{
    struct ws_part *part = check_call(url);
    if (!part)
        return NULL;
    if (!part->client_worker)
        part->client_worker = ws_get_worker(part->base, part->service->clients);
    struct ws_conn *conn = part->client_worker ? ws_conn_get(part, endpoint, NULL, WS_CHANNEL_ALL, data) : NULL;
    if (!conn)
        return NULL;
    const char *error = NULL;
    struct mk_ws *ws =
        mk_ws_connect(part->client_worker, &conn->endpoint->settings, url, MK_WS_ALL_CHANNELS, conn, &error);
    if (!ws) {
        refuse_url(part, url, error);
        ws_conn_put(conn);
        return NULL;
    }
    conn->ws = ws;
    mk_list_add(&part->clients, &conn->node);
    return &conn->wr;
}

/* At a stop of the server the thread may have ended, and its loop is closed. */
void ws_connect_stop(struct ws_part *part)
{
    part->is_stopping = true;
    while (!mk_list_empty(&part->clients)) {
        struct ws_conn *conn = MK_LIST_FIRST(&part->clients, struct ws_conn, node);
        mk_ws_end(conn->ws, MK_WS_GOING_AWAY, MK_STR_NONE);
    }
}
