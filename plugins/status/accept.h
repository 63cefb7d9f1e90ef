// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses the format of a response by Accept (RFC 9110 section 12.5.1).
 */
#ifndef STATUS_ACCEPT_H
#define STATUS_ACCEPT_H

#include <monkey/str.h>

/* A media type that can be sent. */
struct accept_offer {
    struct mk_str type;
    struct mk_str version; /* the parameter `version`, if the client names one; `.p` NULL: any */
    bool only_by_name;     /* wildcards do not name it */
};

/*
 * Returns the index of the offer with the highest weight, among equals the first; `fallback` if the client accepts none
 * of them or `value` is absent (`.p` NULL) or malformed.
 */
unsigned accept_choose(struct mk_str value, const struct accept_offer *offers, unsigned n, unsigned fallback);

#endif
