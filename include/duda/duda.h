// SPDX-License-Identifier: Apache-2.0
/*
 * The API for web services (docs/guide/write-services.md). A service is a shared object, NAME.duda, which the plugin
 * duda loads for a virtual host and serves at /NAME/:
 *
 *     #include <duda/duda.h>
 *
 *     DUDA_REGISTER("examples", "hello");
 *
 *     static void say_hello(duda_request_t *dr)
 *     {
 *         response->printf(dr, "hello\n");
 *         response->end(dr, NULL);
 *     }
 *
 *     int duda_main(void)
 *     {
 *         return router->get("/", say_hello) ? 0 : -1;
 *     }
 *
 * Threads: a request is handled in the thread of one worker, and all of its callbacks run there. They must not block.
 * Unless its header says otherwise, a function with a `dr` is for that thread, and a function without one is for
 * duda_main() and all callbacks.
 */
#ifndef DUDA_DUDA_H
#define DUDA_DUDA_H

#include "conf.h"
#include "console.h"
#include "cookie.h"
#include "data.h"
#include "dthread.h"
#include "event.h"
#include "fconf.h"
#include "form.h"
#include "gc.h"
#include "global.h"
#include "logger.h"
#include "mem.h"
#include "msg.h"
#include "multipart.h"
#include "param.h"
#include "qs.h"
#include "request.h"
#include "response.h"
#include "router.h"
#include "service.h"
#include "session.h"
#include "sse.h"
#include "task.h"
#include "tunnel.h"
#include "worker.h"
#include "xtime.h"

#endif
