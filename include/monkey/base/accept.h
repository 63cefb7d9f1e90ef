// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses the format of a response by Accept (RFC 9110 section 12.5.1). Pure. Accept-Encoding is read by
 * mk_accept_encoding() of <monkey/request.h>.
 */
#ifndef MONKEY_ACCEPT_H
#define MONKEY_ACCEPT_H

#include <stdbool.h>

#include "str.h"

MK_C_BEGIN

/* A media type that can be sent. */
struct mk_accept_offer {
    struct mk_str type;    /* without parameters */
    struct mk_str version; /* the parameter `version`, if the client names one; `.p` NULL: any */
    bool only_by_name;     /* the ranges type/ * and * / * do not include it */
};

/*
 * Returns the index of the offer with the highest weight, among equals the first; `fallback` if the client accepts none
 * of them, or if `value` is absent (`.p` NULL) or empty.
 *
 * An offer has the weight of the range that names it most specifically: type/subtype with its version, type/subtype,
 * type/ *, * / *; of equal ranges the highest weight counts. A range with a malformed weight is not acceptable, and
 * other malformed elements name nothing. Other parameters than `q` and `version` are ignored.
 */
MK_API unsigned mk_accept_choose(struct mk_str value, const struct mk_accept_offer *offers, unsigned n,
                                 unsigned fallback);

MK_C_END

#endif
