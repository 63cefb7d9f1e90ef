// SPDX-License-Identifier: Apache-2.0
/* Retry: its values, what it allows, and the budget of a group. */
#include "plugins/upstream/conf.h"

#include "plugins/upstream/values_fixture.h"

TEST(values)
{
    struct retry retry;
    assert_int_equal(parse_words(retry_parse, "Off", &retry, NULL), 0);
    assert_int_equal(retry.kind, RETRY_OFF);
    assert_int_equal(parse_words(retry_parse, "idempotent 502 503", &retry, NULL), 0);
    assert_int_equal(retry.kind, RETRY_IDEMPOTENT);
    assert_true(mk_status_set_has(&retry.statuses, 503));
    assert_int_equal(parse_words(retry_parse, "429", &retry, NULL), 0);
    assert_int_equal(retry.kind, RETRY_CONNECT);
    assert_true(mk_status_set_has(&retry.statuses, 429));
    assert_false(mk_status_set_has(&retry.statuses, 503));
    assert_int_equal(parse_words(retry_parse, "Off 502", &retry, NULL), -EINVAL);
    assert_int_equal(parse_words(retry_parse, "Always", &retry, NULL), -EINVAL);
    assert_int_equal(parse_words(retry_parse, "502 Connect", &retry, NULL), -EINVAL);
}

TEST(losses)
{
    static const struct {
        const char *value;
        bool not_reached, kept_ended, sent, status;
    } rows[] = {
        {"Off", false, false, false, false},     {"Connect", true, true, false, false},
        {"Idempotent", true, true, true, false}, {"Connect 503", true, true, false, true},
        {"502", true, true, false, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct retry retry;
        assert_int_equal(parse_words(retry_parse, rows[i].value, &retry, NULL), 0);
        const bool allowed[] = {rows[i].not_reached, rows[i].kept_ended, rows[i].sent, rows[i].status};
        for (unsigned failure = MK_UPSTREAM_NOT_REACHED; failure <= MK_UPSTREAM_STATUS; failure++) {
            const struct mk_upstream_tries tries = {.n = 1,
                                                    .failure = (enum mk_upstream_failure)failure,
                                                    .status = 503};
            assert_int_equal(retry_allows(&retry, &tries), allowed[failure]);
        }
    }
}

/* Takes retries until there are no more; returns their number. */
static unsigned use_up(struct retry_budget *budget, uint64_t now, uint64_t percent)
{
    unsigned n = 0;
    for (; n < 1000 && retry_budget_allows(budget, now, percent); n++)
        retry_budget_note_retry(budget, now);
    return n;
}

TEST(budget_of_ten_seconds)
{
    struct retry_budget budget = {0};
    assert_int_equal(use_up(&budget, 5000, 20), RETRIES_LEAST);
    for (unsigned i = 0; i < 100; i++)
        retry_budget_note_request(&budget, 5000 + i * 10);
    assert_int_equal(use_up(&budget, 6500, 20), 20 - RETRIES_LEAST);
    assert_int_equal(use_up(&budget, 14999, 20), 0);
    assert_int_equal(use_up(&budget, 16999, 20), RETRIES_LEAST); /* only those after the window has moved */
    assert_int_equal(use_up(&budget, 1000000, 0), RETRIES_LEAST);
}
