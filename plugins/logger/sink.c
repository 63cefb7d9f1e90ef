// SPDX-License-Identifier: Apache-2.0
/*
 * Opening, following and writing logs (sink.h). Whatever happens here, only the writer's thread waits for it, and
 * what does not go through stays in the rings until it does.
 */
#include "sink.h"

#include <monkey/file.h>
#include <monkey/log.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

pthread_mutex_t sinks_lock = PTHREAD_MUTEX_INITIALIZER;

enum { VECTORS_MAX = 32, RETRY_MS = 500, CHECK_MS = 1000, TELL_MS = 10000, ROUNDS_MAX = 64 };

const char *sink_name(const struct sink *s)
{
    return s->target.kind == TARGET_STDOUT ? "stdout" : s->target.kind == TARGET_STDERR ? "stderr" : s->target.path.p;
}

/* ── opening ── */

/*
 * A description of our own does not block, whoever shares the standard streams with us. Where it cannot be had (a
 * socket, no /proc) the one that is there must do.
 */
static int open_standard(struct sink *s, int number)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", number);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0)
        return fd;
    s->is_own = false;
    fd = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return fd < 0 ? -errno : fd;
}

static int connect_syslog(const struct sink *s)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    memcpy(addr.sun_path, s->target.path.p, s->target.path.len); /* shorter: target_parse() */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
        return fd;
    int err = -errno;
    close(fd);
    return err;
}

static int open_target(struct sink *s)
{
    s->is_own = true;
    switch (s->target.kind) {
    case TARGET_STDOUT:
        return open_standard(s, STDOUT_FILENO);
    case TARGET_STDERR:
        return open_standard(s, STDERR_FILENO);
    case TARGET_SYSLOG:
        return connect_syslog(s);
    default:
        return target_open_file(s->target.path.p);
    }
}

