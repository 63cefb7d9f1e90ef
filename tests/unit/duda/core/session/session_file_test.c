// SPDX-License-Identifier: Apache-2.0
/* Sessions in files: expiry, bounds, damage, foreign files, folders that cannot be used, and concurrent writes. */
#define SESSIONS_COMMIT session_file_commit
#define SESSIONS_LOAD session_file_load

#include "folder.h"
#include "sessions.h"

#include <dirent.h>
#include <errno.h>
#include <sys/file.h>
#include <time.h>

#include "duda/core/session/session_folder.h"

enum { HEAD_BYTES = 48 };

static int64_t now_s(void)
{
    return time(NULL);
}

static struct session_store *open_store(const char *folder)
{
    return open_store_of(mk_test_path(folder), &limits);
}

/* The path of a session's file in `folder`. */
static const char *path_of(const char *folder, unsigned n)
{
    char name[SESSION_NAME_BYTES], text[256];
    struct session_key key = make_key(n);
    session_folder_name(&key, name);
    snprintf(text, sizeof(text), "%s/%s", folder, name);
    return mk_test_path(text);
}

/* Sets the last use of a session to `age` seconds ago. */
static void set_age(const char *folder, unsigned n, int64_t age)
{
    struct timespec times[2] = {{.tv_sec = now_s() - age}, {.tv_sec = now_s() - age}};
    assert_int_equal(utimensat(AT_FDCWD, path_of(folder, n), times, 0), 0);
}

static unsigned count_files(const char *folder)
{
    unsigned n = 0;
    DIR *dir = opendir(mk_test_path(folder));
    assert_non_null(dir);
    for (const struct dirent *d; (d = readdir(dir));)
        n += strncmp(d->d_name, "lock-", 5) != 0 && d->d_name[0] != '.';
    closedir(dir);
    return n;
}

