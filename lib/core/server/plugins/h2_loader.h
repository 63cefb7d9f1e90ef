// SPDX-License-Identifier: Apache-2.0
/*
 * Finds and opens lib/monkey/protocols/http2.so, the shared object with HTTP/2 (http/h2/core.h).
 */
#ifndef MK_SERVER_H2_LOADER_H
#define MK_SERVER_H2_LOADER_H

#include "conf/conf.h"
#include "http/h2/core.h"

extern const struct mk_conf_section mk__section_http2;

/* Checks the file, once. To be called by the main thread before the other functions. */
void mk__h2_loader_find(void);
/* Does the same, and adds a warning to `conf` if the file cannot be opened. In the main thread. */
void mk__h2_loader_check(struct mk__conf *conf);
/* Opens it, once. Returns the protocol; NULL: it is not available. Any thread. */
const struct mk__proto *mk__h2_loader_open(void);
/* Returns why it is not available, as text; NULL: it is. After mk__h2_loader_open(). */
const char *mk__h2_loader_error(void);

#endif
