// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a request to its handler (dispatch.h).
 */
#include "route/dispatch.h"

#include "common/api_error.h"
#include "common/current.h"
#include "compat/old.h"
#include "dthread/dthread.h"
#include "log/last_lines.h"
#include "request/output.h"
#include "request/request.h"
#include "service/counts.h"

#include <errno.h>

static const struct router *get_router(const struct dispatch *d)
{
    return router_of(d->dr->worker->service);
}

/* ── errors and redirects ── */

static void respond_error(struct dispatch *d, int status)
{
    struct duda_request *dr = d->dr;
    duda_error_fn fn = get_router(d)->error;
    if (!fn) {
        output_send_page(d->dr, status);
        return;
    }
    mk_response_set_status(dr->req, status);
    struct current outer = request_enter(dr);
    d->called = (uintptr_t)fn;
    fn(dr, status);
    current_leave(outer);
}

static void respond_not_found(struct dispatch *d)
{
    duda_request_fn fn = get_router(d)->not_found;
    if (!fn) {
        respond_error(d, 404);
        return;
    }
    mk_response_set_status(d->dr->req, 404);
    d->called = (uintptr_t)fn;
    request_call(d->dr, fn);
}

static void respond_method(struct dispatch *d, mk_methods allow)
{
    struct mk_request *req = d->dr->req;
    MK_BUF_ON_STACK(methods, 64);
    mk_routes_list_methods(&methods, mk_routes_allow(allow));
    if (mk_request_method(req) == MK_METHOD_OTHER) {
        respond_error(d, 501);
    } else if (mk_request_method(req) == MK_OPTIONS || !get_router(d)->error) {
        mk_response_method_not_allowed(req, mk_buf_str(&methods));
    } else {
        mk_response_header(req, MK_STR("Allow"), mk_buf_str(&methods));
        respond_error(d, 405);
    }
}

