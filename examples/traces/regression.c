/*
 * Linear regression by several threads, to be recorded.
 *
 *     cc -O2 -pthread examples/traces/regression.c -o /tmp/regression
 *     p4rack trace record --out regression.trace -- /tmp/regression [ROWS [PASSES]]
 *
 * Each thread reads its part of the rows from end to end.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 8 };

struct row {
    double x, y;
};

struct part {
    const struct row *from, *to;
    double x, y, xx, xy;
};

static void *sums(void *argument)
{
    struct part *part = argument;
    double x = 0, y = 0, xx = 0, xy = 0;
    for (const struct row *row = part->from; row < part->to; row++) {
        x += row->x;
        y += row->y;
        xx += row->x * row->x;
        xy += row->x * row->y;
    }
    part->x = x;
    part->y = y;
    part->xx = xx;
    part->xy = xy;
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 500000;
    unsigned long passes = argc > 2 ? strtoul(argv[2], NULL, 10) : 2;
    struct row *rows = NULL;
    if (count >= THREADS && count <= 1u << 28 && passes >= 1)
        rows = malloc(count * sizeof *rows);
    if (!rows) {
        fprintf(stderr, "usage: regression [ROWS [PASSES]], 8 to 268435456 rows that fit into memory, 1 pass or more\n");
        return 1;
    }
    for (unsigned long n = 0; n < count; n++) {
        double x = (double)(n * 2654435761u % count) / (double)count;
        rows[n] = (struct row){x, 3 * x + 2};
    }
    double slope = 0, constant = 0;
    for (unsigned long pass = 0; pass < passes; pass++) {
        pthread_t threads[THREADS];
        struct part parts[THREADS];
        double x = 0, y = 0, xx = 0, xy = 0, n = (double)count;
        for (unsigned long t = 0; t < THREADS; t++) {
            parts[t] = (struct part){.from = rows + count * t / THREADS, .to = rows + count * (t + 1) / THREADS};
            if (pthread_create(&threads[t], NULL, sums, &parts[t])) {
                fprintf(stderr, "a thread could not be started\n");
                return 1;
            }
        }
        for (int t = 0; t < THREADS; t++) {
            pthread_join(threads[t], NULL);
            x += parts[t].x;
            y += parts[t].y;
            xx += parts[t].xx;
            xy += parts[t].xy;
        }
        slope = (n * xy - x * y) / (n * xx - x * x);
        constant = (y - slope * x) / n;
    }
    printf("%lu rows, %lu passes: y = %.3f x + %.3f\n", count, passes, slope, constant);
    return 0;
}
