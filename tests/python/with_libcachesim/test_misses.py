"""Our policies' misses against those of libCacheSim, on the same traces at the same sizes.

W-TinyLFU is not among them: docs/unimem.md has the rule that differs. P4RACK_CLOUDPHYSICS names libCacheSim's real trace,
data/cloudPhysicsIO.oracleGeneral.bin in its repository; without it that trace is skipped.
"""

import json
import os
import pathlib
import subprocess

import libcachesim
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ["P4RACK_BIN"]
TRACES = ["ycsb-b", "pagerank", "regression", "mix", "cloudphysics"]
#: Bytes of a record: time, object, size, next access.
RECORD_BYTES = 24
#: Parts of the touched blocks that fit.
SHARES = [0.02, 0.1, 0.25, 0.5, 0.9]
EXACT = {
    "lru": libcachesim.LRU,
    "fifo": libcachesim.FIFO,
    "sieve": libcachesim.Sieve,
    "s3-fifo": libcachesim.S3FIFO,
    "2q": libcachesim.TwoQ,
    "arc": libcachesim.ARC,
    "belady": libcachesim.Belady,
}


@pytest.fixture(scope="session", params=TRACES)
def trace(request, tmp_path_factory):
    """A trace in libCacheSim's format, of accesses that reach memory behind a small CPU cache, in units of 512 B.

    The real one has requests for objects, which become one unit each."""
    path = tmp_path_factory.mktemp(request.param) / "trace.oracleGeneral"
    source, options = ROOT / "examples/traces" / f"{request.param}.toml", ["--cpu", "small"]
    if request.param == "cloudphysics":
        real = os.environ.get("P4RACK_CLOUDPHYSICS")
        if not real:
            pytest.skip("P4RACK_CLOUDPHYSICS names no cloudPhysicsIO.oracleGeneral.bin; libCacheSim's repository has it in data/")
        source, options = real, ["--format", "oracleGeneral"]
    command = [BINARY, "trace", "convert", *options, "--as", "oracleGeneral", source, path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def sizes(trace):
    objects = {record[4:12] for record in records(trace)}
    return [max(100, int(len(objects) * share)) for share in SHARES]


def records(trace):
    data = trace.read_bytes()
    return [data[at : at + RECORD_BYTES] for at in range(0, len(data), RECORD_BYTES)]


def ours(trace, policies, blocks):
    command = [BINARY, "cache", "run", trace, "--json", "--cpu", "none", "--block", "512"]
    command += [f"--policy={policy}" for policy in policies] + [f"--blocks={size}" for size in blocks]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return {(row["policy"], row["capacity"]): row["from_remote"] for row in json.loads(output)}


def theirs(trace, policy, size):
    reader = libcachesim.TraceReader(str(trace), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    requests = trace.stat().st_size // RECORD_BYTES
    ratio, _ = policy(cache_size=size).process_trace(reader)
    return round(ratio * requests)


def test_policies_miss_as_often_to_the_last_request(trace):
    blocks = sizes(trace)
    misses = ours(trace, EXACT, blocks)
    expected = {(name, size): theirs(trace, policy, size) for name, policy in EXACT.items() for size in blocks}
    assert misses == expected
