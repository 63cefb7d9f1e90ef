// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of tls_counters.h.
 */
#include "tls_counters.h"

#include <assert.h>

static const struct mk_counter_info handshakes_info = {"tls", "handshakes", "complete handshakes", MK_COUNTER_SUM};
static const struct mk_counter_info failures_info = {
    "tls", "failures", "connections without a complete handshake, or closed for abuse, by reason", MK_COUNTER_SUM};

static const char *const reasons[TLS_COUNTS] = {
    [TLS_COUNT_PLAINTEXT] = "plaintext", [TLS_COUNT_CLIENT_LEFT] = "client_left", [TLS_COUNT_FAILED] = "handshake",
    [TLS_COUNT_NO_DATA] = "no_data",     [TLS_COUNT_KEY_UPDATES] = "key_updates",
};

enum { VERSIONS = 2 };
static const char *const versions[VERSIONS] = {"1.2", "1.3"};

static const struct mk_counter *failures[TLS_COUNTS], *handshakes[VERSIONS][2];

/* Connections that have outlived a stop of the plugin may be reading: the same value is not written again. */
static void set_counter(const struct mk_counter **to, const struct mk_counter *counter)
{
    if (*to != counter)
        *to = counter;
}

void tls_counters_open(void)
{
    for (unsigned i = 0; i < TLS_COUNTS; i++)
        set_counter(&failures[i],
                    mk_counter_open(&failures_info, &(struct mk_counter_label){"reason", mk_str_c(reasons[i])}, 1));
    for (unsigned i = 0; i < VERSIONS; i++)
        for (unsigned resumed = 0; resumed < 2; resumed++) {
            struct mk_counter_label labels[] = {{"version", mk_str_c(versions[i])},
                                                {"resumed", resumed ? MK_STR("yes") : MK_STR("no")}};
            set_counter(&handshakes[i][resumed], mk_counter_open(&handshakes_info, labels, 2));
        }
}

void tls_counters_add_handshake(const struct tls_conn *conn)
{
    assert(conn->worker && handshakes[0][0]);
    unsigned version = SSL_version(conn->ssl) == TLS1_3_VERSION, resumed = SSL_session_reused(conn->ssl) == 1;
    mk_counter_add(handshakes[version][resumed], conn->worker, 1);
}

void tls_counters_add(enum tls_count count, const struct mk_worker *worker)
{
    assert(count < TLS_COUNTS && failures[count]);
    mk_counter_add(failures[count], worker, 1);
}
