// SPDX-License-Identifier: Apache-2.0
/*
 * What `top` shows (top_view.h), and how it is written elsewhere than on a screen.
 */
#include "top_view.h"

#include "cell.h"

#include <monkey/json.h>

#include <math.h>

void top_view_compare(struct top_view *v)
{
    double seconds = v->now->at - v->before->at;
    sample_compare(&v->before->total, &v->now->total, seconds, &v->r);
    if (seconds <= 0)
        return;
    if (v->n_history == TOP_HISTORY_MAX) {
        memmove(v->requests, v->requests + 1, sizeof(v->requests) - sizeof(v->requests[0]));
        memmove(v->sent, v->sent + 1, sizeof(v->sent) - sizeof(v->sent[0]));
        v->n_history--;
    }
    v->requests[v->n_history] = v->r.requests;
    v->sent[v->n_history++] = v->r.sent;
}

void top_view_add_line(const struct top_view *v, struct mk_buf *out)
{
    mk_buf_addf(out, "%.0f requests/s, %lld connections, %lld requests under way, ", v->r.requests, v->now->connections,
                v->now->under_way);
    mk_buf_addf(out, "sent %s, received %s, ", cell_bytes(v->r.sent, "/s").text, cell_bytes(v->r.received, "/s").text);
    if (v->r.timed)
        mk_buf_addf(out, "p50 %s, p99 %s, ", cell_us(v->r.p50_us).text, cell_us(v->r.p99_us).text);
    mk_buf_addf(out, "memory %s, ", cell_bytes((double)v->now->memory_bytes, "").text);
    text_add_safe(out, v->now->state);
    mk_buf_addc(out, '\n');
}

void top_view_add_json(const struct top_view *v, struct mk_buf *out)
{
    mk_json_open(out, NULL, '{');
    mk_json_real(out, "requests_per_s", round(10 * v->r.requests) / 10);
    mk_json_real(out, "sent_bytes_per_s", round(v->r.sent));
    mk_json_real(out, "received_bytes_per_s", round(v->r.received));
    if (v->r.timed) {
        mk_json_number(out, "p50_us", (int64_t)v->r.p50_us);
        mk_json_number(out, "p99_us", (int64_t)v->r.p99_us);
    }
    mk_json_number(out, "connections", v->now->connections);
    mk_json_number(out, "requests_under_way", v->now->under_way);
    mk_json_number(out, "memory_bytes", v->now->memory_bytes);
    mk_json_close_line(out);
}
