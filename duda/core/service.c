// SPDX-License-Identifier: Apache-2.0
/*
 * Loads, runs and ends services (service.h).
 */
#include "service.h"

#include "crash.h"
#include "current.h"
#include "folder.h"
#include "heap.h"
#include "message.h"
#include "objects.h"
#include "request.h"
#include "route_log.h"
#include "router.h"
#include "ticket.h"
#include "tunnel.h"

#include <monkey/library.h>

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ARENA_BYTES_MAX = 4 << 20,
    TUNNEL_END_MS = 5000, /* how long what a tunnel has written at its end may take */
};

/* All services of the process; for the hooks of the configuration, which run one at a time. */
static struct mk_list services = {&services, &services};
/* Services that have ended, but have threads that run on. */
static struct mk_list abandoned = {&abandoned, &abandoned};

/* ── the file ── */

/* Adds bytes to the sum of a file (FNV-1a): it distinguishes versions of a service, not files of an attacker. */
static uint64_t add_to_sum(uint64_t sum, const unsigned char *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ data[i]) * 0x100000001b3U;
    return sum;
}

/* Identifies what a file holds. Returns 0 or -errno. */
static int identify_file(int fd, struct service_file *ret)
{
    unsigned char data[4096];
    *ret = (struct service_file){.sum = 0xcbf29ce484222325U};
    for (;;) {
        ssize_t n = pread(fd, data, sizeof(data), (off_t)ret->bytes);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        ret->sum = add_to_sum(ret->sum, data, (size_t)n);
        ret->bytes += (uint64_t)n;
    }
}

/* Opens a regular file and identifies what it holds. Returns a descriptor, or -errno with the reason in `error`. */
static int open_file(const char *path, struct service_file *ret, struct mk_buf *error)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int err = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
    if (err == 0 && !S_ISREG(st.st_mode))
        err = S_ISDIR(st.st_mode) ? -EISDIR : -EBADF;
    if (err == 0)
        err = identify_file(fd, ret);
    if (err == 0)
        return fd;
    mk_buf_addf(error, "%s: %s", path, err == -EBADF ? "not a regular file" : strerror(-err));
    if (fd >= 0)
        close(fd);
    return err;
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

static int find_symbols(struct service *s, struct mk_buf *error)
{
    s->info = dlsym(s->handle, "duda_service_info");
    if (s->info)
        s->object = crash_add_object(s->self.name.data, s->info);
    if (check_info(s->info, error) < 0)
        return -ENOEXEC;
    *(void **)&s->main = dlsym(s->handle, "duda_main");
    *(void **)&s->exit = dlsym(s->handle, "duda_exit");
    if (!s->main) {
        mk_buf_addf(error, "it has no duda_main()");
        return -ENOEXEC;
    }
    old_service_fill(s);
    return objects_bind(s, s->info, error);
}

/* Loads a copy of the file, so that each service has its own variables, and the file may be overwritten. */
static int load(struct service *s, int fd, struct mk_buf *error)
{
    s->handle = mk_library_open_copy(fd, s->conf.name.p, error);
    return s->handle ? find_symbols(s, error) : -ENOEXEC;
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
        .packages_root = mk_arena_dup(a, conf->packages_root),
        .enabled = conf->enabled,
        .root = conf->root,
    };
    s->host = mk_arena_dup(a, host);
    s->self = (struct duda_self){
        .name = to_string(s->conf.name),
        .url = to_string(make_url(a, &s->conf)),
        .docroot = to_string(folder_dup(a, s->conf.document_root)),
        .confdir = to_string(folder_dup(a, s->conf.conf_dir)),
        .datadir = to_string(folder_dup(a, s->conf.data_dir)),
        .logdir = to_string(folder_dup(a, s->conf.log_dir)),
    };
    s->router = router_new(a);
    s->gate = ticket_gate_new(s);
    bool complete = s->router && s->gate && s->conf.name.p && s->conf.file.p && s->conf.document_root.p &&
                    s->conf.conf_dir.p && s->conf.data_dir.p && s->conf.log_dir.p && s->conf.packages_root.p &&
                    s->host.p && s->self.url.data && s->self.docroot.data && s->self.confdir.data &&
                    s->self.datadir.data && s->self.logdir.data;
    return complete ? 0 : -ENOMEM;
}

static void free_service(struct service *s)
{
    if (s->gate)
        ticket_gate_close(s->gate);
    package_stop_service(s);
    if (s->object)
        crash_remove_object(s->object);
    if (s->handle)
        mk_library_close(s->handle);
    package_close_all(s);
    thread_release(&s->threads);
    signals_release(&s->signals);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    mk_arena_release(&s->arena);
    heap_free(s, sizeof(*s));
}

static struct service *new_service(struct mk_str host, const struct service_conf *conf, int fd, struct mk_buf *error)
{
    struct service *s = heap_zalloc(sizeof(*s));
    if (!s) {
        mk_buf_addf(error, "%s", strerror(ENOMEM));
        return NULL;
    }
    mk_arena_init(&s->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    mk_list_init(&s->workers);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->idle, NULL);
    thread_init(&s->threads);
    signals_init(&s->signals);
    s->refs = 1;
    if (copy_conf(s, host, conf) < 0)
        mk_buf_addf(error, "%s", strerror(ENOMEM));
    else if (load(s, fd, error) == 0)
        return s;
    free_service(s);
    return NULL;
}

