// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a connection (session.h), from its handshake to its end. What is carried meanwhile is records.c's
 * business.
 */
#include "session.h"

#include "kernel.h"
#include "records.h"
#include "session_error.h"
#include "socket_bio.h"

#include <monkey/plugin.h>

#include <openssl/err.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_tls;

enum { SUBJECT_BYTES_MAX = 4096 };

/*
 * What libssl takes for a connection that is idle, about: it does not ask the worker's account, which must know all the
 * same how full it is.
 */
enum { LIBRARY_BYTES = 14 * 1024 };

static struct session *state_of(const struct mk_io *io)
{
    return io->state;
}

/*
 * What SSL_get_error() would say, without the thread's queue of errors: others may have left theirs there, and clearing
 * it before each call costs as much as a small record does.
 */
int session_error(struct session *s)
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

/* ── the beginning ── */

static int make_ssl(struct session *s, SSL_CTX *ctx)
{
    s->ssl = SSL_new(ctx);
    if (!s->ssl)
        return -ENOMEM;
    s->account->bytes += LIBRARY_BYTES;
    s->direct = kernel_option(true) & SSL_get_options(s->ssl);
    SSL_set_app_data(s->ssl, s);
    SSL_set_accept_state(s->ssl);
    if (s->direct)
        return SSL_set_fd(s->ssl, s->fd) == 1 ? 0 : -ENOMEM;
    BIO *bio = socket_bio_new(s);
    if (!bio)
        return -ENOMEM;
    SSL_set_bio(s->ssl, bio, bio);
    return 0;
}

static int open_session(struct mk_io *io, struct mk_worker *worker)
{
    struct mk_account *account = mk_worker_account(worker);
    struct tls_generation *t = mk_generation_state(mk_worker_generation(worker), &mk_plugin_tls);
    struct site *site = site_of_name(t, MK_STR(""));
    struct session *s = mk_account_alloc(account, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct session){.worker = mk_worker_get(worker),
                          .generation = t,
                          .account = account,
                          .loop = mk_worker_loop(worker),
                          .desk = desk_get(mk_worker_state(worker, &mk_plugin_tls)),
                          .fd = io->fd};
    io->state = s;
    if (account->bytes_max && account->bytes + LIBRARY_BYTES > account->bytes_max)
        return -ENOMEM;
    return make_ssl(s, site ? site->ctx : t->bare);
}

void session_set_host(struct session *s, struct site *site, struct mk_str name)
{
    s->site = site;
    memcpy(s->policy, site->policy, sizeof(s->policy));
    memcpy(s->name, name.p, name.len);
    s->name_len = (uint8_t)name.len;
}

struct tls_generation *session_generation(const struct session *s)
{
    return s->generation;
}

struct site *session_site(const struct session *s)
{
    return s->site;
}

bool session_covers(const struct session *s, struct mk_str name)
{
    bool covers = SSL_set_current_cert(s->ssl, SSL_CERT_SET_FIRST) == 1;
    do
        covers = covers && site_covers(SSL_get_certificate(s->ssl), name);
    while (covers && SSL_set_current_cert(s->ssl, SSL_CERT_SET_NEXT) == 1);
    return covers;
}

const struct session *session_of(const struct mk_io *io)
{
    return io->transport == &tls_transport ? io->state : NULL;
}

/* ── the handshake ── */

static void free_ssl(struct session *s)
{
    if (s->ssl)
        s->account->bytes -= LIBRARY_BYTES;
    SSL_free(s->ssl);
    s->ssl = NULL;
}

/* Nothing of the generation is needed any more. */
static void leave_generation(struct session *s)
{
    struct mk_worker *worker = s->worker;
    s->worker = NULL;
    s->site = NULL;
    s->generation = NULL;
    if (worker)
        mk_worker_put(worker);
}

/* Whose certificate was verified, as RFC 4514 writes it. 0 or -ENOMEM. */
static int keep_client(struct session *s)
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

static int settle(struct session *s)
{
    int err = keep_client(s);
    s->barren = 0;
    s->primed = true;
    leave_generation(s);
    return err;
}

/* It speaks HTTP: libssl has nothing to say to that. */
static int go_on_in_the_clear(struct session *s)
{
    if (socket_bio_waits(s))
        s->desk->len = 0;
    ERR_clear_error();
    s->broken = false; /* what failed was a handshake that nobody asked for */
    free_ssl(s);
    leave_generation(s);
    return 0;
}

