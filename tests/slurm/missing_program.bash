#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# A node on which the program is not there, or may not be run (a file system that is not mounted): it is named and left out, and the
# run begins on others. Usage: missing_program.bash BUILD_DIR [batch]: of the batch script's node
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 4
write_run

# What the nodes run, in a folder that one of them may not have.
mkdir here empty
printf '#!/bin/bash\nexec "%s" "$@"\n' "$fourfold" >here/fourfold
chmod +x here/fourfold
on_node 1 true || { echo "no namespaces can be entered here" && exit 77; }

# begins_without NODE DIR REASON OPTION...: a job of three nodes that has that one among them at first.
begins_without() {
  local node=$1 dir=$2 reason=$3 job
  job=$(FOURFOLD=$PWD/here/fourfold FOURFOLD_SLURM=$slurm sbatch --parsable --nodes=3 --ntasks-per-node=1 --time=5 "$slurm/train.sbatch" run.toml --set log.dir="$dir" "${@:4}")
  expect_job "$job" 120 COMPLETED 0
  expect grep -q "$reason" "$dir/attempts.jsonl"
  expect grep -q "job $job leaves out node$node" "fourfold-$job.log"
  expect test "$(grep -c '"event":"begin"' "$dir/attempts.jsonl")" -eq 2
  expect grep -qx 'step 8' "$dir/FINISHED"
}
sed -i 's/^\[data\]/[mesh]\ndp = 3\n[data]/; s/^global_batch = 8/global_batch = 9/' run.toml

if [[ ${2-} == batch ]]; then
  # On the node of the batch script nothing of fourfold can say so: its job goes on on others, as does a chain's.
  export FOURFOLD=$PWD/here/fourfold FOURFOLD_SLURM=$slurm
  expect on_node 0 mount --bind "$PWD/empty" "$PWD/here"
  job=$(sbatch --parsable --nodes=3 --ntasks-per-node=1 --time=5 "$slurm/train.sbatch" run.toml --set log.dir=headless)
  expect_job "$job" 120 COMPLETED 0
  expect grep -q "job begin cannot be run on node0 (code 127)" "fourfold-$job.log"
  expect grep -q "job $job leaves out node0" "fourfold-$job.log"
  expect grep -qx 'step 8' headless/FINISHED
  job=$(sbatch --parsable --nodes=3 --ntasks-per-node=1 --time=5 --job-name=links "$slurm/chain.sbatch" run.toml --set log.dir=links)
  expect_job "$job" 60 FAILED 85
  next=$(sed -n 's/.*outcome: again, exit code 85, next job \([0-9]*\)$/\1/p' "links-$job.log")
  expect_job "$next" 60 COMPLETED 0
  expect grep -qx 'step 8' links/FINISHED
  expect test -z "$(squeue --noheader --name=links)"
  expect on_node 0 umount "$PWD/here"
  # Where it is on no node, three starts say so.
  mv here/fourfold here/away
  job=$(sbatch --parsable --nodes=2 --ntasks-per-node=1 --time=5 "$slurm/train.sbatch" run.toml --set log.dir=nowhere)
  expect_job "$job" 120 FAILED 127
  expect test "$(grep -c 'job begin cannot be run on node' "fourfold-$job.log")" -eq 3
  mv here/away here/fourfold

  # The whole installation: what is left is the script that `fourfold submit` has written, and it counts for a chain, too.
  unset FOURFOLD FOURFOLD_SLURM FOURFOLD_MPI
  # shellcheck disable=SC2317  # called by expect
  hides() { for folder in "$(readlink -f "$slurm")" "${fourfold%/*}"; do on_node "$1" mount --bind "$PWD/empty" "$folder" || return; done; }
  # shellcheck disable=SC2317
  shows() { for folder in "$(readlink -f "$slurm")" "${fourfold%/*}"; do on_node "$1" umount "$folder" || return; done; }
  # sends NAME NODES OPTION...: the number of its first job.
  sends() { "$fourfold" submit run.toml --nodes "$2" --tasks-per-node 1 --time 5 --name "$1" --set log.dir="$1" "${@:3}" --go 2>"$errors" || complain "$(cat "$errors")"; }
  expect hides 0
  job=$(sends whole 3 --sbatch=--comment=mine)
  expect_job "$job" 120 COMPLETED 0
  expect grep -q "node0 does not have $(readlink -f "$slurm")" "whole/whole-$job.log"
  expect grep -q "job $job leaves out node0" "whole/whole-$job.log"
  expect grep -q "goes back into the queue" "whole/whole-$job.log"
  expect grep -qx 'step 8' whole/FINISHED
  expect grep -Eq '^ *Comment=mine ?$' <(scontrol show job "$job")
  job=$(sends linked 3 --chain 3)
  expect_job "$job" 120 COMPLETED 0
  expect grep -q 'outcome: finished, exit code 0' "linked/linked-$job.log"
  expect grep -q ' Requeue=0 ' <(scontrol show job "$job")
  until_holds 30 no_jobs_of linked || complain "jobs are left: $(squeue)"
  # A signal while it waits for what is not there is kept, and does not end the job.
  job=$(sends signalled 3)
  until_holds 30 is_running "$job" && sleep 2
  expect scancel --full --signal=USR2 "$job"
  expect_job "$job" 120 COMPLETED 0
  expect grep -qx 'step 8' signalled/FINISHED
  # Those that it needs all of go on with the same ones, and not for ever.
  for node in 1 2 3; do expect hides "$node"; done
  job=$(sends nobody 4 --set train.global_batch=12 --set mesh.dp=4)
  expect_job "$job" 240 FAILED 78
  expect test "$(grep -c 'does not have' "nobody/nobody-$job.log")" -eq 3
  expect grep -q 'the same of the two starts before this one' "nobody/nobody-$job.log"
  for node in 0 1 2 3; do expect shows "$node"; done
  expectations_met && exit
  exit 1
