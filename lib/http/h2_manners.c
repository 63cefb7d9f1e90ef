// SPDX-License-Identifier: Apache-2.0
/*
 * How a client of HTTP/2 behaves (http/h2.h): what it must not do too often is noted, one too many is the end, and the
 * operator is told whose it was, and what would have let it live.
 */
#include "http/h2.h"

#include "base/log.h"
#include "loop/loop.h"

#include <inttypes.h>

#define ENDED "its connection of HTTP/2 is ended"

/* What each deed ends, what is more than its limit, and whose that is; without a key nobody honest needs more. */
static const struct {
    const char *end, *what, *key, *section;
} rows[MK__H2_ENDS] = {
    [MK__H2_RESETS] = {ENDED, "requests taken back", "MaxResets", "HTTP2"},
    [MK__H2_FAULTS] = {ENDED, "requests broken off for its faults", "MaxFaults", "HTTP2"},
    [MK__H2_SETTINGS] = {ENDED, "SETTINGS frames", "MaxSettings", "HTTP2"},
    [MK__H2_PINGS] = {ENDED, "PING frames", "MaxPings", "HTTP2"},
    [MK__H2_EMPTIES] = {ENDED, "empty frames", "MaxEmptyFrames", "HTTP2"},
    [MK__H2_PRIORITIES] = {ENDED, "PRIORITY and PRIORITY_UPDATE frames", "MaxPriorities", "HTTP2"},
    [MK__H2_MORSELS] = {ENDED, "small or needless WINDOW_UPDATE and RST_STREAM frames", "MaxSmallUpdates", "HTTP2"},
    [MK__H2_CONTINUATIONS] = {ENDED, "CONTINUATION frames of one head", "MaxContinuations", "HTTP2"},
    [MK__H2_BOMBS] = {ENDED, "bytes of fields in one head, unpacked", "MaxHeadSize", "SERVER"},
    [MK__H2_ROWS] = {ENDED, "rows of one SETTINGS frame", NULL, NULL},
    [MK__H2_UNTAKEN] = {ENDED, "answers to PING and SETTINGS that it does not take", NULL, NULL},
    [MK__H2_CROWDS] = {ENDED, "requests at once", "MaxStreams", "HTTP2"},
    [MK__H2_HOARDS] = {ENDED, "requests that wait for it while others find no room", NULL, NULL},
    [MK__H2_REFUSALS] = {"a request over HTTP/2 is refused", "at once", "MaxStreams", "HTTP2"},
    [MK__H2_UNREAD] = {"an answer over HTTP/2 is broken off", "ms without a byte taken", "SendTimeout", "SERVER"},
};

/* ── the operator ── */

static void tell(struct mk__h2 *h2, enum mk__h2_deed deed, uint64_t most, const struct mk__h2_toll *toll)
{
    char text[512];
    struct mk_buf b;
    mk_buf_init_fixed(&b, text, sizeof(text));
    mk_address_print(&h2->conn->peer.address, &b);
    mk_buf_addf(&b, ": %s for more than %" PRIu64 " %s", rows[deed].end, most, rows[deed].what);
    if (deed < MK__H2_DEEDS)
        mk_buf_addf(&b, " within %d s", MK__H2_GUARD_MS / 1000);
    if (rows[deed].key)
        mk_buf_addf(&b, " (%s of [%s]: raise it if this is an honest client)", rows[deed].key, rows[deed].section);
    if (toll->ended > 1)
        mk_buf_addf(&b, "; %" PRIu64 " more since the last such line, %" PRIu64 " in all of this worker", toll->untold,
                    toll->ended);
    mk_log_warn("%s", mk_buf_cstr(&b));
}

void mk__h2_manners_tell(struct mk__h2 *h2, enum mk__h2_deed deed, uint64_t most)
{
    struct mk__h2_toll *toll = &mk__h2_shared_of(h2)->tolls[deed];
    toll->ended++;
    if (mk__log_due(&toll->told_ms, mk_loop_now_ms(mk__h2_http(h2)->loop))) {
        tell(h2, deed, most, toll);
        toll->untold = 0;
    } else {
        toll->untold++;
    }
}

