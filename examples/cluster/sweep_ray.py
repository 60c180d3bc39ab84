#!/usr/bin/env python3
"""Runs a sweep's tasks over a Ray cluster, or over this machine's cores where Ray is not installed.

    python3 examples/cluster/sweep_ray.py examples/paper/pl2/fig9-sweep.toml results

`results` is a folder that all nodes see; p4rack is on their path, or named by P4RACK. Tasks that are done are not
run again, so the same command goes on after anything failed. It ends with `p4rack sim merge`.
"""

import concurrent.futures
import os
import subprocess
import sys

P4RACK = os.environ.get("P4RACK", "p4rack")


def tasks(sweep, results):
    """Ids of all tasks."""
    command = [P4RACK, "sim", "sweep", sweep, "--list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("\t")[1] for line in listed.splitlines()]


def run(sweep, results, task):
    """Runs one task. 1 means that a check failed, which its result says."""
    command = [P4RACK, "sim", "sweep", sweep, "--out-dir", results, "--task", task, "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{task}: {done.stderr.strip()}")
    return task, done.returncode


def over_ray(sweep, results, ids):
    """Results as they come, from a cluster."""
    import ray

    ray.init(address=os.environ.get("RAY_ADDRESS"))
    remote = ray.remote(num_cpus=1, max_retries=2)(run)
    open_tasks = [remote.remote(sweep, results, task) for task in ids]
    while open_tasks:
        done, open_tasks = ray.wait(open_tasks)
        yield from ray.get(done)


def over_cores(sweep, results, ids):
    """The same without Ray."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(run, sweep, results, task) for task in ids]
        for future in concurrent.futures.as_completed(futures):
            yield future.result()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sweep, results = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    ids = tasks(sweep, results)
    try:
        import ray  # noqa: F401
        runner = over_ray
    except ImportError:
        print("Ray is not installed: running on this machine's cores", file=sys.stderr)
        runner = over_cores
    failed = 0
    for number, (task, code) in enumerate(runner(sweep, results, ids), 1):
        failed += code
        print(f"{number}/{len(ids)} {task}{' (a check failed)' if code else ''}", flush=True)
    subprocess.run([P4RACK, "sim", "merge", results], check=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
