// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the reason of a request without a file, and logs it (reasons.h).
 */
#include "reasons.h"

#include "alias.h"
#include "open.h"

#include <monkey/base/log_limit.h>
#include <monkey/plugin.h>

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum { SHOWN_BYTES_MAX = 200 };

/* Lines of all workers together. */
static struct {
    pthread_mutex_t lock;
    struct mk_log_limit_row rows[MK_REASON_COUNT];
} lines = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    int err;
    enum mk_reason reason;
} reasons[] = {
    {EACCES, MK_REASON_PERMISSION},
    {EPERM, MK_REASON_PERMISSION},
    {ELOOP, MK_REASON_LINK},
    {EXDEV, MK_REASON_LINK_OUTSIDE},
    {ENAMETOOLONG, MK_REASON_NAME_TOO_LONG},
    {ENXIO, MK_REASON_NO_FILE},
    {ENOENT, MK_REASON_MISSING},
    {ENOTDIR, MK_REASON_MISSING},
    {EISDIR, MK_REASON_NO_INDEX},
};

void mk__static_reasons_note(struct mk_request *req, const struct static_site *site, int err)
{
    enum mk_reason reason = MK_REASON_NONE;
    for (size_t i = 0; i < MK_COUNT_OF(reasons); i++)
        if (reasons[i].err == err)
            reason = reasons[i].reason;
    if (reason == MK_REASON_LINK && site->settings->symlinks != SYMLINKS_OFF)
        reason = MK_REASON_LINK_CIRCLE;
    mk_request_set_reason(req, reason);
}

/* Returns whether a path without an index is that of a folder which exists, as far as no disk is needed to see that. */
static bool is_folder(struct static_site *site, struct mk_str path)
{
    struct static_location at = {site, path, MK_STR_NONE};
    struct stat st;
    mk__static_alias_find(&at);
    if (!at.path.len || at.path.p[at.path.len - 1] != '/' || at.site->root_fd < 0)
        return false;
    int fd = mk__static_open_name(at.site, at.path.len > 1 ? at.path.p + 1 : ".", true);
    bool is_folder = fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    if (fd >= 0)
        close(fd);
    return is_folder;
}

static bool is_due(enum mk_reason reason, uint64_t now_ms, unsigned *ret_missing)
{
    pthread_mutex_lock(&lines.lock);
    bool due = mk_log_limit_is_due(&lines.rows[reason], 1, 0, now_ms, ret_missing);
    pthread_mutex_unlock(&lines.lock);
    return due;
}

void mk__static_reasons_log(struct mk_request *req, struct static_site *site)
{
    unsigned missing;
    if (site && mk_request_reason(req) == MK_REASON_MISSING && is_folder(site, mk_request_path(req)))
        mk_request_set_reason(req, MK_REASON_NO_INDEX);
    enum mk_reason reason = mk_request_reason(req);
    const struct mk_reason_info *info = mk_reason_info(reason);
    bool hinted = reason == MK_REASON_NO_INDEX && site->hints_at_listing; /* listing_hint.c knows a shorter way */
    if (!info->advice || hinted || !is_due(reason, mk_loop_now_ms(mk_request_loop(req)), &missing))
        return;
    struct mk_str path = mk_str_truncate(mk_request_target(req), SHOWN_BYTES_MAX);
    mk_request_log(req, MK_LOG_INFO, "%u for %.*s: %s; %u such lines before were not written", info->status,
                   MK_STR_ARG(path), info->advice, missing);
}
