// A program that knows nothing of far memory: fills, sums, resizes, frees, maps, forks. Each byte is checked.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1u << 20)
#define THREADS 8

static void check(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "wrong: %s (%s)\n", what, strerror(errno));
        exit(9);
    }
}

static uint64_t word(uint64_t seed, size_t at) {
    uint64_t x = seed * 0x9e3779b97f4a7c15u + at;
    x ^= x >> 29;
    return x * 0xbf58476d1ce4e5b9u;
}

static void fill(void *memory, size_t bytes, uint64_t seed) {
    uint64_t *words = memory;
    for (size_t at = 0; at < bytes / 8; at++) words[at] = word(seed, at);
}

static int is_filled(const void *memory, size_t bytes, uint64_t seed) {
    const uint64_t *words = memory;
    for (size_t at = 0; at < bytes / 8; at++)
        if (words[at] != word(seed, at)) return 0;
    return 1;
}

static int is_zero(const unsigned char *memory, size_t bytes) {
    for (size_t at = 0; at < bytes; at++)
        if (memory[at]) return 0;
    return 1;
}

static void heap(void) {
    // An object with another one right behind it has to move.
    unsigned char *moves = malloc(MIB), *behind = malloc(MIB);
    check(moves && behind, "two objects");
    fill(moves, MIB, 11);
    fill(behind, MIB, 12);
    moves = realloc(moves, 3 * MIB);
    check(moves && is_filled(moves, MIB, 11) && is_filled(behind, MIB, 12), "an object moves");
    free(moves);
    free(behind);
    unsigned char *zeros = calloc(3, MIB);
    check(zeros && is_zero(zeros, 3 * MIB), "calloc gives zeros");
    fill(zeros, 3 * MIB, 1);
    unsigned char *object = malloc(2 * MIB);
    check(object != NULL && malloc_usable_size(object) >= 2 * MIB, "malloc");
    fill(object, 2 * MIB, 2);
    object = realloc(object, 5 * MIB);
    check(object && is_filled(object, 2 * MIB, 2), "realloc keeps what was there as it grows");
    object = realloc(object, MIB);
    check(object && is_filled(object, MIB, 2), "realloc keeps what was there as it shrinks");
    check(is_filled(zeros, 3 * MIB, 1), "other objects stay");
    free(zeros);
    // Freed pages come back as zeros.
    zeros = calloc(1, 4 * MIB);
    check(zeros && is_zero(zeros, 4 * MIB), "calloc gives zeros again");
    free(zeros);
    void *aligned = NULL;
    check(posix_memalign(&aligned, 2 * MIB, MIB) == 0 && (uintptr_t)aligned % (2 * MIB) == 0, "posix_memalign");
    fill(aligned, MIB, 3);
    check(is_filled(aligned, MIB, 3) && is_filled(object, MIB, 2), "aligned");
    free(aligned);
    free(object);
    // An object that begins small and becomes large.
    unsigned char *growing = NULL;
    for (size_t bytes = 4096; bytes <= 2 * MIB; bytes *= 2) {
        growing = realloc(growing, bytes);
        check(growing && (bytes == 4096 || is_filled(growing, bytes / 2, 4)), "an object grows");
        fill(growing, bytes, 4);
    }
    free(growing);
}

static void maps(void) {
    int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *map = mmap(NULL, 4 * MIB, access, flags, -1, 0);
    check(map != MAP_FAILED && is_zero(map, 4 * MIB), "mmap");
    fill(map, 4 * MIB, 5);
    check(madvise(map + MIB, MIB, MADV_DONTNEED) == 0 && is_zero(map + MIB, MIB), "madvise drops pages");
    check(madvise(map, 4 * MIB, MADV_NOHUGEPAGE) == 0, "advice without effect");
    check(munmap(map + 3 * MIB, MIB) == 0, "a part is unmapped");
    map = mremap(map, 3 * MIB, 6 * MIB, MREMAP_MAYMOVE);
    check(map != MAP_FAILED && is_filled(map, MIB, 5) && is_zero(map + 3 * MIB, 3 * MIB), "mremap");
    // The same for mappings.
    unsigned char *behind = mmap(map + 6 * MIB, MIB, access, flags, -1, 0);
    check(behind != MAP_FAILED, "a mapping with a wish");
    fill(behind, MIB, 13);
    fill(map, 6 * MIB, 14);
    map = mremap(map, 6 * MIB, 7 * MIB, MREMAP_MAYMOVE);
    check(map != MAP_FAILED && is_filled(map, 6 * MIB, 14) && is_filled(behind, MIB, 13), "a mapping moves");
    check(mremap(map, 7 * MIB, 6 * MIB, 0) == map && is_filled(map, 6 * MIB, 14), "a mapping shrinks");
    munmap(behind, MIB);
    // What does not go far works as ever.
    check(mmap(map, MIB, access, flags | MAP_FIXED, -1, 0) == map && is_zero(map, MIB), "a new mapping in place");
    check(munmap(map, 6 * MIB) == 0, "munmap");
    unsigned char *guard = mmap(NULL, MIB, PROT_NONE, flags, -1, 0);
    check(guard != MAP_FAILED && mprotect(guard, MIB, access) == 0, "mprotect");
    guard[0] = 1;
    munmap(guard, MIB);
    unsigned char *shared = mmap(NULL, MIB, access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared != MAP_FAILED, "a shared mapping");
    if (fork() == 0) {
        shared[7] = 7;
        _exit(0);
    }
    wait(NULL);
    check(shared[7] == 7, "a child writes shared memory");
    munmap(shared, MIB);
}

