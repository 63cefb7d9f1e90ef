// SPDX-License-Identifier: Apache-2.0
/* When names are opened and revalidated, and what is counted, on a clock that the tests advance. */
#include "fixture.h"

#define RULE(value) "[CACHE]\n    Files " value "\n"

static struct counts counted;

/* Asks until the name is kept: at the second request. */
static void keep(const char *name)
{
    ask(name);
    ask(name);
    clear_calls();
    counted = read_counts();
}

/* Opens a cache with an entry that was revalidated so long ago, and a disk that makes the kernel wait. */
static void open_with_entry(const char *rule, unsigned age_ms)
{
    open_cache("", rule);
    keep("a.txt");
    disk.waits = true;
    mk_test_pass(&w, age_ms);
}

static void expect_calls(unsigned opens, unsigned checks)
{
    assert_int_equal(disk.opens, opens);
    assert_int_equal(disk.checks, checks);
    clear_calls();
}

TEST(kept_at_the_second_request)
{
    open_cache("", RULE("Revalidate 1s"));
    counted = read_counts();
    for (int i = 0; i < 5; i++)
        assert_string_equal(ask_body("a.txt"), "first");
    expect_calls(2, 0);
    expect_counts(&counted, COUNTS([COUNT_MISSES] = 2, [COUNT_HITS] = 3));
    close_cache();
}

/* However many requests there are. The time counts from the last check, not from the beginning of a second. */
TEST(one_check_in_an_interval)
{
    open_cache("", RULE("Revalidate 1s"));
    keep("a.txt");
    for (int seconds = 0; seconds < 3; seconds++) {
        for (int i = 0; i < 100; i++) {
            assert_string_equal(ask_body("a.txt"), "first");
            mk_test_pass(&w, i == 0 ? 0 : 10); /* 990 ms */
        }
        expect_calls(0, seconds > 0);
        mk_test_pass(&w, 9);
        ask("a.txt");
        expect_calls(0, 0); /* 999 ms */
        mk_test_pass(&w, 1);
    }
    expect_counts(&counted, COUNTS([COUNT_HITS] = 303, [COUNT_REVALIDATED] = 2));
    close_cache();
}

TEST(other_intervals)
{
    open_cache("", RULE("Revalidate 1ms"));
    keep("a.txt");
    ask("a.txt");
    expect_calls(0, 0);
    for (int i = 0; i < 5; i++) {
        mk_test_pass(&w, 1);
        ask("a.txt");
        ask("a.txt");
    }
    expect_calls(0, 5);
    close_cache();
    open_cache("", RULE("Revalidate 1h"));
    keep("a.txt");
    mk_test_pass(&w, 3600 * 1000 - 1);
    ask("a.txt");
    expect_calls(0, 0);
    mk_test_pass(&w, 1);
    ask("a.txt");
    expect_calls(0, 1);
    close_cache();
}

TEST(checked_before_it_is_served)
{
    open_cache("", RULE("Revalidate 1s"));
    keep("a.txt");
    replace_file("a.txt", MK_STR("second"));
    assert_string_equal(ask_body("a.txt"), "first");
    mk_test_pass(&w, 3600 * 1000);
    expect_calls(0, 0); /* a name that is not asked for costs nothing */
    assert_string_equal(ask_body("a.txt"), "second");
    expect_calls(1, 1);
    expect_counts(&counted, COUNTS([COUNT_HITS] = 1, [COUNT_MISSES] = 1));
    close_cache();
    replace_file("a.txt", MK_STR("first"));
}

/* Each of the kinds: a body, a descriptor, a folder, and a name that does not exist. */
TEST(all_kinds)
{
    static const char *const names[] = {"a.txt", "large.bin", "dir", "none"};
    for (size_t i = 0; i < COUNT(names); i++) {
        open_cache("    BodyMax 8K\n", RULE("Revalidate 1s"));
        keep(names[i]);
        for (int n = 0; n < 10; n++)
            ask(names[i]);
        expect_calls(0, 0);
        mk_test_pass(&w, 1000);
        for (int n = 0; n < 10; n++)
            ask(names[i]);
        expect_calls(0, 1);
        expect_counts(&counted, COUNTS([COUNT_HITS] = 20, [COUNT_REVALIDATED] = 1));
        close_cache();
    }
}

