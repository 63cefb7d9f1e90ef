// SPDX-License-Identifier: Apache-2.0
/*
 * The directive InterceptErrors (intercept.h).
 */
#include "intercept.h"

#include <monkey/buf.h>

#include <errno.h>

int intercept_parse(const struct mk_conf_value *value, void *intercept, struct mk_arena *arena, struct mk_buf *error)
{
    struct intercept *in = intercept;
    bool is_on = value->n == 1 && mk_str_ieq(value->text, MK_STR("On"));
    (void)arena;
    memset(in->statuses, is_on, sizeof(in->statuses));
    if (is_on || (value->n == 1 && mk_str_ieq(value->text, MK_STR("Off"))))
        return 0;
    for (uint32_t i = 0; i < value->n; i++) {
        uint64_t status;
        if (!mk_str_u64(value->words[i], INTERCEPT_LAST, &status) || status < INTERCEPT_FIRST) {
            mk_buf_addf(error, "it takes On, Off, or statuses from %d to %d", INTERCEPT_FIRST, INTERCEPT_LAST);
            return -EINVAL;
        }
        in->statuses[status - INTERCEPT_FIRST] = true;
    }
    return 0;
}
