// SPDX-License-Identifier: Apache-2.0
/*
 * Private loops on epoll (private_loop.h).
 */
#include "event/private_loop.h"

#include "common/current.h"
#include "common/heap.h"
#include "service/service.h"
#include "service/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { SIZE_MAX_EVENTS = 65536, FIRST_ROWS = 64 };

/* What a descriptor waits for. */
struct row {
    int mask;      /* 0: it is not watched */
    bool own;      /* made by the loop: a timer, or the reading end of a channel */
    int write_end; /* of the channel; -1: it is none */
    ino_t pipe;    /* its inode */
    void *data;
};

struct private_loop {
    struct duda_event_loop shown; /* to the service */
    struct mk_list node;          /* in loops->all */
    struct private_loops *loops;  /* of the service; NULL: a thread that the framework does not know has made it */
    struct epoll_event *ready;
    struct row *rows; /* by the descriptor's number */
    unsigned n;
    int fd, stop_fd; /* stop_fd: of the service, once a thread of worker->spawn() waits; or -1 */
};

static struct private_loop *get_inner(struct duda_event_loop *loop)
{
    return MK_CONTAINER_OF(loop, struct private_loop, shown);
}

/* ── making ── */

int private_loops_init(struct service *s)
{
    pthread_mutex_init(&private_loops_of(s)->lock, NULL);
    mk_list_init(&private_loops_of(s)->all);
    return 0;
}

static void add_to_service(struct private_loop *l)
{
    if (!current.service)
        return;
    l->loops = private_loops_of(current.service);
    pthread_mutex_lock(&l->loops->lock);
    mk_list_add(&l->loops->all, &l->node);
    pthread_mutex_unlock(&l->loops->lock);
}

static void remove_from_service(struct private_loop *l)
{
    if (!l->loops)
        return;
    pthread_mutex_lock(&l->loops->lock);
    mk_list_del(&l->node);
    pthread_mutex_unlock(&l->loops->lock);
}

struct duda_event_loop *private_loop_new(int size)
{
    if (size < 1 || size > SIZE_MAX_EVENTS)
        return NULL;
    struct private_loop *l = heap_zalloc(sizeof(*l));
    if (!l)
        return NULL;
    size_t n = (size_t)size;
    l->shown.size = size;
    l->shown.events = heap_zalloc(n * sizeof(struct duda_loop_event));
    l->ready = heap_zalloc(n * sizeof(struct epoll_event));
    l->fd = epoll_create1(EPOLL_CLOEXEC);
    l->stop_fd = -1;
    add_to_service(l);
    if (l->shown.events && l->ready && l->fd >= 0)
        return &l->shown;
    private_loop_free(&l->shown);
    return NULL;
}

void private_loop_free(struct duda_event_loop *loop)
{
    if (!loop)
        return;
    struct private_loop *l = get_inner(loop);
    size_t n = (size_t)loop->size;
    remove_from_service(l);
    if (l->fd >= 0)
        close(l->fd);
    heap_free(l->rows, l->n * sizeof(struct row));
    heap_free(l->ready, n * sizeof(struct epoll_event));
    heap_free(loop->events, n * sizeof(struct duda_loop_event));
    heap_free(l, sizeof(*l));
}

/* Closes the other end of a channel, unless the service has: the number may refer to something else then. */
static void close_write_end(const struct row *row)
{
    struct stat st;
    if (row->write_end >= 0 && fstat(row->write_end, &st) == 0 && S_ISFIFO(st.st_mode) && st.st_ino == row->pipe)
        close(row->write_end);
}

/*
 * Closes what the loop has made and the service has not closed: the kernel knows a number in an epoll set only as long
 * as it refers to the file that was added.
 */
static void close_own(struct private_loop *l)
{
    for (unsigned fd = 0; fd < l->n; fd++) {
        struct epoll_event same = {.events = EPOLLIN, .data.fd = (int)fd};
        if (!l->rows[fd].own)
            continue;
        close_write_end(&l->rows[fd]);
        if (epoll_ctl(l->fd, EPOLL_CTL_MOD, (int)fd, &same) == 0)
            close((int)fd);
    }
}

void private_loops_release(struct service *s)
{
    struct private_loops *loops = private_loops_of(s);
    while (!mk_list_empty(&loops->all)) {
        struct private_loop *l = MK_LIST_FIRST(&loops->all, struct private_loop, node);
        close_own(l);
        private_loop_free(&l->shown);
    }
    pthread_mutex_destroy(&loops->lock);
}

/* ── descriptors ── */

static int make_room(struct private_loop *l, unsigned fd)
{
    if (fd < l->n)
        return 0;
    unsigned n = l->n ? l->n : FIRST_ROWS;
    while (n <= fd)
        n *= 2;
    struct row *rows = heap_grow(l->rows, l->n * sizeof(*rows), n * sizeof(*rows));
    if (!rows) {
        errno = ENOMEM;
        return -1;
    }
    l->rows = rows;
    l->n = n;
    return 0;
}

