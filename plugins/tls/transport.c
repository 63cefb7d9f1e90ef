// SPDX-License-Identifier: Apache-2.0
/*
 * Opens a connection, drives its handshake, shuts it down and closes it. io.c reads and writes.
 */
#include "tls.h"

#include <openssl/err.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_tls;

enum { SUBJECT_BYTES_MAX = 4096 };

/*
 * About what libssl uses for an idle connection. libssl does not allocate from the worker's account, so it is added
 * here.
 */
enum { SSL_BYTES = 14 * 1024 };

static struct tls_conn *get_conn(const struct mk_io *io)
{
    return io->state;
}

/* ── open ── */

/* Makes a connection without an SSL. Returns NULL without memory. */
static struct tls_conn *new_conn(struct mk_io *io, struct mk_worker *worker)
{
    const struct tls_worker *own = mk_worker_state(worker, &mk_plugin_tls);
    struct mk_account *account = mk_worker_account(worker);
    struct tls_conn *conn = mk_account_alloc(account, sizeof(*conn));
    if (!conn)
        return NULL;
    *conn = (struct tls_conn){.account = account,
                              .loop = mk_worker_loop(worker),
                              .write_buffer = write_buffer_get(own->write_buffer),
                              .fd = io->fd,
                              .listener = io->listener};
    io->state = conn;
    return conn;
}

/* Makes the SSL. With kTLS it uses the socket itself, else by socket_bio.c. */
static int make_ssl(struct tls_conn *conn, SSL_CTX *ctx)
{
    assert(ctx);
    const struct mk_account *account = conn->account;
    bool fits = !account->bytes_max || account->bytes + SSL_BYTES <= account->bytes_max;
    conn->ssl = fits ? SSL_new(ctx) : NULL;
    if (!conn->ssl)
        return -ENOMEM;
    conn->account->bytes += SSL_BYTES;
    conn->ktls = ktls_option(true) & SSL_get_options(conn->ssl);
    SSL_set_app_data(conn->ssl, conn);
    if (conn->is_client)
        SSL_set_connect_state(conn->ssl);
    else
        SSL_set_accept_state(conn->ssl);
    if (conn->ktls)
        return SSL_set_fd(conn->ssl, conn->fd) == 1 ? 0 : -ENOMEM;
    BIO *bio = socket_bio_new(conn);
    if (!bio)
        return -ENOMEM;
    SSL_set_bio(conn->ssl, bio, bio);
    return 0;
}

static int open_conn(struct mk_io *io, struct mk_worker *worker)
{
    struct tls_generation *t = mk_generation_state(mk_worker_generation(worker), &mk_plugin_tls);
    struct tls_conn *conn = new_conn(io, worker);
    if (!conn)
        return -ENOMEM;
    conn->worker = mk_worker_get(worker);
    conn->generation = t;
    return make_ssl(conn, t->ctx);
}

static int connect_conn(struct mk_io *io, struct mk_worker *worker, struct mk_transport_client *client)
{
    struct tls_conn *conn = new_conn(io, worker);
    struct mk_watched_ref ref;
    if (!conn)
        return -ENOMEM;
    conn->is_client = true;
    conn->saw_first_byte = true; /* a server that does not speak TLS is an error */
    int err = make_ssl(conn, client_get_context(client, &ref));
    mk_watched_ref_release(&ref);
    return err == 0 ? client_prepare(client, conn) : err;
}

/* ── the handshake ── */

static void free_ssl(struct tls_conn *conn)
{
    if (conn->ssl)
        conn->account->bytes -= SSL_BYTES;
    SSL_free(conn->ssl);
    conn->ssl = NULL;
}

/* Releases the worker, and with it the generation. */
static void release_generation(struct tls_conn *conn)
{
    struct mk_worker *worker = conn->worker;
    conn->worker = NULL;
    conn->generation = NULL;
    if (worker)
        mk_worker_put(worker);
}

/* Saves the subject of a verified client certificate, as RFC 4514 writes it. Returns 0, -EPROTO (too long) or -ENOMEM.
 */
