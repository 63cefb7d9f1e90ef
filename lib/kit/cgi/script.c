// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the script of a request (<monkey/kit/cgi.h>).
 */
#include <monkey/base/file.h>
#include <monkey/kit/cgi.h>
#include <monkey/kit/request_job.h>
#include <monkey/program.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── methods that applications do not get ── */

bool mk_cgi_refuse_method(struct mk_request *req)
{
    bool is_refused = mk_request_method(req) == MK_TRACE;
    if (is_refused)
        mk_response_method_not_allowed(req, MK_STR("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"));
    return is_refused;
}

/* ── access ── */

bool mk_cgi_may_run(struct mk_request *req, struct mk_str name)
{
    struct mk_str decided = mk_request_decided_path(req);
    if (mk_str_eq(mk_request_path(req), name) || (decided.p && mk_str_eq(decided, name)))
        return true;
    return mk_request_decide_access(req, name) == MK_DECLINED;
}

/* ── the name of a script and what follows it ── */

static bool has_extension(struct mk_str segment, const struct mk_conf_list *extensions)
{
    for (uint32_t i = 0; i < extensions->n; i++) {
        struct mk_str extension = extensions->items[i];
        if (extension.len && segment.len > extension.len && mk_str_ends(segment, extension))
            return true;
    }
    return false;
}

bool mk_cgi_split(struct mk_str path, const struct mk_conf_list *extensions, struct mk_str *ret_script,
                  struct mk_str *ret_info)
{
    for (size_t start = 0, end; start < path.len; start = end + 1) {
        const char *slash = memchr(path.p + start, '/', path.len - start);
        end = slash ? (size_t)(slash - path.p) : path.len;
        if (!has_extension(mk_str(path.p + start, end - start), extensions))
            continue;
        *ret_script = mk_str(path.p, end);
        *ret_info = mk_str_after(path, end);
        return true;
    }
    return false;
}

/*
 * ── the file ──
 *
 * Finds the file of a script (<monkey/kit/cgi.h>). The kernel keeps paths below the folder (openat2(2)): no code
 * compares strings to decide what may be opened.
 */

enum { TRIES_MAX = 64, FOLDER_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC, FILE_FLAGS = O_PATH | O_CLOEXEC };

/* ── opening ── */

/* Opens a path below a folder; again after EAGAIN, which a rename at the same time causes. */
static int open_below(const char *folder, const char *path)
{
    int dir = open(folder, FOLDER_FLAGS), fd = -EAGAIN;
    if (dir < 0)
        return -errno;
    for (int i = 0; i < TRIES_MAX && fd == -EAGAIN; i++)
        fd = mk_file_openat2(dir, path[0] ? path : ".", FILE_FLAGS, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    close(dir);
    return fd;
}

static bool has_dotfile(const char *path)
{
    return path[0] == '.' || strstr(path, "/.");
}

/* Opens a path of the place, which begins with a slash and ends with a NUL. Returns a descriptor or -errno. */
static int open_path(const struct mk_cgi_place *place, struct mk_str path)
{
    const char *name = path.p + strspn(path.p, "/");
    if (!place->root.p)
        return mk_host_open_path(place->host, path, MK_OPEN_SOURCE);
    return has_dotfile(name) ? -ENOENT : open_below(place->root.p, name);
}

static int open_root(const struct mk_cgi_place *place)
{
    if (!place->root.p)
        return mk_host_open_path(place->host, MK_STR("/"), MK_OPEN_FOLDER);
    int fd = open(place->root.p, FOLDER_FLAGS);
    return fd < 0 ? -errno : fd;
}

/* Gets the real path of an open file. Returns 0, -ENOENT (it was removed), -ENAMETOOLONG or another -errno. */
static int get_real_path(int fd, char ret[MK_CGI_PATH_BYTES])
{
    char link[32];
    struct stat st;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, ret, MK_CGI_PATH_BYTES);
    if (n < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (n == MK_CGI_PATH_BYTES)
        return -ENAMETOOLONG;
    ret[n] = '\0';
    return st.st_nlink ? 0 : -ENOENT; /* a removed file has no path */
}

/* Tells what is open: 0 for a regular file, -EISDIR, or -ENOENT for anything else. Fills `ret` for a file. */
static int check_file(int fd, struct mk_cgi_script *ret)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return -ENOENT;
    ret->mode = st.st_mode;
    int err = get_real_path(fd, ret->file);
    ret->may_run = err == 0 && faccessat(AT_FDCWD, ret->file, X_OK, AT_EACCESS) == 0;
    return err;
}

