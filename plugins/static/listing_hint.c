// SPDX-License-Identifier: Apache-2.0
/*
 * The log line for a folder without an index (listing_hint.h).
 */
#include "listing_hint.h"

#include "open.h"

#include <monkey/log.h>

#include <unistd.h>

static _Atomic bool given; /* by this process */

static bool is_folder(struct static_site *site, struct mk_str path)
{
    struct stat st;
    int fd = mk__static_open_name(site, path.len > 1 ? path.p + 1 : ".", true);
    bool folder = fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    if (fd >= 0)
        close(fd);
    return folder;
}

void mk__static_listing_hint_give(struct mk_request *req, struct static_site *site)
{
    struct mk_str path = mk_request_path(req);
    bool named = path.len && path.p[0] == '/' && path.p[path.len - 1] == '/';
    if (!site->hints_at_listing || given || !named || mk_response_get_status(req) != 404 || !is_folder(site, path))
        return;
    if (!atomic_exchange(&given, true))
        mk_log_info("404 for %.*s: the folder has no index.html; `monkey DIR --list` lists such folders",
                    MK_STR_ARG(path));
}
