/*
 * Uses the memory of another host: a text, a counter, a lock, several counters at once.
 *
 *     remote-memory RACK HOST SERVER [KEY [WAY]]
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
        fprintf(stderr, "usage: %s RACK HOST SERVER [KEY [WAY]]\n", argv[0]);
        return 2;
    }
    p4rack_memory_access access = {.rack = argv[1], .host = argv[2], .at = argv[3], .key = 1};
    if (argc > 4)
        access.key = (uint32_t)strtoul(argv[4], NULL, 0);
    if (argc > 5)
        access.way = argv[5];
    char error[512];
    p4rack_memory *memory = p4rack_memory_open(&access, error, sizeof error);
    if (memory == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }

    /* By EDM a write is not answered: read it back. */
    const char text[] = "written from C";
    char back[sizeof text] = "";
    check("write", p4rack_memory_write(memory, 256, text, sizeof text));
    for (int tries = 0; tries < 100 && strcmp(text, back) != 0; tries++)
        check("read", p4rack_memory_read(memory, 256, back, sizeof back));
    printf("read back: %s\n", back);

    /* A counter that any number of hosts may share. */
    uint64_t before;
    check("fetch-add", p4rack_memory_modify(memory, 0, P4RACK_MEMORY_FETCH_ADD, 1, &before));
    printf("visitor %" PRIu64 "\n", before + 1);

    /* A lock: only one takes it. */
    uint64_t owner;
    check("cas", p4rack_memory_cas(memory, 8, 0, 1, &owner));
    printf("the lock was %s\n", owner == 0 ? "free" : "taken");
    check("swap", p4rack_memory_modify(memory, 8, P4RACK_MEMORY_SWAP, 0, NULL));

    /* Several at the same time. */
    p4rack_memory_operation adds[COUNTERS] = {{0}};
    for (int i = 0; i < COUNTERS; i++) {
        adds[i].kind = P4RACK_MEMORY_FETCH_ADD;
        adds[i].address = 64 + 8 * (uint64_t)i;
        adds[i].operand = (uint64_t)i;
    }
    check("batch", p4rack_memory_batch(memory, adds, COUNTERS));
    uint64_t sum = 0;
    for (int i = 0; i < COUNTERS; i++)
        sum += adds[i].old + adds[i].operand;
    printf("sum of the counters %" PRIu64 "\n", sum);

    /* Without waiting: a read that is collected later. */
    p4rack_memory_operation later = {.kind = P4RACK_MEMORY_READ, .address = 256, .bytes = back, .length = sizeof back};
    p4rack_memory_operation *ended = NULL;
    size_t count = 0;
    memset(back, 0, sizeof back);
    check("submit", p4rack_memory_submit(memory, &later));
    while (count == 0)
        check("poll", p4rack_memory_poll(memory, 1000000, &ended, 1, &count));
    check("read later", (p4rack_memory_status)ended->status);
    printf("read later: %s\n", back);

    /* What is refused says why. */
    p4rack_memory_status status = p4rack_memory_cas(memory, 4, 0, 1, NULL);
    printf("a word at 4: %s\n", p4rack_memory_status_text(status));

    p4rack_memory_close(memory);
    return ended == &later && strcmp(text, back) == 0 && status == P4RACK_MEMORY_BAD_OPERATION ? 0 : 1;
}
