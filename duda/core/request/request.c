// SPDX-License-Identifier: Apache-2.0
/*
 * What all calls with a request need (request.h): the check that it is one, calls into the service for it.
 */
#include "request/request.h"

#include "common/api_error.h"
#include "common/current.h"

#include <errno.h>

int request_report(const struct duda_request *dr, const char *call)
{
    if (!dr)
        api_error_log(current.worker, call, "there is no request: its pointer is NULL");
    else if (!current.worker)
        api_error_log(NULL, call, "only callbacks of the request's worker can call it: use response->deliver()");
    else if (dr->worker != current.worker)
        api_error_log(current.worker, call,
                      "the request belongs to another worker or service: use response->deliver()");
    else
        return api_error_report(current.worker, call, -ESTALE);
    return dr ? -EPERM : -EINVAL;
}

int request_refuse(const struct duda_request *dr, const char *call, int err, const char *reason)
{
    api_error_log(dr->worker, call, reason);
    return err;
}

int request_check_lasting(const struct duda_request *dr, const char *call)
{
    int err = request_check(dr, call);
    if (err < 0 || !dr->is_page)
        return err;
    return request_refuse(dr, call, -EPERM,
                          "the server has responded already: the request ends when this function returns");
}

void request_call(struct duda_request *dr, duda_request_fn fn)
{
    assert(fn);
    struct current outer = request_enter(dr);
    atomic_store_explicit(&dr->worker->watch.function, (uintptr_t)fn, memory_order_relaxed);
    fn(dr);
    current_leave(outer);
}

void request_call_event(struct duda_request *dr, struct request_event event)
{
    assert(event.fn);
    struct current outer = request_enter(dr);
    event.fn(dr, event.data);
    current_leave(outer);
}

void request_call_end(struct duda_request *dr)
{
    if (!dr->is_complete && dr->leave.fn)
        request_call_event(dr, dr->leave);
    if (dr->done)
        request_call(dr, dr->done);
}

bool request_has_type(const struct duda_request *dr, struct mk_str media_type)
{
    struct mk_str value = mk_request_header(dr->req, MK_HEADER_CONTENT_TYPE);
    return value.p && mk_str_ieq(mk_str_trim(mk_str_until(value, ";")), media_type);
}

void request_set_body(struct duda_request *dr, struct mk_str data)
{
    assert(!dr->has_body);
    dr->body = data;
    dr->has_body = true;
}

const char *request_dup(struct duda_request *dr, struct mk_str s)
{
    return s.p ? mk_arena_dup(mk_request_arena(dr->req), s).p : NULL;
}
