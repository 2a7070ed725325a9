// Starts k threads, one after another or all at once ("together"), each of which sleeps a little.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *nap(void *unused) {
    usleep(200000);
    return unused;
}

int main(int argc, char **argv) {
    const int k = argc > 1 ? atoi(argv[1]) : 0;
    const int together = argc > 2 && strcmp(argv[2], "together") == 0;
    pthread_t thread[64];
    for (int i = 0; i < k && i < 64; i++) {
        pthread_create(&thread[i], NULL, nap, NULL);
        if (!together) pthread_join(thread[i], NULL);
    }
    for (int i = 0; together && i < k && i < 64; i++) pthread_join(thread[i], NULL);
    return 0;
}
