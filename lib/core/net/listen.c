// SPDX-License-Identifier: Apache-2.0
/*
 * Listening sockets (net/listen.h). Options that connections inherit are set here, which saves a system call per
 * connection.
 */
#include "net/listen.h"

#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* Returns a descriptor that is connected to the Unix socket of an address, or -errno. */
static int connect_to(const struct sockaddr *addr, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int err = fd < 0 || connect(fd, addr, len) < 0 ? -errno : 0;
    if (err == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return err;
}

/* Returns whether a path is a socket that no process listens to, which a crash has left behind. */
static bool is_stale_socket(const struct mk__addr *addr)
{
    struct stat st;
    if (lstat(addr->un.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false; /* because connect(2) returns ECONNREFUSED for other files, too */
    int fd = connect_to(&addr->sa, addr->len);
    if (fd >= 0)
        close(fd);
    return fd == -ECONNREFUSED;
}

/* The process that has called listen(2): a client sees that of the socket to which it has connected. */
static pid_t get_listening_process(int fd)
{
    struct ucred peer = {.pid = 0};
    socklen_t len = sizeof(peer);
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    return peer.pid;
}

/* Returns whether the socket at a path is `fd`: 1 or 0, or -errno of a connection to it. */
static int compare_sockets(int fd, const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    assert(strlen(path) < sizeof(addr.sun_path));
    memcpy(addr.sun_path, path, strlen(path));
    int client = connect_to((const struct sockaddr *)&addr, sizeof(addr));
    if (client < 0)
        return client;
    bool same = get_listening_process(client) == get_listening_process(fd);
    close(client);
    return same;
}

bool mk__listen_is_at(int fd, const char *path)
{
    int same = compare_sockets(fd, path);
    return same == 1 || same == -EAGAIN || same == -EACCES; /* its queue is full; or it is for other users */
}

void mk__listen_unlink(int fd, const char *path)
{
    if (compare_sockets(fd, path) != 0)
        mk__file_unlink_socket(path);
}

static int bind_once(int fd, struct mk__addr *addr)
{
    if (bind(fd, &addr->sa, addr->len) == 0)
        return 0;
    int err = -errno;
    if (err != -EADDRINUSE || addr->sa.sa_family != AF_UNIX || !is_stale_socket(addr))
        return err;
    mk__file_unlink_socket(addr->un.sun_path);
    return bind(fd, &addr->sa, addr->len) < 0 ? -errno : 0;
}

/* Checks the folders of a Unix socket's path, in which bind(2) follows all links. Returns 0 or -ELOOP. */
static int check_path(const struct mk__addr *addr)
{
    struct mk__file_entry entry;
    int err = addr->sa.sa_family == AF_UNIX ? mk__file_find_entry(addr->un.sun_path, false, &entry) : -EAFNOSUPPORT;
    if (err == 0)
        close(entry.folder);
    return err == -ELOOP ? err : 0; /* bind(2) reports the others */
}

/* ── rights of a Unix socket ── */

uint32_t mk__listen_default_mode(void)
{
    char line[128];
    unsigned mask = 022;
    FILE *file = fopen("/proc/self/status", "re"); /* umask(2) would change it for a moment */
    while (file && fgets(line, sizeof(line), file) && sscanf(line, "Umask: %o", &mask) != 1)
        ;
    if (file)
        fclose(file);
    unsigned readers = ~mask & 0444;
    return readers | readers >> 1;
}

/* Only its own entry: in a folder of another user it could be a name of another socket of root. */
static int check_entry(const struct mk__file_entry *entry, int fd, uint32_t owner)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISSOCK(st.st_mode))
        return -ENOTSOCK;
    return entry->safe || (st.st_nlink == 1 && st.st_uid == owner) ? 0 : -EMLINK;
}

static int change_entry(int fd, const struct mk__listen_rights *rights)
{
    char link[32];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (fchownat(fd, "", rights->user, rights->group, AT_EMPTY_PATH) < 0) /* -1 changes nothing */
        return -errno;
    return rights->mode != MK__LISTEN_DEFAULT && chmod(link, rights->mode) < 0 ? -errno : 0;
}

int mk__listen_set_rights(const char *path, const struct mk__listen_rights *rights, uint32_t owner)
{
    struct mk__file_entry entry;
    int err = mk__file_find_entry(path, false, &entry);
    if (err < 0)
        return err;
    int fd = openat(entry.folder, entry.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    err = fd < 0 ? -errno : check_entry(&entry, fd, owner);
    if (err == 0)
        err = change_entry(fd, rights);
    if (fd >= 0)
        close(fd);
    close(entry.folder);
    return err;
}

/* Binds a Unix socket whose entry has the rights before a connection is possible, and no more at any time. */
static int bind_unix(int fd, struct mk__addr *addr, const struct mk__listen_rights *wanted)
{
    struct mk__listen_rights rights = wanted ? *wanted : MK__LISTEN_DEFAULT_RIGHTS;
    bool by_default = rights.mode == MK__LISTEN_DEFAULT;
    if (by_default)
        rights.mode = mk__listen_default_mode();
    fchmod(fd, rights.mode); /* the entry gets that without the bits of the umask */
    int err = bind_once(fd, addr);
    if (err < 0)
        return err;
    err = mk__listen_set_rights(addr->un.sun_path, &rights, geteuid());
    if (err == 0 || (by_default && rights.user == MK__LISTEN_DEFAULT && rights.group == MK__LISTEN_DEFAULT))
        return 0;
    mk__file_unlink_socket(addr->un.sun_path);
    return err;
}

static int open_socket(struct mk__addr *addr, const struct mk__listen_options *options)
{
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;
    if (fd < 0)
        return -errno;
    if (addr->sa.sa_family != AF_UNIX) {
        err = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
        if (err == 0 && options->shared_port)
            err = set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    }
    if (err == 0 && addr->sa.sa_family == AF_INET6)
        err = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, !addr->any);
    if (err == 0)
        err = check_path(addr);
    if (err == 0)
        err = addr->sa.sa_family == AF_UNIX ? bind_unix(fd, addr, options->rights) : bind_once(fd, addr);
    if (err < 0) {
        close(fd);
        return err;
    }
    return fd;
}

int mk__listen_bind(struct mk__addr *addr, const struct mk__listen_options *options)
{
    assert(addr->len);
    int fd = open_socket(addr, options);
    if (addr->any && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)) {
        uint16_t port = mk__addr_port(addr);
        *addr = (struct mk__addr){.in.sin_family = AF_INET, .len = sizeof(addr->in)};
        mk__addr_set_port(addr, port);
        fd = open_socket(addr, options);
    }
    if (fd >= 0 && addr->sa.sa_family != AF_UNIX) {
        socklen_t len = sizeof(addr->in6);
        getsockname(fd, &addr->sa, &len);
    }
    return fd;
}

