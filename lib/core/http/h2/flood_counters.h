// SPDX-License-Identifier: Apache-2.0
/*
 * Counts frames and requests that cost the server more than the client. More than a limit within ten seconds closes the
 * connection with ENHANCE_YOUR_CALM. RFC 9113 section 10.5.
 */
#ifndef MK_HTTP_H2_FLOOD_COUNTERS_H
#define MK_HTTP_H2_FLOOD_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

enum mk__h2_flood {
    MK__H2_FLOOD_RESET,         /* streams reset by the client before the response was complete (CVE-2023-44487) */
    MK__H2_FLOOD_STREAM_ERROR,  /* streams that the server had to reset because of client errors (CVE-2025-8671) */
    MK__H2_FLOOD_SETTINGS,      /* CVE-2019-9515 */
    MK__H2_FLOOD_PING,          /* CVE-2019-9512 */
    MK__H2_FLOOD_EMPTY,         /* DATA, HEADERS and CONTINUATION without content (CVE-2019-9518) */
    MK__H2_FLOOD_PRIORITY,      /* CVE-2019-9513 */
    MK__H2_FLOOD_WINDOW_UPDATE, /* windows opened by less than MK__H2_WINDOW_UPDATE_MIN bytes (CVE-2019-9511), needless
                                   updates, and resets of closed streams */
    MK__H2_FLOOD_RATES,
    /* The limits below are not rates: */
    MK__H2_FLOOD_CONTINUATION = MK__H2_FLOOD_RATES, /* CONTINUATION frames of one head (CVE-2024-27316) */
    MK__H2_FLOOD_HPACK_BOMB,       /* heads that decompress to far more than the limit (CVE-2016-6581) */
    MK__H2_FLOOD_SETTINGS_ENTRIES, /* entries of one SETTINGS frame */
    MK__H2_FLOOD_QUEUED_ACKS,      /* acknowledgements of PING and SETTINGS that the client does not read */
    MK__H2_FLOOD_TOO_MANY_STREAMS, /* concurrent streams, above the limit that the client has acknowledged */
    MK__H2_FLOOD_STALLED_STREAMS,  /* streams that wait for the client while there is no room for new connections */
    /* The floods below end a stream only: */
    MK__H2_FLOOD_STREAM_ONLY,
    MK__H2_FLOOD_REFUSED = MK__H2_FLOOD_STREAM_ONLY, /* concurrent streams, before the limit was acknowledged */
    MK__H2_FLOOD_SEND_TIMEOUT,                       /* responses that the client does not read (CVE-2019-9517) */
    MK__H2_FLOODS,
};

enum { MK__H2_WINDOW_UPDATE_MIN = 256, MK__H2_FLOOD_INTERVAL_MS = 10000, MK__H2_SETTINGS_ENTRIES_MAX = 32 };

struct mk__h2_settings {
    bool on;
    int64_t streams_max;                   /* MaxConcurrentStreams, per connection */
    int64_t continuations_max;             /* CONTINUATION frames of one head */
    int64_t rates_max[MK__H2_FLOOD_RATES]; /* in MK__H2_FLOOD_INTERVAL_MS */
};

struct mk__h2_flood_counters {
    uint64_t since_ms;
    uint32_t counts[MK__H2_FLOOD_RATES];
};

/* Counts an event. Returns false if it exceeds the limit. */
bool mk__h2_flood_counters_admit(struct mk__h2_flood_counters *g, const struct mk__h2_settings *settings,
                                 enum mk__h2_flood flood, uint64_t now_ms);

#endif