void sink_close(struct sink *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* ── what is told in the error log: each trouble once, and its end ── */

static int fail(struct sink *s, int err, uint64_t now_ms)
{
    if (err != s->err)
        mk_log_error("logger: cannot write %s: %s; lines wait as long as there is room for them", sink_name(s),
                     mk_file_error(err));
    s->err = err;
    s->retry_ms = now_ms + RETRY_MS;
    s->stuck = true;
    return MK_DECLINED;
}

static void succeed(struct sink *s)
{
    if (s->err)
        mk_log_info("logger: %s takes lines again", sink_name(s));
    s->err = 0;
}

static uint64_t count_lost(struct sink *s)
{
    struct mk_list *node, *save;
    pthread_mutex_lock(&sinks_lock);
    uint64_t n = s->lost_gone;
    MK_LIST_EACH(&s->channels, node, save)
        n += MK_OWNER(node, struct channel, node)->lost_total;
    pthread_mutex_unlock(&sinks_lock);
    return n;
}

void sink_tell_lost(struct sink *s, uint64_t now_ms, bool at_once)
{
    uint64_t lost = count_lost(s);
    if (lost == s->lost_told || (!at_once && s->told_ms && now_ms - s->told_ms < TELL_MS))
        return;
    mk_log_warn("logger: %llu lines for %s were lost: it did not take them in time",
                (unsigned long long)(lost - s->lost_told), sink_name(s));
    s->lost_told = lost;
    s->told_ms = now_ms;
}

/* ── writing ── */

struct batch {
    struct iovec vec[VECTORS_MAX];
    struct channel *from[VECTORS_MAX];
    int n;
};

/* What may go to others' pipes at once goes in whole lines, so that no one else's stand within ours. */
static size_t cut_at_line(struct mk_str s)
{
    const char *end = s.len > PIPE_BUF ? memrchr(s.p, '\n', PIPE_BUF) : NULL;
    return s.len <= PIPE_BUF ? s.len : end ? (size_t)(end - s.p) + 1 : PIPE_BUF;
}

static void add_channel(struct batch *b, struct channel *c, const struct sink *s)
{
    struct mk_str data = queue_peek(&c->queue);
    if (!data.len || b->n == (s->is_regular ? VECTORS_MAX : 1))
        return;
    b->from[b->n] = c;
    b->vec[b->n++] = (struct iovec){(char *)(uintptr_t)data.p, s->is_regular ? data.len : cut_at_line(data)};
}

/* A line that has begun comes first. */
static void gather(struct sink *s, struct batch *b)
{
    struct mk_list *n, *save;
    b->n = 0;
    if (s->torn)
        add_channel(b, s->torn, s);
    pthread_mutex_lock(&sinks_lock);
    MK_LIST_EACH(&s->channels, n, save)
        if (MK_OWNER(n, struct channel, node) != s->torn)
            add_channel(b, MK_OWNER(n, struct channel, node), s);
    pthread_mutex_unlock(&sinks_lock);
}

static void advance(struct sink *s, const struct batch *b, size_t bytes)
{
    for (int i = 0; i < b->n && bytes; i++) {
        const char *data = b->vec[i].iov_base;
        size_t n = bytes < b->vec[i].iov_len ? bytes : b->vec[i].iov_len;
        s->torn = data[n - 1] == '\n' ? NULL : b->from[i];
        queue_drop(&b->from[i]->queue, n);
        bytes -= n;
    }
}

/* The rest of a line that began in a file that is left. */
static void mend(struct sink *s)
{
    struct channel *c = s->torn;
    if (!c)
        return;
    struct mk_str data = queue_peek(&c->queue);
    const char *end = memchr(data.p, '\n', data.len);
    size_t len = end ? (size_t)(end - data.p) + 1 : data.len;
    if (s->fd < 0 || write(s->fd, data.p, len) != (ssize_t)len)
        c->lost_total++;
    queue_drop(&c->queue, len);
    s->torn = NULL;
}

/* One datagram for each line, as many as go. */
static ssize_t send_lines(const struct sink *s, const struct batch *b)
{
    const char *data = b->vec->iov_base, *at = data, *end = data + b->vec->iov_len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = stop ? (size_t)(stop - at) : (size_t)(end - at);
        bool gone = send(s->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
        if (!gone && errno != EMSGSIZE)
            return at > data ? at - data : -errno;
        if (!gone)
            b->from[0]->lost_total++; /* too long for whoever takes them */
        at += len + (stop != NULL);
    }
    return at - data;
}

static bool would_block(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    return poll(&one, 1, 0) != 1 || !(one.revents & POLLOUT);
}

static ssize_t write_batch(const struct sink *s, const struct batch *b)
{
    ssize_t n;
    if (s->target.kind == TARGET_SYSLOG)
        return send_lines(s, b);
    if (s->is_socket)
        n = send(s->fd, b->vec[0].iov_base, b->vec[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (!s->is_own && would_block(s->fd))
        return -EAGAIN;
    else
        n = writev(s->fd, b->vec, b->n);
    return n < 0 ? -errno : n;
}

/* ENOTCONN and the like: whoever took the datagrams has gone, and perhaps comes back. */
static int on_error(struct sink *s, int err, uint64_t now_ms)
{
    if (err == -EINTR)
        return MK_AGAIN;
    if (err == -EAGAIN) {
        s->blocked = true;
        s->stuck = true;
        return MK_DECLINED;
    }
    if (s->target.kind == TARGET_SYSLOG || err == -EPIPE) {
        sink_close(s);
        mend(s);
    }
    s->is_stale = false; /* it takes no lines either */
    return fail(s, err, now_ms);
}

static int write_all(struct sink *s, uint64_t now_ms)
{
    struct batch b;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        gather(s, &b);
        if (!b.n) {
            s->stuck = false;
            return 0;
        }
        ssize_t n = write_batch(s, &b);
        int r = n < 0 ? on_error(s, (int)n, now_ms) : 0;
        if (r == MK_DECLINED)
            return r;
        if (n <= 0)
            continue;
        advance(s, &b, (size_t)n);
        if (!s->is_stale)
            succeed(s);
    }
    return MK_AGAIN;
}

/* ── following the file ── */

static bool is_there_still(const struct sink *s)
{
    struct stat st;
    return s->fd >= 0 && fstat(s->fd, &st) == 0 && st.st_nlink > 0;
}

/* Renamed or removed? The first is asked now and then only. */
static bool has_moved(struct sink *s, uint64_t now_ms, bool at_once)
{
    struct stat ours, there;
    if (s->target.kind != TARGET_FILE || fstat(s->fd, &ours) < 0)
        return false;
    if (ours.st_nlink == 0)
        return true;
    if (!at_once && now_ms - s->checked_ms < CHECK_MS)
        return false;
    s->checked_ms = now_ms;
    return stat(s->target.path.p, &there) < 0 || there.st_dev != ours.st_dev || there.st_ino != ours.st_ino;
}

/* A new descriptor; without one a file that was renamed still takes lines, one that was removed does not. */
static int open_sink(struct sink *s, uint64_t now_ms)
{
    struct stat st;
    int fd = open_target(s);
    if (fd < 0) {
        int r = fail(s, fd, now_ms);
        s->is_stale = is_there_still(s);
        if (s->is_stale)
            return 0;
        mend(s); /* its beginning is gone, too */
        sink_close(s);
        return r;
    }
    mend(s);
    sink_close(s);
    s->fd = fd;
    s->is_stale = false;
    bool known = fstat(fd, &st) == 0;
    s->is_regular = known && S_ISREG(st.st_mode);
    s->is_socket = known && S_ISSOCK(st.st_mode);
    s->checked_ms = now_ms;
    return 0;
}

int sink_serve(struct sink *s, uint64_t now_ms, bool reopen)
{
    bool waits = now_ms < s->retry_ms && !reopen;
    int r = 0;
    s->blocked = false;
    if (waits && !(s->is_stale && is_there_still(s)))
        return MK_DECLINED;
    if (s->fd >= 0 && reopen)
        r = write_all(s, now_ms); /* what came before belongs to the old one */
    if (!waits && (s->fd < 0 || has_moved(s, now_ms, reopen)))
        r = open_sink(s, now_ms);
    if (s->fd >= 0)
        r = write_all(s, now_ms);
    return r;
}

static void empty(struct channel *c)
{
    for (struct mk_str data; (data = queue_peek(&c->queue)).len; queue_drop(&c->queue, data.len))
        for (size_t i = 0; i < data.len; i++)
            c->lost_total += data.p[i] == '\n';
}

void sink_give_up(struct sink *s)
{
    struct mk_list *n, *save;
    pthread_mutex_lock(&sinks_lock);
    MK_LIST_EACH(&s->channels, n, save)
        empty(MK_OWNER(n, struct channel, node));
    pthread_mutex_unlock(&sinks_lock);
}
