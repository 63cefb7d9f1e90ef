// SPDX-License-Identifier: Apache-2.0
/*
 * Loads, runs and ends services (service.h).
 */
#include "service.h"

#include "current.h"
#include "heap.h"
#include "objects.h"
#include "router.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { ARENA_BYTES_MAX = 4 << 20 };

/* All services of the process; for the hooks of the configuration, which run one at a time. */
static struct mk_list services = {&services, &services};

/* ── the file ── */

/*
 * Returns a descriptor with a copy of the file, or -errno. A copy, because dlopen() returns the old object for a file
 * that is open already, and a file that is overwritten while it runs would end the process.
 */
static int copy_file(int from, const struct stat *st)
{
    int to = memfd_create("duda", MFD_CLOEXEC);
    if (to < 0)
        return -errno;
    for (off_t at = 0; at < st->st_size;) {
        ssize_t n = sendfile(to, from, &at, (size_t)(st->st_size - at));
        if (n <= 0) {
            int err = n < 0 ? errno : EIO;
            close(to);
            return -err;
        }
    }
    return to;
}

static const struct duda_service_info *find_info(void *handle)
{
    return dlsym(handle, "duda_service_info");
}

static int check_info(const struct duda_service_info *info, struct mk_buf *error)
{
    if (!info)
        mk_buf_addf(error, "it is no service: it must include <duda/duda.h> or \"webservice.h\"");
    else if (info->abi != DUDA_ABI || info->size < sizeof(*info))
        mk_buf_addf(error, "it was compiled for another version: compile it again");
    else
        return 0;
    return -ENOEXEC;
}

static int open_copy(struct service *s, int fd, struct mk_buf *error)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    s->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!s->handle) {
        mk_buf_addf(error, "%s", dlerror());
        return -ENOEXEC;
    }
    s->info = find_info(s->handle);
    if (check_info(s->info, error) < 0)
        return -ENOEXEC;
    *(void **)&s->main = dlsym(s->handle, "duda_main");
    *(void **)&s->exit = dlsym(s->handle, "duda_exit");
    if (!s->main) {
        mk_buf_addf(error, "it has no duda_main()");
        return -ENOEXEC;
    }
    return objects_bind(s, error);
}

