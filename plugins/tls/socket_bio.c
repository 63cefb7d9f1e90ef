// SPDX-License-Identifier: Apache-2.0
/*
 * The two ways between libssl and a socket (socket_bio.h).
 */
#include "socket_bio.h"

#include <errno.h>
#include <sys/socket.h>

enum {
    HELD_BYTES_MAX = DESK_BATCH_BYTES + 64 * 1024, /* a batch, and what libssl has to say of its own accord */
    BARREN_BYTES_MAX = 256 * 1024, /* without a byte for the application; the largest handshake is smaller */
    UPDATES_MAX = 100, /* of keys, by the client: each lasts for 2^24 records, and costs what many of them do */
};

static BIO_METHOD *method;

/* ── sending ── */

bool socket_bio_waits(const struct session *s)
{
    return s->desk->len && s->desk->owner == s;
}

/* Every turn of a connection ends with a flush or its end; if not, what another one has left does not wait for it. */
void socket_bio_claim(struct session *s)
{
    struct desk *d = s->desk;
    if (d->len && d->owner != s) {
        int r = socket_bio_push(d->owner, 0);
        d->owner->broken |= r < 0 && r != -EAGAIN; /* records are lost that count as written */
    }
    d->owner = s;
}

void socket_bio_drop(struct session *s)
{
    if (s->held)
        mk_account_free(s->account, s->held, s->held_len);
    s->held = NULL;
    s->held_len = s->held_at = 0;
}

static int hold(struct session *s, const char *data, size_t len)
{
    size_t before = s->held_len - s->held_at;
    char *held = before + len <= HELD_BYTES_MAX ? mk_account_alloc(s->account, before + len) : NULL;
    if (!held)
        return -ENOMEM;
    if (before)
        memcpy(held, s->held + s->held_at, before);
    memcpy(held + before, data, len);
    socket_bio_drop(s);
    s->held = held;
    s->held_len = (uint32_t)(before + len);
    return -EAGAIN;
}

/* The count, 0 when the socket takes nothing, -errno. */
static ssize_t send_some(struct session *s, const char *data, size_t len, unsigned flags)
{
    ssize_t n = send(s->fd, data, len, MSG_NOSIGNAL | (flags & MK_IO_MORE ? MSG_MORE : 0));
    return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static int send_held(struct session *s)
{
    ssize_t n = s->held ? send_some(s, s->held + s->held_at, s->held_len - s->held_at, 0) : 0;
    if (n < 0)
        return (int)n;
    s->held_at += (uint32_t)n;
    if (s->held_at < s->held_len)
        return -EAGAIN;
    socket_bio_drop(s);
    return 0;
}

int socket_bio_push(struct session *s, unsigned flags)
{
    struct desk *d = s->desk;
    size_t len = socket_bio_waits(s) ? d->len : 0;
    int r = send_held(s);
    d->len -= len;
    if (!len || (r < 0 && r != -EAGAIN))
        return r;
    ssize_t n = r == 0 ? send_some(s, d->batch, len, flags) : 0;
    if (n < 0)
        return (int)n;
    return (size_t)n == len ? 0 : hold(s, d->batch + n, len - (size_t)n);
}

static int write_batch(BIO *bio, const char *from, int size)
{
    struct session *s = BIO_get_data(bio);
    struct desk *d = s->desk;
    BIO_clear_retry_flags(bio);
    if ((size_t)size > sizeof(d->batch) - d->len) {
        int r = socket_bio_push(s, MK_IO_MORE);
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

/* What a client of HTTP has said is kept for the request. */
static bool keep_early(struct session *s, const char *data, size_t len)
{
    s->begun = true;
    if (!socket_bio_is_http(data[0]))
        return false;
    s->early = mk_account_alloc(s->account, len);
    if (s->early)
        memcpy(s->early, data, len);
    s->early_len = s->early ? (uint32_t)len : 0;
    return s->early;
}

static void count_updates(int sent, int version, int content, const void *message, size_t len, SSL *ssl, void *ctx)
{
    struct session *s = ctx;
    (void)version, (void)ssl;
    if (!sent && content == SSL3_RT_HANDSHAKE && len && *(const unsigned char *)message == SSL3_MT_KEY_UPDATE)
        s->updates++;
}

static int read_socket(BIO *bio, char *to, int size)
{
    struct session *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (s->barren > BARREN_BYTES_MAX || s->updates > UPDATES_MAX)
        return -1; /* it keeps us busy, and says nothing */
    if (s->drained) {
        BIO_set_retry_read(bio);
        return -1;
    }
    ssize_t n = recv(s->fd, to, (size_t)size, 0);
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR)
            BIO_set_retry_read(bio);
        return -1;
    }
    s->ended = n == 0;
    s->drained = n < size;
    s->barren += (uint32_t)n;
    return n && !s->begun && keep_early(s, to, (size_t)n) ? -1 : (int)n;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
    const struct session *s = BIO_get_data(bio);
    (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH || (command == BIO_CTRL_EOF && s->ended);
}

/* Once: connections may outlive the last generation, and need it then. */
int socket_bio_start(void)
{
    if (method)
        return 0;
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket and batch");
    if (!method || !BIO_meth_set_read(method, read_socket) || !BIO_meth_set_write(method, write_batch) ||
        !BIO_meth_set_ctrl(method, control))
        return -ENOMEM;
    return 0;
}

BIO *socket_bio_new(struct session *s)
{
    BIO *bio = BIO_new(method);
    if (!bio)
        return NULL;
    SSL_set_msg_callback(s->ssl, count_updates);
    SSL_set_msg_callback_arg(s->ssl, s);
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    return bio;
}
