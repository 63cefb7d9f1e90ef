// SPDX-License-Identifier: Apache-2.0
#include "../passwords.h"
#include "passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Cuts a line off, without its end. Returns false at the end of the text. */
static bool next_line(struct mk_str *rest, struct mk_str *ret)
{
    if (!rest->len)
        return false;
    *ret = mk_str_split(rest, '\n');
    return true;
}

/* Returns true for a line of that user; `ret_fields` gets what follows the name and its colon. */
static bool is_line_of(struct mk_str line, struct mk_str user, struct mk_str *ret_fields)
{
    if (line.len <= user.len || line.p[user.len] != ':' || !mk_str_starts(line, user))
        return false;
    *ret_fields = mk_str(line.p + user.len + 1, line.len - user.len - 1);
    if (ret_fields->len && ret_fields->p[ret_fields->len - 1] == '\r')
        ret_fields->len--;
    return true;
}

/* Cuts the hash off the fields of a line; what is left begins with a colon, or is empty. */
static struct mk_str split_hash(struct mk_str *fields)
{
    struct mk_str hash = mk_str_until(*fields, ":");
    *fields = mk_str_after(*fields, hash.len);
    return hash;
}

bool edit_find(struct mk_str text, struct mk_str user, struct mk_str *ret_hash)
{
    struct mk_str line, fields;
    while (next_line(&text, &line)) {
        if (!is_line_of(line, user, &fields))
            continue;
        *ret_hash = split_hash(&fields);
        return true;
    }
    return false;
}

static void add_line(struct mk_buf *out, struct mk_str user, struct mk_str hash, struct mk_str more)
{
    mk_buf_adds(out, user);
    mk_buf_addc(out, ':');
    mk_buf_adds(out, hash);
    mk_buf_adds(out, more);
    mk_buf_addc(out, '\n');
}

/* Copies the lines of others; the user's first line gets the hash, unless that is NULL. */
static bool edit_lines(struct mk_buf *out, struct mk_str text, struct mk_str user, const struct mk_str *hash)
{
    struct mk_str line, fields;
    bool found = false;
    while (next_line(&text, &line)) {
        if (!is_line_of(line, user, &fields)) {
            mk_buf_adds(out, line);
            mk_buf_addc(out, '\n');
            continue;
        }
        split_hash(&fields);
        if (hash && !found)
            add_line(out, user, *hash, fields);
        found = true;
    }
    return found;
}

bool edit_set(struct mk_buf *out, struct mk_str text, struct mk_str user, struct mk_str hash)
{
    bool found = edit_lines(out, text, user, &hash);
    if (!found)
        add_line(out, user, hash, MK_STR(""));
    return found;
}

bool edit_delete(struct mk_buf *out, struct mk_str text, struct mk_str user)
{
    return edit_lines(out, text, user, NULL);
}

enum { LOCK_STEP_MS = 50 };

/* ── paths ── */

/* Resolves a path whose last entry does not exist. Returns 0 or -errno. */
static int resolve_new(struct store *s, const char *path)
{
    char folder[PATH_MAX], whole[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct stat link;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EISDIR;
    if (lstat(path, &link) == 0)
        return -ENOLINK;
    int n = snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    if (n >= (int)sizeof(folder))
        return -ENAMETOOLONG;
    if (!realpath(folder, whole))
        return -errno;
    n = snprintf(s->path, sizeof(s->path), "%s/%s", strcmp(whole, "/") == 0 ? "" : whole, name);
    return n >= (int)sizeof(s->path) ? -ENAMETOOLONG : 0;
}

static int resolve_path(struct store *s, const char *path)
{
    if (realpath(path, s->path))
        return 0;
    return errno == ENOENT ? resolve_new(s, path) : -errno;
}

/* ── lock ── */

static int lock_folder(int dir)
{
    static const struct timespec step = {.tv_nsec = LOCK_STEP_MS * 1000000L};
    for (int left_ms = STORE_LOCK_SECONDS * 1000; left_ms > 0; left_ms -= LOCK_STEP_MS) {
        if (flock(dir, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        nanosleep(&step, NULL);
    }
    return -EAGAIN;
}

static int open_folder(struct store *s, bool change)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(s->path, '/');
    s->name = slash + 1;
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - s->path + 1), s->path);
    s->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir < 0)
        return -errno;
    return change ? lock_folder(s->dir) : 0;
}

