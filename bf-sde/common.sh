# What the scripts here share. Each gets the folder that `p4rack generate RACK --arch tna -o FOLDER` wrote.

skip() {
    echo "skipped: needs $1, get it by $2" >&2
    exit 77
}

fail() {
    echo "$1" >&2
    exit 1
}

[ $# -ge 1 ] || fail "usage: $0 FOLDER, the output folder of \`p4rack generate RACK --arch tna\`"
[ -n "$SDE_INSTALL" ] || skip "SDE_INSTALL" "building https://github.com/p4lang/open-p4studio, then export SDE_INSTALL=…/install"
[ -d "$SDE_INSTALL" ] || fail "SDE_INSTALL=$SDE_INSTALL: no such folder"

folder=$(cd "$1" 2>/dev/null && pwd) || fail "$1: no such folder"
conf=$(ls "$folder"/*.switchd.conf 2>/dev/null)
[ "$(echo "$conf" | wc -l)" = 1 ] || fail "$folder has several *.switchd.conf: one rack a folder"
[ -n "$conf" ] || fail "$folder: no *.switchd.conf; write it with \`p4rack generate RACK --arch tna -o $1\`"
rack=${conf%.switchd.conf}
program=$(sed -n 's/.*"program-name": "\(.*\)".*/\1/p' "$conf")
case $(sed -n 's/.*"chip_family": "\(.*\)".*/\1/p' "$conf") in
    Tofino2) target=tofino2 arch=t2na chip_type=5 ;;
    *) target=tofino arch=tna chip_type=2 ;;
esac

# A program of the SDE, which it may lack.
tool() {
    local path=$SDE_INSTALL/bin/$1
    [ -x "$path" ] || skip "$path" "$2"
    echo "$path"
}
