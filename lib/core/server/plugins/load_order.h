// SPDX-License-Identifier: Apache-2.0
/*
 * The place of a plugin in plugins.load: where a line that is missing belongs, and which plugins must not follow
 * others. Pure.
 */
#ifndef MK_SERVER_LOAD_ORDER_H
#define MK_SERVER_LOAD_ORDER_H

#include <monkey/base/buf.h>

/*
 * Describes where "Load NAME" belongs in the text of the file, as the end of a sentence: `: remove the # in line 9`, or
 * `, below "Load liana" in line 4`. `order` has the plugins in their order, and ends with NULL. Adds nothing if the
 * plugin or the place is not known.
 */
MK_COLD void mk__load_order_describe(struct mk_str text, const char *const *order, const char *name,
                                     struct mk_buf *out);

/* What goes wrong if a plugin follows another one. */
struct mk__load_order_fault {
    const char *name, *before, *consequence;
    bool is_error; /* else a warning */
};

/* Returns NULL if nothing is known. */
MK_COLD const struct mk__load_order_fault *mk__load_order_check(const char *name, const char *before);

#endif
