// SPDX-License-Identifier: Apache-2.0
/*
 * Asks the workers and runs the job (look.h). The look is owned by the worker that began it; each question holds it,
 * too, because a worker may answer long after the look has gone on without it.
 */
#include "look.h"

#include <assert.h>
#include <stdatomic.h>

enum look_state { LOOK_ASKING, LOOK_RENDERING, LOOK_OVER };

struct question {
    struct mk_thread_call call;
    struct look *look;
    struct look_worker answer;
    bool answered;
};

struct look {
    struct mk_job job;
    struct mk_timer timer;
    struct mk_thread *thread; /* held */
    struct mk_worker *worker; /* held until it is over */
    const struct look_callbacks *callbacks;
    void *ctx;
    struct mk_buf text;
    _Atomic unsigned refs; /* of its owner and its questions */
    enum look_state state;
    bool cancelled;
    bool paths;
    unsigned n, answers, size;
    struct look_worker workers[];
};

static size_t count_bytes(unsigned size)
{
    return sizeof(struct look) + size * sizeof(struct look_worker);
}

static void release_look(struct look *look)
{
    if (atomic_fetch_sub(&look->refs, 1) > 1)
        return;
    for (unsigned i = 0; i < look->n; i++)
        mk_account_free(NULL, look->workers[i].sketch, sizeof(struct sketch));
    mk_thread_put(look->thread);
    mk_account_free(NULL, look, count_bytes(look->size));
}

/* The worker is not needed any more. */
static void finish_look(struct look *look)
{
    assert(look->state != LOOK_OVER);
    look->state = LOOK_OVER;
    mk_buf_release(&look->text);
    look->callbacks->release(look->ctx);
    struct mk_worker *worker = look->worker;
    release_look(look);
    mk_worker_put(worker);
}

/* ── rendering ── */

static void render_page(struct mk_job *job)
{
    struct look *look = MK_CONTAINER_OF(job, struct look, job);
    look->callbacks->render(look->workers, look->n, &look->text, look->ctx);
}

static void pass_text(struct look *look)
{
    struct mk_buf text = look->text;
    mk_buf_init(&look->text, 0);
    look->callbacks->done(text, look->ctx);
}

static void on_rendered(struct mk_job *job)
{
    struct look *look = MK_CONTAINER_OF(job, struct look, job);
    if (!look->cancelled)
        pass_text(look);
    finish_look(look);
}

static void start_rendering(struct look *look)
{
    mk_timer_cancel(&look->timer);
    look->state = LOOK_RENDERING;
    look->job.work = render_page;
    look->job.done = on_rendered;
    int err = mk_job_submit(look->thread->loop, &look->job);
    if (err == 0)
        return;
    look->text.err = err;
    pass_text(look);
    finish_look(look);
}

static void on_timeout(struct mk_timer *timer)
{
    start_rendering(MK_CONTAINER_OF(timer, struct look, timer));
}

/* ── questions ── */

/* Takes the answer home, and the copy of the sketch with it. */
static void keep_answer(struct look *look, struct question *q)
{
    for (unsigned i = 0; i < look->n; i++) {
        struct look_worker *w = &look->workers[i];
        if (w->index != q->answer.index || w->up)
            continue;
        *w = q->answer;
        q->answer.sketch = NULL;
        look->answers++;
        return;
    }
}

/* The answer has arrived in the thread that has asked; `thread` NULL: that thread has ended. */
static void take_answer(struct mk_thread_call *call, struct mk_thread *thread)
{
    struct question *q = MK_CONTAINER_OF(call, struct question, call);
    struct look *look = q->look;
    bool wanted = thread && look->state == LOOK_ASKING;
    if (wanted && q->answered)
        keep_answer(look, q);
    mk_account_free(NULL, q->answer.sketch, sizeof(struct sketch));
    mk_account_free(NULL, q, sizeof(*q));
    if (wanted && look->answers == look->n)
        start_rendering(look);
    release_look(look);
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
        q->answer = (struct look_worker){
            .index = base->index,
            .up = true,
            .memory_bytes = thread->account->bytes,
            .memory_bytes_max = thread->account->bytes_max,
            .loop_turns = mk_loop_turns(base->loop),
            .requests = thread->requests,
            .connections = thread_count_connections(thread),
            .sketch = q->look->paths ? copy_sketch(thread->sketch) : NULL,
        };
        q->answered = true;
    }
    q->call.fn = take_answer;
    if (mk_thread_call(q->look->thread, &q->call) < 0)
        take_answer(&q->call, NULL);
}

static void ask_workers(struct look *look, struct mk_thread *base)
{
    struct thread *thread = thread_of(base);
    for (unsigned i = 0; i < look->n; i++)
        if (look->workers[i].index == base->index)
            return; /* a newer thread has its number, or another server of the process */
    look->workers[look->n++] = (struct look_worker){.index = base->index};
    struct question *q = thread->waiting < LOOK_WAITING_MAX ? mk_account_alloc(NULL, sizeof(*q)) : NULL;
    if (!q)
        return;
    *q = (struct question){.call.fn = answer_worker, .look = look};
    look->refs++;
    thread->waiting++;
    if (mk_thread_call(base, &q->call) < 0)
        take_answer(&q->call, NULL); /* it has ended */
}

/* ── life ── */

static struct look *new_look(struct mk_thread *thread, struct mk_worker *worker, unsigned size)
{
    struct look *look = mk_account_alloc(NULL, count_bytes(size));
    if (!look)
        return NULL;
    memset(look, 0, count_bytes(size));
    look->thread = mk_thread_get(thread);
    look->worker = mk_worker_get(worker);
    look->refs = 1;
    look->size = size;
    mk_buf_init(&look->text, LOOK_TEXT_BYTES_MAX);
    mk_timer_init(&look->timer, on_timeout);
    return look;
}

/* Asks the threads, the newest of those with one index first. */
static void ask_all(struct look *look, struct mk_thread **threads)
{
    unsigned n = mk_threads_list(look->thread->threads, threads, look->size, NULL, NULL);
    n = n < look->size ? n : look->size; /* some may have begun since they were counted */
    while (n > 0) {
        ask_workers(look, threads[--n]);
        mk_thread_put(threads[n]);
    }
}

struct look *look_start(struct mk_thread *thread, struct mk_worker *worker, bool paths,
                        const struct look_callbacks *callbacks, void *ctx)
{
    unsigned size = mk_threads_list(thread->threads, NULL, 0, NULL, NULL);
    struct mk_thread **threads = mk_account_alloc(NULL, size * sizeof(struct mk_thread *));
    struct look *look = threads ? new_look(thread, worker, size) : NULL;
    if (look) {
        look->callbacks = callbacks;
        look->ctx = ctx;
        look->paths = paths;
        ask_all(look, threads);
        mk_timer_arm(thread->loop, &look->timer, LOOK_WAIT_MS);
    }
    mk_account_free(NULL, threads, size * sizeof(struct mk_thread *));
    return look;
}

void look_cancel(struct look *look)
{
    assert(look->state != LOOK_OVER);
    look->cancelled = true;
    if (look->state == LOOK_RENDERING)
        return;
    mk_timer_cancel(&look->timer);
    finish_look(look);
}
