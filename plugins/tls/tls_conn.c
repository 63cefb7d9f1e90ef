// SPDX-License-Identifier: Apache-2.0
/*
 * A connection (tls_conn.h): open, handshake, shutdown and close. io.c reads and writes.
 */
#include "tls_conn.h"

#include "ktls.h"
#include "io.h"
#include "tls_error.h"
#include "socket_bio.h"

#include <monkey/plugin.h>

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

/*
 * As SSL_get_error(), but without the thread's error queue: it may have errors of other connections, and clearing it
 * before each call costs as much as a small record.
 */
int tls_conn_error(struct tls_conn *s)
{
    bool reads = SSL_want_read(s->ssl) && BIO_should_retry(SSL_get_rbio(s->ssl));
    bool writes = SSL_want_write(s->ssl) && BIO_should_retry(SSL_get_wbio(s->ssl));
    if (reads || writes)
        return -EAGAIN;
    if (SSL_get_shutdown(s->ssl) & SSL_RECEIVED_SHUTDOWN)
        return 0;
    unsigned long code = ERR_peek_last_error();
    s->broken = true;
    if (code)
        mk_log_debug("connection %d: TLS: %s", s->fd, ERR_reason_error_string(code));
    ERR_clear_error();
    return -EPROTO;
}

/* ── open ── */

static int make_ssl(struct tls_conn *s, SSL_CTX *ctx)
{
    s->ssl = SSL_new(ctx);
    if (!s->ssl)
        return -ENOMEM;
    s->account->bytes += SSL_BYTES;
    s->ktls = ktls_option(true) & SSL_get_options(s->ssl);
    SSL_set_app_data(s->ssl, s);
    SSL_set_accept_state(s->ssl);
    if (s->ktls)
        return SSL_set_fd(s->ssl, s->fd) == 1 ? 0 : -ENOMEM;
    BIO *bio = socket_bio_new(s);
    if (!bio)
        return -ENOMEM;
    SSL_set_bio(s->ssl, bio, bio);
    return 0;
}

static int open_conn(struct mk_io *io, struct mk_worker *worker)
{
    struct mk_account *account = mk_worker_account(worker);
    struct tls_generation *t = mk_generation_state(mk_worker_generation(worker), &mk_plugin_tls);
    struct tls_host *tls_host = tls_host_by_name(t, MK_STR(""));
    struct tls_conn *s = mk_account_alloc(account, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct tls_conn){.worker = mk_worker_get(worker),
                           .generation = t,
                           .account = account,
                           .loop = mk_worker_loop(worker),
                           .write_buffer = write_buffer_get(mk_worker_state(worker, &mk_plugin_tls)),
                           .fd = io->fd};
    io->state = s;
    if (account->bytes_max && account->bytes + SSL_BYTES > account->bytes_max)
        return -ENOMEM;
    return make_ssl(s, tls_host ? tls_host->ctx : t->default_ctx);
}

void tls_conn_set_host(struct tls_conn *s, struct tls_host *tls_host, struct mk_str name)
{
    s->tls_host = tls_host;
    memcpy(s->policy, tls_host->policy, sizeof(s->policy));
    memcpy(s->name, name.p, name.len);
    s->name_len = (uint8_t)name.len;
}

struct tls_generation *tls_conn_generation(const struct tls_conn *s)
{
    return s->generation;
}

struct tls_host *tls_conn_host(const struct tls_conn *s)
{
    return s->tls_host;
}

bool tls_conn_covers(const struct tls_conn *s, struct mk_str name)
{
    bool covers = SSL_set_current_cert(s->ssl, SSL_CERT_SET_FIRST) == 1;
    do
        covers = covers && tls_host_covers(SSL_get_certificate(s->ssl), name);
    while (covers && SSL_set_current_cert(s->ssl, SSL_CERT_SET_NEXT) == 1);
    return covers;
}

const struct tls_conn *tls_conn_of(const struct mk_io *io)
{
    return io->transport == &tls_transport ? io->state : NULL;
}

/* ── the handshake ── */

static void free_ssl(struct tls_conn *s)
{
    if (s->ssl)
        s->account->bytes -= SSL_BYTES;
    SSL_free(s->ssl);
    s->ssl = NULL;
}

/* Releases the worker, and with it the generation. */
static void release_generation(struct tls_conn *s)
{
    struct mk_worker *worker = s->worker;
    s->worker = NULL;
    s->tls_host = NULL;
    s->generation = NULL;
    if (worker)
        mk_worker_put(worker);
}

/* Saves the subject of a verified client certificate, as RFC 4514 writes it. Returns 0, -EPROTO (too long) or -ENOMEM.
 */
static int save_client_subject(struct tls_conn *s)
{
    const X509 *client = SSL_get0_peer_certificate(s->ssl);
    char *text;
    int err = 0;
    if (!client || SSL_get_verify_result(s->ssl) != X509_V_OK)
        return 0;
    BIO *bio = BIO_new(BIO_s_mem());
    if (!bio || X509_NAME_print_ex(bio, X509_get_subject_name(client), 0, XN_FLAG_RFC2253) < 0)
        err = -ENOMEM;
    long len = err == 0 ? BIO_get_mem_data(bio, &text) : 0;
    if (len > SUBJECT_BYTES_MAX)
        err = -EPROTO;
    if (err == 0 && len > 0) {
        s->client = mk_account_alloc(s->account, (size_t)len);
        err = s->client ? 0 : -ENOMEM;
    }
    if (s->client) {
        memcpy(s->client, text, (size_t)len);
        s->client_len = (uint16_t)len;
    }
    BIO_free(bio);
    return err;
}

