// SPDX-License-Identifier: Apache-2.0
/*
 * Methods that applications do not get (<monkey/kit/cgi.h>).
 */
#include <monkey/kit/cgi.h>

bool mk_cgi_refuse_method(struct mk_request *req)
{
    bool is_refused = mk_request_method(req) == MK_TRACE;
    if (is_refused)
        mk_response_method_not_allowed(req, MK_STR("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"));
    return is_refused;
}
