// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a run:
 *
 *     LOOKUP ─► (RECEIVING) ─► (WAITING) ─► STARTING ─► HEAD ─► BODY ─► OVER
 *        └──────────┴──────────────┴───────────┴─────────┴── an error, or the client leaves ──► OVER
 *
 * The request may end before the process has, and the other way round: the struct stays for both.
 */
#include "cgi.h"

#include <monkey/kit/open_file.h>

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { GRACE_MS = 2000, SLACK_MS = 15000 };

static unsigned get_running_max(const struct run *r)
{
    return (unsigned)r->conf->processes_max;
}

/* ── the end ── */

static void close_all(struct run *r)
{
    mk_timer_cancel(&r->timer);
    run_input_release(r);
    run_output_release(r);
    mk_buf_release(&r->head);
    run_close_spool(&r->received);
    run_close_spool(&r->kept);
}

static void free_slot(struct run *r)
{
    if (!r->has_slot)
        return;
    r->has_slot = false;
    counters_add(r->worker, COUNT_RUNNING, -1);
    slots_free(r->slots);
}

static void free_run(struct run *r)
{
    struct process *process = r->thread->process;
    slots_cancel(&r->waiter);
    free_slot(r);
    slots_put(&process->slots, r->slots);
    mk_list_del(&r->node);
    mk_account_free(r->thread->account, r, sizeof(*r));
}

static bool is_needed(const struct run *r)
{
    return r->req || r->has_child || r->spools_open;
}

/* At the end of a turn, so that no function of the run is on the stack. */
static void release_run(struct mk_task *task)
{
    struct run *r = MK_CONTAINER_OF(task, struct run, task);
    struct mk_worker *worker = r->worker;
    if (is_needed(r))
        return;
    close_all(r);
    free_run(r);
    mk_worker_put(worker);
}

void run_release(struct run *r)
{
    if (!is_needed(r))
        mk_task_schedule(r->loop, &r->task);
}

/* The worker is not put: it stops, although it is held. */
void runs_stop(struct thread *thread, const struct mk_worker *worker)
{
    MK_LIST_EACH_ITEM(&thread->runs, struct run, node, r) {
        if (r->worker != worker)
            continue;
        mk_task_cancel(&r->task);
        mk_child_drop(&r->child);
        r->has_child = false;
        close_all(r);
        free_run(r);
    }
}

/* Ends the process, if it runs. */
static void stop_child(struct run *r)
{
    if (!r->has_child || r->is_stopped)
        return;
    r->is_stopped = true;
    mk_child_stop(&r->child, GRACE_MS);
    if (r->has_ended)
        run_close_child(r); /* what it has left behind is killed */
}

void run_close_child(struct run *r)
{
    mk_child_close(&r->child);
    r->has_child = false;
    free_slot(r);
}

/* The exchange of the server ends, complete or not. */
static void leave_request(void *arg)
{
    struct run **owner = arg, *r = *owner;
    if (!r)
        return;
    r->req = NULL;
    r->errors.req = NULL;
    slots_cancel(&r->waiter);
    run_input_release(r);
    run_close_spool(&r->received);
    run_close_spool(&r->kept);
    if (!r->is_complete) {
        run_close_fd(r, &r->out, &r->out_is_watched);
        stop_child(r);
    }
    r->phase = OVER;
    run_touch(r);
    run_release(r);
}

/* ── waits ── */

void run_touch(struct run *r)
{
    bool waits_for_client =
        r->req && ((r->phase == BODY && !r->out_is_watched && !r->out_ended) || run_input_awaits_client(r));
    if (r->phase <= WAITING || r->awaits_status || r->has_last_wait)
        return;
    if (waits_for_client || !r->has_child || r->is_stopped) {
        mk_timer_cancel(&r->timer);
    } else {
        r->has_last_wait = r->is_complete || r->has_all; /* what it writes from now on gives it no more time */
        mk_timer_arm(r->loop, &r->timer, r->conf->timeout_ms);
    }
    if (r->req && r->phase < BODY)
        mk_request_wait(r->req, r->conf->timeout_ms + SLACK_MS);
}