TEST(each_cycle)
{
    open_cache("", RULE("EachCycle"));
    keep("a.txt");
    for (int i = 0; i < 3; i++)
        ask("a.txt");
    expect_calls(0, 3);
    mk_test_connect(&w, MK_STR("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\nGET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n"));
    mk_test_settle(&w);
    expect_calls(0, 1); /* two requests of one turn */
    expect_counts(&counted, COUNTS([COUNT_HITS] = 5, [COUNT_REVALIDATED] = 4));
    close_cache();
}

/* The folder is opened once to be watched, and again after a quarter of the interval; names are not opened. */
TEST(notify)
{
    open_cache("", RULE("Notify 1h"));
    keep("a.txt");
    ask("a.txt");
    expect_calls(0, 1);
    for (int i = 0; i < 100; i++)
        assert_string_equal(ask_body("a.txt"), "first");
    expect_calls(0, 0);
    expect_counts(&counted, COUNTS([COUNT_HITS] = 101, [COUNT_REVALIDATED] = 1));
    mk_test_write("root/b.txt", MK_STR("other"));
    replace_file("a.txt", MK_STR("second"));
    assert_string_equal(ask_body("a.txt"), "second");
    expect_calls(1, 0);
    expect_counts(&counted, COUNTS([COUNT_MISSES] = 1));
    close_cache();
    replace_file("a.txt", MK_STR("first"));
}

#define GET_A "GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n"

static struct mk_test_client *late_client;

static void replace_and_ask(void)
{
    replace_file("a.txt", MK_STR("second"));
    mk_test_send(late_client, MK_STR(GET_A));
}

static const char *body_of(struct mk_test_client *c)
{
    return strstr(mk_test_received(c).p, "\r\n\r\n") + 4;
}

/*
 * The loop reports bytes of two connections. Once the request of the first was answered, the other client replaces the
 * file and sends its request, which is read together with what it has sent before.
 */
TEST(notify_behind_earlier_bytes)
{
    open_cache("", RULE("Notify 1h"));
    keep("a.txt");
    struct mk_test_client *first = mk_test_connect(&w, MK_STR(GET_A));
    late_client = mk_test_connect(&w, MK_STR(GET_A));
    mk_test_settle(&w);
    assert_string_equal(body_of(first), "first");
    assert_string_equal(body_of(late_client), "first");
    mk_test_send(first, MK_STR(GET_A));
    mk_test_send(late_client, MK_STR("\r\n"));
    after_open = replace_and_ask;
    mk_test_settle(&w);
    assert_string_equal(body_of(first), "first");
    assert_string_equal(body_of(late_client), "second");
    close_cache();
    replace_file("a.txt", MK_STR("first"));
}

/* A missing name costs no call until something happens to it. */
TEST(notify_missing)
{
    open_cache("", RULE("Notify 1h"));
    keep("none/there.txt");
    assert_string_equal(ask_body("none/there.txt"), "404");
    clear_calls();
    for (int i = 0; i < 100; i++)
        assert_string_equal(ask_body("none/there.txt"), "404");
    expect_calls(0, 0);
    mk_test_mkdir("root/none");
    assert_string_equal(ask_body("none/there.txt"), "404");
    mk_test_write("root/none/there.txt", MK_STR("there"));
    assert_string_equal(ask_body("none/there.txt"), "there");
    close_cache();
    assert_int_equal(unlink(mk_test_path("root/none/there.txt")), 0);
    assert_int_equal(rmdir(mk_test_path("root/none")), 0);
}

/* Where the kernel watches nothing, an entry is revalidated once in the interval; and watched as soon as it can be. */
TEST(notify_without_watches)
{
    open_cache("", RULE("Notify 1s"));
    site.cache->notify.retry_ms = w.now_ms + 10000;
    keep("a.txt");
    for (int seconds = 0; seconds < 3; seconds++) {
        for (int i = 0; i < 10; i++)
            assert_string_equal(ask_body("a.txt"), "first");
        mk_test_pass(&w, 1000);
    }
    expect_counts(&counted, COUNTS([COUNT_HITS] = 30, [COUNT_REVALIDATED] = 3)); /* the first looks for a watch */
    assert_int_equal(site.cache->notify.folders, 0);
    for (int seconds = 0; seconds < 20; seconds++) {
        mk_test_pass(&w, 1000);
        assert_string_equal(ask_body("a.txt"), "first");
    }
    assert_int_equal(site.cache->notify.folders, 1);
    replace_file("a.txt", MK_STR("second"));
    assert_string_equal(ask_body("a.txt"), "second");
    close_cache();
    replace_file("a.txt", MK_STR("first"));
}

