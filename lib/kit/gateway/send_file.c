// SPDX-License-Identifier: Apache-2.0
/*
 * Opens files below the folders of SendFile (send_file.h). The kernel keeps names below a folder (openat2(2)). A folder
 * is opened anew for each file, so that it may be replaced (`current -> releases/42`). What is not in the kernel's
 * cache is opened by a job.
 */
#include "send_file.h"

#include <monkey/gateway.h>
#include <monkey/escape.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TRIES_MAX = 64, NAME_BYTES_MAX = 4095 };

/* O_NONBLOCK: do not wait for a FIFO or device. O_NOCTTY: do not get a controlling terminal. */
enum {
    FILE_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
    FOLDER_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC,
};

/* ── names below folders ── */

static int call_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .resolve = resolve};
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

/* Opens a path below a folder. `cached` is RESOLVE_CACHED or 0. Returns a descriptor or -errno. */
static int open_below(const char *folder, const char *path, uint64_t cached)
{
    int dir = call_openat2(AT_FDCWD, folder, FOLDER_FLAGS, cached);
    if (dir < 0)
        return dir;
    int fd = call_openat2(dir, path, FILE_FLAGS, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | cached);
    close(dir);
    return fd;
}

/* Returns what is behind the folder in an absolute path, without a slash before it; NULL: the path is elsewhere. */
static const char *cut_folder(const char *path, struct mk_str folder)
{
    while (folder.len && folder.p[folder.len - 1] == '/')
        folder.len--;
    if (strncmp(path, folder.p, folder.len) != 0 || path[folder.len] != '/')
        return NULL;
    return path + folder.len + strspn(path + folder.len, "/");
}

static bool is_missing(int err)
{
    return err == -ENOENT || err == -ENOTDIR;
}

/* A file to be opened. */
struct lookup {
    const struct mk_conf_list *folders;
    const char *name;
    bool is_uri;
};

/* Opens the file in the first folder that has it. Returns a descriptor; -EXDEV: it is below none; or another -errno. */
static int open_named(const struct lookup *l, uint64_t cached)
{
    int err = 0;
    for (uint32_t i = 0; i < l->folders->n; i++) {
        const char *path = cut_folder(l->name, l->folders->items[i]);
        if (!path && l->is_uri)
            path = l->name + strspn(l->name, "/");
        if (!path)
            continue;
        int fd = open_below(l->folders->items[i].p, path, cached);
        if (fd >= 0 || fd == -EAGAIN)
            return fd;
        if (err == 0 || is_missing(err))
            err = fd;
    }
    return err ? err : -EXDEV;
}

/* ── responses ── */

/* Returns the status for a file that cannot be opened. */
static int get_status(int err)
{
    static const struct {
        int err, status;
    } rows[] = {{EXDEV, 403},  {EACCES, 403}, {EPERM, 403},        {ENOENT, 404}, {ENOTDIR, 404},
                {EISDIR, 404}, {ELOOP, 404},  {ENAMETOOLONG, 404}, {ENXIO, 404},  {EMFILE, 503},
                {ENFILE, 503}, {ENOMEM, 503}, {EAGAIN, 503},       {EILSEQ, 404}, {ENOEXEC, 404}};
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].err == -err)
            return rows[i].status;
    return 500;
}

static const char *describe_error(int err)
{
    return err == -EXDEV     ? "it is not below a folder of SendFile"
           : err == -ENOEXEC ? "it is a program of another plugin, whose source is never sent"
                             : strerror(-err);
}

static void respond_error(struct mk_request *req, const struct mk__gw_named_file *named, int err)
{
    mk_request_log(req, MK_LOG_ERROR, "%s: cannot send what %s names: %s: %.*s", named->log_name,
                   named->is_uri ? "X-Accel-Redirect" : "X-Sendfile", describe_error(err), MK_STR_ARG(named->value));
    mk_response_error(req, get_status(err));
}

/* Responds with an open file, or says why it is not open. */
static void respond(struct mk_request *req, const struct mk__gw_named_file *named, struct mk_str name, int fd)
{
    struct stat st;
    int err = fd < 0                                                ? fd
              : fstat(fd, &st) < 0                                  ? -errno
              : S_ISDIR(st.st_mode)                                 ? -EISDIR
              : !S_ISREG(st.st_mode)                                ? -ENXIO
              : mk_host_is_source_fd(mk_request_host_conf(req), fd) ? -ENOEXEC
                                                                    : 0;
    if (err < 0) {
        if (fd >= 0)
            close(fd);
        respond_error(req, named, err);
        return;
    }
    mk_response_file(req, &(struct mk_file){
                              .fd = fd,
                              .bytes = (uint64_t)st.st_size,
                              .mtime_seconds = st.st_mtim.tv_sec,
                              .mtime_nanoseconds = (uint32_t)st.st_mtim.tv_nsec,
                              .version = mk_file_version(st.st_dev, st.st_ino, st.st_ctim.tv_sec,
                                                         (uint32_t)st.st_ctim.tv_nsec),
                              .type = named->type.len ? named->type : mk_request_mime(req, name),
                              .no_ranges = named->no_ranges,
                          });
}

/* ── jobs ── */

/* A file that is opened on a disk thread. */
struct open_job {
    struct mk_job job;
    struct open_job **owner; /* in the arena of the request; NULL: that has ended */
    struct mk_request *req;
    struct mk_worker *worker;
    struct mk_account *account;
    size_t bytes;
    struct mk__gw_named_file named; /* its strings are those of the request */
    struct mk_str req_name;         /* likewise */
    struct lookup lookup;
    int fd;
    char name[]; /* of the lookup */
};

