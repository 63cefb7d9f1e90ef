// SPDX-License-Identifier: Apache-2.0
/*
 * The error log's descriptor. Its number never changes: dup3() replaces the file that it refers to while
 * the workers write.
 */
#include "program.h"

#include <monkey/base/file.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 1024 * 1024, LINE_BYTES_MAX = 4097, LEVEL_AT = 25 };

static int log_fd = -1;
static const char *default_path; /* used without ErrorLog; NULL: stderr */
static bool created_by_us;       /* the file did not exist before */

static int kept_fd = -1; /* the lines of errorlog_keep() */

void errorlog_keep(void)
{
    kept_fd = memfd_create("log", MFD_CLOEXEC);
    mk_log_to(kept_fd, MK_LOG_DEBUG);
}

/* Returns the level of a line, which a time of 24 bytes and a blank precede (<monkey/log.h>). */
static int level_of(const char *line)
{
    static const char initials[] = "ewid";
    const char *found = strlen(line) > LEVEL_AT ? strchr(initials, line[LEVEL_AT]) : NULL;
    return found ? (int)(found - initials) : MK_LOG_ERROR;
}

/* Writes the kept lines that are as urgent as `level`. */
static void write_kept(enum mk_log_level level)
{
    char line[LINE_BYTES_MAX];
    FILE *kept = kept_fd >= 0 && lseek(kept_fd, 0, SEEK_SET) == 0 ? fdopen(kept_fd, "r") : NULL;
    if (!kept)
        return;
    kept_fd = -1;
    while (fgets(line, sizeof(line), kept)) {
        if (level_of(line) <= (int)level && write(log_fd, line, strlen(line)) < 0)
            break;
    }
    fclose(kept);
}

static int open_log(const struct mk_server_info *info)
{
    const char *path = info->error_log ? info->error_log : default_path;
    bool fresh = false;
    int fd = path ? daemon_open_log(path, &fresh) : fcntl(launcher_get_stderr(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0)
        return path ? fd : -errno;
    if (log_fd < 0) {
        log_fd = fd;
    } else {
        dup3(fd, log_fd, O_CLOEXEC);
        close(fd);
    }
    mk_log_to(log_fd, info->log_level);
    write_kept(info->log_level);
    created_by_us = fresh;
    launcher_send_log(log_fd);
    return 0;
}

int errorlog_open(const struct mk_server_info *info, bool background)
{
    default_path = background ? "/dev/null" : NULL;
    return open_log(info);
}

void errorlog_reopen(struct mk_server *server)
{
    struct mk_server_info info;
    mk_server_info(server, &info);
    int err = open_log(&info);
    if (err < 0)
        mk_log_error("cannot open the error log %s: %s; the old one stays in use", info.error_log, mk_file_error(err));
}

/* Returns the level of a line of a problem. Those after its first one, with the place, have the level of the first. */
static enum mk_log_level find_level(const char *line, enum mk_log_level before)
{
    if (mk_str_starts(mk_str_c(line), MK_STR("warning: ")) || strstr(line, ": warning: "))
        return MK_LOG_WARN;
    return mk_str_starts(mk_str_c(line), MK_STR("error: ")) || strstr(line, ": error: ") ? MK_LOG_ERROR : before;
}

void errorlog_write_problems(const struct mk_server *server, enum mk_log_level level)
{
    struct mk_buf text;
    mk_buf_init(&text, TEXT_BYTES_MAX);
    mk_server_problems(server, &text);
    char *save = NULL;
    for (char *line = text.len ? strtok_r((char *)(uintptr_t)mk_buf_cstr(&text), "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        level = find_level(line, level);
        mk_log(level, "%s", line);
    }
    mk_buf_release(&text);
}

int errorlog_fd(void)
{
    return log_fd;
}

void errorlog_chown(uint32_t uid, uint32_t gid)
{
    assert(log_fd >= 0);
    if (created_by_us && fchown(log_fd, uid, gid) < 0)
        mk_log_warn("cannot change the owner of the error log (%s): it cannot be reopened later", strerror(errno));
}
