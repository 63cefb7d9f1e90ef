// SPDX-License-Identifier: Apache-2.0
/*
 * How a client of HTTP/2 behaves (http/h2/h2.h): what it must not do too often is noted, one too many is the end, and
 * the operator is told whose it was, and what would have let it live.
 */
#include "http/h2/h2.h"

#include "base/log.h"
#include "loop/loop.h"

#include <inttypes.h>

#define ENDED "its connection of HTTP/2 is ended"

/* What each flood ends, what is more than its limit, and whose that is; without a key nobody honest needs more. */
static const struct {
    const char *end, *what, *key, *section;
} floods[MK__H2_FLOODS] = {
    [MK__H2_FLOOD_RESET] = {ENDED, "requests taken back", "MaxResets", "HTTP2"},
    [MK__H2_FLOOD_STREAM_ERROR] = {ENDED, "requests broken off for its faults", "MaxStreamErrors", "HTTP2"},
    [MK__H2_FLOOD_SETTINGS] = {ENDED, "SETTINGS frames", "MaxSettings", "HTTP2"},
    [MK__H2_FLOOD_PING] = {ENDED, "PING frames", "MaxPings", "HTTP2"},
    [MK__H2_FLOOD_EMPTY] = {ENDED, "empty frames", "MaxEmptyFrames", "HTTP2"},
    [MK__H2_FLOOD_PRIORITY] = {ENDED, "PRIORITY and PRIORITY_UPDATE frames", "MaxPriorities", "HTTP2"},
    [MK__H2_FLOOD_WINDOW_UPDATE] = {ENDED, "small or needless WINDOW_UPDATE and RST_STREAM frames", "MaxWindowUpdates",
                                    "HTTP2"},
    [MK__H2_FLOOD_CONTINUATION] = {ENDED, "CONTINUATION frames of one head", "MaxContinuations", "HTTP2"},
    [MK__H2_FLOOD_HPACK_BOMB] = {ENDED, "bytes of fields in one head, unpacked", "MaxHeadSize", "SERVER"},
    [MK__H2_FLOOD_SETTINGS_ENTRIES] = {ENDED, "rows of one SETTINGS frame", NULL, NULL},
    [MK__H2_FLOOD_QUEUED_ACKS] = {ENDED, "answers to PING and SETTINGS that it does not take", NULL, NULL},
    [MK__H2_FLOOD_TOO_MANY_STREAMS] = {ENDED, "requests at once", "MaxConcurrentStreams", "HTTP2"},
    [MK__H2_FLOOD_STALLED_STREAMS] = {ENDED, "requests that wait for it while others find no room", NULL, NULL},
    [MK__H2_FLOOD_REFUSED] = {"a request over HTTP/2 is refused", "at once", "MaxConcurrentStreams", "HTTP2"},
    [MK__H2_FLOOD_SEND_TIMEOUT] = {"an answer over HTTP/2 is broken off", "ms without a byte taken", "SendTimeout",
                                   "SERVER"},
};

/* ── the operator ── */

static void log_flood(struct mk__h2 *h2, enum mk__h2_flood flood, uint64_t most, const struct mk__h2_flood_stats *stats)
{
    char text[512];
    struct mk_buf b;
    mk_buf_init_fixed(&b, text, sizeof(text));
    mk_address_print(&h2->conn->peer.address, &b);
    mk_buf_addf(&b, ": %s for more than %" PRIu64 " %s", floods[flood].end, most, floods[flood].what);
    if (flood < MK__H2_FLOOD_RATES)
        mk_buf_addf(&b, " within %d s", MK__H2_FLOOD_INTERVAL_MS / 1000);
    if (floods[flood].key)
        mk_buf_addf(&b, " (%s of [%s]: raise it if this is an honest client)", floods[flood].key,
                    floods[flood].section);
    if (stats->ended > 1)
        mk_buf_addf(&b, "; %" PRIu64 " more since the last such line, %" PRIu64 " in all of this worker",
                    stats->unlogged, stats->ended);
    mk_log_warn("%s", mk_buf_cstr(&b));
}

void mk__h2_flood_log(struct mk__h2 *h2, enum mk__h2_flood flood, uint64_t most)
{
    struct mk__h2_flood_stats *stats = &mk__h2_shared_of(h2)->flood_stats[flood];
    stats->ended++;
    if (mk__log_is_due(&stats->logged_ms, mk_loop_now_ms(mk__h2_http(h2)->loop))) {
        log_flood(h2, flood, most, stats);
        stats->unlogged = 0;
    } else {
        stats->unlogged++;
    }
}

