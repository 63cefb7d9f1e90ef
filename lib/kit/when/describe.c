// SPDX-License-Identifier: Apache-2.0
/*
 * What conditions look at in a request (<monkey/kit/when.h>). Apart from the conditions, which need no server.
 */
#include <monkey/inspect.h>
#include <monkey/kit/when.h>

static struct mk_str get_header(void *ctx, struct mk_str name)
{
    return mk_request_header_by_name(ctx, name);
}

struct mk_when_request mk_when_describe(struct mk_request *req)
{
    return (struct mk_when_request){mk_request_method_name(req), mk_request_query(req), get_header, req};
}

static struct mk_str get_explained_header(void *ctx, struct mk_str name)
{
    return mk_explain_header(ctx, name);
}

struct mk_when_request mk_when_describe_explained(struct mk_explain *e)
{
    return (struct mk_when_request){e->method, e->query, get_explained_header, e};
}
