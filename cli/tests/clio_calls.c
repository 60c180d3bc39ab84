/*
 * Calls of p4rack_clio.h that the other programs don't make: clio_calls BOARD [CA [RACK]].
 *
 * BOARD has 16 MiB, a store, and permits fences for all processes. If CA is not empty, the set-up is encrypted. RACK has a board on h1.
 */
#include <p4rack_clio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what); \
            exit(1); \
        } \
    } while (0)

enum { KIB = 1024, RESERVED = 256 * KIB };

static p4rack_clio *opened(p4rack_clio_options options) {
    char error[512];
    p4rack_clio *clio = p4rack_clio_open_with(&options, error, sizeof error);
    if (clio == NULL) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return clio;
}

/* Whether options are refused with these words. */
static int is_refused(p4rack_clio_options options, const char *words) {
    char error[512] = "";
    p4rack_clio *clio = p4rack_clio_open_with(&options, error, sizeof error);
    p4rack_clio_close(clio);
    if (clio != NULL || strstr(error, words) == NULL) {
        fprintf(stderr, "instead of `%s`: `%s`\n", words, error);
        return 0;
    }
    return 1;
}

/* The process has reserved RESERVED bytes and may allocate twice as many. */
static void allocate(p4rack_clio *clio) {
    uint64_t first = 1, second = 1, third = 1, read_only = 0;
    p4rack_clio_event events[2] = {
        p4rack_clio_ralloc_with(clio, RESERVED / 2, P4RACK_CLIO_ALL, &first, P4RACK_CLIO_ASYNC),
        p4rack_clio_ralloc_with(clio, RESERVED / 2, P4RACK_CLIO_ALL, &second, P4RACK_CLIO_ASYNC),
    };
    CHECK(events[0].status == P4RACK_MEMORY_OK && events[0].number != 0);
    CHECK(p4rack_clio_rpoll(clio, events, 2) == P4RACK_MEMORY_OK);
    CHECK(first != 0 && second != 0 && first != second);
    p4rack_clio_event full = p4rack_clio_ralloc_with(clio, 1, P4RACK_CLIO_ALL, &third, P4RACK_CLIO_ASYNC);
    CHECK(p4rack_clio_rpoll(clio, &full, 1) == P4RACK_MEMORY_FULL && third == 0);
    CHECK(p4rack_clio_rwrite(clio, first, "first", 5, P4RACK_CLIO_SYNC).status == P4RACK_MEMORY_OK);

    p4rack_clio_event freed = p4rack_clio_rfree_with(clio, first, RESERVED / 2, P4RACK_CLIO_ASYNC);
    CHECK(freed.status == P4RACK_MEMORY_OK && freed.number != 0);
    CHECK(p4rack_clio_rpoll(clio, &freed, 1) == P4RACK_MEMORY_OK);
    CHECK(p4rack_clio_rread(clio, first, &first, 1, P4RACK_CLIO_SYNC).status == P4RACK_MEMORY_OUT_OF_BOUNDS);

    p4rack_clio_event event = p4rack_clio_ralloc_with(clio, 1, P4RACK_CLIO_READ, &read_only, P4RACK_CLIO_SYNC);
    CHECK(event.status == P4RACK_MEMORY_OK && event.number == 0);
    char byte = 1;
    CHECK(p4rack_clio_rread(clio, read_only, &byte, 1, P4RACK_CLIO_SYNC).status == P4RACK_MEMORY_OK && byte == 0);
    CHECK(p4rack_clio_rwrite(clio, read_only, "x", 1, P4RACK_CLIO_SYNC).status == P4RACK_MEMORY_NOT_PERMITTED);
    CHECK(p4rack_clio_ralloc_with(clio, 1, 8, &read_only, P4RACK_CLIO_SYNC).status == P4RACK_MEMORY_BAD_ARGUMENT);
    CHECK(p4rack_clio_ralloc_with(clio, 1, P4RACK_CLIO_ALL, NULL, P4RACK_CLIO_SYNC).status == P4RACK_MEMORY_BAD_ARGUMENT);
}

