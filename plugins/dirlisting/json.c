// SPDX-License-Identifier: Apache-2.0
#include "listing.h"

#include <monkey/base/escape.h>
#include <monkey/base/time.h>
#include <monkey/kit/json.h>

static void begin_listing(struct mk_buf *out, const struct listing_view *view)
{
    mk_json_open(out, NULL, '{');
    mk_json_str(out, "path", view->path);
    mk_json_cstr(out, "sort", order_sorts[view->sort]);
    mk_json_cstr(out, "order", order_directions[view->descending]);
    mk_json_bool(out, "sorted", view->is_complete);
    mk_json_open(out, "entries", '[');
}

static void write_time(struct mk_buf *out, int64_t seconds)
{
    char text[MK_TIME_ISO_BYTES];
    if (mk_time_iso(seconds, text))
        mk_json_format(out, "mtime", "%sZ", text);
    else
        mk_json_null(out, "mtime");
}

static void write_entry(struct mk_buf *out, const struct listing_view *view, const struct listing_entry *entry,
                        uint32_t n)
{
    struct mk_str name = mk_str(entry->name, entry->name_len);
    mk_buf_adds(out, n ? MK_STR(",\n") : MK_STR("\n"));
    mk_json_open(out, NULL, '{');
    mk_json_str(out, "name", name);
    mk_json_cstr(out, "type", entry->is_dir ? "folder" : "file");
    if (entry->is_dir)
        mk_json_null(out, "bytes");
    else
        mk_json_number(out, "bytes", (int64_t)entry->bytes);
    write_time(out, entry->mtime_seconds);
    mk_json_key(out, MK_STR("url"));
    mk_buf_addc(out, '"');
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