void mk__h2_flood_terminate(struct mk__h2 *h2, enum mk__h2_flood flood, uint64_t most)
{
    if (h2->terminated)
        return;
    mk__h2_flood_log(h2, flood, most);
    mk__h2_terminate(h2, MK__H2_ERR_ENHANCE_YOUR_CALM);
}

/* What was ended for the deeds from `first` to before `last`. */
static void log_totals(const struct mk__h2_shared *shared, const char *what, unsigned first, unsigned last)
{
    char text[768];
    struct mk_buf b;
    mk_buf_init_fixed(&b, text, sizeof(text));
    for (unsigned flood = first; flood < last; flood++)
        if (shared->flood_stats[flood].ended)
            mk_buf_addf(&b, "%s %" PRIu64 " for %s", b.len ? "," : "", shared->flood_stats[flood].ended,
                        floods[flood].key ? floods[flood].key : floods[flood].what);
    if (b.len)
        mk_log_info("%s:%s", what, mk_buf_cstr(&b));
}

void mk__h2_flood_log_totals(const struct mk__context *http)
{
    const struct mk__h2_shared *shared = http->second_shared;
    if (!shared)
        return;
    log_totals(shared, "connections of HTTP/2 that this worker has ended", 0, MK__H2_FLOOD_STREAM_ONLY);
    log_totals(shared, "requests over HTTP/2 that it has not answered, or not to the end", MK__H2_FLOOD_STREAM_ONLY,
               MK__H2_FLOODS);
}

/* ── deeds ── */

static const struct mk__h2_settings *settings_of(const struct mk__h2 *h2)
{
    const struct mk__context *http = mk__h2_http(h2);
    return http->settings->h2 ? http->settings->h2 : &h2->initial_settings;
}

uint64_t mk__h2_flood_acks_max(const struct mk__h2 *h2)
{
    const int64_t *most = settings_of(h2)->rates_max;
    return (uint64_t)(most[MK__H2_FLOOD_PING] + most[MK__H2_FLOOD_SETTINGS]) + 1;
}

void mk__h2_flood_count(struct mk__h2 *h2, enum mk__h2_flood flood)
{
    const struct mk__h2_settings *settings = settings_of(h2);
    if (!h2->terminated &&
        !mk__h2_flood_admits(&h2->flood_counters, settings, flood, mk_loop_now_ms(mk__h2_http(h2)->loop)))
        mk__h2_flood_terminate(h2, flood, (uint64_t)settings->rates_max[flood]);
}

static bool is_empty_head(uint8_t type, size_t bytes, bool end_stream)
{
    return bytes == 0 && (type == MK__H2_FRAME_CONTINUATION || (type == MK__H2_FRAME_HEADERS && !end_stream));
}

/*
 * Who gives back what it has had, MK__H2_WINDOW_UPDATE_MIN bytes or more at a time, to the stream and to the
 * connection, and opens each window once besides, sends no more updates than that; each stream can be reset once when
 * it is closed already.
 */
static bool is_needless(struct mk__h2 *h2, uint8_t type, int32_t stream_id)
{
    const struct mk__conn *c = h2->conn;
    if (type == MK__H2_FRAME_WINDOW_UPDATE)
        return ++h2->window_updates > c->requests + c->stream_bytes / (MK__H2_WINDOW_UPDATE_MIN / 2);
    if (type == MK__H2_FRAME_RST_STREAM)
        return !mk__h2_find_stream(h2, stream_id) && ++h2->stray_resets > c->requests;
    return false;
}

/* What a single frame or head has too much of. */
static void check_frame_size(struct mk__h2 *h2, uint8_t type, size_t bytes)
{
    uint64_t most = (uint64_t)settings_of(h2)->continuations_max;
    h2->continuations = type == MK__H2_FRAME_CONTINUATION ? h2->continuations + 1 : 0;
    if (h2->continuations > most)
        mk__h2_flood_terminate(h2, MK__H2_FLOOD_CONTINUATION, most);
    if (type == MK__H2_FRAME_SETTINGS && bytes > MK__H2_SETTINGS_ENTRIES_MAX * MK__H2_SETTINGS_ENTRY_BYTES)
        mk__h2_flood_terminate(h2, MK__H2_FLOOD_SETTINGS_ENTRIES, MK__H2_SETTINGS_ENTRIES_MAX);
}

void mk__h2_flood_check_frame(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream)
{
    check_frame_size(h2, type, bytes);
    h2->frame_counted = is_needless(h2, type, stream_id);
    if (is_empty_head(type, bytes, end_stream))
        mk__h2_flood_count(h2, MK__H2_FLOOD_EMPTY);
    else if (h2->frame_counted)
        mk__h2_flood_count(h2, MK__H2_FLOOD_WINDOW_UPDATE);
}
