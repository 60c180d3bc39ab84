/*
 * Clio's interface for C programs: allocation, locks, fences, the key-value store, offloads. p4rack_memory.h reads and writes a board's
 * memory like any other host's.
 *
 *     cargo build --release -p p4rack-memory
 *     cc program.c -Iinclude -Ltarget/release -lp4rack_memory
 *
 * docs/clio.md says how to start a board, and which guarantees operations give. Functions have the names of Clio's
 * paper. Addresses are virtual addresses of the process on the board; they are numbers, not pointers.
 *
 * A handle may have several boards: then it has a process on each, and the upper 16 bits of an address, or of an offload's number, name the
 * board; of the first board they are 0. Operations of a handle have one order. A board that dies ends its own operations with
 * P4RACK_MEMORY_UNKNOWN; those on other boards go on.
 *
 * A handle is a client of a process: all handles that were opened with reserve_bytes 0 on a board share one process, so what one has
 * allocated, another may use. A handle belongs to one thread at a time; each thread has its own.
 */
#ifndef P4RACK_CLIO_H
#define P4RACK_CLIO_H

#include <p4rack_memory.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A client of a process on a board. */
typedef struct p4rack_clio p4rack_clio;

/* Whether a call waits for the end of its operation. */
typedef enum p4rack_clio_mode { P4RACK_CLIO_SYNC = 0, P4RACK_CLIO_ASYNC = 1 } p4rack_clio_mode;

/* Rights to memory, to be added up. Locks and atomic operations need both. */
typedef enum p4rack_clio_rights { P4RACK_CLIO_READ = 1, P4RACK_CLIO_WRITE = 2, P4RACK_CLIO_ALL = 3 } p4rack_clio_rights;

/* An operation. Of a synchronous one, `status` says how it ended; of an asynchronous one P4RACK_MEMORY_OK that it was accepted. */
typedef struct p4rack_clio_event {
    uint64_t number;             /* 0: it has ended, or was not accepted */
    p4rack_memory_status status;
} p4rack_clio_event;

/*
 * Opens a client of the board with this set-up service, HOST:PORT, or of several with commas in between. With `reserve_bytes`
 * above 0 its process is a new one with a range of that many bytes, which ends with the handle, and may allocate as many again, or
 * what the board has left; with 0 it is the process whose memory the board offers to all. Returns NULL if it fails; then `error`,
 * which may be NULL, receives the reason, cut off at `error_length` bytes with its final zero.
 */
p4rack_clio *p4rack_clio_open(const char *board, uint64_t reserve_bytes, char *error, size_t error_length);

/* Where a board is, and what a handle asks for. Set all of it to zero first (`= {0}`). A later
 * version may add fields: compile with the header that belongs to the library. */
typedef struct p4rack_clio_options {
    const char *board;          /* its set-up service, HOST:PORT, or several with commas in between; NULL: those of the hosts `at` in
                                   `rack` */
    const char *rack;           /* a rack's description, whose [clio] says how long to wait for answers; or NULL */
    const char *at;             /* name of the host with the board, or several with commas in between; only with `rack` */
    const char *ca;             /* certificate authority of the board, PEM file: the set-up is encrypted; NULL: it is not */
    const char *cert;           /* our certificate, PEM file, or NULL; only with `key` and `ca` */
    const char *key;            /* its key, PEM file */
    const char *server_name;    /* name in the board's certificate, if it differs from the address, or NULL */
    uint64_t reserve_bytes;     /* bytes of the range of a process of its own, of which each of several boards has an equal part;
                                   0: the process whose memory is offered to all */
    uint64_t limit_bytes;       /* with reserve_bytes: what the process may have allocated, that range included; 0: twice
                                   reserve_bytes, or what the board has left */
    uint64_t share_limit_bytes; /* with reserve_bytes: bytes that other processes may share with it */
} p4rack_clio_options;

