// SPDX-License-Identifier: Apache-2.0
/*
 * The command line of mk_passwd (options.h).
 */
#include "options.h"

#include "../htpasswd.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "usage: mk_passwd [OPTION...] FILE USER\n"
    "\n"
    "Adds a user to a file of passwords for the plugin auth of monkey, or sets a new password. The password is asked\n"
    "for without echo, or is the first line of the standard input if that is not a terminal.\n"
    "\n"
    "  -c, --create        create FILE, which must not exist, with mode 600\n"
    "  -D, --delete        delete the user\n"
    "  -v, --verify        check the password of the user\n"
    "  -t, --type=TYPE     the kind of hash: yescrypt (the default), bcrypt, sha512, sha256, apr1\n"
    "  -C, --cost=N        yescrypt: 1 to 7 (default 5), bcrypt: 4 to 13 (default 10),\n"
    "                      sha512 and sha256: 1000 to 999999 rounds (default 5000)\n"
    "  -i, --stdin         read the password from the standard input even if that is a terminal\n"
    "  -h, --help          print this\n"
    "\n"
    "FILE is replaced as a whole and keeps its owner and mode. A running server reads it again by itself.\n"
    "Exit codes: 0 done, 1 a file or the password cannot be used, 2 wrong usage, 3 wrong password or no such user.\n";

static const struct option longs[] = {
    {"create", no_argument, NULL, 'c'},     {"delete", no_argument, NULL, 'D'},
    {"verify", no_argument, NULL, 'v'},     {"stdin", no_argument, NULL, 'i'},
    {"type", required_argument, NULL, 't'}, {"cost", required_argument, NULL, 'C'},
    {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0},
};

/* The kinds that can be made, and the costs that the server accepts. */
static const struct {
    const char *name;
    enum scheme scheme;
    unsigned cost_min, cost, cost_max;
} types[] = {
    {"yescrypt", SCHEME_YESCRYPT, 1, 5, 7},
    {"bcrypt", SCHEME_BCRYPT, 4, 10, SCHEME_BCRYPT_COST_MAX},
    {"sha512", SCHEME_SHA512, 1000, 5000, SCHEME_ROUNDS_MAX},
    {"sha256", SCHEME_SHA256, 1000, 5000, SCHEME_ROUNDS_MAX},
    {"apr1", SCHEME_APR1, 0, 0, 0},
};

enum { TYPES = MK_COUNT_OF(types) };

static bool fail_usage(int *ret_code, const char *message)
{
    fprintf(stderr, "mk_passwd: %s\nTry mk_passwd --help.\n", message);
    *ret_code = EXIT_USAGE;
    return false;
}

static bool set_action(struct options *o, enum action action, int *ret_code)
{
    if (o->action != ACTION_SET && o->action != action)
        return fail_usage(ret_code, "only one of --create, --delete and --verify can be given");
    o->action = action;
    return true;
}

/* What the options say, before they are checked. */
struct given {
    const char *type, *cost;
};

static bool read_option(struct options *o, struct given *given, int c, int *ret_code)
{
    switch (c) {
    case 'c':
        return set_action(o, ACTION_CREATE, ret_code);
    case 'D':
        return set_action(o, ACTION_DELETE, ret_code);
    case 'v':
        return set_action(o, ACTION_VERIFY, ret_code);
    case 'i':
        o->from_stdin = true;
        return true;
    case 't':
        given->type = optarg;
        return true;
    case 'C':
        given->cost = optarg;
        return true;
    case 'h':
        fputs(help, stdout);
        *ret_code = EXIT_DONE;
        return false;
    default: /* getopt_long() has printed a message */
        *ret_code = EXIT_USAGE;
        return false;
    }
}

static bool read_cost(struct options *o, const struct given *given, unsigned type, int *ret_code)
{
    char *end = NULL, message[128];
    unsigned long cost = given->cost ? strtoul(given->cost, &end, 10) : types[type].cost;
    o->cost = (unsigned)cost;
    if (given->cost && !types[type].cost_max)
        return fail_usage(ret_code, "this type has no cost");
    if (cost >= types[type].cost_min && cost <= types[type].cost_max && (!given->cost || (end > given->cost && !*end)))
        return true;
    snprintf(message, sizeof(message), "the cost of %s is a number from %u to %u", types[type].name,
             types[type].cost_min, types[type].cost_max);
    return fail_usage(ret_code, message);
}

static bool read_type(struct options *o, const struct given *given, int *ret_code)
{
    unsigned i = 0;
    while (given->type && i < TYPES && strcmp(given->type, types[i].name) != 0)
        i++;
    if (i == TYPES)
        return fail_usage(ret_code, "the type is yescrypt, bcrypt, sha512, sha256 or apr1");
    o->scheme = types[i].scheme;
    return read_cost(o, given, i, ret_code);
}

static bool read_user(struct options *o, const char *user, int *ret_code)
{
    size_t at;
    o->user = mk_str_c(user);
    const char *error = htpasswd_check_name(o->user, &at);
    if (!error && user[0] == '#')
        error = "the name of a user cannot begin with #, which begins a comment";
    return error ? fail_usage(ret_code, error) : true;
}

bool options_read(struct options *o, int argc, char **argv, int *ret_code)
{
    struct given given = {NULL, NULL};
    int c;
    *o = (struct options){.action = ACTION_SET};
    while ((c = getopt_long(argc, argv, "cDvit:C:h", longs, NULL)) != -1)
        if (!read_option(o, &given, c, ret_code))
            return false;
    if (argc - optind == 3)
        return fail_usage(ret_code, "a password on the command line can be seen by all users of the machine: leave it "
                                    "out, and mk_passwd asks for it, or write it to the standard input");
    if (argc - optind != 2)
        return fail_usage(ret_code, "the file and the name of the user are needed");
    o->path = argv[optind];
    return read_type(o, &given, ret_code) && read_user(o, argv[optind + 1], ret_code);
}
