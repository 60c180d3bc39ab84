/*
 * Writes records to remote memory through Cowbird's rings, reads them back, many at a time, and checks them.
 *
 *     remote-rings INTERFACE IP POOL ENGINE [CA CERT KEY]
 *
 * INTERFACE and IP are the adapter's, POOL and ENGINE the addresses of the set-up services, which are encrypted if the files of an
 * authority, a certificate and its key are given. docs/cowbird.md says how to compile it.
 */
#include <inttypes.h>
#include <p4rack_cowbird.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 1000
#define WORDS 8 /* of a record */
#define AT_ONCE 32
#define PATIENCE_US 5000000

static void check(const char *what, p4rack_memory_status status)
{
    if (status != P4RACK_MEMORY_OK) {
        fprintf(stderr, "%s: %s\n", what, p4rack_memory_status_text(status));
        exit(1);
    }
}

/* Waits for at least one request of a group; returns how many are done. */
static size_t wait_for_some(p4rack_cowbird_thread *thread, uint32_t poll)
{
    uint64_t done[AT_ONCE];
    size_t count;
    check("wait", p4rack_cowbird_poll_wait(thread, poll, done, 1, PATIENCE_US, &count));
    if (count == 0) {
        fprintf(stderr, "nothing came for five seconds\n");
        exit(1);
    }
    return count;
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 8) {
        fprintf(stderr, "usage: %s INTERFACE IP POOL ENGINE [CA CERT KEY]\n", argv[0]);
        return 2;
    }
    const char *engines[] = {argv[4]};
    const uint64_t regions[] = {RECORDS * WORDS * sizeof(uint64_t)};
    p4rack_cowbird_config config = {
        .interface = argv[1],
        .ip = argv[2],
        .pool = argv[3],
        .engines = engines,
        .engine_count = 1,
        .region_bytes = regions,
        .region_count = 1,
        .threads = 1,
    };
    if (argc == 8) {
        config.ca_cert = argv[5];
        config.cert = argv[6];
        config.private_key = argv[7];
    }
    char text[512];
    p4rack_cowbird *node = p4rack_cowbird_open(&config, text, sizeof text);
    if (node == NULL) {
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    if (p4rack_cowbird_look(node, text, sizeof text) == P4RACK_COWBIRD_SERVED)
        printf("served by %s\n", text);

    /* In a program with more threads each one takes rings of its own. */
    p4rack_cowbird_thread *thread = p4rack_cowbird_take(node);
    uint32_t poll = p4rack_cowbird_poll_create(thread);
    uint64_t request, record[WORDS];

    /* What is written is copied, so one record serves for all. */
    for (uint64_t number = 0, under_way = 0; number < RECORDS || under_way > 0;) {
        if (number < RECORDS && under_way < AT_ONCE) {
            for (uint64_t word = 0; word < WORDS; word++)
                record[word] = number * WORDS + word;
            check("write", p4rack_cowbird_async_write(thread, 0, record, number * sizeof record, sizeof record, &request));
            check("add", p4rack_cowbird_poll_add(thread, poll, request));
            number++;
            under_way++;
        } else {
            under_way -= wait_for_some(thread, poll);
        }
    }

    /* What is read needs a place of its own until it has come. Reads come in order. */
    static uint64_t all[RECORDS][WORDS];
    for (uint64_t number = 0, under_way = 0; number < RECORDS || under_way > 0;) {
        if (number < RECORDS && under_way < AT_ONCE) {
            check("read", p4rack_cowbird_async_read(thread, 0, number * sizeof record, all[number], sizeof record, &request));
            check("add", p4rack_cowbird_poll_add(thread, poll, request));
            number++;
            under_way++;
        } else {
            under_way -= wait_for_some(thread, poll);
        }
    }
    uint64_t wrong = 0;
    for (uint64_t number = 0; number < RECORDS; number++)
        for (uint64_t word = 0; word < WORDS; word++)
            wrong += all[number][word] != number * WORDS + word;
    printf("%d records written and read, %" PRIu64 " words wrong\n", RECORDS, wrong);

    printf("beyond the end: %s\n",
           p4rack_memory_status_text(
               p4rack_cowbird_async_read(thread, 0, regions[0], record, sizeof record, &request)));
    p4rack_cowbird_thread_close(thread);
    p4rack_cowbird_close(node);
    return wrong != 0;
}
