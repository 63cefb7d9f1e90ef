// SPDX-License-Identifier: Apache-2.0
/*
 * Opening shared objects: those that can be opened, the reasons for those that cannot, and symbols. (What modules and
 * HTTP/2 say about spoilt files is tested with them.)
 */
#include "folder.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <sys/stat.h>

#include <monkey/base/library.h>

static char reason[256];
static struct mk_buf error;

static void *open_library(const char *file, enum mk_library_mode mode)
{
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    void *handle = mk_library_open(file, mode, &error);
    mk_buf_cstr(&error);
    return handle;
}

TEST(by_name)
{
    size_t (*length)(const char *) = NULL;
    void *nothing = &length;
    const struct mk_library_symbol found = {"strlen", &length}, missing = {"mk_nothing", &nothing};
    void *handle = open_library("libc.so.6", MK_LIBRARY_SHARED);
    assert_non_null(handle);
    assert_int_equal(mk_library_find(handle, &found, 1, &error), 0);
    assert_int_equal(length("four"), 4);
    assert_int_equal(mk_library_find(handle, &missing, 1, &error), -ENOEXEC);
    assert_string_equal(mk_buf_cstr(&error), "the symbol mk_nothing is missing");
    assert_ptr_equal(nothing, &length);
    dlclose(handle);
}

TEST(a_name_that_does_not_exist)
{
    assert_null(open_library("libmk-nothing.so.9", MK_LIBRARY_SHARED));
    assert_string_equal(reason, "cannot open shared object file: No such file or directory");
}

/* Writes a copy of zlib into the test's folder. Returns false if there is none. */
static bool write_zlib(const char *name)
{
    static char bytes[1 << 20];
    Dl_info info;
    void *handle = open_library("libz.so.1", MK_LIBRARY_SHARED);
    if (!handle)
        return false;
    assert_int_not_equal(dladdr(dlsym(handle, "zlibVersion"), &info), 0);
    int fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, bytes, sizeof(bytes));
    assert_true(n > 4096 && n < (ssize_t)sizeof(bytes));
    close(fd);
    mk_test_write(name, mk_str(bytes, (size_t)n));
    mk_library_close(handle);
    return true;
}

/*
 * The path of an object is that of its file, for debuggers. A sanitizer reads the names of functions by that of its
 * descriptor, which leads to it there until its last close.
 */
TEST(the_path_of_an_object)
{
    static const enum mk_library_mode modes[] = {MK_LIBRARY_REPLACED, MK_LIBRARY_COPY};
    bool has_sanitizer = dlsym(RTLD_DEFAULT, "__sanitizer_set_report_path") != NULL;
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(modes); i++) {
        struct link_map *map = NULL;
        if (!write_zlib("z.so"))
            skip();
        void *handle = open_library(mk_test_path("z.so"), modes[i]);
        void *again = open_library(mk_test_path("z.so"), modes[i]);
        assert_true(handle && again);
        assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
        mk_library_close(again);
        bool leads = has_sanitizer || modes[i] == MK_LIBRARY_REPLACED;
        assert_int_equal(access(map->l_name, R_OK), leads ? 0 : -1);
        mk_library_close(handle);
        assert_int_equal(mk_test_descriptors(), before);
    }
}

/* Whether a file that is open already is returned again, and whether one that has replaced it is. */
TEST(the_same_file)
{
    static const struct {
        enum mk_library_mode mode;
        bool same, replaced_same;
    } cases[] = {{MK_LIBRARY_SHARED, true, true}, {MK_LIBRARY_REPLACED, true, false}, {MK_LIBRARY_COPY, false, false}};
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(cases); i++) {
        char path[512], next[512];
        if (!write_zlib("z.so") || !write_zlib("next.so"))
            skip();
        snprintf(path, sizeof(path), "%s", mk_test_path("z.so"));
        snprintf(next, sizeof(next), "%s", mk_test_path("next.so"));
        void *first = open_library(path, cases[i].mode), *again = open_library(path, cases[i].mode);
        assert_true(first && again && (first == again) == cases[i].same);
        assert_int_equal(rename(next, path), 0);
        void *other = open_library(path, cases[i].mode);
        assert_true(other && (other == first) == cases[i].replaced_same);
        mk_library_close(first);
        mk_library_close(again);
        mk_library_close(other);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

/* The file of a copy may be overwritten and truncated: what runs does not change. */
/* Returns the bytes that the process has allocated. */
static size_t count_heap_bytes(void)
{
    size_t (*of_sanitizer)(void) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "__sanitizer_get_current_allocated_bytes");
    memcpy(&of_sanitizer, &found, sizeof(found));
    return of_sanitizer ? of_sanitizer() : mallinfo2().uordblks;
}

