// SPDX-License-Identifier: Apache-2.0
/*
 * Loads, runs and ends services (services.h).
 */
#include "service/services.h"

#include "common/cond.h"
#include "common/current.h"
#include "common/heap.h"
#include "crash/crash.h"
#include "crash/crash_object.h"
#include "crash/watch.h"
#include "log/message.h"
#include "service/folder.h"
#include "service/package.h"

#include <monkey/base/library.h>

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ARENA_BYTES_MAX = 4 << 20, FILE_BYTES_MAX = 1 << 30, READ_BYTES = 4096, WAIT_MS = 1000 };

/* ── the file ── */

/*
 * Adds bytes to the sum of a file (FNV-1a, by words and at last by bytes): it distinguishes versions of a service, not
 * files of an attacker.
 */
static uint64_t add_to_sum(uint64_t sum, const unsigned char *data, size_t n)
{
    static const uint64_t prime = 0x100000001b3U;
    size_t i = 0;
    for (uint64_t word; i + sizeof(word) <= n; i += sizeof(word)) {
        memcpy(&word, data + i, sizeof(word));
        sum = (sum ^ word) * prime;
        sum ^= sum >> 32; /* or the upper bits of words would reach no lower ones */
    }
    for (; i < n; i++)
        sum = (sum ^ data[i]) * prime;
    return sum;
}

/* Reads up to the end of the file, or until `size` bytes are there. Returns the count or -errno. */
static ssize_t read_fully(int fd, unsigned char *data, size_t size, uint64_t at)
{
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n < size; n += (size_t)got) {
        got = pread(fd, data + n, size - n, (off_t)(at + n));
        if (got < 0)
            return -errno;
    }
    return (ssize_t)n;
}

/* Identifies what a file holds. Returns 0 or -errno: -EFBIG, also if it grows faster than it is read. */
static int identify_file(int fd, struct service_file *ret)
{
    unsigned char data[READ_BYTES] MK_UNINITIALIZED;
    *ret = (struct service_file){.sum = 0xcbf29ce484222325U};
    for (;;) {
        ssize_t n = read_fully(fd, data, sizeof(data), ret->bytes);
        if (n <= 0)
            return (int)n;
        ret->sum = add_to_sum(ret->sum, data, (size_t)n);
        ret->bytes += (uint64_t)n;
        if (ret->bytes > FILE_BYTES_MAX)
            return -EFBIG;
    }
}

static const char *describe_file_error(int err)
{
    if (err == -EBADF)
        return "not a regular file";
    return err == -EFBIG ? "it is larger than 1 GB" : strerror(-err);
}

/* Opens a regular file and identifies what it holds. Returns a descriptor, or -errno with the reason in `error`. */
static int open_file(const char *path, struct service_file *ret, struct mk_buf *error)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int err = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
    if (err == 0 && !S_ISREG(st.st_mode))
        err = S_ISDIR(st.st_mode) ? -EISDIR : -EBADF;
    if (err == 0 && st.st_size > FILE_BYTES_MAX)
        err = -EFBIG;
    if (err == 0)
        err = identify_file(fd, ret);
    if (err == 0)
        return fd;
    mk_buf_addf(error, "%s: %s", path, describe_file_error(err));
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

/* Adds the object for stack traces, which owns `copy`, the descriptor of the object's file in memory, or -1. */
static void add_crash_object(struct service *s, int copy)
{
    if (s->info)
        s->object = crash_add_object(CRASH_SERVICE, s->self.name.data, s->info);
    if (s->object)
        crash_set_file(s->object, s->conf.file.p, copy);
    else if (copy >= 0)
        close(copy);
}

static int find_symbols(struct service *s, int copy, struct mk_buf *error)
{
    s->info = dlsym(s->handle, "duda_service_info");
    add_crash_object(s, copy);
    if (check_info(s->info, error) < 0)
        return -ENOEXEC;
    *(void **)&s->main = dlsym(s->handle, "duda_main");
    *(void **)&s->exit = dlsym(s->handle, "duda_exit");
    FEATURES_BEGIN(s->features, service_bind, s);
    if (!s->main) {
        mk_buf_addf(error, "it has no duda_main()");
        return -ENOEXEC;
    }
    return s->set->bind(s, s->info, error);
}

