// SPDX-License-Identifier: Apache-2.0
/* Pipes (pipes.h). */
#include "pipes.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void close_pipe(struct mk__gw_pipe *pipe)
{
    struct mk__gw_pipes *all = pipe->owner;
    close(pipe->read_fd);
    close(pipe->write_fd);
    mk_account_free(all->account, pipe, sizeof(*pipe));
    all->n--;
}

static struct mk__gw_pipe *open_pipe(struct mk__gw_pipes *all)
{
    int fds[2];
    struct mk__gw_pipe *pipe = mk_account_alloc(all->account, sizeof(*pipe));
    if (!pipe)
        return NULL;
    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0) {
        mk_account_free(all->account, pipe, sizeof(*pipe));
        return NULL;
    }
    fcntl(fds[1], F_SETPIPE_SZ, MK__GW_PIPE_BYTES); /* a smaller one takes more calls */
    *pipe = (struct mk__gw_pipe){.owner = all, .read_fd = fds[0], .write_fd = fds[1]};
    all->n++;
    return pipe;
}

struct mk__gw_pipe *mk__gw_pipes_take(struct mk__gw_pipes *all)
{
    struct mk__gw_pipe *pipe = all->idle;
    all->idle = NULL;
    if (pipe || all->n >= MK__GW_PIPES_MAX)
        return pipe;
    return open_pipe(all);
}

void mk__gw_pipes_release(struct mk__gw_pipes *all)
{
    if (all->idle)
        close_pipe(all->idle);
    all->idle = NULL;
}

void mk__gw_pipe_put(struct mk__gw_pipe *pipe)
{
    if (pipe->bytes || pipe->owner->idle)
        close_pipe(pipe);
    else
        pipe->owner->idle = pipe;
}

static ssize_t get_error(void)
{
    return errno == EINVAL || errno == ENOSYS || errno == EPERM ? -EOPNOTSUPP : -errno;
}

ssize_t mk__gw_pipe_fill(struct mk__gw_pipe *pipe, int fd, size_t size)
{
    assert(pipe->bytes == 0);
    ssize_t n = splice(fd, NULL, pipe->write_fd, NULL, size < MK__GW_PIPE_BYTES ? size : MK__GW_PIPE_BYTES,
                       SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0)
        return get_error();
    pipe->bytes = (size_t)n;
    return n;
}

ssize_t mk__gw_pipe_drain(struct mk__gw_pipe *pipe, int fd, size_t size)
{
    size_t most = pipe->bytes < size ? pipe->bytes : size;
    ssize_t n = splice(pipe->read_fd, NULL, fd, NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0)
        return get_error();
    pipe->bytes -= (size_t)n;
    return n;
}

ssize_t mk__gw_pipe_read(struct mk__gw_pipe *pipe, char *to, size_t size)
{
    ssize_t n = read(pipe->read_fd, to, size);
    assert(n > 0 && (size_t)n <= pipe->bytes); /* there are bytes, and the call has no other way to fail */
    pipe->bytes -= (size_t)n;
    return n;
}
