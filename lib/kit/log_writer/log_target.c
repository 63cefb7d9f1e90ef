// SPDX-License-Identifier: Apache-2.0
/*
 * Opens, follows and writes logs (log_target.h). Only the writer's thread waits here. Lines that cannot be written stay
 * in the rings.
 */
#include "log_target.h"

#include <monkey/base/file.h>
#include <monkey/log.h>

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

pthread_mutex_t mk__log_lock = PTHREAD_MUTEX_INITIALIZER;

enum { IOVECS_MAX = 32, RETRY_MS = 500, CHECK_MS = 1000, LOST_LOG_MS = 10000, ROUNDS_MAX = 64 };

const char *mk__log_target_name(const struct mk_log_target *target)
{
    return target->dest.kind == MK_LOG_DEST_STDOUT   ? "stdout"
           : target->dest.kind == MK_LOG_DEST_STDERR ? "stderr"
                                                     : target->dest.path.p;
}

/* ── opening ── */

/*
 * Opens a standard stream again, so that O_NONBLOCK does not affect other processes that share it. If that is not
 * possible (a socket, no /proc), uses the shared one.
 */
static int open_std_stream(struct mk_log_target *target, int number)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", number);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0)
        return fd;
    target->is_own = false;
    fd = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return fd < 0 ? -errno : fd;
}

static int connect_syslog(const struct mk_log_target *target)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    assert(target->dest.path.len < sizeof(addr.sun_path));
    memcpy(addr.sun_path, target->dest.path.p, target->dest.path.len); /* shorter: mk_log_target_get() */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
        return fd;
    int err = -errno;
    close(fd);
    return err;
}

/* Creates a file with mode 0640 or stricter, follows links as <monkey/base/file.h> says, waits for no reader of a FIFO.
 */
static int open_file(const char *path, bool *ret_made)
{
    return mk_file_open_output(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, 0640, ret_made);
}

/* Opens the destination. Returns a descriptor, non-blocking if `is_own`, or -errno. */
static int open_dest(struct mk_log_target *target)
{
    target->is_own = true;
    switch (target->dest.kind) {
    case MK_LOG_DEST_STDOUT:
        return open_std_stream(target, STDOUT_FILENO);
    case MK_LOG_DEST_STDERR:
        return open_std_stream(target, STDERR_FILENO);
    case MK_LOG_DEST_SYSLOG:
        return connect_syslog(target);
    default:
        return open_file(target->dest.path.p, NULL);
    }
}

void mk__log_target_close(struct mk_log_target *target)
{
    if (target->fd >= 0)
        close(target->fd);
    target->fd = -1;
    target->open = false;
}

/* ── messages in the error log: each failure once, and its end ── */

static int report_failure(struct mk_log_target *target, int err, uint64_t now_ms)
{
    if (err != target->err)
        mk_log_error("%s: cannot write %s: %s; lines wait while there is room", target->type->name,
                     mk__log_target_name(target), mk_file_error(err));
    target->err = err;
    target->retry_ms = now_ms + RETRY_MS;
    target->stalled = true;
    return MK_DECLINED;
}

static uint64_t count_lost(struct mk_log_target *target)
{
    pthread_mutex_lock(&mk__log_lock);
    uint64_t n = target->lost_closed;
    MK_LIST_EACH_ITEM(&target->producers, struct mk_log_producer, node, producer)
        n += producer->lost;
    pthread_mutex_unlock(&mk__log_lock);
    return n;
}

void mk__log_target_report_lost(struct mk_log_target *target, uint64_t now_ms, bool at_once)
{
    uint64_t lost = count_lost(target);
    if (lost == target->lost_logged ||
        (!at_once && target->lost_logged_ms && now_ms - target->lost_logged_ms < LOST_LOG_MS))
        return;
    mk_log_warn("%s: %llu lines for %s were lost: it could not be written in time", target->type->name,
                (unsigned long long)(lost - target->lost_logged), mk__log_target_name(target));
    target->lost_logged = lost;
    target->lost_logged_ms = now_ms;
}

/* ── writing ── */

/* The lines for one system call: of all producers for a file, of one for a pipe or socket. */
struct log_batch {
    struct iovec vec[IOVECS_MAX];
    struct mk_log_producer *from[IOVECS_MAX];
    int n;
};

