// SPDX-License-Identifier: Apache-2.0
/*
 * How a service gets its objects. Each object is a const struct of functions in the framework; a service has a pointer
 * to it of its own, which is hidden in its shared object and filled when the service is loaded. A header of an object
 * declares both:
 *
 *     DUDA_OBJECT(struct duda_api_response, response)
 *
 *     service.duda    section duda_objects: { "response", sizeof, &response } ...  ◄── duda_service_info
 *     framework       finds each row by its name and size, and stores the address in the pointer
 *
 * An object only grows at its end, so that a service which was built for a smaller one gets it. A row that the
 * framework does not have, or has only smaller, is an error that names it.
 */
#ifndef DUDA_OBJECT_H
#define DUDA_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define DUDA_C_BEGIN extern "C" {
#define DUDA_C_END }
#else
#define DUDA_C_BEGIN
#define DUDA_C_END
#endif

/* Changes when a service must be compiled again: when struct duda_service_info or struct duda_object_row changes. */
enum { DUDA_ABI = 1 };

/*
 * 3: the API of <duda/duda.h>. 0, 1, 2: the levels of the original API, which have their own header; the framework
 * then fills the fields of duda_request_t.
 */
#ifndef DUDA_API_LEVEL
#define DUDA_API_LEVEL 3
#endif

struct duda_object_row {
    const char *name;
    size_t size;   /* of the struct that the service knows; 0: the pointer of a package, which load() sets */
    void *pointer; /* the address of the service's pointer */
};

/* What the framework reads of a service, by the symbol duda_service_info. */
struct duda_service_info {
    uint32_t abi, size;
    uint32_t level;
    const struct duda_object_row *begin, *end;
};

#ifndef DUDA_FRAMEWORK

DUDA_C_BEGIN

extern const struct duda_object_row __start_duda_objects[] __attribute__((visibility("hidden")));
extern const struct duda_object_row __stop_duda_objects[] __attribute__((visibility("hidden")));

/* Each file of a service defines it; the linker keeps one. */
extern const struct duda_service_info duda_service_info __attribute__((weak, visibility("default")));
__attribute__((used)) const struct duda_service_info duda_service_info = {
    DUDA_ABI, sizeof(struct duda_service_info), DUDA_API_LEVEL, __start_duda_objects, __stop_duda_objects,
};

DUDA_C_END

#define DUDA_OBJECT_ROW(variable, object_name, size) \
    static const struct duda_object_row duda_row_of_##variable \
        __attribute__((used, section("duda_objects"), aligned(sizeof(void *)))) = {object_name, size, \
                                                                                   (void *)&variable};

/* The pointer `variable` to an object of the framework, whose name may differ from that of the variable. */
#define DUDA_OBJECT_AS(type, variable, object_name) \
    DUDA_C_BEGIN \
    extern const type *variable __attribute__((visibility("hidden"))); \
    __attribute__((weak)) const type *variable; \
    DUDA_C_END \
    DUDA_OBJECT_ROW(variable, object_name, sizeof(type))

#else /* the framework itself defines the objects */

#define DUDA_OBJECT_AS(type, variable, object_name)

#endif

#define DUDA_OBJECT(type, variable) DUDA_OBJECT_AS(type, variable, #variable)

#endif