/* Nothing is asked of a file system of another machine but to open the names. */
TEST(notify_elsewhere)
{
    open_cache("", RULE("Notify 1s"));
    disk.is_remote = true;
    keep("a.txt");
    keep("none");
    for (int seconds = 0; seconds < 3; seconds++) {
        for (int i = 0; i < 10; i++) {
            assert_string_equal(ask_body("a.txt"), "first");
            assert_string_equal(ask_body("none"), "404");
        }
        mk_test_pass(&w, 1000);
    }
    expect_calls(0, 6);
    assert_int_equal(site.cache->notify.fd, -1);
    close_cache();
}

/* A folder that could not be watched is watched once it can be, also if it is used all the time. */
TEST(notify_with_watches_later)
{
    open_cache("", RULE("Notify 1s"));
    site.cache->notify.retry_ms = UINT64_MAX;
    keep("a.txt");
    for (int i = 0; i < 60; i++) {
        assert_string_equal(ask_body("a.txt"), "first");
        mk_test_pass(&w, 50);
        if (i == 20)
            site.cache->notify.retry_ms = 0;
    }
    assert_int_equal(site.cache->notify.folders, 1);
    replace_file("a.txt", MK_STR("second"));
    assert_string_equal(ask_body("a.txt"), "second");
    close_cache();
    replace_file("a.txt", MK_STR("first"));
}

/* Once after a second, and then when the root was opened anew. */
TEST(immutable)
{
    open_cache("", RULE("Immutable"));
    keep("a.txt");
    mk_test_pass(&w, 999);
    ask("a.txt");
    expect_calls(0, 0);
    mk_test_pass(&w, 1);
    ask("a.txt");
    expect_calls(0, 1);
    mk_test_pass(&w, 24 * 3600 * 1000);
    ask("a.txt");
    expect_calls(0, 0);
    disk.opened_ms = w.now_ms;
    mk_test_pass(&w, 1);
    ask("a.txt");
    ask("a.txt");
    expect_calls(0, 1);
    close_cache();
}

TEST(off)
{
    open_cache("", RULE("Off"));
    counted = read_counts();
    for (int i = 0; i < 5; i++)
        assert_string_equal(ask_body("a.txt"), "first");
    expect_calls(5, 0);
    expect_counts(&counted, COUNTS([COUNT_MISSES] = 5));
    close_cache();
}

/* ── what only a disk thread can tell ── */

/* What is due is not served while a disk thread looks, and not a millisecond longer. */
TEST(due_while_a_thread_looks)
{
    open_cache("", RULE("Revalidate 1s"));
    keep("a.txt");
    replace_file("a.txt", MK_STR("second"));
    disk.waits = true;
    mk_test_pass(&w, 999);
    assert_string_equal(ask_body("a.txt"), "first");
    expect_counts(&counted, COUNTS([COUNT_HITS] = 1));
    mk_test_pass(&w, 1);
    for (int i = 0; i < 10; i++)
        assert_string_equal(ask_body("a.txt"), "503");
    expect_counts(&counted, COUNTS([COUNT_WAITS] = 10));
    finish_job();
    assert_int_equal(disk.jobs, 1);
    expect_calls(0, 1);
    disk.waits = false;
    assert_string_equal(ask_body("a.txt"), "second");
    expect_calls(1, 0);
    expect_counts(&counted, COUNTS([COUNT_MISSES] = 1));
    close_cache();
    replace_file("a.txt", MK_STR("first"));
}

