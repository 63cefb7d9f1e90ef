// SPDX-License-Identifier: Apache-2.0
/*
 * The server as a whole, behind <monkey/monkey.h>: a generation, its listeners, its workers. The process
 * context; it does not take part in serving.
 */
#include <monkey/monkey.h>

#include "net/listen.h"
#include "server/cpus.h"
#include "server/plugin.h"
#include "server/worker.h"
#include "version.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct mk_server {
    struct mk__source source;
    struct mk__generation generation;
    bool loaded;
    pthread_mutex_t lock; /* of `running`: a stop may be hastened by another thread */
    bool running;         /* the workers exist */
    unsigned n_workers, n_listeners, n_opened;
    struct mk__addr *addrs;
    int *fds;     /* n_workers x n_listeners; a Unix socket's is the same for all */
    bool *shared; /* per listener */
    struct mk__jobs jobs;
    struct mk__worker **workers;
};

/* ── configuring ── */

struct mk_server *mk_server_new(void)
{
    struct mk_server *s = mk_account_alloc(NULL, sizeof(*s));
    if (!s)
        return NULL;
    memset(s, 0, sizeof(*s));
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void mk_server_free(struct mk_server *s)
{
    if (!s)
        return;
    if (s->loaded)
        mk__generation_free(&s->generation);
    pthread_mutex_destroy(&s->lock);
    mk_account_free(NULL, s, sizeof(*s));
}

void mk_server_configure(struct mk_server *s, const char *dir)
{
    s->source.dir = dir;
}

void mk_server_one_shot(struct mk_server *s, const char *root)
{
    s->source.root = root;
}

int mk_server_set(struct mk_server *s, const char *section, const char *key, const char *value, const char *origin)
{
    if (s->source.n_overrides == MK__OVERRIDES_MAX)
        return -ENOBUFS;
    s->source.overrides[s->source.n_overrides++] = (struct mk__override){section, key, value, origin};
    return 0;
}

int mk_server_load(struct mk_server *s)
{
    if (s->loaded)
        mk__generation_free(&s->generation);
    s->loaded = true;
    return mk__generation_load(&s->generation, &s->source);
}

void mk_server_problems(const struct mk_server *s, struct mk_buf *out)
{
    if (s->loaded)
        mk__generation_problems(&s->generation, out);
}

void mk_server_info(const struct mk_server *s, struct mk_server_info *ret_info)
{
    const struct mk__settings *settings = s->generation.settings;
    if (!settings) {
        *ret_info = (struct mk_server_info){.log_level = MK_LOG_INFO};
        return;
    }
    *ret_info = (struct mk_server_info){
        .error_log = settings->error_log.len ? settings->error_log.p : NULL,
        .log_level = (enum mk_log_level)settings->log_level,
        .pid_file = settings->pid_file.len ? settings->pid_file.p : NULL,
        .workers = settings->workers ? (unsigned)settings->workers : mk__cpus_usable(),
    };
}

void mk_server_show(const struct mk_server *s, struct mk_buf *out)
{
    if (!s->generation.set)
        return;
    mk__conf_show(s->generation.set, out);
    for (const struct mk_host *host = s->generation.hosts; host; host = host->next) {
        mk_buf_addf(out, "\n");
        mk__conf_show(host->set, out);
    }
}

/* ── listeners ── */

static void report_listener(struct mk_server *s, unsigned nth, int err)
{
    const struct mk__settings *settings = s->generation.settings;
    mk__conf_error(s->generation.conf,
                   mk__conf_origin(s->generation.set, settings, offsetof(struct mk__settings, listen), nth),
                   "cannot listen on %.*s: %s", MK_STR_ARG(settings->listen.items[nth].text), strerror(-err));
}

static struct mk__listen_options listen_options(const struct mk__settings *settings)
{
    return (struct mk__listen_options){
        .backlog = (int)settings->backlog,
        .defer_seconds = (int)((settings->defer_accept_ms + 999) / 1000),
        .fast_open_queue = (int)settings->fast_open,
        .shared_port = true,
    };
}

/* Could a file at this place be written? It is not made for the question. */
static int check_writable(struct mk_server *s, struct mk_str path, size_t offset, const char *what)
{
    const struct mk__settings *settings = s->generation.settings;
    char folder[PATH_MAX];
    if (!path.len)
        return 0;
    const char *slash = strrchr(path.p, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path.p) + 1 : 1, slash ? path.p : ".");
    struct stat st;
    if (stat(path.p, &st) == 0 && S_ISDIR(st.st_mode))
        errno = EISDIR;
    else if (access(path.p, W_OK) == 0 || (errno == ENOENT && access(folder, W_OK | X_OK) == 0))
        return 0;
    mk__conf_error(s->generation.conf, mk__conf_origin(s->generation.set, settings, offset, 0),
                   "cannot write the %s %s: %s", what, path.p, strerror(errno));
    return -EINVAL;
}

