// SPDX-License-Identifier: Apache-2.0
/*
 * Parses weights (weight.h).
 */
#include "http/message/weight.h"

int mk__weight_parse(struct mk_str s)
{
    int value = 0;
    if (!s.len || s.len > 5 || (s.len > 1 && s.p[1] != '.'))
        return -1;
    for (size_t i = 0; i < 5; i++) {
        char c = i < s.len ? s.p[i] : '0';
        if (i == 1)
            continue;
        if (c < '0' || c > '9')
            return -1;
        value = value * 10 + (c - '0');
    }
    return value <= MK__WEIGHT_MAX ? value : -1;
}
