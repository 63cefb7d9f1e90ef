// SPDX-License-Identifier: Apache-2.0
/*
 * A script that answers a request.
 */
#ifndef CGI_RUN_H
#define CGI_RUN_H

#include "process.h"

/* Finds the section for a path; NULL: none. Returns 0 or -errno: it is not known. */
int run_find_section(const struct mk_host *host, struct mk_str path, const struct section **ret);
/* Answers a request with a script of the section, now or later; also with an error. */
void run_begin(struct mk_request *req, struct thread *thread, const struct section *section);
/* Drops the scripts of a worker whose thread has ended: the starter ends them. */
void runs_stop(struct thread *thread, const struct mk_worker *worker);

#endif