/* Returns the end of the whole lines in PIPE_BUF bytes: pipes do not mix these with lines of other processes. */
static size_t find_line_end(struct mk_str s)
{
    const char *end = s.len > PIPE_BUF ? memrchr(s.p, '\n', PIPE_BUF) : NULL;
    return s.len <= PIPE_BUF ? s.len : end ? (size_t)(end - s.p) + 1 : PIPE_BUF;
}

static void add_producer(struct log_batch *b, struct mk_log_producer *producer, const struct mk_log_target *target)
{
    struct mk_str data = mk__log_queue_peek(&producer->queue);
    if (!data.len || b->n == (target->is_regular ? IOVECS_MAX : 1))
        return;
    b->from[b->n] = producer;
    b->vec[b->n++] = (struct iovec){(char *)(uintptr_t)data.p, target->is_regular ? data.len : find_line_end(data)};
}

/* Begins with the producer whose line was written in part. */
static void gather_batch(struct mk_log_target *target, struct log_batch *b)
{
    b->n = 0;
    if (target->partial)
        add_producer(b, target->partial, target);
    pthread_mutex_lock(&mk__log_lock);
    MK_LIST_EACH_ITEM(&target->producers, struct mk_log_producer, node, producer)
        if (producer != target->partial)
            add_producer(b, producer, target);
    pthread_mutex_unlock(&mk__log_lock);
}

/* Drops the bytes that were written, and remembers whose line was written in part. */
static void consume_batch(struct mk_log_target *target, const struct log_batch *b, size_t bytes)
{
    for (int i = 0; i < b->n && bytes; i++) {
        const char *data = b->vec[i].iov_base;
        size_t n = bytes < b->vec[i].iov_len ? bytes : b->vec[i].iov_len;
        target->partial = data[n - 1] == '\n' ? NULL : b->from[i];
        mk__log_queue_drop(&b->from[i]->queue, n);
        bytes -= n;
    }
    assert(bytes == 0); /* no more was written than the batch has */
}

/* Writes the rest of such a line before the file is closed. */
static void finish_partial_line(struct mk_log_target *target)
{
    struct mk_log_producer *producer = target->partial;
    if (!producer)
        return;
    struct mk_str data = mk__log_queue_peek(&producer->queue);
    assert(data.len > 0);
    const char *end = memchr(data.p, '\n', data.len);
    size_t len = end ? (size_t)(end - data.p) + 1 : data.len;
    if (target->fd < 0 || write(target->fd, data.p, len) != (ssize_t)len)
        mk__log_producer_lose(producer, 1);
    mk__log_queue_drop(&producer->queue, len);
    target->partial = NULL;
}

/* Sends each line as a datagram. Returns the bytes sent, or -errno. */
static ssize_t send_lines(const struct mk_log_target *target, const struct log_batch *b)
{
    const char *data = b->vec->iov_base, *at = data, *end = data + b->vec->iov_len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = stop ? (size_t)(stop - at) : (size_t)(end - at);
        bool gone = send(target->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
        if (!gone && errno != EMSGSIZE)
            return at > data ? at - data : -errno;
        if (!gone)
            mk__log_producer_lose(b->from[0], 1); /* longer than the socket accepts */
        at += len + (stop != NULL);
    }
    return at - data;
}

static bool would_block(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    return poll(&one, 1, 0) >= 0 && !(one.revents & POLLOUT); /* refused, it says nothing */
}

