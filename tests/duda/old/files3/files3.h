// SPDX-License-Identifier: Apache-2.0
/* What the files of the service share. */
#include "webservice.h"

/* Globals in a header, without extern, as all compilers once allowed. */
int visits;
char *greeting;
struct mk_list names;

struct name {
    char *text;
    struct mk_list _head;
};

void cb_list(duda_request_t *dr);
void cb_early(duda_request_t *dr);
void remove_name(struct name *n);
