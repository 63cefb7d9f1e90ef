// SPDX-License-Identifier: Apache-2.0
/*
 * Which headers scripts get, and which of theirs clients get.
 */
#ifndef MK_KIT_CGI_HEADERS_H
#define MK_KIT_CGI_HEADERS_H

#include <monkey/base/str.h>

/* Tells whether a header of a request becomes a variable. `connection`: the value of Connection. */
bool mk__headers_reach_script(struct mk_str name, struct mk_str connection, bool pass_authorization);
/* Tells whether a header of a script goes to the client as it is, if its Connection does not name it. */
bool mk__headers_reach_client(struct mk_str name);

#endif
