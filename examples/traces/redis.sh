#!/bin/sh
# Records a Redis server under YCSB B: all accesses of the server to data, from its start to its end. Takes minutes, because valgrind slows
# the server down some hundred times.
#
#     sh examples/traces/redis.sh [TRACE [RECORDS [OPERATIONS]]]
#
# needs p4rack on PATH, or its name in P4RACK, and the packages redis-server and valgrind.
set -eu
trace=${1:-$(dirname "$0")/redis.trace}
records=${2:-2000}
operations=${3:-4000}
p4rack=${P4RACK:-p4rack}
ip=${REDIS_IP:-127.0.0.1}
port=${REDIS_PORT:-7379}

# Once a second is the least often that the server looks after itself, which is work of its own.
"$p4rack" trace record --out "$trace" -- \
    redis-server --bind "$ip" --port "$port" --save "" --appendonly no --hz 1 --dir "$(dirname "$trace")" &
recorder=$!
if "$p4rack" far bench --redis "$ip:$port" --records "$records" --operations "$operations" --depth 1; then
    redis-cli -h "$ip" -p "$port" shutdown nosave
    wait $recorder
else
    redis-cli -h "$ip" -p "$port" shutdown nosave || true
    kill $recorder || true
    rm -f "$trace"
    exit 1
fi
