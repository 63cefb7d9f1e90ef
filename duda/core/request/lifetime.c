// SPDX-License-Identifier: Apache-2.0
/*
 * Where a request begins and ends (request.h): what each feature has of it is released here.
 */
#include "request/request.h"

#include "request/output.h"
#include "session/session.h"

/* Calls the hooks of what the request has used, each once and in their order; a callback may use what comes later. */
static void end_features(struct duda_request *dr)
{
    const struct feature *rows = dr->worker->service->features;
    unsigned passed = 0, left;
    while ((left = dr->features & ~passed)) {
        unsigned id = (unsigned)__builtin_ctz(left);
        assert(id < FEATURES && rows[id].request_end);
        passed |= (2U << id) - 1;
        rows[id].request_end(dr);
    }
}

bool request_retire(struct duda_request *dr)
{
    const struct feature *rows = dr->worker->service->features;
    for (unsigned left = dr->features; left; left &= left - 1) {
        const struct feature *row = &rows[__builtin_ctz(left)];
        if (row->request_retire && row->request_retire(dr))
            return true;
    }
    return false;
}

void request_release(struct duda_request *dr)
{
    dr->is_complete = dr->answered && (dr->is_page || !mk_request_aborted(dr->req));
    output_stop(dr);
    end_features(dr);
    assert(!dr->gc && !dr->dthreads && !dr->tasks && !dr->session && !dr->subscriptions && !dr->raw);
    mk_list_del(&dr->node);
    request_pool_put(dr);
}

bool request_is_forgotten(struct duda_request *dr)
{
    bool is_under_way = dr->tasks || dr->is_reading || (dr->session && dr->session->job);
    return dr->output.state == OUTPUT_HELD && !dr->is_kept && !is_under_way && !mk_response_head_sent(dr->req);
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
    assert(!worker->ended && !dr->features);
    mk_list_add(&worker->requests, &dr->node);
    return dr;
}
