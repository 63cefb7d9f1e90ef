// SPDX-License-Identifier: Apache-2.0
/*
 * Packages: shared objects, NAME.dpkg in PackagesRoot, that offer services a further table of functions.
 *
 *     static const struct duda_api_dice dice = {.roll = roll_dice};
 *     DUDA_PACKAGE_MAIN(package, "dice", "1.0.0", &dice)
 *
 * A package is loaded when the first service asks for it, in the main thread, and stays in memory as long as a service
 * uses it; all services share it. Its functions are called in the threads of the services. It may use the objects of
 * the API like a service; `self` is NULL.
 *
 * A package that keeps something for each service, or each thread, has hooks for that, all optional:
 *
 *     duda_main(): service_start ─► worker threads: worker_start ... worker_stop ─► duda_exit() ─► service_stop
 *
 *     DUDA_PACKAGE_MAIN(package, "dice", "1.0.0", &dice, .worker_start = start, .worker_stop = stop)
 *
 * A reload that leaves a service unchanged calls none of them. A service that stays in memory because threads of its
 * own run on gets no service_stop. Packages start in the order in which they were loaded, and stop in reverse.
 */
#ifndef DUDA_PACKAGE_H
#define DUDA_PACKAGE_H

#include "types.h"

/* Services of the original API saw all objects by the header of a package alone. */
#ifdef DUDA_OLD_SERVICE
#include "webservice.h"
#endif

/* Changes when struct duda_package changes. */
enum { DUDA_PACKAGE_ABI = 2 };

struct mk_account;
struct mk_counter;
struct mk_loop;

/* What a package has in one worker of one service. All but `state` belongs to the framework. */
struct duda_package_worker {
    struct mk_loop *loop;       /* of the worker; in worker_stop() NULL if it has ended */
    struct mk_account *account; /* of the worker's memory; NULL together with `loop` */
    unsigned index;             /* as worker->index() */
    void *service_state;        /* what service_start() has returned */
    void *state;                /* the package's own; NULL at first */
};

/* A wait of a dthread in a call of a package, on its stack. The fields belong to the framework. */
struct duda_package_wait {
    void *dthread;
    int result;
    bool waits, is_over;
};

struct duda_package {
    const char *name, *version;
    const void *api; /* the table */
    uint32_t abi;    /* DUDA_PACKAGE_ABI */

    /*
     * Begins the use by a service, in duda_main(), when it loads the package first. Returns the package's state of this
     * service, or NULL with errno: the package cannot be loaded then.
     */
    void *(*service_start)(void);
    /* Ends the use, after duda_exit(), while the service is still in memory. */
    void (*service_stop)(void *service_state);
    /*
     * Begins a worker of a service, in its thread, before the pre_loop functions. Returns 0, or -errno: the worker does
     * not start, and worker_stop() is not called.
     */
    int (*worker_start)(struct duda_package_worker *w);
    /*
     * Ends a worker, after the last request, event and timer of the service there. It removes what the package has in
     * the loop. If `loop` is NULL it runs in another thread, and there is nothing to remove.
     */
    void (*worker_stop)(struct duda_package_worker *w);
};
typedef struct duda_package duda_package_t;

DUDA_C_BEGIN

struct duda_package *duda_package_main(void) __attribute__((visibility("default")));

/*
 * Defines duda_package_main(), and the struct `variable` that it returns: the package's name, version and table, and
 * fields for its hooks.
 */
