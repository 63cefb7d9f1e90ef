// SPDX-License-Identifier: Apache-2.0
/*
 * What a client may do that costs us more than it costs the client, counted: so often within ten seconds, and the
 * connection ends with ENHANCE_YOUR_CALM. RFC 9113 section 10.5.
 */
#ifndef MK_HTTP_H2_GUARD_H
#define MK_HTTP_H2_GUARD_H

#include <stdbool.h>
#include <stdint.h>

enum mk__h2_deed {
    MK__H2_RESETS,     /* streams reset by the client before their answer was complete (CVE-2023-44487) */
    MK__H2_FAULTS,     /* streams that we had to reset, for what the client did (CVE-2025-8671) */
    MK__H2_SETTINGS,   /* CVE-2019-9515 */
    MK__H2_PINGS,      /* CVE-2019-9512 */
    MK__H2_EMPTIES,    /* DATA, HEADERS and CONTINUATION without content (CVE-2019-9518) */
    MK__H2_PRIORITIES, /* CVE-2019-9513 */
    MK__H2_MORSELS,    /* windows opened by less than MK__H2_MORSEL bytes (CVE-2019-9511), or for nothing; strays */
    MK__H2_DEEDS,
    /* These are not for ten seconds: */
    MK__H2_CONTINUATIONS = MK__H2_DEEDS, /* CONTINUATION frames of one head (CVE-2024-27316) */
    MK__H2_BOMBS,                        /* heads that unpack to far more than they may have (CVE-2016-6581) */
    MK__H2_ROWS,                         /* of one SETTINGS frame */
    MK__H2_UNTAKEN,                      /* answers to PING and SETTINGS that the client does not read */
    MK__H2_CROWDS,                       /* streams at once, of a client that knows how many it may have */
    MK__H2_HOARDS,                       /* streams that wait for the client, when others find no room */
    /* And these are the end of a stream only: */
    MK__H2_STREAM_ENDS,
    MK__H2_REFUSALS = MK__H2_STREAM_ENDS, /* streams at once, of a client that may not know */
    MK__H2_UNREAD,                        /* answers of which it takes nothing (CVE-2019-9517) */
    MK__H2_ENDS,
};

enum { MK__H2_MORSEL = 256, MK__H2_GUARD_MS = 10000, MK__H2_ROWS_MAX = 32 };

struct mk__h2_settings {
    bool on;
    int64_t streams_max;       /* at once, of one connection */
    int64_t continuations_max; /* of one head */
    int64_t deeds_max[MK__H2_DEEDS];
};

struct mk__h2_guard {
    uint64_t since_ms;
    uint32_t deeds[MK__H2_DEEDS];
};

/* Notes a deed; false: that was one too many. */
bool mk__h2_guard_admits(struct mk__h2_guard *g, const struct mk__h2_settings *settings, enum mk__h2_deed deed,
                         uint64_t now_ms);
#endif
