// SPDX-License-Identifier: Apache-2.0
#include "shell.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 4 * 1024 * 1024, READ_BYTES = 64 * 1024, PATH_BYTES = 256 };

/* ── finding the server ── */

#define RUN_PATH "/run/monkey/shell.sock" /* only root, such as systemd, can make the folder */

enum place { SYSTEMD, RUN, OLD_RUN, SESSION, TEMPORARY };

/* Stores the path of a place; an empty one if it has none. */
static void print_place(enum place place, char *to, size_t size)
{
    const char *folder = getenv(place == SYSTEMD ? "RUNTIME_DIRECTORY" : "XDG_RUNTIME_DIR");
    bool has_folder = folder && folder[0] == '/';
    to[0] = '\0';
    if (place == TEMPORARY)
        snprintf(to, size, "/tmp/monkey-shell-%u.sock", geteuid());
    else if (place == RUN || place == OLD_RUN)
        snprintf(to, size, "%s", place == RUN ? RUN_PATH : "/run/monkey-shell.sock");
    else if (has_folder)
        snprintf(to, size, "%.*s/%s", (int)strcspn(folder, ":"), folder,
                 place == SYSTEMD ? "shell.sock" : "monkey-shell.sock");
}

static int connect_to(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    memcpy(addr.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0)
        return fd;
    int err = -errno;
    close(fd);
    return err;
}

static int report_failure(const char *path, int err)
{
    fprintf(stderr, "monkey shell: cannot connect to %s: %s\n", path, strerror(-err));
    if (err == -ENOENT)
        fprintf(stderr, "    Does a server run? -s SOCKET names the Listen of [CHEETAH] in its configuration.\n");
    if (err == -EPERM)
        fprintf(stderr, "    It belongs to a server of another user; -s SOCKET names it all the same.\n");
    if (err == -ECONNREFUSED)
        fprintf(stderr, "    The server that had this socket has ended.\n");
    return err;
}

/* A socket that was not named may be one that another user has put there. */
static int check_owner(int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && (peer.uid == 0 || peer.uid == geteuid()))
        return fd;
    close(fd);
    return -EPERM;
}

/* Only root can make the folders of these. */
static bool is_trusted(enum place place)
{
    return place == SYSTEMD || place == RUN;
}

/*
 * Connects to the first place that has a server. Returns the descriptor or -errno, with the path that is told: a socket
 * that cannot be used rather than one that is not there.
 */
static int connect_to_default(char *ret_path, size_t size)
{
    static const enum place places[][5] = {{SYSTEMD, SESSION, TEMPORARY, RUN, OLD_RUN},
                                           {SYSTEMD, RUN, OLD_RUN, TEMPORARY, SESSION}};
    int result = -ENOENT;
    for (unsigned i = 0; i < MK_COUNT_OF(places[0]); i++) {
        char path[PATH_BYTES];
        enum place place = places[geteuid() == 0][i];
        print_place(place, path, sizeof(path));
        int fd = path[0] ? connect_to(path) : -ENOENT;
        bool is_there = fd != -ENOENT && fd != -ENOTDIR;
        if (fd >= 0 || (path[0] && result == -ENOENT && (is_there || place == OLD_RUN)))
            snprintf(ret_path, size, "%s", path);
        if (fd >= 0)
            return is_trusted(place) ? fd : check_owner(fd);
        if (is_there && result == -ENOENT)
            result = fd;
    }
    return result;
}

int link_open(struct link *l, const char *path)
{
    const char *own = getenv("MONKEY_SHELL_SOCKET");
    *l = (struct link){.fd = -1};
    mk_buf_init(&l->in, LINE_BYTES_MAX);
    if (!path && own && own[0])
        path = own;
    if (path)
        snprintf(l->path, sizeof(l->path), "%s", path);
    int fd = path ? connect_to(path) : connect_to_default(l->path, sizeof(l->path));
    if (fd < 0)
        return report_failure(l->path, fd);
    l->fd = fd;
    return 0;
}

