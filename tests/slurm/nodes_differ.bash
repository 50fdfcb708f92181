#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Nodes that are not alike, on a real Slurm: another build of the program on one, a folder of checkpoints that only one has, one that
# comes late, after the others were told to end. Usage: nodes_differ.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
# shellcheck source=tests/integration/other_build.bash
. "$tests_slurm/../integration/other_build.bash"
begin_cluster "$1" 3
write_run
on_node 1 true || { echo "no namespaces can be entered here" && exit 77; }
# trains DIR OPTION...: a job on all nodes.
trains() {
  local dir=$1
  shift
  FOURFOLD_REQUEUE=0 sbatch --parsable --nodes=3 --ntasks=3 --time=5 "$slurm/train.sbatch" run.toml --set log.dir="$dir" "$@"
}
sed -i 's/^global_batch = 8/global_batch = 9/' run.toml

# Another build on node1: no run begins, and the doctor says which node it is.
for verb in train doctor; do
  expect other_build "$verb"
  program=$(readlink -f "$1/bin/fourfold-$verb")
  expect on_node 1 mount --bind "$PWD/other-$verb" "$program"
done
job=$(trains other)
expect_job "$job" 60 FAILED 78
expect grep -q 'ranks of one run must be alike' "fourfold-$job.log"
expect grep -q 'node1' "fourfold-$job.log"
expect test ! -e other/checkpoints
job=$(sbatch --parsable --nodes=3 --ntasks=3 --time=5 "$slurm/doctor.sbatch" run.toml --seconds 10)
expect_job "$job" 60 FAILED 78
expect grep -qE '^versions +FAIL +fourfold ' "fourfold-doctor-$job.log"
for verb in train doctor; do expect on_node 1 umount "$(readlink -f "$1/bin/fourfold-$verb")"; done

# What a job trains on these nodes the doctor takes for right: mesh.dp = "auto" leaves a node over where three replicas do not divide the batch.
auto=(--set 'mesh.dp="auto"' --set train.global_batch=8)
job=$(trains auto "${auto[@]}")
expect_job "$job" 60 COMPLETED 0
job=$(sbatch --parsable --nodes=3 --ntasks=3 --time=5 "$slurm/doctor.sbatch" run.toml --seconds 10 "${auto[@]}")
expect_job "$job" 60 COMPLETED 0
expect grep -q '1 of 3 ranks are not used' "fourfold-doctor-$job.log"

# A folder of checkpoints on a disk of each node: seen before the first step, not at the first save.
mkdir disk
for node in 0 1 2; do expect on_node "$node" mount -t tmpfs tmpfs "$PWD/disk"; done
job=$(trains apart --set checkpoint.dir="$PWD/disk/checkpoints" --set train.steps=1000000 --set checkpoint.every_steps=500000)
expect_job "$job" 60 FAILED 78
expect grep -q 'disk/checkpoints' "fourfold-$job.log"
expect grep -q '"event":"refused".*disk/checkpoints' apart/attempts.jsonl
expect test ! -e apart/metrics.jsonl
# And the other way: a folder of the nodes' own steps that all of them share.
job=$(trains shared --set checkpoint.node_local_dir="$PWD/shared-fast" --set checkpoint.node_local_every_steps=2)
expect_job "$job" 60 FAILED 78
expect grep -q 'shared-fast' "fourfold-$job.log"
for node in 0 1 2; do expect on_node "$node" umount "$PWD/disk"; done

# Told to end while two ranks wait in MPI_Init for one that does not hear it.
cat >late <<END
#!/bin/bash
if [[ \$1 == train && \$SLURM_PROCID == 2 ]]; then
  trap '' TERM USR2
  sleep 4
fi
exec "$fourfold" "\$@"
END
chmod +x late
have_two_ranks() { [[ $(ranks_of "$job" | wc -l) -eq 2 ]]; }
# srun may stay for 10 s longer: the late rank has called its PMI, and the others do not take its answer any more.
# shellcheck disable=SC2009 # by name and by words
have_ended() { ! ps -eo comm=,args= | grep -qE "^(late|fourfold|fourfold-train) .*log.dir=late$told( |$)"; }
for told in TERM USR2; do
  job=$(FOURFOLD=$PWD/late FOURFOLD_SLURM=$slurm trains "late$told" --set train.steps=1000000)
  until_holds 30 have_two_ranks || complain "no two ranks wait: $(cat "fourfold-$job.log")"
  sleep 1
  expect eval '! have_ended'
  expect scancel --signal="$told" "$job"
  until_holds 15 have_ended || complain "$told: ranks are left after 15 s: $(ranks_of "$job")"
  expect_job "$job" 30 FAILED 75
  expect grep -q '"event":"end".*"code":75' "late$told/attempts.jsonl"
done
# And at any moment of a start.
for try in $(seq 10); do
  job=$(trains "told$try" --set train.steps=1000000)
  until_holds 30 test -e "told$try/attempts.jsonl"
  sleep "$((RANDOM % 2)).$((RANDOM % 10))"
  expect scancel --signal=TERM "$job.0"
  begun=$SECONDS
  until_holds 30 is_over "$job" || expect scancel "$job"
  [[ $((SECONDS - begun)) -le 15 ]] || complain "try $try: it took $((SECONDS - begun)) s to end: $(cat "fourfold-$job.log")"
  expect grep -q '"event":"end".*"code":75' "told$try/attempts.jsonl"
done
expectations_met