static int save_client_subject(struct tls_conn *conn)
{
    assert(!conn->client);
    const X509 *client = SSL_get0_peer_certificate(conn->ssl);
    char *text;
    int err = 0;
    if (!client || SSL_get_verify_result(conn->ssl) != X509_V_OK)
        return 0;
    BIO *bio = BIO_new(BIO_s_mem());
    if (!bio || X509_NAME_print_ex(bio, X509_get_subject_name(client), 0, XN_FLAG_RFC2253) < 0)
        err = -ENOMEM;
    long len = err == 0 ? BIO_get_mem_data(bio, &text) : 0;
    if (len > SUBJECT_BYTES_MAX)
        err = -EPROTO;
    if (err == 0 && len > 0) {
        conn->client = mk_account_alloc(conn->account, (size_t)len);
        err = conn->client ? 0 : -ENOMEM;
    }
    if (conn->client) {
        memcpy(conn->client, text, (size_t)len);
        conn->client_len = (uint16_t)len;
    }
    BIO_free(bio);
    return err;
}

/* Saves what requests need; the connection does not need the generation any more. */
static int finish_handshake(struct tls_conn *conn)
{
    conn->established = true;
    conn->no_data_bytes = 0;
    conn->may_have_pending = true;
    if (conn->is_client) {
        client_sessions_keep(conn->ssl);
        return 0;
    }
    assert(conn->worker && conn->credentials); /* select_host() was called */
    SSL_set_client_CA_list(conn->ssl, NULL);   /* a copy, which nothing uses any more */
    int err = save_client_subject(conn);
    conn->shown = SSL_session_reused(conn->ssl) ? NULL : SSL_get_certificate(conn->ssl);
    tls_counters_add_handshake(conn);
    release_generation(conn);
    return err;
}

/* The client speaks plain HTTP: ends libssl's part, so that the request gets a response. */
static int serve_plaintext(struct tls_conn *conn)
{
    if (socket_bio_is_pending(conn))
        conn->write_buffer->len = 0;
    ERR_clear_error();
    conn->broken = false; /* the handshake failed because there was none */
    conn->established = true;
    tls_counters_add(TLS_COUNT_PLAINTEXT, conn->worker);
    free_ssl(conn);
    release_generation(conn);
    return 0;
}

/* With kTLS libssl reads the socket itself. Looks at the first byte. Returns 1 (HTTP), 0 (TLS) or -errno. */
static int peek_first_byte(struct tls_conn *conn)
{
    char first;
    ssize_t n = recv(conn->fd, &first, 1, MSG_PEEK);
    if (n <= 0)
        return n < 0 ? -errno : -EPIPE;
    conn->saw_first_byte = true;
    conn->plaintext = NULL;
    return socket_bio_is_http(first) ? 1 : 0;
}

/* Takes a step. Returns 0 (the handshake is done, or the client speaks plain HTTP), -EAGAIN, -EINPROGRESS or -errno. */
static int take_step(struct tls_conn *conn)
{
    assert(conn->ssl);
    if (conn->ktls && !conn->saw_first_byte) {
        int first = peek_first_byte(conn);
        if (first)
            return first < 0 ? first : serve_plaintext(conn);
    }
    socket_bio_claim(conn);
    conn->socket_empty = false;
    int result = SSL_do_handshake(conn->ssl), r = result == 1 ? 0 : tls_conn_error(conn);
    if (conn->plaintext)
        return serve_plaintext(conn);
    if (result == 1 && !conn->unsent)
        return finish_handshake(conn); /* the ticket is sent with the first response, or at the end of this turn */
    int pushed = socket_bio_flush(conn, 0);
    if (result != 1 && r == 0)
        return -EPIPE;         /* the client has closed the connection */
    if (r < 0 && r != -EAGAIN) /* drop input: close() with unread bytes sends a reset, which may overtake the alert */
        recv(conn->fd, conn->write_buffer->batch, sizeof(conn->write_buffer->batch), 0);
    if (pushed < 0 && (r == 0 || r == -EAGAIN)) /* bytes that were not sent get no reply */
        return pushed == -EAGAIN ? -EINPROGRESS : pushed;
    return r == 0 ? finish_handshake(conn) : r;
}

static int do_handshake(struct mk_io *io)
{
    struct tls_conn *conn = get_conn(io);
    if (conn->established)
        return 0;
    int r = take_step(conn);
    if (r < 0 && r != -EAGAIN && r != -EINPROGRESS && !conn->is_client)
        errors_report_handshake(conn, r);
    return r;
}

