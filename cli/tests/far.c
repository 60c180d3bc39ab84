// A program that knows nothing of far memory: fills, sums, resizes, frees, maps, forks. Each byte is checked.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
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
    // Memory that does not go far works as before.
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

// Each page has one owner, and wrong calls are refused as the kernel refuses them.
static void owners(void) {
    int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *map = mmap(NULL, 4 * MIB, access, flags, -1, 0);
    fill(map, 4 * MIB, 15);
    check(munmap(map + MIB, MIB) == 0, "a hole");
    check(mmap(map + MIB, MIB, access, flags | MAP_FIXED, -1, 0) == map + MIB, "a mapping in the hole");
    unsigned char *other = malloc(MIB);
    check(other < map || other >= map + 4 * MIB, "an object is not in the mapping");
    check(munmap(map + 2 * MIB, MIB) == 0, "another hole");
    check(mmap(map + MIB, 2 * MIB, access, flags | MAP_FIXED, -1, 0) == map + MIB, "a mapping over a hole");
    check(is_zero(map + MIB, 2 * MIB) && is_filled(map, MIB, 15), "it is new, and the rest stays");
    errno = 77;
    free(other);
    check(errno == 77, "free keeps errno");
    check(mmap(map, MIB, access, flags | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST, "in use");
    check(mmap(map, MIB, PROT_READ, flags | MAP_FIXED, -1, 0) == MAP_FAILED && errno == EINVAL, "readable only");
    check(munmap(map + 8, 4096) == -1 && errno == EINVAL, "munmap between pages");
    check(madvise(map + 8, 4096, MADV_DONTNEED) == -1 && errno == EINVAL, "madvise between pages");
    check(mremap(map + 8, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL, "mremap between pages");
    check(mmap(map + 8, 4096, access, flags | MAP_FIXED, -1, 0) == MAP_FAILED && errno == EINVAL, "mmap between pages");
    check(is_filled(map, MIB, 15), "what was refused changed nothing");
    check(munmap(map, 4 * MIB) == 0, "munmap");
}

// As a daemon that closes all descriptors it does not know.
static void descriptors(void) {
    unsigned char *far = malloc(8 * MIB);
    fill(far, 8 * MIB, 16);
    int own = open("/dev/null", O_RDONLY);
    for (int fd = 3; fd < 256; fd++) {
        if (dup2(0, fd) < 0) check(errno == EBADF, "dup2");
        close(fd);
    }
    check(fcntl(own, F_GETFD) == -1, "the program's own descriptor is closed");
    own = open("/dev/null", O_RDONLY);
    check(close_range(3, ~0u, 0) == 0 && fcntl(own, F_GETFD) == -1, "close_range");
    own = open("/dev/null", O_RDONLY);
    closefrom(3);
    check(fcntl(own, F_GETFD) == -1, "closefrom");
    check(is_filled(far, 8 * MIB, 16), "far memory stays");
    free(far);
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

// Threads whose stacks are in far memory: their frames are pages as any other.
static void stacks(void) {
    pthread_t all[THREADS];
    void *stack[THREADS];
    for (uintptr_t nth = 0; nth < THREADS; nth++) {
        pthread_attr_t attributes;
        stack[nth] = aligned_alloc(4096, MIB);
        pthread_attr_init(&attributes);
        check(pthread_attr_setstack(&attributes, stack[nth], MIB) == 0, "pthread_attr_setstack");
        check(pthread_create(&all[nth], &attributes, thread, (void *)(nth + 20)) == 0, "pthread_create");
    }
    for (int nth = 0; nth < THREADS; nth++) {
        pthread_join(all[nth], NULL);
        free(stack[nth]);
    }
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

// What a child maps is its own, although its parent has far memory at addresses that are free in the child. Returns 0 if so.
static int maps_of_child(void) {
    int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    for (int round = 0; round < 8; round++) {
        unsigned char *map = mmap(NULL, 4 * MIB, access, flags, -1, 0);
        if (map == MAP_FAILED) return 3;
        fill(map, 4 * MIB, round);
        if (madvise(map + 3 * MIB, MIB, MADV_DONTNEED) || !is_zero(map + 3 * MIB, MIB)) return 4;
        map = mremap(map, 4 * MIB, 6 * MIB, MREMAP_MAYMOVE);
        if (map == MAP_FAILED || !is_filled(map, 3 * MIB, round)) return 5;
        if (mmap(map, MIB, access, flags | MAP_FIXED, -1, 0) != map || !is_zero(map, MIB)) return 6;
        if (munmap(map, 6 * MIB) || msync(map, 4096, MS_ASYNC) != -1) return 7;
    }
    return 0;
}

// A child has no far memory: it may use near memory, free what it had, and execute programs, which have none either.
static void children(void) {
    char *far = malloc(2 * MIB);
    fill(far, 2 * MIB, 8);
    pid_t child = fork();
    if (child == 0) {
        free(far);
        int wrong = maps_of_child();
        if (wrong) _exit(wrong);
        char *own = malloc(2 * MIB);
        fill(own, 2 * MIB, 9);
        if (!is_filled(own, 2 * MIB, 9)) _exit(1);
        execl("/bin/sh", "sh", "-c", "test -z \"$LD_PRELOAD$P4RACK_FAR\"", (char *)NULL);
        _exit(2);
    }
    int status = -1;
    check(waitpid(child, &status, 0) == child && status == 0, "a child that executes a program");
    // A child of which no library hears.
    child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(maps_of_child());
    check(waitpid(child, &status, 0) == child && status == 0, "a child by clone");
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

static sigjmp_buf back;

static void jump(int number) { siglongjmp(back, number); }

// Reads until the memory is lost, and then gives back what it has.
static int survive(void) {
    unsigned char *object = malloc(4 * MIB), *map = NULL;
    map = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fill(object, 4 * MIB, 17);
    fill(map, 4 * MIB, 18);
    signal(SIGBUS, jump);
    signal(SIGSEGV, jump);
    puts("ready");
    fflush(stdout);
    if (!sigsetjmp(back, 1))
        while (1) check(is_filled(object, 4 * MIB, 17) && is_filled(map, 4 * MIB, 18), "what is in far memory");
    check(madvise(map, 4 * MIB, MADV_DONTNEED) == -1 && errno == EIO, "madvise after a loss");
    free(object);
    check(munmap(map, 4 * MIB) == 0, "munmap after a loss");
    return 45;
}

static void leave(int number) { exit(number == SIGALRM ? 46 : 1); }

// Ends in a handler that comes in the middle of anything.
static void interrupted(void) {
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &soon, NULL);
    while (1) {
        char *object = malloc(4 * MIB);
        for (size_t at = 0; at < 4 * MIB; at += 4096) object[at] = 1;
        free(object);
    }
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "all";
    if (!strcmp(mode, "exhaust")) return exhaust();
    if (!strcmp(mode, "exit")) return atoi(words[2]);
    if (!strcmp(mode, "abort")) abort();
    if (!strcmp(mode, "survive")) return survive();
    if (!strcmp(mode, "interrupted")) interrupted();
    if (!strcmp(mode, "closes")) {
        // Behind the library's back.
        char *far = malloc(8 * MIB);
        fill(far, 8 * MIB, 19);
        syscall(SYS_close_range, 3, ~0u, 0);
        return is_filled(far, 8 * MIB, 19) ? 47 : 48;
    }
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
    owners();
    threads();
    stacks();
    calls();
    descriptors();
    children();
    puts("all as written");
    return 0;
}
