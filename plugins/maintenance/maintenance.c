// SPDX-License-Identifier: Apache-2.0
/*
 * maintenance: a host, or some of its paths, responds with 503 while a file exists (flag.c). The page is read at the
 * start, so that the response needs no disk.
 */
#include <monkey/base/file.h>
#include <monkey/counters.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/kit/variables.h>

#include "flag.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_maintenance;

enum { PAGE_BYTES_MAX = 64 * 1024 };

/* ── directives ── */

struct maintenance_exception {
    struct maintenance_exception *next;
    struct mk_pattern match;
};

struct maintenance_page {
    struct mk_str path, body;
};

struct maintenance_flag {
    struct mk_str path;
    bool is_relative; /* as it was written */
};

struct maintenance_conf {
    struct mk_pattern match;
    struct maintenance_flag file;
    struct mk_str text;
    struct maintenance_page page;
    uint32_t retry_after_ms;
    struct maintenance_exception *exceptions;
};

static int parse_page(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct maintenance_page *page = field;
    struct mk_file_bytes body;
    int err = mk_conf_read_path(value, value->text, &page->path, arena, error);
    if (err < 0)
        return err;
    err = mk_file_read(page->path.p, PAGE_BYTES_MAX, arena, &body);
    if (err == 0) {
        page->body = mk_str(body.data, body.len);
        return 0;
    }
    mk_buf_adds(error, MK_STR("the file "));
    mk_file_add_read_error(error, err, PAGE_BYTES_MAX);
    return err;
}

static int parse_flag(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct maintenance_flag *flag = field;
    if (!value->text.len)
        return mk_conf_fail(error, "the path of a file is needed");
    flag->is_relative = value->text.p[0] != '/';
    return mk_conf_read_path(value, value->text, &flag->path, arena, error);
}

