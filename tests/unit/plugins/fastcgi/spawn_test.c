// SPDX-License-Identifier: Apache-2.0
/*
 * Processes of applications: how many there are, when they are started again, and what is left when they end, with
 * children of the test and its clock.
 */
#include "turn.h"

#include "folder.h"

#include "server/worker/worker.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "plugins/fastcgi/fastcgi.h"

enum { CHILDREN = 64, GRACE_MS = 3000 };

static struct mk_loop loop, other_loop;
static struct mk_worker workers[3]; /* the last one is of another loop */
static struct spawns *spawns;
static struct spawn_conf conf;
static uint64_t now_ms;
static char folder[256], socket_path[256];

/* ── children, in the place of the library's ── */

static struct started {
    struct mk_child *child;
    const struct mk_child_events *events;
    bool is_stopped;
} children[CHILDREN]; /* in the order of their starts; child NULL: closed */
static unsigned n_started, n_open;
static int start_err; /* of the next starts */
static unsigned channels;

int mk_child_starter_new(struct mk_child_starter **ret)
{
    *ret = NULL;
    return 0;
}

void mk_child_starter_free(struct mk_child_starter *starter)
{
    assert_null(starter);
}

int mk_child_channel_open(struct mk_child_starter *starter, struct mk_loop *l, struct mk_account *account,
                          struct mk_child_channel **ret)
{
    assert_null(starter);
    assert_null(account);
    assert_ptr_equal(l, &loop);
    *ret = (struct mk_child_channel *)&channels;
    channels++;
    return 0;
}

void mk_child_channel_close(struct mk_child_channel *channel)
{
    assert_ptr_equal(channel, &channels);
    channels--;
}

static struct started *find_child(const struct mk_child *child)
{
    for (unsigned i = 0; i < n_started; i++)
        if (children[i].child == child)
            return &children[i];
    return NULL;
}

int mk_child_start(struct mk_child *child, struct mk_child_channel *channel, struct mk_worker *worker,
                   const struct mk_child_events *events, const struct mk_child_options *options)
{
    struct stat st;
    assert_ptr_equal(channel, &channels);
    assert_ptr_equal(mk_worker_loop(worker), &loop);
    assert_string_equal(options->path, "/bin/true");
    assert_int_equal(options->fds[1], -1);
    assert_int_equal(fstat(options->fds[0], &st), 0);
    assert_true(S_ISSOCK(st.st_mode)); /* what FastCGI calls the listening socket */
    close(options->fds[0]);
    close(options->fds[2]);
    if (start_err < 0)
        return start_err;
    assert_true(n_started < CHILDREN);
    children[n_started++] = (struct started){.child = child, .events = events};
    n_open++;
    return 0;
}

void mk_child_stop(struct mk_child *child, uint32_t grace_ms)
{
    struct started *s = find_child(child);
    assert_int_equal(grace_ms, GRACE_MS);
    assert_non_null(s);
    s->is_stopped = true;
}

void mk_child_close(struct mk_child *child)
{
    struct started *s = find_child(child);
    if (!s)
        return;
    s->child = NULL;
    n_open--;
}

int mk_child_pid(const struct mk_child *child)
{
    return find_child(child) ? 1 : 0;
}

void mk_child_print_status(int status, struct mk_buf *out)
{
    mk_buf_addf(out, "ended with status %d", status);
}

const char *mk_child_step_text(enum mk_child_step step)
{
    (void)step;
    return "cannot be executed";
}

static void begin_child(unsigned n)
{
    children[n].events->started(children[n].child, 0, MK_CHILD_EXEC);
}

/* The program could not be started: the library has closed the child. */
static void fail_child(unsigned n)
{
    struct mk_child *child = children[n].child;
    mk_child_close(child);
    children[n].events->started(child, -ENOENT, MK_CHILD_EXEC);
}

static void end_child(unsigned n)
{
    children[n].events->ended(children[n].child, 0);
}

/* ── the fixture ── */

static uint64_t get_now_ms(void *ctx)
{
    (void)ctx;
    return now_ms;
}

static int64_t get_wall_seconds(void *ctx)
{
    (void)ctx;
    return 0;
}

static const struct mk__clock test_clock = {.now_ms = get_now_ms, .wall_seconds = get_wall_seconds};

static void pass(uint64_t ms)
{
    now_ms += ms;
    mk_test_turn(&loop);
    mk_test_turn(&loop);
}

static struct mk_dial_target target;

