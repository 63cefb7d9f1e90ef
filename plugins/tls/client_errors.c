// SPDX-License-Identifier: Apache-2.0
/*
 * Describes errors of connections to servers (client_errors.h), in the words of the configuration.
 */
#include "client_errors.h"

#include "tls_conn.h"
#include "verify_errors.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <errno.h>
#include <string.h>

/* The error types of RFC 9209 section 2.3. */
static const char certificate_error[] = "tls_certificate_error", alert_received[] = "tls_alert_received",
                  protocol_error[] = "tls_protocol_error", terminated[] = "connection_terminated",
                  internal[] = "proxy_internal_error";

static void describe_certificate(const struct tls_conn *conn, struct mk_buf *out)
{
    long result = SSL_get_verify_result(conn->ssl);
    if (result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        mk_buf_addf(out, "the certificate of the server does not cover %.*s", (int)conn->name_len, conn->name);
        return;
    }
    verify_errors_describe(result, "the certificate of the server", "servers", out);
}

static const struct {
    int reason;
    const char *phrase;
} failures[] = {
    {SSL_R_UNSUPPORTED_PROTOCOL, "the server supports neither TLS 1.2 nor 1.3"},
    {SSL_R_WRONG_SSL_VERSION, "the server supports neither TLS 1.2 nor 1.3"},
    {SSL_R_WRONG_VERSION_NUMBER, "the server does not speak TLS at this port"},
    {SSL_R_BAD_PROTOCOL_VERSION_NUMBER, "the server does not speak TLS at this port"},
    {SSL_R_PACKET_LENGTH_TOO_LONG, "the server does not speak TLS at this port"},
};

static void describe_protocol(const struct tls_conn *conn, struct mk_buf *out)
{
    for (size_t i = 0; i < MK_COUNT_OF(failures); i++)
        if (failures[i].reason == conn->error_reason) {
            mk_buf_addf(out, "%s", failures[i].phrase);
            return;
        }
    const char *text =
        conn->error_reason ? ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, conn->error_reason)) : NULL;
    mk_buf_addf(out, "the TLS connection has failed%s%s", text ? ": " : "", text ? text : "");
}

const char *client_errors_describe(const struct mk_io *io, int err, struct mk_buf *out)
{
    const struct tls_conn *conn = io->state;
    const char *when = conn && conn->established ? "" : " in the TLS handshake";
    if (conn && conn->has_alert) {
        mk_buf_addf(out, "the server has refused with the TLS alert \"%s\"", SSL_alert_desc_string_long(conn->alert));
        return alert_received;
    }
    if (conn && conn->error == -EPROTO && conn->error_reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        describe_certificate(conn, out);
        return certificate_error;
    }
    if (conn && err == -EPROTO) {
        describe_protocol(conn, out);
        return protocol_error;
    }
    if (err == -ECONNRESET || err == -EPIPE || err == 0) {
        mk_buf_addf(out, "the server has closed the connection%s", when);
        return terminated;
    }
    mk_buf_addf(out, "the connection has failed%s: %s", when, strerror(-err));
    return internal;
}
