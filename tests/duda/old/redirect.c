// SPDX-License-Identifier: Apache-2.0
/* Level 1: the service is the root of its host, and redirects to URLs with a slash. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Redirect");

void cb_page(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->http_content_type(dr, "html");
    response->printf(dr, "<p>%.*s</p>", (int)dr->sr->uri_processed.len, dr->sr->uri_processed.data);
    response->end(dr, NULL);
}

int duda_main()
{
    conf->service_root();
    conf->force_redirect();
    map->static_add_ref("/page", cb_page);
    return 0;
}
