// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the listing as an HTML page (page.h).
 */
#include "page.h"

#include <monkey/escape.h>

static void begin_page(struct mk_buf *out, const struct listing_view *view)
{
    mk_buf_adds(out, MK_STR("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>"));
    mk_html_escape(out, view->path);
    mk_buf_adds(out, MK_STR("</title>\n<h1>"));
    mk_html_escape(out, view->path);
    mk_buf_adds(out, MK_STR("</h1>\n"));
    if (!view->is_complete)
        mk_buf_adds(out, MK_STR("<p>This folder is too large to be sorted.</p>\n"));
    mk_buf_adds(out, MK_STR("<ul>\n"));
}

static void write_entry(struct mk_buf *out, const struct listing_view *view, const struct listing_entry *entry,
                        uint32_t n)
{
    struct mk_str name = mk_str(entry->name, entry->name_len);
    (void)view;
    (void)n;
    mk_buf_adds(out, MK_STR("<li><a href=\"./"));
    mk_path_encode(out, name);
    mk_buf_adds(out, entry->is_dir ? MK_STR("/\">") : MK_STR("\">"));
    mk_html_escape(out, name);
    mk_buf_adds(out, entry->is_dir ? MK_STR("/</a></li>\n") : MK_STR("</a></li>\n"));
}

static void end_page(struct mk_buf *out, const struct listing_view *view)
{
    mk_buf_adds(out, MK_STR("</ul>\n"));
    if (!view->readme_name.p)
        return;
    mk_buf_adds(out, MK_STR("<pre>"));
    mk_html_escape(out, view->readme);
    mk_buf_adds(out, MK_STR("</pre>\n"));
}

const struct listing_format page_format = {
    .type = {"text/html; charset=utf-8", 24},
    .begin = begin_page,
    .entry = write_entry,
    .end = end_page,
};

int page_start_host(struct mk_host *host, struct listing_host *listing_host)
{
    (void)host;
    (void)listing_host;
    return 0;
}

void page_stop_host(struct listing_host *listing_host)
{
    (void)listing_host;
}
