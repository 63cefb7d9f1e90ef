// SPDX-License-Identifier: Apache-2.0
/*
 * Prints the manual of all directives from their tables: first the syntax of files, then the sections in the order of
 * their declaration.
 */
#include "conf/internal.h"
#include "conf/value.h"

static const char opening[] = MK_CONF_DOC(
    "# Configuration\n\n"
    "Every directive that this server and its plugins know, printed by `monkey --reference`.\n\n"
    "## How a file is written\n\n"
    "    # a comment\n"
    "    @SET root=/srv/www\n"
    "    @INCLUDE conf.d/*.conf\n\n"
    "    [SECTION]\n"
    "        Key value\n"
    "        Path \"${root}/my files\"   # a comment behind a value\n\n"
    "- `[SECTION]`, `@SET` and `@INCLUDE` start at column 1. Keys are indented; the first key of a file says how "
    "deep, and every other key of that file follows it.\n"
    "- The names of sections and keys may be written in any case.\n"
    "- Words in double quotes may contain blanks and `#`. `\\\"`, `\\#` and `\\${` mean the character itself, and "
    "within quotes `\\\\` for a backslash.\n"
    "- `${NAME}` is a variable of `@SET`, else of the environment; `${NAME:-default}` gives one for the case that it "
    "is "
    "not set or empty. An unknown variable is an error.\n"
    "- `@INCLUDE` takes a file or a pattern, relative to the directory of the file that has it. The files of a "
    "pattern are read in the order of their names; it may match none. Copies that editors and package managers leave "
    "(`*~`, `*.bak`, `*.dpkg-old` ...) are skipped with a warning.\n"
    "- A duration is a number with `ms`, `s`, `m`, `h` or `d`, a size one with `B`, `K`, `M` or `G`. Without a unit "
    "they mean seconds and bytes unless the directive says otherwise.\n"
    "- A path that does not start with `/` is relative to the directory of the file that has it.\n"
    "- A key that a file sets twice is an error, unless it may be repeated; a file that is read later replaces the "
    "value "
    "of an earlier one, and an option of the command line replaces both.\n");

static const char *const file_names[] = {
    [MK_CONF_SCOPE_SERVER] = "In `monkey.conf` or the file of a plugin",
    [MK_CONF_SCOPE_HOST] = "In a host's file, `sites/*`",
};

static void describe_key(const struct mk_conf_key *key, const char *owner, struct mk_buf *out)
{
    bool number = key->type == MK_CONF_SIZE || key->type == MK_CONF_DURATION;

    mk_buf_addf(out, "\n### `%s`\n\n*", key->name);
    mk__value_describe(key, out);
    if (key->unit && number)
        mk_buf_addf(out, ", in `%s` without a unit", key->unit);
    if (key->fallback && *key->fallback)
        mk_buf_addf(out, "; default `%s`", key->fallback);
    if (key->flags & MK_CONF_REQUIRED)
        mk_buf_addf(out, "; required");
    if (key->flags & MK_CONF_REPEAT)
        mk_buf_addf(out, "; may be repeated");
    if (owner)
        mk_buf_addf(out, "; plugin `%s`", owner);
    mk_buf_addf(out, "*\n\n%s\n", key->doc ? key->doc : "");
}

static void describe_short_form(const struct mk_conf_section *section, const char *owner, struct mk_buf *out)
{
    const struct mk_conf_short_form *form = section->short_form;
    bool one_value = form->values && !form->values[1].word;
    mk_buf_addf(out, "\n### `%s%s%s`\n\n*short for `[%s]` with `%s`", form->name, one_value ? " " : "",
                one_value ? form->values->word : "", section->name, form->key);
    for (const struct mk_conf_short_value *value = form->values; value && value->word && !one_value; value++)
        mk_buf_addf(out, "%s`%s`", value == form->values ? ": " : ", ", value->word);
    if (mk__rule_index_match_key(section))
        mk_buf_addf(out, "; a pattern of paths may stand before it");
    if (owner)
        mk_buf_addf(out, "; plugin `%s`", owner);
    mk_buf_addf(out, "*\n\n%s\n", form->doc);
}

static void describe_short_forms(const struct mk__conf *conf, struct mk_buf *out)
{
    for (const struct mk__conf_section_type *type = conf->section_types; type; type = type->next)
        for (const struct mk__conf_registration *reg = type->registrations; reg; reg = reg->next)
            if (reg->section->short_form)
                describe_short_form(reg->section, reg->owner, out);
}

static void describe_section(const struct mk__conf *conf, const struct mk__conf_section_type *type, struct mk_buf *out)
{
    bool for_all = type->scope == MK_CONF_SCOPE_HOST && mk__schema_is_for_server(type->registrations->section);
    mk_buf_addf(out, "\n## `[%.*s]`\n\n%s%s.%s%s\n", MK_STR_ARG(type->name), file_names[type->scope],
                for_all ? ", or for all hosts in `monkey.conf`" : "",
                type->flags & MK_CONF_REQUIRED ? " It must be there." : "",
                type->flags & MK_CONF_REPEAT ? " It may appear several times." : "");
    for (const struct mk__conf_registration *reg = type->registrations; reg; reg = reg->next)
        if (reg->section->doc)
            mk_buf_addf(out, "\n%s\n", reg->section->doc);
    for (const struct mk__conf_registration *reg = type->registrations; reg; reg = reg->next)
        for (const struct mk_conf_key *key = reg->section->keys; key && key->name; key++)
            describe_key(key, reg->owner, out);
    if (mk__schema_has_short_forms(type))
        describe_short_forms(conf, out);
}

void mk__conf_reference(const struct mk__conf *conf, struct mk_buf *out)
{
    mk_buf_addf(out, "%s", opening);
    for (int scope = MK_CONF_SCOPE_SERVER; scope <= MK_CONF_SCOPE_HOST; scope++)
        for (const struct mk__conf_section_type *type = conf->section_types; type; type = type->next)
            if (type->scope == scope)
                describe_section(conf, type, out);
}