static void share(p4rack_clio *one, p4rack_clio *other) {
    uint16_t epoch = 0;
    uint32_t pid = p4rack_clio_process(other, &epoch);
    CHECK(pid != 0 && pid != p4rack_clio_process(one, NULL));
    uint64_t start = p4rack_clio_start(one, NULL);
    CHECK(p4rack_clio_rwrite(one, start + 10, "shared", 6, P4RACK_CLIO_SYNC).status == P4RACK_MEMORY_OK);
    p4rack_memory_status status;
    uint64_t there = p4rack_clio_rshare(one, start, 64 * KIB, pid, epoch, P4RACK_CLIO_READ, &status);
    CHECK(there != 0 && status == P4RACK_MEMORY_OK);
    char found[6];
    CHECK(p4rack_clio_rread(other, there + 10, found, 6, P4RACK_CLIO_SYNC).status == P4RACK_MEMORY_OK);
    CHECK(memcmp(found, "shared", 6) == 0);
    CHECK(p4rack_clio_rwrite(other, there, "x", 1, P4RACK_CLIO_SYNC).status == P4RACK_MEMORY_NOT_PERMITTED);
    CHECK(p4rack_clio_rfree(other, there, 64 * KIB) == P4RACK_MEMORY_OK);
    pid = p4rack_clio_process(one, &epoch);
    start = p4rack_clio_start(other, NULL);
    CHECK(p4rack_clio_rshare(other, start, 1, pid, epoch, P4RACK_CLIO_READ, &status) == 0);
    CHECK(status == P4RACK_MEMORY_NOT_PERMITTED);
    CHECK(p4rack_clio_rshare(other, start, 1, pid, epoch + 1, P4RACK_CLIO_READ, &status) == 0);
    CHECK(status == P4RACK_MEMORY_BAD_OPERATION);
}

static void store(p4rack_clio *clio) {
    CHECK(p4rack_clio_kv_update(clio, "key", 3, "a", 1) == P4RACK_MEMORY_OUT_OF_BOUNDS);
    CHECK(p4rack_clio_kv_create(clio, "key", 3, "b", 1) == P4RACK_MEMORY_OK);
    CHECK(p4rack_clio_kv_create(clio, "key", 3, "c", 1) == P4RACK_MEMORY_NOT_PERMITTED);
    CHECK(p4rack_clio_kv_update(clio, "key", 3, "dd", 2) == P4RACK_MEMORY_OK);
    char value[2];
    size_t count = 0;
    CHECK(p4rack_clio_kv_get(clio, "key", 3, value, sizeof value, &count) == P4RACK_MEMORY_OK);
    CHECK(count == 2 && memcmp(value, "dd", 2) == 0);
    CHECK(p4rack_clio_kv_delete(clio, "key", 3) == P4RACK_MEMORY_OK);
    CHECK(p4rack_clio_kv_create(clio, "", 0, "c", 1) == P4RACK_MEMORY_BAD_LENGTH);
}

int main(int argc, char **argv) {
    CHECK(argc >= 2 && argc <= 4);
    p4rack_clio_options options = {0};
    options.board = argv[1];
    if (argc > 2 && argv[2][0] != 0)
        options.ca = argv[2];
    if (argc > 3) {
        options.rack = argv[3];
        options.at = "h1";
    }
    p4rack_clio_options own = options, other = options;
    own.reserve_bytes = RESERVED;
    other.reserve_bytes = 128 * KIB;
    other.limit_bytes = 512 * KIB;
    other.share_limit_bytes = 128 * KIB;
    p4rack_clio *one = opened(own), *two = opened(other), *all = opened(options);
    uint64_t more = 0;
    CHECK(p4rack_clio_ralloc_with(two, 384 * KIB, P4RACK_CLIO_ALL, &more, P4RACK_CLIO_SYNC).status == P4RACK_MEMORY_OK);
    CHECK(p4rack_clio_ralloc(two, 1, NULL) == 0);
    allocate(one);
    share(one, two);
    store(all);
    CHECK(p4rack_clio_rfence(all) == P4RACK_MEMORY_OK && p4rack_clio_rfence_all(all) == P4RACK_MEMORY_OK);
    p4rack_clio_close(one);
    p4rack_clio_close(two);
    p4rack_clio_close(all);

    other.limit_bytes = 64 * KIB;
    CHECK(is_refused(other, "limit_bytes: 65536"));
    options.limit_bytes = 1;
    CHECK(is_refused(options, "give reserve_bytes, too"));
    options.limit_bytes = 0;
    options.cert = "cert.pem";
    CHECK(is_refused(options, "cert and key belong together"));
    options.key = "key.pem";
    options.ca = NULL;
    CHECK(is_refused(options, "ca is NULL"));
    p4rack_clio_options none = {0};
    CHECK(is_refused(none, "board is NULL"));
    none.rack = "/nonexistent.toml";
    CHECK(is_refused(none, "at is NULL"));
    none.at = "h1";
    CHECK(is_refused(none, "/nonexistent.toml"));
    printf("all right\n");
    return 0;
}
