// SPDX-License-Identifier: Apache-2.0
/*
 * The server's side of the handshake: what a request asks for, compared with what the settings allow.
 */
#include "handshake.h"
#include "ws.h"

struct mk__ws_deflate_params mk__ws_deflate_params_of(const struct mk_ws_settings *settings)
{
    return (struct mk__ws_deflate_params){
        .on = !settings->no_deflate,
        .server_no_context = !settings->context_takeover,
        .client_no_context = !settings->context_takeover,
        .server_bits = MK__WS_BITS_MAX,
        .client_bits = MK__WS_BITS_MAX,
    };
}

static void negotiate_deflate(const struct mk_ws_settings *settings, struct mk_str extensions,
                              struct mk_ws_negotiated *ret)
{
    const struct mk__ws_deflate_params ours = mk__ws_deflate_params_of(settings);
    struct mk__ws_deflate_params params = {0};
    struct mk_buf out;
    if (mk__ws_deflate_choose(extensions, &ours, &params) < 0 || !params.on)
        return;
    mk_buf_init_fixed(&out, ret->extensions, sizeof(ret->extensions));
    mk__ws_deflate_write_response(&out, &params);
    mk_buf_cstr(&out);
    assert(!out.err); /* with all four parameters it has 128 bytes */
    ret->deflate = true;
    ret->send_context = !params.server_no_context;
    ret->receive_context = !params.client_no_context;
    ret->send_bits = params.server_bits;
    ret->receive_bits = params.client_bits;
}

static int refuse_upgrade(int status, const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return status;
}

int mk_ws_negotiate(const struct mk_ws_request *request, const struct mk_ws_settings *settings,
                    struct mk_ws_negotiated *ret, const char **ret_reason)
{
    struct mk_str supported = settings->protocols ? mk_str_c(settings->protocols) : MK_STR_NONE;
    struct mk_str origins = settings->origins ? mk_str_c(settings->origins) : MK_STR_NONE;
    memset(ret, 0, sizeof(*ret));
    if (!request->is_get || !mk_str_list_has(request->upgrade, MK_STR("websocket")))
        return refuse_upgrade(400, "the request is no WebSocket handshake", ret_reason);
    if (!mk__ws_version_is_valid(request->version))
        return refuse_upgrade(request->version.p ? 426 : 400, "the version of the protocol is not 13", ret_reason);
    if (request->is_http1 && !mk__ws_key_is_valid(request->key))
        return refuse_upgrade(400, "Sec-WebSocket-Key is not valid", ret_reason);
    if (!mk__ws_origin_allowed(request->origin, request->host, request->is_tls, origins))
        return refuse_upgrade(403, "the page is from another origin", ret_reason);
    if (request->is_http1)
        mk_ws_accept_key(ret->accept, request->key);
    ret->protocol = mk__ws_find_protocol(supported, mk__ws_choose_protocol(request->protocols, supported));
    if (!settings->no_deflate)
        negotiate_deflate(settings, request->extensions, ret);
    return 101;
}
