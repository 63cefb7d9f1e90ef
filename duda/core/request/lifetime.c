// SPDX-License-Identifier: Apache-2.0
/*
 * Where a request begins and ends (request.h): what each feature has of it is released here.
 */
#include "request/request.h"

#include "request/gc.h"
#include "request/raw_head.h"
#include "request/sse.h"
#include "request/tunnel.h"
#include "route/dispatch.h"
#include "task/task.h"

void request_release(struct duda_request *dr)
{
    dispatch_finish(dr);
    bool is_complete = dr->answered && (dr->is_page || !mk_request_aborted(dr->req));
    output_stop(dr);
    tunnel_finish(dr);
    if (!is_complete && dr->leave.fn)
        request_call_event(dr, dr->leave);
    if (dr->done)
        request_call(dr, dr->done);
    gc_release(dr);
    dthread_leave_request(dr, is_complete);
    task_leave_request(dr);
    session_release(dr);
    sse_leave_request(dr);
    raw_head_free(dr);
    mk_list_del(&dr->node);
    request_pool_put(dr);
}

void request_finish(struct duda_request *dr)
{
    counts_end(dr);
    request_release(dr);
}

struct duda_request *request_new(struct mk_request *req, struct service_worker *worker)
{
    struct duda_request *dr = request_pool_get(worker);
    if (!dr)
        return NULL;
    if (mk_request_set_state(req, worker->service->set->plugin, dr) < 0) {
        request_pool_put(dr);
        return NULL;
    }
    dr->req = req;
    mk_list_add(&worker->requests, &dr->node);
    counts_begin(dr);
    return dr;
}
