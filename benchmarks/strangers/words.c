/* Counts the words of a text: each POSIX thread fills a hash table of its own, which are then added up. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1 << 16, LETTERS = 24, MOST = 64 };

struct slot { char word[LETTERS]; uint32_t hash; long count; };
struct part { const char *from, *to; struct slot *table; };

static void add(struct slot *table, const char *word, size_t length, uint32_t hash, long count)
{
    struct slot *own = &table[hash % SLOTS];
    while (own->count && (own->hash != hash || strncmp(own->word, word, length) || own->word[length]))
        own = own + 1 < table + SLOTS ? own + 1 : table;
    if (!own->count) {
        memcpy(own->word, word, length);
        own->hash = hash;
    }
    own->count += count;
}

static void *count(void *given)
{
    struct part *part = given;
    for (const char *at = part->from; at < part->to;) {
        char word[LETTERS] = "";
        size_t length = 0;
        uint32_t hash = 2166136261u;
        for (; at < part->to && *at >= 'a' && *at <= 'z' && length < LETTERS - 1; at++) {
            word[length++] = *at;
            hash = (hash ^ (unsigned char)*at) * 16777619u;
        }
        if (length)
            add(part->table, word, length, hash, 1);
        else
            at++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!file || threads < 1 || threads > MOST)
        return 2;
    fseek(file, 0, SEEK_END);
    size_t size = ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    if (fread(text, 1, size, file) != size)
        return 2;
    text[size] = '\n';
    struct part parts[MOST];
    pthread_t ids[MOST];
    size_t begin = 0;
    for (int i = 0; i < threads; i++) {
        size_t end = size * (i + 1) / threads;
        while (end < size && text[end] != '\n')
            end++;
        parts[i] = (struct part){text + begin, text + end, calloc(SLOTS, sizeof(struct slot))};
        begin = end;
        pthread_create(&ids[i], NULL, count, &parts[i]);
    }
    struct slot *sum = calloc(SLOTS, sizeof *sum);
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        for (struct slot *own = parts[i].table; own < parts[i].table + SLOTS; own++)
            if (own->count)
                add(sum, own->word, strlen(own->word), own->hash, own->count);
    }
    long words = 0, distinct = 0;
    for (int i = 0; i < SLOTS; i++) {
        words += sum[i].count;
        distinct += sum[i].count > 0;
    }
    printf("%ld words, %ld distinct\n", words, distinct);
    return 0;
}
