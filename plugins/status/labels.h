// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the labels of a counter as <monkey/counters.h> has them: host="example.org",status="2xx". Pure.
 */
#ifndef STATUS_LABELS_H
#define STATUS_LABELS_H

#include <monkey/counters.h>

enum { LABELS_VALUE_BYTES = MK_COUNTER_LABEL_MAX + 1 };

/* Returns the value of a label without its escapes, in `storage` of LABELS_VALUE_BYTES; empty: there is no such label.
 */
struct mk_str labels_get(struct mk_str labels, struct mk_str name, char *storage);

#endif
