// SPDX-License-Identifier: Apache-2.0
/*
 * Opening shared objects: those that can be opened, the reasons for those that cannot, and symbols. (What modules and
 * HTTP/2 say about spoilt files is tested with them.)
 */
#include "folder.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/library.h"

static char reason[256];
static struct mk_buf error;

static void *open_library(const char *file, bool reload)
{
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    void *handle = mk__library_open(file, reload, &error);
    mk_buf_cstr(&error);
    return handle;
}

static void test_by_name(void **state)
{
    size_t (*length)(const char *) = NULL;
    void *nothing = &length;
    const struct mk__library_symbol found = {"strlen", &length}, missing = {"mk_nothing", &nothing};
    (void)state;
    void *handle = open_library("libc.so.6", false);
    assert_non_null(handle);
    assert_int_equal(mk__library_find(handle, &found, 1, &error), 0);
    assert_int_equal(length("four"), 4);
    assert_int_equal(mk__library_find(handle, &missing, 1, &error), -ENOEXEC);
    assert_string_equal(mk_buf_cstr(&error), "the symbol mk_nothing is missing");
    assert_ptr_equal(nothing, &length);
    dlclose(handle);
}

static void test_a_name_that_does_not_exist(void **state)
{
    (void)state;
    assert_null(open_library("libmk-nothing.so.9", false));
    assert_string_equal(reason, "cannot open shared object file: No such file or directory");
}

/* A file that is open already is returned again; with `reload` its file may be another one. */
static void test_the_same_file(void **state)
{
    char path[4096];
    Dl_info info;
    (void)state;
    void *first = open_library("libz.so.1", false);
    if (!first)
        skip();
    assert_int_not_equal(dladdr(dlsym(first, "zlibVersion"), &info), 0);
    snprintf(path, sizeof(path), "%s", info.dli_fname);
    void *again = open_library(path, false);
    assert_ptr_equal(again, first);
    dlclose(again);
    dlclose(first);
}

static void test_files(void **state)
{
    static const struct {
        const char *name, *reason;
    } cases[] = {
        {"missing.so", "No such file or directory"},
        {"fifo.so", "not a regular file"},
        {"empty.so", "file too short"},
        {"part.so", "the file is incomplete: copy it again"},
        {"text.so", "invalid ELF header"},
    };
    static char bytes[5000];
    (void)state;
    assert_int_equal(mkfifo(mk_test_path("fifo.so"), 0600), 0);
    mk_test_write("empty.so", MK_STR(""));
    memset(bytes, 'x', sizeof(bytes));
    mk_test_write("text.so", mk_str(bytes, sizeof(bytes)));
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
    close(fd);
    mk_test_write("part.so", mk_str(bytes, sizeof(bytes)));
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(cases) * 2; i++) {
        assert_null(open_library(mk_test_path(cases[i / 2].name), i & 1));
        if (!strstr(reason, cases[i / 2].reason) || strstr(reason, ".so: "))
            fail_msg("case %zu: \"%s\"", i, reason);
    }
    assert_int_equal(mk_test_descriptors(), before);
    assert_string_equal(mk__library_check(mk_test_path("part.so")), cases[3].reason);
    assert_null(mk__library_check("/proc/self/exe"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_a_name_that_does_not_exist),
        cmocka_unit_test(test_the_same_file),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, mk_test_folder_make, mk_test_folder_remove);
}
