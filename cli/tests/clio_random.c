/*
 * Random operations on a board, compared with a plain array: clio_random BOARD OPERATIONS SEED.
 *
 * Up to WINDOW operations are under way. The library keeps the order of those that depend on each other, so a read has
 * to return the array's content at its request.
 */
#include <inttypes.h>
#include <p4rack_clio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 256 * 1024, LONGEST = 20000, WINDOW = 16, RANGE = 3 * 4096 };

static uint64_t state;

/* SplitMix64. */
static uint64_t next(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct slot {
    p4rack_clio_event event;
    size_t length; /* of a read, else 0 */
    uint64_t at;
    uint8_t found[LONGEST], wanted[LONGEST];
};

static uint8_t array[BYTES];
static struct slot slots[WINDOW];

static void fail(const char *what, uint64_t at, int status) {
    fprintf(stderr, "%s at %" PRIu64 ": %s\n", what, at, p4rack_memory_status_text(status));
    exit(1);
}

static void compare(const uint8_t *found, const uint8_t *wanted, size_t length, uint64_t at) {
    for (size_t n = 0; n < length; n++) {
        if (found[n] != wanted[n]) {
            fprintf(stderr, "byte %" PRIu64 ": %d instead of %d\n", at + n, found[n], wanted[n]);
            exit(1);
        }
    }
}

/* Waits for the operation of a slot, and compares what it has read. */
static void finish(p4rack_clio *clio, struct slot *slot) {
    if (slot->event.number != 0) {
        p4rack_memory_status status = p4rack_clio_rpoll(clio, &slot->event, 1);
        if (status != P4RACK_MEMORY_OK) {
            fail("an operation", slot->at, status);
        }
        slot->event.number = 0;
        compare(slot->found, slot->wanted, slot->length, slot->at);
    }
}

/* A range that is allocated is zeros, keeps what is written, and can be freed. */
static void use_range(p4rack_clio *clio) {
    p4rack_memory_status status;
    uint64_t address = p4rack_clio_ralloc(clio, RANGE, &status);
    static uint8_t found[RANGE], wanted[RANGE];
    if (address == 0) {
        fail("ralloc", RANGE, status);
    }
    memset(wanted, 0, RANGE);
    for (int turn = 0; turn < 2; turn++) {
        status = p4rack_clio_rread(clio, address, found, RANGE, P4RACK_CLIO_SYNC).status;
        if (status != P4RACK_MEMORY_OK) {
            fail("a read of a range", address, status);
        }
        compare(found, wanted, RANGE, address);
        memset(wanted, (int)(next() & 0xff), RANGE);
        status = p4rack_clio_rwrite(clio, address, wanted, RANGE, P4RACK_CLIO_SYNC).status;
        if (status != P4RACK_MEMORY_OK) {
            fail("a write of a range", address, status);
        }
    }
    status = p4rack_clio_rfree(clio, address, RANGE);
    if (status != P4RACK_MEMORY_OK) {
        fail("rfree", address, status);
    }
}

int main(int argc, char **argv) {
    char error[512];
    if (argc != 4) {
        fprintf(stderr, "usage: %s BOARD OPERATIONS SEED\n", argv[0]);
        return 2;
    }
    uint64_t operations = strtoull(argv[2], NULL, 10), reads = 0, writes = 0, ranges = 0;
    state = strtoull(argv[3], NULL, 10);
    /* A process of its own has the array; ranges are allocated in the one that the board offers to all. */
    p4rack_clio *clio = p4rack_clio_open(argv[1], BYTES, error, sizeof error);
    p4rack_clio *all = clio == NULL ? NULL : p4rack_clio_open(argv[1], 0, error, sizeof error);
    if (all == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    uint64_t start = p4rack_clio_start(clio, NULL);
    for (uint64_t nth = 0; nth < operations; nth++) {
        struct slot *slot = &slots[nth % WINDOW];
        finish(clio, slot);
        if (next() % 1000 == 0) {
            use_range(all);
            ranges++;
        }
        uint64_t at = next() % BYTES, most = next() % 8 == 0 ? LONGEST : 300;
        size_t length = (size_t)(1 + next() % (BYTES - at < most ? BYTES - at : most));
        slot->at = at;
        if (next() % 2 == 0) {
            slot->length = length;
            memcpy(slot->wanted, array + at, length);
            slot->event = p4rack_clio_rread(clio, start + at, slot->found, length, P4RACK_CLIO_ASYNC);
            reads++;
        } else {
            slot->length = 0;
            for (size_t n = 0; n < length; n++) {
                array[at + n] = (uint8_t)next();
            }
            slot->event = p4rack_clio_rwrite(clio, start + at, array + at, length, P4RACK_CLIO_ASYNC);
            writes++;
        }
        if (slot->event.status != P4RACK_MEMORY_OK) {
            fail("an operation that is asked for", at, slot->event.status);
        }
    }
    for (int n = 0; n < WINDOW; n++) {
        finish(clio, &slots[n]);
    }
    for (uint64_t at = 0; at < BYTES; at += 16384) {
        p4rack_clio_event event = p4rack_clio_rread(clio, start + at, slots[0].found, 16384, P4RACK_CLIO_SYNC);
        if (event.status != P4RACK_MEMORY_OK) {
            fail("the last read", at, event.status);
        }
        compare(slots[0].found, array + at, 16384, at);
    }
    p4rack_clio_close(all);
    p4rack_clio_close(clio);
    printf("%" PRIu64 " reads, %" PRIu64 " writes, %" PRIu64 " ranges, all right\n", reads, writes, ranges);
    return 0;
}
