// SPDX-License-Identifier: Apache-2.0
/*
 * The handler of kore's route /hello/.
 */
#include <kore/kore.h>

#include <kore/http.h>

int answer(struct http_request *req);

int answer(struct http_request *req)
{
    static const char body[] = "Hello, world\n";
    http_response(req, HTTP_STATUS_OK, body, sizeof(body) - 1);
    return KORE_RESULT_OK;
}
