// SPDX-License-Identifier: Apache-2.0
/*
 * Sessions in files (session_file.h).
 */
#include "session/session_file.h"

#include "common/heap.h"
#include "session/session_folder.h"

#include <duda/session.h>
#include <monkey/base/hash.h>
#include <monkey/log.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "DUDASES1"

struct file_head {
    char magic[8];
    struct session_key key;
    uint32_t len; /* of the values */
    int64_t ends; /* seconds since 1970 */
    uint64_t sum; /* of all before and of the values */
};

static_assert(sizeof(struct file_head) == 48, "there are no gaps");

/* A session that was read; the values are for heap_free(). */
struct content {
    struct mk_str values;
    int64_t ends;
};

enum { TEMP_NAME_BYTES = SESSION_NAME_BYTES + 4 };

/* ── reading; the lock of the session is held ── */

/* Finds files that were truncated or damaged; a user with write access can forge the sum. */
static uint64_t sum_up(const struct file_head *head, struct mk_str values)
{
    uint64_t sum = mk_hash_add(MK_HASH_EMPTY, head, offsetof(struct file_head, sum));
    return mk_hash_add(sum, values.p, values.len);
}

/* Reads exactly `len` bytes. Returns 0, -EBADMSG (there are fewer) or -errno. */
static int read_bytes(int fd, void *to, size_t len, off_t at)
{
    for (size_t n = 0; n < len;) {
        ssize_t got = pread(fd, (char *)to + n, len - n, at + (off_t)n);
        if (got <= 0)
            return got == 0 ? -EBADMSG : -errno;
        n += (size_t)got;
    }
    return 0;
}

static int check_head(const struct file_head *head, const struct session_key *key, int64_t size)
{
    bool is_right = memcmp(head->magic, MAGIC, sizeof(head->magic)) == 0 && head->len <= DUDA_SESSION_BYTES_MAX &&
                    size == (int64_t)(sizeof(*head) + head->len) && memcmp(&head->key, key, sizeof(*key)) == 0;
    return is_right ? 0 : -EBADMSG;
}

static int read_values(int fd, const struct file_head *head, struct content *ret)
{
    char *p = head->len ? heap_zalloc(head->len) : NULL;
    if (head->len && !p)
        return -ENOMEM;
    int err = read_bytes(fd, p, head->len, sizeof(*head));
    struct mk_str values = mk_str(p, head->len);
    if (err == 0 && (sum_up(head, values) != head->sum || !session_values_check(values)))
        err = -EBADMSG;
    if (err < 0)
        heap_free(p, head->len);
    else
        *ret = (struct content){values, head->ends};
    return err;
}

/* Reads an open file. Returns 0, -ENOENT (it has expired), -EBADMSG (it is none of this session) or -errno. */
static int read_content(int fd, const struct session_key *key, int64_t idle_s, int64_t now, struct content *ret)
{
    struct file_head head = {0};
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    int err = S_ISREG(st.st_mode) ? read_bytes(fd, &head, sizeof(head), 0) : -EBADMSG;
    if (err == 0)
        err = check_head(&head, key, st.st_size);
    if (err == 0 && (now >= head.ends || now - st.st_mtim.tv_sec >= idle_s))
        err = -ENOENT;
    return err == 0 ? read_values(fd, &head, ret) : err;
}

static void remove_file(struct session_store *store, int folder, const char *name)
{
    if (unlinkat(folder, name, 0) == 0)
        session_folder_forget(store);
}

static void remove_bad_file(struct session_store *store, int folder, const char *name)
{
    mk_log(MK_LOG_WARN,
           "service %s: the session file %s/%s was cut, damaged or made by something else: it is removed, and the "
           "session has ended",
           store->service, store->folder, name);
    remove_file(store, folder, name);
}

/* Reads a session. `*ret_fd` is its file, or -1. Returns 0, -ENOENT or -errno. */
static int read_session(struct session_store *store, int folder, const struct session_key *key, int64_t now,
                        struct content *ret, int *ret_fd)
{
    char name[SESSION_NAME_BYTES];
    session_folder_name(key, name);
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int err = fd < 0 ? -errno : read_content(fd, key, session_store_limits(store).idle_s, now, ret);
    *ret_fd = fd;
    if (fd >= 0 && err == -ENOENT)
        remove_file(store, folder, name);
    if (err == -EBADMSG || err == -ELOOP) {
        remove_bad_file(store, folder, name);
        err = -ENOENT;
    }
    return err;
}