static bool is_same_conf(const struct service_conf *a, const struct service_conf *b)
{
    return mk_str_eq(a->name, b->name) && mk_str_eq(a->file, b->file) &&
           mk_str_eq(a->document_root, b->document_root) && mk_str_eq(a->conf_dir, b->conf_dir) &&
           mk_str_eq(a->data_dir, b->data_dir) && mk_str_eq(a->log_dir, b->log_dir) &&
           mk_str_eq(a->packages_root, b->packages_root) && a->root == b->root;
}

/*
 * Returns the newest service of that name in the host, if the section is the same; NULL: there is none. Older ones have
 * been replaced already: a section that is changed back begins a new service.
 */
static struct service *find_service(struct mk_str host, const struct service_conf *conf)
{
    struct service *found = NULL;
    struct mk_list *n, *next;
    MK_LIST_EACH(&services, n, next) {
        struct service *s = MK_CONTAINER_OF(n, struct service, node);
        if (s->state != SERVICE_FAILED && mk_str_eq(s->host, host) && mk_str_eq(s->conf.name, conf->name))
            found = s;
    }
    return found && is_same_conf(&found->conf, conf) ? found : NULL;
}

struct service *service_open(struct mk_str host, const struct service_conf *conf, struct mk_buf *error)
{
    struct service_file file;
    int fd = open_file(conf->file.p, &file, error);
    if (fd < 0)
        return NULL;
    struct service *s = find_service(host, conf);
    if (s && s->file.bytes == file.bytes && s->file.sum == file.sum) {
        s->refs++;
    } else if ((s = new_service(host, conf, fd, error))) {
        s->file = file;
        mk_list_add(&services, &s->node);
    }
    close(fd);
    return s;
}

struct service *service_find(struct mk_str host, const struct service_conf *conf)
{
    struct service *s = find_service(host, conf);
    if (!s || s->state != SERVICE_RUNS)
        return NULL;
    s->refs++;
    return s;
}

/* Blocks the signals that the program waits for, so that threads which the service starts do not get them. */
static void block_signals(sigset_t *ret_before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_BLOCK, &set, ret_before);
}

