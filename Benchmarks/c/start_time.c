/* W16: how long whole processes take, from their start to their end. The programs run in turns, so that what disturbs
 * the machine disturbs all alike; the figure is the median of each.
 * usage: start_time TIMES -- WORKLOAD PEER PROGRAM ARGUMENT... [-- WORKLOAD PEER PROGRAM ARGUMENT...]... */
#include "common.h"
#include <spawn.h>
#include <sys/wait.h>

enum { MAXIMUM_PROGRAMS = 16 };

typedef struct { const char *workload, *peer; char **command; int64_t *took; double cpu; long peak; } program;

static void run(program *p, long round, posix_spawn_file_actions_t *to_null, char **environment) {
    pid_t pid;
    int status;
    struct rusage used;
    int64_t began = now_ns();
    if (posix_spawnp(&pid, p->command[0], to_null, 0, p->command, environment)) die(p->command[0]);
    if (wait4(pid, &status, 0, &used) != pid) die("wait4");
    p->took[round] = now_ns() - began;
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        fprintf(stderr, "start_time: %s failed with status %#x\n", p->peer, status);
        exit(1);
    }
    p->cpu += used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    if (used.ru_maxrss > p->peak) p->peak = used.ru_maxrss;
}

int main(int argc, char **argv, char **environment) {
    long times = arg(argc, argv, 1, 20);
    program programs[MAXIMUM_PROGRAMS];
    int count = 0;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--")) continue;
        argv[i] = 0; /* the end of the command before it */
        if (count == MAXIMUM_PROGRAMS || i + 3 >= argc) break;
        programs[count++] = (program){argv[i + 1], argv[i + 2], argv + i + 3, calloc(times, sizeof(int64_t)), 0, 0};
    }
    if (times < 1 || !count) {
        fprintf(stderr, "usage: start_time TIMES -- WORKLOAD PEER PROGRAM ARGUMENT... [-- WORKLOAD ...]...\n");
        return 2;
    }
    posix_spawn_file_actions_t to_null;
    posix_spawn_file_actions_init(&to_null);
    posix_spawn_file_actions_addopen(&to_null, 1, "/dev/null", O_WRONLY, 0);
    double wall = now_s();
    for (int i = 0; i < count; i++) run(&programs[i], 0, &to_null, environment); /* their files come into memory */
    for (int i = 0; i < count; i++) programs[i].cpu = 0;
    for (long round = 0; round < times; round++)
        for (int i = 0; i < count; i++) run(&programs[i], round, &to_null, environment);
    wall = now_s() - wall;
    for (int i = 0; i < count; i++) {
        qsort(programs[i].took, times, sizeof(int64_t), cmp_i64);
        printf("workload=%s peer=%s value=%.3f unit=ms wall_s=%.3f cpu_s=%.4f rss_kib=%ld\n", programs[i].workload, programs[i].peer,
               percentile(programs[i].took, times, 0.5) * 1e-6, wall, programs[i].cpu / times, programs[i].peak);
    }
}
