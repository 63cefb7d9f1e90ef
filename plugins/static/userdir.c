// SPDX-License-Identifier: Apache-2.0
/*
 * Serves folders of users. The system says where a home is. The user controls everything in it, so it is
 * opened as SymLink says.
 */
#include "static.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

enum {
    UID_USERS_MIN = 1000, /* root and daemons have lower ones (UID_MIN of login.defs) */
    UID_NOBODY = 65534,   /* the user `nobody` */
    ENTRY_BYTES = 16384,  /* for one of the password database; far more than usual */
};

/* ── directive ── */

static bool is_segment(struct mk_str s)
{
    return s.len && !mk_str_is_dots(s);
}

static bool is_relative_path(struct mk_str path)
{
    for (size_t start = 0, end; start <= path.len; start = end + 1) {
        const char *slash = memchr(path.p + start, '/', path.len - start);
        end = slash ? (size_t)(slash - path.p) : path.len;
        if (!is_segment(mk_str(path.p + start, end - start)))
            return false;
    }
    return true;
}

int mk__static_userdir_parse(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                             struct mk_buf *error)
{
    struct mk_str *name = field;
    if (value->n != 1 || !is_relative_path(value->text)) {
        mk_buf_addf(error,
                    "a folder in the homes of users has no slash at either end, and no part \".\" or \"..\", such as "
                    "public_html");
        return -EINVAL;
    }
    *name = mk_arena_dup(arena, value->text);
    return name->p ? 0 : -ENOMEM;
}

/* ── the user ── */

/* Returns true for a name that a user may have: no path, and none that begins with "-", "." and the like. */
static bool is_name(struct mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!mk_is_name_byte(name.p[i], "_") && (i == 0 || !memchr("-.@$", name.p[i], 4)))
            return false;
    return name.len > 0 && name.len <= USERDIR_NAME_BYTES;
}

bool mk__static_userdir_match(struct static_location *at)
{
    assert(!at->user.p);
    struct mk_str path = at->path;
    if (!at->site->host->user_dir.len || !mk_str_starts(path, MK_STR("/~")))
        return false;
    const char *slash = memchr(path.p + 2, '/', path.len - 2);
    size_t n = (slash ? (size_t)(slash - path.p) : path.len) - 2;
    at->user = mk_str(path.p + 2, n);
    at->path = mk_str(path.p + 2 + n, path.len - 2 - n);
    if (!is_name(at->user)) {
        at->user.len = 0;
        at->path = MK_STR("/");
    }
    return true;
}

/* ── the folder ── */

/* Returns the -errno of the server's own problems as it is; hides any other as -ENOENT. */
static int mask_errno(int err)
{
    static const int ours[] = {EMFILE, ENFILE, ENOMEM, EAGAIN};
    for (size_t i = 0; i < MK_COUNT_OF(ours); i++)
        if (err == ours[i])
            return -err;
    return -ENOENT;
}

static bool may_have_folder(const struct passwd *user)
{
    return user->pw_uid >= UID_USERS_MIN && user->pw_uid != UID_NOBODY && user->pw_dir && user->pw_dir[0] == '/';
}

/* Opens the user's folder, and writes its path to `ret_path`. Returns a descriptor or -errno. */
static int open_user_dir(const struct static_location *at, char ret_path[STATIC_NAME_BYTES])
{
    MK_UNINITIALIZED char entry[ENTRY_BYTES];
    struct passwd storage, *user = NULL;
    const char *name = at->site->host->user_dir.p;
    int err = at->user.len ? getpwnam_r(at->user.p, &storage, entry, sizeof(entry), &user) : ENOENT;
    if (!user)
        return mask_errno(err);
    if (!may_have_folder(user) ||
        snprintf(ret_path, STATIC_NAME_BYTES, "%s/%s", user->pw_dir, name) >= STATIC_NAME_BYTES)
        return -ENOENT;
    int home = open(user->pw_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (home < 0)
        return mask_errno(errno);
    int fd = mk__static_open_dir(at->site, home, name);
    close(home);
    return fd < 0 ? mask_errno(-fd) : fd;
}

/* Finds a file as `mode` says, or with NULL a folder. */
static struct find_result find_in_user_dir(const struct static_location *at, const struct find_mode *mode)
{
    assert(userdir_is_matched(at) && (!at->user.len || at->user.p[at->user.len] == '\0'));
    MK_UNINITIALIZED char path[STATIC_NAME_BYTES], prefix[USERDIR_NAME_BYTES + 3];
    int fd = open_user_dir(at, path);
    if (fd < 0)
        return (struct find_result){.kind = FOUND_NOTHING, .fd = -1, .err = -fd};
    struct static_host host = *at->site->host;
    host.n_tries = 0; /* TryFiles is for the document root only */
    snprintf(prefix, sizeof(prefix), "/~%s", at->user.p);
    struct static_site site = {.settings = at->site->settings,
                               .host = &host,
                               .owner = at->site->owner,
                               .of_host = at->site,
                               .sources = at->site->sources == SOURCES_NONE ? SOURCES_NONE : SOURCES_BY_FILE,
                               .root_fd = fd,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .prefix = mk_str_c(prefix),
                               .configured_path = mk_str_c(path)};
    struct find_result found =
        mode ? mk__static_find_path_with(&site, at->path, mode) : mk__static_find_folder(&site, at->path);
    close(fd);
    return found;
}

struct find_result mk__static_userdir_find(const struct static_location *at, const struct find_mode *mode)
{
    assert(!mode->cached);
    return find_in_user_dir(at, mode);
}

struct find_result mk__static_userdir_find_folder(const struct static_location *at)
{
    return find_in_user_dir(at, NULL);
}