static int call_main(struct service *s, struct mk_buf *error)
{
    sigset_t before;
    block_signals(&before);
    struct crash_thread *thread = crash_enter_thread();
    struct current outer = current_enter(s, NULL);
    int result = package_run_main(s, error);
    current_leave(outer);
    crash_leave_thread(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

int service_run(struct service *s, struct mk_buf *error)
{
    if (s->state != SERVICE_LOADED)
        return s->state == SERVICE_RUNS ? 0 : -1;
    int result = call_main(s, error);
    old_service_fill(s);
    if (result != 0 && !mk_buf_str(error).len)
        mk_buf_addf(error, "duda_main() has returned %d", result);
    else if (result == 0)
        result = router_check(s->router, error);
    s->state = result == 0 ? SERVICE_RUNS : SERVICE_FAILED;
    if (result == 0)
        route_log_write(s);
    return result == 0 ? 0 : -1;
}

/* Waits for callbacks that have ended the last exchange of the service, and are about to return. */
static void wait_workers(struct service *s)
{
    pthread_mutex_lock(&s->lock);
    while (!mk_list_empty(&s->workers))
        pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* Keeps a service in memory, because threads run on in it. The plugin is never unmapped (duda.cmake). */
static void abandon_service(struct service *s, unsigned threads)
{
    message_log_of(s, MK_LOG_WARN,
                   "it stays in memory: it has ended, but %u of its threads have not returned (see worker->stopping())",
                   threads);
    mk_list_del(&s->node);
    mk_list_add(&abandoned, &s->node);
}

void service_put(struct service *s)
{
    assert(s->refs > 0);
    if (--s->refs > 0)
        return;
    wait_workers(s);
    unsigned threads = thread_stop_all(s);
    if (s->state == SERVICE_RUNS && s->exit) {
        struct crash_thread *thread = crash_enter_thread();
        struct current outer = current_enter(s, NULL);
        s->exit();
        current_leave(outer);
        crash_leave_thread(thread);
    }
    (threads ? log_flush : log_end)(s);
    if (threads) {
        abandon_service(s, threads);
        return;
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
        if (w->loop == loop && !w->ended)
            return w;
    }
    return NULL;
}

/*
 * Cuts the requests of a service that was replaced: event streams and others that do not end by themselves. Tunnels are
 * asked to end first, and are cut by a second call.
 */
static void cut_requests(struct mk_timer *timer)
{
    struct service_worker *w = MK_CONTAINER_OF(timer, struct service_worker, cut_timer);
    struct mk_list begun;
    bool waits = false;
    mk_list_init(&begun);
    mk_list_join(&begun, &w->requests);
    struct current outer = service_worker_enter(w); /* the end of the last request may end the generation */
    while (!mk_list_empty(&begun)) {
        struct duda_request *dr = MK_LIST_FIRST(&begun, struct duda_request, node);
        mk_list_del(&dr->node);
        mk_list_add(&w->requests, &dr->node);
        if (tunnel_retire(dr))
            waits = true;
        else
            mk_response_abort(dr->req);
    }
    if (waits && !w->ended)
        mk_timer_arm(w->loop, &w->cut_timer, TUNNEL_END_MS);
    service_worker_leave(w, outer);
}

static void end_worker(struct service_worker *w)
{
    struct service *s = w->service;
    struct current outer = current_enter(s, w);
    w->calls++; /* package->call() in a hook does not end the worker again */
    package_stop_worker(w);
    global_destroy_values(s, &w->values);
    current_leave(outer);
    watch_remove(&w->watch);
    inbox_close(&w->inbox, service_worker_has_loop(w) ? w->loop : NULL);
    pthread_mutex_lock(&s->lock);
    mk_list_del(&w->node);
    pthread_cond_signal(&s->idle);
    pthread_mutex_unlock(&s->lock);
    request_pool_release(w);
    heap_free(w, sizeof(*w));
}

/* Removes what the service has in the loop: nothing of it is called any more. */
static void stop_worker(struct service_worker *w)
{
    pthread_mutex_lock(&w->service->lock);
    w->ended = true;
    pthread_mutex_unlock(&w->service->lock);
    mk_timer_cancel(&w->cut_timer);
    descriptor_remove_all(w);
    timer_cancel_all(w);
    if (!w->calls)
        end_worker(w);
}

static struct service_worker *new_worker(struct service *s, struct mk_worker *worker)
{
    struct service_worker *w = heap_zalloc(sizeof(*w));
    if (!w)
        return NULL;
    w->service = s;
    w->loop = mk_worker_loop(worker);
    w->account = mk_worker_account(worker);
    w->index = mk_worker_index(worker);
    w->thread = pthread_self();
    w->watch.service = s->self.name.data;
    w->watch.worker = w->index;
    mk_timer_init(&w->cut_timer, cut_requests);
    mk_list_init(&w->requests);
    mk_list_init(&w->slabs);
    if (inbox_open(&w->inbox, w->loop) < 0) {
        heap_free(w, sizeof(*w));
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    mk_list_add(&s->workers, &w->node);
    pthread_mutex_unlock(&s->lock);
    int err = watch_add(&w->watch);
    if (err < 0)
        mk_log_warn("service \"%s\": that it blocks worker %u would not be noticed: %s", w->watch.service, w->index,
                    strerror(-err));
    return w;
}

/* Calls what the service has for the begin of a worker. Returns 0 or -ENOMEM. */
static int run_worker(struct service_worker *w)
{
    struct service *s = w->service;
    struct current outer = current_enter(s, w);
    int err = global_make_values(s, &w->values);
    if (err == 0)
        err = package_start_worker(w);
    for (const struct pre_loop *row = s->pre_loops; row && err == 0; row = row->next)
        row->fn(row->data);
    current_leave(outer);
    if (err == 0) {
        log_start(s);
        thread_start_all(s);
    }
    return err;
}

static struct service_worker *start_worker(struct service *s, struct mk_worker *worker)
{
    struct service_worker *w = new_worker(s, worker);
    if (w && s->state == SERVICE_RUNS && run_worker(w) < 0) {
        stop_worker(w);
        return NULL;
    }
    return w;
}

struct service_worker *service_worker_find(struct service *s, const struct mk_loop *loop)
{
    pthread_mutex_lock(&s->lock);
    struct service_worker *w = find_worker(s, loop);
    pthread_mutex_unlock(&s->lock);
    return w;
}

struct service_worker *service_worker_get(struct service *s, struct mk_worker *worker)
{
    pthread_mutex_lock(&s->lock);
    struct service_worker *w = find_worker(s, mk_worker_loop(worker));
    pthread_mutex_unlock(&s->lock);
    if (!w)
        w = start_worker(s, worker);
    if (!w)
        return NULL;
    w->refs++;
    w->current++;
    w->cut_ms = mk_generation_shutdown_timeout_ms(mk_worker_generation(worker));
    mk_timer_cancel(&w->cut_timer);
    return w;
}

void service_worker_retire(struct service_worker *w)
{
    assert(w->current > 0);
    if (--w->current == 0)
        mk_timer_arm(w->loop, &w->cut_timer, w->cut_ms);
}

/* A generation without exchanges of its own is not retired; older ones, which were, may still have some. */
void service_worker_put(struct service_worker *w, bool retired)
{
    assert(w->refs > 0 && (retired || w->current > 0));
    w->current -= !retired;
    if (--w->refs == 0)
        stop_worker(w);
    else if (!retired && w->current == 0)
        mk_timer_arm(w->loop, &w->cut_timer, w->cut_ms);
}

struct current service_worker_enter(struct service_worker *w)
{
    w->calls++;
    return current_enter(w->service, w);
}

void service_worker_leave(struct service_worker *w, struct current outer)
{
    current_leave(outer);
    if (--w->calls == 0 && w->ended)
        end_worker(w);
}
