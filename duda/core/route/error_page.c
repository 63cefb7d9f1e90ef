// SPDX-License-Identifier: Apache-2.0
/*
 * Bodies of a service for errors of the server (error_page.h). The service's function gets a request that lives until
 * it returns; what it writes is gathered, because the response has ended already.
 */
#include "route/error_page.h"

#include "common/api_error.h"
#include "request/output.h"
#include "request/request.h"
#include "route/dispatch.h"
#include "route/router.h"
#include "service/counts.h"

#include <errno.h>

static const struct mk_str html = MK_STR_INIT("text/html; charset=utf-8"); /* of the server's page */

/* Returns whether the service has a function for a status. */
static bool has_function(const struct router *router, int status)
{
    return status >= 400 && (router->error || (status == 404 && router->not_found));
}

static struct duda_request *new_page(struct mk_request *req, struct service_worker *worker)
{
    struct dispatch *d = mk_arena_zalloc(mk_request_arena(req), sizeof(*d));
    struct duda_request *page = d ? request_pool_get(worker) : NULL;
    if (!page)
        return NULL;
    page->req = req;
    page->is_before_head = page->is_page = true;
    page->dispatch = d;
    mk_list_add(&worker->requests, &page->node);
    d->dr = page;
    d->counts = counts_find(worker->service, NULL);
    d->began_us = counts_wants_time(worker->service, req) ? mk_loop_now_us(mk_request_loop(req)) : 0;
    return page;
}

static void call_function(struct duda_request *page, int status)
{
    const struct router *router = router_of(page->worker->service);
    if (status == 404 && router->not_found) {
        request_call(page, router->not_found);
        return;
    }
    struct current outer = request_enter(page);
    router->error(page, status);
    current_leave(outer);
}

/* Returns what the function has written; MK_STR_NONE: nothing that can be sent. */
static struct mk_str get_body(struct duda_request *page)
{
    bool has_ended = request_is_answered(page), has_given_up = page->output.is_incomplete;
    struct mk_str body = has_ended ? output_gather(page, mk_request_arena(page->req)) : MK_STR_NONE;
    if (!body.p && !has_given_up)
        api_error_log(page->worker, "router->error()",
                      has_ended ? "a page has 8 KB at most, and no generator: that of the server is sent"
                                : "the function must end the response before it returns: the server's page is sent");
    return body;
}

/* Returns a copy of a header of the response, or the text for one that is not there. */
static struct mk_str copy_header(struct mk_request *req, struct mk_str name, struct mk_str otherwise)
{
    struct mk_str value = mk_response_get_header(req, name);
    return mk_arena_dup(mk_request_arena(req), value.len ? value : otherwise);
}

/* Gives the response what the service has written. Returns 0 or a negative error. */
static int use_page(struct duda_request *page)
{
    struct mk_request *req = page->req;
    struct mk_str body = get_body(page);
    struct mk_str type = copy_header(req, MK_STR("Content-Type"), MK_STR("text/plain; charset=utf-8"));
    struct mk_str encoding = copy_header(req, MK_STR("Content-Encoding"), MK_STR(""));
    int err = body.p && type.p && encoding.p ? mk_response_replace(req, type, body) : -ENOMEM;
    return err == 0 && encoding.len ? mk_response_header_ref(req, MK_STR("Content-Encoding"), encoding) : err;
}

/* Takes back what the function has changed of the page's head. */
static void restore_page(struct mk_request *req, int status)
{
    mk_response_set_status(req, status);
    mk_response_header_remove(req, MK_STR("Content-Encoding"));
    mk_response_header_remove(req, MK_STR("Content-Type"));
    mk_response_header_ref(req, MK_STR("Content-Type"), html);
}

void error_page_replace(struct mk_request *req, struct service_worker *worker)
{
    int status = mk_response_get_status(req);
    bool is_new = !mk_request_state(req, worker->service->set->plugin);
    if (!mk_response_is_default_error(req) || !has_function(router_of(worker->service), status))
        return;
    struct duda_request *page = new_page(req, worker);
    if (!page)
        return;
    mk_response_header_remove(req, MK_STR("Content-Type"));
    call_function(page, status);
    if (use_page(page) < 0)
        restore_page(req, status);
    if (is_new)
        dispatch_count_response(page);
    request_release(page);
}
