// SPDX-License-Identifier: Apache-2.0
/*
 * Groups, their workers, and the channels of a worker: a hash table of lists.
 */
#include "ws.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ── groups ── */

struct mk_ws_group *mk_ws_group_new(void)
{
    struct mk_ws_group *group = mk_account_zalloc(NULL, sizeof(*group));
    if (!group)
        return NULL;
    pthread_mutex_init(&group->lock, NULL);
    return group;
}

static void free_worker(struct mk_ws_worker *w)
{
    assert(!w->refs && mk_list_empty(&w->all));
    mk__ws_drop_deliveries(w);
    if (w->event.fd >= 0)
        close(w->event.fd);
    mk_account_free(NULL, w, sizeof(*w));
}

void mk_ws_group_free(struct mk_ws_group *group)
{
    if (!group)
        return;
    for (unsigned i = 0; i < group->n; i++)
        free_worker(group->workers[i]);
    mk__ws_deflater_release(&group->deflater);
    pthread_mutex_destroy(&group->lock);
    mk_account_free(NULL, group, sizeof(*group));
}

size_t mk_ws_group_count(const struct mk_ws_group *group)
{
    return atomic_load_explicit(&group->count, memory_order_relaxed);
}

/* ── workers ── */

static struct mk_ws_worker *make_worker(struct mk_ws_group *group)
{
    unsigned n = atomic_load(&group->n);
    struct mk_ws_worker *w = n < MK__WS_WORKERS_MAX ? mk_account_zalloc(NULL, sizeof(*w)) : NULL;
    if (!w)
        return NULL;
    w->group = group;
    w->end = &w->first;
    w->event.fd = -1;
    mk_list_init(&w->all);
    atomic_store(&group->workers[n], w);
    atomic_store(&group->n, n + 1);
    return w;
}

/* Returns the part of this thread, or one that no thread uses now. */
static struct mk_ws_worker *find_worker(struct mk_ws_group *group, const struct mk_loop *loop)
{
    struct mk_ws_worker *unused = NULL;
    for (unsigned i = 0; i < group->n; i++) {
        struct mk_ws_worker *w = group->workers[i];
        if (w->refs && w->loop == loop)
            return w;
        if (!w->refs)
            unused = w;
    }
    return unused ? unused : make_worker(group);
}

/* Begins the use of a part in this thread. Returns 0 or -errno. */
static int open_worker(struct mk_ws_worker *w, struct mk_loop *loop, struct mk_account *account)
{
    if (w->event.fd < 0)
        w->event.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (w->event.fd < 0)
        return -errno;
    mk__ws_drop_deliveries(w); /* those for the thread before */
    w->loop = loop;
    w->account = account;
    w->thread = pthread_self();
    w->event.ready = mk__ws_deliver;
    mk_task_init(&w->task, mk__ws_deliver_more);
    int err = mk_event_add(loop, &w->event, EPOLLIN | EPOLLET);
    if (err == 0)
        atomic_store(&w->is_open, true);
    return err;
}

struct mk_ws_worker *mk_ws_worker_get(struct mk_ws_group *group, struct mk_loop *loop, struct mk_account *account,
                                      mk_ws_call_fn call, void *call_ctx)
{
    pthread_mutex_lock(&group->lock);
    struct mk_ws_worker *w = find_worker(group, loop);
    if (w && !w->refs && open_worker(w, loop, account) < 0)
        w = NULL;
    if (w) {
        w->call = call;
        w->call_ctx = call_ctx;
        w->refs++;
    }
    pthread_mutex_unlock(&group->lock);
    return w;
}

struct mk_ws_group *mk_ws_get_group(const struct mk_ws_worker *worker)
{
    return worker->group;
}

static void free_buffers(struct mk_ws_worker *w)
{
    mk_account_free(w->account, w->input, MK__WS_INPUT_BYTES + 1);
    mk_account_free(w->account, w->output, MK__WS_OUTPUT_BYTES);
    w->input = w->output = NULL;
    mk__ws_codecs_release(&w->codecs, w->account);
    mk_hash_release(&w->channels, w->account);
}

static void close_worker(struct mk_ws_worker *w)
{
    assert(mk_list_empty(&w->all) && !w->channels.n);
    atomic_store(&w->is_open, false);
    if (pthread_equal(w->thread, pthread_self())) {
        mk_event_del(w->loop, &w->event);
        mk_task_cancel(&w->task);
    } else { /* the thread has ended, and its loop and account with it */
        mk__ws_codecs_forget_account(&w->codecs);
        w->account = NULL;
    }
    mk__ws_drop_deliveries(w);
    free_buffers(w);
}

void mk_ws_worker_put(struct mk_ws_worker *worker)
{
    struct mk_ws_group *group = worker->group;
    pthread_mutex_lock(&group->lock);
    assert(worker->refs);
    if (--worker->refs == 0)
        close_worker(worker);
    pthread_mutex_unlock(&group->lock);
}

