// SPDX-License-Identifier: Apache-2.0
/*
 * Reasons of libssl in the words of the configuration.
 */
#include "tls.h"

#include <monkey/base/log_limit.h>
#include <monkey/log.h>
#include <monkey/loop.h>

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* ── certificates that were refused ── */

static const struct {
    long result;
    const char *phrase;
} refusals[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "has expired"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "is not valid yet"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, "is self-signed, and is not in the file of authorities"},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, "is of an authority that is not trusted"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, "is of an authority that is not trusted"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "is of an authority that is not trusted"},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, "is of an authority that is not trusted"},
    {X509_V_ERR_CERT_CHAIN_TOO_LONG, "has too many authorities above it"},
};

/*
 * Appends "SUBJECT ..." for a result of SSL_get_verify_result(). `subject` is "the certificate of the server", `owners`
 * whose certificate it has to be: "servers".
 */
static void describe_refusal(long result, const char *subject, const char *owners, struct mk_buf *out)
{
    if (result == X509_V_ERR_INVALID_PURPOSE) {
        mk_buf_addf(out, "%s is not for %s", subject, owners);
        return;
    }
    for (size_t i = 0; i < MK_COUNT_OF(refusals); i++)
        if (refusals[i].result == result) {
            mk_buf_addf(out, "%s %s", subject, refusals[i].phrase);
            return;
        }
    mk_buf_addf(out, "%s is refused: %s", subject, X509_verify_cert_error_string(result));
}

/* ── handshakes of clients ── */

enum { LIMIT_ROWS = 16, NAME_SHOWN_BYTES = 100 };

/* For the whole process: handshakes that fail are few, or an attack. */
static struct {
    pthread_mutex_t lock;
    struct mk_log_limit_row rows[LIMIT_ROWS];
} log_limits = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    int reason; /* of libssl */
    enum tls_count count;
    const char *phrase;
} handshake_failures[] = {
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, TLS_COUNT_CLIENT_CERTIFICATE,
     "the client has sent no certificate, which \"ClientCertificate Required\" asks for"},
    {SSL_R_NO_APPLICATION_PROTOCOL, TLS_COUNT_PROTOCOL,
     "the client offers only protocols that this server does not have (ALPN)"},
    {SSL_R_UNSUPPORTED_PROTOCOL, TLS_COUNT_VERSION, "the client supports no version of TLS that the Profile allows"},
    {SSL_R_VERSION_TOO_LOW, TLS_COUNT_VERSION, "the client supports no version of TLS that the Profile allows"},
    {SSL_R_NO_SHARED_CIPHER, TLS_COUNT_CIPHER, "the client and this server have no cipher in common"},
    {SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, TLS_COUNT_CIPHER,
     "the client supports no signature that the key of the certificate can make"},
    {SSL_R_NO_SUITABLE_KEY_SHARE, TLS_COUNT_CIPHER, "the client and this server have no group in common"},
    {SSL_R_NO_SUITABLE_GROUPS, TLS_COUNT_CIPHER, "the client and this server have no group in common"},
};

/* A name that is none is not shown: what a client sends must not look like another line. */
static void describe_name(const struct tls_conn *conn, struct mk_buf *out)
{
    struct mk_str name = mk_str_truncate(mk_str(conn->name, conn->name_len), NAME_SHOWN_BYTES);
    if (!name.len)
        mk_buf_addf(out, "the client has sent no name (SNI), and the default host has no certificate");
    else if (mk_str_is_name(name, "-._"))
        mk_buf_addf(out, "no host has a certificate for the name %.*s (SNI), nor has the default host one",
                    MK_STR_ARG(name));
    else
        mk_buf_addf(out, "the client has sent a name (SNI) that is not a valid host name");
}

