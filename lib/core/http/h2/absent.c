// SPDX-License-Identifier: Apache-2.0
/* For builds without HTTP/2 (MK_HTTP2, MK_LEAN): clients have HTTP/1.1. */
#include "http/h2/h2.h"

const struct mk__proto *mk__h2_find(void)
{
    return NULL;
}
