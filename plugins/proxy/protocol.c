// SPDX-License-Identifier: Apache-2.0
/*
 * The table of the protocol (protocol.h), and its framing of bodies. The state of an exchange is a struct upgrade.
 */
#include "protocol.h"

#include "proxy_header.h"
#include "request.h"
#include "response.h"
#include "trailers.h"
#include "upgrade.h"

#include <monkey/kit/via.h>

#include <stdio.h>

/* Tells whether the request has passed this section before. */
static bool is_loop(const struct mk_gateway_call *c)
{
    struct mk_str via = mk_request_header_by_name(c->req, MK_STR("Via"));
    return via.len && mk_via_is_loop(via, mk_via_mark(proxy_conf_of(c)->via_seed, c->req));
}

static int begin_call(struct mk_gateway_call *c)
{
    struct upgrade *upgrade = c->state;
    uint64_t bytes;
    if (is_loop(c))
        return MK_GATEWAY_LOOP;
    bool is_chunked = !mk_request_body_length(c->req, &bytes);
    c->has_trailers = is_chunked && trailers_are_announced(c->req) && mk_request_keep_trailers(c->req) == 0;
    int status = upgrade_init(upgrade, c->req, &proxy_conf_of(c)->upgrade);
    c->is_upgrade = upgrade->token.len > 0;
    return status;
}

/* Connections that begin with the addresses of a client serve no other one. */
static void write_preamble(const struct mk_gateway_call *c, struct mk_buf *out)
{
    const struct proxy_conf *conf = proxy_conf_of(c);
    if (conf->send_proxy)
        proxy_header_write(out, conf->send_proxy, mk_request_client(c->req),
                           mk_connection_local(mk_request_connection(c->req)));
}

static int write_head(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out)
{
    return request_write_head(out, c->req, proxy_conf_of(c), c->state, body);
}

static struct mk_str write_trailers(const struct mk_gateway_call *c)
{
    return trailers_make_chunk(c->req, &proxy_conf_of(c)->request);
}

static size_t begin_chunk(char to[MK_GATEWAY_FRAME_BYTES], size_t len)
{
    return (size_t)snprintf(to, MK_GATEWAY_FRAME_BYTES, "%zx\r\n", len);
}

static const struct mk_gateway_frames chunks = {
    .piece_max = SIZE_MAX,
    .begin = begin_chunk,
    .piece_end = MK_STR_INIT("\r\n"),
    .body_end = MK_STR_INIT("0\r\n\r\n"),
};

const struct mk_gateway_protocol proxy_protocol = {
    .name = "proxy",
    .state_bytes = sizeof(struct upgrade),
    .chunked_frames = &chunks,
    .begin = begin_call,
    .write_preamble = write_preamble,
    .write_head = write_head,
    .write_trailers = write_trailers,
    .check_head = response_check_head,
    .pass_header = response_pass_header,
    .pass_more = response_pass_more,
    .pass_interim = response_pass_interim,
    .pass_upgrade = response_pass_upgrade,
    .add_trailers = response_add_trailers,
};
