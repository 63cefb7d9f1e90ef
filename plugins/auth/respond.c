// SPDX-License-Identifier: Apache-2.0
/*
 * The responses of the plugin (respond.h).
 */
#include "respond.h"

#include <stdio.h>

void respond_challenge(struct mk_request *req, struct mk_str challenge)
{
    mk_response_error(req, 401);
    mk_response_header_ref(req, MK_STR("WWW-Authenticate"), challenge);
}

void respond_later(struct mk_request *req, int status, uint32_t wait_ms)
{
    char seconds[16];
    snprintf(seconds, sizeof(seconds), "%u", wait_ms / 1000 + (wait_ms % 1000 != 0));
    mk_response_error(req, status);
    mk_response_header(req, MK_STR("Retry-After"), mk_str_c(seconds));
    mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("no-store"));
}