/* ── channels ── */

struct mk__ws_channel *mk__ws_worker_find_channel(struct mk_ws_worker *w, int number)
{
    struct mk_hash_node *n;
    MK_HASH_EACH(&w->channels, mk_hash_number((uint32_t)number), n) {
        struct mk__ws_channel *channel = MK_CONTAINER_OF(n, struct mk__ws_channel, node);
        if (channel->number == number)
            return channel;
    }
    return NULL;
}

static struct mk__ws_channel *get_channel(struct mk_ws_worker *w, int number)
{
    struct mk__ws_channel *channel = mk__ws_worker_find_channel(w, number);
    if (channel || !(channel = mk_account_alloc(w->account, sizeof(*channel))))
        return channel;
    *channel = (struct mk__ws_channel){.number = number};
    mk_list_init(&channel->members);
    if (mk_hash_insert(&w->channels, w->account, &channel->node, mk_hash_number((uint32_t)number)) == 0)
        return channel;
    mk_account_free(w->account, channel, sizeof(*channel));
    return NULL;
}

static void free_if_empty(struct mk_ws_worker *w, struct mk__ws_channel *channel)
{
    if (channel->pins || !mk_list_empty(&channel->members))
        return;
    mk_hash_remove(&w->channels, &channel->node);
    mk_account_free(w->account, channel, sizeof(*channel));
}

void mk__ws_channel_unpin(struct mk_ws_worker *w, struct mk__ws_channel *channel)
{
    assert(channel->pins);
    channel->pins--;
    free_if_empty(w, channel);
}

/* ── WebSockets ── */

static void leave_channel(struct mk_ws *ws)
{
    struct mk_ws_worker *w = ws->worker;
    struct mk__ws_channel *channel = ws->channel;
    if (!channel)
        return;
    if (w->cursor == &ws->member)
        w->cursor = ws->member.next;
    mk_list_del(&ws->member);
    ws->channel = NULL;
    free_if_empty(w, channel);
}

int mk_ws_set_channel(struct mk_ws *ws, int channel)
{
    if (channel == mk_ws_channel(ws) || ws->state == MK__WS_ENDED)
        return 0;
    struct mk__ws_channel *to = channel == MK_WS_ALL_CHANNELS ? NULL : get_channel(ws->worker, channel);
    if (channel != MK_WS_ALL_CHANNELS && !to)
        return -ENOMEM;
    leave_channel(ws);
    if (to)
        mk_list_add(to->members.next, &ws->member); /* first: one that comes back gets no delivery under way twice */
    ws->channel = to;
    return 0;
}

int mk_ws_channel(const struct mk_ws *ws)
{
    return ws->channel ? ws->channel->number : MK_WS_ALL_CHANNELS;
}

static int make_buffers(struct mk_ws_worker *w)
{
    if (w->input)
        return 0;
    char *input = mk_account_alloc(w->account, MK__WS_INPUT_BYTES + 1); /* after the input, for a NUL */
    char *output = mk_account_alloc(w->account, MK__WS_OUTPUT_BYTES);
    if (input && output) {
        w->input = input;
        w->output = output;
        return 0;
    }
    mk_account_free(w->account, input, MK__WS_INPUT_BYTES + 1);
    mk_account_free(w->account, output, MK__WS_OUTPUT_BYTES);
    return -ENOMEM;
}

void mk__ws_worker_count_deflate(struct mk_ws *ws)
{
    if (ws->deflate)
        atomic_fetch_add_explicit(&ws->worker->group->deflate_count, 1, memory_order_relaxed);
}

int mk__ws_worker_add(struct mk_ws_worker *w, struct mk_ws *ws, int channel)
{
    mk_list_init(&ws->node);
    mk_list_init(&ws->member);
    if (make_buffers(w) < 0 || mk_ws_set_channel(ws, channel) < 0)
        return -ENOMEM;
    ws->id = ++w->last_id;
    mk_list_add(&w->all, &ws->node);
    w->count++;
    atomic_fetch_add_explicit(&w->group->count, 1, memory_order_relaxed);
    mk__ws_worker_count_deflate(ws);
    return 0;
}

void mk__ws_worker_remove(struct mk_ws *ws)
{
    struct mk_ws_worker *w = ws->worker;
    leave_channel(ws);
    if (w->cursor == &ws->node)
        w->cursor = ws->node.next;
    mk_list_del(&ws->node);
    if (w->output_owner == ws) {
        w->output_owner = NULL;
        w->output_len = 0;
    }
    w->count--;
    atomic_fetch_sub_explicit(&w->group->count, 1, memory_order_relaxed);
    if (ws->deflate)
        atomic_fetch_sub_explicit(&w->group->deflate_count, 1, memory_order_relaxed);
}
