// SPDX-License-Identifier: Apache-2.0
/*
 * The table of other programs' commands and options (foreign_options.h).
 */
#include "foreign_options.h"

#include <monkey/base/str.h>

#include <stddef.h>
#include <string.h>

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

const char *foreign_options_find(const char *word)
{
    for (size_t i = 0; i < MK_COUNT_OF(words); i++)
        if (strcmp(word, words[i].word) == 0)
            return words[i].here;
    return NULL;
}
