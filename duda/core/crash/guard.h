// SPDX-License-Identifier: Apache-2.0
/*
 * Finds services that leave a callback by another way than a return:
 *
 *     exit()           would end the server with a status that says that all is well
 *     pthread_exit()   would end a thread of the server, whose clients then wait forever
 *     fork()           a child that returns would serve the clients a second time
 *
 * The first two are logged and become a crash (crash.h), so that the supervisor starts the server again; the child
 * ends.
 */
#ifndef DUDA_CORE_CRASH_GUARD_H
#define DUDA_CORE_CRASH_GUARD_H

/* Installs the functions that the C library calls; once for the process. */
void guard_start(void);
/* The calling thread of the server runs code of services from now on. */
void guard_enter_thread(void);

#endif
