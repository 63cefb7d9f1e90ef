// SPDX-License-Identifier: Apache-2.0
/*
 * Reasons of libssl in the words of the configuration (handshake_errors.h).
 */
#include "handshake_errors.h"

#include "tls_counters.h"
#include "verify_errors.h"

#include <monkey/base/log_limit.h>
#include <monkey/log.h>
#include <monkey/loop.h>

#include <openssl/err.h>

#include <errno.h>
#include <pthread.h>

enum { LIMIT_ROWS = 16, NAME_SHOWN_BYTES = 100 };

/* For the whole process: handshakes that fail are few, or an attack. */
static struct {
    pthread_mutex_t lock;
    struct mk_log_limit_row limits[LIMIT_ROWS];
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    int reason; /* of libssl */
    enum tls_count count;
    const char *phrase;
} rows[] = {
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
        verify_errors_describe(SSL_get_verify_result(conn->ssl), "the certificate of the client", "clients", out);
        return TLS_COUNT_CLIENT_CERTIFICATE;
    }
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].reason == reason) {
            mk_buf_addf(out, "%s", rows[i].phrase);
            return rows[i].count;
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
    pthread_mutex_lock(&process.lock);
    bool due = mk_log_limit_is_due(process.limits, LIMIT_ROWS, kind, mk_loop_now_ms(conn->loop), ret_missing);
    pthread_mutex_unlock(&process.lock);
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

void handshake_errors_report(const struct tls_conn *conn, int err)
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
