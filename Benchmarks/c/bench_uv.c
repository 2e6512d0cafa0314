/* Peer: libuv. W13: children started, read and reaped, one at a time. See ../README.md. */
#include "common.h"

#include <uv.h>

static long left;
static int open_ends;
static size_t bytes;
static uv_process_t process;
static uv_pipe_t output;
static char buffer[65536];

static void begin_next(uv_loop_t *loop);

static void has_closed(uv_handle_t *handle) {
    if (--open_ends == 0 && --left > 0) begin_next(handle->loop);
}

static void has_ended(uv_process_t *ended, int64_t status, int signal) {
    if (status || signal) die("a child has failed");
    uv_close((uv_handle_t *)ended, has_closed);
}

static void give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *given) {
    (void)handle, (void)size;
    *given = uv_buf_init(buffer, sizeof buffer);
}

static void has_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *given) {
    (void)given;
    if (count >= 0) bytes += (size_t)count;
    else uv_close((uv_handle_t *)stream, has_closed);
}

static void begin_next(uv_loop_t *loop) {
    static char *arguments[] = {"/bin/echo", "words", 0};
    uv_stdio_container_t files[3] = {
        {.flags = UV_INHERIT_FD, .data.fd = 0},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&output},
        {.flags = UV_INHERIT_FD, .data.fd = 2}};
    uv_process_options_t options = {
        .file = arguments[0], .args = arguments, .stdio = files, .stdio_count = 3, .exit_cb = has_ended};
    open_ends = 2;
    uv_pipe_init(loop, &output, 0);
    if (uv_spawn(loop, &process, &options)) die("uv_spawn");
    uv_read_start((uv_stream_t *)&output, give_buffer, has_read);
}

int main(int argc, char **argv) {
    long count = left = arg(argc, argv, 2, 2000);
    uv_loop_t *loop = uv_default_loop();
    meter m = meter_start();
    begin_next(loop);
    uv_run(loop, UV_RUN_DEFAULT);
    double wall = meter_wall(m), cpu = meter_cpu(m);
    if (bytes != (size_t)count * 6) die("bytes are missing");
    report_at("W13.children", "libuv", wall * 1e6 / count, "us/child", wall, cpu);
    report_at("W13.children.cpu", "libuv", cpu * 1e6 / count, "cpu-us/child", wall, cpu);
}
