// SPDX-License-Identifier: Apache-2.0
/*
 * Symbolic links followed by hand, for SymLink Inside (links.h). What comes out is a path without links, which the
 * kernel opens as strictly as any other.
 */
#include "links.h"

#include "beneath.h"

#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

/* A path that is being resolved: what is done holds no links any more. */
struct walk {
    struct site *site;
    struct mk_str root; /* a copy: the site's may be swapped meanwhile */
    unsigned links;
    char done[SITE_NAME_BYTES], rest[SITE_NAME_BYTES], storage[SITE_NAME_BYTES];
};

enum { LINKS_MAX = 40 };

static void copy_root(struct walk *w)
{
    pthread_mutex_lock(&w->site->lock);
    size_t n = w->site->path.len < sizeof(w->storage) ? w->site->path.len : 0;
    w->root = w->site->path.p && n == w->site->path.len ? mk_str(w->storage, n) : MK_STR_NONE;
    if (n)
        memcpy(w->storage, w->site->path.p, n);
    pthread_mutex_unlock(&w->site->lock);
}

static int put_before_rest(struct walk *w, const char *target)
{
    MK_UNINITIALIZED char joined[SITE_NAME_BYTES];
    int n = snprintf(joined, sizeof(joined), "%s/%s", target, w->rest);
    if (n >= (int)sizeof(joined))
        return -ENAMETOOLONG;
    memcpy(w->rest, joined, (size_t)n + 1);
    return 0;
}

/* What an absolute link means below the root; NULL when it leads out. */
static const char *strip_root(const struct walk *w, const char *target)
{
    const struct mk_str roots[] = {w->root, w->site->written};
    for (size_t i = 0; i < 2; i++) {
        size_t n = roots[i].len;
        if (roots[i].p && strncmp(target, roots[i].p, n) == 0 && (target[n] == '/' || target[n] == '\0'))
            return target + n;
    }
    return NULL;
}

static int follow(struct walk *w, char *target)
{
    if (++w->links > LINKS_MAX)
        return -ELOOP;
    const char *inside = target;
    if (target[0] == '/') {
        inside = strip_root(w, target);
        w->done[0] = '\0';
    }
    return inside ? put_before_rest(w, inside) : -ENOENT;
}

static int go_up(struct walk *w)
{
    if (w->done[0] == '\0')
        return -ENOENT; /* above the root */
    char *slash = strrchr(w->done, '/');
    *(slash ? slash : w->done) = '\0';
    return 0;
}

/* Takes one component further: follows it if it is a link, appends it otherwise. */
static int go_down(struct walk *w, const char *component)
{
    MK_UNINITIALIZED char next[SITE_NAME_BYTES], target[SITE_NAME_BYTES];
    int n = snprintf(next, sizeof(next), "%s%s%s", w->done, w->done[0] ? "/" : "", component);
    if (n >= (int)sizeof(next))
        return -ENAMETOOLONG;
    ssize_t len = readlinkat(w->site->root_fd, next, target, sizeof(target) - 1);
    if (len >= 0) {
        target[len] = '\0';
        return follow(w, target);
    }
    if (errno != EINVAL)
        return -errno;
    memcpy(w->done, next, (size_t)n + 1);
    return 0;
}

static int next_component(struct walk *w, char *component)
{
    size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/");
    if (n >= SITE_NAME_BYTES)
        return -ENAMETOOLONG;
    memcpy(component, w->rest + skip, n);
    component[n] = '\0';
    memmove(w->rest, w->rest + skip + n, strlen(w->rest + skip + n) + 1);
    return n > 0;
}

int site_open_inside(struct site *site, const char *path)
{
    MK_UNINITIALIZED struct walk w;
    w.site = site;
    w.links = 0;
    w.done[0] = '\0';
    copy_root(&w);
    MK_UNINITIALIZED char component[SITE_NAME_BYTES];
    int r = snprintf(w.rest, sizeof(w.rest), "%s", path) >= (int)sizeof(w.rest) ? -ENAMETOOLONG : 1;
    while (r >= 0 && (r = next_component(&w, component)) > 0) {
        if (strcmp(component, ".") == 0)
            continue;
        r = strcmp(component, "..") == 0 ? go_up(&w) : go_down(&w, component);
    }
    /* should somebody have put a link there meanwhile, the kernel refuses */
    return r < 0 ? r
                 : site_open_beneath(site->root_fd, w.done[0] ? w.done : ".", RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}
