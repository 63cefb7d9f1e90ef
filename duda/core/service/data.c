// SPDX-License-Identifier: Apache-2.0
/*
 * The object `data`.
 */
#include "common/current.h"
#include "common/phase.h"
#include "objects.h"
#include "request/request.h"
#include "service/folder.h"

static char *get_path(void)
{
    if (!phase_check(PHASE_ANY, "data->get_path()"))
        return NULL;
    const struct duda_string *folder = &current.service->self.datadir;
    return folder->len ? folder->data : NULL;
}

static int set_path(const char *path)
{
    static const char call[] = "data->set_path()";
    return phase_check(PHASE_MAIN, call) ? folder_set(&current.service->self.datadir, path, call) : -1;
}

static char *locate(duda_request_t *dr, const char *file)
{
    if (request_check(dr, "data->locate()") < 0)
        return NULL;
    return folder_join(mk_request_arena(dr->req), &dr->worker->service->self.datadir, file, "data->locate()");
}

const struct duda_api_data object_data = {
    .get_path = get_path,
    .set_path = set_path,
    .locate = locate,
};
