// SPDX-License-Identifier: Apache-2.0
/*
 * Paths in the folders of a service (folder.h).
 */
#include "service/folder.h"

#include "common/api_error.h"
#include "common/current.h"
#include "common/heap.h"
#include "compat/old.h"
#include "log/message.h"

#include <errno.h>
#include <sys/stat.h>

enum { CHANGES_MAX = 64 }; /* paths that callbacks of a service may set */

struct mk_str folder_dup(struct mk_arena *arena, struct mk_str path)
{
    if (!path.len || path.p[path.len - 1] == '/')
        return mk_arena_dup(arena, path);
    char *p = mk_arena_alloc(arena, path.len + 2);
    if (!p)
        return MK_STR_NONE;
    memcpy(p, path.p, path.len);
    memcpy(p + path.len, "/", 2);
    return mk_str(p, path.len + 1);
}

static int check_folder(const char *path)
{
    struct stat st;
    if (!path || stat(path, &st) < 0)
        return path ? -errno : -EINVAL;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static struct duda_string *own_folder(struct service *s, enum folder_kind kind)
{
    return kind == FOLDER_DATA ? &s->self.datadir : &s->self.confdir;
}

const struct duda_string *folder_get(struct service *s, enum folder_kind kind)
{
    const struct duda_string *changed = atomic_load_explicit(&folders_of(s)->changed[kind], memory_order_acquire);
    return changed ? changed : own_folder(s, kind);
}

static int set_own(struct service *s, enum folder_kind kind, const char *path)
{
    struct mk_str copy = folder_dup(&s->arena, mk_str_c(path));
    if (!copy.p)
        return -ENOMEM;
    *own_folder(s, kind) = (struct duda_string){(char *)(uintptr_t)copy.p, copy.len};
    return 0;
}

/* Returns a path that was set before, or a new one; NULL: there is no memory, or there are too many. */
static const struct folder_change *find_change(struct folders *all, const char *path)
{
    size_t len = strlen(path);
    bool has_slash = len && path[len - 1] == '/';
    len += !has_slash;
    for (const struct folder_change *c = all->first; c; c = c->next)
        if (c->path.len == len && strncmp(c->path.data, path, len - !has_slash) == 0)
            return c;
    struct folder_change *c = all->n < CHANGES_MAX ? heap_zalloc(sizeof(*c) + len + 1) : NULL;
    if (!c)
        return NULL;
    c->path = (struct duda_string){(char *)(c + 1), len};
    memcpy(c->path.data, path, len - !has_slash);
    c->path.data[len - 1] = '/';
    c->next = all->first;
    all->first = c;
    all->n++;
    return c;
}

/* Other threads use the folder meanwhile, and the service may have its former path. */
static int change_folder(struct service *s, enum folder_kind kind, const char *path)
{
    pthread_mutex_lock(&s->lock);
    struct folders *all = folders_of(s);
    const struct folder_change *c = find_change(all, path);
    if (c)
        atomic_store_explicit(&all->changed[kind], &c->path, memory_order_release);
    pthread_mutex_unlock(&s->lock);
    return c ? 0 : -ENOMEM;
}

int folder_set(enum folder_kind kind, const char *path, const char *call)
{
    struct service *s = current.service;
    if (!phase_check(s && old_is(s) ? PHASE_ANY : PHASE_MAIN, call))
        return -1;
    int err = check_folder(path);
    if (err == 0)
        err = phase_now() == PHASE_MAIN ? set_own(s, kind, path) : change_folder(s, kind, path);
    if (err == 0)
        return 0;
    message_log(MK_LOG_ERROR, "%s: %s: %s", call, path ? path : "NULL", strerror(-err));
    return -1;
}

void folders_release(struct service *s)
{
    for (struct folder_change *c = folders_of(s)->first, *next; c; c = next) {
        next = c->next;
        heap_free(c, sizeof(*c) + c->path.len + 1);
    }
}

/* Returns whether one of the path's segments is "..". */
static bool leads_out(const char *file)
{
    for (const char *p = file; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
            return true;
    }
    return false;
}

static const char *find_fault(const struct duda_string *folder, const char *file)
{
    if (!folder->len)
        return "the section [WEB_SERVICE] does not set the folder";
    if (!file || !*file || *file == '/')
        return "a path relative to the folder is needed";
    return leads_out(file) ? "the path leads out of the folder" : NULL;
}

char *folder_join(struct mk_arena *arena, const struct duda_string *folder, const char *file, const char *call)
{
    const char *fault = find_fault(folder, file);
    size_t len = fault ? 0 : strlen(file);
    char *path = fault ? NULL : mk_arena_alloc(arena, folder->len + len + 1);
    if (!path) {
        message_log(MK_LOG_ERROR, "%s: %s: %s", call, file ? file : "NULL", fault ? fault : strerror(ENOMEM));
        return NULL;
    }
    memcpy(path, folder->data, folder->len);
    memcpy(path + folder->len, file, len + 1);
    return path;
}
