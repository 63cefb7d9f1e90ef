// SPDX-License-Identifier: Apache-2.0
/*
 * Resolves symbolic links for SymLink Inside (symlinks.h). The result is a path without links, which openat2(2) opens
 * with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS.
 */
#include "symlinks.h"

#include "openat2.h"

#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

/* A path that is being resolved: `resolved` has no links, `remaining` may have some. */
struct symlink_walk {
    struct static_site *site;
    struct mk_str root; /* a copy, because the site's may be swapped */
    unsigned links;
    char resolved[STATIC_NAME_BYTES], remaining[STATIC_NAME_BYTES], storage[STATIC_NAME_BYTES];
};

enum { LINKS_MAX = 40 };

static void copy_root(struct symlink_walk *w)
{
    pthread_mutex_lock(&w->site->lock);
    size_t n = w->site->path.len < sizeof(w->storage) ? w->site->path.len : 0;
    w->root = w->site->path.p && n == w->site->path.len ? mk_str(w->storage, n) : MK_STR_NONE;
    if (n)
        memcpy(w->storage, w->site->path.p, n);
    pthread_mutex_unlock(&w->site->lock);
}

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

static int follow_link(struct symlink_walk *w, char *target)
{
    if (++w->links > LINKS_MAX)
        return -ELOOP;
    const char *inside = target;
    if (target[0] == '/') {
        inside = strip_root(w, target);
        w->resolved[0] = '\0';
    }
    return inside ? prepend_remaining(w, inside) : -ENOENT;
}

static int pop_component(struct symlink_walk *w)
{
    if (w->resolved[0] == '\0')
        return -ENOENT; /* above the root */
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

int symlinks_open_file(struct static_site *site, const char *path)
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
    /* if a link was put there meanwhile, the kernel refuses it */
    return r < 0 ? r
                 : openat2_open_file(site->root_fd, w.resolved[0] ? w.resolved : ".",
                                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}
