// SPDX-License-Identifier: Apache-2.0
/*
 * What a client may do that costs us more than it costs the client, counted: so often within ten seconds, and the
 * connection ends with ENHANCE_YOUR_CALM. RFC 9113 section 10.5.
 */
#ifndef MK_HTTP_H2_FLOOD_H
#define MK_HTTP_H2_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

enum mk__h2_flood {
    MK__H2_FLOOD_RESET,         /* streams reset by the client before their answer was complete (CVE-2023-44487) */
    MK__H2_FLOOD_STREAM_ERROR,  /* streams that we had to reset, for what the client did (CVE-2025-8671) */
    MK__H2_FLOOD_SETTINGS,      /* CVE-2019-9515 */
    MK__H2_FLOOD_PING,          /* CVE-2019-9512 */
    MK__H2_FLOOD_EMPTY,         /* DATA, HEADERS and CONTINUATION without content (CVE-2019-9518) */
    MK__H2_FLOOD_PRIORITY,      /* CVE-2019-9513 */
    MK__H2_FLOOD_WINDOW_UPDATE, /* windows opened by less than MK__H2_WINDOW_UPDATE_MIN bytes (CVE-2019-9511), or for
                                   nothing; strays */
    MK__H2_FLOOD_RATES,
    /* These are not for ten seconds: */
    MK__H2_FLOOD_CONTINUATION = MK__H2_FLOOD_RATES, /* CONTINUATION frames of one head (CVE-2024-27316) */
    MK__H2_FLOOD_HPACK_BOMB,       /* heads that unpack to far more than they may have (CVE-2016-6581) */
    MK__H2_FLOOD_SETTINGS_ENTRIES, /* of one SETTINGS frame */
    MK__H2_FLOOD_QUEUED_ACKS,      /* answers to PING and SETTINGS that the client does not read */
    MK__H2_FLOOD_TOO_MANY_STREAMS, /* streams at once, of a client that knows how many it may have */
    MK__H2_FLOOD_STALLED_STREAMS,  /* streams that wait for the client, when others find no room */
    /* And these are the end of a stream only: */
    MK__H2_FLOOD_STREAM_ONLY,
    MK__H2_FLOOD_REFUSED = MK__H2_FLOOD_STREAM_ONLY, /* streams at once, of a client that may not know */
    MK__H2_FLOOD_SEND_TIMEOUT,                       /* answers of which it takes nothing (CVE-2019-9517) */
    MK__H2_FLOODS,
};

enum { MK__H2_WINDOW_UPDATE_MIN = 256, MK__H2_FLOOD_INTERVAL_MS = 10000, MK__H2_SETTINGS_ENTRIES_MAX = 32 };

struct mk__h2_settings {
    bool on;
    int64_t streams_max;       /* at once, of one connection */
    int64_t continuations_max; /* of one head */
    int64_t rates_max[MK__H2_FLOOD_RATES];
};

struct mk__h2_flood_counters {
    uint64_t since_ms;
    uint32_t counts[MK__H2_FLOOD_RATES];
};

/* Notes a flood; false: that was one too many. */
bool mk__h2_flood_admits(struct mk__h2_flood_counters *g, const struct mk__h2_settings *settings,
                         enum mk__h2_flood flood, uint64_t now_ms);
#endif
