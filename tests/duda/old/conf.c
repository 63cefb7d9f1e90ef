// SPDX-License-Identifier: Apache-2.0
/* Level 1: configuration, logs, messages and time. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Configuration");

duda_logger_t access_log;
char *title;
long limit;
int enabled;
char words[64];

int read_settings()
{
    struct duda_config *conf = fconf->read_conf("service.conf");
    struct duda_config_section *section;
    struct mk_list *list, *head;

    if (!conf)
        return -1;
    section = fconf->section_get(conf, "SERVICE");
    if (!section || fconf->section_get(conf, "NONE"))
        return -1;
    title = fconf->section_key(section, "Title", DUDA_CONFIG_STR);
    limit = (long)fconf->section_key(section, "limit", DUDA_CONFIG_NUM);
    enabled = (int)(long)fconf->section_key(section, "Enabled", DUDA_CONFIG_BOOL);
    list = fconf->section_key(section, "Words", DUDA_CONFIG_LIST);
    mk_list_foreach(head, list)
    {
        struct duda_string_line *line = mk_list_entry(head, struct duda_string_line, _head);
        snprintf(words + strlen(words), sizeof(words) - strlen(words), "%.*s/", line->len, line->val);
    }
    fconf->free_conf(conf);
    return 0;
}

void cb_show(duda_request_t *dr)
{
    char path[MK_MAX_PATH];
    char *file;

    snprintf(path, sizeof(path), "%sservice.conf", fconf->get_path());
    file = fconf->read_file(path);
    gc->add(dr, file);
    response->http_status(dr, 200);
    response->printf(dr, "%s %ld %i %s %i", title, limit, enabled, words, strncmp(file, "[SERVICE]", 9));
    response->end(dr, NULL);
}

void cb_log(duda_request_t *dr)
{
    time_t now = xtime->now();

    console->debug(dr, "debugging %i", 1);
    console->debug(dr, "plain");
    debug->stacktrace();
    msg->info("hello %s", "you");
    msg->warn("warned");
    msg->err("failed");
    logger->print(&access_log, "logged %s", "this");
    response->http_status(dr, 200);
    response->printf(dr, "%i %i", xtime->tomorrow() - now >= 86400, xtime->next_hours(1) - now >= 3600);
    response->end(dr, NULL);
}

void duda_exit()
{
    free(title);
}

int duda_main()
{
    if (read_settings() != 0)
        return -1;
    duda_logger_create(&access_log, "access.log");
    map->static_add("/show/", "cb_show");
    map->static_add("/log/", "cb_log");
    return 0;
}
