// SPDX-License-Identifier: Apache-2.0
/*
 * Values made from files: what is noticed, what a failed load keeps, when a value is freed, and threads that read, open
 * and close meanwhile.
 */
#include "folder.h"
#include "testing.h"

#include <monkey/kit/watched.h>
#include <monkey/log.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { TEXT_MAX = 64, WAIT_MS = 20000, READERS = 4, CHANGES = 40 };

/* A value is the contents of two files, which must be equal: as a key belongs to its certificate. */
struct pair {
    char text[TEXT_MAX];
};

struct files {
    struct mk_str paths[2];
    char first[512], second[512];
    _Atomic int begun, loads, failures;
    _Atomic bool hold; /* a load waits until it is false */
};

static _Atomic int values; /* that were made and not freed */

static void read_text(const char *path, char *to)
{
    FILE *file = fopen(path, "r");
    to[0] = '\0';
    if (!file)
        return;
    to[fread(to, 1, TEXT_MAX - 1, file)] = '\0';
    fclose(file);
}

static int load_pair(void *ctx, void **ret_value, struct mk_buf *message)
{
    struct files *files = ctx;
    char second[TEXT_MAX];
    struct pair *pair = malloc(sizeof(*pair));
    assert_non_null(pair);
    atomic_fetch_add(&files->begun, 1);
    read_text(files->first, pair->text);
    while (atomic_load(&files->hold))
        usleep(100);
    read_text(files->second, second);
    atomic_fetch_add(&files->loads, 1);
    if (pair->text[0] && strcmp(pair->text, second) == 0) {
        *ret_value = pair;
        atomic_fetch_add(&values, 1);
        return 0;
    }
    mk_buf_addf(message, "%s and %s differ", pair->text, second);
    free(pair);
    atomic_fetch_add(&files->failures, 1);
    return -EINVAL;
}

static void free_pair(void *value)
{
    atomic_fetch_sub(&values, 1);
    free(value);
}

static const struct mk_watched_type pairs = {.load = load_pair, .free = free_pair};

/* ── the log ── */

static int log_pipe[2];
static char log_text[65536];
static size_t log_len;

static bool has_logged(const char *text)
{
    ssize_t n;
    while ((n = read(log_pipe[0], log_text + log_len, sizeof(log_text) - 1 - log_len)) > 0)
        log_len += (size_t)n;
    log_text[log_len] = '\0';
    return strstr(log_text, text);
}

