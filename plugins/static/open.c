// SPDX-License-Identifier: Apache-2.0
/*
 * Opens names below a root, as SymLink says, and with or without waiting for a disk. The kernel keeps paths
 * below the root (openat2(2)): no code compares strings to decide what may be opened.
 */
#include "static.h"

#include <monkey/base/file.h>
#include <monkey/program.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

/* ── programs of other plugins: names before they are opened, and what links lead to afterwards ── */

void mk__static_sources_init(struct static_site *site)
{
    bool has = mk_host_has_sources(site->owner);
    site->sources = !has ? SOURCES_NONE : site->settings->symlinks == SYMLINKS_OFF ? SOURCES_BY_NAME : SOURCES_BY_FILE;
}

bool mk__static_sources_find_path(const struct static_site *site, struct mk_str path)
{
    return mk_host_is_source(site->owner, MK_SOURCE_PATH, path);
}

/* Asks about "FOLDER/NAME". A name that is too long is no file's. */
static bool is_source(const struct static_site *site, enum mk_source_name kind, struct mk_str folder, const char *name)
{
    MK_UNINITIALIZED char text[2 * STATIC_NAME_BYTES];
    int n = snprintf(text, sizeof(text), "%.*s/%s", MK_STR_ARG(folder), name);
    return n < (int)sizeof(text) && mk_host_is_source(site->owner, kind, mk_str(text, (size_t)n));
}

/* Without links the name of the file is that of the root and the one below it. */
static bool is_source_file(struct static_site *site, const char *name)
{
    MK_UNINITIALIZED char root[STATIC_NAME_BYTES];
    pthread_mutex_lock(&site->lock);
    size_t n = site->path.len < sizeof(root) ? site->path.len : 0;
    if (n)
        memcpy(root, site->path.p, n);
    pthread_mutex_unlock(&site->lock);
    return is_source(site, MK_SOURCE_FILE, mk_str(root, n), name);
}

bool mk__static_sources_find_name(struct static_site *site, const char *name)
{
    if (is_source(site, MK_SOURCE_PATH, site->prefix, name))
        return true;
    return site->sources == SOURCES_BY_NAME && is_source_file(site, name);
}

bool mk__static_sources_run_name(const struct static_site *site, const char *name)
{
    MK_UNINITIALIZED char path[2 * STATIC_NAME_BYTES];
    int n = snprintf(path, sizeof(path), "%.*s/%s", MK_STR_ARG(site->prefix), name);
    return n < (int)sizeof(path) && mk_host_runs_source(site->owner, mk_str(path, (size_t)n));
}

static bool is_source_of(const struct static_site *site, int fd)
{
    return site->prefix.len && mk_host_is_source_below(site->owner, fd, site->root_fd, site->prefix);
}

/*
 * A link may lead to a file of an alias or user that only its path, which is not that of the request, makes a program;
 * with SymLink On also to that of another alias.
 */
static bool is_source_fd(const struct static_site *site, int fd)
{
    if (mk_host_is_source_fd(site->owner, fd) || is_source_of(site, fd))
        return true;
    const struct static_site *of_host = site->of_host ? site->of_host : site;
    const struct static_site *other = site->settings->symlinks == SYMLINKS_ON ? of_host->elsewhere : NULL;
    while (other && !is_source_of(other, fd))
        other = other->elsewhere;
    return other != NULL;
}

int mk__static_sources_check(const struct static_site *site, int fd)
{
    assert(site->sources == SOURCES_BY_FILE);
    if (fd < 0 || !is_source_fd(site, fd))
        return fd;
    close(fd);
    return -ENOENT;
}

/* ── names below a root ── */

enum { TRIES_MAX = 64, LINKS_MAX = 40 };

/* O_NONBLOCK: do not wait for a FIFO or device. O_NOCTTY: do not get a controlling terminal. */
enum {
    FILE_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
    PATH_FLAGS = O_PATH | O_CLOEXEC,
    DIR_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC
};

/* Opens a path again after EAGAIN, which a rename at the same time causes: see openat2(2). */
static int retry_openat2(int root_fd, const char *path, uint64_t flags, uint64_t resolve)
{
    int fd = -EAGAIN;
    for (int i = 0; i < TRIES_MAX && fd == -EAGAIN; i++)
        fd = mk_file_openat2(root_fd, path, flags, resolve);
    return fd;
}