static void end_late_wait(struct run *r)
{
    counters_add(r->worker, COUNT_REFUSED, 1);
    slots_cancel(&r->waiter);
    mk_request_log(r->req, MK_LOG_WARN, "cgi: no script of %.*s has ended within %u ms, and MaxProcesses are %u",
                   MK_STR_ARG(r->conf->match.text), r->conf->queue_timeout_ms, get_running_max(r));
    run_fail(r, 503);
}

static void on_timer(struct mk_timer *timer)
{
    struct run *r = MK_CONTAINER_OF(timer, struct run, timer);
    if (r->phase == WAITING) {
        end_late_wait(r);
        return;
    }
    if (r->awaits_status) {
        run_output_finish(r);
        return;
    }
    const char *what = r->has_last_wait ? "its response was complete" : "neither output nor input";
    r->is_late = true;
    counters_add(r->worker, COUNT_TIMEOUTS, 1);
    if (r->req)
        mk_request_log(r->req, MK_LOG_ERROR, "%s: %s for %u ms (Timeout): it is ended", r->prefix, what,
                       r->conf->timeout_ms);
    else
        mk_host_log(r->errors.host, MK_LOG_ERROR, "%s: %s for %u ms (Timeout): it is ended", r->prefix, what,
                    r->conf->timeout_ms);
    run_fail(r, 504);
}

void run_fail(struct run *r, int status)
{
    bool has_head = r->phase == BODY;
    if (status >= 500 && status != 503 && !r->is_late)
        counters_add(r->worker, COUNT_FAILURES, 1);
    r->phase = OVER;
    r->awaits_status = false;
    r->next = NULL;
    run_input_release(r);
    run_close_fd(r, &r->out, &r->out_is_watched);
    stop_child(r);
    if (!r->has_child)
        free_slot(r);
    mk_timer_cancel(&r->timer);
    if (r->req && !r->is_complete && has_head) {
        r->is_truncated |= !r->has_all; /* after what is kept */
        mk_response_wake(r->req);
    } else if (r->req && !r->is_complete) {
        r->is_complete = true;
        mk_response_error(r->req, status);
    } else {
        run_release(r);
    }
}

/* ── descriptors and spools ── */

void run_close_fd(struct run *r, struct mk_event *event, bool *is_watched)
{
    if (event->fd < 0)
        return;
    run_watch(r, event, is_watched, 0);
    close(event->fd);
    event->fd = -1;
}

int run_watch(struct run *r, struct mk_event *event, bool *is_watched, uint32_t events)
{
    int err = 0;
    if (events && !*is_watched)
        err = mk_event_add(r->loop, event, events);
    else if (!events && *is_watched)
        mk_event_del(r->loop, event);
    *is_watched = events && err == 0;
    return err;
}

static void note_freed(void *ctx)
{
    struct run *r = ctx;
    r->spools_open--;
    run_release(r);
}

int run_open_spool(struct run *r, struct run_spool *s, const struct mk_gateway_buffer *sizes, bool is_kept,
                   void (*ready)(struct mk_spool *spool, unsigned what, void *ctx))
{
    const struct mk_spool_options options = {.budget = mk_generation_spools(mk_worker_generation(r->worker)),
                                             .loop = r->loop,
                                             .account = r->thread->account,
                                             .memory_max = (size_t)sizes->memory_bytes,
                                             .file_max = sizes->file_bytes,
                                             .is_kept = is_kept,
                                             .disk_is_optional = !is_kept,
                                             .ready = ready,
                                             .freed = note_freed,
                                             .ctx = r};
    int err = mk_spool_open(&options, &s->spool);
    if (err < 0)
        s->spool = NULL;
    else
        r->spools_open++;
    return err;
}

void run_close_spool(struct run_spool *s)
{
    struct mk_spool *spool = s->spool;
    s->spool = NULL;
    if (spool)
        mk_spool_close(spool);
}

/* ── the way to the process ── */

