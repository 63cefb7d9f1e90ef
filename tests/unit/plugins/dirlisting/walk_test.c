// SPDX-License-Identifier: Apache-2.0
/* The walk through folders for an archive: steps, limits, changes amid it, and without memory. */
#include "folder.h"

#include "http/h1_fixture.h"

#include "conf/conf.h"
#include "server/worker/thread.h"

#include <errno.h>

#include "plugins/dirlisting/archive.h"

#include <monkey/hooks.h>

enum { OUT_BYTES = 4 * 1024 * 1024, BIG = 700 * 1000, DOTS = 1000, STEP_NAMES_MAX = 256, CHECKED = 300 };

/* ── a host whose files are those of the test's folder ── */

static unsigned opened; /* files */
static unsigned dots;   /* names that begin with a dot: none of them is there */

static int open_file(const struct mk_host *host, struct mk_str path, uint32_t flags)
{
    struct stat st;
    (void)host;
    if (memmem(path.p, path.len, "/.", 2)) {
        dots++;
        return -ENOENT;
    }
    int fd = open(mk_test_path(path.p + 1), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(flags == 0 || S_ISDIR(st.st_mode));
    opened += S_ISREG(st.st_mode);
    return fd;
}

static unsigned checks;   /* so far */
static uint64_t check_ms; /* what each takes */

static int allow_path(struct mk_request *req, struct mk_str path)
{
    checks++;
    w.now_ms += check_ms;
    assert_non_null(req);
    return !memmem(path.p, path.len, "refused", 7);
}

static int (*run)(void *ctx); /* within the hook, because walk_check() needs a request */
static struct mk_request *request;

static int call_run(struct mk_request *req)
{
    request = req;
    if (run)
        run(NULL);
    mk_response_end(req);
    return 0;
}

static const struct mk_path_hooks file_paths = {.allows_path = allow_path, .open_path = open_file};
static const struct mk_plugin files = {.name = "files", .on_content = call_run, .paths = &file_paths};
static struct mk_generation generation = {.plugins = {&files}, .n_plugins = 1};
static struct mk_host host = {.generation = &generation, .started = 1};
static struct mk__limits limits = {.open = 1000};
static struct mk__thread thread = {.limits = &limits};
static struct mk_worker worker = {.generation = &generation};

static void load_rules(const char *text)
{
    generation.conf = mk__conf_new();
    for (const struct mk_conf_section *s = rules_sections; s->name; s++)
        assert_int_equal(mk__conf_declare(generation.conf, s, "dirlisting"), 0);
    generation.set = mk__conf_set_new(generation.conf, MK_CONF_SCOPE_SERVER);
    host.set = mk__conf_set_new(generation.conf, MK_CONF_SCOPE_HOST);
    mk__conf_read_text(generation.conf, host.set, "test", mk_str_c(text));
    assert_int_equal(mk__conf_check(generation.conf, host.set), 0);
}

/* Calls `fn` within the hook of a request, under these sections. */
static void run_with(const char *text, int (*fn)(void *ctx))
{
    load_rules(text);
    generation.hosts = generation.default_host = &host;
    mk__generation_find_hooks(&generation);
    thread.worker = &worker;
    thread.receiver = (struct mk__receiver){.assigned = 1000};
    open_fixture(NULL);
    host.limits = w.settings.limits;
    w.http.app = &mk__request_hooks_app;
    w.http.app_ctx = &thread;
    run = fn;
    mk_test_connect(&w, MK_STR(GET));
    mk_test_settle(&w);
    mk_test_fixture_close(&w);
    mk__conf_free(generation.conf);
}

/* ── walks ── */

static _Atomic bool cancelled;
static unsigned steps;
static int result;
static void (*on_step)(unsigned n); /* before each step; may be NULL */
static const char *folder = "/pub/";

static unsigned checks_max; /* in one turn */

static bool check_turn(struct walk *walk)
{
    unsigned before = checks;
    bool more = walk_check(walk, request);
    assert_true(checks > before);
    checks_max = checks - before > checks_max ? checks - before : checks_max;
    return more;
}

/* Walks through the folder in steps whose output is dropped. Returns 0 or -errno. */
static int walk_all(void *ctx)
{
    struct walk walk;
    struct mk_buf out;
    (void)ctx;
    mk_buf_init(&out, OUT_BYTES);
    int r = walk_open(&walk, &host, rules_find(&host, mk_str_c(folder)), mk_str_c(folder), &cancelled);
    if (r == 0)
        r = walk_start_archive(&walk, ARCHIVE_TAR, &out);
    for (steps = 0; r >= 0 && r != WALK_END; steps++) {
        if (on_step)
            on_step(steps);
        r = walk_step(&walk);
        assert_true(out.len < 512 * 1024); /* bounded, whatever is read */
        mk_buf_drop(&out, out.len);
        while (r == WALK_CHECK && check_turn(&walk))
            ;
    }
    assert_true(r < 0 || walk_step(&walk) == WALK_END);
    walk_close(&walk);
    mk_buf_release(&out);
    result = r < 0 ? r : 0;
    return result;
}

TEST(a_whole_walk)
{
    unsigned before = mk_test_descriptors();
    opened = 0;
    run_with("[DIRLISTING]\n", walk_all);
    assert_int_equal(result, 0);
    assert_int_equal(opened, 3); /* big, sub/a, sub/deep/b */
    assert_true(steps > 3);
    assert_int_equal(mk_test_descriptors(), before);
}

/* ── a folder of names that are left out ── */

static unsigned dots_before;

static void check_dots(unsigned n)
{
    if (n && dots - dots_before > STEP_NAMES_MAX)
        fail_msg("step %u has read %u names", n, dots - dots_before);
    dots_before = dots;
}

TEST(steps_are_bounded)
{
    dots = dots_before = 0;
    folder = "/dots/";
    on_step = check_dots;
    run_with("[DIRLISTING]\n", walk_all);
    folder = "/pub/";
    on_step = NULL;
    assert_int_equal(result, 0);
    assert_int_equal(dots, DOTS);
    assert_true(steps > DOTS / STEP_NAMES_MAX);
}

TEST(turns_are_bounded)
{
    static const struct {
        uint64_t check_ms;
        unsigned checks_max;
    } cases[] = {{0, 128}, {1, 2}, {5, 1}};
    folder = "/checked/";
    for (size_t i = 0; i < COUNT(cases); i++) {
        checks = checks_max = 0;
        check_ms = cases[i].check_ms;
        run_with("[DIRLISTING]\n", walk_all);
        assert_int_equal(result, 0);
        assert_int_equal(checks, CHECKED);
        assert_int_equal(checks_max, cases[i].checks_max);
    }
    folder = "/pub/";
    check_ms = 0;
}

/* ── limits ── */

TEST(limits)
{
    static const struct {
        const char *text;
        int expected;
    } cases[] = {
        {"[DIRLISTING]\n ArchiveMaxEntries 5\n", 0},    {"[DIRLISTING]\n ArchiveMaxEntries 4\n", -E2BIG},
        {"[DIRLISTING]\n ArchiveMaxDepth 3\n", 0},      {"[DIRLISTING]\n ArchiveMaxDepth 2\n", -EMLINK},
        {"[DIRLISTING]\n ArchiveMaxBytes 700002\n", 0}, {"[DIRLISTING]\n ArchiveMaxBytes 700001\n", -EFBIG},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        run_with(cases[i].text, walk_all);
        if (result != cases[i].expected)
            fail_msg("%s: %d", cases[i].text, result);
        assert_true(result == 0 || strlen(walk_error(result)) > 10);
    }
}

/* ── changes amid the big file, after the first step that has read of it ── */

static int change; /* of its size; 0: its time only */

static void change_file(unsigned n)
{
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    if (n != 4)
        return;
    assert_int_equal(truncate(mk_test_path("pub/big"), BIG + change), 0);
    if (change == 0)
        assert_int_equal(utimensat(AT_FDCWD, mk_test_path("pub/big"), times, 0), 0);
}

TEST(changes)
{
    static const struct {
        int change, expected;
    } cases[] = {{-1, -ESTALE}, {-BIG, -ESTALE}, {0, -ESTALE}, {1, 0}, {100000, 0}};
    on_step = change_file;
    for (size_t i = 0; i < COUNT(cases); i++) {
        change = cases[i].change;
        run_with("[DIRLISTING]\n", walk_all);
        if (result != cases[i].expected)
            fail_msg("%d: %d", change, result);
        assert_int_equal(truncate(mk_test_path("pub/big"), BIG), 0);
    }
    on_step = NULL;
}

static void cancel_walk(unsigned n)
{
    cancelled = n == 2;
}

TEST(cancelling)
{
    on_step = cancel_walk;
    run_with("[DIRLISTING]\n", walk_all);
    on_step = NULL;
    cancelled = false;
    assert_int_equal(result, -ECANCELED);
}

static int walk_without_memory(void *ctx)
{
    (void)ctx;
    assert_true(mk_test_failing_allocs(walk_all, NULL) > 8);
    return 0;
}

TEST(without_memory)
{
    unsigned before = mk_test_descriptors();
    run_with("[DIRLISTING]\n", walk_without_memory);
    assert_int_equal(mk_test_descriptors(), before);
}

static int set_up(void **state)
{
    static char bytes[BIG];
    struct mk_buf error;
    char reason[256], name[32];
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    if (mk_test_folder_make(state) < 0 || tar_load(&error) < 0)
        return -1;
    mk_test_mkdir("pub");
    mk_test_mkdir("pub/sub");
    mk_test_mkdir("pub/sub/deep");
    mk_test_mkdir("pub/refused");
    mk_test_write("pub/big", mk_str(bytes, sizeof(bytes)));
    mk_test_write("pub/sub/a", MK_STR("a"));
    mk_test_write("pub/sub/deep/b", MK_STR("b"));
    mk_test_write("pub/refused.txt", MK_STR("refused"));
    mk_test_write("pub/refused/c", MK_STR("refused"));
    mk_test_link("..", "pub/sub/deep/up");
    mk_test_mkdir("checked");
    for (int i = 0; i < CHECKED; i++) {
        snprintf(name, sizeof(name), "checked/%d", i);
        mk_test_write(name, MK_STR(""));
    }
    mk_test_mkdir("dots");
    for (int i = 0; i < DOTS; i++) {
        snprintf(name, sizeof(name), "dots/.%d", i);
        mk_test_write(name, MK_STR(""));
    }
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
