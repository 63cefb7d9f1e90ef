// SPDX-License-Identifier: Apache-2.0
/* Level 2: cookies and sessions, which are for all paths there. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Cookies of level 2");

void cb_set(duda_request_t *dr)
{
    cookie->set(dr, "unit", 4, "test", 4, 0);
    response->http_status(dr, 200);
    response->end(dr, NULL);
}

void cb_expire(duda_request_t *dr)
{
    cookie->set(dr, "unit", 4, "test", 4, 1500000000);
    response->http_status(dr, 200);
    response->end(dr, NULL);
}

void cb_destroy(duda_request_t *dr)
{
    cookie->destroy(dr, "unit", 4);
    response->http_status(dr, 200);
    response->end(dr, NULL);
}

void cb_login(duda_request_t *dr)
{
    int result = session->create(dr, "users", "ada", xtime->tomorrow());

    response->http_status(dr, 200);
    response->printf(dr, "%i", result);
    response->end(dr, NULL);
}

void cb_user(duda_request_t *dr)
{
    char *user = session->get(dr, "users");

    response->http_status(dr, 200);
    response->printf(dr, "'%s'", user);
    gc->add(dr, user);
    response->end(dr, NULL);
}

void cb_logout(duda_request_t *dr)
{
    int result = session->destroy(dr, "users");

    response->http_status(dr, 200);
    response->printf(dr, "%i", result);
    response->end(dr, NULL);
}

int duda_main()
{
    if (session->init("cookies2") == -1)
        exit(EXIT_FAILURE);
    router->map("/set/", cb_set);
    router->map("/expire/", cb_expire);
    router->map("/destroy/", cb_destroy);
    router->map("/login/", cb_login);
    router->map("/user/", cb_user);
    router->map("/logout/", cb_logout);
    return 0;
}