static void on_place(struct slots_waiter *w)
{
    struct run *r = MK_CONTAINER_OF(w, struct run, waiter);
    r->has_slot = true;
    counters_add(r->worker, COUNT_RUNNING, 1);
    run_start(r);
}

void run_enter(struct run *r)
{
    r->waiter.loop = r->loop;
    r->waiter.fn = on_place;
    r->phase = WAITING;
    r->has_last_wait = false; /* of the script before */
    int err = slots_take(r->slots, &r->waiter, (unsigned)r->conf->queue_max);
    if (err == MK_AGAIN) {
        mk_request_wait(r->req, r->conf->queue_timeout_ms + SLACK_MS);
        mk_timer_arm(r->loop, &r->timer, r->conf->queue_timeout_ms);
        return;
    }
    if (err == 0) {
        on_place(&r->waiter);
    } else {
        counters_add(r->worker, COUNT_REFUSED, 1);
        mk_request_log(r->req, MK_LOG_WARN, "cgi: %u scripts of %.*s run (MaxProcesses) and %u requests wait (Queue)",
                       get_running_max(r), MK_STR_ARG(r->conf->match.text), (unsigned)r->conf->queue_max);
        run_fail(r, 503);
    }
}

/* ── the script ── */

static void respond_missing(struct run *r, int err)
{
    int status = mk_open_file_get_status(err);
    if (status != 404)
        mk_request_log(r->req, MK_LOG_ERROR, "cgi: cannot open the script of %.*s: %s", MK_STR_ARG(r->path),
                       strerror(-err));
    run_fail(r, status);
}

/* Keeps what was found. Returns 0 or -ENOMEM. */
static int keep_script(struct run *r, const struct mk_cgi_script *script)
{
    struct mk_arena *arena = mk_request_arena(r->req);
    struct mk_cgi_params *p = &r->params;
    struct mk_str path = r->path;
    p->script_name = mk_str(path.p, path.len - script->info.len);
    p->path_info = mk_str(path.p + p->script_name.len, script->info.len);
    p->script_filename = mk_arena_dup(arena, mk_str_c(script->file));
    p->document_root = mk_arena_dup(arena, mk_str_c(script->root));
    p->extras = &r->conf->env;
    p->pass_authorization = r->conf->authorization;
    snprintf(r->prefix, sizeof(r->prefix), "cgi: %.*s", (int)sizeof(r->prefix) - 8, script->file);
    return p->script_filename.p && p->document_root.p ? 0 : -ENOMEM;
}

/* Receives the body first if that is needed, and waits for a place. */
static void continue_with_script(struct run *r)
{
    if (!r->params.is_redirected && run_input_needs_receiving(r))
        run_input_receive(r);
    else
        run_enter(r);
}

/* Redirects are of the same request. */
static void count_request(const struct run *r)
{
    if (!r->redirects)
        counters_add(r->worker, COUNT_REQUESTS, 1);
}

/* Lets the request go: another response is made for it, or it comes again as a run of its own. */
static void abandon_request(struct run *r)
{
    *r->owner = NULL;
    r->req = NULL;
    r->errors.req = NULL;
    r->phase = OVER;
    run_release(r);
}

/* Rules and logins hold for the script, also where a PATH_INFO follows it. Returns whether it is run now. */
static bool may_run(struct run *r, struct mk_str name)
{
    if (r->params.is_redirected)
        return run_redirect_allows(r, name);
    bool allowed = mk_cgi_may_run(r->req, name);
    if (!allowed)
        abandon_request(r);
    return allowed;
}

static void take_script(struct mk_request *req, int err, const struct mk_cgi_script *script, void *ctx)
{
    struct run *r = ctx;
    (void)req;
    if (err == 0 && script->info.len && !may_run(r, mk_str(r->path.p, r->path.len - script->info.len)))
        return;
    count_request(r);
    if (err == 0)
        err = keep_script(r, script);
    if (err < 0) {
        respond_missing(r, err);
        return;
    }
    if (!script->may_run && !cgi_conf_find_interpreter(r->conf, mk_str_c(script->file))) {
        mk_request_log(r->req, MK_LOG_ERROR,
                       "%s: the server's user may not execute it: set its x bit, or name an Interpreter for it",
                       r->prefix);
        run_fail(r, 403);
        return;
    }
    continue_with_script(r);
}

