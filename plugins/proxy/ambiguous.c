// SPDX-License-Identifier: Apache-2.0
/*
 * The counter and the line of ambiguous.h.
 */
#include "ambiguous.h"

#include <monkey/base/log_limit.h>
#include <monkey/counters.h>
#include <monkey/plugin.h>

enum { SHOWN_BYTES_MAX = 64 };

static const struct mk_counter *counter;
static _Thread_local struct mk_log_limit_row limit;

void ambiguous_open(void)
{
    static const struct mk_counter_info info = {"proxy", "ambiguous_headers",
                                                "headers of clients that a backend may take for the proxy's",
                                                MK_COUNTER_SUM};
    static const struct mk_counter_row row = {.info = &info};
    mk_counters_open(&row, 1, &counter);
}

void ambiguous_report(struct mk_request *req, struct mk_str name)
{
    unsigned missing;
    mk_counter_add(counter, mk_request_worker(req), 1);
    if (!mk_log_limit_is_due(&limit, 1, 0, mk_loop_now_ms(mk_request_loop(req)), &missing))
        return;
    struct mk_str shown = mk_str(name.p, name.len < SHOWN_BYTES_MAX ? name.len : SHOWN_BYTES_MAX);
    mk_request_log(req, MK_LOG_WARN,
                   "proxy: the header %.*s is not passed on: a backend that reads _ as - would take it for another; %u "
                   "before were not written",
                   MK_STR_ARG(shown), missing);
}
