// SPDX-License-Identifier: Apache-2.0
/*
 * Paths in the folders of a service (folder.h).
 */
#include "service/folder.h"

#include "common/current.h"
#include "common/phase.h"
#include "log/message.h"
#include "service/service.h"

#include <errno.h>
#include <sys/stat.h>

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

int folder_set(struct duda_string *folder, const char *path, const char *call)
{
    int err = check_folder(path);
    struct mk_str copy = err == 0 ? folder_dup(&current.service->arena, mk_str_c(path)) : MK_STR_NONE;
    if (err == 0 && !copy.p)
        err = -ENOMEM;
    if (err < 0) {
        message_log(MK_LOG_ERROR, "%s: %s: %s", call, path ? path : "NULL", strerror(-err));
        return -1;
    }
    *folder = (struct duda_string){(char *)(uintptr_t)copy.p, copy.len};
    return 0;
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
