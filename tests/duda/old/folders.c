// SPDX-License-Identifier: Apache-2.0
/* Level 2: folders that a callback sets. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Folders");

void cb_data(duda_request_t *dr)
{
    char *before = (char *)data->get_path();
    char *found = data->locate("something");
    int result = data->set_path("/tmp/");

    response->http_status(dr, 200);
    response->printf(dr, "%s %s %i %s", before, found, result, data->get_path());
    response->end(dr, NULL);
}

void cb_conf(duda_request_t *dr)
{
    int missing = fconf->set_path("/no/such/folder");
    int result = fconf->set_path("/tmp");

    response->http_status(dr, 200);
    response->printf(dr, "%i %i %s", missing, result, fconf->get_path());
    response->end(dr, NULL);
}

/* Each with another spelling of a folder. */
void cb_many(duda_request_t *dr)
{
    char path[1024];
    int i, k, len, n = 0;

    for (i = 0; i < 200; i++) {
        len = snprintf(path, sizeof(path), "/tmp/");
        for (k = 0; k <= i; k++)
            len += snprintf(path + len, sizeof(path) - len, "./");
        n += data->set_path(path) == 0;
    }
    response->http_status(dr, 200);
    response->printf(dr, "%i", n);
    response->end(dr, NULL);
}

int duda_main()
{
    router->map("/data/", cb_data);
    router->map("/conf/", cb_conf);
    router->map("/many/", cb_many);
    return 0;
}