/* Where libssl has the socket, nobody sees the first byte pass by. */
static int look_at_first_byte(struct session *s)
{
    char first;
    ssize_t n = recv(s->fd, &first, 1, MSG_PEEK);
    if (n <= 0)
        return n < 0 ? -errno : -EPIPE;
    s->begun = true;
    s->early = NULL;
    return socket_bio_is_http(first) ? 1 : 0;
}

/* A close with unread bytes is a reset, which would overtake the alert. */
static void read_away(struct session *s)
{
    recv(s->fd, s->desk->batch, sizeof(s->desk->batch), 0);
}

static int shake(struct mk_io *io)
{
    struct session *s = state_of(io);
    if (!s->worker)
        return 0;
    if (s->direct && !s->begun) {
        int first = look_at_first_byte(s);
        if (first)
            return first < 0 ? first : go_on_in_the_clear(s);
    }
    socket_bio_claim(s);
    s->drained = false;
    int result = SSL_do_handshake(s->ssl), r = result == 1 ? 0 : session_error(s);
    if (s->early)
        return go_on_in_the_clear(s);
    if (result == 1 && !s->held)
        return settle(s); /* the ticket leaves with the first answer, or at the end of this turn */
    int pushed = socket_bio_push(s, 0);
    if (result != 1 && r == 0)
        return -EPIPE; /* it has gone */
    if (r < 0 && r != -EAGAIN)
        read_away(s);
    if (pushed < 0 && (r == 0 || r == -EAGAIN)) /* what cannot be sent has no reply to wait for */
        return pushed == -EAGAIN ? -EINPROGRESS : pushed;
    return r == 0 ? settle(s) : r;
}

static struct mk_str protocol(const struct mk_io *io)
{
    const struct session *s = state_of(io);
    const unsigned char *name = NULL;
    unsigned len = 0;
    if (s->ssl)
        SSL_get0_alpn_selected(s->ssl, &name, &len);
    return mk_str((const char *)name, len);
}

static int secured(const struct mk_io *io, struct mk_secured *ret)
{
    const struct session *s = state_of(io);
    if (!s->ssl)
        return -ENOENT;
    ret->version = mk_str_c(SSL_get_version(s->ssl));
    ret->cipher = mk_str_c(SSL_CIPHER_standard_name(SSL_get_current_cipher(s->ssl)));
    ret->server_name = mk_str(s->name, s->name_len);
    ret->client = mk_str(s->client, s->client_len);
    return 0;
}

/* ── the end ── */

static int flush(struct mk_io *io)
{
    struct session *s = state_of(io);
    int r = s->held || socket_bio_waits(s) ? socket_bio_push(s, 0) : 0;
    if (r == 0 && s->ending) {
        s->ending = false;
        shutdown(s->fd, SHUT_WR);
    }
    return r == 0 && s->broken ? -EPROTO : r;
}

/* close_notify, with all that waits. -EAGAIN: some of it waits longer. */
static int end_our_side(struct session *s)
{
    if (!s->ssl || s->broken || s->worker)
        return 0;
    socket_bio_claim(s);
    if (!(SSL_get_shutdown(s->ssl) & SSL_SENT_SHUTDOWN)) { /* a second call would read */
        SSL_shutdown(s->ssl);
        ERR_clear_error();
    }
    return socket_bio_push(s, 0);
}

static void say_goodbye(struct mk_io *io)
{
    end_our_side(state_of(io));
}

static int shutdown_session(struct mk_io *io)
{
    struct session *s = state_of(io);
    if (end_our_side(s) == -EAGAIN) {
        s->ending = true;
        return 0;
    }
    return shutdown(s->fd, SHUT_WR) < 0 ? -errno : 0;
}

static void close_session(struct mk_io *io)
{
    struct session *s = state_of(io);
    if (s) {
        struct mk_account *account = s->account;
        free_ssl(s);
        leave_generation(s);
        if (socket_bio_waits(s))
            s->desk->len = 0;
        if (s->desk->owner == s)
            s->desk->owner = NULL;
        socket_bio_drop(s);
        if (s->early)
            mk_account_free(account, s->early, s->early_len);
        if (s->client)
            mk_account_free(account, s->client, s->client_len);
        desk_put(s->desk);
        mk_account_free(account, s, sizeof(*s));
    }
    close(io->fd);
}

const struct mk_transport tls_transport = {
    .name = "tls",
    .open = open_session,
    .handshake = shake,
    .protocol = protocol,
    .secured = secured,
    .read = records_read,
    .write = records_write,
    .sendfile = records_send_file,
    .flush = flush,
    .shutdown = shutdown_session,
    .goodbye = say_goodbye,
    .close = close_session,
};
