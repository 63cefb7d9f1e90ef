// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of tls_counters.h.
 */
#include "tls_counters.h"

#include <assert.h>

static const struct mk_counter_info handshakes = {"tls", "handshakes", "complete handshakes", MK_COUNTER_SUM};
static const struct mk_counter_info failures = {
    "tls", "failures", "connections without a complete handshake, or closed for abuse, by reason", MK_COUNTER_SUM};

enum { HANDSHAKE_12 = TLS_COUNTS, HANDSHAKE_12_RESUMED, HANDSHAKE_13, HANDSHAKE_13_RESUMED, COUNTS };

static const struct mk_counter_row rows[COUNTS] = {
    [TLS_COUNT_PLAINTEXT] = {&failures, {"reason", "plaintext"}},
    [TLS_COUNT_CLIENT_CLOSED] = {&failures, {"reason", "client_closed"}},
    [TLS_COUNT_NAME] = {&failures, {"reason", "name"}},
    [TLS_COUNT_CLIENT_CERTIFICATE] = {&failures, {"reason", "client_certificate"}},
    [TLS_COUNT_CLIENT_ALERT] = {&failures, {"reason", "client_alert"}},
    [TLS_COUNT_PROTOCOL] = {&failures, {"reason", "protocol"}},
    [TLS_COUNT_VERSION] = {&failures, {"reason", "version"}},
    [TLS_COUNT_CIPHER] = {&failures, {"reason", "cipher"}},
    [TLS_COUNT_FAILED] = {&failures, {"reason", "handshake"}},
    [TLS_COUNT_NO_DATA] = {&failures, {"reason", "no_data"}},
    [TLS_COUNT_KEY_UPDATES] = {&failures, {"reason", "key_updates"}},
    [HANDSHAKE_12] = {&handshakes, {"version", "1.2", "resumed", "no"}},
    [HANDSHAKE_12_RESUMED] = {&handshakes, {"version", "1.2", "resumed", "yes"}},
    [HANDSHAKE_13] = {&handshakes, {"version", "1.3", "resumed", "no"}},
    [HANDSHAKE_13_RESUMED] = {&handshakes, {"version", "1.3", "resumed", "yes"}},
};

static const struct mk_counter *counters[COUNTS];

void tls_counters_open(void)
{
    mk_counters_open(rows, COUNTS, counters);
}

void tls_counters_add_handshake(const struct tls_conn *conn)
{
    assert(conn->worker);
    unsigned first = SSL_version(conn->ssl) == TLS1_3_VERSION ? HANDSHAKE_13 : HANDSHAKE_12;
    mk_counter_add(counters[first + (SSL_session_reused(conn->ssl) == 1)], conn->worker, 1);
}

void tls_counters_add(enum tls_count count, const struct mk_worker *worker)
{
    assert(count < TLS_COUNTS);
    mk_counter_add(counters[count], worker, 1);
}