/* A check of a disk thread counts from the turn in which it began. */
TEST(due_and_unchanged)
{
    open_with_entry(RULE("Revalidate 1s"), 1000);
    assert_string_equal(ask_body("a.txt"), "503");
    mk_test_pass(&w, 600);
    finish_job();
    expect_counts(&counted, COUNTS([COUNT_WAITS] = 1, [COUNT_REVALIDATED] = 1));
    mk_test_pass(&w, 399);
    assert_string_equal(ask_body("a.txt"), "first");
    expect_counts(&counted, COUNTS([COUNT_HITS] = 1));
    mk_test_pass(&w, 1);
    assert_string_equal(ask_body("a.txt"), "503");
    expect_counts(&counted, COUNTS([COUNT_WAITS] = 1));
    finish_job();
    expect_counts(&counted, COUNTS([COUNT_REVALIDATED] = 1));
    assert_int_equal(disk.jobs, 2);
    close_cache();
}

/* In all modes, and after a long time. */
TEST(modes_while_a_thread_looks)
{
    static const char *const rules[] = {RULE("EachCycle"), RULE("Immutable"), RULE("Revalidate 300ms")};
    for (size_t i = 0; i < COUNT(rules); i++) {
        open_with_entry(rules[i], 1000);
        assert_string_equal(ask_body("a.txt"), "503");
        finish_job();
        expect_counts(&counted, COUNTS([COUNT_WAITS] = 1, [COUNT_REVALIDATED] = 1));
        close_cache();
    }
}

/* A result for a folder that is the root no more says nothing. */
TEST(root_swapped_during_a_check)
{
    open_with_entry(RULE("Revalidate 1s"), 1000);
    assert_string_equal(ask_body("a.txt"), "503");
    disk.version += 2;
    finish_job();
    expect_counts(&counted, COUNTS([COUNT_WAITS] = 1));
    close_cache();
}

TEST(not_in_memory)
{
    open_cache("", RULE("Revalidate 1s"));
    counted = read_counts();
    disk.waits = true;
    assert_string_equal(ask_body("a.txt"), "503");
    expect_counts(&counted, COUNTS([COUNT_MISSES] = 1, [COUNT_WAITS] = 1));
    close_cache();
}

/* ── entries and their memory ── */

static int64_t level_of(const struct mk_counter *counter)
{
    mk_test_pass(&w, 2000); /* two sweeps */
    return mk_counter_read(counter);
}

TEST(entries_by_kind)
{
    static const struct {
        const char *name;
        enum entry_kind kind;
        size_t body_bytes;
    } cases[] = {
        {"a.txt", ENTRY_BODY, 5},
        {"large.bin", ENTRY_DESCRIPTOR, 0},
        {"dir", ENTRY_FOLDER, 0},
        {"none", ENTRY_MISSING, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        open_cache("    BodyMax 8K\n", RULE("Revalidate 1h"));
        keep(cases[i].name);
        struct mk_store_stats stats;
        mk_store_get_stats(site.cache->store, cases[i].kind, &stats);
        size_t key_bytes =
            offsetof(struct entry_key, bytes.name) - offsetof(struct entry_key, bytes) + strlen(cases[i].name);
        size_t least = sizeof(struct mk_item) + key_bytes + sizeof(struct entry) + cases[i].body_bytes;
        for (unsigned kind = 0; kind < ENTRY_KINDS; kind++) {
            assert_int_equal(level_of(site.cache->counters.counters[COUNT_ENTRIES + kind]), kind == cases[i].kind);
            assert_int_equal(level_of(site.cache->counters.counters[COUNT_BYTES + kind]),
                             kind == cases[i].kind ? stats.bytes : 0);
            assert_int_equal(mk_counter_read(site.cache->counters.counters[COUNT_EVICTED + kind]), 0);
        }
        assert_in_range(stats.bytes, least, least + MK_FILE_BLOCK_BYTES + 32);
        close_cache();
    }
}

TEST(evictions_are_counted)
{
    open_cache("    Missing 10\n", RULE("Revalidate 1h"));
    keep("a.txt");
    struct mk_store_stats stats;
    char name[32];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "none%d", i);
        assert_string_equal(ask_body(name), "404");
        assert_string_equal(ask_body(name), "404");
    }
    mk_store_get_stats(site.cache->store, ENTRY_MISSING, &stats);
    assert_true(stats.items <= 10);
    assert_int_equal(stats.items + stats.evicted, 100);
    assert_int_equal(level_of(site.cache->counters.counters[COUNT_EVICTED + ENTRY_MISSING]), stats.evicted);
    assert_int_equal(mk_counter_read(site.cache->counters.counters[COUNT_ENTRIES + ENTRY_MISSING]), stats.items);
    assert_int_equal(mk_counter_read(site.cache->counters.counters[COUNT_ENTRIES + ENTRY_BODY]), 1);
    assert_int_equal(mk_counter_read(site.cache->counters.counters[COUNT_EVICTED + ENTRY_BODY]), 0);
    close_cache();
}