#define DUDA_PACKAGE_MAIN(variable, text, number, table, ...) \
    DUDA_PACKAGE_MAIN_IF(true, variable, text, number, table, ##__VA_ARGS__)

/* The same if `is_ready`, an expression, is true when the package is loaded; else it cannot be loaded. */
#define DUDA_PACKAGE_MAIN_IF(is_ready, variable, text, number, table, ...) \
    struct duda_package variable __attribute__((visibility( \
        "hidden"))) = {.name = (text), .version = (number), .api = (table), .abi = DUDA_PACKAGE_ABI, ##__VA_ARGS__}; \
    struct duda_package *duda_package_main(void) \
    { \
        return (is_ready) ? &variable : NULL; \
    }

DUDA_C_END

struct duda_api_package {
    /*
     * Returns the table of a package, which it loads if it is the first use in the service. If that fails, duda_main()
     * ends at once, and the service does not start. Outside of duda_main() it returns NULL then.
     */
    const void *(*load)(const char *name);

    /* ── for packages; `package` is what duda_package_main() has returned ── */

    /* Returns the state of the service whose code runs in this thread, also in its own threads; NULL if there is none.
     */
    void *(*service_state)(const struct duda_package *package);
    /* Returns the package's part of the worker whose code runs in this thread; NULL if there is none. */
    struct duda_package_worker *(*worker)(const struct duda_package *package);
    /* Returns the package's part of the worker of a request; NULL if the request has ended. */
    struct duda_package_worker *(*worker_of)(const struct duda_package *package, duda_request_t *dr);
    /*
     * Calls `fn` as a callback of the worker's service: the functions of the API know the service, and it is watched
     * and named in reports of crashes. A package does this in what it has in the loop itself (mk_timer, mk_event,
     * mk_dial); calls may be nested. The worker may have stopped when it returns. In the worker's thread.
     */
    void (*call)(struct duda_package_worker *w, void (*fn)(void *data), void *data);
    /*
     * Names the function of the service that the package calls next: if it blocks the worker, the log has it instead of
     * one of the package. In a callback.
     */
    void (*name_callback)(struct duda_package_worker *w, void (*fn)(void));

    /* ── waits, for calls that dthreads make in straight code ── */

    /*
     * Begins a wait of the calling dthread, which `call` ("redis->ask()") names in the log. Returns 0, or what each
     * wait of a dthread returns instead: -EPERM (no dthread runs, or it cannot wait here; logged), -ECONNABORTED or
     * -ECANCELED.
     */
    int (*begin_wait)(struct duda_package_wait *wait, const char *call);
    /*
     * Waits until wake() was called, also before. Returns its result, -ETIMEDOUT, -ECONNABORTED or -ECANCELED; after an
     * error the package forgets `wait`.
     */
    int (*wait)(struct duda_package_wait *wait, uint32_t timeout_ms);
    /* Ends a wait with `result`. In the worker's thread; the dthread continues later. Later calls do nothing. */
    void (*wake)(struct duda_package_wait *wait, int result);

    /* ── counters, which the console of the service shows (<monkey/counters.h>) ── */

    /*
     * Opens a counter of the package for the service whose duda_main() loads it, in service_start(): duda_NAME with the
     * labels host and service. `name`: lower case and underscores, unique among all packages, such as
     * "websocket_channels"; `help`: one line, without a full stop; `is_level`: it goes up and down. Other versions of
     * the service count in the same counter. Returns NULL without memory, which count() accepts, or outside of
     * duda_main().
     */
    const struct mk_counter *(*counter)(const struct duda_package *package, const char *name, const char *help,
                                        bool is_level);
    /* Adds to a counter. `w`: the part of the calling worker; NULL in other threads, which takes longer. Any thread. */
    void (*count)(struct duda_package_worker *w, const struct mk_counter *counter, int64_t n);

    /* ── lines of the log ── */

    /*
     * Logs that a call of the service ("password->hash()") was a mistake: `reason` is a clause. The line ends with the
     * place of the call. The same mistake is logged once in 10 seconds for each worker, and no more than 16 different
     * ones, with those in calls of the API. Any thread.
     */
    void (*api_error)(const char *call, const char *reason);
    /*
     * Writes where the service calls the package, for the end of a line about the call: "shop.duda+0x12a4 (list_goods,
     * shop.c:42)", cut to `size`. `address`: what __builtin_return_address(0) was in the function of the table; NULL:
     * that function has not returned. Returns false, with "", if no service is found. Reads the stack and the file of
     * the service: the package limits how often it is called. Any thread.
     */
    bool (*describe_call)(const void *address, char *to, size_t size);
    /*
     * Sets what the log says if this thread crashes, until the next call of this function, with NULL at the latest
     * before the function of the package returns: a sentence that stays valid, such as what a service must not do with
     * memory that the package frees now.
     */
    void (*explain_crash)(const char *sentence);
};

DUDA_OBJECT_AS(struct duda_api_package, duda_package_loader, "package")

/* Sets the pointer `object` to the table of a package: duda_load_package(dice, "dice"). */
#define duda_load_package(object, name) ((object) = (__typeof__(object))duda_package_loader->load(name))

/*
 * The pointer of a service to the table of a package. It has a row of size 0 (object.h), so that a crash by a package
 * that was not loaded is explained.
 */
#ifdef DUDA_FRAMEWORK
#define DUDA_PACKAGE(type, variable)
#else
#define DUDA_PACKAGE(type, variable) \
    DUDA_C_BEGIN \
    extern const type *variable __attribute__((visibility("hidden"))); \
    __attribute__((weak)) const type *variable; \
    DUDA_C_END \
    DUDA_OBJECT_ROW(variable, #variable, 0)
#endif

#endif
