// SPDX-License-Identifier: Apache-2.0
/* The rows of [HTTP2]. */
#include "server/generation/settings.h"

#include "http/h2/flood_counters.h"

#define KEY(kind, ...) MK_CONF_KEY_##kind(struct mk__h2_settings, __VA_ARGS__)
#define FLOOD(flood, name, max_default, manual) \
    KEY(INT, rates_max[MK__H2_FLOOD_##flood], name, max_default, manual, .min = 1, .max = 1 << 30)

static const struct mk_conf_key keys[] = {
    KEY(BOOL, on, "Enabled", "On",
        "Whether HTTP/2 is accepted: by ALPN where the transport has it, else by prior knowledge."),
    KEY(INT, streams_max, "MaxConcurrentStreams", "100", "Concurrent requests of one connection.", .min = 1,
        .max = 10000),
    KEY(INT, continuations_max, "MaxContinuations", "8", "CONTINUATION frames of one head.", .min = 0, .max = 1 << 30),
    FLOOD(RESET, "MaxResets", "200", "Requests that the client cancels before their response is complete."),
    FLOOD(STREAM_ERROR, "MaxStreamErrors", "100", "Requests that the server aborts because of the client's errors."),
    FLOOD(SETTINGS, "MaxSettings", "100", "SETTINGS frames."),
    FLOOD(PING, "MaxPings", "500", "PING frames."),
    FLOOD(EMPTY, "MaxEmptyFrames", "500", "DATA, HEADERS and CONTINUATION frames without content."),
    FLOOD(PRIORITY, "MaxPriorities", "1000", "PRIORITY and PRIORITY_UPDATE frames."),
    FLOOD(WINDOW_UPDATE, "MaxWindowUpdates", "1000",
          "WINDOW_UPDATE frames that open a window by less than 256 bytes, or further than responses have used it; and "
          "resets of streams that have ended."),
    {0},
};

static const struct mk_conf_foreign renamed[] = {
    MK_CONF_RENAMED("MaxStreams", "MaxConcurrentStreams"),
    MK_CONF_RENAMED("MaxFaults", "MaxStreamErrors"),
    MK_CONF_RENAMED("MaxSmallUpdates", "MaxWindowUpdates"),
    {0},
};

const struct mk_conf_section mk__section_http2 = {
    .name = "HTTP2",
    .scope = MK_CONF_SCOPE_SERVER,
    .size = sizeof(struct mk__h2_settings),
    .keys = keys,
    .foreign = renamed,
    .doc = MK_CONF_DOC(
        "HTTP/2, on all listeners. All limits but the first two are for ten seconds of one connection. Beyond them it "
        "is closed with ENHANCE_YOUR_CALM (`MaxConcurrentStreams`: REFUSED_STREAM, or PROTOCOL_ERROR from a client "
        "that has acknowledged it), as it is for a head that decompresses to more than four times `MaxHeadSize`, and "
        "64K. "
        "The limits of `[SERVER]` apply too, each wait to one request."),
};
