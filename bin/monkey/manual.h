// SPDX-License-Identifier: Apache-2.0
/*
 * One section of the manual of all directives.
 */
#ifndef MONKEY_MANUAL_H
#define MONKEY_MANUAL_H

#include <monkey/monkey.h>

/*
 * Appends the section `name` of `manual`: "TLS" or "[TLS]" in any case. A section that both the server and hosts have
 * appears twice. Returns 0, -ENOENT (there is none of this name) or -ENOMEM.
 */
int manual_add_section(struct mk_str manual, const char *name, struct mk_buf *out);

/* Appends the names of all sections, with a space between them. */
void manual_list_sections(struct mk_str manual, struct mk_buf *out);

#endif
