// SPDX-License-Identifier: Apache-2.0
/* Paths that are loaded without a request: lists, sitemaps and folders, what is counted, and what ends a run. */
#include "fixture.h"

#include "plugins/cache/calls.h"

static struct preload preload;

static void begin(const char *list)
{
    assert_int_equal(preload_init(&preload, site.cache, site.current->default_host), 0);
    mk_buf_adds(&preload.list, mk_str_c(list));
    disk.is_fast = true;
}

static void run(void)
{
    while (preload_slice(&preload, mk_loop_now_ms(mk_worker_loop(site.worker)), later_wall_seconds(&w)))
        ;
}

static void expect_result(uint64_t asked, uint64_t kept, uint64_t present, uint64_t failed)
{
    assert_int_equal(preload.asked, asked);
    assert_int_equal(preload.kept, kept);
    assert_int_equal(preload.present, present);
    assert_int_equal(preload.failed, failed);
}

static void load(const char *list)
{
    preload_release(&preload);
    begin(list);
    run();
}

/* Checks that the errors of the run contain this text. */
static void expect_error(const char *text)
{
    char out[8192];
    struct mk_buf buf;
    mk_buf_init_fixed(&buf, out, sizeof(out) - 1);
    preload_write(&preload, &buf);
    out[buf.len] = '\0';
    if (!strstr(out, text))
        fail_msg("%s is not in %s", text, out);
}

TEST(list)
{
    open_with_limits("");
    load("# files\n/a.txt\n\n  /b.txt  \n/none\nhttp://h/dir/c.txt?x=1#y\n");
    expect_result(4, 3, 0, 1);
    expect_error("{\"path\":\"/none\",\"error\":\"there is no such file\"}");
    assert_int_equal(preload.kept_bytes, 5 + 6 + 5);
    clear_calls();
    assert_string_equal(ask_body("a.txt"), "first");
    assert_string_equal(ask_body("dir/c.txt"), "third");
    assert_string_equal(ask_body("none"), "404");
    assert_int_equal(disk.opens, 0);
    load("/a.txt\n/b.txt\n");
    expect_result(2, 0, 2, 0);
    preload_release(&preload);
    close_cache();
}

TEST(what_is_not_kept)
{
    open_with_limits("[CACHE]\n    Match /b.txt\n    Files Off\n");
    load("/b.txt\n/.secret\n/dir\n/users/x\nhttp://other/a.txt\na.txt\n/x%2fy\n");
    expect_result(7, 0, 0, 7);
    static const char *const errors[] = {"Files Off",    "/.secret",       "ends with a slash", "never cached",
                                         "another host", "neither a path", "encoded slash"};
    for (size_t i = 0; i < COUNT(errors); i++)
        expect_error(errors[i]);
    assert_non_null(strstr(preload.first_error, "/b.txt: Files Off"));
    preload_release(&preload);
    close_cache();
}

TEST(changed_a_moment_ago)
{
    open_with_limits("");
    begin("/a.txt\n");
    assert_false(preload_slice(&preload, mk_loop_now_ms(mk_worker_loop(site.worker)), time(NULL)));
    expect_result(1, 0, 0, 1);
    expect_error("less than three seconds ago");
    preload_release(&preload);
    close_cache();
}

TEST(sitemap)
{
    open_with_limits("");
    begin("<urlset><url><loc> http://h/a.txt </loc></url><url><loc>/dir/c.txt</loc></url><loc>/b");
    preload.is_sitemap = true;
    run();
    expect_result(2, 2, 0, 0);
    preload_release(&preload);
    close_cache();
}

TEST(folder)
{
    open_with_limits("");
    begin("");
    assert_int_equal(preload_start_folder(&preload, MK_STR("/none/")), -ENOENT);
    assert_int_equal(preload_start_folder(&preload, MK_STR("/")), 0);
    assert_int_equal(preload_start_folder(&preload, MK_STR("/dir/")), 0);
    run();
    expect_result(1, 1, 0, 0);
    preload_release(&preload);
    close_cache();
}