/* Opens a path of the place and closes it again. Returns as check_file(). */
static int try_path(const struct mk_cgi_place *place, struct mk_str path, struct mk_cgi_script *ret)
{
    int fd = open_path(place, path);
    if (fd < 0)
        return fd;
    int err = check_file(fd, ret);
    close(fd);
    return err;
}

/* ── finding ── */

static int find_root(const struct mk_cgi_place *place, struct mk_cgi_script *ret)
{
    int fd = open_root(place);
    int err = fd < 0 ? fd : get_real_path(fd, ret->root);
    if (fd >= 0)
        close(fd);
    return err;
}

/* Takes the parts of the path of the caller, of which `copy` has the first `end` bytes. */
static void set_parts(struct mk_str path, size_t end, struct mk_cgi_script *ret)
{
    ret->name = mk_str(path.p, end);
    ret->info = mk_str_after(path, end);
}

/* Tries each prefix of the path that ends a segment, the shortest first. */
static int walk_path(const struct mk_cgi_place *place, struct mk_str path, char *copy, struct mk_cgi_script *ret)
{
    int err = -EISDIR;
    size_t end = 0;
    for (unsigned n = 0; end < path.len && err == -EISDIR; n++) {
        if (n == MK_CGI_SEGMENTS_MAX)
            return -ENAMETOOLONG;
        const char *slash = memchr(path.p + end + 1, '/', path.len - end - 1);
        end = slash ? (size_t)(slash - path.p) : path.len;
        char kept = copy[end];
        copy[end] = '\0';
        err = try_path(place, mk_str(copy, end), ret);
        copy[end] = kept;
    }
    if (err == 0)
        set_parts(path, end, ret);
    return err;
}

int mk_cgi_find_script(const struct mk_cgi_place *place, enum mk_cgi_find how, struct mk_str path,
                       struct mk_cgi_script *ret)
{
    char copy[MK_CGI_PATH_BYTES];
    if (path.len >= sizeof(copy))
        return -ENAMETOOLONG;
    if (!path.len || path.p[0] != '/' || memchr(path.p, '\0', path.len))
        return -ENOENT;
    memcpy(copy, path.p, path.len);
    copy[path.len] = '\0';
    set_parts(path, path.len, ret);
    int err =
        how == MK_CGI_FIND_WALK ? walk_path(place, path, copy, ret) : try_path(place, mk_str(copy, path.len), ret);
    return err == 0 ? find_root(place, ret) : err;
}

/* ── on a disk thread ── */

struct lookup {
    struct mk_request_job base; /* with the path */
    struct mk_cgi_place place;
    enum mk_cgi_find how;
    mk_cgi_found_fn fn;
    void *ctx;
    int err;
    struct mk_cgi_script script;
};

static void run_lookup(struct mk_request_job *job)
{
    struct lookup *l = (struct lookup *)job;
    l->err = mk_cgi_find_script(&l->place, l->how, job->text, &l->script);
}

static void end_lookup(struct mk_request_job *job, struct mk_request *req)
{
    struct lookup *l = (struct lookup *)job;
    if (req)
        l->fn(req, l->err, &l->script, l->ctx);
}

int mk_cgi_lookup(struct mk_request *req, const struct mk_cgi_place *place, enum mk_cgi_find how, struct mk_str path,
                  mk_cgi_found_fn fn, void *ctx)
{
    static const struct mk_request_job_type type = {sizeof(struct lookup), run_lookup, end_lookup};
    struct lookup *l = mk_request_job_new(req, &type, path);
    if (!l)
        return -ENOMEM;
    l->place = *place;
    l->how = how;
    l->fn = fn;
    l->ctx = ctx;
    return mk_request_job_start(&l->base);
}