TEST(files)
{
    struct session_store *store = open_store("files");
    struct stat st;
    assert_int_equal(load(store, 1, now_s()), -ENOENT);
    assert_int_equal(create(store, 1, now_s()), 0);
    assert_int_equal(update(store, 1, "user", "ada", now_s()), 0);
    assert_value(store, 1, "n", "1", now_s());
    assert_value(store, 1, "user", "ada", now_s());
    assert_int_equal(stat(mk_test_path("files"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(path_of("files", 1), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(count_files("files"), 1);
    assert_int_equal(update(store, 2, "a", "b", now_s()), -ESTALE);
    session_store_drop(store);
    store = open_store("files"); /* after a restart */
    assert_value(store, 1, "user", "ada", now_s());
    session_store_drop(store);
}

TEST(renewal_and_destruction)
{
    struct session_store *store = open_store("renewal");
    struct session_change c = change("user", "ada");
    struct session_commit renew = {.has_from = true,
                                   .from = make_key(1),
                                   .has_to = true,
                                   .to = make_key(2),
                                   .changes = &c,
                                   .ends = now_s() + LIFE};
    struct session_commit destroy = {.has_from = true, .from = make_key(2), .drops = true};
    assert_int_equal(create(store, 1, now_s()), 0);
    assert_int_equal(session_file_commit(store, &renew, now_s()), 0);
    assert_int_equal(load(store, 1, now_s()), -ENOENT);
    assert_value(store, 2, "n", "1", now_s());
    assert_value(store, 2, "user", "ada", now_s());
    assert_int_equal(session_file_commit(store, &renew, now_s()), -ESTALE);
    assert_int_equal(count_files("renewal"), 1);
    assert_int_equal(session_file_commit(store, &destroy, now_s()), 0);
    assert_int_equal(session_file_commit(store, &destroy, now_s()), 0);
    assert_int_equal(load(store, 2, now_s()), -ENOENT);
    assert_int_equal(count_files("renewal"), 0);
    assert_int_equal(atomic_load(&store->files), 0);
    session_store_drop(store);
}

TEST(expiry)
{
    struct session_store *store = open_store("expiry");
    int64_t now = now_s();
    assert_int_equal(create(store, 1, now_s()), 0);
    set_age("expiry", 1, IDLE - 10);
    assert_int_equal(load(store, 1, now_s()), 0); /* which counts as use */
    assert_int_equal(load(store, 1, now + IDLE - 10), 0);
    set_age("expiry", 1, IDLE);
    assert_int_equal(update(store, 1, "a", "b", now_s()), -ESTALE);
    assert_int_equal(count_files("expiry"), 0);
    assert_int_equal(create(store, 2, now_s()), 0);
    set_age("expiry", 2, -LIFE); /* in use until then */
    assert_int_equal(load(store, 2, now + LIFE - 1), 0);
    set_age("expiry", 2, -LIFE);
    assert_int_equal(load(store, 2, now + LIFE + 1), -ENOENT);
    assert_int_equal(count_files("expiry"), 0);
    session_store_drop(store);
}

TEST(cleaning)
{
    struct session_store *store = open_store("cleaning");
    assert_true(session_file_must_clean(store, 1000));
    assert_false(session_file_must_clean(store, 1000));
    for (unsigned n = 1; n <= 3; n++)
        assert_int_equal(create(store, n, now_s()), 0);
    set_age("cleaning", 2, IDLE);
    mk_test_write("cleaning/0123.new", MK_STR("left by a process that was killed"));
    mk_test_write("cleaning/README", MK_STR("no session"));
    struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, mk_test_path("cleaning/0123.new"), old, 0), 0);
    assert_int_equal(session_file_clean(store, now_s()), 0);
    assert_int_equal(count_files("cleaning"), 3);
    assert_int_equal(atomic_load(&store->files), 2);
    assert_int_equal(load(store, 1, now_s()), 0);
    assert_int_equal(load(store, 2, now_s()), -ENOENT);
    assert_int_equal(access(mk_test_path("cleaning/README"), F_OK), 0);
    assert_false(session_file_must_clean(store, now_s()));
    assert_true(session_file_must_clean(store, now_s() + 61));
    session_store_drop(store);
}

TEST(the_bound)
{
    struct session_store *store = open_store("bound");
    for (unsigned n = 1; n <= 3; n++) {
        assert_int_equal(create(store, n, now_s()), 0);
        set_age("bound", n, IDLE / 2 - n);
    }
    set_age("bound", 1, 0);
    assert_int_equal(create(store, 4, now_s()), 0);
    assert_int_equal(count_files("bound"), 3);
    assert_int_equal(load(store, 2, now_s()), -ENOENT); /* the longest unused */
    assert_int_equal(load(store, 1, now_s()), 0);
    assert_int_equal(load(store, 3, now_s()), 0);
    session_store_drop(store);
    store = open_store("bound"); /* counts what is there */
    set_age("bound", 3, IDLE / 2);
    assert_int_equal(create(store, 5, now_s()), 0);
    assert_int_equal(count_files("bound"), 3);
    assert_int_equal(load(store, 3, now_s()), -ENOENT);
    session_store_drop(store);
}

/* A file that is cut anywhere, or has a changed byte, is an expired session, and is removed. */
TEST(damage)
{
    struct session_store *store = open_store("damage");
    char whole[512];
    assert_int_equal(create(store, 1, now_s()), 0);
    assert_int_equal(update(store, 1, "user", "ada", now_s()), 0);
    int fd = open(path_of("damage", 1), O_RDONLY);
    ssize_t size = read(fd, whole, sizeof(whole));
    close(fd);
    assert_true(size > HEAD_BYTES);
    char name[128];
    snprintf(name, sizeof(name), "damage/%s", strrchr(path_of("damage", 1), '/') + 1);
    mk_test_write(name, mk_str(whole, (size_t)size));
    assert_int_equal(load(store, 1, now_s()), 0);
    for (ssize_t cut = 0; cut < size; cut++) {
        mk_test_write(name, mk_str(whole, (size_t)cut));
        assert_int_equal(load(store, 1, now_s()), -ENOENT);
        assert_int_not_equal(access(mk_test_path(name), F_OK), 0);
    }
    for (ssize_t at = 0; at < size; at++) {
        whole[at] ^= 1;
        mk_test_write(name, mk_str(whole, (size_t)size));
        assert_int_equal(update(store, 1, "a", "b", now_s()), -ESTALE);
        whole[at] ^= 1;
    }
    session_store_drop(store);
}

TEST(foreign_files)
{
    struct session_store *store = open_store("foreign");
    char name[128], first[256];
    assert_int_equal(create(store, 1, now_s()), 0);
    snprintf(first, sizeof(first), "%s", path_of("foreign", 1));
    snprintf(name, sizeof(name), "foreign/%s", strrchr(path_of("foreign", 2), '/') + 1);
    assert_int_equal(rename(first, path_of("foreign", 2)), 0); /* another session's */
    assert_int_equal(load(store, 2, now_s()), -ENOENT);
    mk_test_write("target", MK_STR("precious"));
    mk_test_link("../target", name);
    assert_int_equal(load(store, 2, now_s()), -ENOENT);
    assert_int_equal(access(mk_test_path("target"), F_OK), 0);
    assert_int_not_equal(access(mk_test_path(name), F_OK), 0);
    assert_int_equal(mkfifo(mk_test_path(name), 0600), 0);
    assert_int_equal(load(store, 2, now_s()), -ENOENT);
    session_store_drop(store);
}

TEST(folders_that_cannot_be_used)
{
    struct session_store *store = open_store("open");
    mk_test_mkdir("open"); /* 0755 */
    assert_int_equal(create(store, 1, now_s()), -EIO);
    assert_int_equal(load(store, 1, now_s()), -EIO);
    assert_int_equal(session_file_clean(store, now_s()), -EIO);
    assert_int_equal(chmod(mk_test_path("open"), 0700), 0);
    assert_int_equal(create(store, 1, now_s()), 0);
    session_store_drop(store);
    store = open_store("none/below");
    assert_int_equal(create(store, 1, now_s()), -EIO);
    session_store_drop(store);
    mk_test_link("open", "link");
    store = open_store("link");
    assert_int_equal(load(store, 1, now_s()), -EIO);
    session_store_drop(store);
}

/* Another process that keeps a lock delays a request, but not for ever. */
TEST(a_lock_that_is_kept)
{
    struct session_store *store = open_store("locked");
    assert_int_equal(create(store, 1, now_s()), 0);
    char name[16];
    snprintf(name, sizeof(name), "locked/lock-%x", make_key(1).bytes[0] >> 4);
    int fd = open(mk_test_path(name), O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(load(store, 1, now_s()), -EIO);
    close(fd);
    assert_int_equal(load(store, 1, now_s()), 0);
    session_store_drop(store);
}

/* With two stores, as two processes have. */
TEST(concurrent_writes)
{
    struct session_store *first = open_store("concurrent"), *second = open_store("concurrent");
    write_from_threads(first, second, 50, now_s());
    assert_int_equal(count_files("concurrent"), 1);
    mk_list_init(&stores);
    mk_list_add(&stores, &first->node);
    session_store_drop(first);
    mk_list_add(&stores, &second->node);
    session_store_drop(second);
}

/* ── without memory ── */

static int use_store(void *ctx)
{
    struct session_store *store = ctx;
    struct session_change c = change("n", "1");
    struct session_commit commit = {
        .has_from = true, .drops = true, .from = make_key(1), .has_to = true, .to = make_key(1), .changes = &c};
    struct mk_str values;
    int err = session_file_clean(store, now_s());
    if (err == 0)
        err = session_file_commit(store, &commit, now_s());
    if (err == 0) {
        err = session_file_load(store, &commit.from, now_s(), &values);
        heap_free((char *)(uintptr_t)values.p, values.len);
    }
    return err;
}

TEST(without_memory)
{
    struct session_store *store = open_store("memory");
    assert_int_equal(create(store, 1, now_s()), 0);
    assert_true(mk_test_failing_allocs(use_store, store) >= 4);
    assert_int_equal(load(store, 1, now_s()), 0);
    session_store_drop(store);
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)