/* An entry that is asked for again is replaced, by its file as it is now. */
TEST(refreshed)
{
    open_with_limits("");
    load("/a.txt\n");
    replace_file("a.txt", MK_STR("other"));
    preload_release(&preload);
    begin("/a.txt\n");
    preload.refresh = true;
    run();
    expect_result(1, 1, 0, 0);
    assert_string_equal(ask_body("a.txt"), "other");
    replace_file("a.txt", MK_STR("first"));
    preload_release(&preload);
    close_cache();
}

TEST(limits)
{
    open_with_limits("");
    begin("/a.txt\n/b.txt\n/dir/c.txt\n");
    preload.paths_max = 2;
    run();
    expect_result(2, 2, 0, 0);
    expect_error("\"more\":true");
    preload_release(&preload);
    begin("/a.txt\n");
    preload.paths_max = 1;
    run();
    assert_false(preload.has_more);
    preload_release(&preload);
    close_cache();
}

TEST(cancelled)
{
    _Atomic bool cancelled = true;
    open_with_limits("");
    begin("/a.txt\n");
    preload.cancelled = &cancelled;
    run();
    expect_result(0, 0, 0, 0);
    preload_release(&preload);
    close_cache();
}

/* A full cache takes no more, but what a client asks for by name displaces others. */
TEST(full)
{
    open_with_limits("");
    site.cache->bytes_max = 1;
    load("/a.txt\n/b.txt\n");
    expect_result(1, 0, 0, 1);
    expect_error("\"full\":true");
    preload_release(&preload);
    begin("/a.txt\n/b.txt\n");
    preload.refresh = true;
    run();
    expect_result(2, 2, 0, 0);
    preload_release(&preload);
    close_cache();
}

TEST(errors_have_a_limit)
{
    enum { PATHS = PRELOAD_ERRORS_MAX + 5 };
    open_with_limits("");
    begin("");
    for (int i = 0; i < PATHS; i++)
        mk_buf_adds(&preload.list, MK_STR("/n\n"));
    run();
    expect_result(PATHS, 0, 0, PATHS);
    struct mk_buf out;
    mk_buf_init(&out, 1 << 20);
    preload_write(&preload, &out);
    assert_non_null(strstr(mk_buf_cstr(&out), "\"errors_omitted\":5"));
    mk_buf_release(&out);
    preload_release(&preload);
    close_cache();
}

TEST(read_from_a_file)
{
    open_with_limits("");
    begin("");
    int fd = open(mk_test_path("root/list"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(preload_read_list(&preload, fd), 0);
    close(fd);
    run();
    expect_result(1, 1, 0, 0);
    fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_int_equal(preload_read_list(&preload, fd), -EFBIG);
    close(fd);
    fd = open(mk_test_path("root"), O_RDONLY | O_CLOEXEC);
    assert_true(preload_read_list(&preload, fd) < 0);
    close(fd);
    preload_release(&preload);
    close_cache();
}

/* What cannot be kept without memory is an error of its path; nothing is lost. */
TEST(no_memory)
{
    unsigned before = mk_test_descriptors();
    for (size_t k = 0; k < 2; k++) {
        _Atomic long *countdown = k ? &mk__pages_countdown : &mk__alloc_countdown;
        bool happened = true;
        for (long n = 0; happened; n++) {
            open_with_limits("");
            begin("/a.txt\n/dir/c.txt\n");
            *countdown = n;
            int err = preload_start_folder(&preload, MK_STR("/"));
            run();
            happened = *countdown < 0;
            *countdown = -1;
            assert_true(err == 0 || happened);
            assert_true(preload.asked == preload.kept + preload.present + preload.failed);
            assert_string_equal(ask_body("a.txt"), "first");
            preload_release(&preload);
            close_cache();
        }
    }
    assert_int_equal(mk_test_descriptors(), before);
}

static int make_files(void **state)
{
    if (make_cache_folder(state) < 0)
        return -1;
    mk_test_mkdir("root/dir");
    mk_test_write("root/a.txt", MK_STR("first"));
    mk_test_write("root/b.txt", MK_STR("second"));
    mk_test_write("root/dir/c.txt", MK_STR("third"));
    mk_test_write("root/list", MK_STR("/a.txt\n"));
    return 0;
}

TEST_FILE(make_files, mk_test_folder_remove)
