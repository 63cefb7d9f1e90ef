// SPDX-License-Identifier: Apache-2.0
/* What a response says of a server. */
#include "testing.h"

#include <errno.h>

#include "plugins/upstream/checks.h"

static struct check_conf conf;

static int set_up(void **state)
{
    (void)state;
    conf = (struct check_conf){.what = {CHECK_HTTP, MK_STR("/health")}, .method = MK_STR("GET")};
    conf.statuses.bits[1] = UINT64_C(1) << 36; /* 200 */
    return 0;
}

static char reason_text[512];

static enum check_result judge(const struct mk_http_response *response)
{
    struct mk_buf reason;
    mk_buf_init_fixed(&reason, reason_text, sizeof(reason_text));
    enum check_result result = check_evaluate(&conf, response, &reason);
    assert_int_equal(reason.len > 0, result != CHECK_PASSED);
    (void)mk_buf_cstr(&reason);
    return result;
}

TEST(statuses_and_texts, set_up, NULL)
{
    struct mk_http_response response = {.error = "", .status = 200, .body = MK_STR("all is well")};
    assert_int_equal(judge(&response), CHECK_PASSED);
    conf.text = MK_STR("well");
    assert_int_equal(judge(&response), CHECK_PASSED);
    conf.text = MK_STR("Well");
    assert_int_equal(judge(&response), CHECK_FAILED);
    assert_string_equal(reason_text, "GET /health: the text was not found");
    response.body = MK_STR_NONE;
    assert_int_equal(judge(&response), CHECK_FAILED);
    response.status = 503;
    assert_int_equal(judge(&response), CHECK_FAILED);
    assert_string_equal(reason_text, "GET /health: 503");
}

/* The reason has its beginning. */
TEST(a_long_path, set_up, NULL)
{
    static char path[2048];
    memset(path, 'a', sizeof(path));
    conf.what.path = mk_str(path, sizeof(path));
    assert_int_equal(judge(&(struct mk_http_response){.error = "", .status = 503}), CHECK_FAILED);
    assert_int_equal(strlen(reason_text), strlen("GET : 503") + 200);
    assert_string_equal(reason_text + 4 + 200, ": 503");
}

TEST(a_connection_is_enough, set_up, NULL)
{
    conf.what.kind = CHECK_TCP;
    assert_int_equal(judge(&(struct mk_http_response){.error = ""}), CHECK_PASSED);
}

TEST(errors, set_up, NULL)
{
    static const struct {
        int err;
        enum check_result result;
    } rows[] = {
        {-ECONNREFUSED, CHECK_FAILED}, {-ETIMEDOUT, CHECK_FAILED}, {-EINVAL, CHECK_FAILED},
        {-ENXIO, CHECK_FAILED},        {-ENOMEM, CHECK_NOT_MADE},  {-EMFILE, CHECK_NOT_MADE},
        {-ENFILE, CHECK_NOT_MADE},     {-EAGAIN, CHECK_NOT_MADE},  {-EADDRNOTAVAIL, CHECK_NOT_MADE},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(judge(&(struct mk_http_response){.err = rows[i].err, .error = "why"}), rows[i].result);
        assert_string_equal(reason_text, "why");
    }
}