fi

expect on_node 1 mount --bind "$PWD/empty" "$PWD/here"
expect_exit 1 on_node 1 test -e "$PWD/here/fourfold"
begins_without 1 unmounted 'could not be started on node1'
expect grep -q 'No such file or directory' unmounted/attempts.jsonl
expect on_node 1 umount "$PWD/here"
expect on_node 2 mount --bind /dev/null "$PWD/here/fourfold"
begins_without 2 forbidden 'could not be started on node2'
expect on_node 2 umount "$PWD/here/fourfold"
# One that ends by itself there, while the ranks of other nodes wait for it to start: srun tells them to stop.
# shellcheck disable=SC2016  # of the script
printf '#!/bin/bash\n[[ $1 != train ]] || { sleep 0.3 && kill -KILL $$; }\nexec "%s" "$@"\n' "$fourfold" >ends_itself
chmod +x ends_itself
expect on_node 1 mount --bind "$PWD/ends_itself" "$PWD/here/fourfold"
begins_without 1 broken 'a rank on node1 ended before the first step (Killed)'
expect on_node 1 umount "$PWD/here/fourfold"

# What the others see, and one node does not: files of the data, the folder of checkpoints. It is named, and left out.
mkdir shelf vault vault/run
cp tokens_* shelf
shelf=(--set 'data.train=["shelf/tokens_train"]' --set 'data.validation=["shelf/tokens_val"]')
for node in 1 0; do
  expect on_node "$node" mount --bind "$PWD/empty" "$PWD/shelf"
  begins_without "$node" "data$node" "rank $node on .*: does not see shelf/tokens_train; the other nodes do" "${shelf[@]}"
  expect on_node "$node" umount "$PWD/shelf"
done
expect on_node 2 mount --bind "$PWD/empty" "$PWD/vault"
begins_without 2 steps "rank 2 on .*: does not see $PWD/vault/run; the other nodes do" --set checkpoint.dir=vault/run/steps
expect on_node 2 umount "$PWD/vault"
# A place where a file system is mounted on the other nodes.
shared=$(mktemp --directory /dev/shm/fourfold-shared.XXXXXX)
mkdir scratch
for node in 0 1 3; do expect on_node "$node" mount --bind "$shared" "$PWD/scratch"; done
begins_without 2 scratched "rank 2 on .*: does not see the file system of $PWD/scratch/steps; the other nodes do" --set checkpoint.dir="$PWD/scratch/steps"
for node in 0 1 3; do expect on_node "$node" umount "$PWD/scratch"; done
rm -r "$shared"

expectations_met
