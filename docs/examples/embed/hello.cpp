// SPDX-License-Identifier: Apache-2.0
/*
 * The server inside a program in C++: handlers are methods or functions, and a server is stopped by its owner's end. It
 * ends with a line on stdin.
 *
 *     c++ -std=c++20 hello.cpp $(pkg-config --cflags --libs monkey) -o hello && ./hello
 */
#include <monkey/embed.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace
{

/* No exception may leave a handler: the server is written in C. */
template <class Owner, int (Owner::*method)(mk_request *)> int call(mk_request *req, void *ctx) noexcept
{
    try {
        return (static_cast<Owner *>(ctx)->*method)(req);
    } catch (...) {
        return -1;
    }
}

class Greeter
{
  public:
    explicit Greeter(std::string greeting) : greeting(std::move(greeting)), server(mk_server_new(), stop)
    {
        mk_server_text(server.get(), "[SERVER]\n    Listen 127.0.0.1:0\n");
        mk_server_handle(server.get(), "GET", "/hello/:name", call<Greeter, &Greeter::greet>, this);
        if (mk_server_start(server.get()) < 0)
            throw std::runtime_error(mk_server_error(server.get()));
    }
    int port() const
    {
        return mk_server_port(server.get());
    }

  private:
    static void stop(mk_server *server)
    {
        mk_server_stop(server);
        mk_server_free(server);
    }
    int greet(mk_request *req)
    {
        struct mk_str name = mk_request_param(req, "name");
        if (std::string_view(name.p, name.len) == "nobody")
            throw std::invalid_argument("there is nobody");
        std::string text = greeting + ", " + std::string(name.p, name.len) + "!\n";
        return mk_response_send(req, 200, "text/plain", mk_str(text.data(), text.size()));
    }

    std::string greeting;
    std::unique_ptr<mk_server, void (*)(mk_server *)> server; /* the last member: it ends first */
};

} // namespace

int main()
{
    try {
        Greeter greeter("Hello");
        std::cout << "http://127.0.0.1:" << greeter.port() << "/hello/you" << std::endl;
        std::cin.get();
    } catch (const std::exception &e) {
        std::cerr << "hello: " << e.what() << '\n';
        return 1;
    }
    return 0;
}
