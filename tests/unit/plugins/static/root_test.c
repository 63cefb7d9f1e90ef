// SPDX-License-Identifier: Apache-2.0
/* The document root as a place that is swapped: when it is checked, what is noticed, and which request sees which. */
#include "folder.h"

#include <errno.h>
#include <stdio.h>

#include "plugins/static/static.h"

static struct static_settings settings = {.symlinks = SYMLINKS_INSIDE};
static struct static_host host;
static struct static_site site;
static char written[600];

static char read_letter(const char *path)
{
    char letter = '-';
    struct find_result f = find_path(&site, mk_str_c(path), NULL, false);
    if (f.kind == FOUND_FILE) {
        assert_int_equal(read(f.fd, &letter, 1), 1);
        close(f.fd);
    }
    return letter;
}

/* Points `current` at another directory in one step, as releases are published. */
static void publish(const char *target)
{
    char from[600];
    mk_test_link(target, "next");
    snprintf(from, sizeof(from), "%s", mk_test_path("next"));
    assert_int_equal(rename(from, written), 0);
}

static void start(void)
{
    publish("releases/a");
    site = (struct static_site){.settings = &settings, .host = &host};
    assert_int_equal(mk__static_root_open(&site, mk_str_c(written)), 0);
    assert_true(site.next_check_ms > ROOT_CHECK_MS);
    site.next_check_ms = 5000;
}

/* As a disk thread does that has begun the check. */
static void check_at_once(void)
{
    site.next_check_ms = ROOT_CHECKING;
    mk__static_root_check(&site, 0);
}

/* As a request does. The kernel may say at any time that it would have to wait: then a disk thread looks. */
static void look(uint64_t now)
{
    if (mk__static_root_begin_check(&site, now))
        mk__static_root_check(&site, now);
    assert_int_equal(site.next_check_ms, now + ROOT_CHECK_MS);
}

TEST(looks_once_a_second)
{
    start();
    assert_false(mk__static_root_begin_check(&site, 4999));
    assert_int_equal(site.next_check_ms, 5000);
    look(5000);
    assert_int_equal(site.swap_seq, 0);
    publish("releases/b");
    assert_false(mk__static_root_begin_check(&site, 5999));
    assert_true(mk__static_root_begin_check(&site, 6000));
    assert_false(mk__static_root_begin_check(&site, 9000)); /* another call has begun it */
    mk__static_root_end_check(&site, 9000);
    assert_int_equal(site.next_check_ms, 10000);
    assert_int_equal(read_letter("/file"), 'a');
    assert_true(mk__static_root_begin_check(&site, 10000));
    mk__static_root_check(&site, 10000);
    assert_int_equal(site.next_check_ms, 11000);
    assert_int_equal(read_letter("/file"), 'b');
    look(11000);
    assert_int_equal(site.swap_seq, 2);
    mk__static_root_close(&site);
}

TEST(the_directory_itself)
{
    char b[600], moved[600];
    snprintf(b, sizeof(b), "%s", mk_test_path("releases/b"));
    snprintf(moved, sizeof(moved), "%s", mk_test_path("releases/moved"));
    start();
    publish("releases/b");
    check_at_once();
    assert_int_equal(rename(b, moved), 0);
    look(5000);
    check_at_once();
    assert_int_equal(read_letter("/file"), 'b'); /* better than nothing */
    mk_test_mkdir("releases/b");
    mk_test_write("releases/b/file", MK_STR("c"));
    assert_true(mk__static_root_begin_check(&site, 9000));
    mk__static_root_check(&site, 9000);
    assert_int_equal(read_letter("/file"), 'c');
    mk__static_root_close(&site);
    assert_int_equal(mk_test_remove(b), 0);
    assert_int_equal(rename(moved, b), 0);
}

/* Absolute links are followed by what the root is called now. */
TEST(links_inside)
{
    start();
    assert_int_equal(read_letter("/absolute"), 'a');
    publish("releases/b");
    check_at_once();
    assert_int_equal(read_letter("/absolute"), 'b');
    assert_int_equal(read_letter("/other"), '-'); /* leads into releases/a */
    mk__static_root_close(&site);
}

TEST(what_cannot_be_opened)
{
    unsigned before = mk_test_descriptors();
    char path[600];
    site = (struct static_site){.settings = &settings, .host = &host};
    snprintf(path, sizeof(path), "%s", mk_test_path("nowhere"));
    assert_int_equal(mk__static_root_open(&site, mk_str_c(path)), -ENOENT);
    snprintf(path, sizeof(path), "%s", mk_test_path("releases/a/file"));
    assert_int_equal(mk__static_root_open(&site, mk_str_c(path)), -ENOTDIR);
    assert_int_equal(mk_test_descriptors(), before);
}

/* ── swapped while others look ── */

static _Atomic bool stopping;

static void *swap_for_ever(void *ctx)
{
    (void)ctx;
    for (int i = 0; !stopping; i++) {
        publish(i % 2 ? "releases/a" : "releases/b");
        check_at_once();
    }
    return NULL;
}

/* One file of three names leads into each release; a client that saw two releases would find none of them. */
TEST(no_request_sees_two)
{
    static struct mk_str index[] = {MK_STR("only-a"), MK_STR("only-b")};
    pthread_t thread;
    unsigned seen[256] = {0};
    settings.index = (struct mk_conf_list){index, 2};
    start();
    stopping = false;
    assert_int_equal(pthread_create(&thread, NULL, swap_for_ever, NULL), 0);
    for (int i = 0; i < 200000 && (i < 3000 || !seen['a'] || !seen['b']); i++) {
        seen[(unsigned char)read_letter("/")]++;
        seen[(unsigned char)read_letter("/absolute")]++;
    }
    stopping = true;
    pthread_join(thread, NULL);
    assert_int_equal(seen['-'], 0);
    assert_true(seen['a'] > 0 && seen['b'] > 0);
    mk__static_root_close(&site);
    settings.index.n = 0;
}

static int set_up(void **state)
{
    char target[600];
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("releases");
    mk_test_mkdir("releases/a");
    mk_test_mkdir("releases/b");
    mk_test_write("releases/a/file", MK_STR("a"));
    mk_test_write("releases/b/file", MK_STR("b"));
    mk_test_write("releases/a/only-a", MK_STR("a"));
    mk_test_write("releases/b/only-b", MK_STR("b"));
    snprintf(target, sizeof(target), "%s", mk_test_path("releases/a/file"));
    mk_test_link(target, "releases/a/absolute");
    mk_test_link(target, "releases/b/other");
    snprintf(target, sizeof(target), "%s", mk_test_path("releases/b/file"));
    mk_test_link(target, "releases/b/absolute");
    snprintf(written, sizeof(written), "%s", mk_test_path("current"));
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