void mk__h2_manners_end(struct mk__h2 *h2, enum mk__h2_deed deed, uint64_t most)
{
    if (h2->ended)
        return;
    mk__h2_manners_tell(h2, deed, most);
    mk__h2_end(h2, MK__H2_CALM);
}

/* What was ended for the deeds from `first` to before `last`. */
static void sum_up(const struct mk__h2_shared *shared, const char *what, unsigned first, unsigned last)
{
    char text[768];
    struct mk_buf b;
    mk_buf_init_fixed(&b, text, sizeof(text));
    for (unsigned deed = first; deed < last; deed++)
        if (shared->tolls[deed].ended)
            mk_buf_addf(&b, "%s %" PRIu64 " for %s", b.len ? "," : "", shared->tolls[deed].ended,
                        rows[deed].key ? rows[deed].key : rows[deed].what);
    if (b.len)
        mk_log_info("%s:%s", what, mk_buf_cstr(&b));
}

void mk__h2_manners_sum_up(const struct mk__context *http)
{
    const struct mk__h2_shared *shared = http->h2_shared;
    if (!shared)
        return;
    sum_up(shared, "connections of HTTP/2 that this worker has ended", 0, MK__H2_STREAM_ENDS);
    sum_up(shared, "requests over HTTP/2 that it has not answered, or not to the end", MK__H2_STREAM_ENDS, MK__H2_ENDS);
}

/* ── deeds ── */

static const struct mk__h2_settings *settings_of(const struct mk__h2 *h2)
{
    const struct mk__context *http = mk__h2_http(h2);
    return http->settings->h2 ? http->settings->h2 : &h2->guarded;
}

uint64_t mk__h2_manners_answers_max(const struct mk__h2 *h2)
{
    const int64_t *most = settings_of(h2)->deeds_max;
    return (uint64_t)(most[MK__H2_PINGS] + most[MK__H2_SETTINGS]) + 1;
}

void mk__h2_manners_note(struct mk__h2 *h2, enum mk__h2_deed deed)
{
    const struct mk__h2_settings *settings = settings_of(h2);
    if (!h2->ended && !mk__h2_guard_admits(&h2->guard, settings, deed, mk_loop_now_ms(mk__h2_http(h2)->loop)))
        mk__h2_manners_end(h2, deed, (uint64_t)settings->deeds_max[deed]);
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
        return ++h2->updates > c->requests + c->stream_bytes / (MK__H2_MORSEL / 2);
    if (type == MK__H2_RST_STREAM)
        return !mk__h2_find(h2, stream_id) && ++h2->strays > c->requests;
    return false;
}

/* What a single frame or head has too much of. */
static void measure(struct mk__h2 *h2, uint8_t type, size_t bytes)
{
    uint64_t most = (uint64_t)settings_of(h2)->continuations_max;
    h2->continuations = type == MK__H2_CONTINUATION ? h2->continuations + 1 : 0;
    if (h2->continuations > most)
        mk__h2_manners_end(h2, MK__H2_CONTINUATIONS, most);
    if (type == MK__H2_SETTINGS_FRAME && bytes > MK__H2_ROWS_MAX * MK__H2_ROW_BYTES)
        mk__h2_manners_end(h2, MK__H2_ROWS, MK__H2_ROWS_MAX);
}

void mk__h2_manners_weigh(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream)
{
    measure(h2, type, bytes);
    h2->weighed = is_useless(h2, type, stream_id);
    if (is_empty_head(type, bytes, end_stream))
        mk__h2_manners_note(h2, MK__H2_EMPTIES);
    else if (h2->weighed)
        mk__h2_manners_note(h2, MK__H2_MORSELS);
}
