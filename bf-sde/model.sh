#!/bin/bash
# Runs Tofino's model with a rack's ports: host N's port is veth 2N, and its peer veth 2N+1 is the host's end. Needs root.
. "$(dirname "$0")/common.sh"

model=$(tool tofino-model "installing the model beside the SDE") || exit
sed -n 's/.*"veth1": \([0-9]*\).*/\1/p' "$rack.model.json" | while read -r veth; do
    ip link show "veth$veth" >/dev/null 2>&1 || ip link add "veth$veth" type veth peer name "veth$((veth + 1))" || exit 1
    for end in "veth$veth" "veth$((veth + 1))"; do
        ip link set "$end" mtu 10240 up || exit 1
        ethtool --offload "$end" rx off tx off sg off tso off gso off gro off >/dev/null 2>&1 || true
    done
done || fail "could not make the interfaces of $rack.model.json: needs root"
cd "$SDE_INSTALL" && exec "$model" --p4-target-config "$conf" --chip-type $chip_type -f "$rack.model.json" --install-dir "$SDE_INSTALL"