static void run_job(struct mk_job *job)
{
    struct open_job *j = MK_CONTAINER_OF(job, struct open_job, job);
    j->fd = -EAGAIN; /* also of a rename at the same time: see openat2(2) */
    for (int i = 0; i < TRIES_MAX && j->fd == -EAGAIN; i++)
        j->fd = open_named(&j->lookup, 0);
}

static void free_job(struct open_job *j)
{
    mk_worker_put(j->worker);
    mk_account_free(j->account, j, j->bytes);
}

static void end_job(struct mk_job *job)
{
    struct open_job *j = MK_CONTAINER_OF(job, struct open_job, job);
    if (j->owner) {
        *j->owner = NULL;
        respond(j->req, &j->named, j->req_name, j->fd);
    } else if (j->fd >= 0) {
        close(j->fd);
    }
    free_job(j);
}

/* The request has ended. */
static void leave_job(void *arg)
{
    struct open_job **owner = arg;
    if (*owner)
        (*owner)->owner = NULL;
}

/* Opens the file on a disk thread. Returns 0, -ENOMEM or -EAGAIN. */
static int start_job(struct mk_request *req, const struct mk__gw_named_file *named, struct mk_str name,
                     const struct lookup *lookup)
{
    size_t bytes = sizeof(struct open_job) + name.len + 1;
    struct open_job **owner = mk_arena_zalloc(mk_request_arena(req), sizeof(struct open_job *));
    if (!owner || mk_arena_defer(mk_request_arena(req), leave_job, owner) < 0)
        return -ENOMEM;
    struct open_job *j = mk_account_alloc(mk_request_account(req), bytes);
    if (!j)
        return -ENOMEM;
    *j = (struct open_job){.job = {.work = run_job, .done = end_job},
                           .owner = owner,
                           .req = req,
                           .worker = mk_worker_get(mk_request_worker(req)),
                           .account = mk_request_account(req),
                           .bytes = bytes,
                           .named = *named,
                           .req_name = name,
                           .lookup = *lookup,
                           .fd = -1};
    memcpy(j->name, name.p, name.len + 1);
    j->lookup.name = j->name;
    int err = mk_job_submit(mk_request_loop(req), &j->job);
    if (err < 0)
        free_job(j);
    else
        *owner = j;
    return err;
}

/* ── the name ── */

/* Copies a value; of a URI without its query, and decoded. Returns 0, -ENOMEM, -ENAMETOOLONG or -ENOENT (it has a NUL).
 */
static int copy_name(struct mk_str value, bool is_uri, struct mk_arena *arena, struct mk_str *ret)
{
    const char *query = is_uri && value.len ? memchr(value.p, '?', value.len) : NULL;
    if (query)
        value.len = (size_t)(query - value.p);
    *ret = mk_arena_dup(arena, value);
    if (!ret->p)
        return -ENOMEM;
    char *to = (char *)(uintptr_t)ret->p;
    size_t n = 0;
    for (size_t i = 0; i < value.len; i++) {
        bool is_encoded = is_uri && value.p[i] == '%' && value.len - i > 2 && mk_hex_value(value.p[i + 1]) >= 0 &&
                          mk_hex_value(value.p[i + 2]) >= 0;
        to[n++] = is_encoded ? (char)(mk_hex_value(value.p[i + 1]) << 4 | mk_hex_value(value.p[i + 2])) : value.p[i];
        i += is_encoded ? 2 : 0;
    }
    to[n] = '\0';
    ret->len = n;
    return n > NAME_BYTES_MAX ? -ENAMETOOLONG : memchr(to, '\0', n) ? -ENOENT : 0;
}

void mk__gw_send_file_respond(struct mk_request *req, const struct mk_conf_list *folders,
                              const struct mk__gw_named_file *named)
{
    struct mk_str name;
    int fd = copy_name(named->value, named->is_uri, mk_request_arena(req), &name);
    if (fd == 0) {
        const struct lookup lookup = {.folders = folders, .name = name.p, .is_uri = named->is_uri};
        fd = open_named(&lookup, RESOLVE_CACHED);
        int err = fd == -EAGAIN ? start_job(req, named, name, &lookup) : -EEXIST;
        if (err == 0)
            return;
        if (err != -EEXIST)
            fd = err;
    }
    respond(req, named, name, fd);
}

/* ── the configuration ── */

int mk_gateway_parse_send_file(const struct mk_conf_value *value, void *list, struct mk_arena *arena,
                               struct mk_buf *error)
{
    struct mk_conf_list *folders = list;
    if (value->n == 1 && mk_str_ieq(value->text, MK_STR("Off")))
        return 0;
    folders->items = mk_arena_alloc(arena, value->n * sizeof(*folders->items));
    if (!folders->items)
        return -ENOMEM;
    for (; folders->n < value->n; folders->n++) {
        struct mk_str *folder = &folders->items[folders->n];
        int err = mk_conf_read_path(value, value->words[folders->n], folder, arena, error);
        if (err < 0)
            return err;
        int fd = open(folder->p, FOLDER_FLAGS);
        if (fd < 0) {
            mk_buf_addf(error, "cannot open the folder %s: %s", folder->p, strerror(errno));
            return -EINVAL;
        }
        close(fd);
    }
    return 0;
}
