// SPDX-License-Identifier: Apache-2.0
/*
 * The beginning and the end of an HTTP context (http/http.h), which know its connections and exchanges.
 */
#include "http/http.h"

#include "http/conn.h"
#include "http/handshake.h"
#include "http/request.h"

#include <assert.h>
#include <errno.h>

enum { CONNECTIONS_PER_BLOCK = 32, REQUESTS_PER_BLOCK = 4 };

int mk__http_init(struct mk__context *http, struct mk_loop *loop, const struct mk__http_settings *settings,
                  const struct mk__http_app *app, void *app_ctx, struct mk_account *account)
{
    *http = (struct mk__context){
        .loop = loop,
        .settings = settings,
        .app = app,
        .app_ctx = app_ctx,
        .account = account,
        .date_seconds = -1,
        .in.size = settings->head.head_bytes_max + MK__READ_BYTES,
        .out.size = MK__OUT_BYTES,
        .fields_max = settings->head.fields_max,
    };
    for (unsigned at = 0; at < MK__PROTOS; at++)
        http->protos[at].proto = app->protos[at].proto;
    assert(http->protos[MK__PROTO_H1].proto);
    mk_list_init(&http->conns);
    mk_list_init(&http->handshaking);
    mk__handshake_init(http);
    mk__pool_init(&http->connections, account, sizeof(struct mk__conn), CONNECTIONS_PER_BLOCK);
    mk__pool_init(&http->requests, account, MK__REQUEST_BYTES, REQUESTS_PER_BLOCK);
    http->in.data = mk_account_alloc(account, http->in.size);
    http->out.data = mk_account_alloc(account, http->out.size);
    http->fields = mk_account_alloc(account, settings->head.fields_max * sizeof(*http->fields));
    if (http->in.data && http->out.data && http->fields)
        return 0;
    mk__http_release(http);
    return -ENOMEM;
}

void mk__http_release(struct mk__context *http)
{
    mk__conn_release_protos(http);
    mk_account_free(http->account, http->in.data, http->in.size);
    mk_account_free(http->account, http->out.data, http->out.size);
    mk_account_free(http->account, http->fields, http->fields_max * sizeof(*http->fields));
    mk__random_pool_release(&http->random);
    mk__recent_windows_release(&http->recent_windows);
    assert(mk_list_empty(&http->conns) && http->handshakes == 0 && http->conns_in_drain == 0);
    mk__pool_release(&http->requests);
    mk__pool_release(&http->connections);
    mk_account_trim(http->account);
}

void mk__http_apply_settings(struct mk__context *http, const struct mk__http_settings *settings,
                             struct mk__context_buffers *b)
{
    assert(b->in_bytes == 0 || b->in_bytes > http->in.size);
    assert(b->fields_max == 0 || b->fields_max > http->fields_max);
    http->settings = settings;
    http->date_seconds = -1; /* the Server line may have changed */
    http->settings_version++;
    mk__conn_apply_settings(http);
    if (b->in) {
        mk_account_free(http->account, http->in.data, http->in.size);
        http->in = (struct mk__scratch){.data = b->in, .size = b->in_bytes};
        http->account->bytes += b->in_bytes;
    }
    if (b->fields) {
        mk_account_free(http->account, http->fields, http->fields_max * sizeof(*http->fields));
        http->fields = b->fields;
        http->fields_max = b->fields_max;
        http->account->bytes += b->fields_max * sizeof(*b->fields);
    }
    *b = (struct mk__context_buffers){0};
}
