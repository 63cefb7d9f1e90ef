// SPDX-License-Identifier: Apache-2.0
#include "cheetah.h"

#include <monkey/base/arena.h>
#include <monkey/base/file.h>
#include <monkey/base/log_limit.h>
#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ROOT_PATH "/run/monkey-shell.sock"

enum { BACKLOG = 8, ACCEPTS_AT_ONCE = 8, RETRY_MS = 100 };

/* Returns whether the process before has passed a socket at this path on. */
static bool is_inherited(const char *path)
{
    int fd = mk_socket_take(path);
    if (fd < 0)
        return false;
    mk_socket_drop(fd);
    close(fd);
    return true;
}

/* After User the process is not root's any more, but it, or the one before an upgrade, may have been. */
static void print_default_path(const struct mk_generation *g, struct mk_buf *out)
{
    const char *dir = getenv("XDG_RUNTIME_DIR");
    struct mk_str own = mk_file_run_folder();
    if (own.len)
        mk_buf_addf(out, "%.*s/shell.sock", MK_STR_ARG(own));
    else if (geteuid() == 0 || mk_generation_has_dropped_root(g) || is_inherited(ROOT_PATH))
        mk_buf_addf(out, ROOT_PATH);
    else if (dir && dir[0] == '/')
        mk_buf_addf(out, "%s/monkey-shell.sock", dir);
    else
        mk_buf_addf(out, "/tmp/monkey-shell-%u.sock", geteuid());
}

bool endpoint_needs_root(const char *path)
{
    struct stat st;
    return strcmp(path, ROOT_PATH) == 0 && (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode));
}

const char *endpoint_default_path(struct endpoints *all, const struct mk_generation *g)
{
    if (!all->default_path[0]) {
        struct mk_buf out;
        mk_buf_init_fixed(&out, all->default_path, sizeof(all->default_path));
        print_default_path(g, &out);
        mk_buf_cstr(&out);
    }
    return all->default_path;
}

/* ── which process has the path ── */

static struct sockaddr_un make_address(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    assert(strlen(path) < sizeof(addr.sun_path));
    memcpy(addr.sun_path, path, strlen(path));
    return addr;
}

/* Returns the process that listens at the path; 0: none does. -errno: it cannot be known. */
static int find_owner(const char *path)
{
    struct sockaddr_un addr = make_address(path);
    struct ucred peer = {.pid = 0};
    socklen_t len = sizeof(peer);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int err = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ? errno : 0;
    if (err == 0 || err == EAGAIN) /* its queue is full: it lives */
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    close(fd);
    if (err == 0)
        return peer.pid > 0 ? peer.pid : INT_MAX;
    return err == ECONNREFUSED || err == ENOENT ? 0 : err == EAGAIN ? INT_MAX : -err;
}

/* Returns 0 if the path may be taken, or -errno with a sentence. */
static int check_path(const char *path, struct mk_buf *error)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(st.st_mode)) {
        mk_buf_addf(error, "%s exists, and is not a socket", path);
        return -EEXIST;
    }
    int pid = find_owner(path);
    if (pid == 0 || (pid < 0 && pid != -EACCES))
        return pid;
    if (pid > 0 && pid != INT_MAX && (kill(pid, 0) == 0 || errno == EPERM)) /* it has not forked since */
        mk_buf_addf(error, "another server (process %d) uses the socket %s: give one of them another Listen", pid,
                    path);
    else
        mk_buf_addf(error, "another server uses the socket %s: give one of them another Listen", path);
    return -EADDRINUSE;
}

/* Says that a socket cannot be made at a path. */
static int report_place(const char *path, int err, struct mk_buf *error)
{
    mk_buf_addf(error, "cannot listen at %s: %s", path, strerror(-err));
    return err;
}

int endpoint_check(const char *path, struct mk_buf *error)
{
    char folder[ENDPOINT_PATH_MAX + 1];
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        return 0;
    int err = check_path(path, error);
    if (err < 0)
        return error->len ? err : report_place(path, err, error);
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0'; /* that of the root stays */
    if (faccessat(AT_FDCWD, slash ? folder : ".", W_OK | X_OK, AT_EACCESS) < 0)
        return report_place(path, -errno, error);
    return 0;
}

/* ── opening ── */

/*
 * Binds a new socket to a path where nothing is, and listens. The entry gets the mode of the descriptor.
 * Returns the descriptor or -errno.
 */
static int bind_socket(const char *path)
{
    struct sockaddr_un addr = make_address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    if (listen(fd, BACKLOG) < 0) {
        int err = -errno;
        unlink(path);
        close(fd);
        return err;
    }
    return fd;
}

/* Binds a socket, in place of one whose process has died. Returns the descriptor or -errno; `error` may have a
 * sentence.
 */
static int bind_path(const char *path, struct mk_buf *error)
{
    int err = check_path(path, error);
    if (err == 0 && unlink(path) < 0 && errno != ENOENT)
        err = -errno;
    return err < 0 ? err : bind_socket(path);
}