void link_close(struct link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    mk_buf_release(&l->in);
}

/* ── asking ── */

static int send_all(int fd, struct mk_str data)
{
    while (data.len) {
        ssize_t n = send(fd, data.p, data.len, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            data = mk_str(data.p + n, data.len - (size_t)n);
    }
    return 0;
}

/* Waits for bytes of the server. Returns 1, or 0: there is input at `wait_fd`; or -errno. */
static int wait_input(struct link *l, int wait_fd)
{
    struct pollfd fds[2] = {{.fd = l->fd, .events = POLLIN}, {.fd = wait_fd, .events = POLLIN}};
    int n;
    if (l->wait) {
        int err = l->wait(l, l->wait_ctx);
        return err < 0 ? err : 1;
    }
    do
        n = poll(fds, 2, -1);
    while (n < 0 && errno == EINTR); /* by a change of the window's size */
    if (n < 0)
        return -errno;
    return fds[0].revents ? 1 : 0;
}

static int read_more(struct link *l)
{
    if (mk_buf_reserve(&l->in, READ_BYTES) < 0)
        return -ENOBUFS;
    ssize_t n = recv(l->fd, l->in.data + l->in.len, READ_BYTES, 0);
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    l->in.len += (size_t)n;
    return n == 0 ? -ECONNRESET : 0;
}

struct answer {
    link_fn fn;
    void *ctx;
    struct mk_buf *error;
    bool ended, ok, stops;
};

/* Returns false if the line is no object. */
static bool take_line(struct answer *a, char *line, size_t len)
{
    struct object o;
    line[len] = '\0'; /* in place of the newline */
    if (!object_read(line, len, &o))
        return false;
    if (object_get(&o, "end")) {
        const char *ok = object_get(&o, "ok"), *error = object_get(&o, "error");
        a->ended = true;
        a->ok = ok && strcmp(ok, "true") == 0;
        mk_buf_adds(a->error, mk_str_c(error ? error : ""));
    } else if (!a->fn(&o, line, a->ctx)) {
        a->stops = true;
    }
    object_release(&o);
    return true;
}

static int take_lines(struct link *l, struct answer *a)
{
    size_t at = 0;
    char *end;
    while (!a->ended && at < l->in.len && (end = memchr(l->in.data + at, '\n', l->in.len - at))) {
        size_t len = (size_t)(end - l->in.data) - at;
        if (!take_line(a, l->in.data + at, len))
            return -EPROTO;
        at += len + 1;
    }
    if (at)
        mk_buf_drop(&l->in, at);
    return 0;
}

int link_ask(struct link *l, struct mk_str line, int wait_fd, link_fn fn, void *ctx, struct mk_buf *error)
{
    struct answer a = {.fn = fn, .ctx = ctx, .error = error};
    bool stopped = false;
    int err = send_all(l->fd, line);
    if (err == 0)
        err = send_all(l->fd, MK_STR("\n"));
    while (err == 0 && !a.ended) {
        int ready = wait_input(l, stopped ? -1 : wait_fd);
        bool stops = !stopped && (ready == 0 || a.stops);
        if (ready > 0)
            err = read_more(l);
        if (stops)
            send_all(l->fd, MK_STR("\n"));
        stopped |= stops;
        err = ready < 0 ? ready : err;
        err = err == 0 ? take_lines(l, &a) : err;
    }
    return err < 0 ? err : a.ok;
}

/* Not by <monkey/kit/json.h>, which replaces bytes that are no UTF-8: a path may have them. */
void link_add_words(struct mk_buf *out, char *const *words, int n)
{
    mk_buf_addc(out, '[');
    for (int i = 0; i < n; i++) {
        mk_buf_adds(out, i ? MK_STR(",\"") : MK_STR("\""));
        for (const unsigned char *p = (const unsigned char *)words[i]; *p; p++)
            mk_buf_addf(out, *p < 0x20 ? "\\u%04x" : *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
        mk_buf_addc(out, '"');
    }
    mk_buf_addc(out, ']');
}