int mk__static_open_beneath(int root_fd, const char *path)
{
    return mk_file_openat2(root_fd, path, FILE_FLAGS, RESOLVE_BENEATH);
}

/* ── SymLink Inside: absolute links that stay below the root ── */

/* A path whose links are being followed: `resolved` has no links, `remaining` may have some. */
struct symlink_walk {
    struct static_site *site;
    struct mk_str root; /* a copy, because the site's may be swapped */
    unsigned links;
    char resolved[STATIC_NAME_BYTES], remaining[STATIC_NAME_BYTES], storage[STATIC_NAME_BYTES];
};

static void copy_root(struct symlink_walk *w)
{
    pthread_mutex_lock(&w->site->lock);
    size_t n = w->site->path.len < sizeof(w->storage) ? w->site->path.len : 0;
    w->root = w->site->path.p && n == w->site->path.len ? mk_str(w->storage, n) : MK_STR_NONE;
    if (n)
        memcpy(w->storage, w->site->path.p, n);
    pthread_mutex_unlock(&w->site->lock);
}

/* Puts the target of a link before the rest of the path. */
static int prepend_remaining(struct symlink_walk *w, const char *target)
{
    MK_UNINITIALIZED char joined[STATIC_NAME_BYTES];
    int n = snprintf(joined, sizeof(joined), "%s/%s", target, w->remaining);
    if (n >= (int)sizeof(joined))
        return -ENAMETOOLONG;
    memcpy(w->remaining, joined, (size_t)n + 1);
    return 0;
}

/* Returns the target of an absolute link below the root; NULL if it is outside. */
static const char *strip_root(const struct symlink_walk *w, const char *target)
{
    const struct mk_str roots[] = {w->root, w->site->configured_path};
    for (size_t i = 0; i < 2; i++) {
        size_t n = roots[i].len;
        if (roots[i].p && strncmp(target, roots[i].p, n) == 0 && (target[n] == '/' || target[n] == '\0'))
            return target + n;
    }
    return NULL;
}

/* Continues with the target of a link, from the root if it is absolute. */
static int follow_link(struct symlink_walk *w, char *target)
{
    if (++w->links > LINKS_MAX)
        return -ELOOP;
    const char *inside = target;
    if (target[0] == '/') {
        inside = strip_root(w, target);
        w->resolved[0] = '\0';
    }
    return inside ? prepend_remaining(w, inside) : -EXDEV;
}

/* Removes the last component of `resolved`, for "..". */
static int pop_component(struct symlink_walk *w)
{
    if (w->resolved[0] == '\0')
        return -EXDEV; /* above the root */
    char *slash = strrchr(w->resolved, '/');
    *(slash ? slash : w->resolved) = '\0';
    return 0;
}

/* Follows the component if it is a link, else appends it to `resolved`. Returns 0 or -errno. */
static int push_component(struct symlink_walk *w, const char *component)
{
    MK_UNINITIALIZED char next[STATIC_NAME_BYTES], target[STATIC_NAME_BYTES];
    int n = snprintf(next, sizeof(next), "%s%s%s", w->resolved, w->resolved[0] ? "/" : "", component);
    if (n >= (int)sizeof(next))
        return -ENAMETOOLONG;
    ssize_t len = readlinkat(w->site->root_fd, next, target, sizeof(target) - 1);
    if (len >= 0) {
        target[len] = '\0';
        return follow_link(w, target);
    }
    if (errno != EINVAL)
        return -errno;
    memcpy(w->resolved, next, (size_t)n + 1);
    return 0;
}

/* Takes the next component off `remaining`. Returns 1, 0 (there is none) or -errno. */
static int next_component(struct symlink_walk *w, char *component)
{
    size_t skip = strspn(w->remaining, "/"), n = strcspn(w->remaining + skip, "/");
    if (n >= STATIC_NAME_BYTES)
        return -ENAMETOOLONG;
    memcpy(component, w->remaining + skip, n);
    component[n] = '\0';
    memmove(w->remaining, w->remaining + skip + n, strlen(w->remaining + skip + n) + 1);
    return n > 0;
}

/*
 * Opens a path for SymLink Inside that openat2(2) has refused with EXDEV, because of an absolute link. The result of
 * the walk has no links: openat2(2) opens it, and refuses a link that was put there meanwhile. May wait for a disk.
 */
