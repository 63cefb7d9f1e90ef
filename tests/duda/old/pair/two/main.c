// SPDX-License-Identifier: Apache-2.0
/* Level 1: one of two services that include a part of their Makefile.in. */
#include "text.h"

DUDA_REGISTER("Old services", "Pair");

void cb_number(duda_request_t *dr)
{
    send_text(dr, NUMBER);
}

int duda_main()
{
    map->static_add("/number", "cb_number");
    return 0;
}
