/* A server for ../guard: answers every request on one connection after the other with the same kilobyte, in one
 * write, so that a client's work does not depend on how an answer is cut up; nor on the time, since what may be kept in
 * a cache would be written there once a second. usage: answer_server [PORT] */
#include "common.h"

static const char head[] = "HTTP/1.1 200 OK\r\nServer: answer\r\nDate: Sat, 01 Jan 2000 00:00:00 GMT\r\n"
                           "Cache-Control: no-store\r\n"
                           "Content-Type: text/plain\r\nContent-Length: 1024\r\nConnection: keep-alive\r\n\r\n";

static void serve(int fd) {
    char answer[sizeof head - 1 + 1024], request[65536];
    memcpy(answer, head, sizeof head - 1);
    memset(answer + sizeof head - 1, 'x', 1024);
    size_t have = 0;
    for (;;) {
        ssize_t k = read(fd, request + have, sizeof request - 1 - have);
        if (k <= 0) return;
        request[have += k] = 0;
        if (!strstr(request, "\r\n\r\n")) continue;
        have = 0;
        if (write(fd, answer, sizeof answer) != sizeof answer) return;
    }
}

int main(int argc, char **argv) {
    int one = 1, listener = tcp_listen(arg(argc, argv, 1, 0));
    fcntl(listener, F_SETFL, 0);
    report_ready(listener);
    for (;;) {
        int fd = accept(listener, 0, 0);
        if (fd < 0) die("accept");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        serve(fd);
        close(fd);
    }
}
