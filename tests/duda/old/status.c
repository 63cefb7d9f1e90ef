// SPDX-License-Identifier: Apache-2.0
/* Level 0: a status page of the machine: interfaces with methods, and files of /proc. */
#include "webservice.h"
#include <sys/utsname.h>

DUDA_REGISTER("Old services", "Status of the machine");

duda_logger_t log_hits;

/* The line of a file that begins with a word. */
static char *find_line(char *text, char *word)
{
    int at = monkey->str_search(text, word, MK_STR_INSENSITIVE);
    char *end;

    if (at < 0)
        return NULL;
    end = strchr(text + at, '\n');
    return monkey->str_copy_substr(text, at, end ? end - text : strlen(text));
}

void cb_system(duda_request_t *dr)
{
    struct utsname name;
    char *what = param->get(dr, 0);
    mk_pointer iface = dr->interface;

    gc->add(dr, what);
    uname(&name);
    response->http_status(dr, 200);
    if (strcmp(what, "system") == 0) {
        response->printf(dr, "%.*s %s\n", (int)iface.len, iface.data, name.sysname);
    } else if (strcmp(what, "pid") == 0) {
        response->printf(dr, "%i\n", getpid() > 0);
    } else {
        response->http_status(dr, 404);
    }
    response->end(dr, NULL);
}

void cb_process(duda_request_t *dr)
{
    char *text = fconf->read_file("/proc/self/status");
    char *line;

    response->http_status(dr, 200);
    response->http_header(dr, "Content-Type: text/plain");
    if (!text) {
        response->http_status(dr, 500);
        response->end(dr, NULL);
    }
    line = find_line(text, "THREADS:");
    response->print(dr, line, strlen(line));
    gc->add(dr, text);
    gc->add(dr, line);
    logger->print(&log_hits, "process");
    response->end(dr, NULL);
}

int duda_main()
{
    duda_interface_t *machine, *process;
    duda_method_t *method;
    duda_param_t *what;

    duda_logger_create(&log_hits, "hits.log");

    machine = map->interface_new("machine");
    method = map->method_new("show", "cb_system", 1);
    what = map->param_new("what", 16);
    map->method_add_param(what, method);
    map->interface_add_method(method, machine);
    duda_service_add_interface(machine);

    process = map->interface_new("process");
    method = map->method_new("threads", "cb_process", 0);
    map->interface_add_method(method, process);
    duda_service_add_interface(process);

    map->static_add("/", "cb_process");
    return 0;
}
