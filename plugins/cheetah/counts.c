// SPDX-License-Identifier: Apache-2.0
/*
 * The command `counters`: what the server and its plugins have counted.
 */
#include "commands.h"

#include <monkey/counters.h>
#include <monkey/json.h>

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>

enum { PATTERN_BYTES = 256, NAME_BYTES = 1024 };

struct counts_query {
    struct client *client;
    char pattern[PATTERN_BYTES];
};

static void make_name(const struct mk_counter_value *v, char *to, size_t size)
{
    snprintf(to, size, "%.*s%s%.*s", MK_STR_ARG(v->plugin), v->plugin.len ? "_" : "", MK_STR_ARG(v->name));
}

/* Adds the buckets that are not empty, as "END:NUMBER END:NUMBER ..." with the microseconds after the bucket. */
static void add_buckets(struct mk_buf *out, const uint64_t *buckets)
{
    char text[MK_COUNTER_BUCKETS * 44]; /* two numbers of 20 digits, and what separates them */
    int len = 0;
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++) {
        uint64_t end = mk_counter_bucket_end_us(i);
        const char *blank = len ? " " : "";
        if (buckets[i] && end == UINT64_MAX)
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%sinf:%" PRIu64, blank, buckets[i]);
        else if (buckets[i])
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%" PRIu64 ":%" PRIu64, blank, end, buckets[i]);
    }
    mk_json_str(out, "_buckets", mk_str(text, (size_t)len));
}

static void add_counter(struct mk_buf *out, const struct mk_counter_value *v, const char *name)
{
    static const char *const kinds[] = {"sum", "level", "histogram"};
    mk_json_open(out, NULL, '{');
    mk_json_cstr(out, "counter", name);
    mk_json_str(out, "labels", v->labels);
    mk_json_cstr(out, "kind", kinds[v->kind]);
    mk_json_number(out, "value", v->value);
    if (v->kind == MK_COUNTER_HISTOGRAM) {
        mk_json_number(out, "sum_us", (int64_t)v->sum_us);
        add_buckets(out, v->buckets);
    }
    mk_json_str(out, "help", v->help);
    mk_json_close_line(out);
}

static int show_counter(const struct mk_counter_value *v, void *ctx)
{
    struct counts_query *q = ctx;
    char name[NAME_BYTES];
    make_name(v, name, sizeof(name));
    if (fnmatch(q->pattern, name, 0) != 0)
        return 0;
    if (!client_has_room(q->client))
        return 1;
    add_counter(&q->client->out, v, name);
    return 0;
}

void counts_run(struct client *c, const struct words *words)
{
    struct counts_query q = {.client = c, .pattern = "*"};
    if (words->n > 1)
        snprintf(q.pattern, sizeof(q.pattern), "*%.*s*", (int)(words->items[1].len < 200 ? words->items[1].len : 200),
                 words->items[1].p);
    client_begin(c, "table");
    mk_counters_each(show_counter, &q);
    client_end(c, NULL);
}
