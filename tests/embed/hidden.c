// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the library as an interpreter does, so that its symbols are hidden from other objects. Plugins find them.
 * Usage: hidden LIBRARY MODE, where MODE is "local", or "namespace" for a link-map list of its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct mk_server;

int main(int argc, char **argv)
{
    static const char text[] = "[SERVER]\n    Listen 127.0.0.1:0\n[STATUS]\n    Enabled On\n";
    void *library = argc < 3                            ? NULL
                    : strcmp(argv[2], "namespace") == 0 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW | RTLD_LOCAL)
                                                        : dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", argc < 3 ? "usage" : dlerror());
        return 1;
    }
    struct mk_server *(*make)(void) = (struct mk_server * (*)(void)) dlsym(library, "mk_server_new");
    int (*set_text)(struct mk_server *, const char *) =
        (int (*)(struct mk_server *, const char *))dlsym(library, "mk_server_text");
    int (*start)(struct mk_server *) = (int (*)(struct mk_server *))dlsym(library, "mk_server_start");
    int (*stop)(struct mk_server *) = (int (*)(struct mk_server *))dlsym(library, "mk_server_stop");
    int (*port)(const struct mk_server *) = (int (*)(const struct mk_server *))dlsym(library, "mk_server_port");
    const char *(*error)(struct mk_server *) = (const char *(*)(struct mk_server *))dlsym(library, "mk_server_error");
    void (*free_server)(struct mk_server *) = (void (*)(struct mk_server *))dlsym(library, "mk_server_free");
    struct mk_server *server = make();
    set_text(server, text);
    if (start(server) < 0) {
        printf("%s\n", error(server));
        return 1;
    }
    printf("http://127.0.0.1:%d/status\n", port(server));
    fflush(stdout);
    getchar();
    stop(server);
    free_server(server);
    return 0;
}