/* Opens a client with options. Packets are not encrypted, the set-up is if `ca` is given. Returns as p4rack_clio_open does. */
p4rack_clio *p4rack_clio_open_with(const p4rack_clio_options *options, char *error, size_t error_length);

/* Closes a handle; NULL is ignored. Operations under way are abandoned. */
void p4rack_clio_close(p4rack_clio *clio);

/* Number of the handle's boards; 0 for a handle that is NULL. */
uint16_t p4rack_clio_boards(const p4rack_clio *clio);

/* PID of the handle's process, of several boards on the first one, 0 for a handle that is NULL. `epoch`, which may be NULL, receives
 * which of the processes with this PID it is. Others share memory with it by both. */
uint32_t p4rack_clio_process(const p4rack_clio *clio, uint16_t *epoch);

/* The same of its process on a board, 0 to p4rack_clio_boards - 1; 0 if there is no such board. */
uint32_t p4rack_clio_process_at(const p4rack_clio *clio, uint16_t board, uint16_t *epoch);

/* The range that the process has from its beginning, of several boards on the first one. */
uint64_t p4rack_clio_start(const p4rack_clio *clio, uint64_t *bytes);

/* The same on a board; 0 if there is no such board. */
uint64_t p4rack_clio_start_at(const p4rack_clio *clio, uint16_t board, uint64_t *bytes);

/* Allocates bytes, which are zeros, in whole pages, of several boards on the one on which the handle has asked for least, and on the
 * next one where that has no room. Returns their address; 0 if none has, and `status`, which may be NULL, receives why:
 * P4RACK_MEMORY_FULL if memory is short. */
uint64_t p4rack_clio_ralloc(p4rack_clio *clio, uint64_t bytes, p4rack_memory_status *status);

/* The same with rights, some of p4rack_clio_rights, and in either mode. `address` receives the address, and 0 before; of an asynchronous
 * call, when rpoll has returned its event. */
p4rack_clio_event p4rack_clio_ralloc_with(p4rack_clio *clio, uint64_t bytes, uint32_t rights, uint64_t *address, p4rack_clio_mode mode);

/* Frees pages of an allocated range. The process may allocate as many again. */
p4rack_memory_status p4rack_clio_rfree(p4rack_clio *clio, uint64_t address, uint64_t bytes);

/* The same in either mode. Later operations of the handle on these pages begin when it has ended. */
p4rack_clio_event p4rack_clio_rfree_with(p4rack_clio *clio, uint64_t address, uint64_t bytes, p4rack_clio_mode mode);

/* Shares whole pages of an allocated range with another process of the board, which has these rights to them. Returns their address there;
 * 0 if it fails, and `status`, which may be NULL, receives why: P4RACK_MEMORY_NOT_PERMITTED if the process takes none, or the range has
 * fewer rights; P4RACK_MEMORY_FULL if it takes no more; P4RACK_MEMORY_BAD_OPERATION if there is no such process. The memory is freed when
 * both have freed it, or ended. */
uint64_t p4rack_clio_rshare(p4rack_clio *clio, uint64_t address, uint64_t bytes, uint32_t pid, uint16_t epoch, uint32_t rights,
                            p4rack_memory_status *status);

/* Reads bytes. After an asynchronous read they are valid when rpoll has returned its event. */
p4rack_clio_event p4rack_clio_rread(p4rack_clio *clio, uint64_t address, void *bytes, size_t length, p4rack_clio_mode mode);

/* Writes bytes, which are copied. */
p4rack_clio_event p4rack_clio_rwrite(p4rack_clio *clio, uint64_t address, const void *bytes, size_t length,
                                     p4rack_clio_mode mode);

/* Waits for operations to end, and sets their `status`. Returns P4RACK_MEMORY_OK if all ended well, otherwise the status of the first
 * that did not. */
p4rack_memory_status p4rack_clio_rpoll(p4rack_clio *clio, p4rack_clio_event *events, size_t count);

