// SPDX-License-Identifier: Apache-2.0
/* Hello by cpp-httplib, as its page does it: one thread of its pool, keep-alive. */
#include <httplib.h>
#include <iostream>
#include <thread>

int main()
{
    httplib::Server server;
    server.new_task_queue = [] { return new httplib::ThreadPool(1); };
    server.set_tcp_nodelay(true);
    server.set_keep_alive_max_count(1000000);
    server.Get(R"(/hello/([^/]+))", [](const httplib::Request &request, httplib::Response &response) {
        response.set_content("Hello, " + request.matches[1].str() + "!\n", "text/plain");
    });
    int port = server.bind_to_any_port("127.0.0.1");
    std::thread thread([&] { server.listen_after_bind(); });
    std::cout << "http://127.0.0.1:" << port << "/hello/you" << std::endl;
    std::cin.get();
    server.stop();
    thread.join();
    return 0;
}
