// SPDX-License-Identifier: Apache-2.0
/*
 * The header of services that were written for the original API, levels 0 to 2 (docs/internals/duda-compat.md). It
 * includes what services of that time expected. New services use <duda/duda.h>.
 *
 * Objects have the names of the original (`response->end(dr, NULL)`). A few of their functions are macros, which user
 * code cannot use as names of functions: end(dr, done), debug(dr, format, ...) and locate(file).
 */
#ifndef DUDA_WEBSERVICE_H
#define DUDA_WEBSERVICE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "compat/types.h"

/* Objects that are the same as those of new services. */
#include "conf.h"
#include "data.h"
#include "fconf.h"
#include "gc.h"
#include "global.h"
#include "logger.h"
#include "mem.h"
#include "msg.h"
#include "worker.h"
#include "xtime.h"

/* Headers whose objects have other forms here: only their types are wanted. */
#undef DUDA_OBJECT
#define DUDA_OBJECT(type, variable)
#include "cookie.h"
#include "event.h"
#include "map.h"
#include "param.h"
#include "qs.h"

#include "compat/routes.h"

#include "compat/console.h"
#include "compat/dthread.h"
#include "compat/event.h"
#include "compat/list.h"
#include "compat/monkey.h"
#include "compat/request.h"
#include "compat/response.h"
#include "compat/service.h"
#include "compat/session.h"

#endif
