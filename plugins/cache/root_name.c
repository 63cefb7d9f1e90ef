// SPDX-License-Identifier: Apache-2.0
/*
 * Watches the names of roots. The notes of a root are the place of its name, with NAME_IS_LINK, and the number
 * that the place had before the path was looked at. All workers share them: one that mixes the place of a worker with
 * the number of another finds that the number is not that of the place, and looks at the path.
 */
#include "worker.h"

#include <monkey/base/file.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 512 }; /* longer ones are not watched */

#define NAME_IS_LINK (UINT64_C(1) << 32) /* above the place */

static uint64_t load_note(const uint64_t *note)
{
    return __atomic_load_n(note, __ATOMIC_ACQUIRE);
}

static void store_note(uint64_t *note, uint64_t value)
{
    __atomic_store_n(note, value, __ATOMIC_RELEASE);
}

/* Opens the folder above the root, and finds the root's name in it. Returns a descriptor or -errno. */
static int open_above(const char *path, struct mk_str *ret_name)
{
    MK_UNINITIALIZED char above[PATH_BYTES_MAX];
    struct split_name split;
    size_t len = strlen(path);
    while (len && path[len - 1] == '/')
        len--;
    if (!parents_split(mk_str(path, len), &split))
        return -EINVAL;
    size_t name_at = (size_t)(split.last.p - path);
    if (name_at + 2 > sizeof(above))
        return -ENAMETOOLONG;
    memcpy(above, path, name_at);
    memcpy(above + name_at, ".", 2); /* "/srv/.", or "." for a name alone */
    *ret_name = split.last;
    return mk_file_openat2(AT_FDCWD, above, O_PATH | O_DIRECTORY | O_CLOEXEC, RESOLVE_CACHED);
}

/* Returns whether the last component of a path is a link; true, too, if that cannot be told now. */
static bool is_link(int above_fd, const char *last)
{
    int fd = mk_file_openat2(above_fd, last, O_PATH | O_CLOEXEC, RESOLVE_CACHED | RESOLVE_NO_SYMLINKS);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

/* Watches the folder above the root. Returns the place of the root's name, with NAME_IS_LINK, or NOTIFY_NONE. */
static uint64_t watch_name(const struct cache_lookup *l)
{
    struct mk_str name;
    int fd = open_above(l->name->root->path, &name);
    if (fd < 0)
        return NOTIFY_NONE;
    int watched = notify_add_names(&l->cache->notify, fd, l->now_ms);
    uint64_t link = is_link(fd, name.p) ? NAME_IS_LINK : 0;
    close(fd);
    return watched < 0 ? NOTIFY_NONE : link | notify_place(watched, name);
}

/* Of a name that is not watched, that is tried again when something has happened that counts for all places. */
static uint64_t get_number(const struct notify *n, uint32_t place)
{
    return notify_is_place(place) ? notify_number(n, place) : (uint64_t)notify_all(n) << 32;
}

/* Seldom, and so not part of a hit. */
static __attribute__((noinline)) bool check_path(const struct cache_lookup *l, uint64_t *notes)
{
    uint64_t place = watch_name(l);
    uint64_t number = get_number(&l->cache->notify, (uint32_t)place); /* before the path is looked at */
    if (l->name->root->confirm(l->name->context) < 0)
        return false;
    store_note(&notes[0], place);
    store_note(&notes[1], number);
    return true;
}

static bool is_watched(const struct cache_lookup *l)
{
    return l->name->root->path && l->name->is_local;
}

bool root_name_is_confirmed(const struct cache_lookup *l)
{
    uint64_t *notes = l->name->root->notes;
    if (!is_watched(l))
        return true;
    uint64_t number = load_note(&notes[1]);
    uint32_t place = (uint32_t)load_note(&notes[0]);
    if (place == NOTIFY_UNKNOWN || get_number(&l->cache->notify, place) != number)
        return check_path(l, notes);
    if (notify_is_place(place))
        notify_touch(&l->cache->notify, place);
    return true;
}

bool root_name_is_link(const struct cache_lookup *l)
{
    if (!is_watched(l))
        return false;
    uint64_t place = load_note(&l->name->root->notes[0]);
    return place == NOTIFY_UNKNOWN || place & NAME_IS_LINK;
}
