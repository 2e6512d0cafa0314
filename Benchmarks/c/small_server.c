/* The servers of W5 with several loops: COUNT servers, each on a port and a thread of its own, answer every request on any
 * number of connections with the same kilobyte in one write. One process, so that their CPU time is known.
 * usage: small_server COUNT   (prints "ready PORT,PORT…") */
#include "common.h"
#include <ev.h>

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n";
static char answer[sizeof head - 1 + 1024];

typedef struct { ev_io io; size_t have; char request[4096]; } conn;

static void on_read(EV_P_ ev_io *w, int r) {
    (void)r;
    conn *c = (conn *)w;
    ssize_t k = read(w->fd, c->request + c->have, sizeof c->request - 1 - c->have);
    if (k < 0 && errno == EAGAIN) return;
    if (k <= 0) {
        ev_io_stop(EV_A_ w);
        close(w->fd);
        free(c);
        return;
    }
    c->request[c->have += k] = 0;
    if (!strstr(c->request, "\r\n\r\n")) return;
    c->have = 0;
    if (write(w->fd, answer, sizeof answer) != sizeof answer) die("write");
}
static void on_accept(EV_P_ ev_io *w, int r) {
    (void)r;
    int fd, one = 1;
    while ((fd = accept4(w->fd, 0, 0, SOCK_NONBLOCK)) >= 0) {
        conn *c = calloc(1, sizeof *c);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        ev_io_init(&c->io, on_read, fd, EV_READ);
        ev_io_start(EV_A_ &c->io);
    }
}
static void *serve(void *listener) {
    struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL);
    ev_io accepting;
    ev_io_init(&accepting, on_accept, (int)(intptr_t)listener, EV_READ);
    ev_io_start(loop, &accepting);
    ev_run(loop, 0);
    return 0;
}

int main(int argc, char **argv) {
    long count = arg(argc, argv, 1, 1);
    memcpy(answer, head, sizeof head - 1);
    memset(answer + sizeof head - 1, 'x', 1024);
    signal(SIGPIPE, SIG_IGN);
    printf("ready ");
    for (long i = 0; i < count; i++) {
        int listener = tcp_listen(0);
        pthread_t thread;
        if (pthread_create(&thread, 0, serve, (void *)(intptr_t)listener)) die("thread");
        printf("%s%d", i ? "," : "", listening_port(listener));
    }
    puts("");
    fflush(stdout);
    for (;;) pause();
}