static int control_epoll(struct private_loop *l, int fd, int mask)
{
    struct epoll_event wanted = {.data.fd = fd};
    assert((unsigned)fd < l->n);
    wanted.events = (mask & DUDA_EVENT_READ ? EPOLLIN : 0u) | (mask & DUDA_EVENT_WRITE ? EPOLLOUT : 0u);
    if (l->rows[fd].mask && epoll_ctl(l->fd, EPOLL_CTL_MOD, fd, &wanted) == 0)
        return 0; /* otherwise the number was closed and is used again */
    l->rows[fd] = (struct row){0};
    return epoll_ctl(l->fd, EPOLL_CTL_ADD, fd, &wanted);
}

int private_loop_add(struct duda_event_loop *loop, int fd, int mask, void *data)
{
    struct private_loop *l = get_inner(loop);
    if (fd < 0 || !mask || (mask & ~DUDA_EVENT_RW)) {
        errno = EINVAL;
        return -1;
    }
    if (fcntl(fd, F_GETFD) < 0) /* the rows have room up to the highest number */
        return -1;
    if (make_room(l, (unsigned)fd) < 0 || control_epoll(l, fd, mask) < 0)
        return -1;
    l->rows[fd].mask = mask;
    l->rows[fd].data = data;
    return 0;
}

int private_loop_delete(struct duda_event_loop *loop, int fd)
{
    struct private_loop *l = get_inner(loop);
    if (fd < 0 || (unsigned)fd >= l->n || !l->rows[fd].mask) {
        errno = ENOENT;
        return -1;
    }
    l->rows[fd] = (struct row){0};
    return epoll_ctl(l->fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Returns `fd`, watched, or closes it and returns -1. `write_end`: of a channel, else -1. */
static int add_own(struct duda_event_loop *loop, int fd, int write_end)
{
    struct stat st;
    if (private_loop_add(loop, fd, DUDA_EVENT_READ, NULL) == 0) {
        struct row *row = &get_inner(loop)->rows[fd];
        row->own = true;
        row->write_end = write_end;
        row->pipe = fstat(fd, &st) == 0 ? st.st_ino : 0;
        return fd;
    }
    int err = errno;
    close(fd);
    errno = err;
    return -1;
}

int private_loop_add_timeout(struct duda_event_loop *loop, int seconds)
{
    struct itimerspec each = {.it_interval.tv_sec = seconds, .it_value.tv_sec = seconds};
    if (seconds < 1) {
        errno = EINVAL;
        return -1;
    }
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        return -1;
    timerfd_settime(fd, 0, &each, NULL);
    return add_own(loop, fd, -1);
}

int private_loop_add_channel(struct duda_event_loop *loop, int *ret_read, int *ret_write)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    if (add_own(loop, ends[0], ends[1]) < 0) {
        int err = errno;
        close(ends[1]);
        errno = err;
        return -1;
    }
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

/* ── waiting ── */

static int get_mask(uint32_t events, int wanted)
{
    if (events & (EPOLLERR | EPOLLHUP))
        return wanted;
    return (events & EPOLLIN ? DUDA_EVENT_READ : 0) | (events & EPOLLOUT ? DUDA_EVENT_WRITE : 0);
}

static int collect_ready(struct private_loop *l, int n_ready)
{
    int n = 0;
    for (int i = 0; i < n_ready; i++) {
        int fd = l->ready[i].data.fd;
        if (fd == l->stop_fd)
            continue;
        const struct row *row = &l->rows[fd];
        if (row->mask)
            l->shown.events[n++] = (struct duda_loop_event){fd, get_mask(l->ready[i].events, row->mask), row->data};
    }
    return n;
}

/* Lets the end of the service wake the thread. */
static int watch_service_end(struct private_loop *l)
{
    if (l->stop_fd >= 0 || !current.thread)
        return 0;
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = threads_of(current.service)->stop_fd};
    if (epoll_ctl(l->fd, EPOLL_CTL_ADD, wanted.data.fd, &wanted) < 0)
        return -1;
    l->stop_fd = wanted.data.fd;
    return 0;
}

/* Notifies a thread once that its service ends, and ends it when it waits again: old services ignore results. */
static bool must_end(void)
{
    if (!current.thread || !atomic_load(&threads_of(current.service)->stopping))
        return false;
    if (current.thread->end_notified)
        pthread_exit(NULL); /* the end of the service frees the loop: other threads may use its channels */
    current.thread->end_notified = true;
    return true;
}

int private_loop_wait(struct duda_event_loop *loop)
{
    struct private_loop *l = get_inner(loop);
    for (;;) {
        if (must_end()) {
            errno = ECANCELED;
            return -1;
        }
        int n = watch_service_end(l) < 0 ? -1 : epoll_wait(l->fd, l->ready, loop->size, -1);
        if (n < 0 && errno != EINTR)
            return -1;
        n = collect_ready(l, n);
        if (n)
            return n;
    }
}
