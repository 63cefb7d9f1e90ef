// SPDX-License-Identifier: Apache-2.0
/*
 * Channels: packets to the starter and from it. A job makes the connection, since that may fork.
 */
#include "child.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READS_AT_ONCE = 64 };

struct mk_child_channel {
    struct mk_event event; /* fd -1: there is no connection */
    bool wants_write;
    struct mk_task task; /* sends what is queued */
    struct mk_child_starter *starter;
    struct mk_loop *loop;
    struct mk_account *account;
    struct mk_list children;
    unsigned n_queued;
    uint32_t last_id;
    struct mk__starter_id id;      /* of the starter */
    struct mk_event end;           /* of a starter that has closed its sockets: a pidfd; -1: not awaited */
    uint64_t ended_serial;         /* of that one */
    struct connecting *connecting; /* NULL: no job is under way */
};

/* The job that connects. */
struct connecting {
    struct mk_job job;
    struct mk_child_channel *channel; /* NULL: it was closed */
    struct mk_child_starter *starter;
    struct mk_worker *worker; /* NULL: none is held */
    struct mk_account *account;
    struct mk__starter_id id;
    int fd;
};

static void on_event(struct mk_event *event, uint32_t events);
static void on_end(struct mk_event *event, uint32_t events);
static void flush_task(struct mk_task *task);

static struct mk_child *child_at(struct mk_list *node)
{
    return MK_CONTAINER_OF(node, struct mk_child, node);
}

int mk_child_channel_open(struct mk_child_starter *starter, struct mk_loop *loop, struct mk_account *account,
                          struct mk_child_channel **ret)
{
    struct mk_child_channel *c = mk_account_alloc(account, sizeof(*c));
    if (!c)
        return -ENOMEM;
    *c = (struct mk_child_channel){.event = {.ready = on_event, .fd = -1},
                                   .end = {.ready = on_end, .fd = -1},
                                   .starter = starter,
                                   .loop = loop,
                                   .account = account};
    mk_list_init(&c->children);
    mk_task_init(&c->task, flush_task);
    *ret = c;
    return 0;
}

static void close_event(struct mk_child_channel *c, struct mk_event *event)
{
    if (event->fd < 0)
        return;
    mk_event_del(c->loop, event);
    close(event->fd);
    event->fd = -1;
}

static void close_connection(struct mk_child_channel *c)
{
    close_event(c, &c->event);
    c->wants_write = false;
}

void mk_child_channel_close(struct mk_child_channel *channel)
{
    if (!channel)
        return;
    while (!mk_list_empty(&channel->children))
        mk__child_release(child_at(channel->children.next));
    close_connection(channel);
    close_event(channel, &channel->end);
    mk_task_cancel(&channel->task);
    if (channel->connecting)
        channel->connecting->channel = NULL;
    mk_account_free(channel->account, channel, sizeof(*channel));
}

struct mk_loop *mk__channel_loop(const struct mk_child_channel *channel)
{
    return channel->loop;
}

/* ── children ── */

void mk__channel_remove(struct mk_child_channel *channel, struct mk_child *child)
{
    channel->n_queued -= child->state == MK__CHILD_QUEUED;
    mk_list_del(&child->node);
}

int mk__channel_add(struct mk_child_channel *channel, struct mk_child *child)
{
    if (channel->n_queued == MK_CHILD_QUEUE_MAX)
        return -ENOBUFS;
    channel->n_queued++;
    child->id = ++channel->last_id;
    child->state = MK__CHILD_QUEUED;
    mk_list_add(&channel->children, &child->node);
    return 0;
}

static struct mk_child *find_child(struct mk_child_channel *c, uint32_t id)
{
    MK_LIST_EACH_ITEM(&c->children, struct mk_child, node, child)
        if (child->id == id)
            return child;
    return NULL;
}

/* Returns the first child in that state; NULL: there is none. */
static struct mk_child *find_in_state(struct mk_child_channel *c, enum mk__child_state state)
{
    MK_LIST_EACH_ITEM(&c->children, struct mk_child, node, child)
        if (child->state == state)
            return child;
    return NULL;
}

static void fail_all(struct mk_child_channel *c, enum mk__child_state state, int err)
{
    struct mk_child *child;
    while ((child = find_in_state(c, state)))
        mk__child_fail(child, err, MK_CHILD_STARTER);
}

/* ── the connection ── */

