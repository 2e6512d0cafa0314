/* W11's load generator for every server: CONNS connections with one small request in flight on each, kept, or a new one
 * for each request, which the server closes (once); over TLS where the fourth word is "tls": TLS 1.3 with AES-128, a whole
 * handshake each time and no certificate looked at. Reports the server's CPU time for a request, from /proc.
 * usage: request_load PEER SERVER_PID PORT plain|tls kept|once PATH REQUESTS CONNS FIGURE */
#include "common.h"
#include <ev.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

typedef struct { ev_io io; SSL *ssl; size_t sent, have; int answered; char head[4096]; } conn;
static struct ev_loop *loop;
static SSL_CTX *context;
static struct sockaddr_in address = {.sin_family = AF_INET};
static char request[256];
static size_t request_len;
static int once;
static long left, unfinished;

static void go_on(conn *c);
static void on_event(EV_P_ ev_io *w, int r) { (void)loop; (void)r; go_on((conn *)w); }
static void watch(conn *c, int events) {
    if (ev_is_active(&c->io) && (c->io.events & (EV_READ | EV_WRITE)) == events) return;
    ev_io_stop(loop, &c->io);
    ev_io_set(&c->io, c->io.fd, events);
    ev_io_start(loop, &c->io);
}
static void conn_open(conn *c) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || (connect(fd, (void *)&address, sizeof address) && errno != EINPROGRESS)) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->sent = c->have = 0, c->answered = 0;
    if (context) {
        c->ssl = SSL_new(context);
        SSL_set_tlsext_host_name(c->ssl, "localhost");
        SSL_set_fd(c->ssl, fd);
        SSL_set_connect_state(c->ssl);
    }
    ev_io_init(&c->io, on_event, fd, EV_WRITE);
    ev_io_start(loop, &c->io);
}
static void conn_close(conn *c) {
    ev_io_stop(loop, &c->io);
    if (c->ssl) SSL_free(c->ssl);
    c->ssl = 0;
    close(c->io.fd);
}
/* >0 bytes, 0 at the end, -1 later */
static int transfer(conn *c, int writes, char *bytes, size_t n) {
    if (c->ssl) {
        ERR_clear_error();
        int k = writes ? SSL_write(c->ssl, bytes, n) : SSL_read(c->ssl, bytes, n);
        if (k > 0) return k;
        switch (SSL_get_error(c->ssl, k)) {
        case SSL_ERROR_WANT_READ: watch(c, EV_READ); return -1;
        case SSL_ERROR_WANT_WRITE: watch(c, EV_WRITE); return -1;
        case SSL_ERROR_ZERO_RETURN: return 0;
        default:
            if (!writes && c->answered) return 0;
            ERR_print_errors_fp(stderr);
            die("TLS");
        }
    }
    ssize_t k = writes ? write(c->io.fd, bytes, n) : read(c->io.fd, bytes, n);
    if (k >= 0) return k;
    if (errno != EAGAIN) die(writes ? "write" : "read");
    watch(c, writes ? EV_WRITE : EV_READ);
    return -1;
}
/* The whole answer is there: two bytes behind an empty line. */
static int is_answered(conn *c) {
    c->head[c->have] = 0;
    char *end = strstr(c->head, "\r\n\r\n");
    if (!end || c->head + c->have - end < 6) return 0;
    if (strncmp(c->head, "HTTP/1.1 200", 12) || strcmp(end, "\r\n\r\nok")) die("answer");
    return 1;
}
static int take_one(void) { return left > 0 ? left-- > 0 : 0; }
static void finished_one(void) {
    if (--unfinished == 0) ev_break(loop, EVBREAK_ALL);
}
static void go_on(conn *c) {
    for (;;) {
        if (c->sent < request_len) {
            int k = transfer(c, 1, request + c->sent, request_len - c->sent);
            if (k < 0) return;
            c->sent += k;
            continue;
        }
        int k = transfer(c, 0, c->head + c->have, sizeof c->head - 1 - c->have);
        if (k < 0) return;
        if (k == 0) { /* the server has closed */
            if (!once || !c->answered) die("closed too early");
            conn_close(c);
            finished_one();
            if (take_one()) conn_open(c);
            return;
        }
        c->have += k;
        if (c->answered || !is_answered(c)) continue;
        c->answered = 1;
        if (once) continue;
        finished_one();
        c->answered = 0, c->have = 0;
        if (!take_one()) return watch(c, EV_READ);
        c->sent = 0;
    }
}
/* `requests` of them, CONNS at a time; kept connections are there already after the first round. */
static void rounds(conn *c, long conns, long requests) {
    static int is_open;
    left = unfinished = requests;
    for (long i = 0; i < conns && take_one(); i++) {
        if (once || !is_open) conn_open(&c[i]);
        else c[i].sent = 0, watch(&c[i], EV_WRITE);
    }
    is_open = 1;
    ev_run(loop, 0);
}

int main(int argc, char **argv) {
    if (argc < 10) return 2;
    int pid = atoi(argv[2]);
    long requests = atol(argv[7]), conns = atol(argv[8]);
    signal(SIGPIPE, SIG_IGN);
    address.sin_port = htons(atoi(argv[3])), address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!strcmp(argv[4], "tls")) {
        context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
        SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    }
    once = !strcmp(argv[5], "once");
    request_len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost:%s\r\n\r\n", argv[6], argv[3]);
    loop = ev_loop_new(EVBACKEND_EPOLL);
    conn *c = calloc(conns, sizeof *c);
    rounds(c, conns, conns * 4); /* warm up */
    double cpu = process_cpu_s(pid);
    meter m = meter_start();
    rounds(c, conns, requests);
    double wall = meter_wall(m);
    cpu = process_cpu_s(pid) - cpu;
    const struct { const char *name, *unit; double value; } figures[] = {
        {"cpu", "server-cpu-us/request", cpu * 1e6 / requests}, {"rate", "requests/s", requests / wall}};
    for (int i = 0; i < 2; i++)
        printf("workload=%s.%s peer=%s value=%.3f unit=%s wall_s=%.3f cpu_s=%.3f rss_kib=%ld\n", argv[9], figures[i].name,
               argv[1], figures[i].value, figures[i].unit, wall, cpu, process_peak_kib(pid));
    return 0;
}
