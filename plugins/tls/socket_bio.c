// SPDX-License-Identifier: Apache-2.0
/*
 * Sends and receives records between libssl and a socket (socket_bio.h).
 */
#include "socket_bio.h"

#include <errno.h>
#include <sys/socket.h>

enum {
    UNSENT_BYTES_MAX =
        WRITE_BUFFER_BATCH_BYTES + 64 * 1024, /* a batch, and what libssl sends by itself (alerts, KeyUpdates) */
    NO_DATA_BYTES_MAX = 256 * 1024,           /* without application data; the largest handshake is smaller */
    KEY_UPDATES_MAX =
        100, /* by the client: a key is good for 2^24 records, and changing it costs as much as many records */
};

static BIO_METHOD *bio_method;

/* ── sending ── */

bool socket_bio_is_pending(const struct tls_conn *s)
{
    return s->write_buffer->len && s->write_buffer->owner == s;
}

/* If another connection has left records in the batch, which its turn should have sent, sends them first. */
void socket_bio_claim(struct tls_conn *s)
{
    struct write_buffer *d = s->write_buffer;
    if (d->len && d->owner != s) {
        int r = socket_bio_flush(d->owner, 0);
        d->owner->broken |= r < 0 && r != -EAGAIN; /* records that were counted as written are lost */
    }
    d->owner = s;
}

void socket_bio_free_unsent(struct tls_conn *s)
{
    if (s->unsent)
        mk_account_free(s->account, s->unsent, s->unsent_len);
    s->unsent = NULL;
    s->unsent_len = s->unsent_pos = 0;
}

static int save_unsent(struct tls_conn *s, const char *data, size_t len)
{
    size_t before = s->unsent_len - s->unsent_pos;
    char *unsent = before + len <= UNSENT_BYTES_MAX ? mk_account_alloc(s->account, before + len) : NULL;
    if (!unsent)
        return -ENOMEM;
    if (before)
        memcpy(unsent, s->unsent + s->unsent_pos, before);
    memcpy(unsent + before, data, len);
    socket_bio_free_unsent(s);
    s->unsent = unsent;
    s->unsent_len = (uint32_t)(before + len);
    return -EAGAIN;
}

/* Sends bytes. Returns their count, 0 (the socket is full) or -errno. */
static ssize_t try_send(struct tls_conn *s, const char *data, size_t len, unsigned flags)
{
    ssize_t n = send(s->fd, data, len, MSG_NOSIGNAL | (flags & MK_IO_MORE ? MSG_MORE : 0));
    return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static int send_unsent(struct tls_conn *s)
{
    ssize_t n = s->unsent ? try_send(s, s->unsent + s->unsent_pos, s->unsent_len - s->unsent_pos, 0) : 0;
    if (n < 0)
        return (int)n;
    s->unsent_pos += (uint32_t)n;
    if (s->unsent_pos < s->unsent_len)
        return -EAGAIN;
    socket_bio_free_unsent(s);
    return 0;
}

int socket_bio_flush(struct tls_conn *s, unsigned flags)
{
    struct write_buffer *d = s->write_buffer;
    size_t len = socket_bio_is_pending(s) ? d->len : 0;
    int r = send_unsent(s);
    d->len -= len;
    if (!len || (r < 0 && r != -EAGAIN))
        return r;
    ssize_t n = r == 0 ? try_send(s, d->batch, len, flags) : 0;
    if (n < 0)
        return (int)n;
    return (size_t)n == len ? 0 : save_unsent(s, d->batch + n, len - (size_t)n);
}

static int append_batch(BIO *bio, const char *from, int size)
{
    struct tls_conn *s = BIO_get_data(bio);
    struct write_buffer *d = s->write_buffer;
    BIO_clear_retry_flags(bio);
    if ((size_t)size > sizeof(d->batch) - d->len) {
        int r = socket_bio_flush(s, MK_IO_MORE);
        if (r < 0 || (size_t)size > sizeof(d->batch)) {
            if (r == -EAGAIN)
                BIO_set_retry_write(bio);
            return -1;
        }
    }
    memcpy(d->batch + d->len, from, (size_t)size);
    d->len += (size_t)size;
    return size;
}

/* ── receiving ── */

bool socket_bio_is_http(char first)
{
    char c = mk_lower(first);
    return c >= 'a' && c <= 'z';
}

/* Keeps the first bytes of a client that speaks plain HTTP, for the request. */
static bool save_plaintext(struct tls_conn *s, const char *data, size_t len)
{
    s->saw_first_byte = true;
    if (!socket_bio_is_http(data[0]))
        return false;
    s->plaintext = mk_account_alloc(s->account, len);
    if (s->plaintext)
        memcpy(s->plaintext, data, len);
    s->plaintext_len = s->plaintext ? (uint32_t)len : 0;
    return s->plaintext;
}

static void count_key_updates(int sent, int version, int content, const void *message, size_t len, SSL *ssl, void *ctx)
{
    struct tls_conn *s = ctx;
    (void)version, (void)ssl;
    if (!sent && content == SSL3_RT_HANDSHAKE && len && *(const unsigned char *)message == SSL3_MT_KEY_UPDATE)
        s->key_updates++;
}

static int read_socket(BIO *bio, char *to, int size)
{
    struct tls_conn *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (s->no_data_bytes > NO_DATA_BYTES_MAX || s->key_updates > KEY_UPDATES_MAX)
        return -1; /* a client that sends no application data, to keep the server busy */
    if (s->socket_empty) {
        BIO_set_retry_read(bio);
        return -1;
    }
    ssize_t n = recv(s->fd, to, (size_t)size, 0);
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR)
            BIO_set_retry_read(bio);
        return -1;
    }
    s->peer_closed = n == 0;
    s->socket_empty = n < size;
    s->no_data_bytes += (uint32_t)n;
    return n && !s->saw_first_byte && save_plaintext(s, to, (size_t)n) ? -1 : (int)n;
}

static long control_bio(BIO *bio, int command, long number, void *pointer)
{
    const struct tls_conn *s = BIO_get_data(bio);
    (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH || (command == BIO_CTRL_EOF && s->peer_closed);
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

BIO *socket_bio_new(struct tls_conn *s)
{
    BIO *bio = BIO_new(bio_method);
    if (!bio)
        return NULL;
    SSL_set_msg_callback(s->ssl, count_key_updates);
    SSL_set_msg_callback_arg(s->ssl, s);
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    return bio;
}
