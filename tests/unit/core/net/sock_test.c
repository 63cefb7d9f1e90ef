// SPDX-License-Identifier: Apache-2.0
/* The byte stream over a transport that does what a script says. */
#include "testing.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "net/sock.h"

/* Each call of the transport takes the next number: a count, or -errno. */
static struct {
    ssize_t answers[8];
    unsigned n, at;
    char sent[256];
    size_t sent_len;
    unsigned flags, closed;
} script;

static ssize_t next_answer(void)
{
    assert_true(script.at < script.n);
    return script.answers[script.at++];
}

static ssize_t read_scripted(struct mk_io *io, void *to, size_t size)
{
    ssize_t n = next_answer();
    (void)io;
    assert_true(n <= (ssize_t)size);
    if (n > 0)
        memset(to, 'r', (size_t)n);
    return n;
}

static ssize_t write_scripted(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    ssize_t r = next_answer();
    (void)io;
    assert_int_equal(n, 1);
    script.flags = flags;
    if (r > (ssize_t)vec->iov_len)
        r = (ssize_t)vec->iov_len;
    if (r > 0) {
        memcpy(script.sent + script.sent_len, vec->iov_base, (size_t)r);
        script.sent_len += (size_t)r;
    }
    return r;
}

static ssize_t sendfile_scripted(struct mk_io *io, int file_fd, uint64_t offset, size_t size)
{
    (void)io;
    assert_int_equal(file_fd, 7);
    assert_int_equal(offset, 1ull << 33);
    assert_int_equal(size, 100);
    return next_answer();
}

static void close_scripted(struct mk_io *io)
{
    (void)io;
    script.closed++;
}

static const struct mk_transport scripted = {
    .name = "scripted",
    .read = read_scripted,
    .write = write_scripted,
    .sendfile = sendfile_scripted,
    .close = close_scripted,
};

static struct mk__sock open_stream(void)
{
    memset(&script, 0, sizeof(script));
    return (struct mk__sock){.io = {.transport = &scripted, .fd = 9}, .readable = true, .writable = true};
}

static void answer(ssize_t n)
{
    assert_true(script.n < COUNT(script.answers));
    script.answers[script.n++] = n;
}

#define ALL SSIZE_MAX

TEST(reads)
{
    struct mk__sock s = open_stream();
    char to[16];
    answer(16);
    assert_int_equal(mk__sock_read(&s, to, 16), 16);
    assert_true(s.readable); /* there may be more */
    answer(5);
    assert_int_equal(mk__sock_read(&s, to, 16), 5);
    assert_false(s.readable); /* a short count: drained */
    s.readable = true;
    s.input = MK__SOCK_INPUT_HUNG_UP;
    answer(5);
    assert_int_equal(mk__sock_read(&s, to, 16), 5);
    assert_true(s.readable); /* the end was announced, and will cause no edge any more */
    assert_false(mk__sock_has_ended(&s));
    answer(0);
    assert_int_equal(mk__sock_read(&s, to, 16), 0);
    assert_true(mk__sock_has_ended(&s));
    answer(-EAGAIN);
    assert_int_equal(mk__sock_read(&s, to, 16), -EAGAIN);
    assert_false(s.readable);
    answer(-ECONNRESET);
    assert_int_equal(mk__sock_read(&s, to, 16), -ECONNRESET);
}

/* A flush of `bytes`. */
static int flush(struct mk__sock *s, struct mk_account *account, const char *bytes, unsigned flags)
{
    char data[64];
    struct mk__scratch out = {.data = data, .len = strlen(bytes), .size = sizeof(data)};
    memcpy(data, bytes, out.len);
    int r = mk__sock_flush(s, &out, account, flags);
    assert_int_equal(out.len, 0);
    memset(data, '!', sizeof(data)); /* the scratch belongs to the next connection now */
    return r;
}

TEST(flushes)
{
    struct mk_account account = {0};
    struct mk__sock s = open_stream();
    assert_int_equal(flush(&s, &account, "", 0), 0); /* no call at all */
    answer(ALL);
    assert_int_equal(flush(&s, &account, "one", MK_IO_MORE), 0);
    assert_int_equal(script.flags, MK_IO_MORE);
    answer(1);
    answer(ALL);
    assert_int_equal(flush(&s, &account, "two", 0), 0); /* a short write is continued */
    assert_int_equal(script.flags, 0);
    assert_str_equal(mk_str(script.sent, script.sent_len), "onetwo");
    assert_int_equal(account.bytes, 0);
    mk__sock_close(&s, &account);
    assert_int_equal(script.closed, 1);
    assert_int_equal(s.io.fd, -1);
}

