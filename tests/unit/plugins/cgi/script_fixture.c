// SPDX-License-Identifier: Apache-2.0
/* Processes and requests of tests (script_fixture.h). */
#include "script_fixture.h"

#include "base/counters.h"
#include "loop/job.h"
#include "server/generation/generation_load.h"
#include "server/worker/thread.h"

#include <monkey/hooks.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CONNS_MAX = 1000, BYTES_MAX = 65536 };

struct mk_test_fixture w;
struct script scripts[SCRIPTS_MAX];
unsigned n_scripts, n_channels;
int start_err, lookup_err, access_status, opened_fd;
bool may_run;
const char *script_file, *script_info;
char looked_up[256];

static struct {
    struct mk_generation generation;
    struct mk_worker *worker;
    struct mk__limits limits;
    struct mk__thread thread;
    struct mk__http_app app;
    struct mk_thread_pool jobs;
    mk__cell *cells;
    uint32_t connections;
} site;

/* ── calls in their place ── */

static struct script *find_script(const struct mk_child *child)
{
    struct script *s = scripts;
    while (s < scripts + n_scripts && s->child != child)
        s++;
    assert_true(s < scripts + n_scripts);
    return s;
}

int mk_child_starter_new(struct mk_child_starter **ret)
{
    *ret = (struct mk_child_starter *)&site;
    return 0;
}

void mk_child_starter_free(struct mk_child_starter *starter)
{
    (void)starter;
}

int mk_child_channel_open(struct mk_child_starter *starter, struct mk_loop *loop, struct mk_account *account,
                          struct mk_child_channel **ret)
{
    assert_true(starter && loop && account);
    n_channels++;
    *ret = (struct mk_child_channel *)&site;
    return 0;
}

void mk_child_channel_close(struct mk_child_channel *channel)
{
    (void)channel;
}

int mk_child_start(struct mk_child *child, struct mk_child_channel *channel, struct mk_worker *worker,
                   const struct mk_child_events *events, const struct mk_child_options *options)
{
    assert_true(channel && worker);
    if (start_err) {
        for (int i = 0; i < 3; i++)
            if (options->fds[i] >= 0)
                close(options->fds[i]);
        return start_err;
    }
    assert_true(n_scripts < SCRIPTS_MAX);
    struct script *s = &scripts[n_scripts++];
    *s = (struct script){.child = child, .fds = {options->fds[0], options->fds[1], options->fds[2]}};
    *child = (struct mk_child){.channel = channel, .events = events, .pidfd = -1};
    snprintf(s->path, sizeof(s->path), "%s", options->path);
    snprintf(s->folder, sizeof(s->folder), "%s", options->folder);
    mk_buf_init(&s->args, BYTES_MAX);
    mk_buf_init(&s->env, BYTES_MAX);
    mk_buf_adds(&s->args, options->args);
    mk_buf_adds(&s->env, options->env);
    return 0;
}

static void forget_script(struct script *s)
{
    for (int i = 0; i < 3; i++)
        if (s->fds[i] >= 0)
            close(s->fds[i]);
    s->fds[0] = s->fds[1] = s->fds[2] = -1;
    s->child->channel = NULL;
    s->child = NULL;
}

void mk_child_stop(struct mk_child *child, uint32_t grace_ms)
{
    struct script *s = find_script(child);
    s->stops++;
    s->grace_ms = grace_ms;
}

void mk_child_close(struct mk_child *child)
{
    if (child->channel)
        forget_script(find_script(child));
}

void mk_child_drop(struct mk_child *child)
{
    if (!child->channel)
        return;
    find_script(child)->is_dropped = true;
    mk_child_close(child);
}

int mk_child_pid(const struct mk_child *child)
{
    (void)child;
    return 1;
}

void mk_child_print_status(int status, struct mk_buf *out)
{
    mk_buf_addf(out, "status %d", status);
}

const char *mk_child_step_text(enum mk_child_step step)
{
    (void)step;
    return "cannot be started";
}

int mk_cgi_lookup(struct mk_request *req, const struct mk_cgi_place *place, enum mk_cgi_find how, struct mk_str path,
                  mk_cgi_found_fn fn, void *ctx)
{
    static struct mk_cgi_script found;
    assert_true(place->host && how == MK_CGI_FIND_WALK);
    snprintf(looked_up, sizeof(looked_up), "%.*s", MK_STR_ARG(path));
    found = (struct mk_cgi_script){.info = mk_str_c(script_info), .may_run = may_run, .root = "/tmp"};
    snprintf(found.file, sizeof(found.file), "%s", script_file);
    fn(req, lookup_err, &found, ctx);
    return 0;
}

/* The loop is none of a thread. */
void mk_worker_note_descriptor(struct mk_worker *worker, int fd)
{
    assert_true(worker && fd >= -1);
}

/* ── a plugin with rules and files ── */

static int allows_path(struct mk_request *req, struct mk_str path)
{
    assert_true(path.p[path.len] == '\0');
    if (access_status)
        mk_request_deny(req, access_status);
    return 1;
}

static int open_path(const struct mk_host *host, struct mk_str path, uint32_t flags)
{
    (void)flags;
    assert_true(host && path.len);
    return opened_fd;
}

