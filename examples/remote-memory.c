/*
 * Uses the memory of another host: a text, a counter, a lock, several counters at once.
 *
 *     remote-memory RACK HOST SERVER [KEY]
 *
 * RACK is the description, HOST this host's name in it, SERVER the host with the memory. docs/memory.md says how to compile it.
 */
#include <inttypes.h>
#include <p4rack_memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTERS 8

static void check(const char *what, p4rack_memory_status status)
{
    if (status != P4RACK_MEMORY_OK) {
        fprintf(stderr, "%s: %s\n", what, p4rack_memory_status_text(status));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s RACK HOST SERVER [KEY]\n", argv[0]);
        return 2;
    }
    uint32_t key = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 0) : 1;
    char error[512];
    p4rack_memory *memory = p4rack_memory_open(argv[1], argv[2], NULL, NULL, error, sizeof error);
    if (memory == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    int32_t found = p4rack_memory_node(memory, argv[3]);
    if (found < 0) {
        fprintf(stderr, "%s has no memory\n", argv[3]);
        return 1;
    }
    uint16_t node = (uint16_t)found;

    /* A write is not answered: read it back. */
    const char text[] = "written from C";
    char back[sizeof text] = "";
    check("write", p4rack_memory_write(memory, node, key, 256, text, sizeof text));
    for (int tries = 0; tries < 100 && strcmp(text, back) != 0; tries++)
        check("read", p4rack_memory_read(memory, node, key, 256, back, sizeof back));
    printf("read back: %s\n", back);

    /* A counter that any number of hosts may share. */
    uint64_t before;
    check("fetch-add", p4rack_memory_modify(memory, node, key, 0, P4RACK_MEMORY_FETCH_ADD, 1, &before));
    printf("visitor %" PRIu64 "\n", before + 1);

    /* A lock: only one takes it. */
    uint64_t owner;
    check("cas", p4rack_memory_cas(memory, node, key, 8, 0, 1, &owner));
    printf("the lock was %s\n", owner == 0 ? "free" : "taken");
    check("swap", p4rack_memory_modify(memory, node, key, 8, P4RACK_MEMORY_SWAP, 0, NULL));

    /* Several at the same time. */
    p4rack_memory_operation adds[COUNTERS] = {{0}};
    for (int i = 0; i < COUNTERS; i++) {
        adds[i].node = node;
        adds[i].key = key;
        adds[i].kind = P4RACK_MEMORY_FETCH_ADD;
        adds[i].address = 64 + 8 * (uint64_t)i;
        adds[i].operand = (uint64_t)i;
    }
    check("batch", p4rack_memory_batch(memory, adds, COUNTERS));
    uint64_t sum = 0;
    for (int i = 0; i < COUNTERS; i++)
        sum += adds[i].old + adds[i].operand;
    printf("sum of the counters %" PRIu64 "\n", sum);

    /* What is refused says why. */
    p4rack_memory_status status = p4rack_memory_read(memory, node, key + 1, 0, back, sizeof back);
    printf("with another key: %s\n", p4rack_memory_status_text(status));

    p4rack_memory_close(memory);
    return strcmp(text, back) == 0 && status == P4RACK_MEMORY_WRONG_KEY ? 0 : 1;
}
