// SPDX-License-Identifier: Apache-2.0
/*
 * form: the page html/index.html has a form, whose answers arrive here. What a visitor has typed is escaped before it
 * becomes part of a page.
 */
#include <duda/duda.h>

DUDA_REGISTER("Duda I/O examples", "forms");

static void receive(duda_request_t *dr)
{
    const char *name = form->get(dr, "name"), *color = form->get(dr, "color");
    if (!name || !color) {
        response->error(dr, 400);
        return;
    }
    cookie->set(dr, &(struct duda_cookie){.name = "visited", .value = "yes", .http_only = true});
    response->http_content_type(dr, "html");
    response->printf(dr, "<!doctype html><title>form</title><p>");
    response->print_html(dr, name);
    response->printf(dr, " likes ");
    response->print_html(dr, color);
    response->printf(dr, "</p>\n");
    response->end(dr, NULL);
}

int duda_main(void)
{
    struct duda_route *route = router->post("/", receive);
    return route && router->limit(route, 64 * 1024) == 0 ? 0 : -1;
}
