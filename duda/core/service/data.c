// SPDX-License-Identifier: Apache-2.0
/*
 * The object `data`.
 */
#include "common/api_error.h"
#include "common/current.h"
#include "objects.h"
#include "request/request.h"
#include "service/folder.h"

static char *get_path(void)
{
    if (!phase_check(PHASE_ANY, "data->get_path()"))
        return NULL;
    const struct duda_string *folder = folder_get(current.service, FOLDER_DATA);
    return folder->len ? folder->data : NULL;
}

static int set_path(const char *path)
{
    return folder_set(FOLDER_DATA, path, "data->set_path()");
}

REQUEST_CALL(char *locate_file(duda_request_t *dr, const char *file), request_check, "data->locate()", NULL,
             folder_join(mk_request_arena(dr->req), folder_get(dr->worker->service, FOLDER_DATA), file,
                         "data->locate()"))

const struct duda_api_data object_data = {
    .get_path = get_path,
    .set_path = set_path,
    .locate = locate_file,
};
