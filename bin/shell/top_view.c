// SPDX-License-Identifier: Apache-2.0
/*
 * What `top` shows (top_view.h), and how it is written elsewhere than on a screen.
 */
#include "top_view.h"

#include "cell.h"

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
    mk_buf_addf(out, "{\"requests_per_s\":%.1f,\"sent_bytes_per_s\":%.0f,\"received_bytes_per_s\":%.0f,", v->r.requests,
                v->r.sent, v->r.received);
    if (v->r.timed)
        mk_buf_addf(out, "\"p50_us\":%llu,\"p99_us\":%llu,", (unsigned long long)v->r.p50_us,
                    (unsigned long long)v->r.p99_us);
    mk_buf_addf(out, "\"connections\":%lld,\"requests_under_way\":%lld,\"memory_bytes\":%lld}\n", v->now->connections,
                v->now->under_way, v->now->memory_bytes);
}
