// SPDX-License-Identifier: Apache-2.0
#ifndef MK_KIT_CGI_CGI_H
#define MK_KIT_CGI_CGI_H

#include <monkey/base/str.h>

/* ── which headers scripts get, and which of theirs clients get ── */

/* Tells whether a header of a request becomes a variable. `connection`: the value of Connection. */
bool mk__cgi_header_reaches_script(struct mk_str name, struct mk_str connection, bool pass_authorization);
/* Tells whether a header of a script goes to the client as it is, if its Connection does not name it. */
bool mk__cgi_header_reaches_client(struct mk_str name);

#endif
