// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the listing as JSON (json.h).
 */
#include "json.h"

#include "order.h"

#include <monkey/escape.h>
#include <monkey/time.h>

/* ── values ── */

void json_write_string(struct mk_buf *out, struct mk_str text)
{
    mk_buf_addc(out, '"');
    mk_json_escape(out, text);
    mk_buf_addc(out, '"');
}

void json_write_time(struct mk_buf *out, int64_t seconds)
{
    char text[MK_TIME_ISO_BYTES];
    if (mk_time_iso(seconds, text))
        mk_buf_addf(out, "\"%sZ\"", text);
    else
        mk_buf_adds(out, MK_STR("null"));
}

/* ── the listing ── */

static void begin_listing(struct mk_buf *out, const struct listing_view *view)
{
    mk_buf_adds(out, MK_STR("{\"path\": "));
    json_write_string(out, view->path);
    mk_buf_addf(out, ", \"sort\": \"%s\", \"order\": \"%s\", \"sorted\": %s, \"entries\": [", order_sorts[view->sort],
                order_directions[view->descending], view->is_complete ? "true" : "false");
}

static void write_entry(struct mk_buf *out, const struct listing_view *view, const struct listing_entry *entry,
                        uint32_t n)
{
    struct mk_str name = mk_str(entry->name, entry->name_len);
    mk_buf_adds(out, n ? MK_STR(",\n{\"name\": ") : MK_STR("\n{\"name\": "));
    json_write_string(out, name);
    if (entry->is_dir)
        mk_buf_adds(out, MK_STR(", \"type\": \"folder\", \"bytes\": null, \"mtime\": "));
    else
        mk_buf_addf(out, ", \"type\": \"file\", \"bytes\": %llu, \"mtime\": ", (unsigned long long)entry->bytes);
    json_write_time(out, entry->mtime_seconds);
    mk_buf_adds(out, MK_STR(", \"url\": \""));
    mk_path_encode(out, view->path);
    mk_path_encode(out, name);
    mk_buf_adds(out, entry->is_dir ? MK_STR("/\"}") : MK_STR("\"}"));
}

static void end_listing(struct mk_buf *out, const struct listing_view *view)
{
    (void)view;
    mk_buf_adds(out, MK_STR("]}\n"));
}

const struct listing_format json_format = {
    .type = MK_STR_INIT("application/json"),
    .begin = begin_listing,
    .entry = write_entry,
    .end = end_listing,
};
