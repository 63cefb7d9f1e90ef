// SPDX-License-Identifier: Apache-2.0
/*
 * Reads small files whole, expands file name patterns, and opens files for writing. Files that clients request are
 * opened elsewhere (plugins/static), without waiting for a disk.
 */
#include "base/file.h"

#include "base/path_walk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ── whole files (monkey/base/file.h) ── */

/* Reads until the end of the file, or as much as there is room for. Returns 0 or -errno. */
static int read_bytes(int fd, size_t size, struct mk_file_bytes *to)
{
    while (to->len < size) {
        ssize_t n = read(fd, to->data + to->len, size - to->len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        if (n > 0)
            to->len += (size_t)n;
    }
    to->data[to->len] = '\0';
    return 0;
}

/* ── paths below a folder ── */

static int call_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .resolve = resolve};
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

static struct {
    pthread_once_t once;
    int err; /* 0, or why openat2(2) is refused */
} openat2_probe = {.once = PTHREAD_ONCE_INIT};

/* Tries openat2(2) as it is used: a kernel before 5.12 has no RESOLVE_CACHED. */
static void probe_openat2(void)
{
    int fd = call_openat2(AT_FDCWD, "/", O_PATH | O_CLOEXEC, RESOLVE_CACHED);
    if (fd >= 0)
        close(fd);
    else if (fd != -EAGAIN && fd != -EMFILE && fd != -ENFILE && fd != -ENOMEM)
        openat2_probe.err = fd; /* ENOSYS, EPERM, EINVAL, or what a sandbox returns */
}

int mk_file_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    pthread_once(&openat2_probe.once, probe_openat2);
    return MK_UNLIKELY(openat2_probe.err) ? mk__path_walk_open(dir, path, flags, resolve)
                                          : call_openat2(dir, path, flags, resolve);
}

bool mk_file_explain_openat2(struct mk_buf *to)
{
    pthread_once(&openat2_probe.once, probe_openat2);
    if (!openat2_probe.err)
        return false;
    mk_buf_addf(to,
                "openat2(2) is refused (%s): files are opened one component of a path at a time and by disk threads, "
                "which is slower. Linux 5.12 has it, and sandboxes can permit it",
                strerror(-openat2_probe.err));
    return true;
}

int mk_file_read_open(int fd, size_t bytes_max, struct mk_arena *arena, struct mk_file_bytes *ret)
{
    assert(fd >= 0 && ret);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    if ((uint64_t)st.st_size > bytes_max)
        return -EFBIG;
    *ret = (struct mk_file_bytes){.data = mk_arena_alloc(arena, (size_t)st.st_size + 1), .mode = st.st_mode & 07777};
    int err = ret->data ? read_bytes(fd, (size_t)st.st_size, ret) : -ENOMEM;
    if (err < 0 && ret->data)
        explicit_bzero(ret->data, ret->len); /* it may be half a secret */
    return err;
}

