// SPDX-License-Identifier: Apache-2.0
/*
 * picky: refuses paths with the word "refused" to clients without the header X-Key, as a plugin for access would, and
 * tells so about other paths (allows_path).
 */
#include <monkey/plugin.h>

static int allows_path(struct mk_request *req, struct mk_str path)
{
    bool named = memmem(path.p, path.len, "refused", 7) != NULL;
    return !named || mk_request_header_by_name(req, MK_STR("X-Key")).p;
}

static int check_request(struct mk_request *req)
{
    if (allows_path(req, mk_request_path(req)) > 0)
        return MK_DECLINED;
    mk_response_error(req, 403);
    return 0;
}

MK_PLUGIN(picky) = {
    MK_PLUGIN_HEAD("picky", "1.0", "refuses some paths"),
    .on_request = check_request,
    .allows_path = allows_path,
};
