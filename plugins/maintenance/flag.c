// SPDX-License-Identifier: Apache-2.0
/*
 * The looks of flag.h. A file that is not there is as cheap to find out as one that is: the kernel remembers both.
 */
#include "flag.h"

#include <monkey/log.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int check_blocking(const char *path)
{
    int err = access(path, F_OK) < 0 ? errno : 0;
    return err == ENOTDIR ? ENOENT : err;
}

/* False when it cannot be told without waiting, or not in this way at all. */
static bool check_cached(const char *path, int *ret_err)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    *ret_err = fd < 0 ? ENOENT : 0;
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR;
    close(fd);
    return true;
}

/*
 * `err`: 0 or ENOENT, else why that cannot be told. Then nothing changes: a passing failure neither ends a
 * maintenance, nor does it begin one.
 */
static void update_flag(struct flag_file *flag, int err)
{
    bool gone = err == ENOENT;
    if (!err || gone)
        flag->exists = !gone;
    err = gone ? 0 : err ? err : -1;
    if (err != flag->logged_err)
        mk_log_warn("maintenance: %s: %s", flag->path, !err ? "it is gone" : err < 0 ? "it is there" : strerror(err));
    flag->logged_err = err;
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
    update_flag(flag, check_blocking(flag->path));
}

void flag_end_check(struct flag_file *flag, uint64_t now)
{
    flag->next_check_ms = now + FLAG_CHECK_MS;
}
