// SPDX-License-Identifier: Apache-2.0
/*
 * Options as a table: parsing, the help text and the error messages come from the same rows.
 */
#include "program.h"

#include <monkey/base/str.h>

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── commands and options of other servers ── */

#define FOREGROUND "\"monkey -c DIR\" serves what the configuration in DIR says"
#define BACKGROUND "\"monkey -D -c DIR\" starts it in the background, and systemd starts it as a service"
#define FILES "\"monkey DIR\" serves the files in DIR"
#define STOP "\"monkey shell drain\", or SIGTERM, stops the server"
#define RELOAD "\"monkey shell reload\", or SIGHUP, loads the configuration again"
#define UPGRADE "\"monkey shell reload\" loads the configuration again, and SIGUSR2 starts a new program in its place"
#define SIGNALS "\"monkey shell reload\" loads the configuration again, \"monkey shell drain\" stops the server"
#define CHECK "\"monkey -t -c DIR\" checks the configuration in DIR"
#define SHOW "\"monkey --show-config -c DIR\" prints the configuration in use"

static const struct {
    const char *word, *here;
} words[] = {
    {"run", FOREGROUND},
    {"start", BACKGROUND},
    {"serve", FILES},
    {"file-server", FILES},
    {"reverse-proxy", "\"monkey proxy URL\" passes requests on to URL"},
    {"stop", STOP},
    {"quit", STOP},
    {"reload", RELOAD},
    {"graceful", RELOAD},
    {"restart", UPGRADE},
    {"upgrade", UPGRADE},
    {"status", "\"monkey shell status\" shows the running server"},
    {"check", CHECK},
    {"configtest", CHECK},
    {"validate", CHECK},
    {"adapt", SHOW},
    {"-s", SIGNALS},
    {"-k", SIGNALS},
    {"-f", FOREGROUND},
    {"-T", SHOW},
    {"-V", "\"monkey -v\" prints the version"},
    {"-S", SHOW},
    {"-q", "\"monkey -t\" prints what is wrong, and one line if nothing is"},
    {"--tls", "HTTPS is spoken with --https"},
    {"--to", "\"monkey proxy URL\" passes requests on to URL"},
    {"-g", "a line of [SERVER] is written into monkey.conf"},
    {"--http", "HTTP is spoken without an option, HTTPS with --https"},
    {"--root", FILES},
    {"--reload", RELOAD},
    {"--stop", STOP},
};

/* Returns a phrase for a command such as "reload", or an option such as "-s"; NULL: it is in no row. */
static const char *find_foreign_option(const char *word)
{
    for (size_t i = 0; i < MK_COUNT_OF(words); i++)
        if (strcmp(word, words[i].word) == 0)
            return words[i].here;
    return NULL;
}

/* ── the command line ── */

/* Values of getopt_long() for options without a letter. */
enum {
    LONGOPT_SHOW = 1,
    LONGOPT_REFERENCE,
    LONGOPT_SUPERVISE,
    LONGOPT_HTTPS,
    LONGOPT_JSON,
    LONGOPT_LIST,
    LONGOPT_PROXY,
    LONGOPT_ONE_FILE
};

#define FIELD(member) -1, offsetof(struct options, member)

/* clang-format off */
static const struct option_row {
    char letter;
    const char *name, *argument, *help;
    int action;    /* enum action, or -1; the argument of an action is optional */
    size_t offset; /* in struct options, of the argument or of the flag */
} rows[] = {
    {'c', "config", "DIR", "read the configuration from DIR, or from one FILE", FIELD(dir)},
    {'o', "one-shot", "DIR", "the same as DIR alone: serve it, without a configuration", FIELD(root)},
    {LONGOPT_PROXY, "proxy", "URL", "the same as proxy URL: pass requests on to URL", FIELD(backend)},
    {'p', "port", "PORT", "listen on PORT", FIELD(port)},
    {'l', "listen", "ADDR", "listen on ADDR: address, address:port or unix:/path", FIELD(listen)},
    {'w', "workers", "N", "start N workers; 0 is one for each processor", FIELD(workers)},
    {LONGOPT_LIST, "list", NULL, "with -o: list folders that have no index page", FIELD(list)},
    {LONGOPT_HTTPS, "https", NULL, "with -o: HTTPS, with a certificate made for it", FIELD(https)},
    {'D', "daemon", NULL, "go to the background once it serves", FIELD(daemon)},
    {LONGOPT_SUPERVISE, "supervise", NULL, "run the server as a child, and restart it if it crashes",
     FIELD(supervise)},
    {'t', "test", NULL, "check the configuration, listeners included, and stop", ACTION_TEST, 0},
    {LONGOPT_JSON, "json", NULL, "with -t: tell what is wrong as JSON, on standard output", FIELD(json)},
    {LONGOPT_SHOW, "show-config", "[HOST]", "print the values in use, and where each comes from", ACTION_SHOW, 0},
    {LONGOPT_ONE_FILE, "one-file", NULL, "print the configuration as one file", ACTION_ONE_FILE, 0},
    {LONGOPT_REFERENCE, "reference", "[SECTION]", "print the manual of all directives, or of one section",
     ACTION_REFERENCE, 0},
    {'v', "version", NULL, "print the version", ACTION_VERSION, 0},
    {'b', "build", NULL, "print how this program was built", ACTION_BUILD, 0},
    {'h', "help", NULL, "print this", ACTION_HELP, 0},
};
/* clang-format on */

