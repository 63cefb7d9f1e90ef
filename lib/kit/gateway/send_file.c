// SPDX-License-Identifier: Apache-2.0
/*
 * Opens files below the folders of SendFile. The kernel keeps names below a folder (openat2(2)). A folder
 * is opened anew for each file, so that it may be replaced (`current -> releases/42`). What is not in the kernel's
 * cache is opened by a job.
 */
#include "exchange.h"

#include <monkey/base/escape.h>
#include <monkey/base/file.h>
#include <monkey/kit/open_file.h>
#include <monkey/kit/request_job.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

enum { TRIES_MAX = 64, NAME_BYTES_MAX = 4095 };

/* O_NONBLOCK: do not wait for a FIFO or device. O_NOCTTY: do not get a controlling terminal. */
enum {
    FILE_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
    FOLDER_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC,
};

/* ── names below folders ── */

/* Opens a path below a folder. `cached` is RESOLVE_CACHED or 0. Returns a descriptor or -errno. */
static int open_below(const char *folder, const char *path, uint64_t cached)
{
    int dir = mk_file_openat2(AT_FDCWD, folder, FOLDER_FLAGS, cached);
    if (dir < 0)
        return dir;
    int fd = mk_file_openat2(dir, path, FILE_FLAGS, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | cached);
    close(dir);
    return fd;
}

/* Returns what follows the folder in an absolute path, without a slash before it; NULL: the path is elsewhere. */
static const char *strip_folder(const char *path, struct mk_str folder)
{
    folder = mk_str_strip_end(folder, "/");
    if (strncmp(path, folder.p, folder.len) != 0 || path[folder.len] != '/')
        return NULL;
    return path + folder.len + strspn(path + folder.len, "/");
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
        const char *path = strip_folder(l->name, l->folders->items[i]);
        if (!path && l->is_uri)
            path = l->name + strspn(l->name, "/");
        if (!path)
            continue;
        int fd = open_below(l->folders->items[i].p, path, cached);
        if (fd >= 0 || fd == -EAGAIN)
            return fd;
        if (err == 0 || err == -ENOENT || err == -ENOTDIR)
            err = fd;
    }
    return err ? err : -EXDEV;
}

/* ── responses ── */

static const char *describe_error(int err)
{
    return err == -EXDEV     ? "it is not below a folder of SendFile"
           : err == -ENOEXEC ? "it is a program of another plugin, and never sent"
                             : strerror(-err);
}

static void respond_error(struct mk_request *req, const struct mk__gw_named_file *named, int err)
{
    mk_request_log(req, MK_LOG_ERROR, "%s: cannot send what %s names: %s: %.*s", named->log_name,
                   named->is_uri ? "X-Accel-Redirect" : "X-Sendfile", describe_error(err), MK_STR_ARG(named->value));
    mk_response_error(req, err == -EXDEV ? 403 : err == -ENOEXEC ? 404 : mk_open_file_get_status(err));
}

/* Responds with an open file, or says why it is not open. */
static void respond_file(struct mk_request *req, const struct mk__gw_named_file *named, struct mk_str name, int fd)
{
    struct mk_file file;
    int err = fd < 0 ? fd : mk_open_file_describe(fd, &file);
    if (err == 0 && mk_host_is_source_fd(mk_request_host_conf(req), fd))
        err = -ENOEXEC;
    if (err < 0) {
        if (fd >= 0)
            close(fd);
        respond_error(req, named, err);
        return;
    }
    file.type = named->type.len ? named->type : mk_request_mime(req, name);
    file.no_ranges = named->no_ranges;
    mk_response_file(req, &file);
}

/* ── jobs ── */

/* A file that is opened on a disk thread. */
struct open_job {
    struct mk_request_job base;     /* with the name */
    struct mk__gw_named_file named; /* its strings are those of the request */
    struct mk_str req_name;         /* likewise */
    struct lookup lookup;
    int fd;
};

static void run_job(struct mk_request_job *job)
{
    struct open_job *j = (struct open_job *)job;
    for (int i = 0; i < TRIES_MAX && j->fd == -EAGAIN; i++) /* also of a rename at the same time: see openat2(2) */
        j->fd = open_named(&j->lookup, 0);
}

static void end_job(struct mk_request_job *job, struct mk_request *req)
{
    struct open_job *j = (struct open_job *)job;
    if (req)
        respond_file(req, &j->named, j->req_name, j->fd);
    else if (j->fd >= 0)
        close(j->fd);
}

/* Opens the file on a disk thread. Returns 0, -ENOMEM or -EAGAIN. */
static int start_job(struct mk_request *req, const struct mk__gw_named_file *named, struct mk_str name,
                     const struct lookup *lookup)
{
    static const struct mk_request_job_type type = {sizeof(struct open_job), run_job, end_job};
    struct open_job *j = mk_request_job_new(req, &type, name);
    if (!j)
        return -ENOMEM;
    j->named = *named;
    j->req_name = name;
    j->lookup = *lookup;
    j->lookup.name = j->base.text.p;
    j->fd = -EAGAIN;
    return mk_request_job_start(&j->base);
}

/* ── the name ── */

/* Copies a value; of a URI without its query, and decoded. Returns 0, -ENOMEM, -ENAMETOOLONG or -ENOENT (it has a NUL).
 */
static int copy_name(struct mk_str value, bool is_uri, struct mk_arena *arena, struct mk_str *ret)
{
    const char *query = is_uri && value.len ? memchr(value.p, '?', value.len) : NULL;
    if (query)
        value.len = (size_t)(query - value.p);
    char *to = mk_arena_alloc(arena, value.len + 1);
    struct mk_buf name;
    if (!to)
        return -ENOMEM;
    mk_buf_init_fixed(&name, to, value.len + 1);
    if (is_uri)
        mk_path_decode(&name, value);
    else
        mk_buf_adds(&name, value);
    *ret = mk_str(mk_buf_cstr(&name), name.len);
    return name.len > NAME_BYTES_MAX ? -ENAMETOOLONG : memchr(ret->p, '\0', name.len) ? -ENOENT : 0;
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
    respond_file(req, named, name, fd);
}

/* ── the configuration ── */

int mk_gateway_parse_send_file(const struct mk_conf_value *value, void *list, struct mk_arena *arena,
                               struct mk_buf *error)
{
    struct mk_conf_list *folders = list;
    if (mk_conf_is_off(value))
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
