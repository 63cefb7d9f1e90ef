// SPDX-License-Identifier: Apache-2.0
/*
 * A program in C++17, without the library of C++: handlers that are a lambda and a method, a cookie, random bytes. Ends
 * with a line on stdin. Compiled and run by tests/e2e/test_embed.py.
 */
#include <monkey/base/random.h>
#include <monkey/embed.h>
#include <monkey/kit/cookie.h>

#include <stdio.h>

namespace
{

class Counter
{
  public:
    static int answer(struct mk_request *req, void *ctx)
    {
        return static_cast<Counter *>(ctx)->count(req);
    }

  private:
    int count(struct mk_request *req)
    {
        struct mk_cookie cookie = {};
        cookie.name = MK_STR("seen");
        cookie.value = MK_STR("yes");
        cookie.http_only = true;
        int err = mk_response_cookie(req, &cookie);
        return err < 0 ? err : mk_response_printf(req, 200, "text/plain", "%u\n", ++number);
    }

    unsigned number = 0;
};

} // namespace

int main()
{
    unsigned char bytes[16];
    Counter counter;
    struct mk_server *server = mk_server_new();
    mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n");
    mk_server_handle(server, "GET", "/count", Counter::answer, &counter);
    mk_server_handle(
        server, "GET", "/hello/:name",
        [](struct mk_request *req, void *) {
            struct mk_str name = mk_request_param(req, "name");
            return mk_response_printf(req, 200, "text/plain", "Hello, %.*s!\n", MK_STR_ARG(name));
        },
        nullptr);
    if (mk_random(bytes, sizeof(bytes)) < 0 || mk_server_start(server) < 0)
        return fprintf(stderr, "%s\n", mk_server_error(server)), 1;
    printf("http://127.0.0.1:%d/hello/you\n", mk_server_port(server));
    fflush(stdout);
    getchar();
    int err = mk_server_stop(server);
    mk_server_free(server);
    return err < 0 ? 1 : 0;
}