enum { WORKERS_MAX = 1024 }; /* as the directive */
enum { ROWS = MK_COUNT_OF(rows) };

void options_help(void)
{
    printf("monkey serves web sites.\n\n"
           "    monkey DIR [-p PORT]    serve the files in DIR\n"
           "    monkey [-c DIR]         serve what the configuration in DIR says\n"
           "    monkey FILE             serve what the configuration FILE says\n"
           "    monkey proxy URL        pass requests on to URL, from HTTPS\n"
           "    monkey shell [COMMAND]  show and control the running server\n"
           "    monkey convert FILE     print a configuration of nginx, Caddy or Apache as one of this server\n\n");
    for (unsigned i = 0; i < ROWS; i++) {
        char form[40], letter[4] = {'-', rows[i].letter, ',', '\0'};
        snprintf(form, sizeof(form), "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
                 rows[i].argument ? rows[i].argument : "");
        printf("  %-3s %-21s %s\n", rows[i].letter > ' ' ? letter : "", form, rows[i].help);
    }
    printf("\nExit codes: %d served and stopped, or nothing wrong; %d the configuration is wrong; %d the options are "
           "wrong;\n%d could not start, or failed.\n",
           EXIT_OK, EXIT_CONFIG, EXIT_OPTIONS, EXIT_RUN);
}

static const char *find_nearest_name(const char *word)
{
    const char *best = NULL;
    unsigned least = 4;
    for (unsigned i = 0; i < ROWS; i++) {
        unsigned distance = mk_str_distance(mk_str_c(word), mk_str_c(rows[i].name));
        if (distance < least && distance * 2 < strlen(word) + 1) {
            least = distance;
            best = rows[i].name;
        }
    }
    return best;
}

static int report_unknown_option(const char *argument)
{
    const char *instead = find_foreign_option(argument);
    const char *near = argument[1] == '-' ? find_nearest_name(argument + 2) : NULL;
    fprintf(stderr, "monkey: there is no option %s", argument);
    if (instead)
        fprintf(stderr, "; %s\n", instead);
    else if (near)
        fprintf(stderr, "; did you mean --%s?\n", near);
    else
        fprintf(stderr, "; monkey --help lists them\n");
    return EXIT_OPTIONS;
}

static int report_bad_option(int c, char **argv)
{
    const char *argument = argv[optind - 1];
    char letter[3] = {'-', (char)optopt, '\0'};
    for (unsigned i = 0; i < ROWS; i++) {
        if (optopt != rows[i].letter)
            continue;
        if (c == ':')
            fprintf(stderr, "monkey: --%s needs a value: --%s %s\n", rows[i].name, rows[i].name, rows[i].argument);
        else
            fprintf(stderr, "monkey: --%s takes no value\n", rows[i].name);
        return EXIT_OPTIONS;
    }
    return report_unknown_option(optopt ? letter : argument);
}

static void apply_option(struct options *o, const struct option_row *row)
{
    if (row->action >= 0) {
        o->action = (enum action)row->action;
        o->name = optarg;
    } else if (row->argument) {
        *(const char **)(void *)((char *)o + row->offset) = optarg;
    } else {
        *(bool *)((char *)o + row->offset) = true;
    }
}

static int check_number(const char *option, const char *text, uint64_t max)
{
    uint64_t value;
    if (!text || mk_str_u64(mk_str_c(text), max, &value))
        return 0;
    fprintf(stderr, "monkey: --%s wants a number from 0 to %llu, not \"%s\"\n", option, (unsigned long long)max, text);
    return EXIT_OPTIONS;
}

/* Returns the start of the port in an address ("1.2.3.4:80", "[::1]:80"), or NULL ("::1", "[::1]"). */
static const char *find_port(const char *address)
{
    const char *last = strrchr(address, ':'), *bracket = strrchr(address, ']');
    if (!last || last < bracket || (!bracket && strchr(address, ':') != last))
        return NULL;
    return last + 1;
}

