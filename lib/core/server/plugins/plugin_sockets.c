// SPDX-License-Identifier: Apache-2.0
/*
 * Listening Unix sockets of plugins that outlive the process (<monkey/plugin.h>, <monkey/monkey.h>). A process may have
 * dropped the rights that opening them again would need.
 *
 *     process before ─► mk_socket_offer() ─► mk_socket_take(), or mk_socket_keep() of a new one ─► next process
 */
#include "server/plugins/plugin_sockets.h"

#include "net/listen.h"

#include <monkey/monkey.h>
#include <monkey/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SOCKETS_MAX = 16, OFFERS_MAX = 256 }; /* Unix sockets of Listen are offered, too */

struct plugin_listen_fd {
    int fd;
    bool taken; /* from the process before, which has it until this one serves */
};

/* Of the process, since its servers share plugins. */
static struct {
    pthread_mutex_t lock;
    int offered[OFFERS_MAX];
    struct plugin_listen_fd kept[SOCKETS_MAX];
    unsigned n_offered, n_kept;
    bool serves, handed_over;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the path of a Unix socket; empty: it has none. */
static struct sockaddr_un get_address(int fd)
{
    struct sockaddr_un addr = {.sun_family = AF_UNSPEC};
    socklen_t len = sizeof(addr);
    bool is_unix = getsockname(fd, (struct sockaddr *)&addr, &len) == 0 && addr.sun_family == AF_UNIX;
    return is_unix ? addr : (struct sockaddr_un){.sun_family = AF_UNSPEC};
}

/* Returns whether the socket listens, and was bound to the path. */
static bool is_at(int fd, const char *path)
{
    struct sockaddr_un addr = get_address(fd);
    int listens = 0;
    socklen_t len = sizeof(listens);
    return addr.sun_path[0] && strncmp(addr.sun_path, path, sizeof(addr.sun_path)) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens;
}

void mk_socket_offer(int fd)
{
    bool has_path = get_address(fd).sun_path[0] == '/';
    pthread_mutex_lock(&all.lock);
    if (has_path && all.n_offered < OFFERS_MAX)
        all.offered[all.n_offered++] = fd;
    pthread_mutex_unlock(&all.lock);
}

/* The lock is held, as for the next one. Returns 0 or -ENOSPC. */
static int add_kept(int fd, bool taken)
{
    if (all.n_kept == SOCKETS_MAX)
        return -ENOSPC;
    all.kept[all.n_kept++] = (struct plugin_listen_fd){fd, taken};
    return 0;
}

/* Returns a descriptor of the socket that was offered, or -errno. */
static int take_offered(int offered)
{
    int fd = fcntl(offered, F_DUPFD_CLOEXEC, 0);
    int err = fd < 0 ? -errno : add_kept(fd, true);
    if (err == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return err;
}

int mk_socket_take(const char *path)
{
    int found = -ENOENT;
    pthread_mutex_lock(&all.lock);
    for (unsigned i = 0; i < all.n_offered && found == -ENOENT; i++)
        if (is_at(all.offered[i], path) && mk__listen_is_at(all.offered[i], path))
            found = take_offered(all.offered[i]);
    pthread_mutex_unlock(&all.lock);
    return found;
}

int mk_socket_keep(int fd)
{
    pthread_mutex_lock(&all.lock);
    int err = add_kept(fd, false);
    pthread_mutex_unlock(&all.lock);
    return err;
}

bool mk_socket_drop(int fd)
{
    pthread_mutex_lock(&all.lock);
    bool stays = all.handed_over;
    unsigned i = 0;
    while (i < all.n_kept && all.kept[i].fd != fd)
        i++;
    if (i < all.n_kept) {
        stays |= all.kept[i].taken && !all.serves;
        all.kept[i] = all.kept[--all.n_kept];
    }
    pthread_mutex_unlock(&all.lock);
    return stays;
}

bool mk_socket_is_handed_over(void)
{
    pthread_mutex_lock(&all.lock);
    bool handed_over = all.handed_over;
    pthread_mutex_unlock(&all.lock);
    return handed_over;
}

/* ── for the server ── */

bool mk__plugin_sockets_have(int fd)
{
    struct sockaddr_un addr = get_address(fd);
    bool found = false;
    pthread_mutex_lock(&all.lock);
    for (unsigned i = 0; addr.sun_path[0] && i < all.n_kept; i++)
        found |= all.kept[i].taken && is_at(all.kept[i].fd, addr.sun_path);
    pthread_mutex_unlock(&all.lock);
    return found;
}

void mk__plugin_sockets_each(void (*fn)(int fd, bool own, void *ctx), void *ctx)
{
    pthread_mutex_lock(&all.lock);
    for (unsigned i = 0; i < all.n_kept; i++)
        fn(all.kept[i].fd, true, ctx);
    pthread_mutex_unlock(&all.lock);
}

void mk__plugin_sockets_serve(void)
{
    pthread_mutex_lock(&all.lock);
    all.serves = true;
    all.n_offered = 0; /* they are closed, or the server's: their numbers may be those of others by now */
    pthread_mutex_unlock(&all.lock);
}

void mk__plugin_sockets_hand_over(void)
{
    pthread_mutex_lock(&all.lock);
    all.handed_over = true;
    pthread_mutex_unlock(&all.lock);
}
