/*
 * One handle over two boards: clio_two_boards BOARD,BOARD. Memory, locks and fences of each, by addresses that name the board.
 */
#include <p4rack_clio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int is_right, const char *what) {
    if (!is_right) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

int main(int argc, char **argv) {
    char why[200] = "";
    check(argc == 2, "usage: clio_two_boards BOARD,BOARD");
    p4rack_clio *clio = p4rack_clio_open(argv[1], 64 * 1024, why, sizeof why);
    check(clio != NULL, why);
    check(p4rack_clio_boards(clio) == 2 && p4rack_clio_boards(NULL) == 0, "boards");
    check(p4rack_clio_process_at(clio, 1, NULL) != 0 && p4rack_clio_process_at(clio, 2, NULL) == 0, "processes");
    for (uint16_t board = 0; board < 2; board++) {
        uint64_t bytes = 0, start = p4rack_clio_start_at(clio, board, &bytes);
        char found[6] = "";
        check(start >> 48 == board && bytes >= 32 * 1024, "a range on each board");
        check(p4rack_clio_rlock(clio, start) == P4RACK_MEMORY_OK, "lock");
        p4rack_clio_event events[] = {
            p4rack_clio_rwrite(clio, start + 8, board ? "right" : "left.", 6, P4RACK_CLIO_ASYNC),
            p4rack_clio_rread(clio, start + 8, found, 6, P4RACK_CLIO_ASYNC),
        };
        check(p4rack_clio_rpoll(clio, events, 2) == P4RACK_MEMORY_OK, "write and read");
        check(strcmp(found, board ? "right" : "left.") == 0, "what was read");
        check(p4rack_clio_runlock(clio, start) == P4RACK_MEMORY_OK, "unlock");
        /* Allocations take turns. */
        uint64_t more = p4rack_clio_ralloc(clio, 4096, NULL);
        check(more >> 48 == board && p4rack_clio_rfree(clio, more, 0) == P4RACK_MEMORY_BAD_LENGTH, "allocation");
    }
    check(p4rack_clio_rfence(clio) == P4RACK_MEMORY_OK && p4rack_clio_rrelease(clio) == P4RACK_MEMORY_OK, "fence");
    check(p4rack_clio_start_at(clio, 2, NULL) == 0, "no third board");
    p4rack_clio_close(clio);
    puts("all right");
    return 0;
}