static bool is_port(const char *text)
{
    uint64_t port;
    return mk_str_u64(mk_str_c(text), UINT16_MAX, &port);
}

/* Accepts a port, a numeric address or "*" with or without a port, or a Unix socket. */
static bool is_address(const char *text)
{
    char host[64];
    struct in6_addr addr;
    const char *port = find_port(text);
    size_t len = port ? (size_t)(port - 1 - text) : strlen(text);
    if (strncmp(text, "unix:", 5) == 0)
        return text[5] == '/';
    if (is_port(text))
        return true;
    if ((port && !is_port(port)) || len == 0 || len >= sizeof(host))
        return false;
    bool bracketed = text[0] == '[' && text[len - 1] == ']' && len > 2;
    snprintf(host, sizeof(host), "%.*s", (int)(bracketed ? len - 2 : len), bracketed ? text + 1 : text);
    if (bracketed)
        host[strcspn(host, "%")] = '\0'; /* the interface of a link-local address */
    return strcmp(host, "*") == 0 || (!bracketed && inet_pton(AF_INET, host, &addr) == 1) ||
           ((bracketed || !port) && inet_pton(AF_INET6, host, &addr) == 1);
}

/*
 * Reports a long option that no row has: getopt_long() would take its beginning for the whole, as --http for --https.
 * Returns 0 or EXIT_OPTIONS.
 */
static int check_long_options(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        struct mk_str name = mk_str_until(mk_str_c(argv[i] + 2), "=");
        unsigned row = 0;
        while (row < ROWS && !mk_str_eq(name, mk_str_c(rows[row].name)))
            row++;
        if (row == ROWS)
            return report_unknown_option(argv[i]);
    }
    return 0;
}

/* Reads `proxy URL`; a folder may have the name, too. */
static bool read_backend(struct options *o, int n, char **operands)
{
    if (n != 2 || strcmp(operands[0], "proxy") != 0 || o->root || o->backend)
        return false;
    o->backend = operands[1];
    return true;
}

/* Reports a word that names no directory, but is a command of other servers. */
static int check_root(const char *word)
{
    if (access(word, F_OK) == 0)
        return 0;
    if (strcmp(word, "proxy") == 0) {
        fprintf(stderr, "monkey: proxy needs the URL of a backend, such as http://127.0.0.1:8080\n");
        return EXIT_OPTIONS;
    }
    const char *instead = find_foreign_option(word);
    if (instead) {
        fprintf(stderr, "monkey: there is no directory \"%s\"; %s\n", word, instead);
        return EXIT_OPTIONS;
    }
    for (unsigned i = 0; i < ROWS; i++)
        if (strcmp(word, rows[i].name) == 0) {
            fprintf(stderr, "monkey: there is no directory \"%s\"; did you mean --%s?\n", word, word);
            return EXIT_OPTIONS;
        }
    return 0;
}

