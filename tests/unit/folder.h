// SPDX-License-Identifier: Apache-2.0
/*
 * A directory of a test's own, filled from text and removed as a whole.
 */
#ifndef MK_UNIT_FOLDER_H
#define MK_UNIT_FOLDER_H

#include "testing.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char mk_test_folder[64];

static inline const char *mk_test_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", mk_test_folder, name);
    return path;
}

static inline void mk_test_mkdir(const char *name)
{
    assert_int_equal(mkdir(mk_test_path(name), 0755), 0);
}

static inline void mk_test_write(const char *name, struct mk_str text)
{
    int fd = open(mk_test_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.p, text.len), text.len);
    close(fd);
}

static inline void mk_test_link(const char *target, const char *name)
{
    assert_int_equal(symlink(target, mk_test_path(name)), 0);
}

static inline int mk_test_remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

/* Removes a directory with all that it holds; 0 or -1. */
static inline int mk_test_remove(const char *path)
{
    return nftw(path, mk_test_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* For cmocka's group set-up and tear-down. */
static inline int mk_test_folder_make(void **state)
{
    (void)state;
    snprintf(mk_test_folder, sizeof(mk_test_folder), "/var/tmp/mk-unit-XXXXXX");
    return mkdtemp(mk_test_folder) ? 0 : -1;
}

static inline int mk_test_folder_remove(void **state)
{
    (void)state;
    return mk_test_remove(mk_test_folder);
}

/* How many descriptors this process has open. */
static inline unsigned mk_test_descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

#endif
