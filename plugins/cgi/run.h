// SPDX-License-Identifier: Apache-2.0
/*
 * A script that answers a request.
 */
#ifndef CGI_RUN_H
#define CGI_RUN_H

#include "process.h"

/* Answers a request with a script of the section, now or later; also with an error. */
void run_begin(struct mk_request *req, struct thread *thread, const struct section *section);
/* Drops the scripts of a worker whose thread has ended: the starter ends them. */
void runs_stop(struct thread *thread, const struct mk_worker *worker);

#endif