/* A call of the service's code in the thread that reads the configuration. */
struct main_call {
    sigset_t signals;
    struct crash_thread *thread;
    struct current outer;
    struct watch_slot watch;
};

/* Blocks the signals that the program waits for, so that threads which the service starts do not get them. */
static void block_signals(sigset_t *ret_before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < MK_COUNT_OF(faults); i++)
        sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_BLOCK, &set, ret_before);
}

/* `what` is for the log: "duda_main()". */
static void begin_call(struct main_call *call, struct service *s, const char *what)
{
    *call = (struct main_call){.watch = {.service = s->self.name.data, .call = what}};
    block_signals(&call->signals);
    call->thread = crash_enter_thread();
    guard_enter_thread();
    watch_add(&call->watch);
    call->outer = current_enter(s, NULL);
    watch_begin(&call->watch);
}

static void end_call(struct main_call *call)
{
    watch_end(&call->watch);
    current_leave(call->outer);
    watch_remove(&call->watch);
    crash_leave_thread(call->thread);
    pthread_sigmask(SIG_SETMASK, &call->signals, NULL);
}

/* Loads a copy of the file, so that each service has its own variables, and the file may be overwritten. */
static int load_service(struct service *s, int fd, struct mk_buf *error)
{
    struct main_call call;
    int copy;
    begin_call(&call, s, "a function that runs when it is loaded");
    s->handle = mk_library_open_copy(fd, s->conf.name.p, &copy, error);
    end_call(&call);
    return s->handle ? find_symbols(s, copy, error) : -ENOEXEC;
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
static int copy_conf(struct service *s, const struct mk_host *host, struct mk_str site, const struct service_conf *conf)
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
    s->host = mk_arena_dup(a, mk_host_label(host));
    s->site = mk_arena_dup(a, site);
    s->self = (struct duda_self){
        .name = to_string(s->conf.name),
        .url = to_string(make_url(a, &s->conf)),
        .docroot = to_string(folder_dup(a, s->conf.document_root)),
        .confdir = to_string(folder_dup(a, s->conf.conf_dir)),
        .datadir = to_string(folder_dup(a, s->conf.data_dir)),
        .logdir = to_string(folder_dup(a, s->conf.log_dir)),
    };
    bool complete = s->conf.name.p && s->conf.file.p && s->conf.document_root.p && s->conf.conf_dir.p &&
                    s->conf.data_dir.p && s->conf.log_dir.p && s->conf.packages_root.p && s->host.p && s->site.p &&
                    s->self.url.data && s->self.docroot.data && s->self.confdir.data && s->self.datadir.data &&
                    s->self.logdir.data;
    return complete ? 0 : -ENOMEM;
}

/* Unmaps the shared object, whose destructors may run. */
static void unload_service(struct service *s)
{
    struct main_call call;
    if (!s->handle)
        return;
    begin_call(&call, s, "a function that runs when it is unloaded");
    mk_library_close(s->handle);
    end_call(&call);
    if (s->info && crash_is_mapped(s->info))
        message_log_of(s, MK_LOG_WARN,
                       "its code stays in memory: it has thread_local variables with destructors, or was linked with "
                       "unique symbols or -z nodelete (see write-services.md)");
}

static void close_service(struct service *s)
{
    FEATURES_CALL(s->features, service_stop, s);
    if (s->object)
        crash_remove_object(s->object);
    unload_service(s);
    FEATURES_CALL(s->features, service_release, s);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    mk_arena_release(&s->arena);
    service_free(s);
}

static struct service *load_new_service(struct service_set *set, const struct mk_host *host, struct mk_str site,
                                        const struct service_conf *conf, int fd, struct mk_buf *error)
{
    struct service *s = service_new(set->features);
    if (!s) {
        mk_buf_addf(error, "%s", strerror(ENOMEM));
        return NULL;
    }
    mk_arena_init(&s->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    mk_list_init(&s->workers);
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->idle);
    s->set = set;
    s->refs = 1;
    int err = 0;
    FEATURES_INIT(err, s->features, service_init, s);
    if (err == 0)
        err = copy_conf(s, host, site, conf);
    if (err < 0)
        mk_buf_addf(error, "%s", strerror(-err));
    else if (load_service(s, fd, error) == 0)
        return s;
    close_service(s);
    return NULL;
}

