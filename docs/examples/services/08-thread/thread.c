// SPDX-License-Identifier: Apache-2.0
/*
 * thread: work that takes long is done by a thread of the service, and the worker serves others meanwhile.
 * GET /thread/primes/100000 counts the prime numbers below 100,000.
 *
 *     worker: count_primes ─► ticket ─► queue        thread: takes the next one, counts, deliver() ─► worker: answer
 */
#include <duda/duda.h>

#include <pthread.h>
#include <stdlib.h>

DUDA_REGISTER("Duda I/O examples", "an answer from a thread");

enum { LIMIT_MAX = 10000000 };

struct work {
    struct work *next;
    struct duda_ticket ticket;
    long below, primes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static struct work *first, **end = &first;

static bool is_prime(long n)
{
    for (long i = 2; i * i <= n; i++) {
        if (n % i == 0)
            return false;
    }
    return n > 1;
}

/* Runs in the worker of the request. `dr` is NULL if the client has left meanwhile. */
static void answer(duda_request_t *dr, void *data)
{
    struct work *work = data;
    if (dr) {
        response->printf(dr, "%ld\n", work->primes);
        response->end(dr, NULL);
    }
    free(work);
}

static struct work *take_work(void)
{
    pthread_mutex_lock(&lock);
    while (!first && !worker->stopping()) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&news, &lock, &until);
    }
    struct work *work = first;
    if (work) {
        first = work->next;
        end = first ? end : &first;
    }
    pthread_mutex_unlock(&lock);
    return work;
}

static void *count(void *arg)
{
    struct work *work;
    while ((work = take_work()) && !worker->stopping()) {
        for (long n = 0; n < work->below; n++)
            work->primes += is_prime(n);
        if (response->deliver(&work->ticket, answer, work) < 0)
            free(work); /* the worker has ended */
    }
    free(work);
    return arg;
}

static void count_primes(duda_request_t *dr)
{
    struct work *work;
    long below;
    if (param->get_number(dr, "below", &below) < 0 || below < 0 || below > LIMIT_MAX) {
        response->error(dr, 400);
        return;
    }
    work = calloc(1, sizeof(*work));
    if (!work || response->ticket(dr, &work->ticket) < 0) {
        free(work);
        response->error(dr, 503);
        return;
    }
    work->below = below;
    pthread_mutex_lock(&lock);
    *end = work;
    end = &work->next;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
}

int duda_main(void)
{
    return router->get("/primes/:below", count_primes) && worker->spawn(count, NULL) == 0 ? 0 : -1;
}