static struct mk_str get_protocol(const struct mk_io *io)
{
    const struct tls_conn *conn = get_conn(io);
    const unsigned char *name = NULL;
    unsigned len = 0;
    if (conn->ssl)
        SSL_get0_alpn_selected(conn->ssl, &name, &len);
    return mk_str((const char *)name, len);
}

static int get_tls_info(const struct mk_io *io, struct mk_tls_info *ret)
{
    const struct tls_conn *conn = get_conn(io);
    if (!conn->ssl)
        return -ENOENT;
    ret->version = mk_str_c(SSL_get_version(conn->ssl));
    ret->cipher = mk_str_c(SSL_CIPHER_standard_name(SSL_get_current_cipher(conn->ssl)));
    ret->server_name = mk_str(conn->name, conn->name_len);
    ret->client = mk_str(conn->client, conn->client_len);
    return 0;
}

/* ── shutdown and close ── */

static int flush_conn(struct mk_io *io)
{
    struct tls_conn *conn = get_conn(io);
    int r = conn->unsent || socket_bio_is_pending(conn) ? socket_bio_flush(conn, 0) : 0;
    if (r == 0 && conn->shutdown_pending) {
        conn->shutdown_pending = false;
        shutdown(conn->fd, SHUT_WR);
    }
    return r == 0 && conn->broken ? -EPROTO : r;
}

/* Sends close_notify after what is held. Returns 0, -EAGAIN (some of it is still held) or another -errno. */
static int send_close_notify(struct tls_conn *conn)
{
    if (!conn->ssl || conn->broken || !conn->established)
        return 0;
    socket_bio_claim(conn);
    if (!(SSL_get_shutdown(conn->ssl) & SSL_SENT_SHUTDOWN)) { /* a second SSL_shutdown() would read */
        SSL_shutdown(conn->ssl);
        ERR_clear_error();
    }
    return socket_bio_flush(conn, 0);
}

static void close_notify_conn(struct mk_io *io)
{
    send_close_notify(get_conn(io));
}

static int shutdown_conn(struct mk_io *io)
{
    struct tls_conn *conn = get_conn(io);
    if (send_close_notify(conn) == -EAGAIN) {
        conn->shutdown_pending = true;
        return 0;
    }
    return shutdown(conn->fd, SHUT_WR) < 0 ? -errno : 0;
}

static void close_conn(struct mk_io *io)
{
    struct tls_conn *conn = get_conn(io);
    if (conn) {
        assert(!conn->ssl || conn->account->bytes >= SSL_BYTES);
        struct mk_account *account = conn->account;
        free_ssl(conn);
        release_generation(conn);
        if (socket_bio_is_pending(conn))
            conn->write_buffer->len = 0;
        if (conn->write_buffer->owner == conn)
            conn->write_buffer->owner = NULL;
        socket_bio_free_unsent(conn);
        if (conn->plaintext)
            mk_account_free(account, conn->plaintext, conn->plaintext_len);
        if (conn->client)
            mk_account_free(account, conn->client, conn->client_len);
        credentials_put(conn->credentials);
        write_buffer_put(conn->write_buffer);
        mk_account_free(account, conn, sizeof(*conn));
    }
    close(io->fd);
}

static bool asks_certificate(const struct mk_host *host)
{
    const struct tls_generation *t = mk_generation_state(mk_host_generation(host), &mk_plugin_tls);
    const struct tls_host *tls_host = t ? tls_host_find(t, host, NULL) : NULL;
    return tls_host && tls_host->conf->client != TLS_CLIENT_OFF;
}

const struct mk_transport tls_transport = {
    .name = "tls",
    .open = open_conn,
    .handshake = do_handshake,
    .protocol = get_protocol,
    .tls_info = get_tls_info,
    .read = io_read,
    .write = io_write,
    .sendfile = io_send_file,
    .flush = flush_conn,
    .shutdown = shutdown_conn,
    .close_notify = close_notify_conn,
    .close = close_conn,
    .asks_certificate = asks_certificate,
    .client_open = client_open,
    .client_close = client_close,
    .connect = connect_conn,
    .describe_error = errors_describe_client,
};

const struct tls_conn *transport_conn_of(const struct mk_io *io)
{
    return io->transport == &tls_transport ? io->state : NULL;
}
