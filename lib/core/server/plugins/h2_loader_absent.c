// SPDX-License-Identifier: Apache-2.0
/* For builds without HTTP/2 (MK_HTTP2, MK_LEAN): clients have HTTP/1.1. */
#include "server/plugins/h2_loader.h"

void mk__h2_loader_find(void)
{
}

void mk__h2_loader_check(struct mk__conf *conf)
{
    (void)conf;
}

const struct mk__proto *mk__h2_loader_open(void)
{
    return NULL;
}

const char *mk__h2_loader_error(void)
{
    return "not in this build";
}