static int count_logged(const char *text)
{
    int n = 0;
    has_logged("");
    for (const char *at = log_text; (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

static int set_up(void **state)
{
    assert_int_equal(pipe2(log_pipe, O_NONBLOCK), 0);
    fcntl(log_pipe[1], F_SETPIPE_SZ, 1 << 20);
    mk_log_to(log_pipe[1], MK_LOG_INFO);
    log_len = 0;
    return mk_test_folder_make(state);
}

static int tear_down(void **state)
{
    mk_log_to(-1, MK_LOG_INFO);
    close(log_pipe[0]);
    close(log_pipe[1]);
    return mk_test_folder_remove(state);
}

/* ── the calls of the thread ── */

static _Atomic unsigned watches; /* calls of inotify_add_watch() */

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    atomic_fetch_add(&watches, 1);
    return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}

/* Returns the number of watches that a file of the folder needs: of each folder on the way, and its own. */
static unsigned count_steps(const char *name)
{
    unsigned n = 1;
    for (const char *c = mk_test_path(name); *c; c++)
        n += *c == '/';
    return n;
}

/* ── helpers ── */

static int open_files(struct files *files, const char *first, const char *second, struct mk_watched **ret)
{
    char text[256];
    struct mk_buf message;
    snprintf(files->first, sizeof(files->first), "%s/%s", mk_test_folder, first); /* mk_test_path() is for one thread */
    snprintf(files->second, sizeof(files->second), "%s/%s", mk_test_folder, second);
    files->paths[0] = mk_str_c(files->first);
    files->paths[1] = mk_str_c(files->second);
    mk_buf_init_fixed(&message, text, sizeof(text));
    return mk_watched_open(&(struct mk_watched_source){&pairs, files, MK_STR("test"), files->paths, 2}, &message, ret);
}

static const char *get_text(struct mk_watched_ref *ref)
{
    return ((struct pair *)mk_watched_ref_get(ref))->text;
}

#define WAIT_UNTIL(condition) \
    do { \
        int ms_ = 0; \
        while (!(condition) && ms_++ < WAIT_MS) \
            usleep(1000); \
        if (ms_ > WAIT_MS) \
            fail_msg("waited too long for " #condition "; the log: %s", log_text); \
    } while (0)

static void wait_for_text(struct mk_watched_ref *ref, const char *text)
{
    has_logged("");
    WAIT_UNTIL(strcmp(get_text(ref), text) == 0);
}

/* Replaces a file as most programs do. */
static void replace(const char *name, const char *text)
{
    char from[512];
    mk_test_write("new~", mk_str_c(text));
    snprintf(from, sizeof(from), "%s", mk_test_path("new~"));
    assert_int_equal(rename(from, mk_test_path(name)), 0);
}

static void rename_in_folder(const char *from, const char *to)
{
    char path[512];
    snprintf(path, sizeof(path), "%s", mk_test_path(from));
    assert_int_equal(rename(path, mk_test_path(to)), 0);
}

struct fixture {
    struct files files;
    struct mk_watched *watched;
    struct mk_watched_ref ref;
};

static void begin(struct fixture *fixture, const char *first, const char *second)
{
    *fixture = (struct fixture){0};
    assert_int_equal(open_files(&fixture->files, first, second, &fixture->watched), 0);
    mk_watched_ref_init(&fixture->ref, fixture->watched);
}

static void close_fixture(struct fixture *fixture)
{
    mk_watched_ref_release(&fixture->ref);
    mk_watched_close(fixture->watched);
}

static void end(struct fixture *fixture)
{
    close_fixture(fixture);
    assert_int_equal(values, 0);
}

/* Begins, and waits until the thread has looked at the file for the first time: it then looks at another path. */
static void begin_after_look(struct fixture *fixture, const char *name)
{
    struct fixture next;
    char other[64];
    unsigned before = watches;
    begin(fixture, name, name);
    snprintf(other, sizeof(other), "./%s", name);
    begin(&next, other, other);
    WAIT_UNTIL(watches > before + 2 * count_steps(name));
    close_fixture(&next);
}

/* ── what is noticed ── */

TEST(rename_and_write_in_place, set_up, tear_down)
{
    struct fixture fixture;
    mk_test_write("a", MK_STR("one"));
    mk_test_link("a", "b");
    begin(&fixture, "a", "b");
    assert_string_equal(get_text(&fixture.ref), "one");
    replace("a", "two");
    wait_for_text(&fixture.ref, "two");
    mk_test_write("a", MK_STR("three"));
    wait_for_text(&fixture.ref, "three");
    assert_int_equal(unlink(mk_test_path("a")), 0);
    mk_test_write("a", MK_STR("four"));
    wait_for_text(&fixture.ref, "four");
    WAIT_UNTIL(count_logged("test: loaded again") == 3);
    end(&fixture);
}

/* As a reload opens them: no watch is added, and both values notice what changes. */
TEST(values_with_the_same_files, set_up, tear_down)
{
    struct fixture first, second, last;
    mk_test_write("a", MK_STR("one"));
    begin_after_look(&first, "a");
    unsigned before = watches;
    begin(&second, "a", "a");
    begin(&last, "./././a", "a"); /* another path is walked, after the second value */
    WAIT_UNTIL(watches >= before + count_steps("a") * 2);
    assert_int_equal(watches, before + count_steps("a") * 2);
    close_fixture(&last);
    replace("a", "two");
    wait_for_text(&first.ref, "two");
    wait_for_text(&second.ref, "two");
    close_fixture(&first);
    mk_test_write("a", MK_STR("three"));
    wait_for_text(&second.ref, "three");
    end(&second);
}

/* As the volumes of Kubernetes: a -> ..data/a, ..data -> ..1; then ..data is switched, and ..1 removed. */
TEST(switched_link, set_up, tear_down)
{
    struct fixture fixture;
    char old[512];
    mk_test_mkdir("..1");
    mk_test_write("..1/a", MK_STR("one"));
    mk_test_link("..1", "..data");
    mk_test_link("..data/a", "a");
    begin(&fixture, "a", "a");
    for (int i = 2; i < 5; i++) {
        char folder[32], file[32], text[32];
        snprintf(folder, sizeof(folder), "..%d", i);
        snprintf(file, sizeof(file), "..%d/a", i);
        snprintf(text, sizeof(text), "text %d", i);
        mk_test_mkdir(folder);
        mk_test_write(file, mk_str_c(text));
        mk_test_link(folder, "..data_tmp");
        rename_in_folder("..data_tmp", "..data");
        snprintf(old, sizeof(old), "%s/..%d", mk_test_folder, i - 1);
        assert_int_equal(mk_test_remove(old), 0);
        wait_for_text(&fixture.ref, text);
    }
    end(&fixture);
}

TEST(folders_on_the_way, set_up, tear_down)
{
    struct fixture fixture;
    mk_test_mkdir("top");
    mk_test_mkdir("top/sub");
    mk_test_write("top/sub/a", MK_STR("one"));
    begin(&fixture, "top/sub/../sub/./a", "top//sub/a");
    mk_test_mkdir("next");
    mk_test_mkdir("next/sub");
    mk_test_write("next/sub/a", MK_STR("two"));
    rename_in_folder("top", "old");
    rename_in_folder("next", "top");
    wait_for_text(&fixture.ref, "two");
    rename_in_folder("top", "gone"); /* nothing is left, until it comes back */
    WAIT_UNTIL(has_logged("the former state stays"));
    mk_test_write("gone/sub/a", MK_STR("three"));
    rename_in_folder("gone", "top");
    wait_for_text(&fixture.ref, "three");
    end(&fixture);
}

/* Those that found a text: a process that is stopped while it writes leaves an empty file for longer than is waited. */
static int count_good_loads(const struct files *files)
{
    return files->loads - files->failures;
}

/* A file that is written by another name, outside of the folders of its path; before and after it is replaced. */
TEST(hard_link, set_up, tear_down)
{
    struct fixture fixture;
    char from[512];
    mk_test_mkdir("elsewhere");
    for (int i = 0; i < 2; i++) {
        char name[32], first[32], text[32];
        snprintf(name, sizeof(name), "elsewhere/%d", i);
        snprintf(first, sizeof(first), "one %d", i);
        snprintf(text, sizeof(text), "two %d", i);
        mk_test_write("a~", mk_str_c(first));
        snprintf(from, sizeof(from), "%s", mk_test_path("a~"));
        assert_int_equal(link(from, mk_test_path(name)), 0);
        rename_in_folder("a~", "a");
        if (i == 0)
            begin(&fixture, "a", "a");
        wait_for_text(&fixture.ref, first);
        mk_test_write(name, mk_str_c(text));
        wait_for_text(&fixture.ref, text);
    }
    int good = count_good_loads(&fixture.files);
    mk_test_write("elsewhere/0", MK_STR("of the former file"));
    mk_test_write("elsewhere/1", MK_STR("three"));
    wait_for_text(&fixture.ref, "three");
    assert_int_equal(count_good_loads(&fixture.files), good + 1);
    end(&fixture);
}

/* A file that is opened for writing is not loaded before it is closed. */
TEST(write_by_another_name_that_takes_long, set_up, tear_down)
{
    struct fixture fixture;
    char from[512];
    mk_test_mkdir("elsewhere");
    mk_test_write("a", MK_STR("one"));
    snprintf(from, sizeof(from), "%s", mk_test_path("a"));
    assert_int_equal(link(from, mk_test_path("elsewhere/a")), 0);
    begin_after_look(&fixture, "a");
    FILE *file = fopen(mk_test_path("elsewhere/a"), "w");
    assert_non_null(file);
    usleep(1500 * 1000); /* longer than the time after which a new file counts as complete */
    fputs("two", file);
    fclose(file);
    wait_for_text(&fixture.ref, "two");
    assert_int_equal(fixture.files.failures, 0);
    end(&fixture);
}

/* The mode of a folder on the way: the files are looked at, but the way to them is not walked again. */
TEST(attributes_of_a_folder, set_up, tear_down)
{
    struct fixture fixture, other;
    mk_test_write("a", MK_STR("one"));
    mk_test_write("b", MK_STR("one"));
    begin_after_look(&fixture, "a");
    begin_after_look(&other, "b");
    mk_test_write("b", MK_STR("two"));
    wait_for_text(&other.ref, "two");
    unsigned before = watches; /* the look at the other files has walked, since they were different */
    assert_int_equal(chmod(mk_test_folder, 0711), 0);
    replace("b", "three"); /* due at the same time or later, and behind in the list */
    wait_for_text(&other.ref, "three");
    assert_int_equal(watches, before + 2 * count_steps("b"));
    assert_int_equal(fixture.files.loads, 1);
    close_fixture(&other);
    end(&fixture);
}

static unsigned count_threads(void)
{
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* Changes between the load and the start of the thread. */
TEST(change_before_the_thread, set_up, tear_down)
{
    struct fixture fixture = {0};
    mk_test_write("a", MK_STR("one"));
    assert_int_equal(open_files(&fixture.files, "a", "a", &fixture.watched), 0);
    replace("a", "two");
    mk_watched_ref_init(&fixture.ref, fixture.watched);
    wait_for_text(&fixture.ref, "two");
    end(&fixture);
}

/* A look at the value before the thread exists does not start it, and takes what the load has made. */
TEST(peek, set_up, tear_down)
{
    struct fixture fixture = {0};
    struct mk_watched_ref peek;
    mk_test_write("a", MK_STR("one"));
    assert_int_equal(open_files(&fixture.files, "a", "a", &fixture.watched), 0);
    unsigned before = count_threads();
    mk_watched_ref_peek(&peek, fixture.watched);
    assert_non_null(mk_watched_ref_get(&peek));
    assert_int_equal(count_threads(), before);
    mk_watched_ref_release(&peek);
    mk_watched_ref_init(&fixture.ref, fixture.watched);
    mk_watched_ref_peek(&peek, fixture.watched); /* and with a thread */
    replace("a", "two");
    wait_for_text(&fixture.ref, "two");
    wait_for_text(&peek, "two");
    mk_watched_ref_release(&peek);
    end(&fixture);
}

/* Without a descriptor for inotify the files are polled. */
TEST(polling, set_up, tear_down)
{
    struct fixture fixture = {0};
    struct rlimit before, few;
    mk_test_write("a", MK_STR("one"));
    assert_int_equal(open_files(&fixture.files, "a", "a", &fixture.watched), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    close(next);
    few = (struct rlimit){(rlim_t)next + 1, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    mk_watched_ref_init(&fixture.ref, fixture.watched);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(has_logged("files are looked at every 2 s"));
    replace("a", "two");
    wait_for_text(&fixture.ref, "two");
    end(&fixture);
}

/* ── failures ── */

TEST(first_load_fails, set_up, tear_down)
{
    struct files files = {0};
    struct mk_watched *watched;
    struct mk_str relative = MK_STR("relative"), many[MK_WATCHED_FILES_MAX + 1];
    struct mk_buf message;
    mk_test_write("a", MK_STR("one"));
    mk_test_write("b", MK_STR("two"));
    assert_int_equal(open_files(&files, "a", "b", &watched), -EINVAL);
    mk_buf_init(&message, 1000);
    struct mk_watched_source source = {&pairs, &files, MK_STR("test"), &relative, 1};
    assert_int_equal(mk_watched_open(&source, &message, &watched), -EINVAL);
    for (unsigned i = 0; i < COUNT(many); i++)
        many[i] = files.paths[0];
    source = (struct mk_watched_source){&pairs, &files, MK_STR("test"), many, COUNT(many)};
    assert_int_equal(mk_watched_open(&source, &message, &watched), -EINVAL);
    mk_watched_close(NULL);
    assert_int_equal(values, 0);
    assert_false(has_logged("test"));
}

/* One file of two is replaced, later the other one. */
TEST(failed_load_keeps_the_value, set_up, tear_down)
{
    struct fixture fixture;
    mk_test_write("a", MK_STR("one"));
    mk_test_write("b", MK_STR("one"));
    begin(&fixture, "a", "b");
    replace("a", "two");
    WAIT_UNTIL(has_logged("test: the files have changed, but cannot be used, and the former state stays: two and one "
                          "differ"));
    assert_int_equal(fixture.files.failures, 3); /* the first one and two retries */
    assert_string_equal(get_text(&fixture.ref), "one");
    replace("b", "two");
    wait_for_text(&fixture.ref, "two");
    assert_int_equal(count_logged("former state"), 1);
    replace("a", "");
    WAIT_UNTIL(count_logged("former state") == 2);
    assert_string_equal(get_text(&fixture.ref), "two");
    end(&fixture);
}

static int run_allocations(void *ctx)
{
    struct files files = {0};
    struct mk_watched *watched;
    (void)ctx;
    int err = open_files(&files, "a", "a", &watched);
    if (err < 0)
        return err;
    mk_watched_close(watched);
    return 0;
}

TEST(no_memory, set_up, tear_down)
{
    mk_test_write("a", MK_STR("one"));
    mk_test_failing_allocs(run_allocations, NULL);
    assert_int_equal(values, 0);
}

/* ── threads and lifetimes ── */

TEST(former_value_lives_as_long_as_its_reference, set_up, tear_down)
{
    struct fixture fixture;
    struct mk_watched_ref other;
    mk_test_write("a", MK_STR("one"));
    begin(&fixture, "a", "a");
    mk_watched_ref_init(&other, fixture.watched);
    const char *kept = get_text(&other);
    replace("a", "two");
    wait_for_text(&fixture.ref, "two");
    assert_string_equal(kept, "one");
    assert_int_equal(values, 2);
    assert_string_equal(get_text(&other), "two");
    WAIT_UNTIL(values == 1); /* the watching thread frees it */
    mk_watched_ref_release(&other);
    mk_watched_ref_release(&other);
    end(&fixture);
}

struct reader {
    struct mk_watched *watched;
    _Atomic bool *stop;
    unsigned long seen;
    pthread_t id;
};

/* Numbers only grow, and a value is whole. */
static void *read_numbers(void *ctx)
{
    struct reader *reader = ctx;
    struct mk_watched_ref ref;
    unsigned long last = 0;
    mk_watched_ref_init(&ref, reader->watched);
    while (!atomic_load(reader->stop)) {
        const char *text = get_text(&ref);
        unsigned long n = strtoul(text, NULL, 10);
        assert_true(n >= last && text[strlen(text) - 1] == '.');
        reader->seen += n != last;
        last = n;
    }
    mk_watched_ref_release(&ref);
    return NULL;
}

TEST(changes_under_load, set_up, tear_down)
{
    struct files files = {0};
    struct mk_watched *watched;
    struct mk_watched_ref ref;
    struct reader readers[READERS];
    _Atomic bool stop = false;
    mk_test_write("a", MK_STR("0."));
    assert_int_equal(open_files(&files, "a", "a", &watched), 0);
    for (unsigned i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.watched = watched, .stop = &stop};
        assert_int_equal(pthread_create(&readers[i].id, NULL, read_numbers, &readers[i]), 0);
    }
    mk_watched_ref_init(&ref, watched);
    for (int i = 1; i <= CHANGES; i++) {
        char text[16];
        int loads = files.loads;
        snprintf(text, sizeof(text), "%d.", i);
        replace("a", text);
        if (i % 4 == 0) /* the others come in bursts */
            WAIT_UNTIL(files.loads > loads);
    }
    wait_for_text(&ref, "40.");
    atomic_store(&stop, true);
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(readers[i].id, NULL);
        assert_true(readers[i].seen > 0);
    }
    mk_watched_ref_release(&ref);
    mk_watched_close(watched);
    assert_int_equal(values, 0);
}

static void *close_watched(void *ctx)
{
    mk_watched_close(ctx);
    return NULL;
}

/* A close waits for the load that is running, while others open, read and close. */
TEST(close_during_a_load, set_up, tear_down)
{
    struct fixture fixture, other;
    pthread_t closer;
    mk_test_write("a", MK_STR("one"));
    mk_test_write("c", MK_STR("one"));
    for (int i = 0; i < 20; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", i);
        begin(&fixture, "a", "a");
        int loads = fixture.files.loads;
        atomic_store(&fixture.files.hold, true);
        replace("a", text);
        mk_watched_ref_release(&fixture.ref);
        if (i % 2)
            WAIT_UNTIL(fixture.files.begun > loads);
        assert_int_equal(pthread_create(&closer, NULL, close_watched, fixture.watched), 0);
        begin(&other, "c", "c");
        assert_string_equal(get_text(&other.ref), "one");
        atomic_store(&fixture.files.hold, false);
        pthread_join(closer, NULL);
        assert_true(fixture.files.loads <= loads + 1);
        end(&other);
    }
}

/* Threads open, read and close all the time: the watching thread starts and ends. */
static void *open_and_close(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 50; i++) {
        struct files files = {0};
        struct mk_watched *watched;
        struct mk_watched_ref ref;
        assert_int_equal(open_files(&files, "a", "a", &watched), 0);
        mk_watched_ref_init(&ref, watched);
        assert_non_null(mk_watched_ref_get(&ref));
        mk_watched_ref_release(&ref);
        mk_watched_close(watched);
    }
    return NULL;
}

TEST(open_and_close_in_threads, set_up, tear_down)
{
    pthread_t ids[READERS];
    mk_test_write("a", MK_STR("one"));
    for (unsigned i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, open_and_close, NULL), 0);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(ids[i], NULL);
    assert_int_equal(values, 0);
}
