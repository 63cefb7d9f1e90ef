// SPDX-License-Identifier: Apache-2.0
/*
 * The values of AccessLog and ErrorLog, and the files that they mean (target.h).
 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const struct {
    struct mk_str name;
    enum target_kind kind;
} words[] = {
    {MK_STR("Off"), TARGET_OFF},
    {MK_STR("stdout"), TARGET_STDOUT},
    {MK_STR("stderr"), TARGET_STDERR},
    {MK_STR("syslog"), TARGET_SYSLOG},
};

static const struct mk_str syslog_prefix = MK_STR("syslog:");
static const struct mk_str syslog_path = MK_STR("/dev/log");

int target_parse(const struct mk_conf_value *value, void *target, struct mk_arena *arena, struct mk_buf *error)
{
    struct target *t = target;
    struct mk_str text = value->text;
    if (value->n != 1 || !text.len) {
        mk_buf_addf(error, "one path is wanted (in quotes if there are blanks in it), stdout, stderr, syslog or Off");
        return -EINVAL;
    }
    *t = (struct target){.kind = TARGET_FILE, .path = MK_STR("")};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (mk_str_ieq(text, words[i].name)) {
            *t = (struct target){words[i].kind, words[i].kind == TARGET_SYSLOG ? syslog_path : MK_STR("")};
            return 0;
        }
    if (mk_str_starts(text, syslog_prefix)) {
        t->kind = TARGET_SYSLOG;
        text = mk_str(text.p + syslog_prefix.len, text.len - syslog_prefix.len);
    }
    t->path = mk_conf_path(value, text, arena);
    if (!t->path.p)
        return -ENOMEM;
    size_t most = t->kind == TARGET_SYSLOG ? sizeof(((struct sockaddr_un *)0)->sun_path) : PATH_MAX;
    if (!text.len || t->path.len >= most) {
        mk_buf_addf(error, "a path of 1 to %zu bytes is wanted", most - 1);
        return -EINVAL;
    }
    return 0;
}

int target_check(const struct target *t)
{
    char folder[PATH_MAX];
    struct stat st;
    if (t->kind != TARGET_FILE)
        return 0;
    if (stat(t->path.p, &st) == 0 && S_ISDIR(st.st_mode))
        return -EISDIR;
    if (access(t->path.p, W_OK) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    const char *slash = strrchr(t->path.p, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - t->path.p) + 1 : 1, slash ? t->path.p : ".");
    return access(folder, W_OK | X_OK) == 0 ? 0 : -errno;
}

int target_open_file(const char *path)
{
    enum { FLAGS = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };
    struct stat st;
    int fd = open(path, FLAGS);
    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? -errno : fd;
    fd = open(path, FLAGS | O_CREAT | O_EXCL, 0640);
    if (fd < 0 && errno == EEXIST && lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid == geteuid())
        fd = open(path, FLAGS | O_CREAT, 0640);
    return fd < 0 ? -errno : fd;
}
