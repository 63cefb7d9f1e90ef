// SPDX-License-Identifier: Apache-2.0
/*
 * Checks whether a file exists (flag.h). The kernel caches names that do not exist, too, so both cost the same.
 */
#include "flag.h"

#include <monkey/base/file.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

static int check_blocking(const char *path)
{
    int err = access(path, F_OK) < 0 ? errno : 0;
    return err == ENOTDIR ? ENOENT : err;
}

/* Sets `ret_err` to 0 or ENOENT; returns false if that needs a disk, or if openat2(2) fails otherwise. */
static bool check_cached(const char *path, int *ret_err)
{
    int fd = mk_file_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC, RESOLVE_CACHED);
    *ret_err = fd < 0 ? ENOENT : 0;
    if (fd < 0)
        return fd == -ENOENT || fd == -ENOTDIR;
    close(fd);
    return true;
}

/*
 * Sets the flag. `err`: 0 (the file exists), ENOENT, or why that is not known. In the last case the flag stays as it
 * is, so that a temporary failure neither ends nor begins a maintenance.
 */
static void update_flag(struct flag_file *flag, int err)
{
    bool gone = err == ENOENT;
    if (!err || gone)
        flag->exists = !gone;
    err = gone ? 0 : err ? err : -1;
    if (err != flag->logged_err)
        mk_host_log(flag->host, MK_LOG_WARN, "maintenance: %s: %s", flag->path,
                    !err      ? "the file is gone, the host serves again"
                    : err < 0 ? "the file exists, the host responds with 503"
                              : strerror(err));
    flag->logged_err = err;
}

int flag_init(struct flag_file *flag)
{
    int err = check_blocking(flag->path);
    flag->exists = !err;
    return err == ENOENT ? 0 : -err;
}

bool flag_begin_check(struct flag_file *flag, uint64_t now)
{
    uint64_t due = flag->next_check_ms;
    int err;
    if (now < due || !atomic_compare_exchange_strong(&flag->next_check_ms, &due, FLAG_CHECKING))
        return false;
    if (!check_cached(flag->path, &err))
        return true;
    update_flag(flag, err);
    flag_end_check(flag, now);
    return false;
}

void flag_check(struct flag_file *flag)
{
    assert(flag->next_check_ms == FLAG_CHECKING); /* no other thread checks the file */
    update_flag(flag, check_blocking(flag->path));
}

void flag_end_check(struct flag_file *flag, uint64_t now)
{
    assert(flag->next_check_ms == FLAG_CHECKING);
    flag->next_check_ms = now + FLAG_CHECK_MS;
}
