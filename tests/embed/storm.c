// SPDX-License-Identifier: Apache-2.0
/*
 * Starts and stops servers, with a client at each, and compares the process before and after. Compiled and run by
 * tests/e2e/test_embed.py: storm ROUNDS threads|caller|several|forked|cut FOLDER
 */
#define _GNU_SOURCE
#include <monkey/embed.h>

#include "client.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SERVERS = 4 };

static const char *folder;

/* ── the process ── */

/* What belongs to the program, all of it also while servers run; and what servers may have only while they run. */
struct process {
    char cwd[4096], locale[256], name[16], status[512];
    size_t environment;
    sigset_t mask;
    struct sigaction actions[64];
    struct rlimit limits[RLIM_NLIMITS];
    struct itimerval timer;
    cpu_set_t cpus;
    int flags[3], priority;
    unsigned descriptors, threads;
};

static struct process before;

/* Users, groups, capabilities, umask, seccomp and the like. */
static void read_status(char *out, size_t size)
{
    static const char *const keys[] = {"Umask:", "Uid:", "Gid:", "CapEff:", "NoNewPrivs:", "Seccomp:"};
    char line[512];
    size_t len = 0;
    FILE *file = fopen("/proc/self/status", "re");
    CHECK(file);
    while (fgets(line, sizeof(line), file))
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0)
                len += (size_t)snprintf(out + len, size - len, "%s", line);
    CHECK(len > 0 && len < size);
    fclose(file);
}

static void describe(struct process *p)
{
    memset(p, 0, sizeof(*p));
    p->descriptors = count_entries("/proc/self/fd");
    p->threads = count_entries("/proc/self/task");
    CHECK(getcwd(p->cwd, sizeof(p->cwd)));
    snprintf(p->locale, sizeof(p->locale), "%s", setlocale(LC_ALL, NULL));
    for (char **one = environ; *one; one++)
        for (const char *c = *one; *c; c++)
            p->environment = p->environment * 31 + (unsigned char)*c;
    CHECK(prctl(PR_GET_NAME, p->name) == 0);
    read_status(p->status, sizeof(p->status));
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &p->mask) == 0);
    for (int i = 1; i < 64; i++)
        sigaction(i, NULL, &p->actions[i]);
    for (int i = 0; i < RLIM_NLIMITS; i++)
        CHECK(getrlimit(i, &p->limits[i]) == 0);
    CHECK(getitimer(ITIMER_REAL, &p->timer) == 0);
    CHECK(sched_getaffinity(0, sizeof(p->cpus), &p->cpus) == 0);
    for (int i = 0; i < 3; i++)
        p->flags[i] = fcntl(i, F_GETFL);
    p->priority = getpriority(PRIO_PROCESS, 0);
}

/* While servers run or not: nothing that belongs to the program has changed. */
static void check_process(void)
{
    struct process now;
    describe(&now);
    CHECK(strcmp(before.cwd, now.cwd) == 0 && strcmp(before.locale, now.locale) == 0);
    CHECK(strcmp(before.name, now.name) == 0 && strcmp(before.status, now.status) == 0);
    CHECK(before.environment == now.environment && before.priority == now.priority);
    for (int i = 1; i < 64; i++) {
        CHECK(sigismember(&before.mask, i) == sigismember(&now.mask, i));
        CHECK(before.actions[i].sa_handler == now.actions[i].sa_handler);
        CHECK(before.actions[i].sa_flags == now.actions[i].sa_flags);
    }
    CHECK(memcmp(before.limits, now.limits, sizeof(now.limits)) == 0);
    CHECK(memcmp(&before.timer, &now.timer, sizeof(now.timer)) == 0);
    CHECK(CPU_EQUAL(&before.cpus, &now.cpus));
    CHECK(memcmp(before.flags, now.flags, sizeof(now.flags)) == 0);
}

/* When no server runs: its descriptors and threads are gone, too. */
static void check_end(void)
{
    CHECK(before.descriptors == count_entries("/proc/self/fd"));
    for (int i = 0; i < 10000 && before.threads != count_entries("/proc/self/task"); i++)
        usleep(1000); /* pthread_join() may return a moment before the kernel has removed the thread */
    CHECK(before.threads == count_entries("/proc/self/task"));
    check_process();
}

/* A program that the process executes while servers run inherits none of their descriptors. */
static void check_close_on_exec(void)
{
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir);
    for (struct dirent *one; (one = readdir(dir));) {
        int flags = fcntl((int)strtol(one->d_name, NULL, 10), F_GETFD);
        CHECK(one->d_name[0] == '.' || strtol(one->d_name, NULL, 10) < 3 || flags & FD_CLOEXEC);
    }
    closedir(dir);
}

/* ── servers and clients ── */

static int say_hello(struct mk_request *req, void *ctx)
{
    (void)ctx;
    return mk_response_send(req, 200, "text/plain", mk_request_param(req, "name"));
}