static const struct mk_path_hooks path_hooks = {
    .allows_path = allows_path,
    .open_path = open_path,
};

static const struct mk_plugin rules = {
    MK_PLUGIN_HEAD("rules", "1.0", "rules and files of tests"),
    .paths = &path_hooks,
};

/* ── the environment ── */

static void load(const char *keys)
{
    static char text[4096];
    static struct mk__program program;
    snprintf(text, sizeof(text), "[SERVER]\n    Listen 127.0.0.1:0\n[HOST h]\n[CGI]\n    Match /cgi\n    Root /tmp\n%s",
             keys);
    program = (struct mk__program){.text = mk_str_c(text), .plugins = {&rules}, .n_plugins = 1};
    const struct mk__generation_source source = {.program = &program};
    int err = mk__generation_load(&site.generation, &source);
    if (err < 0) {
        struct mk_buf out;
        mk_buf_init(&out, BYTES_MAX);
        mk__generation_diagnostics(&site.generation, &out);
        fail_msg("%s", mk_buf_cstr(&out));
    }
}

static void open_worker(void)
{
    struct mk_worker *worker = mk__worker_new(&site.generation);
    assert_non_null(worker);
    worker->loop = &w.loop;
    worker->account = &w.account;
    worker->cells = &site.cells;
    worker->connections = &site.connections;
    assert_int_equal(mk__worker_start(worker), 0);
    site.worker = site.thread.worker = worker;
}

void script_fixture_open(const char *keys)
{
    memset(&site, 0, sizeof(site));
    n_scripts = n_channels = 0;
    start_err = lookup_err = access_status = 0;
    opened_fd = -ENOENT;
    may_run = true;
    script_file = "/tmp/s";
    script_info = "";
    looked_up[0] = '\0';
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(mk__counters_memory_open(), 0);
    load(keys);
    mk__job_open_pool(&site.jobs, 1);
    assert_int_equal(mk_test_fixture_open(&w, &site.jobs), 0);
    assert_int_equal(mk_test_http_open(&w), 0);
    site.limits.open = CONNS_MAX;
    site.thread.limits = &site.limits;
    site.thread.receiver.assigned = CONNS_MAX;
    site.app = mk__request_hooks_app;
    site.app.on_accept = NULL;
    w.http.app = &site.app;
    w.http.app_ctx = &site.thread;
    mk_test_pass(&w, 1); /* the loop reads the clock */
    open_worker();
}

void script_fixture_close(void)
{
    mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&site.jobs);
    mk_test_settle(&w);
    mk__worker_free(site.worker);
    mk_test_fixture_close(&w);
    mk__generation_release(&site.generation);
    mk__counters_memory_close();
    for (unsigned i = 0; i < n_scripts; i++) {
        assert_null(scripts[i].child);
        mk_buf_release(&scripts[i].args);
        mk_buf_release(&scripts[i].env);
    }
}

/* ── requests and processes ── */

struct mk_test_client *ask(const char *text)
{
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(text));
    assert_non_null(c);
    mk_test_settle(&w);
    return c;
}

void expect_status(struct mk_test_client *c, int status)
{
    char line[16];
    snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
    struct mk_str got = mk_test_received(c);
    if (!mk_str_starts(got, mk_str_c(line)))
        fail_msg("not %d: %s", status, got.p);
}

struct run *run_of(const struct script *s)
{
    return MK_CONTAINER_OF(s->child, struct run, child);
}

void report_start(struct script *s, int err)
{
    struct mk_child *child = s->child;
    if (err < 0)
        forget_script(s);
    child->events->started(child, err, MK_CHILD_EXEC);
    mk_test_settle(&w);
}

/* Tells the run of what has happened at a pipe that it watches. */
static void fire(struct mk_event *event, bool is_watched, uint32_t events)
{
    if (is_watched)
        event->ready(event, events);
    mk_test_settle(&w);
}

void print(struct script *s, const char *text)
{
    struct run *r = run_of(s);
    assert_int_equal(write(s->fds[1], text, strlen(text)), strlen(text));
    fire(&r->out, r->out_is_watched, EPOLLIN);
}

void close_output(struct script *s)
{
    struct run *r = run_of(s);
    close(s->fds[1]);
    s->fds[1] = -1;
    fire(&r->out, r->out_is_watched, EPOLLIN);
}

void end_script(struct script *s, int status)
{
    struct mk_child *child = s->child;
    if (s->fds[1] >= 0)
        close_output(s);
    child->events->ended(child, status);
    mk_test_settle(&w);
}

ssize_t read_input(struct script *s, char *to, size_t size)
{
    struct run *r = run_of(s);
    fcntl(s->fds[0], F_SETFL, O_NONBLOCK);
    ssize_t n = read(s->fds[0], to, size - 1);
    if (n < 0)
        return -errno;
    to[n] = '\0';
    fire(&r->in, r->in_is_watched, EPOLLOUT);
    return n;
}

const char *get_variable(const struct script *s, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = s->env.data; at < s->env.data + s->env.len; at += strlen(at) + 1)
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return at + len + 1;
    return NULL;
}
