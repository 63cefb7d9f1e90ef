// SPDX-License-Identifier: Apache-2.0
/*
 * hang: a request for /hang?PATH stops its worker until the FIFO at PATH is opened for writing.
 */
#include <monkey/plugin.h>

#include <fcntl.h>
#include <unistd.h>

static int hang(struct mk_request *req)
{
    if (!mk_str_eq(mk_request_path(req), MK_STR("/hang")))
        return MK_DECLINED;
    struct mk_str path = mk_arena_dup(mk_request_arena(req), mk_request_query(req));
    mk_log_info("hang: a worker waits");
    int fd = path.p ? open(path.p, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0)
        close(fd);
    mk_response_error(req, fd < 0 ? 500 : 204);
    return 0;
}

MK_PLUGIN(hang) = {
    MK_PLUGIN_HEAD("hang", "1.0", "stops a worker"),
    .on_request = hang,
};
