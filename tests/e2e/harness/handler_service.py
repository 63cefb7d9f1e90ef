# SPDX-License-Identifier: Apache-2.0
"""Services whose handler does what a test is about."""

from .services import HEAD

BEGIN = f"""{HEAD}
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Answers with what a check has found: the first row of the source that was wrong, or "fine". */
static int wrong;
#define CHECK(condition) ((condition) ? (void)0 : (void)(wrong = wrong ? wrong : __LINE__))

static void answer(duda_request_t *dr)
{{
    if (wrong)
        response->printf(dr, "line %d\\n", wrong);
    else
        response->print(dr, "fine", 4);
    response->end(dr, NULL);
}}
"""


def service(code, main="", end=""):
    """A service with a handler `handle(dr)` of /x/handle; /x/ is answered "fine"."""
    return f"""{BEGIN}
{code}
int duda_main(void)
{{
    router->get("/", answer);
    {main}
    return router->get("/handle", handle) ? 0 : -1;
}}

void duda_exit(void)
{{
    {end}
}}
"""


def handler(body):
    return "static void handle(duda_request_t *dr)\n{\n" + body + "\n}\n"


def ask(server, target):
    with server.connect() as client:
        reply = client.ask(target)
        return reply.status, reply.body.decode()