size_t run_get_prefix_len(const struct cgi_conf *conf, struct mk_str path)
{
    struct mk_str match = conf->match.text;
    size_t n = match.len - (match.len && match.p[match.len - 1] == '/');
    return n < path.len ? n : path.len;
}

/* Uses the one script of the section, whose path is that of Match. */
static void take_section_script(struct run *r)
{
    struct mk_cgi_params *p = &r->params;
    size_t prefix = run_get_prefix_len(r->conf, r->path);
    p->script_name = mk_str(r->path.p, prefix);
    p->path_info = mk_str_after(r->path, prefix);
    p->script_filename = r->conf->script;
    p->extras = &r->conf->env;
    p->pass_authorization = r->conf->authorization;
    snprintf(r->prefix, sizeof(r->prefix), "cgi: %.*s", (int)sizeof(r->prefix) - 8, r->conf->script.p);
    continue_with_script(r);
}

int run_find_place(const struct cgi_conf *conf, const struct mk_host *host, struct mk_str *path,
                   struct mk_cgi_place *ret)
{
    *ret = (struct mk_cgi_place){.host = host, .root = conf->root.len ? conf->root : MK_STR_NONE};
    if (!conf->root.len)
        return !conf->user_dirs && mk_str_starts(*path, MK_STR("/~")) ? -ENOENT : 0;
    size_t prefix = run_get_prefix_len(conf, *path);
    *path = prefix < path->len ? mk_str_after(*path, prefix) : MK_STR("/");
    return 0;
}

void run_find(struct run *r)
{
    struct mk_cgi_place place;
    struct mk_str path = r->path;
    r->phase = LOOKUP;
    if (r->conf->script.len) {
        count_request(r);
        take_section_script(r);
        return;
    }
    int err = run_find_place(r->conf, mk_request_host_conf(r->req), &path, &place);
    if (err == 0)
        err = mk_cgi_lookup(r->req, &place, MK_CGI_FIND_WALK, path, take_script, r);
    if (err < 0) {
        count_request(r);
        respond_missing(r, err);
    }
}

/* ── the beginning ── */

static struct run *make_run(struct mk_request *req, struct thread *thread, const struct section *section)
{
    struct run **owner = mk_arena_zalloc(mk_request_arena(req), sizeof(struct run *));
    if (!owner || mk_arena_defer(mk_request_arena(req), leave_request, owner) < 0)
        return NULL;
    struct run *r = mk_account_alloc(thread->account, sizeof(*r));
    if (!r)
        return NULL;
    *r = (struct run){.req = req,
                      .owner = owner,
                      .thread = thread,
                      .worker = mk_worker_get(mk_request_worker(req)),
                      .loop = mk_request_loop(req),
                      .conf = section->conf,
                      .slots = section->slots,
                      .path = mk_request_path(req),
                      .in = {.fd = -1},
                      .out = {.fd = -1},
                      .err = {.fd = -1}};
    slots_get(&thread->process->slots, r->slots);
    mk_timer_init(&r->timer, on_timer);
    mk_task_init(&r->task, release_run);
    mk_list_init(&r->node);
    mk_list_add(&thread->runs, &r->node);
    snprintf(r->prefix, sizeof(r->prefix), "cgi");
    r->errors = (struct mk_cgi_stderr){.prefix = r->prefix, .req = req, .host = mk_request_host_conf(req)};
    *owner = r;
    return r;
}

void run_begin(struct mk_request *req, struct thread *thread, const struct section *section)
{
    struct run *r = make_run(req, thread, section);
    if (!r) {
        mk_response_error(req, 503);
        return;
    }
    r->params.has_length = mk_request_body_length(req, &r->params.length);
    r->has_body = !r->params.has_length || r->params.length;
    mk_request_end_with_client(req);
    run_find(r);
}
