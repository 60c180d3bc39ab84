/*
 * Remote memory for C programs: read, write and change the memory of other hosts of a rack, by TCP, RDMA, EDM, Clio or Cowbird.
 *
 *     cargo build --release -p p4rack-memory
 *     cc program.c -Iinclude -Ltarget/release -lp4rack_memory
 *
 * docs/memory.md lists the guarantees of operations. In short: reads and atomic operations are answered; a write has
 * ended when it is in the memory, by EDM when it has been sent; P4RACK_MEMORY_UNKNOWN means that an operation was
 * carried out once, is still to be, or never will.
 *
 * A handle belongs to one thread at a time. By EDM and RDMA there is one at most for an interface: threads share it and take turns.
 */
#ifndef P4RACK_MEMORY_H
#define P4RACK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Another host's memory. */
typedef struct p4rack_memory p4rack_memory;

/* How an operation ended, or whether it was accepted: for this header and p4rack_cowbird.h. */
typedef enum p4rack_memory_status {
    P4RACK_MEMORY_OK = 0,
    P4RACK_MEMORY_UNKNOWN = 1,       /* no answer in time: it was carried out once, is still to be, or never will */
    P4RACK_MEMORY_OUT_OF_BOUNDS = 2, /* the bytes are not all in the region */
    P4RACK_MEMORY_WRONG_KEY = 3,
    P4RACK_MEMORY_NOT_PERMITTED = 4, /* the region does not permit it */
    P4RACK_MEMORY_BAD_LENGTH = 5,    /* no bytes, or more than the way takes */
    P4RACK_MEMORY_BAD_OPERATION = 6, /* the way has no such operation, or an address is no multiple of eight */
    P4RACK_MEMORY_BUSY = 7,          /* ask again later: the memory's host has too much to answer, or submitted operations are
                                        under way, and this one waits for its end */
    P4RACK_MEMORY_FULL = 8,          /* too many operations are under way: poll first */
    P4RACK_MEMORY_NO_SUCH_NODE = 9,
    P4RACK_MEMORY_GONE = 10,         /* the way to the memory is gone; the handle is of no further use */
    P4RACK_MEMORY_BAD_ARGUMENT = 11  /* a null pointer, or a number that means nothing */
} p4rack_memory_status;

/* What an operation does. Atomic ones change a word of eight bytes at a multiple of eight, which is
 * big-endian, and by RDMA, which has CAS and FETCH_ADD alone, little-endian. */
typedef enum p4rack_memory_kind {
    P4RACK_MEMORY_READ = 0,
    P4RACK_MEMORY_WRITE = 1,
    P4RACK_MEMORY_CAS = 2,
    P4RACK_MEMORY_FETCH_ADD = 3,
    P4RACK_MEMORY_SWAP = 4,
    P4RACK_MEMORY_AND = 5,
    P4RACK_MEMORY_OR = 6,
    P4RACK_MEMORY_XOR = 7,
    P4RACK_MEMORY_MIN = 8,
    P4RACK_MEMORY_MAX = 9
} p4rack_memory_kind;

/* An operation and its result. */
typedef struct p4rack_memory_operation {
    uint64_t address;  /* of the first byte, counted from the region's */
    uint64_t operand;  /* of atomic operations; of CAS the new word */
    uint64_t expected; /* of CAS: the word that it replaces */
    uint64_t old;      /* result of atomic operations: the word before */
    void *bytes;       /* READ: destination; WRITE: source, only read */
    uint32_t length;   /* of `bytes` */
    uint8_t kind;      /* a p4rack_memory_kind */
    uint8_t status;    /* result: a p4rack_memory_status */
} p4rack_memory_operation;

/* Another host's memory, and the way to it. Set all of it to zero first (`= {0}`). A later version may add fields: compile with the
 * header that belongs to the library. */
