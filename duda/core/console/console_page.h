// SPDX-License-Identifier: Apache-2.0
/*
 * The console of a service as text, which appends to a buffer.
 */
#ifndef DUDA_CORE_CONSOLE_CONSOLE_PAGE_H
#define DUDA_CORE_CONSOLE_CONSOLE_PAGE_H

#include "console/stats.h"

#include <monkey/base/buf.h>

/* Writes the page in HTML, which is complete without other files; `refreshes`: it loads itself again. */
void console_page_write(struct mk_buf *out, const struct stats *f, bool refreshes);
/* Writes the same figures as a JSON object. */
void console_json_write(struct mk_buf *out, const struct stats *f);
/* Write lines of plain text: the messages, and the routes. */
void console_text_messages(struct mk_buf *out, const struct stats *f);
void console_text_map(struct mk_buf *out, const struct stats *f);
/* Appends the time of a message: "2026-11-20T05:04:03.123Z". */
void console_text_time(struct mk_buf *out, int64_t wall_ms);

#endif
