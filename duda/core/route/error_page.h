// SPDX-License-Identifier: Apache-2.0
/*
 * Bodies of a service for the errors that the server responds with below its URL: router->not_found() and error().
 */
#ifndef DUDA_CORE_ROUTE_ERROR_PAGE_H
#define DUDA_CORE_ROUTE_ERROR_PAGE_H

struct mk_request;
struct service_worker;

/*
 * Replaces the server's page of a response whose head is about to be sent by what the service makes, if it has a
 * function for that. Whatever goes wrong there leaves the server's page.
 */
void error_page_replace(struct mk_request *req, struct service_worker *worker);

#endif