/* Redirects to an absolute URI, without a page, as the original did. */
static void redirect_old(struct mk_request *req, struct mk_str reference)
{
    struct mk_buf uri;
    struct mk_str scheme = mk_request_scheme(req), host = mk_request_header(req, MK_HEADER_HOST);
    size_t size = scheme.len + strlen("://") + host.len + reference.len;
    char *storage = mk_arena_alloc(mk_request_arena(req), size);
    mk_buf_init_fixed(&uri, storage, storage ? size : 0);
    if (host.len) {
        mk_buf_adds(&uri, scheme);
        mk_buf_adds(&uri, MK_STR("://"));
        mk_buf_adds(&uri, host);
    }
    mk_buf_adds(&uri, reference);
    mk_response_set_status(req, 301);
    if (uri.err < 0 || mk_response_header_ref(req, MK_STR("Location"), mk_buf_str(&uri)) < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

void dispatch_redirect(struct mk_request *req, bool is_old)
{
    struct mk_str location = is_old ? mk_request_add_slash(req) : MK_STR_NONE;
    if (location.p)
        redirect_old(req, location);
    else
        mk_response_redirect_to_slash(req, 0);
}

/* ── the handler ── */

/* Names the function that was to respond, when 503 was sent because of a limit of time. */
static void log_late(const struct dispatch *d, const char *limit)
{
    api_error_log_at(d->dr->worker, limit,
                     "there was no response: the handler must call response->end(), now or later; 503 was sent",
                     d->called);
}

/* Responds in the place of the service, which on_leave() notifies. */
static void on_timeout(struct mk_timer *timer)
{
    struct dispatch *d = MK_CONTAINER_OF(timer, struct dispatch, timer);
    assert(d->is_handled && d->route->timeout_ms);
    if (d->dr->tunnel || mk_response_head_sent(d->dr->req))
        return;
    log_late(d, "router->timeout()");
    output_stop(d->dr);
    mk_response_error(d->dr->req, 503);
}

static void cancel_timer(void *ctx)
{
    struct dispatch *d = ctx;
    mk_timer_cancel(&d->timer);
}

static int arm_timer(struct dispatch *d)
{
    struct mk_request *req = d->dr->req;
    if (mk_arena_defer(mk_request_arena(req), cancel_timer, d) < 0)
        return -ENOMEM;
    mk_timer_init(&d->timer, on_timeout);
    mk_timer_arm(mk_request_loop(req), &d->timer, d->route->timeout_ms);
    return 0;
}

static void call_handler(struct dispatch *d)
{
    assert(!d->is_handled && !d->is_in_hook);
    const struct duda_route *route = d->route;
    d->is_handled = true;
    assert(route->handler);
    d->called = (uintptr_t)route->handler;
    bool can_begin = !route->timeout_ms || arm_timer(d) == 0;
    if (can_begin && !route->in_dthread)
        request_call(d->dr, route->handler);
    else if (!can_begin || !dthread_call_handler(d->dr, route->handler))
        output_send_page(d->dr, 503);
}

static void on_body(struct mk_request *req, struct mk_str body, bool end, void *ctx)
{
    struct dispatch *d = ctx;
    (void)req;
    (void)end;
    request_set_body(d->dr, body);
    call_handler(d);
}

static void on_no_body(struct mk_request *req, struct mk_str body, bool end, void *ctx)
{
    (void)req;
    (void)body;
    (void)end;
    call_handler(ctx);
}

static bool is_too_long(struct mk_request *req, size_t bytes_max)
{
    struct mk_str length = mk_request_header(req, MK_HEADER_CONTENT_LENGTH);
    uint64_t bytes;
    return bytes_max && length.len && mk_str_u64(length, UINT64_MAX, &bytes) && bytes > bytes_max;
}

/* Calls the handler now, or when it has the body. */
static void start_handler(struct dispatch *d)
{
    struct mk_request *req = d->dr->req;
    size_t bytes_max = d->route->body_bytes_max;
    if (is_too_long(req, bytes_max)) {
        respond_error(d, 413);
        return;
    }
    if (d->route->stream_body) {
        call_handler(d);
        return;
    }
    mk_request_read(req, on_no_body, d); /* calls it at once if there is no body */
    if (!d->is_handled)
        mk_request_collect(req, bytes_max, on_body, d);
}

/* ── callbacks before the handler ── */

static const struct route_hook *take_hook(struct dispatch *d)
{
    assert(d->route && !d->is_handled);
    const struct route_hook *hook = d->hook;
    if (!hook && !d->is_own_hook) {
        d->is_own_hook = true;
        hook = d->route->before;
    }
    d->hook = hook ? hook->next : NULL;
    return hook;
}

/* Returns true if the request continues. */
static bool call_hook(struct dispatch *d, const struct route_hook *hook)
{
    struct duda_request *dr = d->dr;
    assert(hook->before && !d->is_in_hook && !d->is_stopped);
    struct current outer = request_enter(dr);
    d->is_in_hook = true;
    d->called = (uintptr_t)hook->before;
    int result = hook->before(dr);
    d->is_in_hook = false;
    current_leave(outer);
    bool goes_on = (result == 0 || d->is_resumed) && !request_is_answered(dr);
    d->is_stopped = !goes_on && !request_is_answered(dr);
    d->is_resumed = false;
    if (goes_on)
        d->called = 0;
    return goes_on;
}

static void run_hooks(struct dispatch *d)
{
    const struct route_hook *hook;
    while ((hook = take_hook(d))) {
        if (!call_hook(d, hook))
            return;
    }
    start_handler(d);
}

int dispatch_next(struct duda_request *dr)
{
    int err = request_check(dr, "router->next()");
    if (err < 0)
        return err;
    struct dispatch *d = dr->dispatch;
    if (d->is_in_hook && !d->is_resumed) {
        d->is_resumed = true;
        return 0;
    }
    if (!d->is_stopped)
        return -EINVAL;
    d->is_stopped = false;
    d->called = 0;
    dthread_pass_on(dr->worker);
    run_hooks(d);
    return 0;
}

/* ── requests ── */

static void add_to_counter(const struct duda_request *dr, const struct mk_counter *counter, int64_t n)
{
    mk_counter_add(counter, mk_request_worker(dr->req), n);
}

/* Copies the values of the parameters, each with a NUL after it. */
static int copy_values(struct dispatch *d, struct mk_arena *arena, const struct mk_route_match *match)
{
    size_t size = match->n * sizeof(*d->values);
    assert(!d->values && d->n == 0);
    for (unsigned i = 0; i < match->n; i++)
        size += match->values[i].len + 1;
    if (!size)
        return 0;
    d->values = mk_arena_alloc(arena, size);
    if (!d->values)
        return -ENOMEM;
    char *to = (char *)(d->values + match->n);
    for (d->n = 0; d->n < match->n; d->n++) {
        struct mk_str value = match->values[d->n];
        memcpy(to, value.p, value.len);
        to[value.len] = '\0';
        d->values[d->n] = mk_str(to, value.len);
        to += value.len + 1;
    }
    return 0;
}

/* Makes the request of an exchange. `match` is NULL if no route has matched. */
static struct dispatch *new_dispatch(struct mk_request *req, struct service_worker *worker,
                                     const struct mk_route_match *match)
{
    struct dispatch *d = mk_arena_zalloc(mk_request_arena(req), sizeof(*d));
    struct duda_request *dr = d ? request_new(req, worker) : NULL; /* last: hooks of the exchange need its dispatch */
    if (!dr)
        return NULL;
    d->dr = dr;
    dr->dispatch = d;
    add_to_counter(dr, counts_of(worker->service)->active, 1);
    d->counts = counts_find(worker->service, match ? routes_get_owner(match->route) : NULL);
    d->began_us = counts_wants_time(worker->service, req) ? mk_loop_now_us(mk_request_loop(req)) : 0;
    if (!match)
        return d;
    d->route = routes_get_owner(match->route);
    d->hook = get_router(d)->before;
    return copy_values(d, mk_request_arena(req), match) < 0 ? NULL : d;
}

/* Tells whether there are files after the routes: those of the service, or those of the host for a root service. */
static bool has_files(const struct service *s)
{
    return s->self.docroot.len || (!s->self.url.len && !router_of(s)->not_found);
}

/* Tells whether a request that no route takes may be one for a file. */
static bool may_be_file(const struct service *s, enum router_result result, enum mk_method method)
{
    bool reads = method == MK_GET || method == MK_HEAD;
    return has_files(s) && (result == ROUTER_NOT_FOUND || (result == ROUTER_METHOD && reads));
}

bool dispatch_leaves_file(const struct service *s, struct mk_str path)
{
    struct mk_route_match match;
    return may_be_file(s, router_match(s, MK_GET, path, false, &match), MK_GET);
}

int dispatch_request(struct mk_request *req, struct service_worker *worker, struct mk_str path)
{
    const struct service *s = worker->service;
    struct mk_route_match match;
    if (path.len && path.p[0] != '/') /* OPTIONS * */
        return MK_DECLINED;
    enum mk_method method = mk_request_method(req);
    enum router_result result = router_match(s, method, path, mk_request_query(req).p, &match);
    if (may_be_file(s, result, method))
        return MK_DECLINED;
    if (old_is(s) && old_refuse(req))
        return 0;
    struct dispatch *d = new_dispatch(req, worker, result == ROUTER_FOUND ? &match : NULL);
    if (!d || (old_is(s) && old_request_fill(d->dr, path) < 0))
        return -ENOMEM;
    if (result == ROUTER_FOUND)
        run_hooks(d);
    else if (result == ROUTER_METHOD)
        respond_method(d, match.allow);
    else if (result == ROUTER_NOT_FOUND)
        respond_not_found(d);
    else
        dispatch_redirect(req, result == ROUTER_SLASH_OLD);
    return 0;
}

/* ── callbacks after the handler, and the end ── */

void dispatch_count_response(struct duda_request *dr)
{
    const struct dispatch *d = dr->dispatch;
    assert(d && d->counts);
    const struct mk_worker *worker = mk_request_worker(dr->req);
    unsigned class = (unsigned)mk_response_get_status(dr->req) / 100 - 1;
    if (class < COUNTS_CLASSES)
        mk_counter_add(d->counts->classes[class], worker, 1);
    if (d->began_us)
        mk_counter_observe(d->counts->duration, worker, mk_loop_now_us(mk_request_loop(dr->req)) - d->began_us);
}

static void call_after(struct duda_request *dr, const struct route_hook *hook)
{
    for (; hook; hook = hook->next)
        request_call(dr, hook->after);
}

void dispatch_before_head(struct duda_request *dr)
{
    const struct duda_route *route = dr->dispatch->route;
    dr->is_before_head = true;
    call_after(dr, get_router(dr->dispatch)->after);
    call_after(dr, route ? route->after : NULL);
    dr->is_before_head = false;
    dispatch_count_response(dr);
}

/* Returns why a request has failed, or COUNTS_FAILURES. A tunnel may end in any way. */
static enum counts_failure find_failure(const struct duda_request *dr)
{
    if (dr->tunnel)
        return COUNTS_FAILURES;
    if (mk_request_aborted(dr->req))
        return dr->is_aborted ? COUNTS_ABORTED : COUNTS_CLIENT_CLOSED;
    return dr->dispatch->is_handled && !dr->answered ? COUNTS_TIMEOUT : COUNTS_FAILURES;
}

static void count_end(struct duda_request *dr)
{
    assert(dr->dispatch && dr->dispatch->counts);
    enum counts_failure failure = find_failure(dr);
    add_to_counter(dr, counts_of(dr->worker->service)->active, -1);
    if (MK_UNLIKELY(failure != COUNTS_FAILURES))
        add_to_counter(dr, dr->dispatch->counts->failures[failure], 1);
}

/* If HandlerTimeout was the reason of a 503, the log names the function that was to respond. */
static void log_missing_response(const struct duda_request *dr)
{
    const struct dispatch *d = dr->dispatch;
    bool is_missing = d->called && dr->output.state == OUTPUT_HELD && !dr->answered && !dr->is_page;
    if (is_missing && !mk_request_aborted(dr->req) && mk_response_get_status(dr->req) == 503)
        log_late(d, "HandlerTimeout");
}

void dispatch_finish(struct duda_request *dr)
{
    count_end(dr);
    log_missing_response(dr);
    request_release(dr);
}
