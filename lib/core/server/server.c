// SPDX-License-Identifier: Apache-2.0
/*
 * The server of <monkey/monkey.h>: loads a generation, opens its listeners, starts and stops its workers. All of it
 * runs in the main thread, which serves no connections.
 */
#include <monkey/base/file.h>
#include <monkey/hooks.h>
#include <monkey/monkey.h>

#include "server/server.h"

#include "server/worker/caller_thread.h"
#include "server/check.h"
#include "server/counts.h"
#include "server/generation/generation_load.h"
#include "server/plugins/module.h"
#include "server/plugins/plugin_sockets.h"
#include "server/listen/standard_fds.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── calls at the wrong time, or by the wrong process or thread ── */

static const char in_hook[] = "a handler or hook must not start, reload or stop its server";

int mk__server_refuse(struct mk_server *s, int err, const char *sentence)
{
    s->refusal = sentence;
    mk_log_error("%s", sentence);
    assert(!"the program must not make this call now: see the log");
    return err;
}

/* Returns whether this is the thread of a worker. */
static bool is_worker(struct mk_server *s)
{
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->n_workers && !mk__server_is_in_caller(s); i++)
        found |= s->workers[i]->running && pthread_equal(s->workers[i]->thread, pthread_self());
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* Refuses a call within another one, which a hook makes, or during one of another thread. */
static int refuse_second_call(struct mk_server *s)
{
    if (s->caller == gettid())
        return mk__server_refuse(s, -EDEADLK, in_hook);
    return mk__server_refuse(s, -EPERM, "another thread is within a call for the server: call it from one thread only");
}

int mk__server_begin_call(struct mk_server *s)
{
    if (!s)
        return -EINVAL;
    s->refusal = NULL;
    int err = s->caller ? refuse_second_call(s) : 0;
    if (err < 0 || !mk__server_is_running(s))
        return err;
    if (s->pid != getpid()) {
        s->refusal = "the server belongs to the process that has started it, not to its children";
        return -EPERM;
    }
    if (s->in_turn || is_worker(s))
        return mk__server_refuse(s, -EDEADLK, in_hook);
    if (mk__server_is_in_caller(s) && s->n_workers && !mk__caller_thread_is_current(s->workers[0]))
        return mk__server_refuse(s, -EPERM, "the server runs in the thread that has started it: only that may call it");
    return 0;
}

int mk__server_enter(struct mk_server *s)
{
    pid_t none = 0;
    int err = mk__server_begin_call(s);
    while (err == 0 && !atomic_compare_exchange_strong(&s->caller, &none, gettid())) {
        none = 0;
        err = mk__server_begin_call(s);
    }
    return err;
}

void mk__server_leave(struct mk_server *s)
{
    s->caller = 0;
}

/* ── configuring ── */

struct mk_server *mk_server_new(void)
{
    struct mk_server *s = mk_account_zalloc(NULL, sizeof(*s));
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    mk__standard_fds_get();
    mk__listeners_init(&s->listeners);
    s->balancer.limits = &s->limits;
    s->counts = mk__counters_memory_open() == 0;
    return s;
}

void mk_server_free(struct mk_server *s)
{
    if (!s || mk__server_begin_call(s) < 0)
        return; /* a server of another process is not freed: its threads are not here */
    if (mk__server_is_running(s)) {
        mk__server_refuse(s, 0, "mk_server_free(): the server still runs; it is stopped first");
        mk_server_stop(s);
    }
    if (s->control_thread)
        mk__control_thread_free(s->control_thread);
    mk__limits_release(&s->limits);
    mk__listeners_cancel(&s->listeners);
    mk__generation_free(&s->failed);
    mk__generation_free(&s->current);
    if (s->counts) {
        mk__counts_flush();
        mk__counters_memory_close();
    }
    if (s->embedded)
        s->embedded_ops->free(s->embedded);
    mk__standard_fds_put();
    pthread_mutex_destroy(&s->lock);
    mk_account_free(NULL, s, sizeof(*s));
}

/* Returns the folder of a file, in memory of the server. */
static const char *keep_folder(struct mk_server *s, const char *file)
{
    const char *slash = strrchr(file, '/');
    int len = slash ? (int)(slash + (slash == file) - file) : 1;
    snprintf(s->folder, sizeof(s->folder), "%.*s", len, slash ? file : ".");
    return s->folder;
}

void mk_server_configure(struct mk_server *s, const char *path)
{
    struct stat st;
    bool is_file = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    s->source.file = is_file ? path : NULL;
    s->source.dir = is_file ? keep_folder(s, path) : path;
}

void mk_server_one_shot(struct mk_server *s, const char *root)
{
    s->source.root = root;
    s->source.root_origin = "option --one-shot";
}

void mk_server_check_only(struct mk_server *s)
{
    s->source.check_only = true;
}

