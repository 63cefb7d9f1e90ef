// SPDX-License-Identifier: Apache-2.0
/*
 * The command `traffic` of the shell: the document of the status page in short, a row for all hosts and one for each.
 */
#include "report.h"
#include "state.h"

#include <monkey/kit/json.h>

static int add_counter(const struct mk_counter_value *v, void *ctx)
{
    if (!v->plugin.len)
        totals_add(ctx, v);
    return 0;
}

static void read_totals(struct totals *ret)
{
    *ret = (struct totals){0};
    mk_counters_each(add_counter, ret);
    totals_sort(ret);
}

static void show_host(struct mk_command_call *call, struct mk_str name, const struct totals_host *h)
{
    struct mk_buf *row = mk_command_begin_row(call);
    mk_json_str(row, "host", name);
    mk_json_number(row, "requests", (int64_t)h->requests);
    for (unsigned i = 0; i < TOTALS_CLASSES; i++)
        mk_json_number(row, totals_class_names[i], (int64_t)h->classes[i]);
    mk_json_number(row, "aborted", (int64_t)h->responses_aborted);
    mk_json_number(row, "received_bytes", (int64_t)h->received_body_bytes);
    mk_json_number(row, "sent_bytes", (int64_t)h->sent_body_bytes);
    mk_json_number(row, "p50_us", (int64_t)mk_counter_quantile_us(h->buckets, 0.5));
    mk_json_number(row, "p99_us", (int64_t)mk_counter_quantile_us(h->buckets, 0.99));
    mk_command_end_row(call);
}

static struct mk_str get_name(const struct totals_host *h)
{
    return mk_str(h->name, h->name_len);
}

static int show_one(struct mk_command_call *call, const struct totals *t)
{
    for (unsigned i = 0; i < t->n_hosts; i++) {
        if (!mk_str_ieq(get_name(&t->hosts[i]), call->args[0]))
            continue;
        show_host(call, get_name(&t->hosts[i]), &t->hosts[i]);
        return 0;
    }
    return mk_command_refuse(call, "no requests of a host %.*s were counted; traffic lists those that have some",
                             (int)(call->args[0].len < 255 ? call->args[0].len : 255), call->args[0].p);
}

/* All rows in one call, since another one would read and sort the counters anew: there are at most a thousand. */
static int show_all(struct mk_command_call *call, const struct totals *t)
{
    show_host(call, MK_STR("(all)"), &t->all);
    for (unsigned i = 0; i < t->n_hosts; i++)
        show_host(call, get_name(&t->hosts[i]), &t->hosts[i]);
    if (t->omits_hosts)
        mk_command_warn(call, "there are more than %d hosts", TOTALS_HOSTS_MAX);
    return 0;
}

static int show_traffic(struct mk_command_call *call)
{
    struct totals t;
    read_totals(&t);
    int err = call->n_args ? show_one(call, &t) : show_all(call, &t);
    totals_release(&t);
    return err;
}

static void complete_host(struct mk_command_call *call)
{
    struct totals t;
    read_totals(&t);
    for (unsigned i = 0; i < t.n_hosts; i++)
        mk_command_offer(call, get_name(&t.hosts[i]));
    totals_release(&t);
}

const struct mk_command status_commands[] = {
    {.name = "traffic",
     .arguments = "[HOST]",
     .help = "requests, classes of responses, bytes of bodies and times: of all hosts, and of each",
     .args_max = 1,
     .run = show_traffic,
     .complete = complete_host},
    {0},
};
