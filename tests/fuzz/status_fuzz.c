// SPDX-License-Identifier: Apache-2.0
/*
 * Paths of clients, which the plugin status counts. The input is also read as the labels of a counter, and written as
 * JSON and as a metric.
 */
#include "../../plugins/status/report.h"
#include "../../plugins/status/state.h"

#include <monkey/kit/json.h>

#include <assert.h>
#include <stdlib.h>

enum { MINUTES = 8, PATH_STEP = 7 };

/* Text has no control characters but line ends, and what text_next() cuts is whole. */
static void check_output(struct mk_str text)
{
    while (text.len) {
        const char *at = text.p;
        struct mk_str character = text_next(&text);
        assert(character.p == at && (character.len > 1 || (unsigned char)*at >= 0x20 || *at == '\n'));
    }
}

static void check_json(struct mk_str input)
{
    struct mk_buf out;
    mk_buf_init(&out, 1 << 20);
    mk_json_str(&out, NULL, input);
    assert(!out.err && out.len >= 2);
    check_output(mk_buf_str(&out));
    mk_buf_release(&out);
}

static void check_counter(struct mk_str input)
{
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    struct mk_buf out;
    struct metrics m;
    struct mk_counter_value v = {.plugin = MK_STR("p"), .name = input, .help = input, .value = 1};
    mk_buf_init(&out, 1 << 20);
    metrics_begin(&m, METRICS_OPENMETRICS, &out);
    assert(metrics_counter(&v, &m) == 0);
    metrics_end(&m);
    mk_buf_release(&out);
    assert(mk_counter_label_get(input, MK_STR("a"), storage).len <= MK_COUNTER_LABEL_VALUE_BYTES);
}

/* Paths of changing lengths, in minutes that mostly go forward. */
static void check_sketch(struct mk_str input)
{
    static struct sketch_lists lists;
    struct sketch *sketch = calloc(1, sizeof(*sketch));
    uint64_t counts[MINUTES] = {0};
    for (size_t i = 0; i < input.len; i += PATH_STEP) {
        size_t len = (unsigned char)input.p[i] % 3 ? (size_t)(unsigned char)input.p[i] % PATH_STEP : input.len - i;
        struct mk_str path = mk_str(input.p + i, len < input.len - i ? len : input.len - i);
        uint64_t minute = i * MINUTES / input.len;
        sketch_add(sketch, minute + SKETCH_MINUTES, path, (unsigned char)input.p[i]);
        counts[minute]++;
    }
    for (unsigned i = 0; i < SKETCH_MINUTES; i++) { /* each request is in one row */
        const struct sketch_minute *m = &sketch->minutes[i];
        uint64_t sum = 0;
        for (unsigned k = 0; k < m->n_busiest; k++)
            sum += m->busiest[k].requests;
        assert(m->minute < SKETCH_MINUTES || sum == counts[m->minute - SKETCH_MINUTES]);
    }
    struct sketch *all[] = {sketch, NULL, sketch};
    assert(sketch_merge(all, 3, MINUTES + SKETCH_MINUTES - 1, &lists) == 0);
    for (unsigned i = 1; i < lists.n_busiest; i++)
        assert(lists.busiest[i].requests <= lists.busiest[i - 1].requests);
    for (unsigned i = 1; i < lists.n_slowest; i++)
        assert(lists.slowest[i].max_us <= lists.slowest[i - 1].max_us);
    free(sketch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + !size); /* so that a byte behind it is found */
    memcpy(copy, data, size);
    struct mk_str input = mk_str(copy, size);
    check_json(input);
    check_counter(input);
    check_sketch(input);
    free(copy);
    return 0;
}