void mk_server_drops_root(struct mk_server *s)
{
    s->source.drops_root = true;
    s->source.was_root = geteuid() == 0;
}

void mk_server_check_after_root(struct mk_server *s)
{
    s->source.check_only = s->source.after_root = true;
}

void mk_server_check_only_supervised(struct mk_server *s)
{
    s->source.check_only_supervised = true;
}

int mk_server_set(struct mk_server *s, const char *section, const char *key, const char *value, const char *origin)
{
    if (!s)
        return -EINVAL;
    if (s->source.n_overrides == MK__OVERRIDES_MAX)
        return -ENOBUFS;
    s->is_stale = true;
    s->source.overrides[s->source.n_overrides++] = (struct mk__override){section, key, value, origin, false};
    return 0;
}

int mk_server_set_plugin(struct mk_server *s, const char *section, const char *key, const char *value,
                         const char *origin)
{
    int err = mk_server_set(s, section, key, value, origin);
    if (err == 0)
        s->source.overrides[s->source.n_overrides - 1].of_plugin = true;
    return err;
}

int mk__server_load(struct mk_server *s, struct mk_generation **ret_g)
{
    *ret_g = mk_account_alloc(NULL, sizeof(**ret_g));
    if (!*ret_g)
        return -ENOMEM;
    int err = mk__generation_load(*ret_g, &s->source);
    (*ret_g)->server = s;
    (*ret_g)->number = s->generations + 1; /* unless it is refused */
    return err;
}

static int load_current(struct mk_server *s)
{
    mk__generation_free(&s->current);
    s->is_stale = false;
    s->error = mk__server_load(s, &s->current);
    return s->error;
}

int mk_server_load(struct mk_server *s)
{
    int err = mk__server_enter(s);
    if (err < 0)
        return err;
    if (mk__server_is_running(s))
        err = mk__server_refuse(s, -EBUSY, "mk_server_load(): the server runs; mk_server_reload() loads anew");
    else
        err = load_current(s);
    mk__server_leave(s);
    return err;
}

void mk_server_problems(const struct mk_server *s, struct mk_buf *out)
{
    if (s->failed)
        mk__generation_diagnostics(s->failed, out);
    else if (s->current)
        mk__generation_diagnostics(s->current, out);
}

void mk_server_info(const struct mk_server *s, struct mk_server_info *ret_info)
{
    const struct mk__settings *settings = s->current ? s->current->settings : NULL;
    if (!settings) {
        *ret_info = (struct mk_server_info){.log_level = MK_LOG_INFO};
        return;
    }
    *ret_info = (struct mk_server_info){
        .error_log = settings->error_log.len ? settings->error_log.p : NULL,
        .log_level = (enum mk_log_level)settings->log_level,
        .pid_file = settings->pid_file.len ? settings->pid_file.p : NULL,
        .workers = s->current->workers,
    };
}

void mk_server_process(const struct mk_server *server, struct mk_server_process *ret)
{
    const struct mk__settings *s = server->current ? server->current->settings : NULL;
    *ret = (struct mk_server_process){0};
    if (!s)
        return;
    ret->supervisor = s->supervisor;
    ret->core_dumps = s->core_dumps;
    ret->user = s->user.name.p;
    ret->uid = s->user.id;
    ret->gid = s->group.name.p ? s->group.id : s->user.group;
}

int mk_server_check(struct mk_server *s)
{
    return s->current && s->current->settings ? mk__check_generation(s->current, s->is_own_fn, s->is_own_ctx) : -EINVAL;
}

void mk_server_on_check(struct mk_server *s, mk_server_is_own_fn fn, void *ctx)
{
    s->is_own_fn = fn;
    s->is_own_ctx = ctx;
}

/* ── listeners ── */

/* Says once in a process that paths are walked. */
static void log_openat2(void)
{
    static _Atomic bool is_logged;
    MK_BUF_ON_STACK(text, 300);
    if (mk_file_explain_openat2(&text) && !atomic_exchange(&is_logged, true))
        mk_log_warn("%s", mk_buf_cstr(&text));
}

void mk__server_log_listeners(struct mk_server *s)
{
    MK_LIST_EACH_ITEM(&s->listeners.open, struct mk__listener, node, one) {
        if (one->logged)
            continue;
        one->logged = true;
        MK_BUF_ON_STACK(text, 160);
        mk__addr_print(&one->addr, &text);
        mk_log_info("listening on %s", mk_buf_cstr(&text));
    }
}

/* ── running ── */

static bool uses_balancer(const struct mk_server *s)
{
    return s->current->settings->scheduler == MK__SCHEDULER_FAIR && !mk__server_is_in_caller(s);
}

