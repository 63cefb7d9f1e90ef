// SPDX-License-Identifier: Apache-2.0
/*
 * For tests of the file cache: requests in an environment without time, for files of the folder of the test. The root
 * below which they are opened counts what it is asked for, and tells, if a test wants that, that the kernel would have
 * to wait for a disk: then only disk threads can open, and not before the test allows it. The generation, its
 * configuration and the worker are real ones.
 *
 *     GET /a.txt ─► content ─► cache ─► root: a.txt in the folder `root`
 *         200 with the file, 403 a folder, 404 no such name, 503 the cache could not tell without waiting,
 *         507 there are no descriptors
 */
#ifndef MK_UNIT_PLUGINS_CACHE_FIXTURE_H
#define MK_UNIT_PLUGINS_CACHE_FIXTURE_H

#include "folder.h"
#include "http/h1_fixture.h"

#include "base/counters.h"
#include "loop/job.h"
#include "server/generation/generation_load.h"
#include "server/plugins/module.h"
#include "server/worker/thread.h"
#include "store/pages.h"

#include "plugins/cache/worker.h"

#include <monkey/hooks.h>

#include <errno.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <time.h>

extern const struct mk_plugin mk_plugin_cache;

enum { N_PLUGINS = 2, CONNS_MAX = 1000, SETTLED_SECONDS_LATER = 3600 };

/* A root, and what was asked of it since the last call of clear_calls(). */
static struct {
    int fd;
    bool is_remote;       /* calls would ask another machine */
    bool waits;           /* the kernel would have to wait for a disk */
    _Atomic bool is_fast; /* disk threads need no permission */
    sem_t allowed;        /* disk threads that may continue */
    int error;            /* of the next calls, instead of opening */
    uint32_t version;
    uint64_t opened_ms;
    _Atomic unsigned opens, checks, jobs; /* for reading; as a path; by disk threads */
    unsigned fails_at;                    /* the call with this number, from 1 on, finds no descriptor; 0: none */
} disk;

static uint64_t root_device = 1; /* of the folder of the test, once the cache is open */

static struct {
    struct mk_generation generations[2], *current;
    struct mk_worker *worker;
    struct mk_thread_pool jobs;
    struct mk__limits limits;
    struct mk__thread thread;
    struct mk__http_app app;
    mk__cell *cells; /* none: tests read the counters of the process */
    uint32_t connections;
    struct cache *cache;
} site;

/* ── the root ── */

