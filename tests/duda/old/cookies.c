// SPDX-License-Identifier: Apache-2.0
/* Level 1: cookies and sessions. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Cookies");

void cb_set(duda_request_t *dr)
{
    response->http_status(dr, 200);
    cookie->set(dr, "k1", 2, "v1", 2, 0);
    cookie->set(dr, "k2", 2, "v2", 2, 1500000000);
    response->print(dr, "set", 3);
    response->end(dr, NULL);
}

void cb_get(duda_request_t *dr)
{
    int len = 0, result;
    char *value = NULL;

    result = cookie->get(dr, "k1", &value, &len);
    response->http_status(dr, 200);
    response->printf(dr, "%i %s %i %i", result, result == 0 ? value : "none", len, cookie->cmp(dr, "k1", "v1"));
    response->end(dr, NULL);
}

void cb_destroy(duda_request_t *dr)
{
    response->http_status(dr, 200);
    cookie->destroy(dr, "k1", 2);
    response->end(dr, NULL);
}

void cb_login(duda_request_t *dr)
{
    int before = session->isset(dr, "user");
    int first = session->create(dr, "user", "ada", time(NULL) + 3600);
    int second = session->create(dr, "role", "admin", time(NULL) + 3600);
    response->http_status(dr, 200);
    response->printf(dr, "%i %i %i %i", before, first, second, session->isset(dr, "user"));
    response->end(dr, NULL);
}

void cb_user(duda_request_t *dr)
{
    char *user = session->get(dr, "user"), *role = session->get(dr, "role");
    response->http_status(dr, 200);
    response->printf(dr, "%s %s %i", user ? user : "none", role ? role : "none", session->isset(dr, "other"));
    gc->add(dr, user);
    free(role);
    response->end(dr, NULL);
}

void cb_logout(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%i", session->destroy(dr, "user"));
    response->end(dr, NULL);
}

void cb_short(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%i", session->create(dr, "user", "ada", time(NULL) + 2));
    response->end(dr, NULL);
}

int duda_main()
{
    session->init("old");
    map->static_add("/set/", "cb_set");
    map->static_add("/get/", "cb_get");
    map->static_add("/destroy/", "cb_destroy");
    map->static_add("/login/", "cb_login");
    map->static_add("/user/", "cb_user");
    map->static_add("/logout/", "cb_logout");
    map->static_add("/short/", "cb_short");
    return 0;
}