/* A reload opens its modules before the former ones are closed: the C library would keep a path of each. */
TEST(opened_again_without_memory)
{
    if (!write_zlib("libagain.so"))
        skip();
    void *handle = open_library(mk_test_path("libagain.so"), MK_LIBRARY_REPLACED);
    assert_non_null(handle);
    size_t before = 0;
    for (int i = 0; i < 100; i++) {
        void *next = open_library(mk_test_path("libagain.so"), MK_LIBRARY_REPLACED);
        assert_ptr_equal(next, handle);
        mk_library_close(handle);
        if (i == 0)
            before = count_heap_bytes();
    }
    assert_int_equal(count_heap_bytes(), before);
    mk_library_close(handle);
}

TEST(a_copy_keeps_its_bytes)
{
    static char zeros[300000];
    const char *(*version)(void) = NULL;
    unsigned long (*add)(unsigned long, const unsigned char *, unsigned) = NULL;
    const struct mk_library_symbol symbols[] = {{"zlibVersion", &version}, {"adler32", &add}};
    Dl_info info;
    if (!write_zlib("z.so"))
        skip();
    void *first = open_library(mk_test_path("z.so"), MK_LIBRARY_COPY);
    assert_non_null(first);
    mk_test_write("z.so", mk_str(zeros, sizeof(zeros)));
    mk_test_write("z.so", MK_STR(""));
    assert_int_equal(mk_library_find(first, symbols, COUNT(symbols), &error), 0); /* pages that nothing has touched */
    assert_true(version()[0] == '1' && add(1, (const unsigned char *)"a", 1) == 0x620062);
    assert_int_not_equal(dladdr((void *)(uintptr_t)version, &info), 0);
    assert_null(open_library(mk_test_path("z.so"), MK_LIBRARY_COPY));
    assert_string_equal(reason, "file too short");
    mk_library_close(first);
}

static bool is_mapped(const char *name)
{
    static char maps[1 << 20];
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    for (ssize_t n; (n = read(fd, maps + len, sizeof(maps) - 1 - len)) > 0;)
        len += (size_t)n;
    maps[len] = '\0';
    close(fd);
    return strstr(maps, name) != NULL;
}

TEST(a_copy_of_a_descriptor)
{
    if (!write_zlib("z.so"))
        skip();
    int fd = open(mk_test_path("z.so"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 100, SEEK_SET), 100);
    int copy;
    struct stat st, copied;
    void *one = mk_library_open_copy(fd, "service", &copy, &error);
    void *two = mk_library_open_copy(fd, "service", NULL, &error);
    assert_true(one && two && one != two);
    assert_true(fstat(fd, &st) == 0 && fstat(copy, &copied) == 0);
    assert_true(copied.st_size == st.st_size && copied.st_ino != st.st_ino);
    close(copy);
    assert_true(dlsym(one, "zlibVersion") != dlsym(two, "zlibVersion")); /* so are their variables */
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 100);                       /* the descriptor is as before */
    assert_true(is_mapped("memfd:service"));
    mk_library_close(one);
    assert_true(is_mapped("memfd:service"));
    mk_library_close(two);
    assert_false(is_mapped("memfd:service"));
    close(fd);
}

TEST(files)
{
    static const struct {
        const char *name, *reason;
    } cases[] = {
        {"missing.so", "No such file or directory"},
        {"fifo.so", "not a regular file"},
        {"empty.so", "file too short"},
        {"part.so", "the file is incomplete: copy it again"},
        {"text.so", "invalid ELF header"},
        {"machine.so", "it was compiled for another processor"},
    };
    static char bytes[5000];
    assert_int_equal(mkfifo(mk_test_path("fifo.so"), 0600), 0);
    mk_test_write("empty.so", MK_STR(""));
    memset(bytes, 'x', sizeof(bytes));
    mk_test_write("text.so", mk_str(bytes, sizeof(bytes)));
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
    close(fd);
    mk_test_write("part.so", mk_str(bytes, sizeof(bytes)));
    bytes[offsetof(ElfW(Ehdr), e_machine)] ^= 0x55;
    mk_test_write("machine.so", mk_str(bytes, sizeof(bytes)));
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(cases) * 3; i++) {
        assert_null(open_library(mk_test_path(cases[i / 3].name), (enum mk_library_mode)(i % 3)));
        if (!strstr(reason, cases[i / 3].reason) || strstr(reason, ".so: "))
            fail_msg("case %zu: \"%s\"", i, reason);
    }
    assert_int_equal(mk_test_descriptors(), before);
    assert_string_equal(mk_library_check(mk_test_path("part.so")), cases[3].reason);
    assert_null(mk_library_check("/proc/self/exe"));
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)
