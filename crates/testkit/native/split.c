/* A program whose CPU time, waits and children are known: `split cpu|wait|children|jit`. Ends when its input does. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))
static volatile uint64_t sink;

/* GCC gives a function that calls none no frame, whatever the options, unless its address is used. */
#define FRAME __asm__ volatile("" : : "r"(__builtin_frame_address(0)))
/* One loop for all: copies of it differ in speed by their alignment, on some CPUs by three quarters. */
FUNCTION void sum(uint64_t n) { FRAME; for (uint64_t i = 0; i < n; i++) sink += i * i; }
#define WORK(name, times) FUNCTION void name(uint64_t n) { sum((times) * n); sink++; }
WORK(seventy, 7)
WORK(twenty, 2)
WORK(ten, 1)
WORK(replaceable_name_of_the_same_length_as_markup, 1)

/* Rounds of varying length, so that they are never in step with a clock. */
static uint64_t state = 7;
static uint64_t varying(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return 2000 + (state >> 50);
}

FUNCTION void *work(void *name) {
    prctl(PR_SET_NAME, name);
    for (;;) {
        uint64_t n = varying();
        seventy(n);
        twenty(n);
        ten(n);
    }
}

FUNCTION void *markup(void *name) {
    (void)name;
    for (;;) replaceable_name_of_the_same_length_as_markup(10000);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Between the function that waits and the C library, which may be built without frame pointers and then hides its caller. */
FUNCTION void sleep_ms(long ms) {
    struct timespec t = {0, ms * 1000000};
    nanosleep(&t, 0);
    sink++;
}
FUNCTION void long_wait(void) { sleep_ms(30); sink++; }
FUNCTION void short_wait(void) { sleep_ms(10); sink++; }

/* Prints how long both have waited in all. */
FUNCTION void *waits(void *name) {
    prctl(PR_SET_NAME, name);
    uint64_t sums[2] = {0, 0};
    /* Where it may, so that a wait ends when it should; else its end comes later on a busy machine. */
    setpriority(PRIO_PROCESS, 0, -20);
    for (;;) {
        for (int i = 0; i < 5; i++) {
            uint64_t begin = now();
            long_wait();
            uint64_t middle = now();
            short_wait();
            sums[0] += middle - begin;
            sums[1] += now() - middle;
        }
        printf("%llu %llu\n", (unsigned long long)sums[0], (unsigned long long)sums[1]);
        fflush(stdout);
    }
}

FUNCTION void *idles(void *name) {
    prctl(PR_SET_NAME, name);
    for (;;) pause();
}

FUNCTION void child_work(void) {
    uint64_t until = now() + 30000000;
    while (now() < until) seventy(150);
    sink++;
}

FUNCTION void *forks(void *name) {
    (void)name;
    for (;;) {
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_NAME, "child-7");
            child_work();
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
}

/* Code in memory of no file, named by a perf map. */
FUNCTION void *jit(void *name) {
    (void)name;
#ifdef __x86_64__
    static const unsigned char code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3}; /* dec rdi; jnz; ret */
    void *memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(memory, code, sizeof code);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%llx %zx py::handler:/srv/app.py\n", (unsigned long long)(uintptr_t)memory, sizeof code);
    fclose(map);
    void (*loop)(uint64_t);
    memcpy(&loop, &memory, sizeof loop);
    for (;;) { loop(10000000); sink++; }
#endif
    return 0;
}

int main(int argc, char **argv) {
    const struct { const char *name; void *(*run)(void *); const char *thread; } modes[] = {
        {"cpu", work, "worker-7"}, {"wait", waits, "waiter"}, {"children", forks, ""}, {"jit", jit, ""}, {"markup", markup, ""},
    };
    pthread_t thread;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) pthread_create(&thread, 0, modes[i].run, (void *)modes[i].thread);
    if (argc > 1 && strcmp(argv[1], "wait") == 0) pthread_create(&thread, 0, idles, "idler");
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    exit(0);
}