static ssize_t write_batch(const struct mk_log_target *target, const struct log_batch *b)
{
    ssize_t n;
    if (target->dest.kind == MK_LOG_DEST_SYSLOG)
        return send_lines(target, b);
    if (target->is_socket)
        n = send(target->fd, b->vec[0].iov_base, b->vec[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (!target->is_own && would_block(target->fd))
        return -EAGAIN;
    else
        n = writev(target->fd, b->vec, b->n);
    return n < 0 ? -errno : n;
}

/* Errors of a socket (ENOTCONN ...) close it: the syslog daemon has stopped and may come back. */
static int handle_write_error(struct mk_log_target *target, int err, uint64_t now_ms)
{
    if (err == -EINTR)
        return MK_AGAIN;
    if (err == -EAGAIN) {
        target->blocked = true;
        target->stalled = true;
        return MK_DECLINED;
    }
    if (target->dest.kind == MK_LOG_DEST_SYSLOG || err == -EPIPE) {
        mk__log_target_close(target);
        finish_partial_line(target);
    }
    target->is_stale = false; /* the renamed file cannot be written either */
    return report_failure(target, err, now_ms);
}

/* Writes until the queues are empty. Returns as mk__log_target_write(). */
static int write_lines(struct mk_log_target *target, uint64_t now_ms)
{
    assert(target->fd >= 0);
    struct log_batch b;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        gather_batch(target, &b);
        if (!b.n) {
            target->stalled = false;
            return 0;
        }
        ssize_t n = write_batch(target, &b);
        int r = n < 0 ? handle_write_error(target, (int)n, now_ms) : 0;
        if (r == MK_DECLINED)
            return r;
        if (n <= 0)
            continue;
        consume_batch(target, &b, (size_t)n);
        if (!target->is_stale) {
            if (target->err)
                mk_log_info("%s: %s can be written again", target->type->name, mk__log_target_name(target));
            target->err = 0;
        }
    }
    return MK_AGAIN;
}

/* ── following the file ── */

static bool is_still_linked(const struct mk_log_target *target)
{
    struct stat st;
    return target->fd >= 0 && fstat(target->fd, &st) == 0 && st.st_nlink > 0;
}

/* Returns true if the file was removed or renamed. Checks for the latter every CHECK_MS only, unless `at_once`. */
static bool has_moved(struct mk_log_target *target, uint64_t now_ms, bool at_once)
{
    struct stat ours, there;
    if (target->dest.kind != MK_LOG_DEST_FILE || fstat(target->fd, &ours) < 0)
        return false;
    if (ours.st_nlink == 0)
        return true;
    if (!at_once && now_ms - target->checked_ms < CHECK_MS)
        return false;
    target->checked_ms = now_ms;
    return stat(target->dest.path.p, &there) < 0 || there.st_dev != ours.st_dev || there.st_ino != ours.st_ino;
}

static void use_descriptor(struct mk_log_target *target, int fd)
{
    struct stat st;
    bool known = fstat(fd, &st) == 0;
    target->fd = fd;
    target->open = true;
    target->is_stale = false;
    target->is_regular = known && S_ISREG(st.st_mode);
    target->is_socket = known && S_ISSOCK(st.st_mode);
}

/* Opens the log again. If that fails, a file that was renamed is used on, one that was removed is closed. */
static int open_log_target(struct mk_log_target *target, uint64_t now_ms)
{
    int fd = open_dest(target);
    if (fd < 0) {
        int r = report_failure(target, fd, now_ms);
        target->is_stale = is_still_linked(target);
        if (target->is_stale)
            return 0;
        finish_partial_line(target); /* its beginning is lost, too */
        mk__log_target_close(target);
        return r;
    }
    finish_partial_line(target);
    mk__log_target_close(target);
    use_descriptor(target, fd);
    target->checked_ms = now_ms;
    return 0;
}

int mk_log_target_open(struct mk_log_target *target, uint32_t uid, uint32_t gid)
{
    bool made;
    if (target->fd >= 0 || target->dest.kind != MK_LOG_DEST_FILE)
        return 0;
    int fd = open_file(target->dest.path.p, &made);
    if (fd < 0)
        return fd;
    if (made && fchown(fd, uid, gid) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    target->is_own = true;
    use_descriptor(target, fd);
    return 0;
}

int mk__log_target_write(struct mk_log_target *target, uint64_t now_ms, bool reopen)
{
    bool waits = now_ms < target->retry_ms && !reopen;
    int r = 0;
    target->blocked = false;
    if (waits && !(target->is_stale && is_still_linked(target)))
        return MK_DECLINED;
    if (target->fd >= 0 && reopen)
        r = write_lines(target, now_ms); /* lines from before belong in the old file */
    if (!waits && (target->fd < 0 || has_moved(target, now_ms, reopen)))
        r = open_log_target(target, now_ms);
    if (target->fd >= 0)
        r = write_lines(target, now_ms);
    return r;
}

static void discard_lines(struct mk_log_producer *producer)
{
    uint64_t lines = 0;
    for (struct mk_str data; (data = mk__log_queue_peek(&producer->queue)).len;
         mk__log_queue_drop(&producer->queue, data.len))
        for (size_t i = 0; i < data.len; i++)
            lines += data.p[i] == '\n';
    mk__log_producer_lose(producer, lines);
}

void mk__log_target_discard(struct mk_log_target *target)
{
    pthread_mutex_lock(&mk__log_lock);
    MK_LIST_EACH_ITEM(&target->producers, struct mk_log_producer, node, producer)
        discard_lines(producer);
    pthread_mutex_unlock(&mk__log_lock);
}