/* Binding would replace a socket that nobody answers at; whether somebody does is seen at the start. */
static bool is_socket(const struct mk__addr *addr)
{
    struct stat st;
    return addr->sa.sa_family == AF_UNIX && lstat(addr->un.sun_path, &st) == 0 && S_ISSOCK(st.st_mode);
}

int mk_server_check(struct mk_server *s)
{
    const struct mk__settings *settings = s->generation.settings;
    if (!settings)
        return -EINVAL;
    struct mk__listen_options options = listen_options(settings);
    int result = check_writable(s, settings->error_log, offsetof(struct mk__settings, error_log), "error log");
    if (check_writable(s, settings->pid_file, offsetof(struct mk__settings, pid_file), "pid file") < 0)
        result = -EINVAL;
    for (unsigned i = 0; i < settings->listen.n; i++) {
        struct mk__addr addr = settings->listen.items[i].addr;
        if (is_socket(&addr))
            continue;
        int fd = mk__listen_bind(&addr, &options);
        if (fd >= 0) {
            if (addr.sa.sa_family == AF_UNIX)
                unlink(addr.un.sun_path);
            close(fd);
            continue;
        }
        report_listener(s, i, fd);
        result = -EINVAL;
    }
    return result;
}

/* One listener for all workers: a socket each, or one for all where the address cannot be shared. */
static int open_listener(struct mk_server *s, unsigned nth)
{
    const struct mk__settings *settings = s->generation.settings;
    struct mk__listen_options options = listen_options(settings);
    struct mk__addr *addr = &s->addrs[nth];
    *addr = settings->listen.items[nth].addr;
    s->shared[nth] = addr->sa.sa_family == AF_UNIX;
    int err = 0;
    for (unsigned w = 0; w < s->n_workers && err >= 0; w++) {
        int *fd = &s->fds[w * s->n_listeners + nth];
        if (w > 0 && s->shared[nth]) {
            *fd = s->fds[nth];
            continue;
        }
        /* the first one is bound alone: a second server would otherwise take half of our connections */
        options.shared_port = w > 0;
        err = *fd = mk__listen_bind(addr, &options);
        if (err >= 0)
            err = mk__listen_start(*fd, addr, &options);
    }
    if (err < 0)
        report_listener(s, nth, err);
    return err < 0 ? err : 0;
}

static void say_where(const struct mk_server *s)
{
    if (s->generation.settings->fast_open && !mk__listen_fast_open_works())
        mk_log_warn("FastOpen has no effect: net.ipv4.tcp_fastopen lacks the bit of value 2 "
                    "(sysctl -w net.ipv4.tcp_fastopen=3), or set FastOpen 0");
    for (unsigned i = 0; i < s->n_listeners; i++) {
        struct mk_buf text;
        char storage[160];
        mk_buf_init_fixed(&text, storage, sizeof(storage));
        mk__addr_print(&s->addrs[i], &text);
        mk_log_info("listening on %s", mk_buf_cstr(&text));
    }
}

static void close_listeners(struct mk_server *s)
{
    for (unsigned w = 0; w < s->n_workers; w++)
        for (unsigned i = 0; i < s->n_listeners; i++) {
            int fd = s->fds[w * s->n_listeners + i];
            if (fd >= 0 && (w == 0 || !s->shared[i]))
                close(fd);
        }
    for (unsigned i = 0; i < s->n_opened; i++)
        if (s->shared[i])
            unlink(s->addrs[i].un.sun_path);
}

static int open_listeners(struct mk_server *s)
{
    for (unsigned i = 0; i < s->n_workers * s->n_listeners; i++)
        s->fds[i] = -1;
    for (s->n_opened = 0; s->n_opened < s->n_listeners; s->n_opened++) {
        int err = open_listener(s, s->n_opened);
        if (err < 0)
            return err;
    }
    return 0;
}

/* ── running ── */

static int allocate(struct mk_server *s)
{
    struct mk_arena *a = &s->generation.arena;
    struct mk_server_info info;
    mk_server_info(s, &info);
    s->n_workers = info.workers;
    s->n_listeners = s->generation.settings->listen.n;
    s->addrs = mk_arena_zalloc(a, s->n_listeners * sizeof(*s->addrs));
    s->shared = mk_arena_zalloc(a, s->n_listeners * sizeof(*s->shared));
    s->fds = mk_arena_zalloc(a, s->n_workers * s->n_listeners * sizeof(*s->fds));
    s->workers = mk_arena_zalloc(a, s->n_workers * sizeof(*s->workers));
    return s->addrs && s->shared && s->fds && s->workers ? 0 : -ENOMEM;
}

