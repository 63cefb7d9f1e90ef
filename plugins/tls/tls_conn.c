// SPDX-License-Identifier: Apache-2.0
/*
 * What several files do with a connection (tls_conn.h). transport.c opens and closes it.
 */
#include "tls_conn.h"

#include <monkey/log.h>

#include <openssl/err.h>

#include <assert.h>
#include <errno.h>

void tls_conn_set_name(struct tls_conn *conn, struct mk_str name)
{
    assert(name.len < sizeof(conn->name));
    memcpy(conn->name, name.p, name.len);
    conn->name_len = (uint8_t)name.len;
}

void tls_conn_set_host(struct tls_conn *conn, const struct tls_credentials *own)
{
    assert(conn->worker);
    conn->has_host = true;
    memcpy(conn->policy, own->policy, sizeof(conn->policy));
}

bool tls_conn_covers(const struct tls_conn *conn, struct mk_str name)
{
    assert(conn->ssl);
    if (conn->shown)
        return tls_host_covers(conn->shown, name);
    bool covers = SSL_set_current_cert(conn->ssl, SSL_CERT_SET_FIRST) == 1;
    do
        covers = covers && tls_host_covers(SSL_get_certificate(conn->ssl), name);
    while (covers && SSL_set_current_cert(conn->ssl, SSL_CERT_SET_NEXT) == 1);
    return covers;
}

/*
 * As SSL_get_error(), but without the thread's error queue: it may have errors of other connections, and clearing it
 * before each call costs as much as a small record.
 */
int tls_conn_error(struct tls_conn *conn)
{
    assert(conn->ssl);
    bool reads = SSL_want_read(conn->ssl) && BIO_should_retry(SSL_get_rbio(conn->ssl));
    bool writes = SSL_want_write(conn->ssl) && BIO_should_retry(SSL_get_wbio(conn->ssl));
    if (reads || writes)
        return -EAGAIN;
    if (SSL_get_shutdown(conn->ssl) & SSL_RECEIVED_SHUTDOWN && !(conn->is_client && conn->has_alert))
        return 0;
    unsigned long code = ERR_peek_last_error();
    bool ended = conn->is_client && !conn->has_alert && (conn->peer_closed || conn->was_reset);
    conn->broken = true;
    conn->error = ended ? -ECONNRESET : -EPROTO;
    conn->error_reason = ERR_GET_REASON(code);
    if (code && !conn->is_client) /* its owner describes the error */
        mk_io_log(&(struct mk_io){.fd = conn->fd, .listener = conn->listener}, NULL, MK_LOG_DEBUG,
                  "closing connection %d: TLS: %s", conn->fd, ERR_reason_error_string(code));
    ERR_clear_error();
    return conn->error;
}