/* Describes why a handshake has failed. Returns what to count. */
static enum tls_count describe_failure(const struct tls_conn *conn, struct mk_buf *out)
{
    int reason = conn->error_reason;
    if (conn->has_alert) {
        mk_buf_addf(out, "the client has refused with the TLS alert \"%s\"", SSL_alert_desc_string_long(conn->alert));
        return TLS_COUNT_CLIENT_ALERT;
    }
    if (conn->name_refused) {
        describe_name(conn, out);
        return TLS_COUNT_NAME;
    }
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        describe_refusal(SSL_get_verify_result(conn->ssl), "the certificate of the client", "clients", out);
        return TLS_COUNT_CLIENT_CERTIFICATE;
    }
    for (size_t i = 0; i < MK_COUNT_OF(handshake_failures); i++)
        if (handshake_failures[i].reason == reason) {
            mk_buf_addf(out, "%s", handshake_failures[i].phrase);
            return handshake_failures[i].count;
        }
    const char *text = reason ? ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason)) : NULL;
    mk_buf_addf(out, "%s", text ? text : "unknown error");
    return TLS_COUNT_FAILED;
}

/* Returns whether a line of this kind may be written now, and how many were not since the last one. */
static bool is_due(const struct tls_conn *conn, enum tls_count count, unsigned *ret_missing)
{
    long detail = count == TLS_COUNT_CLIENT_ALERT ? conn->alert : conn->error_reason;
    if (detail == SSL_R_CERTIFICATE_VERIFY_FAILED)
        detail = SSL_get_verify_result(conn->ssl);
    uint64_t kind = (uint64_t)count << 32 | (unsigned)detail;
    pthread_mutex_lock(&log_limits.lock);
    bool due = mk_log_limit_is_due(log_limits.rows, LIMIT_ROWS, kind, mk_loop_now_ms(conn->loop), ret_missing);
    pthread_mutex_unlock(&log_limits.lock);
    return due;
}

static void log_failure(const struct tls_conn *conn, enum tls_count count, const char *text)
{
    const struct mk_io io = {.fd = conn->fd, .listener = conn->listener};
    unsigned missing;
    if (!mk_log_wants(MK_LOG_INFO) || !is_due(conn, count, &missing))
        return;
    if (missing)
        mk_io_log(&io, NULL, MK_LOG_INFO, "TLS handshake failed: %s (and %u more since the last such line)", text,
                  missing);
    else
        mk_io_log(&io, NULL, MK_LOG_INFO, "TLS handshake failed: %s", text);
}

void errors_report_handshake(const struct tls_conn *conn, int err)
{
    if (!conn->has_alert && (err == -EPIPE || err == -ECONNRESET)) {
        tls_counters_add(TLS_COUNT_CLIENT_CLOSED, conn->worker);
        return;
    }
    MK_BUF_ON_STACK(text, 400);
    enum tls_count count = describe_failure(conn, &text);
    tls_counters_add(count, conn->worker);
    log_failure(conn, count, mk_buf_cstr(&text));
}

/* ── connections to servers ── */

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
    describe_refusal(result, "the certificate of the server", "servers", out);
}

static const struct {
    int reason;
    const char *phrase;
} protocol_failures[] = {
    {SSL_R_UNSUPPORTED_PROTOCOL, "the server supports neither TLS 1.2 nor 1.3"},
    {SSL_R_WRONG_SSL_VERSION, "the server supports neither TLS 1.2 nor 1.3"},
    {SSL_R_WRONG_VERSION_NUMBER, "the server does not speak TLS at this port"},
    {SSL_R_BAD_PROTOCOL_VERSION_NUMBER, "the server does not speak TLS at this port"},
    {SSL_R_PACKET_LENGTH_TOO_LONG, "the server does not speak TLS at this port"},
};

static void describe_protocol(const struct tls_conn *conn, struct mk_buf *out)
{
    for (size_t i = 0; i < MK_COUNT_OF(protocol_failures); i++)
        if (protocol_failures[i].reason == conn->error_reason) {
            mk_buf_addf(out, "%s", protocol_failures[i].phrase);
            return;
        }
    const char *text =
        conn->error_reason ? ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, conn->error_reason)) : NULL;
    mk_buf_addf(out, "the TLS connection has failed%s%s", text ? ": " : "", text ? text : "");
}

const char *errors_describe_client(const struct mk_io *io, int err, struct mk_buf *out)
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
