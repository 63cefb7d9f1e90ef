// SPDX-License-Identifier: Apache-2.0
/*
 * What a response to a check says of its server: the first bytes are a status, the set of those that are right, and the
 * length of a text, which follows, before a body. The same is found by a search of each place.
 */
#include "plugins/upstream/checks.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { PREFIX = 2 + sizeof(struct mk_status_set) + 1 };

static bool has_text(struct mk_str body, struct mk_str text)
{
    bool found = !text.len;
    for (size_t at = 0; at + text.len <= body.len && !found; at++)
        found = memcmp(body.p + at, text.p, text.len) == 0;
    return found;
}

static bool has_status(const struct mk_status_set *set, unsigned status)
{
    return status >= 100 && status < 600 && set->bits[(status - 100) / 64] & UINT64_C(1) << (status - 100) % 64;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct check_conf conf = {.what = {CHECK_HTTP, MK_STR("/health")}, .method = MK_STR("GET")};
    char storage[64];
    struct mk_buf reason;
    if (size < PREFIX)
        return 0;
    struct mk_str rest = mk_str((const char *)data + PREFIX, size - PREFIX);
    size_t text = data[PREFIX - 1] < rest.len ? data[PREFIX - 1] : rest.len;
    memcpy(&conf.statuses, data + 2, sizeof(conf.statuses));
    conf.text = mk_str(rest.p, text);
    struct mk_http_response response = {.error = "",
                                        .status = (data[0] << 8 | data[1]) % 1024,
                                        .body = mk_str(rest.p + text, rest.len - text)};
    bool is_right = has_status(&conf.statuses, response.status) && has_text(response.body, conf.text);
    mk_buf_init_fixed(&reason, storage, sizeof(storage));
    enum check_result result = check_evaluate(&conf, &response, &reason);
    assert(result == (is_right ? CHECK_PASSED : CHECK_FAILED));
    assert(is_right == (reason.len == 0) && !reason.err);
    return 0;
}