static struct mk_server *start(bool in_caller)
{
    struct mk_server *server = mk_server_new();
    CHECK(mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 2\n") == 0);
    CHECK(mk_server_folder(server, folder) == 0);
    CHECK(mk_server_handle(server, "GET", "/hello/:name", say_hello, NULL) == 0);
    if (in_caller)
        CHECK(mk_server_in_caller(server) == 0);
    if (mk_server_start(server) < 0) {
        fprintf(stderr, "%s\n", mk_server_error(server));
        abort();
    }
    return server;
}

static void ask(struct mk_server *server, const char *path, const char *body, bool in_caller)
{
    char text[1024];
    size_t len = 0;
    int fd = connect_to(mk_server_port(server));
    int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", path);
    CHECK(send(fd, text, (size_t)n, MSG_NOSIGNAL) == n);
    for (ssize_t got = 1; got != 0;) {
        if (in_caller)
            CHECK(mk_server_run_once(server, 10) == 0);
        got = recv(fd, text + len, sizeof(text) - 1 - len, in_caller ? MSG_DONTWAIT : 0);
        CHECK(got >= 0 || errno == EAGAIN);
        len += got > 0 ? (size_t)got : 0;
    }
    text[len] = '\0';
    close(fd);
    CHECK(strncmp(text, "HTTP/1.1 200 OK\r\n", 17) == 0);
    CHECK(len > strlen(body) && strcmp(text + len - strlen(body), body) == 0);
}

static void end(struct mk_server *server)
{
    CHECK(mk_server_stop(server) == 0);
    mk_server_free(server);
}

/* ── rounds ── */

static void run_one(bool in_caller, int round)
{
    struct mk_server *server = start(in_caller);
    if (round % 2)
        ask(server, "/hello/you", "\r\n\r\nyou", in_caller);
    else
        ask(server, "/a.txt", "\r\n\r\nembedded\n", in_caller);
    if (round % 50 == 1) {
        check_process();
        check_close_on_exec();
    }
    end(server);
}

static void run_several(int round)
{
    struct mk_server *servers[SERVERS];
    for (int i = 0; i < SERVERS; i++)
        servers[i] = start(i == 0);
    for (int i = 0; i < SERVERS; i++)
        ask(servers[(i + round) % SERVERS], "/hello/you", "\r\n\r\nyou", (i + round) % SERVERS == 0);
    check_process();
    for (int i = 0; i < SERVERS; i++)
        end(servers[(i + round / 2) % SERVERS]);
}

static void *cut(void *server)
{
    struct timespec delay = {.tv_nsec = rand() % 3000000};
    nanosleep(&delay, NULL);
    mk_server_stop_now(server);
    return NULL;
}

/* A server that reloads until another thread stops it. */
static void run_cut(int round)
{
    struct mk_server *server = start(round % 4 == 0);
    pthread_t thread;
    int err = 0;
    CHECK(pthread_create(&thread, NULL, cut, server) == 0);
    while (err == 0)
        err = mk_server_reload(server);
    CHECK(err == -ECANCELED);
    CHECK(pthread_join(thread, NULL) == 0);
    end(server);
}

/* A server that is made before the fork, and started by each of two children. */
static void run_forked(void)
{
    struct mk_server *server = mk_server_new();
    CHECK(mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n") == 0);
    CHECK(mk_server_handle(server, "GET", "/hello/:name", say_hello, NULL) == 0);
    CHECK(mk_server_load(server) == 0);
    for (int i = 0; i < 2; i++) {
        int status;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            CHECK(mk_server_start(server) == 0);
            ask(server, "/hello/you", "\r\n\r\nyou", false);
            end(server);
            exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    mk_server_free(server);
}

static void run_round(const char *kind, int round)
{
    if (strcmp(kind, "several") == 0)
        run_several(round);
    else if (strcmp(kind, "forked") == 0)
        run_forked();
    else if (strcmp(kind, "cut") == 0)
        run_cut(round);
    else
        run_one(strcmp(kind, "caller") == 0, round);
}

/*
 * In half of the rounds the heap may grow by less than an allocation in each. What a thread has freed counts as used
 * while the C library keeps it for that thread: the test has it keep nothing. With a sanitizer malloc(3) is another
 * one, and nothing is counted.
 */
static void check_heap(size_t at_half, int rounds)
{
    size_t now = mallinfo2().uordblks;
    if (now > at_half + (size_t)rounds * 8)
        fprintf(stderr, "storm: the heap has grown from %zu to %zu bytes in %d rounds\n", at_half, now, rounds);
}

int main(int argc, char **argv)
{
    CHECK(argc == 4 && close_range(3, ~0U, 0) == 0);
    int rounds = (int)strtol(argv[1], NULL, 10);
    size_t at_half = 0;
    folder = argv[3];
    setlocale(LC_ALL, "C.UTF-8");
    run_one(false, 0); /* what the process needs once */
    describe(&before);
    for (int i = 0; i < rounds; i++) {
        if (i == rounds / 2)
            at_half = mallinfo2().uordblks;
        run_round(argv[2], i);
    }
    check_heap(at_half, rounds - rounds / 2);
    check_end();
    return 0;
}
