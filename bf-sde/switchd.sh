#!/bin/bash
# Runs Tofino's driver with a rack's program, on the chip or on the model. BFRuntime listens on port 50052; then
# `p4rack deploy RACK --to tofino --bfrt-addr 127.0.0.1:50052 --device-config $SDE_INSTALL/share/p4rack/PROGRAM`.
. "$(dirname "$0")/common.sh"

driver=$(tool bf_switchd "building the SDE with bf-drivers") || exit
built=$SDE_INSTALL/share/p4rack/$program
[ -s "$built/pipe/context.json" ] || fail "$program is not compiled: run $(dirname "$0")/build.sh $1"
# Programs of other racks have the same name.
cmp -s "$rack.p4" "$built/program.p4" || fail "$built was compiled from another text: run $(dirname "$0")/build.sh $1"
shift
export LD_LIBRARY_PATH=$SDE_INSTALL/lib:$LD_LIBRARY_PATH
exec "$driver" --install-dir "$SDE_INSTALL" --conf-file "$conf" --background "$@"
