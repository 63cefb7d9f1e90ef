// SPDX-License-Identifier: Apache-2.0
/*
 * main() of the unit programs, of which there is one for each folder. `unit-http conn_test.c "*timeout*"` runs the
 * tests of a file whose names match, without a pattern all of them. Without arguments it runs all files, each in a
 * separate process, as ctest does, so that static variables that a file leaves changed are not seen by the next.
 */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static struct mk_test_case *first, **last = &first;

void mk_test_add(struct mk_test_case *row, const CMFixtureFunction fixture[2])
{
    row->test.setup_func = fixture[0];
    row->test.teardown_func = fixture[1];
    *last = row;
    last = &row->next;
}

static bool is_in(const struct mk_test_case *row, const char *name)
{
    size_t path_len = strlen(row->file), len = strlen(name);
    const char *end = row->file + path_len - len;
    return path_len >= len && strcmp(end, name) == 0 && (end == row->file || end[-1] == '/' || *name == '/');
}

/* Returns the status of the process. */
static int run_file(const char *name)
{
    struct CMUnitTest *tests = NULL, file = {0};
    size_t n = 0;
    for (const struct mk_test_case *row = first; row; row = row->next) {
        if (!is_in(row, name))
            continue;
        if (!row->test.test_func) {
            file = row->test;
            continue;
        }
        tests = realloc(tests, (n + 1) * sizeof(*tests));
        if (!tests)
            return EXIT_FAILURE;
        tests[n++] = row->test;
    }
    if (n == 0) {
        fprintf(stderr, "no file of tests has the name \"%s\"\n", name);
        return EXIT_FAILURE;
    }
    int failed = _cmocka_run_group_tests(name, tests, n, file.setup_func, file.teardown_func);
    free(tests);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_process(const char *name)
{
    int status = EXIT_FAILURE;
    pid_t pid = fork();
    if (pid == 0)
        exit(run_file(name));
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
        fprintf(stderr, "%s failed\n", name);
    return pid < 0 || status ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    int result = EXIT_SUCCESS;
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    if (argc > 1)
        return run_file(argv[1]);
    const char *file = "";
    for (const struct mk_test_case *row = first; row; row = row->next) {
        if (row->file != file && run_process(row->file) != EXIT_SUCCESS)
            result = EXIT_FAILURE;
        file = row->file;
    }
    return result;
}
