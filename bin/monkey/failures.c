// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <monkey/base/str.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * ── what a starting process writes to its stderr ──
 *
 * Our end of the pipe does not block. Text beyond the limit is read and discarded, so that the process never blocks on
 * a full pipe.
 */

enum { READS_AT_ONCE = 16 };

bool output_is_needed(int log_fd)
{
    struct stat log, err;
    if (fstat(log_fd, &log) < 0 || fstat(STDERR_FILENO, &err) < 0)
        return false;
    return log.st_dev != err.st_dev || log.st_ino != err.st_ino;
}

void output_read(struct output *o)
{
    assert(o->len <= sizeof(o->text));
    char rest[OUTPUT_BYTES_MAX];
    for (int i = 0; i < READS_AT_ONCE && o->fd >= 0; i++) {
        size_t room = sizeof(o->text) - o->len;
        ssize_t n = read(o->fd, room ? o->text + o->len : rest, room ? room : sizeof(rest));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            output_close(o);
        else if (room)
            o->len += (size_t)n;
    }
}

void output_log(const struct output *o, enum mk_log_level level, pid_t pid)
{
    assert(pid > 0 && o->len <= sizeof(o->text));
    for (struct mk_str rest = mk_str(o->text, o->len); rest.len;) {
        struct mk_str line = mk_str_split(&rest, '\n');
        if (line.len)
            mk_log(level, "process %d: %.*s", pid, MK_STR_ARG(line));
    }
}

void output_close(struct output *o)
{
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
}

/* ── starts that fail ── */

enum { FAILURES_BEFORE_REFUSING = 3, CONNECTIONS_AT_ONCE = 256 };

static unsigned failures;
static struct output last_output;
static int last_status;

static void count_failure(void)
{
    failures++;
    if (failures == FAILURES_BEFORE_REFUSING)
        mk_log_error("supervisor: connections are closed until a server serves; SIGHUP starts one at once");
}

void failures_add_error(int err, int delay_ms)
{
    assert(err < 0);
    mk_log_error("supervisor: cannot start a server: %s; trying again in %d ms (failed starts: %u)", strerror(-err),
                 delay_ms, failures + 1);
    last_status = -1;
    count_failure();
}

void failures_add(const struct output *output, pid_t pid, int status, const char *what, int delay_ms)
{
    assert(pid > 0 && delay_ms > 0);
    bool same = failures > 0 && status == last_status && output->len == last_output.len &&
                memcmp(output->text, last_output.text, output->len) == 0;
    last_status = status;
    last_output = *output;
    if (!same)
        output_log(output, MK_LOG_ERROR, pid);
    mk_log_error("supervisor: process %d %s; another one starts in %d ms (failed starts: %u%s)", pid, what, delay_ms,
                 failures + 1, same ? ", for the same reason" : "");
    count_failure();
}

void failures_clear(void)
{
    failures = 0;
}

bool failures_must_refuse(void)
{
    return failures >= FAILURES_BEFORE_REFUSING;
}

/* A previous server may have made the socket blocking or set SO_LINGER, so both are set again here. */
static void close_pending(int listener)
{
    int flags = fcntl(listener, F_GETFL);
    if (flags < 0 || (!(flags & O_NONBLOCK) && fcntl(listener, F_SETFL, flags | O_NONBLOCK) < 0))
        return;
    for (int i = 0; i < CONNECTIONS_AT_ONCE; i++) {
        const struct linger none = {0};
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
            return;
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
        close(fd);
    }
}

void failures_close_pending(const struct ipc_sockets *sockets)
{
    for (unsigned i = 0; i < sockets->n; i++)
        close_pending(sockets->items[i].fd);
}
