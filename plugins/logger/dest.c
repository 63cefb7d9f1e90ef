// SPDX-License-Identifier: Apache-2.0
/*
 * Parses AccessLog and ErrorLog, and opens their files (dest.h).
 */
#include "dest.h"

#include <monkey/file.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/un.h>

static const struct {
    struct mk_str name;
    enum log_dest_kind kind;
} words[] = {
    {MK_STR("Off"), DEST_OFF},
    {MK_STR("stdout"), DEST_STDOUT},
    {MK_STR("stderr"), DEST_STDERR},
    {MK_STR("syslog"), DEST_SYSLOG},
};

static const struct mk_str syslog_prefix = MK_STR("syslog:");
static const struct mk_str syslog_path = MK_STR("/dev/log");

int dest_parse(const struct mk_conf_value *value, void *dest, struct mk_arena *arena, struct mk_buf *error)
{
    struct log_dest *t = dest;
    struct mk_str text = value->text;
    if (value->n != 1 || !text.len) {
        mk_buf_addf(error, "one path is needed (in quotes if it has blanks), or stdout, stderr, syslog or Off");
        return -EINVAL;
    }
    *t = (struct log_dest){.kind = DEST_FILE, .path = MK_STR("")};
    for (size_t i = 0; i < MK_COUNT_OF(words); i++)
        if (mk_str_ieq(text, words[i].name)) {
            *t = (struct log_dest){words[i].kind, words[i].kind == DEST_SYSLOG ? syslog_path : MK_STR("")};
            return 0;
        }
    if (mk_str_starts(text, syslog_prefix)) {
        t->kind = DEST_SYSLOG;
        text = mk_str(text.p + syslog_prefix.len, text.len - syslog_prefix.len);
    }
    int err = mk_conf_read_path(value, text, &t->path, arena, error);
    if (err < 0)
        return err;
    size_t most = t->kind == DEST_SYSLOG ? sizeof(((struct sockaddr_un *)0)->sun_path) : PATH_MAX;
    if (!text.len || t->path.len >= most) {
        mk_buf_addf(error, "a path of 1 to %zu bytes is needed", most - 1);
        return -EINVAL;
    }
    return 0;
}

int dest_check(const struct log_dest *dest)
{
    return dest->kind == DEST_FILE ? mk_file_check_output(dest->path.p) : 0;
}

int dest_open_file(const char *path)
{
    return mk_file_open_output(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, 0640, NULL);
}
