/* One function that runs or waits, called on three paths of which 70, 20 and 10 % of the time are known: `paths cpu|wait|deep`. Compiled without frame
 * pointers only the unwind tables know the callers. Ends when its input does. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))
static volatile uint64_t sink;
static volatile int goes_on = 1;

FUNCTION void burn(uint64_t n) { for (uint64_t i = 0; i < n; i++) sink += i * i; }
FUNCTION void rest(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, 0);
    sink++;
}

/* No path ends in its call, which would be a jump; each has a frame of its own size. */
#define PATH(name, parts, size) \
    FUNCTION void inner_##name(void (*act)(int), int part) { volatile char room[size]; room[0] = 1; act(parts * part); sink += room[0]; } \
    FUNCTION void name(void (*act)(int), int part) { inner_##name(act, part); sink++; }
PATH(path_seventy, 7, 16)
PATH(path_twenty, 2, 200)
PATH(path_ten, 1, 16)

FUNCTION void run(int parts) { burn(parts * 3000ull); sink++; }
FUNCTION void wait_for(int parts) { rest(parts); sink++; }

/* Deeper than any copy of a stack. */
FUNCTION uint64_t deep(int left) {
    volatile char room[256];
    room[0] = 1;
    while (left == 0 && goes_on) burn(100000);
    if (left == 0) return sink;
    return deep(left - 1) + room[0];
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Prints how long each path has taken: a wait ends later than it should on a busy machine. */
FUNCTION void *work(void *how) {
    prctl(PR_SET_NAME, "worker-7");
    if (how == 0) deep(1000);
    void (*act)(int) = how;
    uint64_t sums[3] = {0, 0, 0};
    for (int round = 1;; round++) {
        /* Of varying length, so that they are never in step with a clock. */
        int part = 3 + round % 5;
        uint64_t begin = now();
        path_seventy(act, part);
        uint64_t seventy = now();
        path_twenty(act, part);
        uint64_t twenty = now();
        path_ten(act, part);
        sums[0] += seventy - begin;
        sums[1] += twenty - seventy;
        sums[2] += now() - twenty;
        if (act == run) continue;
        printf("%llu %llu %llu\n", (unsigned long long)sums[0], (unsigned long long)sums[1], (unsigned long long)sums[2]);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    pthread_t thread;
    void *how = argc < 2 || strcmp(argv[1], "deep") == 0 ? 0 : strcmp(argv[1], "wait") == 0 ? (void *)wait_for : (void *)run;
    pthread_create(&thread, 0, work, how);
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    exit(0);
}
