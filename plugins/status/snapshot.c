// SPDX-License-Identifier: Apache-2.0
/*
 * Asks the workers and runs the job. The snapshot is owned by the worker that began it; each question
 * holds it, too, because a worker may answer long after the snapshot was taken without it.
 */
#include "state.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

static void open_thread(struct mk_thread *base, struct mk_worker *worker)
{
    thread_of(base)->account = mk_worker_account(worker);
}

static void release_thread(struct mk_thread *base)
{
    mk_account_free(NULL, thread_of(base)->sketch, sizeof(struct sketch));
}

const struct mk_thread_type thread_type = {.bytes = sizeof(struct thread),
                                           .open = open_thread,
                                           .release = release_thread};

int thread_count_paths(struct thread *t)
{
    if (!t->sketch && (t->sketch = mk_account_alloc(NULL, sizeof(*t->sketch))))
        memset(t->sketch, 0, sizeof(*t->sketch));
    return t->sketch ? 0 : -ENOMEM;
}

/* Returns how many connections are open in the thread, in which the caller runs. */
static uint32_t count_connections(const struct thread *t)
{
    const struct mk_list *newest = t->base.workers.prev;
    return mk_worker_connections(MK_CONTAINER_OF((uintptr_t)newest, struct mk_thread_worker, node)->worker);
}

enum snapshot_state { SNAPSHOT_ASKING, SNAPSHOT_RENDERING, SNAPSHOT_OVER };

struct question {
    struct mk_thread_call call;
    struct snapshot *snapshot;
    struct snapshot_worker answer;
    bool answered;
};

struct snapshot {
    struct mk_job job;
    struct mk_timer timer;
    struct mk_thread *thread; /* held */
    struct mk_worker *worker; /* held until it is over */
    const struct snapshot_callbacks *callbacks;
    void *ctx;
    struct mk_buf text;
    _Atomic unsigned refs; /* of its owner and its questions */
    enum snapshot_state state;
    bool cancelled;
    bool paths;
    unsigned n, answers, size;
    struct snapshot_worker workers[];
};

static size_t count_bytes(unsigned size)
{
    return sizeof(struct snapshot) + size * sizeof(struct snapshot_worker);
}

static void release_snapshot(struct snapshot *snapshot)
{
    if (atomic_fetch_sub(&snapshot->refs, 1) > 1)
        return;
    for (unsigned i = 0; i < snapshot->n; i++)
        mk_account_free(NULL, snapshot->workers[i].sketch, sizeof(struct sketch));
    mk_thread_put(snapshot->thread);
    mk_account_free(NULL, snapshot, count_bytes(snapshot->size));
}

/* The worker is not needed any more. */
static void finish_snapshot(struct snapshot *snapshot)
{
    assert(snapshot->state != SNAPSHOT_OVER);
    snapshot->state = SNAPSHOT_OVER;
    mk_buf_release(&snapshot->text);
    snapshot->callbacks->release(snapshot->ctx);
    struct mk_worker *worker = snapshot->worker;
    release_snapshot(snapshot);
    mk_worker_put(worker);
}

/* ── rendering ── */

static void render_page(struct mk_job *job)
{
    struct snapshot *snapshot = MK_CONTAINER_OF(job, struct snapshot, job);
    snapshot->callbacks->render(snapshot->workers, snapshot->n, &snapshot->text, snapshot->ctx);
}

static void pass_text(struct snapshot *snapshot)
{
    struct mk_buf text = snapshot->text;
    mk_buf_init(&snapshot->text, 0);
    snapshot->callbacks->done(text, snapshot->ctx);
}

static void on_rendered(struct mk_job *job)
{
    struct snapshot *snapshot = MK_CONTAINER_OF(job, struct snapshot, job);
    if (!snapshot->cancelled)
        pass_text(snapshot);
    finish_snapshot(snapshot);
}

static void start_rendering(struct snapshot *snapshot)
{
    mk_timer_cancel(&snapshot->timer);
    snapshot->state = SNAPSHOT_RENDERING;
    snapshot->job.work = render_page;
    snapshot->job.done = on_rendered;
    int err = mk_job_submit(snapshot->thread->loop, &snapshot->job);
    if (err == 0)
        return;
    snapshot->text.err = err;
    pass_text(snapshot);
    finish_snapshot(snapshot);
}

static void on_timeout(struct mk_timer *timer)
{
    start_rendering(MK_CONTAINER_OF(timer, struct snapshot, timer));
}

/* ── questions ── */

/* Takes the answer home, and the copy of the sketch with it. */
static void keep_answer(struct snapshot *snapshot, struct question *q)
{
    for (unsigned i = 0; i < snapshot->n; i++) {
        struct snapshot_worker *w = &snapshot->workers[i];
        if (w->index != q->answer.index || w->up)
            continue;
        *w = q->answer;
        q->answer.sketch = NULL;
        snapshot->answers++;
        return;
    }
}

