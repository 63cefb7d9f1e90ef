// SPDX-License-Identifier: Apache-2.0
/* Level 1: files, ranges and the service's folders. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Files");

void cb_file(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->print(dr, "<", 1);
    response->sendfile(dr, data->locate("poem.txt"));
    response->print(dr, ">", 1);
    response->end(dr, NULL);
}

void cb_range(duda_request_t *dr)
{
    char *path = data->locate("poem.txt");
    int ends = response->sendfile_range(dr, path, 4, 3);

    ends += response->sendfile_range(dr, path, 8, 0);
    response->http_status(dr, 200);
    response->printf(dr, " %i %i %i %i", ends, response->sendfile_range(dr, path, 1000, 1),
                     response->sendfile_range(dr, path, 1, 1000), response->sendfile(dr, "/no/such/file"));
    response->end(dr, NULL);
}

void cb_info(duda_request_t *dr)
{
    struct file_info info;
    char *path = data->locate("poem.txt");
    int found = monkey->file_get_info(path, &info);

    response->http_status(dr, 200);
    response->printf(dr, "%i %lu %i %i %i", found, (unsigned long)info.size, info.is_file, info.is_directory,
                     monkey->file_get_info("/no/such/file", &info));
    response->end(dr, NULL);
}

void cb_self(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%s %i %i %s %s", self->name.data, data->get_path() != NULL,
                     strcmp(self->datadir.data, data->get_path()), self->logdir.data ? "logs" : "none",
                     dr->ws_root->fixed_name.data);
    response->end(dr, NULL);
}

int duda_main()
{
    if (data->set_path("/no/such/folder") == 0)
        return -1;
    map->static_add("/file/", "cb_file");
    map->static_add("/range/", "cb_range");
    map->static_add("/info/", "cb_info");
    map->static_add("/self/", "cb_self");
    return 0;
}
