// SPDX-License-Identifier: Apache-2.0
/*
 * Counts what a client must not do too often (http/h2/flood_counters.h). Above a limit the connection is closed; the
 * log names the client and the key to raise.
 */
#include "http/h2/h2.h"

#include "base/log.h"
#include "http/count.h"
#include "loop/loop.h"

#include <inttypes.h>

#define CLOSED "HTTP/2 connection closed"

/*
 * For each flood: what ends, what exceeded the limit, and the key and section of the limit. Limits without a key are
 * far above what a well-behaved client needs.
 */
static const struct {
    const char *end, *what, *key, *section;
} floods[MK__H2_FLOODS] = {
    [MK__H2_FLOOD_RESET] = {CLOSED, "requests cancelled by the client", "MaxResets", "HTTP2"},
    [MK__H2_FLOOD_STREAM_ERROR] = {CLOSED, "streams reset because of client errors", "MaxStreamErrors", "HTTP2"},
    [MK__H2_FLOOD_SETTINGS] = {CLOSED, "SETTINGS frames", "MaxSettings", "HTTP2"},
    [MK__H2_FLOOD_PING] = {CLOSED, "PING frames", "MaxPings", "HTTP2"},
    [MK__H2_FLOOD_EMPTY] = {CLOSED, "empty frames", "MaxEmptyFrames", "HTTP2"},
    [MK__H2_FLOOD_PRIORITY] = {CLOSED, "PRIORITY and PRIORITY_UPDATE frames", "MaxPriorities", "HTTP2"},
    [MK__H2_FLOOD_WINDOW_UPDATE] = {CLOSED, "small or needless WINDOW_UPDATE and RST_STREAM frames", "MaxWindowUpdates",
                                    "HTTP2"},
    [MK__H2_FLOOD_CONTINUATION] = {CLOSED, "CONTINUATION frames of one head", "MaxContinuations", "HTTP2"},
    [MK__H2_FLOOD_HPACK_BOMB] = {CLOSED, "bytes of decompressed header fields in one head", "MaxHeadSize", "SERVER"},
    [MK__H2_FLOOD_SETTINGS_ENTRIES] = {CLOSED, "entries in one SETTINGS frame", NULL, NULL},
    [MK__H2_FLOOD_QUEUED_ACKS] = {CLOSED, "unread acknowledgements of PING and SETTINGS frames", NULL, NULL},
    [MK__H2_FLOOD_TOO_MANY_STREAMS] = {CLOSED, "concurrent requests", "MaxConcurrentStreams", "HTTP2"},
    [MK__H2_FLOOD_STALLED_STREAMS] = {CLOSED, "stalled requests while there is no room for new connections", NULL,
                                      NULL},
    [MK__H2_FLOOD_REFUSED] = {"HTTP/2 request refused", "concurrent requests", "MaxConcurrentStreams", "HTTP2"},
    [MK__H2_FLOOD_SEND_TIMEOUT] = {"HTTP/2 response aborted", "ms without progress", "SendTimeout", "SERVER"},
};

/* ── the log ── */

static void log_flood(struct mk__h2 *h2, enum mk__h2_flood flood, uint64_t most, const struct mk__h2_flood_stats *stats)
{
    MK_BUF_ON_STACK(b, 512);
    mk_buf_addf(&b, "%s: more than %" PRIu64 " %s", floods[flood].end, most, floods[flood].what);
    if (flood < MK__H2_FLOOD_RATES)
        mk_buf_addf(&b, " within %d s", MK__H2_FLOOD_INTERVAL_MS / 1000);
    if (floods[flood].key)
        mk_buf_addf(&b, " (%s of [%s]: raise it if this is an honest client)", floods[flood].key,
                    floods[flood].section);
    if (stats->ended > 1)
        mk_buf_addf(&b, "; %" PRIu64 " more since the last such line, %" PRIu64 " in total in this worker",
                    stats->unlogged, stats->ended);
    mk_io_log(&h2->conn->sock.io, &h2->conn->handle.peer.address, MK_LOG_WARN, "%s", mk_buf_cstr(&b));
}

void mk__h2_flood_log(struct mk__h2 *h2, enum mk__h2_flood flood, uint64_t most)
{
    struct mk__h2_flood_stats *stats = &h2->shared->flood_stats[flood];
    stats->ended++;
    mk__count_one(mk__h2_http(h2), MK__COUNT_FLOODS + flood);
    if (mk__log_is_due(&stats->logged_ms, mk_loop_now_ms(mk__h2_http(h2)->loop))) {
        log_flood(h2, flood, most, stats);
        stats->unlogged = 0;
    } else {
        stats->unlogged++;
    }
}