/* Limits the system memory that a slow client can use. A reload may change the limits for new connections. */
static void set_send_limits(int fd, const struct mk__listen_options *options)
{
    if (options->send_buffer)
        set_option(fd, SOL_SOCKET, SO_SNDBUF,
                   options->send_buffer / 2); /* the kernel doubles the value, for its own overhead */
    else
        set_option(fd, SOL_SOCKET, SO_BUF_LOCK, 0); /* since Linux 5.14; lets the size grow again after it was set */
    set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, options->not_sent_lowat);
}

int mk__listen_start(int fd, const struct mk__addr *addr, const struct mk__listen_options *options)
{
    assert(fd >= 0);
    if (addr->sa.sa_family != AF_UNIX) {
        set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1); /* lets other sockets with this option join from now on */
        set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        set_send_limits(fd, options);
        if (options->defer_seconds)
            set_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, options->defer_seconds);
        if (options->fast_open_queue)
            set_option(fd, IPPROTO_TCP, TCP_FASTOPEN, options->fast_open_queue);
    }
    return listen(fd, options->backlog) < 0 ? -errno : 0;
}

/* The kernel compares interfaces when it looks for the socket of a first packet, and none has this number. */
int mk__listen_retire(int fd)
{
    return set_option(fd, SOL_SOCKET, SO_BINDTOIFINDEX, INT_MAX);
}

int mk__listen_unretire(int fd)
{
    int bound = 0;
    socklen_t len = sizeof(bound);
    if (getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &bound, &len) < 0 || bound != INT_MAX)
        return 0;
    return set_option(fd, SOL_SOCKET, SO_BINDTOIFINDEX, 0);
}

bool mk__listen_has_fast_open(void)
{
    char text[16] = "";
    int fd = open("/proc/sys/net/ipv4/tcp_fastopen", O_RDONLY | O_CLOEXEC), value = 0;
    if (fd < 0)
        return false;
    if (read(fd, text, sizeof(text) - 1) > 0)
        sscanf(text, "%d", &value);
    close(fd);
    return value & 2;
}