/* Returns the descriptor or -errno; `error` may have a sentence. */
static int open_socket(struct endpoint *e, struct mk_buf *error)
{
    struct stat st = {.st_uid = geteuid()};
    int fd = mk_socket_take(e->path);
    bool is_new = fd == -ENOENT;
    if (is_new)
        fd = bind_path(e->path, error);
    int err = fd < 0 ? fd : is_new ? mk_socket_keep(fd) : 0;
    if (is_new && err == 0)
        mk_log_info("shell: shells connect at %s", e->path);
    if (err < 0 && fd >= 0)
        close(fd);
    if (err < 0)
        return err;
    lstat(e->path, &st); /* if the path is gone, there is nothing to be removed at the end */
    e->owner = st.st_uid;
    e->device = st.st_dev;
    e->inode = st.st_ino;
    return fd;
}

static void stop_watching(struct endpoint *e)
{
    if (e->watched && !e->paused)
        mk_event_del(e->loop, &e->event);
    if (e->paused)
        mk_timer_cancel(&e->retry);
    e->watched = e->paused = false;
}

/* An error that comes each time must not become a busy loop, since the socket stays readable. */
static void pause_accepting(struct endpoint *e, int err)
{
    uint64_t now_ms = mk_loop_now_ms(e->loop);
    if (now_ms >= e->warned_ms + MK_LOG_LIMIT_MS)
        mk_log_warn("shell: cannot accept shells at %s: %s; trying again every %d ms", e->path, strerror(err),
                    RETRY_MS);
    if (now_ms >= e->warned_ms + MK_LOG_LIMIT_MS)
        e->warned_ms = now_ms;
    mk_event_del(e->loop, &e->event);
    e->paused = true;
    mk_timer_arm(e->loop, &e->retry, RETRY_MS);
}

static void end_pause(struct mk_timer *timer)
{
    struct endpoint *e = MK_CONTAINER_OF(timer, struct endpoint, retry);
    e->paused = mk_event_add(e->loop, &e->event, EPOLLIN) < 0;
    if (e->paused)
        mk_timer_arm(e->loop, &e->retry, RETRY_MS);
}

static void accept_shells(struct mk_event *event, uint32_t events)
{
    struct endpoint *e = MK_CONTAINER_OF(event, struct endpoint, event);
    (void)events;
    if (mk_socket_is_handed_over()) { /* the next process accepts */
        stop_watching(e);
        return;
    }
    for (unsigned i = 0; i < ACCEPTS_AT_ONCE; i++) {
        int fd = accept4(event->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (fd < 0) {
            pause_accepting(e, errno);
            return;
        }
        e->on_accept(e, fd);
    }
}

static struct endpoint *find_endpoint(struct endpoints *all, const char *path)
{
    MK_LIST_EACH_ITEM(&all->all, struct endpoint, node, e) {
        if (!e->closed && strcmp(e->path, path) == 0)
            return e;
    }
    return NULL;
}

struct endpoint *endpoint_get(struct endpoints *all, const char *path, struct mk_buf *error)
{
    struct endpoint *e = find_endpoint(all, path);
    if (e) {
        e->refs++;
        return e;
    }
    e = mk_account_alloc(NULL, sizeof(*e));
    if (!e) {
        mk_buf_addf(error, "out of memory");
        return NULL;
    }
    *e = (struct endpoint){.refs = 1, .event = {accept_shells, -1}};
    mk_list_init(&e->node);
    mk_timer_init(&e->retry, end_pause);
    snprintf(e->path, sizeof(e->path), "%s", path);
    e->event.fd = open_socket(e, error);
    if (e->event.fd >= 0) {
        mk_list_add(&all->all, &e->node);
        return e;
    }
    if (!error->len)
        report_place(path, e->event.fd, error);
    mk_account_free(NULL, e, sizeof(*e));
    return NULL;
}

static void close_socket(struct endpoint *e)
{
    struct stat st;
    if (e->closed)
        return;
    e->closed = true;
    bool stays = mk_socket_drop(e->event.fd);
    if (!stays && lstat(e->path, &st) == 0 && st.st_dev == e->device && st.st_ino == e->inode)
        unlink(e->path);
    close(e->event.fd);
}

void endpoint_put(struct endpoint *e)
{
    if (--e->refs)
        return;
    assert(!e->watchers);
    mk_list_del(&e->node);
    close_socket(e);
    mk_account_free(NULL, e, sizeof(*e));
}

void endpoint_close(struct endpoint *e)
{
    stop_watching(e);
    close_socket(e);
}

int endpoint_watch(struct endpoint *e, struct mk_loop *loop)
{
    int err = e->watchers ? 0 : mk_event_add(loop, &e->event, 0);
    if (!e->watchers && err == 0) {
        e->watched = true;
        e->loop = loop;
    }
    e->watchers += err == 0;
    return err;
}

void endpoint_accept(struct endpoint *e)
{
    int err = e->watched && !e->paused ? mk_event_change(e->loop, &e->event, EPOLLIN) : 0;
    assert(err == 0);
    (void)err;
}

void endpoint_unwatch(struct endpoint *e, bool loop_lives)
{
    assert(e->watchers);
    e->watched &= loop_lives;
    if (!loop_lives && e->paused) {
        mk_timer_cancel(&e->retry);
        e->paused = false;
    }
    if (--e->watchers == 0)
        stop_watching(e);
}
