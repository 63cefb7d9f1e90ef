// SPDX-License-Identifier: Apache-2.0
/*
 * Finding HTTP/2, an object of its own beside the plugins (http/h2/core.h).
 */
#ifndef MK_SERVER_H2_LOADER_H
#define MK_SERVER_H2_LOADER_H

#include "conf/conf.h"
#include "http/h2/core.h"

extern const struct mk_conf_section mk__section_http2;

/* Looks where it must be, once. The process context, before the others are called. */
void mk__h2_loader_find(void);
/* Finds it, and warns where nobody could open it, as far as a look at the file tells. The process context. */
void mk__h2_loader_check(struct mk__conf *conf);
/* Opens it, once. NULL: it cannot be had. Any thread. */
const struct mk__proto *mk__h2_loader_open(void);
/* Why it cannot be had, for people; NULL: it can. After mk__h2_loader_open(). */
const char *mk__h2_loader_error(void);
/* The version of nghttp2, "1.52.0"; NULL: it cannot be had. */
const char *mk__h2_loader_version(void);

#endif