/* ── without descriptors ── */

/* The entry that is due waits for a descriptor, and is valid again later. */
TEST(no_descriptors)
{
    static const int errors[] = {EMFILE, ENFILE};
    for (size_t i = 0; i < COUNT(errors); i++) {
        open_cache("", RULE("Revalidate 1s"));
        keep("a.txt");
        mk_test_pass(&w, 1000);
        disk.error = errors[i];
        assert_string_equal(ask_body("a.txt"), "507");
        expect_counts(&counted, COUNTS([COUNT_WAITS] = 1));
        finish_job(); /* which has no descriptor either: nothing is known */
        mk_test_pass(&w, 1000);
        assert_string_equal(ask_body("a.txt"), "507");
        finish_job();
        expect_counts(&counted, COUNTS([COUNT_WAITS] = 1));
        disk.error = 0;
        assert_string_equal(ask_body("a.txt"), "first");
        expect_counts(&counted, COUNTS([COUNT_HITS] = 1, [COUNT_REVALIDATED] = 1));
        assert_int_equal(level_of(site.cache->counters.counters[COUNT_ENTRIES + ENTRY_BODY]), 1);
        close_cache();
    }
}

/* A name that is not kept is opened twice, and the cache gives descriptors back before the second time. */
TEST(no_descriptors_for_a_name)
{
    char name[32];
    open_cache("", RULE("Revalidate 1h"));
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "large%d.bin", i);
        keep(name);
    }
    assert_int_equal(level_of(site.cache->counters.counters[COUNT_ENTRIES + ENTRY_DESCRIPTOR]), 20);
    unsigned open = mk_test_descriptors();
    disk.error = EMFILE;
    assert_string_equal(ask_body("a.txt"), "507");
    expect_calls(2, 0);
    disk.error = 0;
    assert_int_equal(level_of(site.cache->counters.counters[COUNT_ENTRIES + ENTRY_DESCRIPTOR]),
                     0); /* half of them, and 16 more */
    assert_true(mk_test_descriptors() + 20 <= open);
    close_cache();
}

/* ── limits of generations ── */

/* Has requests find a worker, and asks for a name. */
static void ask_worker(struct mk_worker *worker, const char *name)
{
    site.worker = site.thread.worker = worker;
    site.current = worker->generation;
    ask(name);
}

static void expect_missing_max(unsigned max)
{
    assert_int_equal(site.cache->missing_max, max);
}

/* The limits of a generation count with its first request, and not those of an older one that has its first later. */
TEST(limits_of_generations)
{
    open_cache("    Missing 10\n", "");
    struct mk_worker *first = site.worker;
    expect_missing_max(0);
    assert_int_equal(open_worker(&site.generations[0]), 0);
    struct mk_worker *second = site.worker;
    ask_worker(first, "none");
    expect_missing_max(10);
    assert_int_equal(load_generation(&site.generations[1], "    Missing 20\n", ""), 0);
    assert_int_equal(open_worker(&site.generations[1]), 0);
    struct mk_worker *third = site.worker;
    expect_missing_max(10);
    ask_worker(third, "none");
    expect_missing_max(20);
    ask_worker(second, "none");
    expect_missing_max(20);
    mk__worker_free(first);
    mk__worker_free(second);
    site.generations[0].n_plugins = N_PLUGINS;
    mk__generation_release(&site.generations[0]);
    ask_worker(third, "none");
    expect_missing_max(20);
    close_cache();
}

static int make_files(void **state)
{
    static char large[16000];
    if (make_cache_folder(state) < 0)
        return -1;
    memset(large, 'x', sizeof(large));
    mk_test_write("root/a.txt", MK_STR("first"));
    mk_test_write("root/large.bin", mk_str(large, sizeof(large)));
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "root/large%d.bin", i);
        mk_test_write(name, mk_str(large, sizeof(large)));
    }
    mk_test_mkdir("root/dir");
    return 0;
}

TEST_FILE(make_files, mk_test_folder_remove)
