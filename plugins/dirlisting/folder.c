// SPDX-License-Identifier: Apache-2.0
/*
 * Reads folders: readdir(3) and fstatat(2). A link, or a name that begins with a dot, is opened through the
 * plugin that serves files, which knows the rules for both.
 */
#include "listing.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CANCEL_CHECK_ENTRIES = 64 };

/* ── the memory of all listings ── */

static _Atomic uint64_t memory_used; /* static: of the process */

static bool reserve_memory(struct listing *listing, uint64_t memory_max)
{
    size_t more = listing->arena.bytes + listing->n * sizeof(struct listing_entry *);
    if (more <= listing->reserved + FOLDER_BATCH_BYTES)
        return true;
    more -= listing->reserved;
    if (atomic_fetch_add(&memory_used, more) + more > memory_max) {
        atomic_fetch_sub(&memory_used, more);
        return false;
    }
    listing->reserved += more;
    return true;
}

void folder_release(struct listing *listing)
{
    mk_account_free(NULL, listing->entries, listing->n * sizeof(struct listing_entry *));
    mk_arena_release(&listing->arena);
    atomic_fetch_sub(&memory_used, listing->reserved);
    *listing = (struct listing){.n = 0};
}

/* ── paths ── */

struct mk_str folder_entry_path(struct folder *f, struct mk_str name, bool is_dir)
{
    if (name.len + is_dir >= sizeof(f->path) - f->path_len)
        return MK_STR_NONE;
    memcpy(f->path + f->path_len, name.p, name.len);
    if (is_dir)
        f->path[f->path_len + name.len] = '/';
    f->path[f->path_len + name.len + is_dir] = '\0';
    return mk_str(f->path, f->path_len + name.len + is_dir);
}

int folder_open(struct folder *f, const struct mk_host *host, const struct listing_rule *rule, struct mk_str path,
                const _Atomic bool *cancelled)
{
    assert(path.len && path.p[0] == '/' && path.p[path.len - 1] == '/');
    if (path.len >= sizeof(f->path))
        return -ENAMETOOLONG;
    int fd = mk_host_open_path(host, path, MK_OPEN_FOLDER);
    if (fd < 0)
        return fd;
    f->dir = fdopendir(fd);
    if (!f->dir) {
        int err = -errno;
        close(fd);
        return err;
    }
    f->host = host;
    f->rule = rule;
    f->cancelled = cancelled;
    f->unread[0] = '\0';
    f->reading = false;
    f->path_len = path.len;
    memcpy(f->path, path.p, path.len);
    f->path[path.len] = '\0';
    return 0;
}

void folder_close(struct folder *f)
{
    closedir(f->dir);
    f->dir = NULL;
}

/* ── entries ── */

/* Finds what GET of the entry sends, as the plugin that serves files opens it. Returns false: nothing. */
static bool stat_through_host(struct folder *f, struct mk_str name, struct stat *st)
{
    struct mk_str path = folder_entry_path(f, name, false);
    int fd = path.p ? mk_host_open_path(f->host, path, 0) : -ENAMETOOLONG;
    if (fd == -EISDIR) {
        path = folder_entry_path(f, name, true);
        fd = path.p ? mk_host_open_path(f->host, path, MK_OPEN_FOLDER) : -ENAMETOOLONG;
    }
    bool found = fd >= 0 && fstat(fd, st) == 0;
    if (fd >= 0)
        close(fd);
    return found;
}

