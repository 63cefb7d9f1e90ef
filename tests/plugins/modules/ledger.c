// SPDX-License-Identifier: Apache-2.0
/*
 * ledger: logs each call of its hooks, and fails where its configuration says so.
 */
#include <monkey/plugin.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

extern const struct mk_plugin mk_plugin_ledger;

struct settings {
    struct mk_str name, fail;
};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_STRING(struct settings, name, "Name", "first", "Of this generation."),
    MK_CONF_KEY_STRING(struct settings, fail, "Fail", NULL, "The hook that fails."),
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "LEDGER",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct settings),
     .keys = keys,
     .doc = MK_CONF_DOC("A ledger.")},
    {0},
};

static const struct settings *settings_of(const struct mk_generation *g)
{
    return mk_generation_conf(g, sections);
}

/* Logs a call. Returns 0, or -EIO if the configuration says so. */
static int note(const struct mk_generation *g, const char *moment)
{
    const struct settings *s = settings_of(g);
    mk_log_info("ledger: %.*s %s", MK_STR_ARG(s->name), moment);
    return mk_str_eq(s->fail, mk_str_c(moment)) ? -EIO : 0;
}

/* Of the process: what its workers have counted. */
struct totals {
    _Atomic unsigned requests;
};

static int start(void **ret_state)
{
    mk_log_info("ledger: start");
    *ret_state = calloc(1, sizeof(struct totals));
    return *ret_state ? 0 : -ENOMEM;
}

static void stop(void *state)
{
    const struct totals *totals = state;
    mk_log_info("ledger: %u requests", totals->requests);
    mk_log_info("ledger: stop");
    free(state);
}

static int start_generation(struct mk_generation *g, void **ret_state)
{
    *ret_state = g;
    if (mk_generation_is_check(g) && mk_str_eq(settings_of(g)->fail, MK_STR("check")))
        return -EIO;
    return note(g, "generation_start");
}

static void stop_generation(struct mk_generation *g, void *state)
{
    note(g, state == g ? "generation_stop" : "a state that is not its own");
}

static int start_host(struct mk_host *host, void **ret_state)
{
    struct mk_generation *g = mk_host_generation(host);
    *ret_state = host;
    return note(g, mk_generation_state(g, &mk_plugin_ledger) == g ? "host_start" : "a host before its generation");
}

static void stop_host(struct mk_host *host, void *state)
{
    note(mk_host_generation(host), state == host ? "host_stop" : "a state that is not its own");
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    const struct mk_generation *g = mk_worker_generation(worker);
    *ret_state = worker;
    int err = note(g, mk_worker_index(worker) < mk_generation_workers(g) ? "worker_start" : "one too many");
    return mk_worker_index(worker) == 1 && mk_str_eq(settings_of(g)->fail, MK_STR("worker 1")) ? -EIO : err;
}

static void serve_worker(struct mk_worker *worker, void *state)
{
    note(mk_worker_generation(worker), state == worker ? "worker_serve" : "a state that is not its own");
}

static void retire_worker(struct mk_worker *worker, void *state)
{
    note(mk_worker_generation(worker), state == worker ? "worker_retire" : "a state that is not its own");
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    note(mk_worker_generation(worker), state == worker ? "worker_stop" : "a state that is not its own");
}

/* The state of each worker is the worker, of this generation or of an older one. */
static void check_worker(struct mk_worker *worker, void *state, void *ctx)
{
    bool *right = ctx;
    *right = *right && state == worker && mk_worker_index(worker) < 64 && mk_worker_generation(worker);
}

static int see_request(struct mk_request *req)
{
    struct mk_worker *worker = mk_request_worker(req);
    bool right = mk_worker_state(worker, &mk_plugin_ledger) == worker && mk_worker_index(worker) < 64 &&
                 mk_worker_loop(worker) == mk_request_loop(req);
    mk_plugin_each_worker(&mk_plugin_ledger, check_worker, &right);
    struct totals *totals = mk_generation_plugin_state(mk_worker_generation(worker), &mk_plugin_ledger);
    totals->requests++;
    note(mk_worker_generation(worker), right ? "on_request" : "a state that is not its own");
    return MK_DECLINED;
}

static void see_end(struct mk_request *req)
{
    note(mk_worker_generation(mk_request_worker(req)), "on_done");
}

MK_PLUGIN(ledger) = {
    MK_PLUGIN_HEAD("ledger", "1.0", "notes its moments"),
    .sections = sections,
    .start = start,
    .stop = stop,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .host_start = start_host,
    .host_stop = stop_host,
    .worker_start = start_worker,
    .worker_serve = serve_worker,
    .worker_stop = stop_worker,
    .worker_retire = retire_worker,
    .on_request = see_request,
    .on_done = see_end,
};
