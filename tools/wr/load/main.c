// SPDX-License-Identifier: Apache-2.0
/*
 * wr-load: loads an HTTP/1.1 server and says what it answered, how fast, and what the load itself cost. This file
 * starts the threads and waits for their end, or for a signal.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "report.h"
#include "thread.h"

enum { EXIT_WRONG = 1, EXIT_USAGE = 2, PROGRESS_MS = 1000 };

struct run {
    struct loader *loaders;
    unsigned started; /* threads */
    int signal_fd, event_fd;
};

/* The signals that end a run are read from a descriptor; no thread is interrupted. */
static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    return pthread_sigmask(SIG_BLOCK, &set, NULL) ? -1 : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void stop_all(struct run *run)
{
    for (unsigned i = 0; i < run->started; i++)
        thread_stop(&run->loaders[i]);
}

/* Waits until all threads have ended. */
static void wait_for_end(struct run *run, const struct plan *plan)
{
    struct pollfd fds[] = {{.fd = run->event_fd, .events = POLLIN}, {.fd = run->signal_fd, .events = POLLIN}};
    uint64_t begun_ns = loader_now_ns(), next_ns = begun_ns + PROGRESS_MS * 1000000ull;
    for (eventfd_t ended = 0, n; ended < run->started;) {
        uint64_t now_ns = loader_now_ns();
        int wait_ms = !plan->progress ? -1 : next_ns > now_ns ? (int)((next_ns - now_ns) / 1000000u) + 1 : 0;
        if (poll(fds, 2, wait_ms) < 0 && errno != EINTR)
            break;
        if (fds[1].revents) {
            stop_all(run);
            fds[1].fd = -1; /* once */
        }
        if (fds[0].revents && eventfd_read(run->event_fd, &n) == 0)
            ended += n;
        if (plan->progress && loader_now_ns() >= next_ns) {
            report_print_progress(run->loaders, run->started, (double)(loader_now_ns() - begun_ns) / 1e9);
            next_ns += PROGRESS_MS * 1000000ull;
        }
    }
}

/* Runs the threads. Returns 0, or -errno when not all of them could be started. */
static int run_threads(struct run *run, struct plan *plan)
{
    uint64_t start_ns = loader_now_ns();
    int err = 0;
    for (unsigned i = 0; i < plan->threads && err == 0; i++)
        err = thread_init(&run->loaders[i], plan, &plan->arena, i, start_ns, run->event_fd);
    for (unsigned i = 0; i < plan->threads && err == 0; i++) {
        err = -pthread_create(&run->loaders[i].thread, NULL, thread_run, &run->loaders[i]);
        run->started += err == 0;
    }
    if (err < 0)
        stop_all(run);
    wait_for_end(run, plan);
    for (unsigned i = 0; i < run->started; i++)
        pthread_join(run->loaders[i].thread, NULL);
    return err;
}

static int load_server(struct plan *plan)
{
    struct run run = {.signal_fd = open_signals(), .event_fd = eventfd(0, EFD_CLOEXEC)};
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    struct report *report = mk_arena_zalloc(&plan->arena, sizeof(*report));
    run.loaders = mk_arena_zalloc(&plan->arena, plan->threads * sizeof(*run.loaders));
    int err = run.signal_fd < 0 || run.event_fd < 0 ? -errno
              : !report || !run.loaders             ? -ENOMEM
                                                    : run_threads(&run, plan);
    if (err < 0) {
        fprintf(stderr, "wr-load: the threads cannot be started: %s\n", strerror(-err));
        return EXIT_WRONG;
    }
    report->started = (double)wall.tv_sec + (double)wall.tv_nsec / 1e9;
    report_collect(report, plan, run.loaders, plan->threads);
    int status = report_print(report);
    for (unsigned i = 0; i < plan->threads; i++)
        thread_release(&run.loaders[i]);
    close(run.signal_fd);
    close(run.event_fd);
    return status;
}

int main(int argc, char **argv)
{
    struct plan plan;
    int status = EXIT_USAGE;
    if (options_parse(&plan, argc, argv) == 0) {
        status = 0;
        if (!options_print(&plan))
            status = load_server(&plan);
    }
    options_release(&plan);
    return status;
}
