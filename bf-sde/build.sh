#!/bin/bash
# Compiles a generated program and puts the result where NAME.switchd.conf looks for it: $SDE_INSTALL/share/p4rack/PROGRAM.
# The compiler is the vendor's or the open SDE's, or that of the variable P4C.
. "$(dirname "$0")/common.sh"

compiler=$P4C
for name in bf-p4c p4c; do
    [ -n "$compiler" ] || [ ! -x "$SDE_INSTALL/bin/$name" ] || compiler=$SDE_INSTALL/bin/$name
done
[ -n "$compiler" ] || skip "$SDE_INSTALL/bin/bf-p4c or p4c" "building the SDE with its compiler, or export P4C=…"

out=$SDE_INSTALL/share/p4rack/$program
mkdir -p "$out" || exit 1
"$compiler" --std p4-16 --target $target --arch $arch -g --bf-rt-schema "$out/bf-rt.json" -o "$out" "$rack.p4" \
    || fail "$rack.p4: refused by $compiler"
for file in bf-rt.json pipe/context.json "pipe/$target.bin"; do
    [ -s "$out/$file" ] || fail "$compiler left no $out/$file; needs its assembler (bfas) too"
done
cp "$rack.p4" "$out/program.p4" || exit 1
echo "$out"