/* Returns false if a GET of the entry would find nothing. */
static bool stat_entry(struct folder *f, struct mk_str name, struct stat *st, bool *ret_link)
{
    if (fstatat(dirfd(f->dir), name.p, st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    *ret_link = S_ISLNK(st->st_mode);
    if ((*ret_link || name.p[0] == '.') && !stat_through_host(f, name, st))
        return false;
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
        return false;
    return faccessat(dirfd(f->dir), name.p, S_ISDIR(st->st_mode) ? X_OK : R_OK, AT_EACCESS) == 0;
}

bool folder_has_index(const struct mk_host *host, struct mk_str path)
{
    struct stat st;
    int fd = mk_host_open_path(host, path, 0);
    bool found = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (fd >= 0)
        close(fd);
    return found;
}

/* A folder that a GET would neither list nor send an index for is left out. */
static bool is_listed(struct folder *f, struct mk_str name, bool is_dir)
{
    struct mk_str path = folder_entry_path(f, name, is_dir);
    if (!path.p || rules_is_hidden(f->rule, path))
        return false;
    const struct listing_rule *rule = is_dir ? rules_find(f->host, path) : NULL;
    return !is_dir || (rule && rule->enabled) || folder_has_index(f->host, path);
}

/* Entries are in a list until their count is known. */
struct folder_entry {
    struct folder_entry *next;
    struct listing_entry entry;
};

static struct folder_entry *make_entry(struct mk_arena *arena, struct mk_str name, const struct stat *st, bool is_link)
{
    struct folder_entry *e = mk_arena_alloc(arena, sizeof(*e) + name.len + 1);
    if (!e)
        return NULL;
    bool is_dir = S_ISDIR(st->st_mode);
    e->entry = (struct listing_entry){.bytes = is_dir ? 0 : (uint64_t)st->st_size,
                                      .mtime_seconds = st->st_mtim.tv_sec,
                                      .name_len = (uint16_t)name.len,
                                      .is_dir = is_dir,
                                      .is_link = is_link};
    memcpy(e->entry.name, name.p, name.len + 1);
    return e;
}

/* Returns true if the limit leaves no room for one more entry and the array of all. */
static bool is_full(const struct listing *listing, struct mk_str name, size_t bytes_max)
{
    size_t pointers = (listing->n + 1) * sizeof(struct listing_entry *);
    size_t room = (size_t)(listing->arena.end - listing->arena.at);
    return listing->arena.bytes + pointers > bytes_max ||
           (room < sizeof(struct folder_entry) + name.len + 16 && listing->arena.bytes + pointers + 4096 > bytes_max);
}

/* Returns the next name; NULL: there is none, or `*ret_err` is set. */
static const char *next_name(struct folder *f, int *ret_err)
{
    if (f->unread[0])
        return f->unread;
    errno = 0;
    struct dirent *d = readdir(f->dir);
    *ret_err = d ? 0 : -errno;
    return d ? d->d_name : NULL;
}

/* Adds the entry to the list, if it is for clients. Returns 0 or -ENOMEM. */
static int add_entry(struct folder *f, struct listing *listing, struct mk_str name)
{
    struct stat st;
    bool is_link;
    if (mk_str_is_dots(name) || !stat_entry(f, name, &st, &is_link) || !is_listed(f, name, S_ISDIR(st.st_mode)))
        return 0;
    struct folder_entry *e = make_entry(&listing->arena, name, &st, is_link);
    if (!e)
        return -ENOMEM;
    *(f->last ? &f->last->next : &f->first) = e;
    f->last = e;
    listing->n++;
    return 0;
}

/* Reads entries into the list, until the end or a limit. Returns as folder_read(). */
static int read_entries(struct folder *f, struct listing *listing, size_t bytes_max, uint64_t memory_max,
                        unsigned *names)
{
    const char *name;
    int err = 0;
    for (unsigned i = 0; err == 0; i++, --*names) {
        if (i % CANCEL_CHECK_ENTRIES == 0 && *f->cancelled)
            return -ECANCELED;
        if (*names == 0)
            return MK_AGAIN;
        name = next_name(f, &err);
        if (!name)
            return err;
        struct mk_str s = mk_str_c(name);
        listing->more = is_full(listing, s, bytes_max) || !reserve_memory(listing, memory_max);
        if (listing->more) {
            memmove(f->unread, name, s.len + 1);
            return 0;
        }
        err = add_entry(f, listing, s);
        f->unread[0] = '\0';
    }
    return err;
}

static int make_array(struct listing *listing, struct folder_entry *list)
{
    if (listing->n)
        listing->entries = mk_account_alloc(NULL, listing->n * sizeof(struct listing_entry *));
    if (listing->n && !listing->entries) {
        listing->n = 0;
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < listing->n; i++, list = list->next)
        listing->entries[i] = &list->entry;
    return 0;
}

int folder_read(struct folder *f, struct listing *listing, size_t bytes_max, uint64_t memory_max, unsigned *names)
{
    if (!f->reading) {
        *listing = (struct listing){.n = 0};
        mk_arena_init(&listing->arena, NULL, bytes_max + FOLDER_BATCH_BYTES, NULL, 0);
        f->first = f->last = NULL;
    }
    int err = read_entries(f, listing, bytes_max, memory_max, names);
    f->reading = err == MK_AGAIN;
    int no_memory = f->reading ? 0 : make_array(listing, f->first);
    return err ? err : no_memory;
}

/* ── ReadMe ── */

ssize_t folder_read_file(struct folder *f, struct mk_str name, char *to)
{
    struct stat st;
    struct mk_str path = folder_entry_path(f, name, false);
    size_t n = 0;
    int fd = path.p ? mk_host_open_path(f->host, path, 0) : -ENAMETOOLONG;
    if (fd < 0)
        return fd;
    ssize_t got = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 1 : -EISDIR;
    while (got > 0 && n < LISTING_README_BYTES) {
        got = read(fd, to + n, LISTING_README_BYTES - n);
        if (got < 0)
            got = -errno;
        n += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return got < 0 ? got : (ssize_t)n;
}