static int open_below(void *context, const char *name, uint32_t flags)
{
    (void)context;
    if (disk.waits && (flags & MK_FILE_OPEN_CACHED)) {
        return -EAGAIN;
    }
    if (!(flags & MK_FILE_OPEN_CACHED)) {
        disk.jobs++;
        while (!disk.is_fast && sem_wait(&disk.allowed) < 0)
            ;
    }
    if (flags & MK_FILE_OPEN_PATH)
        disk.checks++;
    else
        disk.opens++;
    if (disk.error)
        return -disk.error;
    if (disk.fails_at && --disk.fails_at == 0)
        return -EMFILE;
    int fd = openat(disk.fd, name, flags & MK_FILE_OPEN_PATH ? O_PATH | O_CLOEXEC : O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static uint32_t get_version(void *context)
{
    (void)context;
    return disk.version;
}

static uint64_t get_opened_ms(void *context)
{
    (void)context;
    return disk.opened_ms;
}

/* Tests may give it a path. */
static struct mk_file_root root = {.open = open_below, .version = get_version, .opened_ms = get_opened_ms};

static inline void clear_calls(void)
{
    disk.opens = disk.checks = disk.jobs = 0;
}

/* ── requests ── */

/* Tests set `n` to have the allocation with this number fail while the cache opens a name, counted from 0. */
static struct {
    _Atomic long *countdown; /* that of the heap, or of the store's mappings; NULL: none fails */
    long n;
    bool happened;
} failure;

static inline void begin_failure(struct mk_request *req)
{
    if (!failure.countdown)
        return;
    mk_test_fill_arena(req);
    *failure.countdown = failure.n;
}

static inline void end_failure(void)
{
    if (!failure.countdown)
        return;
    failure.happened = *failure.countdown < 0;
    *failure.countdown = -1;
    failure.countdown = NULL;
}

/* What happens once a name was opened for the next request, in the same turn of the loop. */
static void (*after_open)(void);

static inline void call_after_open(void)
{
    void (*call)(void) = after_open;
    after_open = NULL;
    if (call)
        call();
}

static int answer_file(struct mk_request *req)
{
    char name[64];
    struct mk_str path = mk_request_path(req);
    assert_true(path.len <= sizeof(name));
    memcpy(name, path.p + 1, path.len - 1);
    name[path.len - 1] = '\0';
    struct mk_file_name file_name = {.root = &root,
                                     .device = root_device,
                                     .inode = 2,
                                     .is_local = !disk.is_remote,
                                     .version = disk.version,
                                     .name = mk_str_c(name)};
    begin_failure(req);
    struct mk_named_file named = mk_plugin_cache.interfaces->file_cache->open(req, &file_name);
    end_failure();
    call_after_open();
    if (!named.file.block)
        named.file.type = MK_STR("text/plain");
    if (named.kind == MK_FILE_REGULAR)
        mk_response_file(req, &named.file);
    else if (named.kind == MK_FILE_FOLDER)
        mk_response_error(req, 403);
    else
        mk_response_error(req, named.err == EAGAIN ? 503 : named.err == EMFILE || named.err == ENFILE ? 507 : 404);
    return 0;
}

/* ── paths without a request ── */

static struct mk_file_name name_of(struct mk_str path)
{
    return (struct mk_file_name){.root = &root,
                                 .device = root_device,
                                 .inode = 2,
                                 .is_local = true,
                                 .version = disk.version,
                                 .name = mk_str(path.p + 1, path.len - 1)};
}

static bool hides_path(const struct mk_host *host, struct mk_str path)
{
    (void)host;
    return memmem(path.p, path.len, "/.", 2) != NULL;
}

/* A path has one name; below /users/ nothing is kept. */
static int load_path(const struct mk_host *host, struct mk_str path, struct mk_file_loader *loader)
{
    struct mk_file_name name = name_of(path);
    if (hides_path(host, path))
        return -ENOENT;
    if (mk_str_starts(path, MK_STR("/users/")))
        return -ENOTSUP;
    struct mk_named_file named = loader->load(loader, &name);
    return named.kind == MK_FILE_REGULAR ? 0 : named.kind == MK_FILE_FOLDER ? -EISDIR : -named.err;
}

/* The root; a test may add others. */
static struct mk_file_place more_places[2];

static void each_place(const struct mk_host *host, mk_file_place_fn fn, void *ctx)
{
    const struct mk_file_place first = {.device = root_device, .inode = 2, .url = MK_STR(""), .name = MK_STR_NONE};
    (void)host;
    fn(&first, ctx);
    for (size_t i = 0; i < COUNT(more_places) && more_places[i].inode; i++)
        fn(&more_places[i], ctx);
}

static int open_path(const struct mk_host *host, struct mk_str path, uint32_t flags)
{
    (void)host;
    int fd = openat(disk.fd, path.len > 1 ? path.p + 1 : ".",
                    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (flags & MK_OPEN_FOLDER ? O_DIRECTORY : 0));
    return fd < 0 ? -errno : fd;
}

static const struct mk_file_server file_server = {.load_path = load_path,
                                                  .each_place = each_place,
                                                  .hides = hides_path};
/* Clients have no address here: a rule lets them see the page. */
static int allow_request(struct mk_request *req)
{
    mk_request_allow(req);
    return MK_DECLINED;
}

static const struct mk_path_hooks content_paths = {.open_path = open_path};
static const struct mk_plugin_interfaces content_interfaces = {.file_server = &file_server};
static const struct mk_plugin content = {.name = "content",
                                         .on_request = allow_request,
                                         .on_content = answer_file,
                                         .paths = &content_paths,
                                         .interfaces = &content_interfaces};

/* Sends a request with a new connection, and returns the response. */
static inline const char *ask(const char *name)
{
    char text[512];
    snprintf(text, sizeof(text), "GET /%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", name);
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(text));
    assert_non_null(c);
    mk_test_fin(c);
    mk_test_settle(&w);
    return mk_test_received(c).p;
}

/* Returns the body of a response with 200, else the status. */
static inline const char *ask_body(const char *name)
{
    const char *text = ask(name);
    static char status[4];
    assert_memory_equal(text, "HTTP/1.1 ", 9);
    if (memcmp(text + 9, "200", 3) == 0)
        return strstr(text, "\r\n\r\n") + 4;
    memcpy(status, text + 9, 3);
    return status;
}

/* Lets a disk thread continue, and waits until its answer has come. */
static inline void finish_job(void)
{
    sem_post(&disk.allowed);
    bool done = false;
    for (int i = 0; i < 60 && !done; i++)
        done = mk_test_wait_wakeup(&w);
    assert_true(done);
}

/* ── counters ── */

static inline int64_t count_of(enum cache_count count)
{
    return mk_counter_read(site.cache->counters.counters[count]);
}

/* What was counted: hits, misses, revalidated, waits. */
struct counts {
    int64_t n[COUNT_EVICTED];
};

static inline struct counts read_counts(void)
{
    struct counts c;
    for (unsigned i = 0; i < COUNT_EVICTED; i++)
        c.n[i] = count_of(i);
    return c;
}

/* Checks what was counted since `before`, which it updates. */
static inline void expect_counts(struct counts *before, struct counts wanted)
{
    struct counts now = read_counts();
    for (unsigned i = 0; i < COUNT_EVICTED; i++)
        if (now.n[i] - before->n[i] != wanted.n[i])
            fail_msg("counter %u: %lld instead of %lld", i, (long long)(now.n[i] - before->n[i]),
                     (long long)wanted.n[i]);
    *before = now;
}

#define COUNTS(...) ((struct counts){{__VA_ARGS__}})

/* ── the environment ── */

/* Files were changed long ago, by the clock of the server. */
static int64_t later_wall_seconds(void *ctx)
{
    static int64_t began;
    if (!began)
        began = time(NULL) + SETTLED_SECONDS_LATER;
    return began + (int64_t)(((const struct mk_test_fixture *)ctx)->now_ms / 1000);
}

/* Returns what mk__generation_load() returns. */
static inline int load_generation(struct mk_generation *g, const char *keys, const char *rules)
{
    char dir[512], text[1024];
    struct mk__generation_source source = {.dir = dir};
    int n = snprintf(text, sizeof(text), "[SERVER]\n    Listen 127.0.0.1:0\n[CACHE]\n    Memory 1M\n%s", keys);
    mk_test_write("conf/monkey.conf", mk_str(text, (size_t)n));
    n = snprintf(text, sizeof(text), "[HOST]\n    ServerName h\n%s", rules);
    mk_test_write("conf/sites/default", mk_str(text, (size_t)n));
    snprintf(dir, sizeof(dir), "%s", mk_test_path("conf"));
    memset(g, 0, sizeof(*g));
    int err = mk__generation_load(g, &source);
    if (err == 0)
        assert_int_equal(g->n_plugins, N_PLUGINS);
    return err;
}

/* The plugin "content" is not of the generation's making, and has no part in its beginning and its end. */
static inline void add_content(struct mk_generation *g)
{
    g->plugins[N_PLUGINS] = &content;
    g->n_plugins = N_PLUGINS + 1;
    mk__generation_find_hooks(g);
    for (struct mk_host *host = g->hosts; host; host = host->next)
        mk__generation_find_first_hook(g, host);
}

/* Makes a worker of the generation, which takes the place of the one that requests have; that is the caller's. */
static inline int open_worker(struct mk_generation *g)
{
    add_content(g);
    struct mk_worker *worker = mk__worker_new(g);
    if (!worker)
        return -ENOMEM;
    worker->loop = &w.loop;
    worker->account = &w.account;
    worker->cells = &site.cells;
    worker->connections = &site.connections;
    int err = mk__worker_start(worker);
    if (err < 0) {
        mk__worker_free(worker);
        return err;
    }
    site.worker = site.thread.worker = worker;
    site.current = g;
    return 0;
}

/* Opens all with these lines of [CACHE] in monkey.conf, and these sections of the host. */
static inline void open_cache(const char *keys, const char *rules)
{
    memset(&site, 0, sizeof(site));
    memset(&disk, 0, sizeof(disk));
    memset(more_places, 0, sizeof(more_places));
    sem_init(&disk.allowed, 0, 0);
    disk.fd = open(mk_test_path("root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    assert_true(disk.fd >= 0 && fstat(disk.fd, &st) == 0);
    root_device = st.st_dev;
    assert_int_equal(mk__counters_memory_open(), 0);
    assert_int_equal(load_generation(&site.generations[0], keys, rules), 0);
    mk__job_open_pool(&site.jobs, 1);
    assert_int_equal(mk_test_fixture_open(&w, &site.jobs), 0);
    w.clock.wall_seconds = later_wall_seconds;
    assert_int_equal(mk_test_http_open(&w), 0);
    site.limits.open = CONNS_MAX;
    site.thread.limits = &site.limits;
    site.thread.receiver.assigned = CONNS_MAX;
    site.app = mk__request_hooks_app;
    site.app.on_accept = NULL;
    w.http.app = &site.app;
    w.http.app_ctx = &site.thread;
    mk_test_pass(&w, 1); /* the loop reads the clock */
    assert_int_equal(open_worker(&site.generations[0]), 0);
    site.cache = mk_generation_plugin_state(site.current, &mk_plugin_cache);
}

/* The first request of a worker puts the limits in force. */
static inline void open_with_limits(const char *rules)
{
    open_cache("", rules);
    assert_string_equal(ask_body("x"), "404");
}

static inline void close_cache(void)
{
    mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&site.jobs);
    mk_test_settle(&w);
    assert_int_equal(site.worker->refs, 0);
    mk__worker_free(site.worker);
    mk_test_fixture_close(&w);
    site.current->n_plugins = N_PLUGINS;
    mk__generation_release(site.current);
    mk__counters_memory_close();
    close(disk.fd);
    sem_destroy(&disk.allowed);
}

static inline int make_cache_folder(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("conf");
    mk_test_mkdir("conf/sites");
    mk_test_mkdir("root");
    return 0;
}

static inline int make_cache_folder_with_file(void **state)
{
    if (make_cache_folder(state) < 0)
        return -1;
    mk_test_write("root/a.txt", MK_STR("first"));
    return 0;
}

/* Replaces a file of the root in one step. */
static inline void replace_file(const char *name, struct mk_str text)
{
    char path[512], from[512];
    mk_test_write("root/.new", text);
    snprintf(from, sizeof(from), "%s", mk_test_path("root/.new"));
    snprintf(path, sizeof(path), "%s/root/%s", mk_test_folder, name);
    assert_int_equal(rename(from, path), 0);
}

#endif
