// SPDX-License-Identifier: Apache-2.0
/* Level 1: a body that is written into the data folder, and sent from there. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Upload");

void cb_save(duda_request_t *dr)
{
    unsigned long len = 0;
    char *body, *path;
    FILE *file;

    if (request->is_data(dr) == MK_FALSE) {
        response->http_status(dr, 400);
        response->end(dr, NULL);
    }
    body = request->get_data(dr, &len);
    gc->add(dr, body);
    path = data->locate("upload.txt");
    file = fopen(path, "w");
    response->http_status(dr, file ? 201 : 500);
    if (file) {
        fwrite(body, 1, len, file);
        fclose(file);
    }
    response->printf(dr, "%lu", len);
    response->end(dr, NULL);
}

void cb_show(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->http_content_type(dr, "txt");
    if (response->sendfile(dr, data->locate("upload.txt")) == -1)
        response->http_status(dr, 404);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/save", "cb_save");
    map->static_add("/show", "cb_show");
    return 0;
}
