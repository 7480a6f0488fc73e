#!/bin/bash
# libc_only.sh LIBRARY...: each loads into any process from RHEL 9 and Ubuntu 22.04 on: it needs libc and
# nothing else, no symbol younger than glibc 2.34, exports only what is ours, has no thread-local data.
set -u
failed=0
complain() { echo "$1: $2" >&2; failed=1; }

for library in "$@"; do
  needed=$(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }')
  [ "$needed" = libc.so.6 ] || complain "$library" "needs $(echo $needed), not libc.so.6 alone"

  youngest=$(printf '%s\n' GLIBC_2.34 \
    $(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*') | sort -V | tail -1)
  [ "$youngest" = GLIBC_2.34 ] || complain "$library" "needs $youngest, at most GLIBC_2.34 is allowed"

  exported=$(objdump -T "$library" | awk '$2 == "g" && / DF | DO .*\.(text|data|bss)/ { print $NF }' |
    grep -vE '^(ts_[a-z_]+|cuInit|TIMESLICE_[0-9]+|(slurm_spank|plugin|spank_plugin)_[a-z_]+)$')
  [ -z "$exported" ] || complain "$library" "exports $(echo $exported)"

  tls=$(readelf -lW "$library" | awk '$1 == "TLS"')
  [ -z "$tls" ] || complain "$library" "has thread-local data, for which a late load may find no room"
done
exit $failed