TEST(holds_what_is_not_taken)
{
    struct mk_account account = {0};
    struct mk__sock s = open_stream();
    answer(2);
    answer(-EAGAIN);
    assert_int_equal(flush(&s, &account, "abcdef", 0), MK_AGAIN);
    assert_false(s.writable);
    assert_int_equal(account.bytes, 4);                       /* right-sized */
    assert_int_equal(flush(&s, &account, "gh", 0), MK_AGAIN); /* without asking again */
    assert_int_equal(account.bytes, 6);
    assert_int_equal(flush(&s, &account, "", 0), MK_AGAIN);
    s.writable = true;
    answer(3);
    answer(-EAGAIN);
    assert_int_equal(flush(&s, &account, "i", 0), MK_AGAIN);
    assert_int_equal(account.bytes, 4);
    s.writable = true;
    answer(ALL);
    answer(ALL);
    assert_int_equal(flush(&s, &account, "jk", 0), 0);
    assert_str_equal(mk_str(script.sent, script.sent_len), "abcdefghijk");
    assert_int_equal(account.bytes, 0);
    assert_int_equal(script.at, script.n);
    mk__sock_close(&s, &account);
}

TEST(errors_of_writing)
{
    struct mk_account account = {0};
    struct mk__sock s = open_stream();
    answer(-EPIPE);
    assert_int_equal(flush(&s, &account, "abc", 0), -EPIPE);
    answer(-EAGAIN);
    assert_int_equal(flush(&s, &account, "abc", 0), MK_AGAIN);
    s.writable = true;
    answer(-ECONNRESET);
    assert_int_equal(flush(&s, &account, "d", 0), -ECONNRESET);
    mk__sock_close(&s, &account);
    assert_int_equal(account.bytes, 0);
}

TEST(no_memory_to_hold)
{
    struct mk_account account = {.bytes_max = 4};
    struct mk__sock s = open_stream();
    answer(-EAGAIN);
    assert_int_equal(flush(&s, &account, "12345", 0), -ENOMEM);
    assert_int_equal(flush(&s, &account, "1234", 0), MK_AGAIN);
    assert_int_equal(flush(&s, &account, "5", 0), -ENOMEM); /* what was held stays held */
    assert_int_equal(account.bytes, 4);
    mk__sock_close(&s, &account);
    assert_int_equal(account.bytes, 0);
}

TEST(sendfile)
{
    struct mk__sock s = open_stream();
    answer(60);
    assert_int_equal(mk__sock_sendfile(&s, 7, 1ull << 33, 100), 60);
    assert_true(s.writable);
    answer(-EAGAIN);
    assert_int_equal(mk__sock_sendfile(&s, 7, 1ull << 33, 100), -EAGAIN);
    assert_false(s.writable);
    answer(0);
    assert_int_equal(mk__sock_sendfile(&s, 7, 1ull << 33, 100), 0);
    answer(-EIO);
    assert_int_equal(mk__sock_sendfile(&s, 7, 1ull << 33, 100), -EIO);
}

/* ── corks ── */

static int is_corked(const struct mk__sock *s)
{
    int value = -1;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(s->io.fd, IPPROTO_TCP, TCP_CORK, &value, &len), 0);
    return value;
}

static struct mk__sock open_socket(int family)
{
    struct mk__sock s = open_stream();
    s.io.fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s.io.fd >= 0);
    return s;
}

TEST(corks)
{
    struct mk__sock s = open_socket(AF_INET);
    assert_int_equal(setsockopt(s.io.fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
    mk__sock_set_cork(&s, false); /* it has none */
    assert_false(is_corked(&s));
    for (int i = 0; i < 2; i++) {
        mk__sock_set_cork(&s, true);
        mk__sock_set_cork(&s, true);
        assert_true(is_corked(&s));
        mk__sock_set_cork(&s, false);
        assert_false(is_corked(&s));
    }
    close(s.io.fd);
}

/* A socket that paces, where the system has one, and one that is no TCP. */
TEST(no_corks)
{
    struct mk__sock s = open_socket(AF_INET);
    if (setsockopt(s.io.fd, IPPROTO_TCP, TCP_CONGESTION, "bbr", 3) == 0) {
        mk__sock_set_cork(&s, true);
        assert_false(is_corked(&s));
        assert_int_equal(s.cork, MK__SOCK_CORK_NEVER);
    }
    close(s.io.fd);
    s = open_socket(AF_UNIX);
    mk__sock_set_cork(&s, true);
    assert_int_equal(s.cork, MK__SOCK_CORK_NEVER);
    mk__sock_set_cork(&s, false);
    close(s.io.fd);
}
