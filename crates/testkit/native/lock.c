/* Sixteen threads that need one mutex for 5 ms of each 6 ms, in count_request, called by serve. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char kept[200];

__attribute__((noinline)) void count_request(int number) {
    char text[200];
    memset(text, number, sizeof text);
    pthread_mutex_lock(&lock);
    memcpy(kept, text, sizeof kept);
    usleep(5000);
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) void serve(int number) {
    count_request(number);
    usleep(1000);
}

static void *work(void *unused) {
    for (int number = 0;; number++)
        serve(number);
    return unused;
}

int main(void) {
    pthread_t thread;
    for (int i = 0; i < 15; i++)
        pthread_create(&thread, 0, work, 0);
    alarm(60);
    work(0);
}