/* ── reading ── */

static int read_text(struct store *s, int fd)
{
    char piece[16384];
    ssize_t n;
    if (fstat(fd, &s->st) < 0)
        return -errno;
    if (!S_ISREG(s->st.st_mode))
        return -EISDIR;
    while ((n = read(fd, piece, sizeof(piece))) > 0)
        mk_buf_add(&s->text, piece, (size_t)n);
    explicit_bzero(piece, sizeof(piece));
    if (n < 0)
        return -errno;
    return s->text.err == -ENOBUFS ? -EFBIG : s->text.err;
}

static int read_store(struct store *s)
{
    int fd = openat(s->dir, s->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    int err = read_text(s, fd);
    close(fd);
    s->exists = err == 0;
    return err;
}

int store_open(struct store *s, const char *path, bool change)
{
    memset(s, 0, sizeof(*s));
    s->dir = -1;
    mk_buf_init(&s->text, HTPASSWD_BYTES_MAX);
    int err = resolve_path(s, path);
    if (err == 0)
        err = open_folder(s, change);
    return err == 0 ? read_store(s) : err;
}

void store_close(struct store *s)
{
    if (s->text.data)
        explicit_bzero(s->text.data, s->text.len);
    mk_buf_release(&s->text);
    if (s->dir >= 0)
        close(s->dir); /* unlocks */
}

/* ── writing ── */

/* Opens a new file without a name where the file system can do that, else with one. Returns a descriptor or -errno. */
static int open_new(const struct store *s, const char *name, bool *ret_named)
{
    int fd = openat(s->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    *ret_named = fd < 0;
    if (fd >= 0)
        return fd;
    fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? -errno : fd;
}

static int write_text(int fd, struct mk_str text)
{
    while (text.len) {
        ssize_t n = write(fd, text.p, text.len);
        if (n < 0)
            return -errno;
        text = mk_str(text.p + n, text.len - (size_t)n);
    }
    return fsync(fd) < 0 ? -errno : 0;
}

/* Gives the new file owner, group and mode of the old one. */
static int keep_owner(const struct store *s, int fd)
{
    if (!s->exists)
        return 0;
    if ((s->st.st_uid != geteuid() || s->st.st_gid != getegid()) && fchown(fd, s->st.st_uid, s->st.st_gid) < 0)
        return -EPERM;
    return fchmod(fd, s->st.st_mode & 0777) < 0 ? -errno : 0;
}

static int give_name(const struct store *s, int fd, const char *name)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, link, s->dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int rename_new(const struct store *s, const char *name)
{
    if (renameat(s->dir, name, s->dir, s->name) < 0)
        return -errno;
    return fsync(s->dir) < 0 && errno != EINVAL ? -errno : 0;
}

void store_temporary_name(const struct store *s, char *to, size_t size)
{
    snprintf(to, size, ".%.200s.%d", s->name, (int)getpid());
}

int store_replace(struct store *s, struct mk_str text)
{
    char name[STORE_NAME_BYTES];
    bool named;
    store_temporary_name(s, name, sizeof(name));
    int fd = open_new(s, name, &named);
    if (fd < 0)
        return fd;
    int err = keep_owner(s, fd);
    err = err == 0 ? write_text(fd, text) : err;
    if (err == 0 && !named)
        err = give_name(s, fd, name);
    named = named || err == 0;
    err = err == 0 ? rename_new(s, name) : err;
    if (err < 0 && named)
        unlinkat(s->dir, name, 0);
    close(fd);
    return err;
}