static int finish_handshake(struct tls_conn *s)
{
    int err = save_client_subject(s);
    s->no_data_bytes = 0;
    s->may_have_pending = true;
    release_generation(s);
    return err;
}

/* The client speaks plain HTTP: ends libssl's part, so that the request gets a response. */
static int serve_plaintext(struct tls_conn *s)
{
    if (socket_bio_is_pending(s))
        s->write_buffer->len = 0;
    ERR_clear_error();
    s->broken = false; /* the handshake failed because there was none */
    free_ssl(s);
    release_generation(s);
    return 0;
}

/* With kTLS libssl reads the socket itself. Looks at the first byte. Returns 1 (HTTP), 0 (TLS) or -errno. */
static int peek_first_byte(struct tls_conn *s)
{
    char first;
    ssize_t n = recv(s->fd, &first, 1, MSG_PEEK);
    if (n <= 0)
        return n < 0 ? -errno : -EPIPE;
    s->saw_first_byte = true;
    s->plaintext = NULL;
    return socket_bio_is_http(first) ? 1 : 0;
}

/* Closing a socket with unread bytes sends a reset, which may overtake the alert. */
static void discard_input(struct tls_conn *s)
{
    recv(s->fd, s->write_buffer->batch, sizeof(s->write_buffer->batch), 0);
}

static int do_handshake(struct mk_io *io)
{
    struct tls_conn *s = get_conn(io);
    if (!s->worker)
        return 0;
    if (s->ktls && !s->saw_first_byte) {
        int first = peek_first_byte(s);
        if (first)
            return first < 0 ? first : serve_plaintext(s);
    }
    socket_bio_claim(s);
    s->socket_empty = false;
    int result = SSL_do_handshake(s->ssl), r = result == 1 ? 0 : tls_conn_error(s);
    if (s->plaintext)
        return serve_plaintext(s);
    if (result == 1 && !s->unsent)
        return finish_handshake(s); /* the ticket is sent with the first response, or at the end of this turn */
    int pushed = socket_bio_flush(s, 0);
    if (result != 1 && r == 0)
        return -EPIPE; /* the client has closed the connection */
    if (r < 0 && r != -EAGAIN)
        discard_input(s);
    if (pushed < 0 && (r == 0 || r == -EAGAIN)) /* bytes that were not sent get no reply */
        return pushed == -EAGAIN ? -EINPROGRESS : pushed;
    return r == 0 ? finish_handshake(s) : r;
}

static struct mk_str get_protocol(const struct mk_io *io)
{
    const struct tls_conn *s = get_conn(io);
    const unsigned char *name = NULL;
    unsigned len = 0;
    if (s->ssl)
        SSL_get0_alpn_selected(s->ssl, &name, &len);
    return mk_str((const char *)name, len);
}

static int get_tls_info(const struct mk_io *io, struct mk_tls_info *ret)
{
    const struct tls_conn *s = get_conn(io);
    if (!s->ssl)
        return -ENOENT;
    ret->version = mk_str_c(SSL_get_version(s->ssl));
    ret->cipher = mk_str_c(SSL_CIPHER_standard_name(SSL_get_current_cipher(s->ssl)));
    ret->server_name = mk_str(s->name, s->name_len);
    ret->client = mk_str(s->client, s->client_len);
    return 0;
}

/* ── shutdown and close ── */

static int flush_conn(struct mk_io *io)
{
    struct tls_conn *s = get_conn(io);
    int r = s->unsent || socket_bio_is_pending(s) ? socket_bio_flush(s, 0) : 0;
    if (r == 0 && s->shutdown_pending) {
        s->shutdown_pending = false;
        shutdown(s->fd, SHUT_WR);
    }
    return r == 0 && s->broken ? -EPROTO : r;
}

/* Sends close_notify behind what is held. Returns 0, -EAGAIN (some of it is still held) or another -errno. */
static int send_close_notify(struct tls_conn *s)
{
    if (!s->ssl || s->broken || s->worker)
        return 0;
    socket_bio_claim(s);
    if (!(SSL_get_shutdown(s->ssl) & SSL_SENT_SHUTDOWN)) { /* a second SSL_shutdown() would read */
        SSL_shutdown(s->ssl);
        ERR_clear_error();
    }
    return socket_bio_flush(s, 0);
}

static void close_notify_conn(struct mk_io *io)
{
    send_close_notify(get_conn(io));
}

static int shutdown_conn(struct mk_io *io)
{
    struct tls_conn *s = get_conn(io);
    if (send_close_notify(s) == -EAGAIN) {
        s->shutdown_pending = true;
        return 0;
    }
    return shutdown(s->fd, SHUT_WR) < 0 ? -errno : 0;
}

static void close_conn(struct mk_io *io)
{
    struct tls_conn *s = get_conn(io);
    if (s) {
        struct mk_account *account = s->account;
        free_ssl(s);
        release_generation(s);
        if (socket_bio_is_pending(s))
            s->write_buffer->len = 0;
        if (s->write_buffer->owner == s)
            s->write_buffer->owner = NULL;
        socket_bio_free_unsent(s);
        if (s->plaintext)
            mk_account_free(account, s->plaintext, s->plaintext_len);
        if (s->client)
            mk_account_free(account, s->client, s->client_len);
        write_buffer_put(s->write_buffer);
        mk_account_free(account, s, sizeof(*s));
    }
    close(io->fd);
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
};