static int open_through_links(struct static_site *site, const char *path, uint64_t flags)
{
    MK_UNINITIALIZED struct symlink_walk w;
    w.site = site;
    w.links = 0;
    w.resolved[0] = '\0';
    copy_root(&w);
    MK_UNINITIALIZED char component[STATIC_NAME_BYTES];
    int r = snprintf(w.remaining, sizeof(w.remaining), "%s", path) >= (int)sizeof(w.remaining) ? -ENAMETOOLONG : 1;
    while (r >= 0 && (r = next_component(&w, component)) > 0) {
        if (strcmp(component, ".") == 0)
            continue;
        r = strcmp(component, "..") == 0 ? pop_component(&w) : push_component(&w, component);
    }
    const char *resolved = w.resolved[0] ? w.resolved : ".";
    return r < 0 ? r : mk_file_openat2(site->root_fd, resolved, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* ── names ── */

static const uint64_t resolve_modes[] = {
    [SYMLINKS_OFF] = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    [SYMLINKS_INSIDE] = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    [SYMLINKS_ON] = RESOLVE_NO_MAGICLINKS,
};

static int open_with_flags(struct static_site *site, const char *name, bool cached, uint64_t flags, uint64_t resolve)
{
    assert(name[0] != '/' && (unsigned)site->settings->symlinks <= SYMLINKS_ON);
    resolve |= resolve_modes[site->settings->symlinks];
    if (cached) {
        /* tmpfs does not cache names that do not exist: RESOLVE_CACHED would fail, and is not needed */
        bool in_memory = site->in_memory;
        int fd = mk_file_openat2(site->root_fd, name, flags, resolve | (in_memory ? RESOLVE_NO_XDEV : RESOLVE_CACHED));
        bool perhaps = in_memory || site->settings->symlinks == SYMLINKS_INSIDE;
        return fd == -EXDEV && perhaps ? -EAGAIN : fd;
    }
    int fd = retry_openat2(site->root_fd, name, flags, resolve);
    return fd == -EXDEV && site->settings->symlinks == SYMLINKS_INSIDE ? open_through_links(site, name, flags) : fd;
}

int mk__static_open_name(struct static_site *site, const char *name, bool cached)
{
    return open_with_flags(site, name, cached, FILE_FLAGS, 0);
}

/* Opens a name for the cache: the function of struct mk_file_root. */
static int open_for_cache(void *context, const char *name, uint32_t flags)
{
    uint64_t open_flags = flags & MK_FILE_OPEN_PATH ? PATH_FLAGS : FILE_FLAGS;
    uint64_t resolve = flags & MK_FILE_OPEN_NO_LINKS ? RESOLVE_NO_SYMLINKS : 0;
    return open_with_flags(context, name, flags & MK_FILE_OPEN_CACHED, open_flags, resolve);
}

int mk__static_open_dir(const struct static_site *site, int fd, const char *name)
{
    assert(name[0] != '/' && (unsigned)site->settings->symlinks <= SYMLINKS_ON);
    MK_UNINITIALIZED char path[STATIC_NAME_BYTES];
    int n = snprintf(path, sizeof(path), "%s/.", name); /* "/." fails if the process may not search it */
    return n < (int)sizeof(path) ? retry_openat2(fd, path, DIR_FLAGS, resolve_modes[site->settings->symlinks])
                                 : -ENAMETOOLONG;
}

struct find_result mk__static_open_stat(int fd, struct mk_str name)
{
    struct find_result f = {.kind = FOUND_NOTHING, .fd = fd, .name = name};
    struct stat st;
    if (fd < 0) {
        f.err = -fd;
        return f;
    }
    if (fstat(fd, &st) < 0)
        f.err = errno;
    else if (S_ISREG(st.st_mode))
        f.kind = FOUND_FILE;
    else if (S_ISDIR(st.st_mode))
        f.kind = FOUND_DIRECTORY;
    else
        f.err = ENXIO; /* devices and the like are not served */
    if (f.kind == FOUND_FILE) {
        f.bytes = (uint64_t)st.st_size;
        f.mtime = st.st_mtim;
        f.version = mk_file_version(st.st_dev, st.st_ino, st.st_ctim.tv_sec, (uint32_t)st.st_ctim.tv_nsec);
    } else {
        close(fd);
        f.fd = -1;
    }
    return f;
}

/* ── through the cache ── */

static uint32_t get_version(void *context)
{
    struct static_site *site = context;
    return site->swap_seq;
}

static MK_HOT uint64_t get_opened_ms(void *context)
{
    const struct static_site *site = context;
    return site->opened_ms;
}

void mk__static_open_init_root(struct static_site *site)
{
    site->root = (struct mk_file_root){.open = open_for_cache, .version = get_version, .opened_ms = get_opened_ms};
}

struct mk_file_place mk__static_open_place(const struct static_site *site)
{
    return (struct mk_file_place){
        .device = site->device, .inode = site->inode, .mount = site->mount, .url = site->prefix, .name = MK_STR_NONE};
}

enum mk_coding mk__static_open_coding(struct mk_str name, enum mk_coding variant)
{
    return mk_str_iends(name, MK_STR(".svgz")) ? MK_CODING_GZIP : variant;
}

static struct find_result make_result(const struct mk_named_file *named, struct mk_str shown)
{
    static const uint8_t kinds[] = {
        [MK_FILE_REGULAR] = FOUND_FILE, [MK_FILE_FOLDER] = FOUND_DIRECTORY, [MK_FILE_NONE] = FOUND_NOTHING};
    const struct mk_file *file = &named->file;
    return (struct find_result){
        .kind = kinds[named->kind],
        .err = named->err,
        .fd = file->fd,
        .content = file->content,
        .block = file->block,
        .owner = file->owner,
        .owned = file->owned,
        .in_memory = file->in_memory,
        .bytes = file->bytes,
        .mtime = {.tv_sec = file->mtime_seconds, .tv_nsec = file->mtime_nanoseconds},
        .version = file->version,
        .name = shown,
    };
}

MK_HOT struct find_result mk__static_open_file(struct static_site *site, const struct find_mode *mode, const char *name,
                                               struct mk_str shown, enum mk_coding coding)
{
    if (!mode->sources && sources_have_name(site, name))
        return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = ENOENT, .name = shown};
    if ((!mode->cache && !mode->loader) || site->sources == SOURCES_BY_FILE) {
        int fd = mk__static_open_name(site, name, mode->cached);
        if (!mode->sources) /* these are missing */
            fd = sources_check(site, fd);
        return mk__static_open_stat(fd, shown);
    }
    assert(mode->loader || mode->cached);
    uint32_t version = site->swap_seq; /* before the folder's numbers */
    struct mk_file_name file_name = {
        .root = &site->root,
        .context = site,
        .device = site->device,
        .inode = site->inode,
        .mount = site->mount,
        .version = version,
        .name = mk_str_c(name),
        .type_name = shown,
        .policy = (uint8_t)site->settings->symlinks,
        .coding = (uint8_t)mk__static_open_coding(shown, coding),
        .no_ranges = !site->settings->ranges,
        .no_version = site->settings->tags == STATIC_TAGS_PORTABLE,
        .is_local = site->is_local,
    };
    struct mk_named_file named =
        mode->loader ? mode->loader->load(mode->loader, &file_name) : mode->cache->open(mode->req, &file_name);
    return make_result(&named, shown);
}

void mk__static_open_release(struct find_result *f)
{
    if (f->fd >= 0 && !f->owner)
        close(f->fd);
    f->fd = -1;
}

bool mk__static_open_is_missing(int err)
{
    static const int missing[] = {ENOENT, ENOTDIR, ELOOP, EXDEV, ENAMETOOLONG, ENXIO, EISDIR};
    for (size_t i = 0; i < MK_COUNT_OF(missing); i++)
        if (missing[i] == err)
            return true;
    return false;
}

/* Tells whether a segment begins with a dot. For short texts a loop is faster than memmem(). */
static bool has_dotfile(struct mk_str path)
{
    for (size_t i = 1; i < path.len; i++)
        if (path.p[i] == '.' && path.p[i - 1] == '/')
            return true;
    return false;
}

MK_HOT bool mk__static_open_is_hidden(const struct static_site *site, struct mk_str path)
{
    struct mk_str known = MK_STR("/.well-known");
    if (mk_str_starts(path, known) && (path.len == known.len || path.p[known.len] == '/'))
        path = mk_str(path.p + known.len, path.len - known.len);
    return !site->settings->dotfiles && has_dotfile(path);
}