static int load(struct service *s, struct mk_buf *error)
{
    int file = open(s->conf.file.p, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err = -1;
    if (file < 0 || fstat(file, &s->file) < 0)
        mk_buf_addf(error, "%s", strerror(errno));
    else if (!S_ISREG(s->file.st_mode))
        mk_buf_addf(error, "it is not a regular file");
    else if ((s->copy = copy_file(file, &s->file)) < 0)
        mk_buf_addf(error, "%s", strerror(-s->copy));
    else
        err = open_copy(s, s->copy, error);
    if (file >= 0)
        close(file);
    return err;
}

/* ── the service ── */

static struct duda_string to_string(struct mk_str s)
{
    return (struct duda_string){(char *)(uintptr_t)s.p, s.len};
}

static struct mk_str make_url(struct mk_arena *arena, const struct service_conf *conf)
{
    if (conf->root)
        return MK_STR("");
    char *url = mk_arena_alloc(arena, conf->name.len + 2);
    if (!url)
        return MK_STR_NONE;
    snprintf(url, conf->name.len + 2, "/%.*s", MK_STR_ARG(conf->name));
    return mk_str(url, conf->name.len + 1);
}

/* Copies the configuration, which lives only as long as its generation. Returns 0 or -ENOMEM. */
static int copy_conf(struct service *s, struct mk_str host, const struct service_conf *conf)
{
    struct mk_arena *a = &s->arena;
    s->conf = (struct service_conf){
        .name = mk_arena_dup(a, conf->name),
        .file = mk_arena_dup(a, conf->file),
        .document_root = mk_arena_dup(a, conf->document_root),
        .conf_dir = mk_arena_dup(a, conf->conf_dir),
        .data_dir = mk_arena_dup(a, conf->data_dir),
        .log_dir = mk_arena_dup(a, conf->log_dir),
        .enabled = conf->enabled,
        .root = conf->root,
    };
    s->host = mk_arena_dup(a, host);
    s->self = (struct duda_self){
        .name = to_string(s->conf.name),
        .url = to_string(make_url(a, &s->conf)),
        .docroot = to_string(s->conf.document_root),
        .confdir = to_string(s->conf.conf_dir),
        .datadir = to_string(s->conf.data_dir),
        .logdir = to_string(s->conf.log_dir),
    };
    s->router = router_new(a);
    return s->router && s->self.url.data && s->conf.log_dir.p ? 0 : -ENOMEM;
}

static void free_service(struct service *s)
{
    if (s->handle)
        dlclose(s->handle);
    if (s->copy >= 0)
        close(s->copy);
    pthread_mutex_destroy(&s->lock);
    mk_arena_release(&s->arena);
    heap_free(s, sizeof(*s));
}

static struct service *new_service(struct mk_str host, const struct service_conf *conf, struct mk_buf *error)
{
    struct service *s = heap_zalloc(sizeof(*s));
    if (!s) {
        mk_buf_addf(error, "%s", strerror(ENOMEM));
        return NULL;
    }
    mk_arena_init(&s->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    mk_list_init(&s->workers);
    pthread_mutex_init(&s->lock, NULL);
    s->refs = 1;
    s->copy = -1;
    if (copy_conf(s, host, conf) < 0)
        mk_buf_addf(error, "%s", strerror(ENOMEM));
    else if (load(s, error) == 0)
        return s;
    free_service(s);
    return NULL;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool is_same_conf(const struct service_conf *a, const struct service_conf *b)
{
    return mk_str_eq(a->name, b->name) && mk_str_eq(a->file, b->file) &&
           mk_str_eq(a->document_root, b->document_root) && mk_str_eq(a->conf_dir, b->conf_dir) &&
           mk_str_eq(a->data_dir, b->data_dir) && mk_str_eq(a->log_dir, b->log_dir) && a->root == b->root;
}

static struct service *find_service(struct mk_str host, const struct service_conf *conf)
{
    struct stat st;
    struct mk_list *n, *next;
    if (stat(conf->file.p, &st) < 0)
        return NULL;
    MK_LIST_EACH(&services, n, next) {
        struct service *s = MK_CONTAINER_OF(n, struct service, node);
        if (s->state != SERVICE_FAILED && mk_str_eq(s->host, host) && is_same_conf(&s->conf, conf) &&
            is_same_file(&s->file, &st))
            return s;
    }
    return NULL;
}

struct service *service_open(struct mk_str host, const struct service_conf *conf, struct mk_buf *error)
{
    struct service *s = find_service(host, conf);
    if (s) {
        s->refs++;
        return s;
    }
    s = new_service(host, conf, error);
    if (s)
        mk_list_add(&services, &s->node);
    return s;
}

int service_run(struct service *s, struct mk_buf *error)
{
    if (s->state != SERVICE_LOADED)
        return s->state == SERVICE_RUNS ? 0 : -1;
    struct current outer = current_enter(s, NULL);
    int result = s->main();
    current_leave(outer);
    s->state = result == 0 ? SERVICE_RUNS : SERVICE_FAILED;
    if (result != 0)
        mk_buf_addf(error, "duda_main() has returned %d", result);
    return result == 0 ? 0 : -1;
}

void service_put(struct service *s)
{
    if (--s->refs > 0)
        return;
    if (s->state == SERVICE_RUNS && s->exit) {
        struct current outer = current_enter(s, NULL);
        s->exit();
        current_leave(outer);
    }
    mk_list_del(&s->node);
    free_service(s);
}

/* ── its workers ── */

static struct service_worker *find_worker(struct service *s, const struct mk_loop *loop)
{
    struct mk_list *n, *next;
    MK_LIST_EACH(&s->workers, n, next) {
        struct service_worker *w = MK_CONTAINER_OF(n, struct service_worker, node);
        if (w->loop == loop)
            return w;
    }
    return NULL;
}

static struct service_worker *new_worker(struct service *s, struct mk_loop *loop)
{
    struct service_worker *w = heap_zalloc(sizeof(*w));
    if (w) {
        w->service = s;
        w->loop = loop;
        mk_list_init(&w->requests);
        mk_list_add(&s->workers, &w->node);
    }
    return w;
}

struct service_worker *service_worker_get(struct service *s, struct mk_loop *loop)
{
    pthread_mutex_lock(&s->lock);
    struct service_worker *w = find_worker(s, loop);
    if (!w)
        w = new_worker(s, loop);
    pthread_mutex_unlock(&s->lock);
    if (w)
        w->refs++;
    return w;
}

void service_worker_put(struct service_worker *w)
{
    if (--w->refs > 0)
        return;
    pthread_mutex_lock(&w->service->lock);
    mk_list_del(&w->node);
    pthread_mutex_unlock(&w->service->lock);
    heap_free(w, sizeof(*w));
}