typedef struct p4rack_memory_access {
    const char *rack;       /* path of the rack's description */
    const char *host;       /* name of this host in it */
    const char *at;         /* name of the host with the memory */
    const char *way;        /* "tcp", "rdma", "edm-timed-dst", "clio", "cowbird-spot" …; NULL: the mode of EDM that the scheme has, or
                               Clio */
    const char *interface;  /* to the rack; NULL: the one that has this host's address. Another host's is refused before a frame is
                               sent */
    const char *scheme;     /* that runs; NULL: the way's, or the description's */
    const char *memory;     /* TCP, RDMA, Clio, Cowbird: server of the memory, HOST:PORT; NULL: a port of its host */
    const char *engine;     /* Cowbird: an engine's set-up service, HOST:PORT */
    uint64_t reserve_bytes; /* RDMA, Clio, Cowbird: bytes to reserve for this handle; 0: the memory offered to all */
    uint32_t key;           /* EDM: of the region */
    const char *ca;         /* RDMA, Clio, Cowbird: certificate authority of the servers, PEM file: set-ups are encrypted; NULL: they are
                               not */
    const char *cert;       /* our certificate, PEM file, or NULL; only with `cert_key` and `ca` */
    const char *cert_key;   /* its key, PEM file */
    const char *server_name; /* name in the servers' certificates, if it differs from the address, or NULL */
} p4rack_memory_access;

/*
 * Opens another host's memory, from the calling thread's network namespace. `error` receives the reason if it fails, cut off at
 * `error_length` with its final zero; it may be NULL. Returns NULL if it fails.
 */
p4rack_memory *p4rack_memory_open(const p4rack_memory_access *access, char *error, size_t error_length);

/* Ends a handle. NULL is nothing. Operations that were submitted are given up. */
void p4rack_memory_close(p4rack_memory *memory);

/* Reads `length` bytes. */
p4rack_memory_status p4rack_memory_read(p4rack_memory *memory, uint64_t address, void *bytes, size_t length);

/* Writes `length` bytes. */
p4rack_memory_status p4rack_memory_write(p4rack_memory *memory, uint64_t address, const void *bytes, size_t length);

/* Puts `desired` in place of `expected`, if that is the word. `old` receives the word before; it may be NULL. */
p4rack_memory_status p4rack_memory_cas(p4rack_memory *memory, uint64_t address, uint64_t expected, uint64_t desired,
                                       uint64_t *old);

/* Does any other atomic operation. `old` receives the word before; it may be NULL. */
p4rack_memory_status p4rack_memory_modify(p4rack_memory *memory, uint64_t address, p4rack_memory_kind kind, uint64_t operand,
                                          uint64_t *old);

/*
 * Does several operations at the same time, and waits for all. Each one's `status` says how it ended. Returns P4RACK_MEMORY_OK if
 * all ended well, otherwise the status of the first that did not.
 */
p4rack_memory_status p4rack_memory_batch(p4rack_memory *memory, p4rack_memory_operation *operations, size_t count);

/*
 * Submits an operation and does not wait. It leaves with the next poll at the latest. The operation has to stay where it is until
 * poll returns it, and so does a read's destination; a write's bytes are copied. Anything but P4RACK_MEMORY_OK: it was
 * not accepted. Calls that wait are refused (P4RACK_MEMORY_BUSY) as long as submitted operations are under way.
 */
p4rack_memory_status p4rack_memory_submit(p4rack_memory *memory, p4rack_memory_operation *operation);

/*
 * Waits until a submitted operation has ended, at most `timeout_us`; may come back earlier. `ended` receives at most `most`
 * operations whose `status` says how they ended, `count` how many there are.
 */
p4rack_memory_status p4rack_memory_poll(p4rack_memory *memory, uint64_t timeout_us, p4rack_memory_operation **ended, size_t most,
                                        size_t *count);

/* A status in words, for messages. */
const char *p4rack_memory_status_text(p4rack_memory_status status);

#ifdef __cplusplus
}
#endif

#endif
