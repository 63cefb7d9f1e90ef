// SPDX-License-Identifier: Apache-2.0
/*
 * Packages: shared objects, NAME.dpkg in PackagesRoot, that offer services a further table of functions.
 *
 *     static const struct duda_api_dice dice = {.roll = roll_dice};
 *     static struct duda_package package = {"dice", "1.0.0", &dice, DUDA_PACKAGE_ABI};
 *
 *     struct duda_package *duda_package_main(void)
 *     {
 *         return &package;
 *     }
 *
 * A package is loaded when the first service asks for it, in the main thread, and stays in memory as long as a service
 * uses it; all services share it. Its functions are called in the threads of the services. It may use the objects of
 * the API like a service; `self` is NULL.
 */
#ifndef DUDA_PACKAGE_H
#define DUDA_PACKAGE_H

#include "types.h"

/* Changes when struct duda_package changes. */
enum { DUDA_PACKAGE_ABI = 1 };

struct duda_package {
    const char *name, *version;
    const void *api; /* the table */
    uint32_t abi;    /* DUDA_PACKAGE_ABI */
};
typedef struct duda_package duda_package_t;

DUDA_C_BEGIN

struct duda_package *duda_package_main(void) __attribute__((visibility("default")));

DUDA_C_END

struct duda_api_package {
    /*
     * Returns the table of a package, which it loads if it is the first use in the service. If that fails, duda_main()
     * ends at once, and the service does not start. Outside of duda_main() it returns NULL then.
     */
    const void *(*load)(const char *name);
};

DUDA_OBJECT_AS(struct duda_api_package, duda_package_loader, "package")

/* Sets the pointer `object` to the table of a package: duda_load_package(dice, "dice"). */
#define duda_load_package(object, name) ((object) = (__typeof__(object))duda_package_loader->load(name))

/* The pointer of a service to the table of a package. */
#ifdef DUDA_FRAMEWORK
#define DUDA_PACKAGE(type, variable)
#else
#define DUDA_PACKAGE(type, variable) \
    DUDA_C_BEGIN \
    extern const type *variable __attribute__((visibility("hidden"))); \
    __attribute__((weak)) const type *variable; \
    DUDA_C_END
#endif

#endif