static int open_fixture(void **state)
{
    (void)state;
    snprintf(mk_test_folder, sizeof(mk_test_folder), "/tmp/mk-spawn-XXXXXX");
    if (!mkdtemp(mk_test_folder))
        return -1;
    snprintf(folder, sizeof(folder), "%s/own", mk_test_folder);
    snprintf(socket_path, sizeof(socket_path), "%s/own/socket", mk_test_folder);
    target = (struct mk_dial_target){.host = mk_str_c(socket_path)};
    conf = (struct spawn_conf){.text = MK_STR("true"),
                               .args = MK_STR("true\0"),
                               .program = "/bin/true",
                               .folder = folder,
                               .target = {.dial = &target}};
    n_started = n_open = 0;
    start_err = 0;
    now_ms = 1000;
    assert_int_equal(mk__loop_open(&loop, &mk__poller_epoll, &test_clock, NULL), 0);
    assert_int_equal(mk__loop_open(&other_loop, &mk__poller_epoll, &test_clock, NULL), 0);
    for (unsigned i = 0; i < COUNT(workers); i++)
        workers[i] = (struct mk_worker){.loop = i < 2 ? &loop : &other_loop};
    spawns = spawns_new();
    assert_non_null(spawns);
    return 0;
}

/* Nothing is left: no child, socket or folder. */
static int close_fixture(void **state)
{
    (void)state;
    spawns_free(spawns);
    assert_int_equal(n_open, 0);
    assert_int_equal(channels, 0);
    assert_int_equal(access(folder, F_OK), -1);
    mk__loop_close(&loop);
    mk__loop_close(&other_loop);
    return mk_test_remove(mk_test_folder);
}

static void begin(unsigned n_children)
{
    assert_true(spawns_begin(spawns, &workers[0]));
    spawns_hold(spawns, &conf, n_children);
}

static void end(void)
{
    spawns_put(spawns, &conf);
    spawns_end(spawns, &workers[0]);
}

static unsigned count_stopped(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < n_started; i++)
        n += children[i].child && children[i].is_stopped;
    return n;
}

/* ── tests ── */

