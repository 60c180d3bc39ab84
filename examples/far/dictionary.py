"""A dictionary of lists and large objects, built once and read three times: a load for `p4rack far run`.

Two arguments are the numbers of lists and of objects."""

import sys
import time

LISTS, OBJECTS = [int(one) for one in sys.argv[1:]] or [200_000, 200]
BYTES = 200_000

begun = time.monotonic()
lists = {str(n): [n] * 20 for n in range(LISTS)}
objects = [bytes([n % 251]) * BYTES for n in range(OBJECTS)]
built = time.monotonic()
for _ in range(3):
    assert sum(lists[str(n)][7] for n in range(LISTS)) == LISTS * (LISTS - 1) // 2
    assert sum(one.count(one[:1]) for one in objects) == OBJECTS * BYTES
print(f"built in {built - begun:.2f} s, read three times in {time.monotonic() - built:.2f} s")
