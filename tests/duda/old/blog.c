// SPDX-License-Identifier: Apache-2.0
/* Level 2: articles in files of the data folder, with templates in the configuration folder. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Blog");

char *header;
char *title;
int per_page;

static int load_template(const char *name)
{
    int ret;
    char *path = NULL;
    unsigned long len;

    monkey->str_build(&path, &len, "%s%s", fconf->get_path(), name);
    header = fconf->read_file(path);
    ret = header ? 0 : -1;
    monkey->mem_free(path);
    return ret;
}

static int load_conf()
{
    struct duda_config *cfg;
    struct duda_config_section *section;

    cfg = fconf->read_conf("blog.conf");
    if (!cfg)
        return -1;
    section = fconf->section_get(cfg, "BLOG");
    title = fconf->section_key(section, "Title", DUDA_CONFIG_STR);
    per_page = (size_t)fconf->section_key(section, "PerPage", DUDA_CONFIG_NUM);
    fconf->free_conf(cfg);
    return 0;
}

void cb_index(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->http_content_type(dr, "html");
    response->printf(dr, header, title);
    response->printf(dr, "%i articles\n", per_page);
    response->end(dr, NULL);
}

void cb_article(duda_request_t *dr)
{
    long year = 0;
    char *name = NULL, *slug;
    unsigned long len;

    slug = param->get(dr, "slug");
    if (param->get_number(dr, "year", &year) != 0 || !slug) {
        response->http_status(dr, 404);
        response->end(dr, NULL);
    }
    monkey->str_build(&name, &len, "%ld-%s.txt", year, slug);
    gc->add(dr, name);

    response->http_status(dr, 200);
    response->http_content_type(dr, "html");
    response->printf(dr, header, slug);
    if (response->sendfile(dr, data->locate(name)) < 0) {
        response->print(dr, "there is no such article\n", 25);
        response->http_status(dr, 404);
        response->end(dr, NULL);
    }
    response->print(dr, "<end>\n", 6);
    response->end(dr, NULL);
}

void cb_comment(duda_request_t *dr)
{
    char *ip = request->header_get(dr, "Host");
    int id = request->header_contains(dr, "User-Agent", "robot");

    gc->add(dr, ip);
    response->http_status(dr, id >= 0 ? 403 : 200);
    response->printf(dr, "%s%s", param->get(dr, "id"), ip);
    response->end(dr, NULL);
}

void duda_exit()
{
    mem->free(header);
    mem->free(title);
}

int duda_main()
{
    if (load_conf() != 0 || load_template("header.html") != 0) {
        msg->err("the blog has no configuration");
        return -1;
    }
    router->root(cb_index);
    router->map("/article/:year/:slug/", cb_article);
    router->map("/comment/:id", cb_comment);
    return 0;
}
