// SPDX-License-Identifier: Apache-2.0
/*
 * picky: refuses paths with the word "refused" to clients without the header X-Key, as a plugin for access would, and
 * tells so about other paths (allows_path). To check a path with the word "costly" takes 5 ms.
 */
#include <monkey/hooks.h>
#include <monkey/loop.h>
#include <monkey/plugin.h>

enum { COSTLY_US = 5000 };

static int allows_path(struct mk_request *req, struct mk_str path)
{
    const struct mk_loop *loop = mk_request_loop(req);
    uint64_t end = mk_loop_now_us(loop) + (memmem(path.p, path.len, "costly", 6) ? COSTLY_US : 0);
    while (mk_loop_now_us(loop) < end)
        ;
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

static const struct mk_path_hooks path_hooks = {.allows_path = allows_path};

MK_PLUGIN(picky) = {
    MK_PLUGIN_HEAD("picky", "1.0", "refuses some paths"),
    .on_request = check_request,
    .paths = &path_hooks,
};