static int open_listeners(struct mk_server *s, unsigned workers)
{
    unsigned nth;
    int err = mk__listeners_prepare(&s->listeners, s->current->settings, uses_balancer(s) ? 1 : workers, &nth);
    if (err == 0)
        return 0;
    mk__check_report_listener(s->current, nth, err);
    mk__listeners_cancel(&s->listeners);
    return err;
}

int mk__server_open_worker(struct mk_server *s, struct mk_generation *g, unsigned index, unsigned loops,
                           struct mk__thread **ret)
{
    struct mk__thread *t = mk_account_alloc(NULL, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->limits = &s->limits;
    int err = mk__thread_open(t, g, index, loops, &s->thread_pool, &s->listeners);
    if (err < 0)
        mk_account_free(NULL, t, sizeof(*t));
    else
        *ret = t;
    return err;
}

void mk__server_set_state(struct mk_server *s, enum mk__server_state state)
{
    pthread_mutex_lock(&s->lock);
    s->state = state;
    if (state == MK__SERVER_STOPPED)
        s->stop_requested = false;
    pthread_mutex_unlock(&s->lock);
}

static int start_balancer(struct mk_server *s)
{
    struct mk__balancer_update update;
    assert(s->control_thread);
    int err = mk__balancer_prepare(&update, &s->balancer, &s->listeners, s->n_workers);
    if (err == 0) {
        for (unsigned i = 0; i < s->n_workers; i++)
            update.workers[i] = &s->workers[i]->receiver;
        mk__balancer_apply(&update, &s->control_thread->loop);
        mk__balancer_open_pending(&update);
    }
    mk__balancer_free_update(&update);
    return err;
}

/* Connections that were handed off and not taken yet are closed by mk__thread_close(). */
static void stop_balancer(struct mk_server *s)
{
    struct mk__balancer_update update;
    if (!s->balancer.n_workers)
        return;
    mk__balancer_prepare(&update, &s->balancer, &s->listeners, 0);
    mk__balancer_apply(&update, &s->control_thread->loop);
    mk__balancer_free_update(&update);
}

static void close_workers(struct mk_server *s)
{
    for (unsigned i = 0; i < s->n_workers; i++)
        if (mk__server_is_in_caller(s))
            mk__caller_thread_finish(s->workers[i]);
        else
            mk__thread_join(s->workers[i]);
    mk__server_set_state(s, MK__SERVER_STOPPED);
    if (s->embedded)
        s->embedded_ops->stopped(s->embedded);
    stop_balancer(s);
    mk_thread_pool_close(&s->thread_pool); /* before the loops, which receive the messages of the last jobs */
    for (unsigned i = 0; i < s->n_workers; i++) {
        mk__thread_close(s->workers[i]);
        mk_account_free(NULL, s->workers[i], sizeof(*s->workers[i]));
    }
    mk_account_free(NULL, s->workers, 0);
    s->workers = NULL;
    s->n_workers = 0;
}

static void stop_workers(struct mk_server *s)
{
    for (unsigned i = 0; i < s->n_workers; i++)
        mk__thread_stop(s->workers[i]);
}

/* Called when all workers have been started: connections would be lost if a later one could not start. */
static int start_serving(struct mk_server *s)
{
    int err = mk__listeners_listen(&s->listeners, s->current->settings);
    if (err == 0)
        mk__counters_memory_serve();
    for (unsigned i = 0; i < s->n_workers && err == 0; i++)
        mk__thread_start_serving(s->workers[i]);
    return err == 0 && uses_balancer(s) ? start_balancer(s) : err;
}

static int start_worker(struct mk_server *s, struct mk__thread *t)
{
    if (mk__server_is_in_caller(s))
        return mk__caller_thread_start(t);
    int err = mk__thread_start(t);
    if (err == 0)
        mk__thread_set_affinity(t, s->current->settings->affinity);
    return err;
}

static int open_workers(struct mk_server *s, unsigned n)
{
    assert(n > 0 && !s->workers && !s->n_workers);
    s->workers = mk_account_alloc(NULL, n * sizeof(struct mk__thread *));
    if (!s->workers)
        return -ENOMEM;
    int err = uses_balancer(s) ? mk__control_thread_open(&s->control_thread) : 0;
    unsigned loops = uses_balancer(s) ? 0 : n;
    while (s->n_workers < n && err == 0) {
        struct mk__thread **t = &s->workers[s->n_workers];
        err = mk__server_open_worker(s, s->current, s->n_workers, loops, t);
        s->n_workers += err == 0;
        if (err == 0)
            err = start_worker(s, *t);
    }
    return err == 0 ? start_serving(s) : err;
}

int mk_server_listen(struct mk_server *s)
{
    if (!s->current || !s->current->settings)
        return -EINVAL;
    int err = open_listeners(s, s->current->workers);
    mk__server_set_state(s, err == 0 ? MK__SERVER_LISTENING : MK__SERVER_STOPPED);
    return err;
}

/* Returns whether FastOpen is on because the configuration says so: the default is used where the system allows it. */
static bool is_fast_open_set(const struct mk_generation *g)
{
    return g->settings->fast_open &&
           mk__conf_origin(g->set, g->settings, offsetof(struct mk__settings, fast_open), 0).source;
}

/* Checks that the server can be started now, and loads its configuration if that was not done. Returns 0 or -errno. */
static int prepare_start(struct mk_server *s)
{
    int err = 0;
    if (mk__server_is_running(s))
        err = mk__server_refuse(s, -EBUSY, "mk_server_start(): the server runs already");
    if (err == 0 && s->embedded && (!s->current || s->is_stale || s->error))
        err = load_current(s);
    if (err < 0)
        return err;
    if (!s->current)
        s->refusal = "nothing was loaded: call mk_server_text() or mk_server_load() before the start";
    s->pid = getpid();
    return s->current && s->current->settings && !s->current->check_only ? 0 : -EINVAL;
}

static int start_server(struct mk_server *s)
{
    int err = prepare_start(s);
    if (err < 0)
        return err;
    mk__limits_set(&s->limits, s->current->settings);
    unsigned n_workers = s->current->workers;
    err = s->state == MK__SERVER_LISTENING ? 0 : open_listeners(s, n_workers);
    mk__server_set_state(s, MK__SERVER_STOPPED); /* if this start fails, the next one opens them */
    if (err < 0)
        return err;
    mk__conf_free_texts(s->current->conf);
    s->generations = s->current->number;
    mk__counts_start();
    mk__counts_open_hosts(s->current);
    mk__job_open_pool(&s->thread_pool, (unsigned)s->current->settings->disk_threads);
    err = open_workers(s, n_workers);
    if (err < 0) {
        mk_log_error("cannot start %u workers: %s", n_workers, strerror(-err));
        stop_workers(s);
        close_workers(s);
        mk__listeners_cancel(&s->listeners);
        return err;
    }
    mk__listeners_commit(&s->listeners, s->current->settings);
    mk__server_set_state(s, MK__SERVER_RUNNING);
    mk__plugin_sockets_serve();
    if (is_fast_open_set(s->current) && !mk__listen_has_fast_open())
        mk_log_warn("FastOpen has no effect: net.ipv4.tcp_fastopen lacks the bit of value 2 "
                    "(sysctl -w net.ipv4.tcp_fastopen=3), or set FastOpen 0");
    log_openat2();
    mk__server_log_listeners(s);
    return 0;
}

int mk_server_start(struct mk_server *s)
{
    int err = mk__server_enter(s);
    if (err < 0)
        return err;
    mk__standard_fds_fill();
    err = start_server(s);
    s->error = err;
    mk__server_leave(s);
    return err;
}

static void stop_server(struct mk_server *s)
{
    bool handed_over = s->state >= MK__SERVER_HANDED_OVER;
    if (s->current->settings->shutdown_delay_ms && !handed_over)
        mk_log_info("answering as before for another %u ms (ShutdownDelay)", s->current->settings->shutdown_delay_ms);
    for (unsigned i = 0; i < s->n_workers; i++)
        (handed_over ? mk__thread_retire : mk__thread_drain)(s->workers[i]);
    if (s->balancer.n_workers)
        mk__balancer_drain(&s->balancer, handed_over ? 0 : s->current->settings->shutdown_delay_ms);
    if (s->control_thread && !handed_over)
        mk__control_thread_drain_workers_now(s->control_thread);
    if (s->control_thread)
        mk__control_thread_wait_workers(s->control_thread);
    close_workers(s);
    mk__listeners_release(&s->listeners);
}

int mk_server_stop(struct mk_server *s)
{
    int err = mk__server_enter(s);
    if (err < 0)
        return err;
    if (mk__server_is_running(s))
        stop_server(s);
    mk__server_leave(s);
    return 0;
}

void mk_server_reopen_logs(struct mk_server *s)
{
    mk__module_lock_hooks();
    for (unsigned i = 0; mk__server_is_running(s) && i < s->current->n_plugins; i++)
        if (MK_PLUGIN_HOOK(s->current->plugins[i], process, reopen))
            s->current->plugins[i]->process->reopen(s->current->plugin_states[i]);
    mk__module_unlock_hooks();
}

void mk__server_stop_workers(struct mk_server *s)
{
    stop_workers(s);
    if (s->control_thread)
        mk__control_thread_stop_workers(s->control_thread);
}

void mk_server_stop_now(struct mk_server *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    bool runs = mk__server_is_running(s);
    s->stop_requested = runs;
    if (runs && !s->reloading)
        mk__server_stop_workers(s);
    pthread_mutex_unlock(&s->lock);
}
