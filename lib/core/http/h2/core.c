// SPDX-License-Identifier: Apache-2.0
/*
 * The table of functions that HTTP/2 may call (http/h2/core.h).
 */
#include "http/h2/core.h"

#define MEMBER(type, name, parameters, arguments) .name = name,

const struct mk__h2_core mk__h2_core = {MK__H2_CORE(MEMBER)};