int session_file_load(struct session_store *store, const struct session_key *key, int64_t now, struct mk_str *ret)
{
    struct session_lock lock;
    struct content content = {0};
    int fd = -1, folder = session_folder_open(store);
    int err = folder < 0 ? folder : session_folder_lock(store, folder, key, &lock);
    if (err == 0) {
        err = read_session(store, folder, key, now, &content, &fd);
        if (err == 0 && futimens(fd, NULL) < 0)
            err = -errno;
        session_folder_unlock(&lock);
    }
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    *ret = err == 0 ? content.values : MK_STR_NONE;
    if (err < 0)
        heap_free((char *)(uintptr_t)content.values.p, content.values.len);
    return err < 0 && err != -ENOENT ? session_folder_fail(store, err) : err;
}

/* ── writing; the lock of the session is held ── */

static int write_bytes(int fd, const void *data, size_t len)
{
    for (size_t n = 0; n < len;) {
        ssize_t done = write(fd, (const char *)data + n, len - n);
        if (done < 0)
            return -errno;
        n += (size_t)done;
    }
    return 0;
}

/* Writes a file whole next to the old one, and then puts it in its place. Returns 0 or -errno. */
static int write_file(int folder, const struct session_key *key, struct mk_str values, int64_t ends)
{
    char name[SESSION_NAME_BYTES], temp[TEMP_NAME_BYTES];
    struct file_head head = {.magic = MAGIC, .key = *key, .len = (uint32_t)values.len, .ends = ends};
    session_folder_name(key, name);
    snprintf(temp, sizeof(temp), "%s.new", name);
    head.sum = sum_up(&head, values);
    int fd = openat(folder, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int err = write_bytes(fd, &head, sizeof(head));
    if (err == 0)
        err = write_bytes(fd, values.p, values.len);
    if (close(fd) < 0 && err == 0)
        err = -errno;
    if (err == 0 && renameat(folder, temp, folder, name) < 0)
        err = -errno;
    if (err < 0)
        unlinkat(folder, temp, 0);
    return err;
}

/* Writes the session with the changes. `before`: as it is now. */
static int write_changed(struct session_store *store, int folder, const struct session_commit *commit,
                         const struct content *before)
{
    struct mk_str values, old = commit->drops ? MK_STR_NONE : before->values;
    struct session_limits limits = session_store_limits(store);
    int err = session_values_apply(old, commit->changes, limits.session_bytes, &values);
    if (err < 0)
        return err;
    err = write_file(folder, &commit->to, values, session_commit_has_new_key(commit) ? commit->ends : before->ends);
    heap_free((char *)(uintptr_t)values.p, values.len);
    return err == -ENOSPC ? -EDQUOT : err; /* the disk's, not the session's */
}

static int commit_locked(struct session_store *store, int folder, const struct session_commit *commit, int64_t now)
{
    char name[SESSION_NAME_BYTES];
    struct content before = {0};
    int fd = -1, err = 0;
    if (commit->has_from)
        err = read_session(store, folder, &commit->from, now, &before, &fd);
    if (err == -ENOENT)
        err = commit->drops ? 0 : -ESTALE;
    if (err == 0 && commit->has_to)
        err = write_changed(store, folder, commit, &before);
    if (err == 0 && fd >= 0 && (!commit->has_to || session_commit_has_new_key(commit))) {
        session_folder_name(&commit->from, name);
        remove_file(store, folder, name);
    }
    if (fd >= 0)
        close(fd);
    heap_free((char *)(uintptr_t)before.values.p, before.values.len);
    return err;
}

int session_file_commit(struct session_store *store, const struct session_commit *commit, int64_t now)
{
    struct session_lock lock;
    bool adds = commit->has_to && session_commit_has_new_key(commit);
    int folder = session_folder_open(store), err = folder < 0 ? folder : 0;
    if (err == 0 && adds && (err = session_folder_reserve(store, folder, now)) < 0) {
        close(folder);
        return err;
    }
    if (err == 0)
        err = session_folder_lock(store, folder, commit->has_from ? &commit->from : &commit->to, &lock);
    if (err == 0) {
        err = commit_locked(store, folder, commit, now);
        session_folder_unlock(&lock);
    }
    if (folder >= 0 && err < 0 && adds)
        session_folder_forget(store);
    if (folder >= 0)
        close(folder);
    return err < 0 && err != -ESTALE && err != -ENOSPC ? session_folder_fail(store, err) : err;
}

/* ── cleaning ── */

enum { CLEANING_SECONDS = 600 };

bool session_file_must_clean(struct session_store *store, int64_t now)
{
    int64_t at = atomic_load(&store->clean_at);
    return now >= at && atomic_compare_exchange_strong(&store->clean_at, &at, now + CLEANING_SECONDS);
}

int session_file_clean(struct session_store *store, int64_t now)
{
    int folder = session_folder_open(store);
    if (folder < 0)
        return session_folder_fail(store, folder);
    int err = session_folder_clean(store, folder, now);
    close(folder);
    return err;
}