static int open_worker(struct mk_server *s, unsigned i)
{
    struct mk__worker *w = mk_account_alloc(NULL, sizeof(*w));
    if (!w)
        return -ENOMEM;
    int err = mk__worker_open(w, &s->generation, i, &s->jobs, &s->fds[i * s->n_listeners], s->shared, s->n_listeners);
    if (err == 0)
        err = mk__worker_start(w);
    else {
        mk_account_free(NULL, w, sizeof(*w));
        return err;
    }
    s->workers[i] = w;
    return err;
}

static void set_running(struct mk_server *s, bool running)
{
    pthread_mutex_lock(&s->lock);
    s->running = running;
    pthread_mutex_unlock(&s->lock);
}

static void close_workers(struct mk_server *s)
{
    for (unsigned i = 0; i < s->n_workers; i++)
        if (s->workers[i])
            mk__worker_join(s->workers[i]);
    set_running(s, false);
    mk__jobs_close(&s->jobs); /* the loops still take what the last jobs have to say */
    for (unsigned i = 0; i < s->n_workers; i++) {
        if (!s->workers[i])
            continue;
        mk__worker_close(s->workers[i]);
        mk_account_free(NULL, s->workers[i], sizeof(*s->workers[i]));
        s->workers[i] = NULL;
    }
}

static void stop_workers(struct mk_server *s)
{
    for (unsigned i = 0; i < s->n_workers; i++)
        if (s->workers[i])
            mk__worker_stop(s->workers[i]);
}

int mk_server_start(struct mk_server *s)
{
    if (!s->generation.settings)
        return -EINVAL;
    int err = allocate(s);
    if (err < 0)
        return err;
    err = open_listeners(s);
    if (err < 0) {
        close_listeners(s);
        return err;
    }
    mk__conf_settle(s->generation.conf);
    mk__jobs_open(&s->jobs, (unsigned)s->generation.settings->disk_threads);
    for (unsigned i = 0; i < s->n_workers && err == 0; i++)
        err = open_worker(s, i);
    if (err < 0) {
        mk_log_error("cannot start %u workers: %s", s->n_workers, strerror(-err));
        stop_workers(s);
        close_workers(s);
        close_listeners(s);
        return err;
    }
    set_running(s, true);
    say_where(s);
    return 0;
}

void mk_server_stop(struct mk_server *s)
{
    if (!s->running)
        return;
#ifndef MK_LEAN
    if (s->generation.settings->stop_delay_ms)
        mk_log_info("answering as before for another %u ms (StopDelay)", s->generation.settings->stop_delay_ms);
#endif
    for (unsigned i = 0; i < s->n_workers; i++)
        mk__worker_drain(s->workers[i]);
    close_workers(s);
    close_listeners(s);
}

void mk_server_stop_now(struct mk_server *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->running)
        stop_workers(s);
    pthread_mutex_unlock(&s->lock);
}

/* ── about this build ── */

#ifdef MK_NO_MANUAL
int mk_reference(struct mk_buf *out)
{
    mk_buf_addf(out, "This build leaves the manual out; docs/reference/configuration.md is the same text.\n");
    return out->err;
}
#else
int mk_reference(struct mk_buf *out)
{
    struct mk__conf *conf = mk__conf_new();
    int err = conf ? mk__generation_declare_all(conf) : -ENOMEM;
    if (err == 0) {
        mk__conf_reference(conf, out);
        err = out->err;
    }
    if (conf)
        mk__conf_free(conf);
    return err;
}
#endif

static void print_plugin(const struct mk_plugin *plugin, void *ctx)
{
    mk_buf_addf(ctx, "    %-10s %s  %s\n", plugin->name, plugin->version, plugin->summary);
}

const char *mk_version(void)
{
    return MK__VERSION;
}

void mk_build_info(struct mk_buf *out)
{
    mk_buf_addf(out, "monkey %s\nbuild: %s, %s\n", MK__VERSION, MK__BUILD_TYPE, MK__BUILD_COMPILER);
    if (sizeof(MK__BUILD_SANITIZERS) > 1)
        mk_buf_addf(out, "sanitizers: %s\n", MK__BUILD_SANITIZERS);
    mk_buf_addf(out, "plugins:\n");
    for (const struct mk_plugin *const *p = mk__builtin_plugins; *p; p++)
        print_plugin(*p, out);
    if (!MK__MODULES)
        return;
    mk_buf_addf(out, "plugins in %s:\n", mk__plugin_folder());
    mk__plugin_each_module(print_plugin, out);
}
