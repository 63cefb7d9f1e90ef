// SPDX-License-Identifier: Apache-2.0
/*
 * data: files of the service's folder of data. GET /data/poem sends data/poem.txt, GET /data/poem?from=0&bytes=9 a part
 * of it. A relative path cannot leave the folder, whatever the client asks for.
 */
#include <duda/duda.h>

#include <errno.h>
#include <stdio.h>

DUDA_REGISTER("Duda I/O examples", "data");

static void send_poem(duda_request_t *dr)
{
    char file[256];
    long from = 0, bytes = 0;
    snprintf(file, sizeof(file), "%s.txt", param->get(dr, "name"));
    if ((qs->get(dr, "from") && qs->get_number(dr, "from", &from) < 0) ||
        (qs->get(dr, "bytes") && qs->get_number(dr, "bytes", &bytes) < 0) || from < 0 || bytes < 0) {
        response->error(dr, 400);
        return;
    }
    int err = response->sendfile_range(dr, file, from, (size_t)bytes);
    if (err < 0) {
        response->error(dr, err == -ERANGE ? 416 : 404);
        return;
    }
    response->http_content_type(dr, "txt");
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/:name", send_poem) ? 0 : -1;
}
