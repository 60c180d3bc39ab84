/*
 * PageRank on a random graph, to be recorded.
 *
 *     cc -O2 examples/traces/pagerank.c -o /tmp/pagerank
 *     p4rack trace record --out pagerank.trace -- /tmp/pagerank [VERTICES [ROUNDS]]
 *
 * Eight links lead to each vertex. From a few vertices very many links come.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINKS = 8 };
static const double DAMPING = 0.85;

/* Its rank, and the share of it that each of its links passes on. */
struct value {
    double rank, share;
};

/* SplitMix64 */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void *array(size_t count, size_t bytes)
{
    void *made = calloc(count, bytes);
    if (!made) {
        fprintf(stderr, "no memory for %zu elements\n", count);
        exit(1);
    }
    return made;
}

int main(int argc, char **argv)
{
    unsigned long vertices = argc > 1 ? strtoul(argv[1], NULL, 10) : 40000;
    unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 3;
    if (vertices < 2 || vertices > 1u << 26 || rounds < 1) {
        fprintf(stderr, "usage: pagerank [VERTICES [ROUNDS]], 2 to 67108864 vertices, 1 round or more\n");
        return 1;
    }
    uint32_t *neighbours = array(vertices * LINKS, sizeof *neighbours);
    uint32_t *names = array(vertices, sizeof *names), *links = array(vertices, sizeof *links);
    struct value *old = array(vertices, sizeof *old), *new = array(vertices, sizeof *new);
    uint64_t state = 1;

    /* Where a vertex lies has nothing to do with how popular it is. */
    for (unsigned long v = 0; v < vertices; v++) {
        unsigned long other = next(&state) % (v + 1);
        names[v] = names[other];
        names[other] = (uint32_t)v;
    }
    /* The fifth power of a uniform number: popularity falls as rank to the power of -0.8. */
    for (unsigned long e = 0; e < vertices * LINKS; e++) {
        double u = (double)(next(&state) >> 11) * 0x1p-53;
        neighbours[e] = names[(unsigned long)(u * u * u * u * u * (double)vertices)];
        links[neighbours[e]]++;
    }
    for (unsigned long v = 0; v < vertices; v++)
        old[v] = (struct value){1.0 / (double)vertices, 1.0 / (double)vertices / (links[v] ? links[v] : 1)};
    for (unsigned long round = 0; round < rounds; round++) {
        for (unsigned long v = 0; v < vertices; v++) {
            double sum = 0;
            for (unsigned long e = v * LINKS; e < (v + 1) * LINKS; e++)
                sum += old[neighbours[e]].share;
            double rank = (1 - DAMPING) / (double)vertices + DAMPING * sum;
            new[v] = (struct value){rank, rank / (links[v] ? links[v] : 1)};
        }
        struct value *swap = old;
        old = new;
        new = swap;
    }
    double most = 0, all = 0;
    for (unsigned long v = 0; v < vertices; v++) {
        most = old[v].rank > most ? old[v].rank : most;
        all += old[v].rank;
    }
    printf("%lu vertices, %lu rounds: ranks are %.3f together, %.6f at most\n", vertices, rounds, all, most);
    return 0;
}
