/*
 * Figure 1 of Clio's paper, and the key-value store.
 *
 *     clio [BOARD]
 *
 * BOARD is the address of a board's set-up service, 127.0.0.1:9563 unless named: `p4rack clio serve` starts one. docs/clio.md says how
 * to compile it.
 */
#include <p4rack_clio.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The paper's names. Each thread has a handle of its own. */
#define ralloc(bytes) p4rack_clio_ralloc(clio, bytes, NULL)
#define rfree(address, bytes) check("rfree", p4rack_clio_rfree(clio, address, bytes))
#define rread(address, buffer, length, mode) p4rack_clio_rread(clio, address, buffer, length, P4RACK_CLIO_##mode)
#define rwrite(address, buffer, length, mode) p4rack_clio_rwrite(clio, address, buffer, length, P4RACK_CLIO_##mode)
#define rpoll(events, count) check("rpoll", p4rack_clio_rpoll(clio, events, count))
#define rlock(lock) check("rlock", p4rack_clio_rlock(clio, lock))
#define runlock(lock) check("runlock", p4rack_clio_runlock(clio, lock))
typedef uint64_t ras_lock;

static const char *board = "127.0.0.1:9563";

static void check(const char *what, p4rack_memory_status status)
{
    if (status != P4RACK_MEMORY_OK) {
        fprintf(stderr, "%s: %s\n", what, p4rack_memory_status_text(status));
        exit(1);
    }
}

static p4rack_clio *opened(void)
{
    char error[512];
    p4rack_clio *clio = p4rack_clio_open(board, 0, error, sizeof error);
    if (clio == NULL) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return clio;
}

/* Alloc one remote page. Define a remote lock: the page's last word, which is 0. */
#define PAGE_SIZE (1 << 22)
static uint64_t remote_addr;
static ras_lock lock;

#define len 4096
static char local_wbuf1[len], local_wbuf2[len], local_rbuf[2 * len];

/* Acquire lock to enter critical section. Do two ASYNC writes then poll completion. */
static void *thread1(void *unused)
{
    p4rack_clio *clio = opened();
    p4rack_clio_event e[2];
    rlock(lock);
    e[0] = rwrite(remote_addr, local_wbuf1, len, ASYNC);
    e[1] = rwrite(remote_addr + len, local_wbuf2, len, ASYNC);
    runlock(lock);
    rpoll(e, 2);
    p4rack_clio_close(clio);
    return unused;
}

/* Synchronously read from remote */
static void *thread2(void *unused)
{
    p4rack_clio *clio = opened();
    rlock(lock);
    check("rread", rread(remote_addr, local_rbuf, 2 * len, SYNC).status);
    runlock(lock);
    p4rack_clio_close(clio);
    return unused;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        board = argv[1];
    p4rack_clio *clio = opened();
    remote_addr = ralloc(PAGE_SIZE);
    if (remote_addr == 0) {
        fprintf(stderr, "ralloc: the board has no memory for %d bytes\n", PAGE_SIZE);
        return 1;
    }
    lock = remote_addr + PAGE_SIZE - 8;
    memset(local_wbuf1, 'a', len);
    memset(local_wbuf2, 'b', len);

    pthread_t threads[2];
    pthread_create(&threads[0], NULL, thread1, NULL);
    pthread_create(&threads[1], NULL, thread2, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);

    /* The lock orders the threads: the second one has read all that the first one wrote, or nothing. */
    char first = local_rbuf[0], second = local_rbuf[len];
    for (int i = 0; i < len; i++)
        if (local_rbuf[i] != first || local_rbuf[len + i] != second)
            return 1;
    int whole = (first == 'a' && second == 'b') || (first == 0 && second == 0);
    printf("thread 2 has read %s\n", first == 'a' ? "what thread 1 wrote" : "zeros, before thread 1 wrote");

    char value[64] = "";
    size_t count = 0;
    check("put", p4rack_clio_kv_put(clio, "greeting", 8, "hello", 6));
    check("get", p4rack_clio_kv_get(clio, "greeting", 8, value, sizeof value, &count));
    printf("greeting: %s\n", value);
    check("delete", p4rack_clio_kv_delete(clio, "greeting", 8));

    rfree(remote_addr, PAGE_SIZE);
    p4rack_clio_close(clio);
    return whole && count == 6 ? 0 : 1;
}
