// SPDX-License-Identifier: Apache-2.0
/* What both services of the pair call. */
#include "webservice.h"

static inline void send_text(duda_request_t *dr, char *text)
{
    response->http_status(dr, 200);
    response->printf(dr, "%s", text);
    response->end(dr, NULL);
}