static int parse_exception(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct maintenance_exception **first = field, *e = mk_arena_alloc(arena, sizeof(*e));
    if (!e)
        return -ENOMEM;
    e->next = *first;
    *first = e;
    return mk_conf_pattern(value, &e->match, arena, error);
}

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct maintenance_conf, match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.cgi`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    MK_CONF_KEY_CUSTOM(struct maintenance_conf, file, "FlagFile", NULL,
                       "While this file exists, requests for these paths get 503.", .flags = MK_CONF_REQUIRED,
                       .unit = "path", .parse = parse_flag),
    MK_CONF_KEY_CUSTOM(
        struct maintenance_conf, page, "Page", NULL,
        "The body of the response: a file of at most 64 KB, read at the start. Its extension gives the type.",
        .unit = "path", .parse = parse_page),
    MK_CONF_KEY_STRING(struct maintenance_conf, text, "Text", "Back soon.",
                       "The body if there is no `Page`; HTML if it begins with `<`."),
    MK_CONF_KEY_DURATION(struct maintenance_conf, retry_after_ms, "RetryAfter", "5m",
                         "After what time clients should try again.", .min = 1000, .max = 604800000, .unit = "s"),
    MK_CONF_KEY_CUSTOM(
        struct maintenance_conf, exceptions, "Except", NULL,
        "Paths that are served all the same, such as the page's images: a pattern as in `Match`, one in a line.",
        .flags = MK_CONF_REPEAT, .unit = "pattern", .parse = parse_exception),
    {0},
};

static void check_section(const struct mk_conf_check *check, void *section)
{
    const struct maintenance_conf *conf = section;
    struct mk_variable_found found;
    if (mk_variable_find_in(conf->text, &found))
        mk_conf_warn(check, offsetof(struct maintenance_conf, text),
                     "a text has no variables: \"%.*s\" is sent as it is", MK_STR_ARG(found.text));
}

static const struct mk_conf_foreign renamed[] = {
    MK_CONF_RENAMED("File", "FlagFile"),
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "MAINTENANCE",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT,
     .size = sizeof(struct maintenance_conf),
     .keys = keys,
     .foreign = renamed,
     .check = check_section,
     .doc = MK_CONF_DOC(
         "Takes the host, or some of its paths, out of service, and back, without a restart. The first section that "
         "matches a path is used.")},
    {0},
};

/* ── hosts ── */

/* A section of a host. */
struct maintenance_host {
    struct maintenance_host *next;
    const struct maintenance_conf *conf;
    const struct mk_counter *answered;
    struct flag_file flag;
    /* for the worker for which flag_begin_check() has returned true: */
    struct mk_worker *worker; /* of the request that waits; held */
    struct mk_job job;
    uint64_t checked_ms;
    _Atomic(struct mk_request *) waiting; /* NULL: its client has closed the connection */
};

static void stop_host(struct mk_host *host, void *state)
{
    (void)host;
    for (struct maintenance_host *h = state, *next; h; h = next) {
        next = h->next;
        mk_account_free(NULL, h, sizeof(*h));
    }
}

/* The sections of a host count together, as requests are counted. */
static const struct mk_counter *open_counter(const struct mk_host *host)
{
    static const struct mk_counter_info info = {"maintenance", "responses",
                                                "requests answered with 503 because of FlagFile, by host",
                                                MK_COUNTER_SUM};
    return mk_counter_open(&info, &(struct mk_counter_label){"host", mk_host_label(host)}, 1);
}

/* A file that is made in sites/ would be a host at the next reload. Returns 0 or -EINVAL. */
static int check_flag_path(struct mk_host *host, const struct maintenance_conf *conf)
{
    size_t key = offsetof(struct maintenance_conf, file);
    if (mk_generation_is_in_sites(mk_host_generation(host), conf->file.path)) {
        mk_host_error(host, conf, key, 0,
                      "%s would be a host, as each file of sites/ is: write a path in another folder",
                      conf->file.path.p);
        return -EINVAL;
    }
    if (conf->file.is_relative)
        mk_host_warn(host, conf, key, 0,
                     "a path without a slash at its start begins at the folder of this file: write all of it, such as "
                     "\"FlagFile %.*s\"",
                     MK_STR_ARG(conf->file.path));
    return 0;
}

/* Returns 0, or -EINVAL: the generation is refused, and one that a reload would replace keeps its flag. */
static int init_flag(struct mk_host *host, struct maintenance_host *h)
{
    if (!h->conf->file.path.len)
        return 0; /* the key is missing, or was reported as wrong */
    if (check_flag_path(host, h->conf) < 0)
        return -EINVAL;
    int err = flag_init(&h->flag);
    if (err == 0)
        return 0;
    mk_host_error(host, h->conf, offsetof(struct maintenance_conf, file), 0,
                  "it cannot be told whether this file exists: %s", strerror(-err));
    return -EINVAL;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    struct maintenance_host *first = NULL, **last = &first;
    int err = 0;
    for (const struct maintenance_conf *c = mk_host_conf(host, sections); c; c = mk_host_conf_next(host, sections, c)) {
        struct maintenance_host *h = *last = mk_account_alloc(NULL, sizeof(*h));
        if (!h) {
            stop_host(host, first);
            return -ENOMEM;
        }
        *h = (struct maintenance_host){.conf = c,
                                       .answered = open_counter(host),
                                       .flag = {.path = c->file.path.p, .host = host}};
        last = &h->next;
        err = err ? err : init_flag(host, h);
    }
    if (err == 0)
        err = mk_host_check_patterns(host, sections, offsetof(struct maintenance_conf, match));
    if (err < 0)
        stop_host(host, first);
    else
        *ret_state = first;
    return err;
}

static bool is_source(const struct mk_host *host, struct mk_str path)
{
    int fd = path.p && mk_host_has_sources(host) ? open(path.p, O_PATH | O_CLOEXEC) : -1;
    bool is_source = fd >= 0 && mk_host_is_source_fd(host, fd);
    if (fd >= 0)
        close(fd);
    return is_source;
}

/* A page may not be a program that another plugin runs. Returns 0 or -EINVAL. */
static int check_pages(struct mk_host *host)
{
    int err = 0;
    for (const struct maintenance_host *h = mk_host_state(host, &mk_plugin_maintenance); h; h = h->next)
        if (is_source(host, h->conf->page.path)) {
            mk_host_error(host, h->conf, offsetof(struct maintenance_conf, page), 0,
                          "this page is a program of another plugin, and never sent");
            err = -EINVAL;
        }
    return err;
}

static int check_generation(struct mk_generation *g, void *state)
{
    int result = 0;
    (void)state;
    for (struct mk_host *host = mk_generation_first_host(g); host; host = mk_host_next(host)) {
        int err = check_pages(host);
        result = err < 0 ? err : result;
    }
    return result;
}

/* ── requests ── */

static void send_unavailable(struct mk_request *req, const struct maintenance_host *state)
{
    const struct maintenance_conf *conf = state->conf;
    struct mk_str type = MK_STR("text/plain; charset=utf-8"), body = conf->text;
    if (mk_str_starts(body, MK_STR("<")))
        type = MK_STR("text/html; charset=utf-8");
    char seconds[16];
    if (conf->page.path.p) {
        type = mk_request_mime(req, conf->page.path);
        body = conf->page.body;
    }
    mk_counter_add(state->answered, mk_request_worker(req), 1);
    snprintf(seconds, sizeof(seconds), "%u", conf->retry_after_ms / 1000);
    mk_response_set_status(req, 503);
    mk_response_header_ref(req, MK_STR("Content-Type"), type);
    mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("no-store"));
    mk_response_header(req, MK_STR("Retry-After"), mk_str_c(seconds));
    mk_response_write_ref(req, body);
    mk_response_end(req);
}

/* Probes and the status, for those that may see it, tell of the server: they are not the site. */
static bool is_closed(struct mk_request *req, const struct maintenance_host *state)
{
    return state->flag.exists && !mk_request_is_claimed(req);
}

static void check_flag(struct mk_job *job)
{
    flag_check(&MK_CONTAINER_OF(job, struct maintenance_host, job)->flag);
}

static void finish_check(struct mk_job *job)
{
    struct maintenance_host *state = MK_CONTAINER_OF(job, struct maintenance_host, job);
    struct mk_request *req = atomic_exchange(&state->waiting, NULL);
    struct mk_worker *worker = state->worker;
    flag_end_check(&state->flag, state->checked_ms); /* from here on another worker may use the job */
    if (req && is_closed(req, state))
        send_unavailable(req, state);
    else if (req)
        mk_request_decline(req);
    mk_worker_put(worker);
}

struct maintenance_wait {
    struct maintenance_host *state;
    struct mk_request *req;
};

/* The request has ended. That may be long after the check, when another one waits. */
static void cancel_wait(void *ctx)
{
    struct maintenance_wait *wait = ctx;
    struct mk_request *req = wait->req;
    atomic_compare_exchange_strong(&wait->state->waiting, &req, NULL);
}

/* Checks the flag on a disk thread, and lets the request wait for it. Returns 0 or -errno (use the flag as it is). */
static int wait_for_check(struct mk_request *req, struct maintenance_host *state)
{
    assert(state->flag.next_check_ms == FLAG_CHECKING && !state->waiting);
    struct maintenance_wait *wait = mk_arena_alloc(mk_request_arena(req), sizeof(*wait));
    if (!wait)
        return -ENOMEM;
    *wait = (struct maintenance_wait){state, req};
    int err = mk_arena_defer(mk_request_arena(req), cancel_wait, wait);
    if (err < 0)
        return err;
    state->waiting = req;
    state->job.work = check_flag;
    state->job.done = finish_check;
    state->worker = mk_worker_get(mk_request_worker(req));
    err = mk_job_submit(mk_request_loop(req), &state->job);
    if (err < 0) {
        state->waiting = NULL;
        mk_worker_put(state->worker);
    }
    return err;
}

/* A pattern that fails on the path does not match: the path gets 503. */
static bool is_exempt(const struct maintenance_host *state, struct mk_str path)
{
    const struct maintenance_exception *e = state->conf->exceptions;
    while (e && mk_pattern_match(&e->match, path) <= 0)
        e = e->next;
    return e != NULL;
}

/* Finds the section for a path; NULL: none. Returns 0, or -errno: a pattern fails on the path. */
static int find_section(const struct mk_request *req, struct mk_str path, struct maintenance_host **ret_state)
{
    struct maintenance_host *h = mk_request_host_state(req, &mk_plugin_maintenance);
    const void *conf = NULL;
    int err = 0;
    if (h)
        err = mk_host_conf_match(mk_request_host_conf(req), sections, offsetof(struct maintenance_conf, match), path,
                                 &conf);
    while (h && h->conf != conf)
        h = h->next;
    *ret_state = h;
    return err;
}

/* Decides by the last check of the flag. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    struct maintenance_host *h;
    int err = find_section(req, path, &h);
    return err < 0 ? err : !h || !h->flag.exists || is_exempt(h, path);
}

static int answer_maintenance(struct mk_request *req)
{
    struct maintenance_host *state;
    if (find_section(req, mk_request_path(req), &state) < 0) {
        mk_response_error(req, 500); /* the path may be out of service */
        return 0;
    }
    if (!state || is_exempt(state, mk_request_path(req)))
        return MK_DECLINED;
    uint64_t now = mk_loop_now_ms(mk_request_loop(req));
    if (flag_begin_check(&state->flag, now)) {
        state->checked_ms = now;
        if (wait_for_check(req, state) == 0)
            return 0;
        flag_end_check(&state->flag, now);
    }
    if (!is_closed(req, state))
        return MK_DECLINED;
    send_unavailable(req, state);
    return 0;
}

static void explain_flag(const struct mk_host *host, struct mk_explain *e)
{
    const struct maintenance_host *h = mk_host_state(host, &mk_plugin_maintenance);
    const void *conf = NULL;
    if (e->phase != MK_EXPLAIN_REQUEST || !h)
        return;
    int err = mk_host_conf_match(host, sections, offsetof(struct maintenance_conf, match), e->path, &conf);
    while (h && h->conf != conf)
        h = h->next;
    if (err < 0)
        mk_explain_add(e, host, NULL, MK_EXPLAIN_ANSWERS,
                       "500, because a pattern of [MAINTENANCE] takes too much time for the path");
    else if (h && is_exempt(h, e->path))
        mk_explain_add(e, host, conf, MK_EXPLAIN_NOTE, "[MAINTENANCE] holds, but Except has the path");
    else if (h && e->claimed)
        mk_explain_add(e, host, conf, MK_EXPLAIN_NOTE,
                       "[MAINTENANCE] holds, but not for paths and listeners of [HEALTH] and [STATUS]");
    else if (h)
        mk_explain_add(e, host, conf, h->flag.exists ? MK_EXPLAIN_ANSWERS : MK_EXPLAIN_NOTE,
                       "[MAINTENANCE]: 503 while %s exists, which was %s when it was last checked", h->flag.path,
                       h->flag.exists ? "there" : "not there");
}

static const struct mk_path_hooks path_hooks = {.allows_path = allows_path};

static const struct mk_inspect_hooks inspect_hooks = {.explain = explain_flag};

MK_PLUGIN(maintenance) = {
    MK_PLUGIN_HEAD("maintenance", "2.0.0", "responds with 503 while a file exists"),
    .flags = MK_PLUGIN_CHECKS_ALL | MK_PLUGIN_STATE_NEEDED, /* Except is for paths as they are requested */
    .sections = sections,
    .host_start = start_host,
    .host_stop = stop_host,
    .generation_check = check_generation,
    .on_request = answer_maintenance,
    .paths = &path_hooks,
    .inspection = &inspect_hooks,
};
