// SPDX-License-Identifier: Apache-2.0
/*
 * Listening sockets inherited at the start of the process: the protocol of sd_listen_fds(3).
 */
#include "launcher.h"
#include "exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST_FD = 3, FDS_MAX = 65536 };

static unsigned read_env_number(const char *name)
{
    uint64_t number = 0;
    const char *text = getenv(name);
    return text && mk_str_u64(mk_str_c(text), INT_MAX, &number) ? (unsigned)number : 0;
}

static void call_for_each(unsigned n, const char *names, void (*fn)(int fd, bool own, void *ctx), void *ctx)
{
    for (unsigned i = 0; i < n; i++) {
        size_t len = names ? strcspn(names, ":") : 0;
        fn(FIRST_FD + (int)i, len == sizeof(EXEC_FD_NAME) - 1 && strncmp(names, EXEC_FD_NAME, len) == 0, ctx);
        if (names)
            names += len + (names[len] == ':');
    }
}

void listen_fds_each(void (*fn)(int fd, bool own, void *ctx), void *ctx)
{
    unsigned n = read_env_number("LISTEN_FDS");
    if (n > 0 && n <= FDS_MAX && read_env_number("LISTEN_PID") == (unsigned)getpid())
        call_for_each(n, getenv("LISTEN_FDNAMES"), fn, ctx);
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDNAMES");
}

static void inherit_listener(int fd, bool own, void *ctx)
{
    int err = mk_server_inherit(ctx, fd, own);
    if (err == 0)
        return;
    mk_log_warn("inherited descriptor %d is no listening stream socket (%s): it is closed", fd, strerror(-err));
    close(fd);
}

void listen_fds_inherit(struct mk_server *server)
{
    listen_fds_each(inherit_listener, server);
}
