// SPDX-License-Identifier: Apache-2.0
/*
 * The Content-Security-Policy of a theme: what its pages may load and run.
 */
#ifndef DIRLISTING_POLICY_H
#define DIRLISTING_POLICY_H

#include "template.h"

/*
 * Appends the policy: the scripts and styles in the templates (by their SHA-256 digests), pictures and fonts of this
 * host; scripts and style sheets in files of this host only if the templates refer to such files. Nothing else.
 */
void policy_write(struct mk_buf *out, const struct template_codes *codes, const struct markup *markup);

#endif
