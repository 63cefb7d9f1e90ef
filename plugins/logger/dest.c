// SPDX-License-Identifier: Apache-2.0
/*
 * Parses AccessLog and ErrorLog (dest.h).
 */
#include "dest.h"

#include <errno.h>
#include <limits.h>
#include <sys/un.h>

static const struct {
    struct mk_str name;
    enum mk_log_dest_kind kind;
} words[] = {
    {MK_STR("Off"), MK_LOG_DEST_OFF},
    {MK_STR("stdout"), MK_LOG_DEST_STDOUT},
    {MK_STR("stderr"), MK_LOG_DEST_STDERR},
    {MK_STR("syslog"), MK_LOG_DEST_SYSLOG},
};

static const struct mk_str syslog_prefix = MK_STR("syslog:");
static const struct mk_str syslog_path = MK_STR("/dev/log");

int dest_parse(const struct mk_conf_value *value, void *dest, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_log_dest *t = dest;
    struct mk_str text = value->text;
    if (value->n != 1 || !text.len)
        return mk_conf_fail(error, "one path is needed (in quotes if it has blanks), or stdout, stderr, syslog or Off");
    *t = (struct mk_log_dest){.kind = MK_LOG_DEST_FILE, .path = MK_STR("")};
    for (size_t i = 0; i < MK_COUNT_OF(words); i++)
        if (mk_str_ieq(text, words[i].name)) {
            *t = (struct mk_log_dest){words[i].kind, words[i].kind == MK_LOG_DEST_SYSLOG ? syslog_path : MK_STR("")};
            return 0;
        }
    if (mk_str_starts(text, syslog_prefix)) {
        t->kind = MK_LOG_DEST_SYSLOG;
        text = mk_str(text.p + syslog_prefix.len, text.len - syslog_prefix.len);
        if (text.len && text.p[0] != '/')
            return mk_conf_fail(error, "behind syslog: is the path of a socket, such as syslog:/dev/log");
    }
    int err = mk_conf_read_path(value, text, &t->path, arena, error);
    if (err < 0)
        return err;
    size_t most = t->kind == MK_LOG_DEST_SYSLOG ? sizeof(((struct sockaddr_un *)0)->sun_path) : PATH_MAX;
    if (!text.len || t->path.len >= most) {
        mk_buf_addf(error, "a path of 1 to %zu bytes is needed", most - 1);
        return -EINVAL;
    }
    return 0;
}
