// Opens the file IN as often as told, each time reads all of it and writes it to OUT once: known bytes and opens.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char buffer[4096];

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    const int times = atoi(argv[3]);
    int out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < times; i++) {
        int in = open(argv[1], O_RDONLY);
        ssize_t n;
        while ((n = read(in, buffer, sizeof buffer)) > 0)
            if (write(out, buffer, n) != n) return 1;
        close(in);
        open("/no/such/file", O_RDONLY);
    }
    return out < 0;
}
