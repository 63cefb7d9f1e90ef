// SPDX-License-Identifier: Apache-2.0
/* Warns of keys without an effect (server/generation/process_keys.h). */
#include "server/generation/process_keys.h"

static const struct {
    const char *key, *instead;
    size_t offset;
} rows[] = {
    {"User", "the program decides which user it runs as", offsetof(struct mk__settings, user)},
    {"Group", "the program decides which group it runs as", offsetof(struct mk__settings, group)},
    {"Supervisor", "a service manager can restart the program", offsetof(struct mk__settings, supervisor)},
    {"CoreDumps", "the program decides by prctl(PR_SET_DUMPABLE)", offsetof(struct mk__settings, core_dumps)},
    {"PidFile", "the program can write one", offsetof(struct mk__settings, pid_file)},
    {"ErrorLog", "lines go where mk_log_to() or mk_log_to_function() says", offsetof(struct mk__settings, error_log)},
    {"LogLevel", "the level is that of mk_log_to() or mk_log_to_function()", offsetof(struct mk__settings, log_level)},
};

void mk__process_keys_warn(struct mk__conf *conf, const struct mk__conf_set *set, const struct mk__settings *settings)
{
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        struct mk__conf_origin origin = mk__conf_origin(set, settings, rows[i].offset, 0);
        if (origin.source)
            mk__conf_warn(conf, origin, "%s has no effect in a program that has the server in it: %s", rows[i].key,
                          rows[i].instead);
    }
}