/* Returns when all earlier operations of the handle have ended. */
p4rack_memory_status p4rack_clio_rrelease(p4rack_clio *clio);

/* Takes the lock in the word of eight bytes at a multiple of eight, which is 0 when it is free; waits as long as another thread has it.
 * When it returns, all earlier operations have ended. The board releases a lock when its lease ends, after ten seconds. */
p4rack_memory_status p4rack_clio_rlock(p4rack_clio *clio, uint64_t lock);

/* Releases a lock, after all earlier operations. P4RACK_MEMORY_NOT_PERMITTED: another thread holds it. */
p4rack_memory_status p4rack_clio_runlock(p4rack_clio *clio, uint64_t lock);

/* Each board executes later requests after all requests of this process that it has under way. Where a board fails, the others have their
 * fences, and the first error is returned. */
p4rack_memory_status p4rack_clio_rfence(p4rack_clio *clio);

/* The same for the requests of all processes, as in the paper. P4RACK_MEMORY_NOT_PERMITTED: the board was not started with --fence-all. */
p4rack_memory_status p4rack_clio_rfence_all(p4rack_clio *clio);

/* Calls an offload by number. `results` receives at most `length` bytes of its results, `count` how many there are; both may be NULL.
 * P4RACK_MEMORY_OUT_OF_BOUNDS: it found nothing. */
p4rack_memory_status p4rack_clio_call(p4rack_clio *clio, uint64_t offload, uint8_t function, const void *arguments,
                                      size_t argument_bytes, void *results, size_t length, size_t *count);

/* Follows pointers from the node at `address` until a key matches: in a node the key is at `key_offset`, the next node's address at
 * `next_offset` (0 ends the list), the value of `value_bytes` at `value_offset`; at most `depth` nodes. */
typedef struct p4rack_clio_chase {
    uint64_t address;
    uint64_t key;
    uint16_t key_offset;
    uint16_t next_offset;
    uint16_t value_offset;
    uint16_t value_bytes;
    uint16_t depth;
    uint16_t value_is_pointer; /* 1: the value's place has the address of the value */
} p4rack_clio_chase;

/* All nodes are on one board, and pointers in them are addresses there. `node` receives the address of the node that matches, and
 * `value`, which has room for `value_bytes`, its value. Both may be NULL.
 * P4RACK_MEMORY_OUT_OF_BOUNDS: no node matches, or a pointer leads out of the memory. */
p4rack_memory_status p4rack_clio_rchase(p4rack_clio *clio, const p4rack_clio_chase *chase, uint64_t *node, void *value);

/* The key-value store of the board, of several the first one. Keys have 1 to 255 bytes, values at most 64 KB.
 * P4RACK_MEMORY_OUT_OF_BOUNDS: there is no such key. */
p4rack_memory_status p4rack_clio_kv_put(p4rack_clio *clio, const void *key, size_t key_bytes, const void *value,
                                        size_t value_bytes);
/* Creates a key. P4RACK_MEMORY_NOT_PERMITTED: it exists already. */
p4rack_memory_status p4rack_clio_kv_create(p4rack_clio *clio, const void *key, size_t key_bytes, const void *value,
                                           size_t value_bytes);
/* Changes the value of an existing key. */
p4rack_memory_status p4rack_clio_kv_update(p4rack_clio *clio, const void *key, size_t key_bytes, const void *value,
                                           size_t value_bytes);
/* `value` receives at most `length` bytes, `count`, which may be NULL, how many the value has. */
p4rack_memory_status p4rack_clio_kv_get(p4rack_clio *clio, const void *key, size_t key_bytes, void *value, size_t length,
                                        size_t *count);
p4rack_memory_status p4rack_clio_kv_delete(p4rack_clio *clio, const void *key, size_t key_bytes);

#ifdef __cplusplus
}
#endif

#endif