static void *thread(void *argument) {
    uint64_t seed = (uintptr_t)argument;
    unsigned char *objects[4] = {0};
    size_t bytes[4] = {0};
    for (int round = 0; round < 40; round++) {
        int nth = word(seed, round) % 4;
        check(is_filled(objects[nth], bytes[nth], seed + nth), "a thread's object");
        free(objects[nth]);
        bytes[nth] = (1 + word(seed, round + 99) % 8) * 128 * 1024;
        objects[nth] = malloc(bytes[nth]);
        check(objects[nth] != NULL, "malloc in a thread");
        fill(objects[nth], bytes[nth], seed + nth);
    }
    for (int nth = 0; nth < 4; nth++) {
        check(is_filled(objects[nth], bytes[nth], seed + nth), "a thread's object at the end");
        free(objects[nth]);
    }
    return NULL;
}

static void threads(void) {
    pthread_t all[THREADS];
    for (uintptr_t nth = 0; nth < THREADS; nth++)
        check(pthread_create(&all[nth], NULL, thread, (void *)(nth + 1)) == 0, "pthread_create");
    for (int nth = 0; nth < THREADS; nth++) pthread_join(all[nth], NULL);
}

// System calls read and write far memory.
static void calls(void) {
    int ends[2];
    check(pipe(ends) == 0, "pipe");
    char *from = malloc(MIB), *to = malloc(MIB);
    fill(from, MIB, 6);
    for (size_t at = 0; at < MIB; at += 4096) {
        check(write(ends[1], from + at, 4096) == 4096, "write from far memory");
        check(read(ends[0], to + at, 4096) == 4096, "read into far memory");
    }
    check(is_filled(to, MIB, 6), "what came through the pipe");
    free(from);
    free(to);
}

// A child has no far memory: it may use near memory, free what it had, and execute programs, which have none either.
static void children(void) {
    char *far = malloc(2 * MIB);
    fill(far, 2 * MIB, 8);
    pid_t child = fork();
    if (child == 0) {
        free(far);
        char *own = malloc(2 * MIB);
        fill(own, 2 * MIB, 9);
        if (!is_filled(own, 2 * MIB, 9)) _exit(1);
        execl("/bin/sh", "sh", "-c", "test -z \"$LD_PRELOAD$P4RACK_FAR\"", (char *)NULL);
        _exit(2);
    }
    int status = -1;
    check(waitpid(child, &status, 0) == child && status == 0, "a child that executes a program");
    check(system("exit 0") == 0, "system");
    check(is_filled(far, 2 * MIB, 8), "the parent's memory stays");
    free(far);
}

// Takes memory until there is none. Prints how many MiB there were.
static int exhaust(void) {
    int got = 0;
    while (got < 256) {
        char *object = malloc(MIB);
        if (!object) break;
        memset(object, got, MIB);
        got++;
    }
    check(got == 256 || errno == ENOMEM, "ENOMEM");
    printf("%d\n", got);
    return 0;
}

static volatile sig_atomic_t noticed;

static void notice(int number) { noticed = number; }

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "all";
    if (!strcmp(mode, "exhaust")) return exhaust();
    if (!strcmp(mode, "exit")) return atoi(words[2]);
    if (!strcmp(mode, "abort")) abort();
    if (!strcmp(mode, "wait")) {
        // Holds far memory until a signal comes, and uses it again and again.
        signal(SIGTERM, notice);
        signal(SIGUSR1, notice);
        char *far = malloc(8 * MIB);
        fill(far, 8 * MIB, 10);
        puts("ready");
        fflush(stdout);
        while (!noticed) check(is_filled(far, 8 * MIB, 10), "what waits in far memory");
        return noticed == SIGUSR1 ? 40 : 41;
    }
    heap();
    maps();
    threads();
    calls();
    children();
    puts("all as written");
    return 0;
}
