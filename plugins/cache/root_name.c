// SPDX-License-Identifier: Apache-2.0
/*
 * Watches the names of roots (root_name.h). The notes of a root are the place of its name (notify.h) and the number
 * that the place had before the path was looked at. All workers share them: one that mixes the place of a worker with
 * the number of another finds that the number is not that of the place, and looks at the path.
 */
#include "root_name.h"

#include <monkey/time.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 512 }; /* longer ones are not watched */

static uint64_t load(const uint64_t *note)
{
    return __atomic_load_n(note, __ATOMIC_ACQUIRE);
}

static void store(uint64_t *note, uint64_t value)
{
    __atomic_store_n(note, value, __ATOMIC_RELEASE);
}

/* Splits a path into that of the folder above and the name. Returns false for long paths and those without a name. */
static bool split_path(const char *path, char folder[PATH_BYTES_MAX], struct mk_str *ret_name)
{
    size_t len = strlen(path);
    while (len && path[len - 1] == '/')
        len--;
    const char *slash = len ? memrchr(path, '/', len) : NULL;
    size_t name_at = slash ? (size_t)(slash - path) + 1 : 0;
    *ret_name = mk_str(path + name_at, len - name_at);
    if (!ret_name->len || mk_str_eq(*ret_name, MK_STR(".")) || mk_str_eq(*ret_name, MK_STR("..")) ||
        name_at + 2 > PATH_BYTES_MAX)
        return false;
    memcpy(folder, path, name_at);
    memcpy(folder + name_at, ".", 2); /* "/srv/.", or "." for a name alone */
    return true;
}

/* Watches the folder above the root. Returns the place of the root's name, or NOTIFY_NONE. */
static uint32_t watch_name(const struct cache_lookup *l)
{
    MK_UNINITIALIZED char folder[PATH_BYTES_MAX];
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_CACHED};
    struct mk_str name;
    if (!split_path(l->name->root->path, folder, &name))
        return NOTIFY_NONE;
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, folder, &how, sizeof(how));
    int watched = fd < 0 ? -errno : notify_add_names(&l->cache->notify, fd, l->now_ms);
    if (fd >= 0)
        close(fd);
    return watched < 0 ? NOTIFY_NONE : notify_place(watched, name);
}

/* Of a name that is not watched, that is tried again when something has happened that counts for all places. */
static uint64_t get_number(const struct notify *n, uint32_t place)
{
    return notify_is_place(place) ? notify_number(n, place) : (uint64_t)notify_all(n) << 32;
}

/* Seldom, and so not part of a hit. */
static __attribute__((noinline)) bool look_at_path(const struct cache_lookup *l, uint64_t *notes)
{
    uint32_t place = watch_name(l);
    uint64_t number = get_number(&l->cache->notify, place); /* before the path is looked at */
    if (l->name->root->confirm(l->name->context) < 0)
        return false;
    store(&notes[0], place);
    store(&notes[1], number);
    return true;
}

bool root_name_is_confirmed(const struct cache_lookup *l)
{
    uint64_t *notes = l->name->root->notes;
    if (!l->name->root->path || !l->name->is_local)
        return true;
    uint64_t number = load(&notes[1]);
    uint32_t place = (uint32_t)load(&notes[0]);
    if (place == NOTIFY_UNKNOWN || get_number(&l->cache->notify, place) != number)
        return look_at_path(l, notes);
    if (notify_is_place(place))
        notify_touch(&l->cache->notify, place);
    return true;
}