int mk_file_read(const char *path, size_t bytes_max, struct mk_arena *arena, struct mk_file_bytes *ret)
{
    assert(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int err = mk_file_read_open(fd, bytes_max, arena, ret);
    close(fd);
    return err;
}

void mk_file_add_read_error(struct mk_buf *to, int err, size_t bytes_max)
{
    assert(err < 0);
    if (err == -EINVAL || err == -EISDIR)
        mk_buf_adds(to, MK_STR("is not a regular file"));
    else if (err == -ENODATA)
        mk_buf_adds(to, MK_STR("is empty"));
    else if (err == -EFBIG)
        mk_buf_addf(to, "has more than %zu bytes", bytes_max);
    else
        mk_buf_addf(to, "cannot be read: %s", strerror(-err));
}

bool mk_file_is_private(unsigned mode)
{
    return !(mode & (S_IWGRP | S_IXGRP | S_IRWXO));
}

void mk_file_add_mode_error(struct mk_buf *to, unsigned mode)
{
    mk_buf_addf(to,
                "is open to others: its mode is %03o, but only its owner may write it, and only its group read it too "
                "(chmod 600, or 640)",
                mode & 0777);
}

/* ── names ── */

bool mk__file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool mk__file_is_missing(const char *path)
{
    return access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool mk__file_is_glob(struct mk_str path)
{
    for (size_t i = 0; i < path.len; i++)
        if (path.p[i] == '*' || path.p[i] == '?' || path.p[i] == '[')
            return true;
    return false;
}

/* Writes a pattern that matches the path only, of at most twice its length. Returns where the next byte goes. */
static char *escape_glob(char *to, struct mk_str path)
{
    for (size_t i = 0; i < path.len; i++) {
        if (memchr("*?[\\", path.p[i], 4))
            *to++ = '\\';
        *to++ = path.p[i];
    }
    return to;
}

static int copy_names(const glob_t *found, struct mk_arena *arena, struct mk_str **ret_names, size_t *ret_n)
{
    struct mk_str *names = mk_arena_alloc(arena, (found->gl_pathc + 1) * sizeof(*names));
    size_t n = 0;

    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        struct mk_str name = mk_str_c(found->gl_pathv[i]);
        if (name.p[name.len - 1] == '/') /* GLOB_MARK: a directory */
            continue;
        if (!(names[n++] = mk_arena_dup(arena, name)).p)
            return -ENOMEM;
    }
    *ret_names = names;
    *ret_n = n;
    return 0;
}

/* A missing directory matches nothing; one that cannot be read is an error, which glob() leaves in errno. */
static int on_glob_error(const char *path, int err)
{
    (void)path;
    errno = err;
    return err != ENOENT && err != ENOTDIR;
}

int mk__file_glob(struct mk_str dir, struct mk_str pattern, unsigned flags, struct mk_arena *arena,
                  struct mk_str **ret_names, size_t *ret_n)
{
    char *whole = mk_arena_alloc(arena, 2 * dir.len + pattern.len + 1);
    glob_t found = {0};

    if (!whole)
        return -ENOMEM;
    *(char *)mempcpy(escape_glob(whole, dir), pattern.p, pattern.len) = '\0';
    int r = glob(whole, flags & MK__FILE_OR_FOLDER ? 0 : GLOB_MARK,
                 flags & MK__FILE_SKIP_UNREADABLE ? NULL : on_glob_error, &found);
    if (r == 0 || r == GLOB_NOMATCH)
        r = copy_names(&found, arena, ret_names, ret_n);
    else
        r = r == GLOB_NOSPACE ? -ENOMEM : -errno;
    globfree(&found);
    return r;
}

/* ── files for writing (monkey/base/file.h) ── */

enum { LINKS_MAX = 40, TRIES_MAX = 8 };

/* Resolves a path entry by entry. */
struct path_walk {
    struct mk__file_entry entry; /* the entry reached so far */
    unsigned links;
    char rest[PATH_MAX];
};

/* In a user namespace, the owner of "/" is taken for root, which may have no number there. */
static bool is_trusted(uid_t uid)
{
    struct stat top;
    return uid == 0 || uid == geteuid() || (stat("/", &top) == 0 && top.st_uid == uid);
}

/*
 * Returns whether no other user can have put the entry into the folder. If other users may create entries there, but
 * not remove those of root, the owner of the entry decides, unless the file has more names.
 */
static bool is_safe(const struct stat *folder, const struct stat *entry)
{
    mode_t others = folder->st_mode & (S_IWGRP | S_IWOTH);
    if (!is_trusted(folder->st_uid) || (others & S_IWOTH && !(folder->st_mode & S_ISVTX)))
        return false;
    return !others || (is_trusted(entry->st_uid) && (S_ISDIR(entry->st_mode) || entry->st_nlink == 1));
}

static int enter_folder(struct path_walk *w, int fd)
{
    if (fd < 0)
        return -errno;
    if (w->entry.folder >= 0)
        close(w->entry.folder);
    w->entry.folder = fd;
    return 0;
}

static int begin_walk(struct path_walk *w, const char *path)
{
    if (!path[0] || strlen(path) >= sizeof(w->rest))
        return path[0] ? -ENAMETOOLONG : -ENOENT;
    memcpy(w->rest, path, strlen(path) + 1);
    return enter_folder(w, open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static int take_name(struct path_walk *w)
{
    const char *name = w->rest + strspn(w->rest, "/");
    size_t len = strcspn(name, "/");
    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(w->entry.name, len ? name : ".", len ? len : 1);
    w->entry.name[len ? len : 1] = '\0';
    memmove(w->rest, name + len, strlen(name + len) + 1);
    return 0;
}

/* Links of procfs lead to open files, not to paths; only the kernel can follow them. */
static bool is_procfs(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Returns 0, 1 for a procfs link at the end of the path, or -errno. */
static int follow_link(struct path_walk *w, int link, const struct stat *st)
{
    char target[PATH_MAX];
    if (!w->entry.safe || !is_trusted(st->st_uid) || w->links++ >= LINKS_MAX)
        return -ELOOP;
    if (is_procfs(link) && !w->rest[0])
        return w->entry.magic = true;
    if (is_procfs(link))
        return enter_folder(w, openat(w->entry.folder, w->entry.name, O_PATH | O_DIRECTORY | O_CLOEXEC));
    ssize_t n = readlinkat(link, "", target, sizeof(target));
    size_t rest = strlen(w->rest);
    if (n <= 0 || (size_t)n + rest >= sizeof(w->rest))
        return n < 0 ? -errno : -ENAMETOOLONG;
    memmove(w->rest + n, w->rest, rest + 1);
    memcpy(w->rest, target, (size_t)n);
    return target[0] == '/' ? enter_folder(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
}

/* Returns 0, 1 at the end of the path, or -errno. */
static int step_walk(struct path_walk *w, bool follow_last)
{
    struct stat folder, entry;
    int err = take_name(w), result = 0;
    bool last = !w->rest[0];
    if (err < 0 || fstat(w->entry.folder, &folder) < 0)
        return err < 0 ? err : -errno;
    int fd = openat(w->entry.folder, w->entry.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && last) {
        w->entry.safe &= is_trusted(folder.st_uid);
        return 1;
    }
    if (fd < 0 || fstat(fd, &entry) < 0)
        result = -errno;
    w->entry.safe &= result == 0 && is_safe(&folder, &entry);
    if (result == 0 && S_ISLNK(entry.st_mode) && (follow_last || !last))
        result = follow_link(w, fd, &entry);
    else if (result == 0 && last)
        result = 1;
    else if (result == 0)
        return enter_folder(w, fd);
    if (fd >= 0)
        close(fd);
    return result;
}

int mk__file_find_entry(const char *path, bool follow_last, struct mk__file_entry *ret)
{
    assert(path && ret);
    struct path_walk w = {.entry = {.folder = -1, .safe = true}};
    int result = begin_walk(&w, path);
    while (result == 0)
        result = step_walk(&w, follow_last);
    if (result < 0 && w.entry.folder >= 0)
        close(w.entry.folder);
    *ret = w.entry;
    return result < 0 ? result : 0;
}

/*
 * Checks that the file has no further name that another user can have made. The name is looked up after the file was
 * opened, so that another name that is being removed still counts.
 * Returns 0, -EEXIST (the entry was replaced in the meantime), -EMLINK or -errno.
 */
static int check_links(const struct mk__file_entry *entry, int fd)
{
    struct stat file, name;
    if (entry->safe)
        return 0;
    if (fstat(fd, &file) < 0 || fstatat(entry->folder, entry->name, &name, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (file.st_dev != name.st_dev || file.st_ino != name.st_ino)
        return -EEXIST; /* replaced in the meantime */
    return name.st_nlink > 1 ? -EMLINK : 0;
}

static int open_entry(const struct mk__file_entry *entry, int flags, unsigned mode, bool *ret_made)
{
    assert(entry->folder >= 0 && entry->name[0]);
    int fd = openat(entry->folder, entry->name, (flags & ~O_CREAT) | O_CLOEXEC | (entry->magic ? 0 : O_NOFOLLOW)), err;
    if (fd < 0 && errno == ENOENT && flags & O_CREAT) {
        fd = openat(entry->folder, entry->name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        *ret_made = fd >= 0;
    }
    if (fd < 0)
        return -errno;
    if (entry->magic || *ret_made || (err = check_links(entry, fd)) == 0)
        return fd;
    close(fd);
    return err;
}

static const struct {
    const char *path;
    int number;
} std_streams[] = {{"/dev/stdout", 1}, {"/dev/stderr", 2},     {"/dev/fd/1", 1},
                   {"/dev/fd/2", 2},   {"/proc/self/fd/1", 1}, {"/proc/self/fd/2", 2}};

int mk_file_std_stream(const char *path)
{
    for (size_t i = 0; i < MK_COUNT_OF(std_streams); i++)
        if (strcmp(path, std_streams[i].path) == 0)
            return std_streams[i].number;
    return -1;
}

int mk_file_open_output(const char *path, int flags, unsigned mode, bool *ret_made)
{
    assert(path);
    struct mk__file_entry entry;
    bool made = false;
    int fd = -EEXIST;
    for (int i = 0; i < TRIES_MAX && fd == -EEXIST; i++) {
        fd = mk__file_find_entry(path, !(flags & O_NOFOLLOW), &entry);
        if (fd < 0)
            break;
        fd = open_entry(&entry, flags, mode, &made);
        close(entry.folder);
    }
    if (ret_made)
        *ret_made = made;
    int stream = fd < 0 ? mk_file_std_stream(path) : -1;
    if (stream < 0)
        return fd;
    fd = fcntl(stream, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return fd < 0 ? -errno : fd;
}

/* Returns whether the file is empty or holds just a number: any other file must not be overwritten. */
static bool is_pid_file(int fd)
{
    char text[32];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n < 0)
        return false;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return text[strspn(text, "0123456789")] == '\0';
}

int mk_file_open_pid(const char *path, int flags)
{
    int fd = mk_file_open_output(path, flags | O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0644, NULL);
    if (fd < 0 || is_pid_file(fd))
        return fd;
    close(fd);
    return -ENOTUNIQ;
}

int mk_file_check_output(const char *path)
{
    struct mk__file_entry entry;
    struct stat st;
    int stream = mk_file_std_stream(path);
    if (stream >= 0)
        return fcntl(stream, F_GETFD) < 0 ? -errno : 0;
    int err = mk__file_find_entry(path, true, &entry);
    if (err < 0)
        return err;
    if (fstatat(entry.folder, entry.name, &st, entry.magic ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        err = errno == ENOENT && faccessat(entry.folder, ".", W_OK | X_OK, 0) == 0 ? 0 : -errno;
    else if (S_ISDIR(st.st_mode))
        err = -EISDIR;
    else if (faccessat(entry.folder, entry.name, W_OK, 0) < 0)
        err = -errno;
    else if (!entry.safe && !entry.magic && st.st_nlink > 1)
        err = -EMLINK;
    close(entry.folder);
    return err;
}

int mk__file_unlink_socket(const char *path)
{
    struct mk__file_entry entry;
    struct stat st;
    int err = mk__file_find_entry(path, false, &entry);
    if (err < 0)
        return err;
    if (fstatat(entry.folder, entry.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        err = -errno;
    else if (!S_ISSOCK(st.st_mode))
        err = -ENOTSOCK;
    else
        err = unlinkat(entry.folder, entry.name, 0) < 0 ? -errno : 0;
    close(entry.folder);
    return err;
}

const char *mk_file_error(int err)
{
    switch (err) {
    case -ELOOP:
        return "there is a symbolic link that another user could have made; links and their folders must be root's "
               "or this user's";
    case -EMLINK:
        return "it has several names (hard links), and another user could have made this one";
    case -ENOTUNIQ:
        return "it holds something other than a process number";
    default:
        return strerror(-err);
    }
}

struct mk_str mk_file_run_folder(void)
{
    const char *systemd = getenv("RUNTIME_DIRECTORY"), *text = systemd ? systemd : getenv("MONKEY_RUN_FOLDER");
    return text && text[0] == '/' ? mk_str_until(mk_str_c(text), ":") : MK_STR("");
}
