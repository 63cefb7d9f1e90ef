// SPDX-License-Identifier: Apache-2.0
/*
 * For tests of scripts: requests in an environment without time, for a section [CGI] of a real generation, with a
 * worker. The processes are the test's: it has the other ends of their pipes, and says when they start and end. What
 * finds scripts is the test's, too. Events of pipes come when the test says so.
 */
#ifndef MK_UNIT_PLUGINS_CGI_SCRIPT_FIXTURE_H
#define MK_UNIT_PLUGINS_CGI_SCRIPT_FIXTURE_H

#include "testing.h"

#include "harness.h"

#include "plugins/cgi/cgi.h"

enum { SCRIPTS_MAX = 16 };

/* A process that was asked for. */
struct script {
    struct mk_child *child; /* NULL: it is closed */
    int fds[3];             /* its own; -1: none */
    char path[256], folder[256];
    struct mk_buf args, env;
    unsigned stops;
    uint32_t grace_ms;
    bool is_dropped;
};

extern struct mk_test_fixture w;
extern struct script scripts[SCRIPTS_MAX];
extern unsigned n_scripts, n_channels;
extern int start_err;  /* of the next starts; 0: none */
extern int lookup_err; /* of what finds scripts; 0: /tmp/s is found */
extern bool may_run;
extern const char *script_file, *script_info; /* what is found */
extern char looked_up[256];                   /* the path that was looked for last */
extern int access_status;                     /* of allows_path: 0: allowed */
extern int opened_fd;                         /* of open_path: a file, or -errno */

/* Opens all with the keys of a section [CGI] with `Match /cgi` and `Root /tmp`, and further sections behind them. */
void script_fixture_open(const char *keys);
/* Closes all; scripts that run are dropped. */
void script_fixture_close(void);

/* Sends a request with a new connection. */
struct mk_test_client *ask(const char *text);
#define GET(target) "GET " target " HTTP/1.1\r\nHost: h\r\n\r\n"

/* Compares the status of what the client has got since the last call. */
void expect_status(struct mk_test_client *c, int status);

struct run *run_of(const struct script *s);
/* The process runs, or could not be started. */
void report_start(struct script *s, int err);
/* Writes into its output, and tells the run of it. */
void print(struct script *s, const char *text);
/* Closes its output, and tells the run of it. */
void close_output(struct script *s);
/* The process ends with a status as of waitpid(2), its output first. */
void end_script(struct script *s, int status);
/* Reads from its input what is there, up to `size` - 1 bytes. Returns their number, 0 (its end) or -EAGAIN. */
ssize_t read_input(struct script *s, char *to, size_t size);
/* Returns the value of a variable of the script; NULL: it has none. */
const char *get_variable(const struct script *s, const char *name);

#endif
