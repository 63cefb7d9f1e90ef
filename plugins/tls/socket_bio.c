// SPDX-License-Identifier: Apache-2.0
/*
 * Sends and receives records between libssl and a socket. transport.c opens and closes connections.
 */
#include "tls.h"

#include <monkey/log.h>

#include <openssl/err.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* ── the connection ── */

void tls_conn_set_name(struct tls_conn *conn, struct mk_str name)
{
    assert(name.len < sizeof(conn->name));
    memcpy(conn->name, name.p, name.len);
    conn->name_len = (uint8_t)name.len;
}

int tls_conn_set_credentials(struct tls_conn *conn, struct tls_credentials *own)
{
    assert(conn->worker);
    credentials_get(own);
    credentials_put(conn->credentials); /* of the first ClientHello, if this is the second one */
    conn->credentials = own;
    return credentials_apply(own, conn->ssl);
}

bool tls_conn_covers(const struct tls_conn *conn, struct mk_str name)
{
    const struct tls_credentials *own = conn->credentials;
    assert(conn->ssl && own->n_certs > 0);
    if (conn->shown)
        return tls_host_covers(conn->shown, name);
    bool covers = true;
    for (unsigned i = 0; covers && i < own->n_certs; i++)
        covers = tls_host_covers(own->certs[i].leaf, name);
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

/* ── the BIO ── */

enum {
    /* a batch, and what libssl sends by itself (alerts, KeyUpdates) */
    UNSENT_BYTES_MAX = WRITE_BUFFER_BATCH_BYTES + 64 * 1024,
    /* without application data; the largest handshake is smaller */
    NO_DATA_BYTES_MAX = 256 * 1024,
    /* by the client: a key is good for 2^24 records, and changing it costs as much as many records */
    KEY_UPDATES_MAX = 100,
};

static BIO_METHOD *bio_method;

/* ── sending ── */

bool socket_bio_is_pending(const struct tls_conn *conn)
{
    return conn->write_buffer->len && conn->write_buffer->owner == conn;
}

/* If another connection has left records in the batch, which its turn should have sent, sends them first. */
void socket_bio_claim(struct tls_conn *conn)
{
    struct write_buffer *buffer = conn->write_buffer;
    if (buffer->len && buffer->owner != conn) {
        int r = socket_bio_flush(buffer->owner, 0);
        buffer->owner->broken |= r < 0 && r != -EAGAIN; /* records that were counted as written are lost */
    }
    buffer->owner = conn;
}

void socket_bio_free_unsent(struct tls_conn *conn)
{
    if (conn->unsent)
        mk_account_free(conn->account, conn->unsent, conn->unsent_len);
    conn->unsent = NULL;
    conn->unsent_len = conn->unsent_pos = 0;
}

/* Copies bytes that the socket did not take after those that are held. Returns -EAGAIN or -ENOMEM. */
static int save_unsent(struct tls_conn *conn, const char *data, size_t len)
{
    assert(len > 0 && conn->unsent_pos <= conn->unsent_len);
    size_t before = conn->unsent_len - conn->unsent_pos;
    char *unsent = before + len <= UNSENT_BYTES_MAX ? mk_account_alloc(conn->account, before + len) : NULL;
    if (!unsent)
        return -ENOMEM;
    if (before)
        memcpy(unsent, conn->unsent + conn->unsent_pos, before);
    memcpy(unsent + before, data, len);
    socket_bio_free_unsent(conn);
    conn->unsent = unsent;
    conn->unsent_len = (uint32_t)(before + len);
    return -EAGAIN;
}

/* Sends bytes. Returns their count, 0 (the socket is full) or -errno. */
static ssize_t try_send(struct tls_conn *conn, const char *data, size_t len, unsigned flags)
{
    ssize_t n = send(conn->fd, data, len, MSG_NOSIGNAL | (flags & MK_IO_MORE ? MSG_MORE : 0));
    return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

/* Sends what is held. Returns 0 (nothing is left), -EAGAIN or another -errno. */
static int send_unsent(struct tls_conn *conn)
{
    assert(conn->unsent_pos <= conn->unsent_len);
    ssize_t n =
        conn->unsent ? try_send(conn, conn->unsent + conn->unsent_pos, conn->unsent_len - conn->unsent_pos, 0) : 0;
    if (n < 0)
        return (int)n;
    conn->unsent_pos += (uint32_t)n;
    if (conn->unsent_pos < conn->unsent_len)
        return -EAGAIN;
    socket_bio_free_unsent(conn);
    return 0;
}

int socket_bio_flush(struct tls_conn *conn, unsigned flags)
{
    struct write_buffer *buffer = conn->write_buffer;
    size_t len = socket_bio_is_pending(conn) ? buffer->len : 0;
    assert(buffer->len <= sizeof(buffer->batch));
    int r = send_unsent(conn);
    buffer->len -= len;
    if (!len || (r < 0 && r != -EAGAIN))
        return r;
    ssize_t n = r == 0 ? try_send(conn, buffer->batch, len, flags) : 0;
    if (n < 0)
        return (int)n;
    return (size_t)n == len ? 0 : save_unsent(conn, buffer->batch + n, len - (size_t)n);
}

/* The BIO's write: adds a record to the batch; sends the batch first if it is full. */
static int append_batch(BIO *bio, const char *from, int size)
{
    struct tls_conn *conn = BIO_get_data(bio);
    struct write_buffer *buffer = conn->write_buffer;
    assert(buffer->owner == conn && size > 0); /* socket_bio_claim() comes before libssl */
    BIO_clear_retry_flags(bio);
    if ((size_t)size > sizeof(buffer->batch) - buffer->len) {
        int r = socket_bio_flush(conn, MK_IO_MORE);
        if (r < 0 || (size_t)size > sizeof(buffer->batch)) {
            if (r == -EAGAIN)
                BIO_set_retry_write(bio);
            return -1;
        }
    }
    memcpy(buffer->batch + buffer->len, from, (size_t)size);
    buffer->len += (size_t)size;
    return size;
}

/* ── receiving ── */

bool socket_bio_is_http(char first)
{
    char c = mk_lower(first);
    return c >= 'a' && c <= 'z';
}

/* Keeps the first bytes of a client that speaks plain HTTP, for the request. */
static bool save_plaintext(struct tls_conn *conn, const char *data, size_t len)
{
    assert(!conn->plaintext && len > 0);
    conn->saw_first_byte = true;
    if (!socket_bio_is_http(data[0]))
        return false;
    conn->plaintext = mk_account_alloc(conn->account, len);
    if (conn->plaintext)
        memcpy(conn->plaintext, data, len);
    conn->plaintext_len = conn->plaintext ? (uint32_t)len : 0;
    return conn->plaintext;
}

/* An alert that ends the connection: with TLS 1.3 all but two, whatever their level is (RFC 8446 section 6). */
static bool is_fatal(const unsigned char *alert, const SSL *ssl)
{
    if (SSL_version(ssl) >= TLS1_3_VERSION)
        return alert[1] != SSL_AD_CLOSE_NOTIFY && alert[1] != SSL_AD_USER_CANCELLED;
    return alert[0] == SSL3_AL_FATAL;
}

/* The callback of SSL_set_msg_callback(): counts KeyUpdates, and saves a fatal alert. */
static void note_message(int sent, int version, int content, const void *message, size_t len, SSL *ssl, void *ctx)
{
    struct tls_conn *conn = ctx;
    const unsigned char *bytes = message;
    (void)version;
    if (!sent && content == SSL3_RT_HANDSHAKE && len && *bytes == SSL3_MT_KEY_UPDATE)
        conn->key_updates++;
    if (!sent && content == SSL3_RT_ALERT && len == 2 && is_fatal(bytes, ssl)) {
        conn->has_alert = true;
        conn->alert = bytes[1];
    }
}

/* The BIO's read. Limits what a client may send without application data. */
static int read_socket(BIO *bio, char *to, int size)
{
    struct tls_conn *conn = BIO_get_data(bio);
    assert(size > 0);
    BIO_clear_retry_flags(bio);
    if (conn->no_data_bytes > NO_DATA_BYTES_MAX || conn->key_updates > KEY_UPDATES_MAX) {
        if (!conn->broken)
            tls_counters_add(conn->key_updates > KEY_UPDATES_MAX ? TLS_COUNT_KEY_UPDATES : TLS_COUNT_NO_DATA, NULL);
        return -1; /* a client that sends no application data, to keep the server busy */
    }
    if (conn->socket_empty) {
        BIO_set_retry_read(bio);
        return -1;
    }
    ssize_t n = recv(conn->fd, to, (size_t)size, 0);
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR)
            BIO_set_retry_read(bio);
        else
            conn->was_reset = true;
        return -1;
    }
    conn->peer_closed = n == 0;
    conn->socket_empty = n < size;
    conn->no_data_bytes += (uint32_t)n;
    return n && !conn->saw_first_byte && save_plaintext(conn, to, (size_t)n) ? -1 : (int)n;
}

static long control_bio(BIO *bio, int command, long number, void *pointer)
{
    const struct tls_conn *conn = BIO_get_data(bio);
    (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH || (command == BIO_CTRL_EOF && conn->peer_closed);
}

/* Never frees the method: connections may outlive the last generation. */
int socket_bio_start(void)
{
    if (bio_method)
        return 0;
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket and batch");
    if (!bio_method || !BIO_meth_set_read(bio_method, read_socket) || !BIO_meth_set_write(bio_method, append_batch) ||
        !BIO_meth_set_ctrl(bio_method, control_bio))
        return -ENOMEM;
    return 0;
}

BIO *socket_bio_new(struct tls_conn *conn)
{
    assert(bio_method && conn->ssl);
    BIO *bio = BIO_new(bio_method);
    if (!bio)
        return NULL;
    SSL_set_msg_callback(conn->ssl, note_message);
    SSL_set_msg_callback_arg(conn->ssl, conn);
    BIO_set_data(bio, conn);
    BIO_set_init(bio, 1);
    return bio;
}
