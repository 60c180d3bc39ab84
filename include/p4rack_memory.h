/*
 * Remote memory over EDM for C programs: read, write and change the memory of other hosts of a rack.
 *
 *     cargo build --release -p p4rack-memory
 *     cc program.c -Iinclude -Ltarget/release -lp4rack_memory
 *
 * What operations promise and what not is in docs/memory.md. In short: reads and atomic operations are answered; a write is done
 * when it has been sent, and whoever has to know that it arrived reads it back; P4RACK_MEMORY_UNKNOWN means that an operation was
 * carried out once or not at all.
 *
 * A handle belongs to one thread at a time. There is one at most for an interface: threads of a program share it and take turns.
 */
#ifndef P4RACK_MEMORY_H
#define P4RACK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A compute node on this host. */
typedef struct p4rack_memory p4rack_memory;

/* How an operation ended. */
typedef enum p4rack_memory_status {
    P4RACK_MEMORY_OK = 0,
    P4RACK_MEMORY_UNKNOWN = 1,       /* no answer in time: it was carried out once, or not at all */
    P4RACK_MEMORY_OUT_OF_BOUNDS = 2, /* the bytes are not all in a region of the node */
    P4RACK_MEMORY_WRONG_KEY = 3,
    P4RACK_MEMORY_NOT_PERMITTED = 4, /* the region's key does not permit it */
    P4RACK_MEMORY_BAD_LENGTH = 5,    /* no bytes, or more than a message may have */
    P4RACK_MEMORY_BAD_OPERATION = 6, /* no such operation, or an address that is no multiple of eight */
    P4RACK_MEMORY_BUSY = 7,          /* the node has too much to answer already: ask again later */
    P4RACK_MEMORY_FULL = 8,          /* too many operations at once */
    P4RACK_MEMORY_NO_SUCH_NODE = 9,
    P4RACK_MEMORY_LINK = 10,         /* the link failed; the handle is of no further use */
    P4RACK_MEMORY_BAD_ARGUMENT = 11  /* a null pointer, or no such kind of operation */
} p4rack_memory_status;

/* What an operation does. Atomic ones change a big-endian word of eight bytes at a multiple of eight. */
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
    uint64_t address;
    uint64_t operand;  /* of atomic operations; of CAS the new word */
    uint64_t expected; /* of CAS: the word that it replaces */
    uint64_t old;      /* result of atomic operations: the word before */
    void *bytes;       /* READ: where to put them; WRITE: what to write, only read */
    uint32_t length;   /* of `bytes` */
    uint32_t key;      /* of the region */
    uint16_t node;     /* number of the host with the memory, see p4rack_memory_node */
    uint8_t kind;      /* a p4rack_memory_kind */
    uint8_t status;    /* result: a p4rack_memory_status */
} p4rack_memory_operation;

/*
 * Opens the link of a host in the calling thread's network namespace.
 *
 * rack       path of the rack's description
 * host       name of this host in it
 * interface  to the switch; NULL is "eth0". It has the host's MAC address, or the host's agent uses it as well; another
 *            one is refused before a frame is sent
 * scheme     that runs, with EDM; NULL is the description's
 * error      receives the reason if it fails, cut off at `error_length` with its final zero; may be NULL
 *
 * Returns NULL if it fails.
 */
p4rack_memory *p4rack_memory_open(const char *rack, const char *host, const char *interface, const char *scheme,
                                  char *error, size_t error_length);

/* Ends a handle. NULL is nothing. */
void p4rack_memory_close(p4rack_memory *memory);

/* Number of a host that has memory, or -1. */
int32_t p4rack_memory_node(const p4rack_memory *memory, const char *host);

/* Reads `length` bytes. */
p4rack_memory_status p4rack_memory_read(p4rack_memory *memory, uint16_t node, uint32_t key, uint64_t address, void *bytes,
                                        uint32_t length);

/* Writes `length` bytes. Done means sent. */
p4rack_memory_status p4rack_memory_write(p4rack_memory *memory, uint16_t node, uint32_t key, uint64_t address,
                                         const void *bytes, uint32_t length);

/* Puts `desired` in place of `expected`, if that is the word. `old` receives the word before; it may be NULL. */
p4rack_memory_status p4rack_memory_cas(p4rack_memory *memory, uint16_t node, uint32_t key, uint64_t address,
                                       uint64_t expected, uint64_t desired, uint64_t *old);

/* Does any other atomic operation. `old` receives the word before; it may be NULL. */
p4rack_memory_status p4rack_memory_modify(p4rack_memory *memory, uint16_t node, uint32_t key, uint64_t address,
                                          p4rack_memory_kind kind, uint64_t operand, uint64_t *old);

/*
 * Does several operations at the same time, in no order among them, and waits for all. Each one's `status` says how it ended.
 * Returns P4RACK_MEMORY_OK if all ended well, otherwise the status of the first that did not.
 */
p4rack_memory_status p4rack_memory_batch(p4rack_memory *memory, p4rack_memory_operation *operations, size_t count);

/* A status in words, for messages. */
const char *p4rack_memory_status_text(p4rack_memory_status status);

#ifdef __cplusplus
}
#endif

#endif
