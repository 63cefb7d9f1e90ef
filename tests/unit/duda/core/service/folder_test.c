// SPDX-License-Identifier: Apache-2.0
/* The folders of a service, and paths in them. */
#include "testing.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "service_slots.h"

#include "duda/core/common/current.h"
#include "duda/core/service/folder.h"

static struct duda_service_info info = {.level = DUDA_API_LEVEL};
static struct service service;
static struct service_worker worker;
static struct mk_test_slots slots;
static struct mk_test_fixture fixture;
static char root[] = "/tmp/folder-XXXXXX";

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return rmdir(root);
}

TEST_FILE(make_root, remove_root)

static int begin(void **state)
{
    (void)state;
    memset(&service, 0, sizeof(service));
    memset(&worker, 0, sizeof(worker));
    assert_int_equal(mk_test_fixture_open(&fixture, NULL), 0);
    worker.loop = &fixture.loop;
    mk_test_slots_open(&slots, &service, &worker);
    mk_arena_init(&service.arena, NULL, 1 << 20, NULL, 0);
    pthread_mutex_init(&service.lock, NULL);
    info.level = DUDA_API_LEVEL;
    service.info = &info;
    service.self.name = (struct duda_string){(char *)(uintptr_t) "test", 4};
    current = (struct current){.service = &service}; /* duda_main() */
    return 0;
}

static int end(void **state)
{
    (void)state;
    current = (struct current){0};
    folders_release(&service);
    pthread_mutex_destroy(&service.lock);
    mk_arena_release(&service.arena);
    mk_test_slots_close(&slots);
    mk_test_fixture_close(&fixture);
    return 0;
}

TEST(a_copy_ends_with_a_slash, begin, end)
{
    static const char *const rows[][2] = {{"", ""}, {"/", "/"}, {"/a", "/a/"}, {"/a/", "/a/"}, {"/a/b", "/a/b/"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_str copy = folder_dup(&service.arena, mk_str_c(rows[i][0]));
        assert_str_equal(copy, rows[i][1]);
        assert_int_equal(copy.p[copy.len], '\0');
    }
}

TEST(paths_stay_in_the_folder, begin, end)
{
    static const struct {
        const char *folder, *file, *path; /* path NULL: refused */
    } rows[] = {
        {"/d/", "a", "/d/a"},     {"/d/", "a/b.c", "/d/a/b.c"}, {"/d/", "..a/b..", "/d/..a/b.."},
        {"/d/", "...", "/d/..."}, {"/d/", "..", NULL},          {"/d/", "../a", NULL},
        {"/d/", "a/..", NULL},    {"/d/", "a/../b", NULL},      {"/d/", "/a", NULL},
        {"/d/", "", NULL},        {"/d/", NULL, NULL},          {"", "a", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct duda_string folder = {(char *)(uintptr_t)rows[i].folder, strlen(rows[i].folder)};
        char *path = folder_join(&service.arena, &folder, rows[i].file, "data->open()");
        if (rows[i].path)
            assert_string_equal(path, rows[i].path);
        else
            assert_null(path);
    }
}

/* In duda_main() the folder of `self` changes; later only a service of the original API sets another one. */
TEST(folders_change, begin, end)
{
    char with_slash[PATH_MAX];
    snprintf(with_slash, sizeof(with_slash), "%s/", root);
    assert_int_equal(folder_set(FOLDER_DATA, root, "data->set()"), 0);
    assert_string_equal(folder_get(&service, FOLDER_DATA)->data, with_slash);
    assert_ptr_equal(folder_get(&service, FOLDER_DATA), &service.self.datadir);
    assert_int_equal(folder_set(FOLDER_CONF, "/none/there", "conf->set()"), -1);
    assert_int_equal(folder_set(FOLDER_CONF, "/dev/null", "conf->set()"), -1);
    assert_int_equal(folder_set(FOLDER_CONF, NULL, "conf->set()"), -1);
    assert_null(folder_get(&service, FOLDER_CONF)->data);
    service.state = SERVICE_RUNS;
    struct current outer = current_enter(&service, &worker);
    assert_int_equal(folder_set(FOLDER_CONF, root, "conf->set()"), -1);
    info.level = 1;
    assert_int_equal(folder_set(FOLDER_CONF, root, "conf->set()"), 0);
    current_leave(outer);
    assert_string_equal(folder_get(&service, FOLDER_CONF)->data, with_slash);
    assert_null(service.self.confdir.data);
}

/* Paths last as long as the service, so that one which was set before is used again, and there is a limit. */
TEST(paths_are_kept, begin, end)
{
    char path[PATH_MAX];
    info.level = 1;
    service.state = SERVICE_RUNS;
    struct current outer = current_enter(&service, &worker);
    assert_int_equal(folder_set(FOLDER_DATA, root, "data->set()"), 0);
    const struct duda_string *first = folder_get(&service, FOLDER_DATA);
    for (int i = 1; i < 64; i++) {
        assert_true(snprintf(path, sizeof(path), "%s%.*s", root, i * 2, /* "/./." ... */
                             "/./././././././././././././././././././././././././././././././."
                             "/./././././././././././././././././././././././././././././././.") > 0);
        assert_int_equal(folder_set(FOLDER_DATA, path, "data->set()"), 0);
    }
    assert_int_equal(folders_of(&service)->n, 64);
    assert_int_equal(folder_set(FOLDER_DATA, "/tmp", "data->set()"), -1);
    assert_int_equal(folder_set(FOLDER_DATA, root, "data->set()"), 0);
    assert_ptr_equal(folder_get(&service, FOLDER_DATA), first);
    assert_int_equal(folders_of(&service)->n, 64);
    current_leave(outer);
}

TEST(without_memory, begin, end)
{
    info.level = 1;
    service.state = SERVICE_RUNS;
    struct current outer = current_enter(&service, &worker);
    mk__alloc_countdown = 0;
    assert_int_equal(folder_set(FOLDER_DATA, root, "data->set()"), -1);
    mk__alloc_countdown = -1;
    current_leave(outer);
    assert_ptr_equal(folder_get(&service, FOLDER_DATA), &service.self.datadir);
}
