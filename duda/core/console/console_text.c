// SPDX-License-Identifier: Apache-2.0
/*
 * The console of a service as lines of plain text (console_page.h).
 */
#include "console/console_page.h"

#include "common/sanitize.h"

#include <monkey/base/time.h>

void console_text_time(struct mk_buf *out, int64_t wall_ms)
{
    char text[MK_TIME_ISO_BYTES];
    mk_buf_add(out, text, mk_time_iso(wall_ms / 1000, text));
    mk_buf_addf(out, ".%03uZ", (unsigned)(wall_ms % 1000));
}

void console_text_messages(struct mk_buf *out, const struct stats *f)
{
    for (unsigned i = 0; i < f->n_lines; i++) {
        const struct last_line *line = &f->lines[i];
        console_text_time(out, line->wall_ms);
        mk_buf_addf(out, " %-5s %.*s\n", line->kind, (int)line->len, line->text);
    }
}

void console_text_map(struct mk_buf *out, const struct stats *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        char text[1024];
        const struct stats_row *row = &f->rows[i];
        if (row->methods.len)
            mk_buf_addf(out, "%.*s %.*s\n", MK_STR_ARG(row->methods),
                        (int)sanitize_text(text, sizeof(text), row->pattern), text);
    }
}
