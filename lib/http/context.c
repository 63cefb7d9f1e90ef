// SPDX-License-Identifier: Apache-2.0
/*
 * The HTTP context of a thread: pools, scratch buffers, and the Server and Date lines, formatted once a second.
 */
#include "http/context.h"

#include "http/message/date.h"
#include "http/conn.h"
#include "http/conn.h"
#include "http/handshake.h"
#include "http/request.h"

#include <errno.h>

enum { CONNECTIONS_PER_BLOCK = 32, REQUESTS_PER_BLOCK = 4 };

int mk__context_init(struct mk__context *http, struct mk_loop *loop, const struct mk__http_settings *settings,
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
    mk_list_init(&http->conns);
    mk_list_init(&http->handshaking);
    if (MK_HAS_TLS)
        mk__handshake_init(http);
    mk__pool_init(&http->connections, account, sizeof(struct mk__conn), CONNECTIONS_PER_BLOCK);
    mk__pool_init(&http->requests, account, MK__REQUEST_BYTES, REQUESTS_PER_BLOCK);
    http->in.data = mk_account_alloc(account, http->in.size);
    http->out.data = mk_account_alloc(account, http->out.size);
    http->fields = mk_account_alloc(account, settings->head.fields_max * sizeof(*http->fields));
    if (http->in.data && http->out.data && http->fields)
        return 0;
    mk__context_release(http);
    return -ENOMEM;
}

void mk__context_release(struct mk__context *http)
{
    if (MK_HAS_HTTP2 && http->second_proto)
        http->second_proto->release(http);
    mk_account_free(http->account, http->in.data, http->in.size);
    mk_account_free(http->account, http->out.data, http->out.size);
    mk_account_free(http->account, http->fields, http->fields_max * sizeof(*http->fields));
    mk__pool_release(&http->requests);
    mk__pool_release(&http->connections);
    mk_account_trim(http->account);
}

/* ── other settings ── */

void mk__context_free_buffers(struct mk__context_buffers *b)
{
    mk_account_free(NULL, b->in, b->in_bytes);
    mk_account_free(NULL, b->fields, b->fields_max * sizeof(*b->fields));
    *b = (struct mk__context_buffers){0};
}

/* Buffers never shrink: input that connections have saved must still fit. */
int mk__context_alloc_buffers(const struct mk__context *http, const struct mk__http_settings *settings,
                              struct mk__context_buffers *ret)
{
    size_t in_bytes = settings->head.head_bytes_max + MK__READ_BYTES;
    uint32_t fields_max = settings->head.fields_max;
    *ret = (struct mk__context_buffers){0};
    if (in_bytes > http->in.size) {
        ret->in = mk_account_alloc(NULL, in_bytes);
        ret->in_bytes = in_bytes;
    }
    if (fields_max > http->fields_max) {
        ret->fields = mk_account_alloc(NULL, fields_max * sizeof(*ret->fields));
        ret->fields_max = fields_max;
    }
    if ((ret->in_bytes && !ret->in) || (ret->fields_max && !ret->fields)) {
        mk__context_free_buffers(ret);
        return -ENOMEM;
    }
    return 0;
}

void mk__context_apply_settings(struct mk__context *http, const struct mk__http_settings *settings,
                                struct mk__context_buffers *b)
{
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

struct mk_str mk__context_date_lines(struct mk__context *http)
{
    int64_t now = mk_loop_wall_seconds(http->loop);
    if (http->date_seconds != now) {
        struct mk_buf b;
        char date[MK__DATE_BYTES + 1];
        size_t n = mk__date_format(now, date);
        mk_buf_init_fixed(&b, http->date_lines, sizeof(http->date_lines));
        mk_buf_adds(&b, http->settings->server_line);
        mk_buf_adds(&b, MK_STR("Date: "));
        mk_buf_add(&b, date, n);
        mk_buf_adds(&b, MK_STR("\r\n"));
        http->date_lines_len = (uint8_t)b.len;
        http->date_seconds = now;
    }
    return mk_str(http->date_lines, http->date_lines_len);
}