/* The answer has arrived in the thread that has asked; `thread` NULL: that thread has ended. */
static void take_answer(struct mk_thread_call *call, struct mk_thread *thread)
{
    struct question *q = MK_CONTAINER_OF(call, struct question, call);
    struct snapshot *snapshot = q->snapshot;
    bool wanted = thread && snapshot->state == SNAPSHOT_ASKING;
    if (wanted && q->answered)
        keep_answer(snapshot, q);
    mk_account_free(NULL, q->answer.sketch, sizeof(struct sketch));
    mk_account_free(NULL, q, sizeof(*q));
    if (wanted && snapshot->answers == snapshot->n)
        start_rendering(snapshot);
    release_snapshot(snapshot);
}

static struct sketch *copy_sketch(const struct sketch *sketch)
{
    struct sketch *copy = sketch ? mk_account_alloc(NULL, sizeof(*copy)) : NULL;
    if (copy)
        memcpy(copy, sketch, sizeof(*copy));
    return copy;
}

/* In the thread that was asked; `thread` NULL: it has ended. */
static void answer_worker(struct mk_thread_call *call, struct mk_thread *base)
{
    struct question *q = MK_CONTAINER_OF(call, struct question, call);
    struct thread *thread = base ? thread_of(base) : NULL;
    if (thread) {
        thread->waiting--;
        q->answer = (struct snapshot_worker){
            .index = base->index,
            .up = true,
            .memory_bytes = thread->account->bytes,
            .memory_bytes_max = thread->account->bytes_max,
            .loop_turns = mk_loop_turns(base->loop),
            .requests = thread->requests,
            .connections = count_connections(thread),
            .sketch = q->snapshot->paths ? copy_sketch(thread->sketch) : NULL,
        };
        q->answered = true;
    }
    q->call.fn = take_answer;
    if (mk_thread_call(q->snapshot->thread, &q->call) < 0)
        take_answer(&q->call, NULL);
}

static void ask_workers(struct snapshot *snapshot, struct mk_thread *base)
{
    struct thread *thread = thread_of(base);
    for (unsigned i = 0; i < snapshot->n; i++)
        if (snapshot->workers[i].index == base->index)
            return; /* a newer thread has its number, or another server of the process */
    snapshot->workers[snapshot->n++] = (struct snapshot_worker){.index = base->index};
    struct question *q = thread->waiting < SNAPSHOT_WAITING_MAX ? mk_account_alloc(NULL, sizeof(*q)) : NULL;
    if (!q)
        return;
    *q = (struct question){.call.fn = answer_worker, .snapshot = snapshot};
    snapshot->refs++;
    thread->waiting++;
    if (mk_thread_call(base, &q->call) < 0)
        take_answer(&q->call, NULL); /* it has ended */
}

/* ── life ── */

static struct snapshot *new_snapshot(struct mk_thread *thread, struct mk_worker *worker, unsigned size)
{
    struct snapshot *snapshot = mk_account_zalloc(NULL, count_bytes(size));
    if (!snapshot)
        return NULL;
    snapshot->thread = mk_thread_get(thread);
    snapshot->worker = mk_worker_get(worker);
    snapshot->refs = 1;
    snapshot->size = size;
    mk_buf_init(&snapshot->text, SNAPSHOT_TEXT_BYTES_MAX);
    mk_timer_init(&snapshot->timer, on_timeout);
    return snapshot;
}

/* Asks the threads, the newest of those with one index first. */
static void ask_all(struct snapshot *snapshot, struct mk_thread **threads)
{
    unsigned n = mk_threads_list(snapshot->thread->threads, threads, snapshot->size, NULL, NULL);
    n = n < snapshot->size ? n : snapshot->size; /* some may have begun since they were counted */
    while (n > 0) {
        ask_workers(snapshot, threads[--n]);
        mk_thread_put(threads[n]);
    }
}

struct snapshot *snapshot_start(struct mk_thread *thread, struct mk_worker *worker, bool paths,
                                const struct snapshot_callbacks *callbacks, void *ctx)
{
    unsigned size = mk_threads_list(thread->threads, NULL, 0, NULL, NULL);
    struct mk_thread **threads = mk_account_alloc(NULL, size * sizeof(struct mk_thread *));
    struct snapshot *snapshot = threads ? new_snapshot(thread, worker, size) : NULL;
    if (snapshot) {
        snapshot->callbacks = callbacks;
        snapshot->ctx = ctx;
        snapshot->paths = paths;
        ask_all(snapshot, threads);
        mk_timer_arm(thread->loop, &snapshot->timer, SNAPSHOT_WAIT_MS);
    }
    mk_account_free(NULL, threads, size * sizeof(struct mk_thread *));
    return snapshot;
}

void snapshot_cancel(struct snapshot *snapshot)
{
    assert(snapshot->state != SNAPSHOT_OVER);
    snapshot->cancelled = true;
    if (snapshot->state == SNAPSHOT_RENDERING)
        return;
    mk_timer_cancel(&snapshot->timer);
    finish_snapshot(snapshot);
}
