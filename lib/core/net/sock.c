// SPDX-License-Identifier: Apache-2.0
/*
 * Buffered output and readiness of a connection (net/sock.h). Knows no protocols and no timeouts.
 */
#include "net/sock.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>

MK_HOT ssize_t mk__sock_read(struct mk__sock *s, void *to, size_t size)
{
    assert(s->io.fd >= 0 && size);
    ssize_t n = s->io.transport->read(&s->io, to, size);
    if (n == -EAGAIN)
        s->readable = false;
    else if (n == 0)
        s->input = MK__SOCK_INPUT_ENDED;
    else if (n > 0 && (size_t)n < size && s->input == MK__SOCK_INPUT_OPEN)
        s->readable = s->io.has_end; /* the next byte, or the FIN, is a separate edge */
    return n;
}

/* Writes until everything is written or the socket is full. Returns the number of bytes written or -errno. */
static MK_HOT ssize_t write_all(struct mk__sock *s, char *data, size_t len, unsigned flags)
{
    size_t done = 0;
    while (done < len) {
        struct iovec vec = {.iov_base = data + done, .iov_len = len - done};
        ssize_t n = s->io.transport->write(&s->io, &vec, 1, flags);
        if (n == -EAGAIN) {
            s->writable = false;
            break;
        }
        if (n <= 0)
            return n < 0 ? n : -EIO; /* no bytes and no error: this would loop forever */
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static void drop_held(struct mk__sock *s, struct mk_account *account)
{
    assert(s->held_at <= s->held_len);
    if (s->held)
        mk_account_free(account, s->held, s->held_len);
    s->held = NULL;
    s->held_len = s->held_at = 0;
}

static int write_held(struct mk__sock *s, struct mk_account *account)
{
    ssize_t n = write_all(s, s->held + s->held_at, s->held_len - s->held_at, 0);
    if (n < 0)
        return (int)n;
    s->held_at += (uint32_t)n;
    if (s->held_at < s->held_len)
        return MK_AGAIN;
    drop_held(s, account);
    return 0;
}

/* Copies the unsent end of the scratch buffer after the bytes that are held already. Returns MK_AGAIN or -ENOMEM. */
static int hold_unsent(struct mk__sock *s, struct mk_account *account, const char *data, size_t len)
{
    assert(len);
    size_t before = s->held_len - s->held_at;
    char *held = mk_account_alloc(account, before + len);
    if (!held)
        return -ENOMEM;
    if (before)
        memcpy(held, s->held + s->held_at, before);
    memcpy(held + before, data, len);
    drop_held(s, account);
    s->held = held;
    s->held_len = (uint32_t)(before + len);
    return MK_AGAIN;
}

/* Writes what the transport itself holds. Returns 0, MK_AGAIN or -errno. */
static int flush_transport(struct mk__sock *s)
{
    const struct mk_transport *transport = s->io.transport;
    if (!transport->flush)
        return 0;
    int r = s->writable ? transport->flush(&s->io) : -EAGAIN;
    if (r == -EAGAIN)
        s->writable = false;
    return r == -EAGAIN ? MK_AGAIN : r;
}

MK_HOT int mk__sock_flush(struct mk__sock *s, struct mk__scratch *out, struct mk_account *account, unsigned flags)
{
    assert(s->io.fd >= 0);
    size_t len = out->len;
    out->len = 0;
    int r = MK_UNLIKELY(s->held) ? (s->writable ? write_held(s, account) : MK_AGAIN) : 0;
    if (r < 0)
        return r;
    if (len) {
        ssize_t n = r == 0 && s->writable ? write_all(s, out->data, len, flags) : 0;
        if (n < 0)
            return (int)n;
        if (MK_UNLIKELY((size_t)n < len))
            r = hold_unsent(s, account, out->data + n, len - (size_t)n);
    }
    return r == 0 && !(flags & MK_IO_MORE) ? flush_transport(s) : r;
}

ssize_t mk__sock_write(struct mk__sock *s, const void *from, size_t size)
{
    struct iovec vec = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
    if (s->held || !s->writable)
        return -EAGAIN;
    ssize_t n = s->io.transport->write(&s->io, &vec, 1, 0);
    if (n == -EAGAIN)
        s->writable = false;
    int r = n > 0 ? flush_transport(s) : 0;
    return r < 0 ? r : n;
}

ssize_t mk__sock_sendfile(struct mk__sock *s, int file_fd, uint64_t offset, size_t size)
{
    ssize_t n = s->io.transport->sendfile(&s->io, file_fd, offset, size);
    if (n == -EAGAIN)
        s->writable = false;
    return n;
}

/* With BBR, which sends by a clock, files of 1 MB took 2.2 times the CPU when the socket was corked. */
static MK_COLD enum mk__sock_cork get_cork(const struct mk__sock *s)
{
    char name[16] = "";
    socklen_t len = sizeof(name) - 1;
    bool is_tcp = getsockopt(s->io.fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0;
    return is_tcp && strncmp(name, "bbr", 3) != 0 ? MK__SOCK_CORK_OFF : MK__SOCK_CORK_NEVER;
}

MK_COLD void mk__sock_set_cork(struct mk__sock *s, bool on)
{
    int value = on;
    if (s->cork == MK__SOCK_CORK_UNKNOWN)
        s->cork = (uint8_t)get_cork(s);
    if (s->cork != (on ? MK__SOCK_CORK_OFF : MK__SOCK_CORK_ON))
        return;
    if (setsockopt(s->io.fd, IPPROTO_TCP, TCP_CORK, &value, sizeof(value)) == 0)
        s->cork = on ? MK__SOCK_CORK_ON : MK__SOCK_CORK_OFF;
}

MK_COLD void mk__sock_reset(struct mk__sock *s)
{
    static const struct linger now = {.l_onoff = 1};
    setsockopt(s->io.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

unsigned mk__sock_unsent(const struct mk__sock *s)
{
    int unsent = 0;
    return ioctl(s->io.fd, SIOCOUTQ, &unsent) < 0 ? 0 : (unsigned)unsent;
}

void mk__sock_close(struct mk__sock *s, struct mk_account *account)
{
    assert(s->io.fd >= 0);
    drop_held(s, account);
    s->io.transport->close(&s->io);
    s->io.fd = -1;
}
