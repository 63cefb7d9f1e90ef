// SPDX-License-Identifier: Apache-2.0
/*
 * Names listening sockets in /proc/net/unix (net/announce.h).
 */
#include "net/announce.h"

#include <monkey/base/buf.h>

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BIND_TRIES = 8 };

static const char changing[] = "changing";

/* ── names ── */

/* Binds @monkey/PID/NUMBER/TEXT; another process may have the name. Returns the descriptor or -errno. */
static int open_name(const char *text)
{
    static _Atomic unsigned number;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = fd < 0 ? -errno : -EADDRINUSE;
    for (unsigned i = 0; fd >= 0 && i < BIND_TRIES && err == -EADDRINUSE; i++) {
        struct sockaddr_un addr = {.sun_family = AF_UNIX};
        int n = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "monkey/%d/%u/%s", getpid(),
                         atomic_fetch_add(&number, 1), text);
        socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
        bool fits = n < (int)sizeof(addr.sun_path) - 1;
        err = !fits ? -ENAMETOOLONG : bind(fd, (const struct sockaddr *)&addr, len) < 0 ? -errno : 0;
    }
    if (fd >= 0 && err < 0)
        close(fd);
    return err < 0 ? err : fd;
}

static void close_names(struct mk__announcement *a)
{
    for (unsigned i = 0; i < a->n; i++)
        close(a->fds[i]);
    a->n = 0;
}

/* Names the sockets that are pending. If that fails, none has a name: some of them would mislead. */
static void open_pending(struct mk__announcement *a)
{
    MK_BUF_ON_STACK(text, 128);
    for (unsigned i = 0; i < a->n_pending; i++)
        mk_buf_addf(&text, "%s%x", i ? "," : "", a->pending[i]);
    int fd = a->n_pending && !a->failed ? open_name(mk_buf_cstr(&text)) : -EINVAL;
    a->failed |= a->n_pending && fd < 0;
    a->n_pending = 0;
    if (fd >= 0)
        a->fds[a->n++] = fd;
    if (a->failed)
        close_names(a);
}

void mk__announce_begin(struct mk__announcement *a)
{
    int fd = a->changing ? a->changing - 1 : open_name(changing);
    if (fd < 0)
        close_names(a);
    else
        a->changing = fd + 1;
}

void mk__announce_clear(struct mk__announcement *a)
{
    close_names(a);
    a->n_pending = 0;
    a->failed = false;
}

void mk__announce_add(struct mk__announcement *a, int socket)
{
    struct stat st = {.st_ino = 0};
    a->failed |= fstat(socket, &st) < 0 || st.st_ino > UINT32_MAX || a->n >= MK__ANNOUNCE_NAMES_MAX;
    a->pending[a->n_pending++] = (unsigned)st.st_ino;
    if (a->n_pending == MK__ANNOUNCE_INODES)
        open_pending(a);
}

static void end_change(struct mk__announcement *a)
{
    if (a->changing)
        close(a->changing - 1);
    a->changing = 0;
}

void mk__announce_end(struct mk__announcement *a)
{
    open_pending(a);
    end_change(a);
}

void mk__announce_close(struct mk__announcement *a)
{
    mk__announce_clear(a);
    end_change(a);
}

/* ── reading them ── */

bool mk__announce_parse(const char *line, struct mk__announced *ret)
{
    const char *at = strchr(line, '@');
    int len = 0, more;
    *ret = (struct mk__announced){.pid = 0};
    if (!at || sscanf(at, "@monkey/%d/%*u/%n", &ret->pid, &len) != 1 || !len || ret->pid <= 0)
        return false;
    at += len;
    ret->changing = strncmp(at, changing, strlen(changing)) == 0;
    while (!ret->changing && ret->n < MK__ANNOUNCE_INODES && sscanf(at, "%lx%n", &ret->inodes[ret->n], &more) == 1) {
        ret->n++;
        at += more;
        at += *at == ',';
    }
    return ret->changing || ret->n;
}
