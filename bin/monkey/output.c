// SPDX-License-Identifier: Apache-2.0
/*
 * The stderr of a starting process (output.h): a pipe that does not block at our end. Text beyond the limit is read and
 * discarded, so that the process never blocks on a full pipe.
 */
#include "output.h"

#include <monkey/base/str.h>

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool output_is_same(const struct output *a, const struct output *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

void output_close(struct output *o)
{
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
}
