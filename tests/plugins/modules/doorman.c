// SPDX-License-Identifier: Apache-2.0
/*
 * doorman: decides by a header of the request, as a plugin with rules for addresses does, and shows the user and the
 * claims. It has the content of /via/X from /X, by an internal redirect. For tests of what plugins decide together.
 */
#include <monkey/plugin.h>
#include <monkey/program.h>

extern const struct mk_plugin mk_plugin_doorman;

static int decide(struct mk_request *req)
{
    struct mk_str value = mk_request_header_by_name(req, MK_STR("X-Door"));
    if (mk_str_eq(value, MK_STR("allow")))
        mk_request_allow(req);
    return mk_str_eq(value, MK_STR("deny")) ? mk_request_deny(req, 451) : MK_DECLINED;
}

/* Answers with the user and the claims, and whether the client may have /b/team.txt. */
static int show_user(struct mk_request *req)
{
    struct mk_str path = mk_request_path(req), via = MK_STR("/via");
    if (mk_str_starts(path, MK_STR("/via/"))) {
        mk_request_redirect_internally(req, mk_str_after(path, via.len));
        return 0;
    }
    if (!mk_str_eq(mk_request_query(req), MK_STR("user")))
        return MK_DECLINED;
    struct mk_str user = mk_request_user(req), claims = mk_request_claims(req);
    int allows = mk_request_allows_path(req, MK_STR("/b/team.txt"));
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_write(req, user.p ? user : MK_STR("none"));
    mk_response_write_ref(req, allows > 0 ? MK_STR(" yes ") : MK_STR(" no "));
    mk_response_write(req, claims.p ? claims : MK_STR("-"));
    mk_response_end(req);
    return 0;
}

MK_PLUGIN(doorman) = {
    MK_PLUGIN_HEAD("doorman", "1.0.0", "decides by a header"),
    .on_request = decide,
    .on_content = show_user,
};
