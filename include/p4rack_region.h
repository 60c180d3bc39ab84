/*
 * Regions of remote memory with a cache in local memory, for C programs: byte-addressable, for several threads, by any way that
 * p4rack_memory.h names.
 *
 *     cargo build --release -p p4rack-memory
 *     cc program.c -Iinclude -Ltarget/release -lp4rack_memory
 *
 * Reads and writes use local memory; a policy decides which blocks stay there. Writes reach remote memory when their block leaves, and by
 * p4rack_region_flush. Nothing else may use the same remote bytes. If remote memory is lost, every later call returns
 * P4RACK_MEMORY_GONE, and writes that were not flushed are gone. A call that other threads hold up for 20 s returns P4RACK_MEMORY_BUSY.
 * docs/regions.md says more.
 *
 * Any number of threads may use a region at the same time. Each block's part of a read or write takes effect in one step.
 */
#ifndef P4RACK_REGION_H
#define P4RACK_REGION_H

#include <p4rack_memory.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cached region. */
typedef struct p4rack_region p4rack_region;

/* How a region uses local memory. */
typedef struct p4rack_region_config {
    uint64_t local_bytes; /* of blocks and all tables, never more; the buffers of the way come on top */
    const char *policy;   /* as `p4rack cache policies` lists them; NULL: "runs" */
    uint32_t block_bytes; /* a power of two from 64 to 4096; 0: the policy's */
} p4rack_region_config;

/* Sizes of a region, and its counters. Accesses count block by block. */
typedef struct p4rack_region_statistics {
    uint64_t region_bytes;
    uint64_t local_bytes;  /* blocks and tables */
    uint64_t tables_bytes; /* of them, tables */
    uint64_t from_host;    /* accesses to blocks in pages that the policy keeps whole */
    uint64_t from_device;  /* accesses to other local blocks */
    uint64_t from_remote;  /* accesses that waited for a fetch */
    uint64_t fetched_bytes;
    uint64_t written_bytes; /* back to remote memory */
    uint64_t prefetched;    /* blocks, by p4rack_region_prefetch */
    uint64_t prefetched_used;
    uint32_t block_bytes;
} p4rack_region_statistics;

/*
 * Opens another host's memory as a region, from the calling thread's network namespace. `error` receives the reason if it fails, cut off
 * at `error_length` with its final zero; it may be NULL. Returns NULL if it fails.
 */
p4rack_region *p4rack_region_open(const p4rack_memory_access *access, const p4rack_region_config *config, char *error,
                                  size_t error_length);

/* Ends a region, which flushes nothing. NULL is ignored. */
void p4rack_region_close(p4rack_region *region);

/* Reads `length` bytes. */
p4rack_memory_status p4rack_region_read(const p4rack_region *region, uint64_t address, void *bytes, size_t length);

/* Writes `length` bytes. */
p4rack_memory_status p4rack_region_write(const p4rack_region *region, uint64_t address, const void *bytes, size_t length);

/* Begins to fetch bytes that will be used soon, as far as local memory has room, and does not wait. */
p4rack_memory_status p4rack_region_prefetch(const p4rack_region *region, uint64_t address, uint64_t length);

/* Waits until all writes that returned before are in remote memory. */
p4rack_memory_status p4rack_region_flush(const p4rack_region *region);

/* Sizes, and counters so far. */
p4rack_memory_status p4rack_region_statistics_of(const p4rack_region *region, p4rack_region_statistics *into);

#ifdef __cplusplus
}
#endif

#endif