static bool is_same_conf(const struct service_conf *a, const struct service_conf *b)
{
    return mk_str_eq(a->name, b->name) && mk_str_eq(a->file, b->file) &&
           mk_str_eq(a->document_root, b->document_root) && mk_str_eq(a->conf_dir, b->conf_dir) &&
           mk_str_eq(a->data_dir, b->data_dir) && mk_str_eq(a->log_dir, b->log_dir) &&
           mk_str_eq(a->packages_root, b->packages_root) && a->root == b->root;
}

/* Returns the newest service of that name in the host; NULL: there is none. */
static struct service *find_newest(struct service_set *set, struct mk_str site, struct mk_str name)
{
    struct service *found = NULL;
    MK_LIST_EACH_ITEM(&set->services, struct service, node, s) {
        if (s->state != SERVICE_FAILED && mk_str_eq(s->site, site) && mk_str_eq(s->conf.name, name))
            found = s;
    }
    return found;
}

/*
 * Returns the newest service of that name in the host, if the section is the same; NULL: there is none. Older ones have
 * been replaced already: a section that is changed back begins a new service.
 */
static struct service *find_service(struct service_set *set, struct mk_str site, const struct service_conf *conf)
{
    struct service *found = find_newest(set, site, conf->name);
    assert(!found || found->refs > 0);
    return found && is_same_conf(&found->conf, conf) ? found : NULL;
}

struct service *service_open(struct service_set *set, const struct mk_host *host, struct mk_str site,
                             const struct service_conf *conf, struct mk_buf *error)
{
    struct service_file file;
    int fd = open_file(conf->file.p, &file, error);
    if (fd < 0)
        return NULL;
    struct service *s = find_service(set, site, conf);
    if (s && s->file.bytes == file.bytes && s->file.sum == file.sum) {
        s->refs++;
    } else if ((s = load_new_service(set, host, site, conf, fd, error))) {
        struct service *before = find_newest(set, site, conf->name);
        s->file = file;
        if (before)
            FEATURES_CALL(s->features, service_inherit, s, before);
        mk_list_add(&set->services, &s->node);
    }
    close(fd);
    return s;
}

struct service *service_find(struct service_set *set, struct mk_str site, const struct service_conf *conf)
{
    struct service *s = find_service(set, site, conf);
    if (!s || s->state != SERVICE_RUNS)
        return NULL;
    s->refs++;
    return s;
}

static int call_main(struct service *s, struct mk_buf *error)
{
    struct main_call call;
    begin_call(&call, s, "duda_main()");
    int result = package_run_main(s, error);
    end_call(&call);
    return result;
}

static void call_exit(struct service *s)
{
    struct main_call call;
    if (s->state != SERVICE_RUNS || !s->exit)
        return;
    begin_call(&call, s, "duda_exit()");
    s->exit();
    end_call(&call);
}

/* duda_main() has returned 0: has features take what it has set. Returns 0, or -errno with a sentence in `error`. */
static int complete_features(struct service *s, struct mk_buf *error)
{
    int err = 0;
    FEATURES_EACH_BACK(s->features, row)
        if (row->service_complete && (err = row->service_complete(s, error)) != 0)
            break;
    s->settings_bytes = s->arena.bytes;
    return err;
}

int service_run(struct service *s, struct mk_buf *error)
{
    if (s->state != SERVICE_LOADED)
        return s->state == SERVICE_RUNS ? 0 : -1;
    s->started_s = time(NULL);
    int result = call_main(s, error);
    if (result != 0 && !mk_buf_str(error).len)
        mk_buf_addf(error, "duda_main() has returned %d", result);
    else if (result == 0)
        result = complete_features(s, error);
    s->state = result == 0 ? SERVICE_RUNS : SERVICE_FAILED;
    return result == 0 ? 0 : -1;
}