/* Only the server's user may enter the folder, and connections wait for a child. */
TEST(socket, open_fixture, close_fixture)
{
    struct stat st;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    begin(2);
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    memcpy(name.sun_path, socket_path, strlen(socket_path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    close(fd);
    assert_int_equal(n_started, 2);
    end();
}

/* A folder that exists may be that of another user: it is not used, nor removed. */
TEST(folder_that_exists, open_fixture, close_fixture)
{
    assert_int_equal(mkdir(folder, 0777), 0);
    begin(2);
    assert_int_equal(n_started, 0);
    assert_int_equal(access(socket_path, F_OK), -1);
    end();
    assert_int_equal(rmdir(folder), 0);
}

/* 100 ms, twice as long each time, up to 30 s. */
TEST(delays_of_children_that_end_early, open_fixture, close_fixture)
{
    static const unsigned delays[] = {100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    begin(1);
    for (unsigned i = 0; i < COUNT(delays); i++) {
        begin_child(i);
        end_child(i);
        assert_int_equal(n_open, 0);
        pass(delays[i] - 1);
        assert_int_equal(n_started, i + 1);
        pass(1);
        assert_int_equal(n_started, i + 2);
    }
    end();
}

/* One that has run for 5 s is started again at once, and the next delay is the shortest. */
TEST(steady_children, open_fixture, close_fixture)
{
    begin(1);
    begin_child(0);
    end_child(0);
    pass(100);
    begin_child(1);
    pass(5000);
    end_child(1);
    pass(1);
    assert_int_equal(n_started, 3);
    begin_child(2);
    end_child(2);
    pass(100);
    assert_int_equal(n_started, 4);
    end();
}

TEST(programs_that_cannot_be_started, open_fixture, close_fixture)
{
    begin(1);
    fail_child(0);
    assert_int_equal(n_open, 0);
    pass(100);
    assert_int_equal(n_started, 2);
    start_err = -ENOBUFS; /* nor can the starter be asked */
    fail_child(1);
    pass(200);
    assert_int_equal(n_started, 2);
    start_err = 0;
    pass(400);
    assert_int_equal(n_started, 3);
    end();
}

/* A program that got no socket would not speak FastCGI. */
TEST(no_descriptor, open_fixture, close_fixture)
{
    struct rlimit before, none;
    begin(1);
    begin_child(0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){3, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    end_child(0);
    pass(100);
    assert_int_equal(n_started, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    pass(200);
    assert_int_equal(n_started, 2);
    end();
}

/* The line stays, with another number of children. */
TEST(other_numbers_of_children, open_fixture, close_fixture)
{
    begin(2);
    begin_child(0);
    begin_child(1);
    assert_true(spawns_begin(spawns, &workers[1]));
    spawns_hold(spawns, &conf, 4);
    assert_int_equal(n_started, 4);
    spawns_put(spawns, &conf);
    spawns_end(spawns, &workers[0]);
    assert_int_equal(count_stopped(), 0);
    assert_true(spawns_begin(spawns, &workers[0]));
    spawns_hold(spawns, &conf, 1);
    assert_int_equal(count_stopped(), 3);
    for (unsigned i = 0; i < 4; i++)
        if (children[i].is_stopped)
            end_child(i);
    pass(60000);
    assert_int_equal(n_started, 4);
    assert_int_equal(n_open, 1);
    spawns_put(spawns, &conf);
    spawns_end(spawns, &workers[1]);
    end();
}

/* A child that waits to be started again is not, when fewer are wanted. */
TEST(fewer_while_one_waits, open_fixture, close_fixture)
{
    begin(2);
    begin_child(0);
    begin_child(1);
    end_child(0);
    end_child(1);
    spawns_hold(spawns, &conf, 1);
    pass(60000);
    assert_int_equal(n_started, 3);
    spawns_put(spawns, &conf);
    end();
}

/* The next configuration has no such line: in the next turn the children are stopped, and their socket is removed. */
TEST(line_that_goes, open_fixture, close_fixture)
{
    begin(2);
    begin_child(0);
    begin_child(1);
    assert_true(spawns_begin(spawns, &workers[1]));
    spawns_put(spawns, &conf);
    spawns_end(spawns, &workers[0]);
    assert_int_equal(count_stopped(), 0); /* a worker_stop begins nothing */
    pass(0);
    assert_int_equal(count_stopped(), 2);
    end_child(0);
    assert_int_equal(access(socket_path, F_OK), 0);
    end_child(1);
    assert_int_equal(access(folder, F_OK), -1);
    pass(60000);
    assert_int_equal(n_started, 2);
    spawns_end(spawns, &workers[1]);
}

/* A configuration that has the line again in the same turn keeps the children. */
TEST(line_that_is_put_and_held, open_fixture, close_fixture)
{
    begin(2);
    assert_true(spawns_begin(spawns, &workers[1]));
    spawns_put(spawns, &conf);
    spawns_hold(spawns, &conf, 2);
    pass(0);
    assert_int_equal(n_started, 2);
    assert_int_equal(count_stopped(), 0);
    spawns_end(spawns, &workers[1]);
    end();
}

/* One that has it later meets children that are to end, which do not count. */
TEST(line_that_comes_again, open_fixture, close_fixture)
{
    begin(2);
    begin_child(0);
    begin_child(1);
    assert_true(spawns_begin(spawns, &workers[1]));
    spawns_put(spawns, &conf);
    pass(0);
    spawns_hold(spawns, &conf, 2);
    assert_int_equal(n_started, 4);
    end_child(0);
    end_child(1);
    pass(60000);
    assert_int_equal(n_open, 2);
    assert_int_equal(n_started, 4);
    spawns_put(spawns, &conf);
    spawns_end(spawns, &workers[0]);
    spawns_end(spawns, &workers[1]);
}

TEST(another_server_of_the_process, open_fixture, close_fixture)
{
    begin(1);
    assert_false(spawns_begin(spawns, &workers[2]));
    assert_false(spawns_has(spawns, &workers[2]));
    assert_true(spawns_has(spawns, &workers[0]));
    end();
    assert_false(spawns_has(spawns, &workers[0]));
}

static int run_once(void *ctx)
{
    unsigned wanted = n_started + 2;
    (void)ctx;
    if (!spawns_begin(spawns, &workers[0]))
        return -ENOMEM;
    spawns_hold(spawns, &conf, 2);
    int err = n_started == wanted ? 0 : -ENOMEM;
    spawns_put(spawns, &conf);
    spawns_end(spawns, &workers[0]);
    assert_int_equal(access(folder, F_OK), -1);
    return err;
}

TEST(each_allocation_fails, open_fixture, close_fixture)
{
    assert_true(mk_test_failing_allocs(run_once, NULL) > 6);
}
