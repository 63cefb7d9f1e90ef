// SPDX-License-Identifier: Apache-2.0
/*
 * How a client of HTTP/2 behaves (http/h2.h): what it must not do too often is noted, and one too many is the end.
 */
#include "http/h2.h"

#include "loop/loop.h"

#include <monkey/log.h>

void mk__h2_manners_note(struct mk__h2 *h2, enum mk__h2_deed deed)
{
    struct mk__http *http = mk__h2_http(h2);
    const struct mk__h2_settings *settings = http->settings->h2 ? http->settings->h2 : &h2->guarded;
    if (h2->ended || mk__h2_guard_admits(&h2->guard, settings, deed, mk_loop_now_ms(http->loop)))
        return;
    mk_log_info("connection %d: too many %s within %d s, closing it", h2->conn->event.fd, mk__h2_guard_name(deed),
                MK__H2_GUARD_MS / 1000);
    mk__h2_end(h2, MK__H2_CALM);
}

static bool is_empty_head(uint8_t type, size_t bytes, bool end_stream)
{
    return bytes == 0 && (type == MK__H2_CONTINUATION || (type == MK__H2_HEADERS && !end_stream));
}

/*
 * Who gives back what it has had, MK__H2_MORSEL bytes or more at a time, to the stream and to the connection, and opens
 * each window once besides, sends no more updates than that; each stream can be reset once when it is closed already.
 */
static bool is_useless(struct mk__h2 *h2, uint8_t type, int32_t stream_id)
{
    const struct mk__conn *c = h2->conn;
    if (type == MK__H2_WINDOW_UPDATE)
        return ++h2->updates > c->requests + c->streamed / (MK__H2_MORSEL / 2);
    if (type == MK__H2_RST_STREAM)
        return !mk__h2_find(h2, stream_id) && ++h2->strays > c->requests;
    return false;
}

void mk__h2_manners_weigh(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream)
{
    h2->weighed = is_useless(h2, type, stream_id);
    if (is_empty_head(type, bytes, end_stream))
        mk__h2_manners_note(h2, MK__H2_EMPTIES);
    else if (h2->weighed)
        mk__h2_manners_note(h2, MK__H2_MORSELS);
}
