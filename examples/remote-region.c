/*
 * A counter for each word of a text, in remote memory with a cache in front.
 *
 *     remote-region RACK HOST AT [WAY]
 *
 * RACK is a rack's description, HOST this host in it, AT the host with the memory. Words come from standard input. docs/regions.md says how
 * to compile it.
 */
#include <p4rack_region.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(const char *what, p4rack_memory_status status)
{
    if (status != P4RACK_MEMORY_OK) {
        fprintf(stderr, "%s: %s\n", what, p4rack_memory_status_text(status));
        exit(1);
    }
}

/* FNV-1a */
static uint64_t hash(const char *word)
{
    uint64_t mixed = 0xcbf29ce484222325u;
    for (; *word; word++)
        mixed = (mixed ^ (unsigned char)*word) * 0x100000001b3u;
    return mixed;
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: remote-region RACK HOST AT [WAY]\n");
        return 2;
    }
    p4rack_memory_access access = {.rack = argv[1], .host = argv[2], .at = argv[3], .way = argc == 5 ? argv[4] : NULL};
    if (access.way != NULL && strcmp(access.way, "local") == 0)
        access.reserve_bytes = 1 << 20; /* nothing else offers it */
    p4rack_region_config config = {.local_bytes = 256 << 10};
    char error[512];
    p4rack_region *region = p4rack_region_open(&access, &config, error, sizeof error);
    if (region == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    p4rack_region_statistics about;
    check("statistics", p4rack_region_statistics_of(region, &about));

    char word[64];
    uint64_t words = 0, most = 0;
    while (scanf("%63s", word) == 1) {
        uint64_t count, address = hash(word) % (about.region_bytes / 8) * 8;
        check("read", p4rack_region_read(region, address, &count, sizeof count));
        count++;
        check("write", p4rack_region_write(region, address, &count, sizeof count));
        words++;
        most = count > most ? count : most;
    }
    check("flush", p4rack_region_flush(region));
    check("statistics", p4rack_region_statistics_of(region, &about));
    printf("%llu words, the most frequent one %llu times; %llu accesses waited for remote memory\n",
           (unsigned long long)words, (unsigned long long)most, (unsigned long long)about.from_remote);
    p4rack_region_close(region);
    return 0;
}