void mk__h2_flood_terminate(struct mk__h2 *h2, enum mk__h2_flood flood, uint64_t most)
{
    if (mk__h2_is_terminated(h2))
        return;
    mk__h2_flood_log(h2, flood, most);
    mk__h2_control_terminate(h2, MK__H2_ERR_ENHANCE_YOUR_CALM);
}

/* Logs how many connections or streams were ended for the floods from `first` to before `last`. */
static void log_totals(const struct mk__h2_shared *shared, const char *what, unsigned first, unsigned last)
{
    MK_BUF_ON_STACK(b, 768);
    for (unsigned flood = first; flood < last; flood++)
        if (shared->flood_stats[flood].ended)
            mk_buf_addf(&b, "%s %" PRIu64 " for %s", b.len ? "," : "", shared->flood_stats[flood].ended,
                        floods[flood].key ? floods[flood].key : floods[flood].what);
    if (b.len)
        mk_log_info("%s:%s", what, mk_buf_cstr(&b));
}

void mk__h2_flood_log_totals(struct mk__context *http)
{
    const struct mk__h2_shared *shared = *mk__h2_shared_slot(http);
    if (!shared)
        return;
    log_totals(shared, "HTTP/2 connections closed by this worker", 0, MK__H2_FLOOD_STREAM_ONLY);
    log_totals(shared, "HTTP/2 requests refused or aborted by this worker", MK__H2_FLOOD_STREAM_ONLY, MK__H2_FLOODS);
}

/* ── counting ── */

static const struct mk__h2_settings *get_settings(const struct mk__h2 *h2)
{
    const struct mk__context *http = mk__h2_http(h2);
    return http->settings->h2 ? http->settings->h2 : &h2->initial_settings;
}

uint64_t mk__h2_flood_acks_max(const struct mk__h2 *h2)
{
    const int64_t *most = get_settings(h2)->rates_max;
    return (uint64_t)(most[MK__H2_FLOOD_PING] + most[MK__H2_FLOOD_SETTINGS]) + 1;
}

void mk__h2_flood_count(struct mk__h2 *h2, enum mk__h2_flood flood)
{
    const struct mk__h2_settings *settings = get_settings(h2);
    if (!mk__h2_is_terminated(h2) &&
        !mk__h2_flood_counters_admit(&h2->flood_counters, settings, flood, mk_loop_now_ms(mk__h2_http(h2)->loop)))
        mk__h2_flood_terminate(h2, flood, (uint64_t)settings->rates_max[flood]);
}

/*
 * Returns whether a WINDOW_UPDATE or RST_STREAM frame exceeds what a client needs. A client that acknowledges data in
 * steps of MK__H2_WINDOW_UPDATE_MIN bytes or more, for stream and connection, and also opens each window once, stays
 * below the limit. Each stream can be reset once after it was closed.
 */
static bool is_needless_frame(struct mk__h2 *h2, uint8_t type, int32_t stream_id)
{
    const struct mk__conn *c = h2->conn;
    if (type == MK__H2_FRAME_WINDOW_UPDATE)
        return ++h2->window_updates > c->requests + c->stream_bytes / (MK__H2_WINDOW_UPDATE_MIN / 2);
    if (type == MK__H2_FRAME_RST_STREAM)
        return !mk__h2_find_stream(h2, stream_id) && ++h2->stray_resets > c->requests;
    return false;
}

/* Checks limits of a single frame or head. */
static void check_frame_size(struct mk__h2 *h2, uint8_t type, size_t bytes)
{
    uint64_t most = (uint64_t)get_settings(h2)->continuations_max;
    h2->continuations = type == MK__H2_FRAME_CONTINUATION ? h2->continuations + 1 : 0;
    if (h2->continuations > most)
        mk__h2_flood_terminate(h2, MK__H2_FLOOD_CONTINUATION, most);
    if (type == MK__H2_FRAME_SETTINGS && bytes > MK__H2_SETTINGS_ENTRIES_MAX * MK__H2_FRAME_SETTING_BYTES)
        mk__h2_flood_terminate(h2, MK__H2_FLOOD_SETTINGS_ENTRIES, MK__H2_SETTINGS_ENTRIES_MAX);
}

void mk__h2_flood_check_frame(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream)
{
    check_frame_size(h2, type, bytes);
    h2->frame_counted = is_needless_frame(h2, type, stream_id);
    if (bytes == 0 && (type == MK__H2_FRAME_CONTINUATION || (type == MK__H2_FRAME_HEADERS && !end_stream)))
        mk__h2_flood_count(h2, MK__H2_FLOOD_EMPTY);
    else if (h2->frame_counted)
        mk__h2_flood_count(h2, MK__H2_FLOOD_WINDOW_UPDATE);
}
