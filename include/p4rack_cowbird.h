/*
 * Cowbird's rings for C programs that want them themselves; p4rack_memory.h has any remote memory, by Cowbird too. Threads read and write remote memory by loads and stores alone; an offload engine moves the data.
 *
 *     cargo build --release -p p4rack-memory
 *     cc program.c -Iinclude -Ltarget/release -lp4rack_memory
 *
 * docs/cowbird.md says how to start a pool and an engine, and what requests promise: those of a kind (reads, writes) complete in
 * the order in which they were asked for, and a read sees every write that its thread asked for before.
 */
#ifndef P4RACK_COWBIRD_H
#define P4RACK_COWBIRD_H

#include <p4rack_memory.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A compute node: the rings of its threads behind an adapter, remote memory, and an engine. One thread at a time may use it. */
typedef struct p4rack_cowbird p4rack_cowbird;

/* The rings of one thread. One thread at a time may use them. */
typedef struct p4rack_cowbird_thread p4rack_cowbird_thread;

/* Configuration of a compute node. */
typedef struct p4rack_cowbird_config {
    const char *interface;        /* of its adapter, which takes it for itself; the system must have no address there */
    const char *ip;               /* IPv4 address of its adapter */
    const char *pool;             /* set-up service of the pool, HOST:PORT */
    const char *const *engines;   /* set-up services of engines: the first that serves, then the next when it is lost */
    const uint64_t *region_bytes; /* sizes of remote regions; all threads reach all of them */
    uint64_t entries;             /* of each request ring, a power of two; 0 is 256 */
    uint64_t ring_bytes;          /* request data and response data of each thread, a power of two; 0 is 64 KiB */
    uint32_t engine_count;
    uint32_t region_count;
    uint32_t threads;
    uint32_t mtu_bytes;           /* of all adapters alike: 256, 512, 1024, 2048 or 4096; 0 is 1024 */
    uint32_t ignore_icrc;         /* 1: frames with a wrong iCRC are accepted, as the engine in a switch needs it */
    const char *ca_cert;          /* authority of the servers' certificates, a PEM file; NULL is plain text */
    const char *cert;             /* our certificate, a PEM file, if servers ask for one, or NULL */
    const char *private_key;      /* its key, a PEM file; NULL without a certificate */
    const char *server_name;      /* name in the servers' certificates, if it differs from the address, or NULL */
} p4rack_cowbird_config;

/*
 * Functions return a p4rack_memory_status: P4RACK_MEMORY_FULL where a ring has no room (for what a read brings: until earlier reads
 * are fetched), P4RACK_MEMORY_GONE when the engine serves these rings no more, P4RACK_MEMORY_BAD_ARGUMENT for a group or request that
 * is not there, or already exists.
 */

/* Whether an engine serves a compute node. */
typedef enum p4rack_cowbird_state {
    P4RACK_COWBIRD_SERVED = 0,
    P4RACK_COWBIRD_UNSERVED = 1, /* no engine at the moment: requests wait */
    P4RACK_COWBIRD_LOST = 2      /* the remote memory is gone */
} p4rack_cowbird_state;

/*
 * Opens the interface in the calling thread's network namespace, reserves memory and finds an engine. `error` receives the reason
 * if it fails, cut off at `error_length` with its final zero; it may be NULL. Returns NULL if it fails.
 */
p4rack_cowbird *p4rack_cowbird_open(const p4rack_cowbird_config *config, char *error, size_t error_length);

/* Ends a compute node and frees its remote memory. NULL is nothing. Rings that were taken stay until they are ended. */
void p4rack_cowbird_close(p4rack_cowbird *node);

/* Its state. `text` receives the engine's address, or why there is none; it may be NULL. */
p4rack_cowbird_state p4rack_cowbird_look(const p4rack_cowbird *node, char *text, size_t text_length);

/* The rings for another thread, or NULL: there are as many as the configuration says. */
p4rack_cowbird_thread *p4rack_cowbird_take(p4rack_cowbird *node);

/* Ends rings. NULL is nothing. Reads under way may write to no `dest` any more. */
void p4rack_cowbird_thread_close(p4rack_cowbird_thread *thread);

/*
 * Asks for `length` bytes of a region, from `src` on. They are copied to `dest` when p4rack_cowbird_poll_wait reports
 * the request; `dest` must stay valid until then. `request` receives its id.
 */
p4rack_memory_status p4rack_cowbird_async_read(p4rack_cowbird_thread *thread, uint16_t region, uint64_t src, void *dest,
                                                uint32_t length, uint64_t *request);

/* Asks for `length` bytes to be written to a region, from `dest` on. They are copied before this returns. */
p4rack_memory_status p4rack_cowbird_async_write(p4rack_cowbird_thread *thread, uint16_t region, const void *src,
                                                 uint64_t dest, uint32_t length, uint64_t *request);

/* Makes a notification group. Returns its number. */
uint32_t p4rack_cowbird_poll_create(p4rack_cowbird_thread *thread);

/* Adds a request to a group. */
p4rack_memory_status p4rack_cowbird_poll_add(p4rack_cowbird_thread *thread, uint32_t poll, uint64_t request);

/* Removes a request from a group; it goes on. */
p4rack_memory_status p4rack_cowbird_poll_remove(p4rack_cowbird_thread *thread, uint32_t poll, uint64_t request);

/*
 * Waits until `max` requests of a group are done, none is left in it, or the time is over; 0 does not wait. `requests` receives their
 * ids, `count` how many there are. Spins.
 */
p4rack_memory_status p4rack_cowbird_poll_wait(p4rack_cowbird_thread *thread, uint32_t poll, uint64_t *requests, size_t max,
                                               uint64_t timeout_us, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
