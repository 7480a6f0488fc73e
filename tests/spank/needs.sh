#!/bin/bash
# needs.sh PLUGIN: what the plugin takes from the program that loads it is declared in spank.h, and nothing else
# of Slurm (FF-G3): a change of Slurm's insides must not break every user's srun.
set -u
needed=$(objdump -T "$1" | awk '/\*UND\*/ && !/GLIBC/ { print $NF }' |
  grep -vE '^(_ITM_|__gmon_start__)')
foreign=$(for name in $needed; do grep -qE "\b$name[ (]" /usr/include/slurm/spank.h || echo "$name"; done)
[ -n "$needed" ] || { echo "$1 needs nothing: is it the plugin?" >&2; exit 1; }
[ -z "$foreign" ] || { echo "$1 needs $(echo $foreign), not declared in spank.h" >&2; exit 1; }