/* Reports the ends of children that nothing else would report; a callback may close others. */
static void end_unnoticed(struct mk_child_channel *c)
{
    struct mk_list *node = c->children.next;
    while (node != &c->children) {
        struct mk_child *child = child_at(node);
        bool is_unnoticed = child->state == MK__CHILD_RUNNING && child->is_lost && child->event.fd < 0;
        if (is_unnoticed)
            mk__child_take_exited(child, -1);
        node = is_unnoticed ? c->children.next : node->next;
    }
}

static void on_end(struct mk_event *event, uint32_t events)
{
    struct mk_child_channel *c = MK_CONTAINER_OF(event, struct mk_child_channel, end);
    (void)events;
    close_event(c, event);
    mk__starter_reap(c->starter, c->ended_serial);
}

/* The kernel closes the sockets of a process that ends before it can be reaped. Without a descriptor the next start of
 * a child reaps it. */
static void await_end(struct mk_child_channel *c)
{
    close_event(c, &c->end);
    c->ended_serial = c->id.serial;
    c->end.fd = (int)syscall(SYS_pidfd_open, c->id.pid, 0);
    if (c->end.fd >= 0 && mk_event_add(c->loop, &c->end, EPOLLIN) < 0) {
        close(c->end.fd);
        c->end.fd = -1;
    }
}

/* The starter has ended. What it was asked for is not done, and what runs ends with it. */
static void lose_starter(struct mk_child_channel *c)
{
    close_connection(c);
    await_end(c);
    for (struct mk_list *node = c->children.next; node != &c->children; node = node->next)
        if (child_at(node)->state >= MK__CHILD_RUNNING)
            mk__child_lose_starter(child_at(node));
    end_unnoticed(c);
    fail_all(c, MK__CHILD_ASKED, -EPIPE);
}

void mk__channel_drop_starter(struct mk_child_channel *channel)
{
    if (channel->event.fd >= 0)
        mk__starter_kill(channel->starter, channel->id.serial);
}

static void run_connect(struct mk_job *job)
{
    struct connecting *k = MK_CONTAINER_OF(job, struct connecting, job);
    k->fd = mk__starter_connect(k->starter, &k->id);
}

static void free_connecting(struct connecting *k)
{
    if (k->worker)
        mk_worker_put(k->worker);
    mk_account_free(k->account, k, sizeof(*k));
}

static void end_connect(struct mk_job *job)
{
    struct connecting *k = MK_CONTAINER_OF(job, struct connecting, job);
    struct mk_child_channel *c = k->channel;
    int err = k->fd < 0 ? k->fd : 0;
    if (c) {
        c->connecting = NULL;
        c->event.fd = k->fd < 0 ? -1 : k->fd;
        c->id = k->id;
        if (err == 0)
            err = mk_event_add(c->loop, &c->event, EPOLLIN);
    }
    if (k->fd >= 0 && (!c || err < 0))
        close(k->fd);
    if (c && err < 0) {
        c->event.fd = -1;
        fail_all(c, MK__CHILD_QUEUED, err);
    } else if (c) {
        mk__channel_flush(c);
    }
    free_connecting(k);
}

/* Begins to connect. Returns 0, -ENOMEM or -EAGAIN (the server ends). */
static int connect_starter(struct mk_child_channel *c, struct mk_worker *worker)
{
    struct connecting *k = mk_account_alloc(c->account, sizeof(*k));
    if (!k)
        return -ENOMEM;
    *k = (struct connecting){.job = {.work = run_connect, .done = end_connect},
                             .channel = c,
                             .starter = c->starter,
                             .worker = worker ? mk_worker_get(worker) : NULL,
                             .account = c->account,
                             .fd = -1};
    int err = mk_job_submit(c->loop, &k->job);
    if (err < 0)
        free_connecting(k);
    else
        c->connecting = k;
    return err;
}

/* ── sending ── */

static int send_start(struct mk_child_channel *c, struct mk_child *child)
{
    int fds[3];
    unsigned n = 0;
    for (int i = 0; i < 3; i++)
        if (child->fds[i] >= 0)
            fds[n++] = child->fds[i];
    return mk__message_send(c->event.fd, mk_buf_str(&child->message), fds, n);
}

static void want_write(struct mk_child_channel *c, bool wants)
{
    if (c->wants_write != wants)
        mk_event_change(c->loop, &c->event, wants ? EPOLLIN | EPOLLOUT : EPOLLIN);
    c->wants_write = wants;
}

/* The starter has the message, with its own descriptors. */
static void mark_asked(struct mk_child_channel *c, struct mk_child *child)
{
    child->state = MK__CHILD_ASKED;
    c->n_queued--;
    mk_buf_release(&child->message);
    for (int i = 0; i < 3; i++) {
        if (child->fds[i] >= 0)
            close(child->fds[i]);
        child->fds[i] = -1;
    }
}