bool options_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Reports a word that is no file with a configuration. */
static int report_operand(const struct options *o, const char *word)
{
    struct stat st;
    if (o->dir)
        fprintf(stderr, "monkey: there is one configuration, %s: \"%s\" is too much\n", o->dir, word);
    else if (stat(word, &st) < 0)
        fprintf(stderr, "monkey: %s: %s\n", word, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        fprintf(stderr, "monkey: %s is a directory: write -c %s\n", word, word);
    else
        fprintf(stderr, "monkey: %s is not a regular file\n", word);
    return EXIT_OPTIONS;
}

/* Reads the words after the options: a configuration that is a file, the directory to serve, or the name of a section
 * or host. */
static int read_operands(struct options *o, int argc, char **argv)
{
    bool named = o->action == ACTION_SHOW || o->action == ACTION_REFERENCE;
    bool configured = o->action <= ACTION_ONE_FILE;
    if (configured && !o->dir && optind < argc && options_is_file(argv[optind]))
        o->dir = argv[optind++];
    if (optind == argc || read_backend(o, argc - optind, argv + optind))
        return 0;
    if (named && !o->name && optind + 1 == argc) {
        o->name = argv[optind];
        return 0;
    }
    if (configured && o->action != ACTION_SERVE)
        return report_operand(o, argv[optind]);
    if (o->action != ACTION_SERVE) {
        fprintf(stderr, "monkey: \"%s\" belongs to no option; monkey --help lists them\n", argv[optind]);
        return EXIT_OPTIONS;
    }
    if (o->root || optind + 1 < argc) {
        fprintf(stderr, "monkey: one directory can be served, not \"%s\" and \"%s\"\n",
                o->root ? o->root : argv[optind], argv[argc - 1]);
        return EXIT_OPTIONS;
    }
    o->root = argv[optind];
    return check_root(o->root);
}

/* Reports a folder that is named by its file monkey.conf: its sites would not be read. Returns 0 or EXIT_OPTIONS. */
static int check_dir(const char *dir)
{
    char sites[PATH_MAX];
    const char *slash = strrchr(dir, '/');
    if (!options_is_file(dir) || strcmp(slash ? slash + 1 : dir, "monkey.conf") != 0)
        return 0;
    snprintf(sites, sizeof(sites), "%.*ssites", slash ? (int)(slash - dir + 1) : 0, dir);
    if (access(sites, F_OK) < 0)
        return 0;
    fprintf(stderr, "monkey: --config wants the directory of monkey.conf, and \"%s\" is a file; write -c %.*s\n", dir,
            slash ? (int)(slash - dir + 1) : 1, slash ? dir : ".");
    return EXIT_OPTIONS;
}

static int check_options(const struct options *o)
{
    int code = check_number("port", o->port, UINT16_MAX);
    if (code == 0)
        code = check_number("workers", o->workers, WORKERS_MAX);
    if (code != 0)
        return code;
    if (o->listen && o->port && (strncmp(o->listen, "unix:", 5) == 0 || is_port(o->listen) || find_port(o->listen))) {
        fprintf(stderr, "monkey: --listen %s and --port %s say different things; give one of them\n", o->listen,
                o->port);
        return EXIT_OPTIONS;
    }
    if ((o->dir && !o->dir[0]) || (o->root && !o->root[0])) {
        fprintf(stderr, "monkey: --%s needs the name of a directory\n", o->dir ? "config" : "one-shot");
        return EXIT_OPTIONS;
    }
    if (o->dir && check_dir(o->dir) != 0)
        return EXIT_OPTIONS;
    if (o->listen && !is_address(o->listen)) {
        fprintf(stderr, "monkey: --listen wants an address such as 127.0.0.1, [::1]:8080 or unix:/path, not \"%s\"\n",
                o->listen);
        return EXIT_OPTIONS;
    }
    if (o->backend && (o->root || o->dir || o->list)) {
        fprintf(stderr, "monkey: proxy needs no configuration and serves no directory: leave out --%s\n",
                o->dir    ? "config"
                : o->list ? "list"
                          : "one-shot");
        return EXIT_OPTIONS;
    }
    if (o->https && !o->root && !o->backend) {
        fprintf(stderr, "monkey: --https goes with --one-shot; a configuration has Listen 443 tls\n");
        return EXIT_OPTIONS;
    }
    if (o->list && !o->root) {
        fprintf(stderr, "monkey: --list goes with --one-shot; a configuration has a section [DIRLISTING]\n");
        return EXIT_OPTIONS;
    }
    if (o->json && o->action != ACTION_TEST) {
        fprintf(stderr, "monkey: --json goes with --test\n");
        return EXIT_OPTIONS;
    }
    if (o->dir && o->root) {
        fprintf(stderr, "monkey: --config and a directory to serve (--one-shot) exclude each other\n");
        return EXIT_OPTIONS;
    }
    return 0;
}

int options_read(struct options *o, int argc, char **argv)
{
    struct option longs[ROWS + 1] = {{0}};
    char shorts[ROWS * 2 + 2] = ":";
    size_t n = 1;
    *o = (struct options){.action = ACTION_SERVE};
    for (unsigned i = 0; i < ROWS; i++) {
        bool optional = rows[i].action >= 0;
        longs[i] = (struct option){rows[i].name,
                                   !rows[i].argument ? no_argument
                                   : optional        ? optional_argument
                                                     : required_argument,
                                   NULL, rows[i].letter};
        if (rows[i].letter <= ' ')
            continue;
        shorts[n++] = rows[i].letter;
        if (rows[i].argument)
            shorts[n++] = ':';
    }
    int code = check_long_options(argc, argv);
    if (code != 0)
        return code;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        const struct option_row *row = rows;
        while (row < rows + ROWS && row->letter != c)
            row++;
        if (row == rows + ROWS)
            return report_bad_option(c, argv);
        apply_option(o, row);
    }
    code = read_operands(o, argc, argv);
    return code ? code : check_options(o);
}

const char *options_listen(const struct options *o, char *text, unsigned size)
{
    const char *address = o->listen;
    if (!address)
        return o->port;
    if (strncmp(address, "unix:", 5) == 0 || address[strspn(address, "0123456789")] == '\0')
        return o->port ? o->port : address;
    const char *port = find_port(address);
    bool bare_v6 = !port && address[0] != '[' && strchr(address, ':');
    int host = port ? (int)(port - 1 - address) : (int)strlen(address);
    snprintf(text, size, "%s%.*s%s:%s", bare_v6 ? "[" : "", host, address, bare_v6 ? "]" : "",
             o->port ? o->port
             : port  ? port
                     : "2001");
    return text;
}
