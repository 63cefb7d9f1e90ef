// SPDX-License-Identifier: Apache-2.0
/*
 * What this plugin keeps for the process, a thread and a host.
 */
#ifndef CGI_PROCESS_H
#define CGI_PROCESS_H

#include "conf.h"
#include "slots.h"

#include <monkey/kit/source.h>
#include <monkey/kit/threads.h>

extern const struct mk_plugin mk_plugin_cgi;

enum { THREAD_BUFFER_BYTES = 64 * 1024 };

struct process {
    struct mk_threads threads;
    struct slots_list slots;
    struct mk_child_starter *starter;
};

struct thread {
    struct mk_thread base;
    struct process *process;
    struct mk_account *account;
    struct mk_child_channel *channel; /* NULL: none is open yet */
    struct mk_list runs;              /* struct run */
    char buffer[THREAD_BUFFER_BYTES];
};

/* A section of a host, with its slots. */
struct section {
    struct section *next;
    const struct cgi_conf *conf;
    struct slots *slots;
    struct mk_source_folder root; /* of Root, or Script itself; not used without */
};

struct host {
    const struct mk_host *host;
    struct section *first;
    struct mk_source_root root;
};

static inline struct thread *thread_of(struct mk_thread *base)
{
    return MK_CONTAINER_OF(base, struct thread, base);
}

#endif