static bool has_worker(const struct service *s, bool is_pending)
{
    MK_LIST_EACH_ITEM(&s->workers, const struct service_worker, node, w)
        if (w->is_pending == is_pending)
            return true;
    return false;
}

/*
 * Waits for callbacks that have ended the last exchange of the service, and are about to return; and for workers with
 * tasks that run, a second at most.
 */
static void wait_workers(struct service *s)
{
    struct timespec until = cond_time_in(WAIT_MS);
    pthread_mutex_lock(&s->lock);
    while (has_worker(s, false))
        pthread_cond_wait(&s->idle, &s->lock);
    while (has_worker(s, true) && pthread_cond_timedwait(&s->idle, &s->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&s->lock);
}

/* Returns whether all workers have ended, also those with tasks. */
static bool have_workers_ended(struct service *s)
{
    pthread_mutex_lock(&s->lock);
    bool all = mk_list_empty(&s->workers);
    pthread_mutex_unlock(&s->lock);
    return all;
}

/* Keeps a service in memory, because threads run on in it. The plugin is never unmapped (duda.cmake). */
static void abandon_service(struct service *s, struct mk_str left)
{
    if (!left.len)
        left = MK_STR("tasks of it run (see task->stopping())");
    message_log_of(s, MK_LOG_WARN, "it stays in memory: it has ended, but %.*s", MK_STR_ARG(left));
    mk_list_del(&s->node);
    mk_list_add(&s->set->abandoned, &s->node);
}

void service_put(struct service *s)
{
    assert(s->refs > 0);
    if (--s->refs > 0)
        return;
    MK_BUF_ON_STACK(left, 96);
    wait_workers(s);
    FEATURES_CALL(s->features, threads_stop, s, &left);
    bool all = !mk_buf_str(&left).len && have_workers_ended(s);
    call_exit(s);
    FEATURES_CALL(s->features, service_exit, s);
    if (!all) {
        abandon_service(s, mk_buf_str(&left));
        return;
    }
    mk_list_del(&s->node);
    close_service(s);
}

/* ── the set ── */

struct service_set *service_set_new(const struct mk_plugin *plugin, objects_bind_fn *bind, const struct feature *rows)
{
    struct service_set *set = heap_zalloc(sizeof(*set));
    if (!set)
        return NULL;
    set->plugin = plugin;
    set->bind = bind;
    set->features = rows;
    mk_list_init(&set->services);
    mk_list_init(&set->abandoned);
    mk_list_init(&set->packages);
    mk_list_init(&set->session_stores);
    return set;
}

static bool join_threads(struct service *s)
{
    FEATURES_EACH(s->features, row)
        if (row->threads_join && !row->threads_join(s))
            return false;
    return true;
}

void service_set_reap(struct service_set *set)
{
    MK_LIST_EACH_ITEM(&set->abandoned, struct service, node, s) {
        if (!join_threads(s) || !have_workers_ended(s))
            continue;
        message_log_of(s, MK_LOG_INFO, "its threads have returned: it is not in memory any more");
        mk_list_del(&s->node);
        close_service(s);
    }
}

/* The last thread and the last one for tasks of a service that is left call this; its code and packages stay mapped. */
static void free_orphan(struct service *s)
{
    if (atomic_fetch_sub(&s->orphan_threads, 1) > 1)
        return;
    s->handle = NULL;
    FEATURES_CALL(s->features, service_orphan, s);
    close_service(s);
}

void service_set_free(struct service_set *set)
{
    service_set_reap(set);
    assert(mk_list_empty(&set->services));
    MK_LIST_EACH_ITEM(&set->abandoned, struct service, node, s) {
        mk_list_del(&s->node);
        s->set = NULL;
        s->orphan_threads = 0;
        FEATURES_EACH(s->features, row)
            s->orphan_threads += row->threads_detach != NULL;
        FEATURES_CALL(s->features, threads_detach, s, free_orphan);
    }
    heap_free(set, sizeof(*set));
}
