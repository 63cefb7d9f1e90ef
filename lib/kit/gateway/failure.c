// SPDX-License-Identifier: Apache-2.0
/*
 * The table of failures (failure.h). The rows of a dial, and those of what follows it, each end with one for any other
 * error.
 */
#include "failure.h"

#include <monkey/base/escape.h>

#include <errno.h>
#include <inttypes.h>

enum { VALUE_BYTES = 1280 };

static const struct mk__gw_failure failures[] = {
    {-ETIMEDOUT, true, false, 504, "connection_timeout", NULL},
    {-ENXIO, true, false, 502, "dns_error", NULL},
    {-EAGAIN, true, true, 502, "dns_timeout", NULL},
    {-ECONNREFUSED, true, false, 502, "connection_refused", NULL},
    {-ENOENT, true, false, 502, "connection_refused", NULL},
    {-EHOSTUNREACH, true, false, 502, "destination_ip_unroutable", NULL},
    {-ENETUNREACH, true, false, 502, "destination_ip_unroutable", NULL},
    {-EADDRNOTAVAIL, true, true, 503, "connection_limit_reached", NULL}, /* no local port, or no such SourceAddress */
    {-EBUSY, true, true, 503, "connection_limit_reached", NULL},
    {-EMFILE, true, true, 503, "connection_limit_reached", NULL},
    {-ENFILE, true, true, 503, "connection_limit_reached", NULL},
    {-ENOBUFS, true, true, 503, "proxy_internal_error", NULL},
    {-ENOMEM, true, true, 503, "proxy_internal_error", NULL},
    {0, true, false, 502, "destination_unavailable", NULL},
    {-ETIMEDOUT, false, false, 504, "http_response_timeout", "it takes too long"},
    {-EPIPE, false, false, 502, "http_response_incomplete",
     "it has closed the connection before its response was complete"},
    {-ECONNRESET, false, false, 502, "connection_terminated", "it has reset the connection"},
    {-EINVAL, false, false, 502, "http_protocol_error", "its response is malformed"},
    {-EMSGSIZE, false, false, 502, "http_response_header_section_size", NULL}, /* describe_excess() */
    {-ENOBUFS, false, false, 502, "http_response_header_section_size", "its response has too many headers"},
    {-EPROTO, false, false, 502, "http_upgrade_failed", "it does not do the upgrade that was asked for"},
    {-EBUSY, false, false, 503, "connection_limit_reached", "it is overloaded"},
    {-ENOPROTOOPT, false, false, 502, "http_protocol_error", "it does not serve such requests"},
    {-ELOOP, false, false, 502, "http_protocol_error", "it sends too many interim responses"},
    {-EDQUOT, false, true, 503, "proxy_internal_error",
     "the body of the request cannot be read from where it was kept"},
    {-EMFILE, false, true, 503, "proxy_internal_error", "this server has no descriptor left for it"},
    {-ENFILE, false, true, 503, "proxy_internal_error", "the system has no descriptor left for it"},
    {-ENOMEM, false, true, 503, "proxy_internal_error", "there is no memory for it"},
    {0, false, false, 502, "connection_terminated", NULL},
};

const struct mk__gw_failure *mk__gw_failure_find(bool is_dial, int err)
{
    const struct mk__gw_failure *f = failures;
    while (f->is_dial != is_dial || (f->err && f->err != err))
        f++;
    return f;
}

/* Names the limit that a response is above. */
static void describe_excess(const struct mk__gw_download *down, struct mk_buf *out)
{
    const struct mk_response_parser *p = &down->parser;
    uint64_t bytes = down->limits->head_bytes_max;
    if (p->head_bytes)
        mk_buf_adds(out, MK_STR("the lines before its chunks, or its trailers, are too long"));
    else if (p->head.n_fields == down->limits->fields_max)
        mk_buf_addf(out, "its response has too many headers (at most %u)", down->limits->fields_max);
    else
        mk_buf_addf(out, "the head of its response is too long (MaxResponseHead is %" PRIu64 "%s)",
                    bytes % 1024 ? bytes : bytes / 1024, bytes % 1024 ? "" : "K");
}

static void describe_error(const struct mk__gw_failure *f, const struct mk__gw_download *down, int err,
                           struct mk_buf *out)
{
    if (err == -EMSGSIZE)
        describe_excess(down, out);
    else
        mk_buf_addf(out, "%s", f->text ? f->text : strerror(-err));
    if (err == -ELOOP)
        mk_buf_addf(out, " (at most %d)", MK__GW_INTERIM_MAX);
}

struct mk_str mk__gw_failure_describe(const struct mk__gw_failure *f, const struct mk__gw_download *down, int err,
                                      const char *head, struct mk_buf *out)
{
    const struct mk_gateway_call *call = down->call;
    const struct mk_response_fault *fault = &down->parser.fault;
    const char *own = call->protocol->describe_fault ? call->protocol->describe_fault(call, err) : NULL;
    if (own)
        mk_buf_addf(out, "%s", own);
    else
        describe_error(f, down, err, out);
    if (own || err != -EINVAL || !fault->text)
        return own ? mk_str_c(own) : MK_STR_NONE;
    mk_buf_adds(out, MK_STR(": "));
    mk_response_fault_describe(fault, head, out);
    return call->protocol->parse_head ? mk_str_c(fault->text) : MK_STR_NONE;
}

void mk__gw_failure_write(struct mk_buf *out, const char *type, struct mk_str details)
{
    mk_buf_addf(out, "monkey; error=%s", type);
    if (!details.len)
        return;
    mk_buf_adds(out, MK_STR("; details=\"")); /* a string of structured fields (RFC 8941 section 3.3.3) */
    mk_quoted_escape(out, details);
    mk_buf_addc(out, '"');
}

void mk__gw_failure_respond(struct mk_request *req, int status, const char *type, struct mk_str details)
{
    MK_BUF_ON_STACK(value, VALUE_BYTES);
    mk__gw_failure_write(&value, type, details);
    mk_response_error(req, status);
    mk_response_header(req, MK_STR("Proxy-Status"), mk_buf_str(&value));
}