static void send_queued(struct mk_child_channel *c)
{
    struct mk_child *child;
    int err = 0;
    while (err == 0 && (child = find_in_state(c, MK__CHILD_QUEUED))) {
        err = send_start(c, child);
        if (err == 0)
            mark_asked(c, child);
        else if (err != -EAGAIN && err != -EPIPE && err != -ECONNRESET) {
            mk__child_fail(child, err, MK_CHILD_STARTER);
            err = 0;
        }
    }
    if (err == 0 || err == -EAGAIN)
        want_write(c, err == -EAGAIN); /* the end of the starter is an event */
}

static void flush_task(struct mk_task *task)
{
    struct mk_child_channel *c = MK_CONTAINER_OF(task, struct mk_child_channel, task);
    const struct mk_child *first = find_in_state(c, MK__CHILD_QUEUED);
    if (c->event.fd >= 0) {
        send_queued(c);
        return;
    }
    int err = c->connecting || !first ? 0 : connect_starter(c, first->worker);
    if (err < 0)
        fail_all(c, MK__CHILD_QUEUED, err);
}

void mk__channel_flush(struct mk_child_channel *channel)
{
    mk_task_schedule(channel->loop, &channel->task);
}

static void send_order(struct mk_child_channel *channel, const struct mk__message *m)
{
    if (channel->event.fd < 0)
        return;
    int err = mk__message_send(channel->event.fd, mk_str((const char *)m, sizeof(*m)), NULL, 0);
    if (err == -EAGAIN) /* it does not read: with another one the numbers do not stay */
        mk__channel_drop_starter(channel);
}

void mk__channel_send_stop(struct mk_child_channel *channel, uint32_t id, uint32_t grace_ms)
{
    send_order(channel, &(struct mk__message){.kind = MK__MESSAGE_STOP, .id = id, .grace_ms = grace_ms});
}

void mk__channel_send_reap(struct mk_child_channel *channel, uint32_t id)
{
    send_order(channel, &(struct mk__message){.kind = MK__MESSAGE_REAP, .id = id});
}

/* ── receiving ── */

/* A child whose time to start was over, or that was not waited for, runs after all. */
static void kill_unknown(struct mk_child_channel *c, const struct mk__message *m)
{
    mk__channel_send_stop(c, m->id, 0);
    mk__channel_send_reap(c, m->id);
}

static void take_message(struct mk_child_channel *c, const struct mk__message *m, int pidfd)
{
    struct mk_child *child = find_child(c, m->id);
    if (child && m->kind == MK__MESSAGE_STARTED)
        mk__child_take_started(child, m, pidfd);
    else if (pidfd >= 0)
        close(pidfd);
    if (!child && m->kind == MK__MESSAGE_STARTED)
        kill_unknown(c, m);
    if (child && m->kind == MK__MESSAGE_EXITED)
        mk__child_take_exited(child, m->status);
}

/* A child has started for which this process has no descriptor left: it is ended, as if it could not be started. */
static void refuse_started(struct mk_child_channel *c, struct mk__message *m)
{
    struct mk_child *child = find_child(c, m->id);
    kill_unknown(c, m);
    m->err = -EMFILE;
    m->step = MK_CHILD_STARTER;
    if (child)
        mk__child_take_started(child, m, -1);
}

/* Reads one message. Returns 1, 0 (no more now) or -errno. */
static int read_message(struct mk_child_channel *c)
{
    struct mk__message m = {0};
    int fds[MK__MESSAGE_FDS_MAX];
    unsigned n;
    ssize_t len = mk__message_receive(c->event.fd, (char *)&m, sizeof(m), fds, &n);
    if (len == -EAGAIN)
        return 0;
    if (len == -EMFILE && m.kind == MK__MESSAGE_STARTED) {
        refuse_started(c, &m);
        return 1;
    }
    if (len < (ssize_t)sizeof(m) || n > 1) {
        for (unsigned i = 0; i < n; i++)
            close(fds[i]);
        return len < 0 ? (int)len : -EPIPE;
    }
    take_message(c, &m, n ? fds[0] : -1);
    return 1;
}

static void on_event(struct mk_event *event, uint32_t events)
{
    struct mk_child_channel *c = MK_CONTAINER_OF(event, struct mk_child_channel, event);
    int r = 1;
    for (int i = 0; i < READS_AT_ONCE && r == 1; i++)
        r = read_message(c);
    if (r < 0) {
        lose_starter(c);
        mk__channel_flush(c);
    } else if (events & EPOLLOUT) {
        send_queued(c);
    }
}
