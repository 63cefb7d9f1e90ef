// SPDX-License-Identifier: Apache-2.0
/*
 * Counts and notes what happens to a request (report.h).
 */
#include "report.h"

#include "counters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { NUMBER_BYTES = 24, TRIES_BYTES = 1024 };

static void count(const struct report *r, enum tally_counter counter, int64_t n)
{
    tally_add(r->tally, counter, mk_request_worker(r->req), n);
}

static void note_number(const struct report *r, struct mk_str name, uint64_t number)
{
    char text[NUMBER_BYTES];
    int len = snprintf(text, sizeof(text), "%" PRIu64, number);
    mk_request_note(r->req, name, mk_str(text, (size_t)len)); /* without memory the log does without it */
}

/* Notes the time since the exchange began, and returns it. */
static uint64_t note_time(const struct report *r, struct mk_str name)
{
    uint64_t us = mk_loop_now_us(mk_request_loop(r->req)) - r->began_us;
    note_number(r, name, us);
    return us;
}

void report_begin(struct report *r, struct mk_request *req, const struct tally *tally, bool is_group)
{
    *r = (struct report){.req = req, .tally = tally};
    counters_add(req, COUNT_REQUESTS);
    if (!is_group)
        count(r, TALLY_REQUESTS, 1);
    if (!mk_request_began_us(req))
        return;
    r->began_us = mk_loop_now_us(mk_request_loop(req));
    mk_request_note(req, MK_STR("upstream"), r->tally->backend);
    note_number(r, MK_STR("retries"), 0);
}

void report_server(struct report *r, const struct tally *tally, struct mk_str address, enum mk_upstream_loss loss)
{
    char storage[TRIES_BYTES];
    struct mk_buf names;
    bool is_first = r->servers++ == 0;
    if (!is_first)
        report_retry(r, loss);
    r->tally = tally;
    count(r, TALLY_REQUESTS, 1);
    if (!r->began_us)
        return;
    mk_buf_init_fixed(&names, storage, sizeof(storage));
    if (!is_first) {
        mk_buf_adds(&names, mk_request_get_note(r->req, MK_STR("upstream")));
        mk_buf_adds(&names, MK_STR(", "));
    }
    mk_buf_adds(&names, address);
    mk_request_note(r->req, MK_STR("upstream"), mk_buf_str(&names));
}

void report_opened(const struct report *r)
{
    counters_add(r->req, COUNT_CONNECTIONS);
}

void report_ready(const struct report *r, uint64_t connect_us)
{
    mk_counter_observe(r->tally->counters[TALLY_CONNECT_DURATION], mk_request_worker(r->req), connect_us);
}

void report_connected(const struct report *r)
{
    if (r->began_us)
        note_time(r, MK_STR("upstream_connect_us"));
}

void report_retry(struct report *r, enum mk_upstream_loss reason)
{
    r->retries++;
    counters_add(r->req, COUNT_RETRIES);
    count(r, TALLY_RETRIES + reason, 1);
    if (r->began_us)
        note_number(r, MK_STR("retries"), r->retries);
}

void report_head(const struct report *r, unsigned status)
{
    count(r, TALLY_RESPONSES + (status > 599 ? 500 : status) / 100 - 1, 1);
    if (r->began_us)
        mk_counter_observe(r->tally->counters[TALLY_HEAD_DURATION], mk_request_worker(r->req),
                           note_time(r, MK_STR("upstream_head_us")));
}

void report_end(const struct report *r)
{
    if (r->began_us)
        mk_counter_observe(r->tally->counters[TALLY_DURATION], mk_request_worker(r->req),
                           note_time(r, MK_STR("upstream_us")));
}

void report_failure(const struct report *r, int err)
{
    counters_add(r->req, err == -ETIMEDOUT ? COUNT_TIMEOUTS : COUNT_FAILURES);
    count(r, err == -ETIMEDOUT ? TALLY_TIMEOUTS : TALLY_FAILURES, 1);
    if (r->began_us)
        note_time(r, MK_STR("upstream_us"));
}
