#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# What `fourfold submit` and a chain's jobs make of what Slurm's commands print beside their answers, and instead of one. How they
# work with a real Slurm: tests/slurm. Usage: submit_answers.bash BUILD_DIR
# shellcheck disable=SC2016,SC2034  # what the stand-ins for Slurm's commands run is in variables of their names
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
# shellcheck source=tests/integration/noisy_slurm.bash
. "$(dirname "$0")/noisy_slurm.bash"
begin "$1"
slurm=$1/share/fourfold/slurm
unset "${!SLURM_@}" "${!SBATCH_@}" "${!FOURFOLD_@}"
fake_slurm bin
PATH=$work/bin:$PATH
export sbatch squeue sinfo scontrol scancel srun FOURFOLD_ASK_S=1

prepare_text 50
printf '[model]\nlayers = 1\nhidden = 32\nheads = 2\nvocab = 257\ncontext = 32\n[train]\nglobal_batch = 4\nsteps = 4
[data]\ntrain = ["tokens"]\n[log]\ndir = "run"\n' >run.toml
submit=("$fourfold" submit run.toml --nodes 1 --tasks-per-node 1)

# The number of the job: standard output has it, whatever stands around it.
sinfo='exit 1' squeue='' srun=''
while read -r sbatch; do
  expect_exit 0 "${submit[@]}" --go
  expect test "$(cat "$output")" = 4711
  expect_stderr '`squeue --job=4711` shows the job'
  expect_stderr "$work/run/fourfold-run-4711.log is its log"
  [[ $sbatch != *Warning:* ]] || expect_stderr 'sbatch: Warning: can not run'
done < <(ways_to_say 4711)
expect_stderr 'sinfo ended with code 1: nodes, their memory and --mpi are not checked'
while read -r sbatch; do
  expect_exit 0 "${submit[@]}" --go
  expect test "$(cat "$output")" = 4711
  expect_stderr '`squeue --cluster=alpha --job=4711`'
done < <(ways_to_say '4711;alpha')
while read -r sbatch; do
  rm -r run/submitted
  expect_exit 78 "${submit[@]}" --go
  # The job that may be in the queue finds what it was submitted with.
  expect grep -qF "$(echo "$PWD"/run/submitted/*/run.toml)" run/submit.sbatch
  expect test -e "$PWD"/run/submitted/*/run.toml
  expect_stderr 'squeue --me --name=fourfold-run'
  expect_stderr 'is not known'
  expect test ! -s "$output"
done < <(ways_not_to_say)
expect_stderr 'sbatch has not answered for 5 s'
sbatch='echo 99; echo "sbatch: error: invalid account" >&2; exit 1'
rm -r run/submitted
expect_exit 78 "${submit[@]}" --go
expect test ! -e run/submitted
expect_stderr 'sbatch refuses'
expect_stderr 'invalid account'
expect test ! -s "$output"
# A controller that has taken the job may die before it says so.
for words in 'Socket timed out on send/recv operation' 'Zero Bytes were transmitted or received'; do
  sbatch="echo 'sbatch: error: Batch job submission failed: $words' >&2; exit 1" expect_exit 78 "${submit[@]}" --go
  expect_stderr "sbatch did not get Slurm's answer, so whether"
  expect grep -qF "$(echo "$PWD"/run/submitted/*/run.toml)" run/submit.sbatch
  rm -r run/submitted
done
# The jobs of an earlier submission find their own script; where there was none, none is left.
for way in --requeue '--chain 3'; do
  [[ $way == --requeue ]] && script=run/submit.sbatch || script=run/chain.sbatch
  rm -f "$script"
  read -ra words <<<"$way"
  expect_exit 78 "${submit[@]}" "${words[@]}" --go
  expect test ! -e "$script"
  sbatch='echo 4711' expect_exit 0 "${submit[@]}" "${words[@]}" --go
  cp "$script" older.sbatch
  expect_exit 78 "${submit[@]}" "${words[@]}" --time 9:00:00 --go
  expect cmp older.sbatch "$script"
done
sbatch='echo 4711'

# A node-local folder that could not be made here: its nodes may differ.
expect_exit 0 "${submit[@]}" --set checkpoint.node_local_dir="$PWD/text.txt/fast" --set checkpoint.node_local_every_steps=1
expect_stderr "checkpoint.node_local_dir = \"$PWD/text.txt/fast\" could not be made on this node ($PWD/text.txt is no folder)"
expect_exit 0 "${submit[@]}" --set checkpoint.node_local_dir="$PWD/fast" --set checkpoint.node_local_every_steps=1
expect_no_stderr 'could not be made'

# What sbatch would take from the environment is checked, as if it were given.
SBATCH_PARTITION=night SBATCH_TIMELIMIT=3:00:00 SBATCH_ACCOUNT=physics SBATCH_MEM_PER_NODE=5000 expect_exit 0 "${submit[@]}"
for line in partition=night time=3:00:00 account=physics mem=5000; do expect_stdout "#SBATCH --$line"; done
SBATCH_PARTITION=night SBATCH_MEM_PER_NODE=5000 expect_exit 0 "${submit[@]}" --partition day --sbatch=--mem-per-cpu=700
expect_stdout '#SBATCH --partition=day'
expect_no_stdout '#SBATCH --mem=5000'
SBATCH_MEM_PER_NODE=20 expect_exit 78 "${submit[@]}" --go
expect_stderr 'does not fit'
# A log.dir with what a start would not write into.
mkdir -p foreign && echo hi >foreign/metrics.jsonl
expect_exit 78 "${submit[@]}" --set log.dir=foreign --go
expect_stderr 'is not a file that fourfold wrote'

# A script that was edited is the user's: it is left as it is, and said so before sbatch is asked.
squeue=''
expect_exit 0 "${submit[@]}" --go
sed -i 's/^#SBATCH --nodes=.*/&\n#SBATCH --account=physics/' run/submit.sbatch
cp run/submit.sbatch edited.sbatch
sbatch='echo asked >>asked' expect_exit 78 "${submit[@]}" --go
expect_stderr 'submit.sbatch: was changed since `fourfold submit` made it'
expect cmp run/submit.sbatch edited.sbatch
expect test ! -e asked
mv run/submit.sbatch mine.sbatch
expect_exit 0 "${submit[@]}" --go

# What is above a link is above what it leads to: the run file that is checked is the one that is submitted.
mkdir -p else/exp && ln -s else/exp link && sed 's/^steps = .*/steps = 7/' run.toml >else/run.toml
submitted=$(realpath else)/run.toml
expect_exit 0 "${submit[@]/run.toml/link/../run.toml}" --set log.dir=link/../logs
expect_stdout "$submitted"
expect_stdout "$(realpath else)/logs"
rm -r else link

# The queue: only lines that are jobs are, and not to know is said.
squeue="echo 'CLUSTER: alpha'; echo '-----'; echo 'squeue: error: 3 nodes' >&2; echo '17 $work/run/chain.sbatch'"
expect_exit 78 "${submit[@]}" --chain 2 --go
expect_stderr 'job 17 in the queue is of a chain of this run already'
ln -s run current
expect_exit 78 "${submit[@]}" --chain 2 --go --set log.dir=current
expect_stderr 'job 17 in the queue is of a chain of this run already'
rm current
squeue="echo 'Welcome $work/run/chain.sbatch'; echo '$work/run/chain.sbatch'; echo '18 $work/run/chain.sbatch' >&2"
expect_exit 0 "${submit[@]}" --chain 2 --go
expect test "$(grep -c 'in the queue' "$errors")" -eq 0
for squeue in 'echo no controller >&2; exit 1' 'exec sleep 100' 'exec yes'; do
  expect_exit 0 "${submit[@]}" --go
  expect_stderr 'whether a job of this run is in the queue already is not known'
done
# One of the run, by its script or by the run file in its comment: the second would be refused, or begin when it ends.
for squeue in "echo '17 $work/run/submit.sbatch'" "echo '17 mine fourfold-run-file=$work/run/submitted/17/run.toml'"; do
  expect_exit 78 "${submit[@]}" --go
  expect_stderr 'job 17 of this run is in the queue already'
  expect_exit 0 "${submit[@]}" --go --beside
  expect_stderr 'job 17 of this run is in the queue already'
done
squeue="echo '17 mine fourfold-run-file=$work/other/submitted/17/run.toml'"
expect_exit 0 "${submit[@]}" --go
expect test "$(grep -c 'in the queue already' "$errors")" -eq 0
# Users may have set what these commands list to them.
squeue="[[ -n \${SQUEUE_STATES-} ]] || echo '17 $work/run/chain.sbatch'"
SQUEUE_STATES=running expect_exit 78 "${submit[@]}" --chain 2 --go
expect_stderr 'job 17 in the queue'
squeue=''

# Of those that are submitted at one moment one is: each but the first finds its job, or that somebody submits.
sbatch='sleep 1; echo 17 >queue; echo 17' squeue='[[ ! -e queue ]] || echo "17 $work/run/submit.sbatch"'
export work
for i in 1 2 3 4; do
  "${submit[@]}" --go >"sent$i" 2>"told$i"
  echo "$?" >"code$i"
done &
for i in 5 6 7 8; do { "${submit[@]}" --go >"sent$i" 2>"told$i"; echo "$?" >"code$i"; } & done
wait
expect test "$(cat sent? | grep -cx 17)" -eq 1
expect test "$(sort code? | paste -sd' ')" = '0 78 78 78 78 78 78 78'
expect test ! -e run/.submit-lease
rm queue
sbatch='echo 4711' squeue=''
# Who is refused leaves nothing where nothing was.
sbatch='exit 1' expect_exit 78 "${submit[@]}" --set log.dir=new/run --go
expect test ! -e new
squeue='echo "17 $work/other/chain.sbatch"' expect_exit 78 "${submit[@]}" --set log.dir=new/run --chain 2 --name other --go
expect test ! -e new

# Partitions and --mpi: warnings are none, and what is no answer is none.
sinfo='[[ -z ${SINFO_PARTITION-} ]] || exit; echo "sinfo: warning: a|1|2|3" >&2; echo "-- | quota | is | fine --"; echo "test*|4|2|1000"'
SINFO_PARTITION=other expect_exit 78 "$fourfold" submit run.toml --nodes 5 --tasks-per-node 1
expect_stderr 'partition test has 4'
expect_exit 78 "${submit[@]}" --partition a
expect_stderr 'there is no partition "a"'
# Several, one of which is enough; what one of them cannot is said.
sinfo='printf "%s\n" "day*|4|2|1000|1:00:00|1-4|up" "night|8|4|2000|2-00:00:00|infinite|down" "shut|9|2|1000|infinite|infinite|drain"'
expect_exit 0 "${submit[@]}" --partition day,night
expect_stdout '#SBATCH --partition=day,night'
expect_stderr 'partition night is down: the job waits there until somebody opens it'
expect_no_stderr 'partition day is'
expect_exit 0 "${submit[@]}" --partition day,shut
expect_stderr 'partition shut is drain: Slurm takes no job for it'
expect_exit 0 "$fourfold" submit run.toml --nodes 5 --tasks-per-node 4 --partition day,night --set mesh.dp=auto --set train.global_batch=20
expect_stderr '--nodes=5: partition day has 4'
expect_exit 0 "${submit[@]}" --time 3:00:00 --partition day,night
expect_stderr '--time=3:00:00: partition day ends its jobs after 1:00:00'
expect_exit 78 "${submit[@]}" --time 3-0 --partition day,night
expect_stderr '--time=3-0: partition day ends its jobs after 1:00:00'
for names in day,other day,,night ','; do
  expect_exit 78 "${submit[@]}" --partition "$names"
  expect_stderr "--partition=$names: there is no partition"
done
# Minutes and seconds, where hours and minutes may be meant.
expect_exit 0 "${submit[@]}" --time 0:20
expect_stderr '--time=0:20 is minutes and seconds to Slurm, 20 s; --time=0:20:00 is hours and minutes'
for time in 20 0:20:00 0-1:00 60:00; do
  expect_exit 0 "${submit[@]}" --time "$time" --partition day
  expect_no_stderr 'minutes and seconds'
done
expect_exit 64 "${submit[@]}" --sbatch=--test-only
expect_stderr 'without --go nothing is submitted'
for sinfo in '' 'echo "Welcome | to | it | all"' 'exec sleep 100'; do
  expect_exit 0 "${submit[@]}" --partition a
  expect_stderr 'nodes, their memory and --mpi are not checked'
done
sinfo='exit 1'
srun='echo "srun: error: cannot load mpi/pmi9: pmi9" >&2; printf "MPI plugin types are...\n\tnone\n\tpmi2\n"'
expect_exit 78 "${submit[@]}" --mpi pmi9
expect_stderr 'this Slurm has none of that name'
expect_exit 0 "${submit[@]}" --mpi pmi2
# Some Slurms print the list on standard error.
srun='printf "srun: MPI types are...\nsrun: none\nsrun: pmi2\n" >&2'
expect_exit 78 "${submit[@]}" --mpi pmi9
for srun in '' 'echo "srun: error: pmi9" >&2' 'exec sleep 100'; do
  expect_exit 0 "${submit[@]}" --mpi pmi9
done

# A chain takes the successor out of the queue that it has put there, and no other; where it is on another cluster, there.
cat >noisy <<'END_NOISY'
#!/bin/bash
# fourfold, as a module or a container may run it
echo 'INFO: starting the image'
case "$1 $2" in
  'job begin') printf 'start\nall\n--set\nmesh.dp=3\nINFO: image left\n' ;;
  'job end') echo "$END_OF_JOB" ;;
esac
echo 'INFO: done'
END_NOISY
chmod +x noisy
export SLURM_JOB_ID=30 SLURM_JOB_NUM_NODES=1 SLURM_JOB_NAME=chain FOURFOLD_SLURM=$slurm FOURFOLD=$work/noisy END_OF_JOB=finished
scontrol='[[ "$*" == "show job 30" ]] && printf "JobId=30 JobName=chain\n   JobState=RUNNING Restarts=0\n   Partition=test ExcNodeList=(null)\n"'
srun='' scancel=''
chain() {
  rm -f calls/*
  expect_exit 0 bash "$slurm/chain.sbatch" run.toml
}
while read -r sbatch; do
  chain
  expect_stdout 'outcome: finished, exit code 0; job 4711, which was to go on, is taken back'
  expect test "$(cat calls/scancel)" = 4711
  expect grep -q -- '/noisy train run.toml --set mesh.dp=3$' calls/srun
done < <(ways_to_say 4711)
while read -r sbatch; do
  chain
  expect test "$(cat calls/scancel)" = 'alpha: 4711'
done < <(ways_to_say '4711;alpha')
while read -r sbatch; do
  chain
  expect_stdout 'outcome: finished, exit code 0'
  expect_stdout 'successor'
  expect test ! -e calls/scancel
done < <(ways_not_to_say)
# One that sbatch has made, and did not learn of, is the next all the same, and no other.
sbatch='echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1'
squeue='printf "%s\n" "Welcome" "30|R|chain|/x/chain.sbatch" "29|PD|chain|/x/chain.sbatch" "31|PD|chain|/x/other" "32|R|chain|/x/chain.sbatch" "33|PD|chain|/x/chain.sbatch"'
chain
expect_stderr 'job 33 is there all the same'
expect_stdout 'outcome: finished, exit code 0; job 33, which was to go on, is taken back'
expect test "$(cat calls/scancel)" = 33
expect test "$(wc -l <calls/sbatch)" -eq 1
squeue=${squeue%% \"33*}
FOURFOLD_ASK_AGAIN_S=5 chain
expect_stdout 'no successor could be submitted (sbatch ended with code 1: sbatch: error: Batch job submission failed: Socket timed out'
expect test ! -e calls/scancel
squeue='exit 1'
chain
expect_stdout 'outcome: finished, exit code 0'
expect test "$(wc -l <calls/sbatch)" -eq 1
squeue=''
# A warning on standard error does not hide what Slurm says of the job; nor is it a part of that.
sbatch='echo 4711'
scontrol='echo "scontrol: warning: x" >&2; [[ "$*" == "show job 30" ]] && printf "Welcome\nJobId=30 JobName=chain\n   JobState=RUNNING Restarts=0\n   Partition=test ExcNodeList=n7\n\n"'
chain
expect grep -qE -- '--partition=test .*--exclude=n7 ' calls/sbatch
# What is no answer of `fourfold job` starts nothing.
printf '#!/bin/bash\necho INFO\n' >noisy
expect_exit 70 bash "$slurm/chain.sbatch" run.toml
expect_stdout 'job begin does not say how to start; it says: INFO'
# One that the end of this job has cut off may have made a job, too.
sbatch='exit 143' squeue='printf "%s\n" "30|R|chain|/x/chain.sbatch" "34|PD|chain|/x/chain.sbatch"'
printf '#!/bin/bash\n[[ "$1 $2" != "job begin" ]] || { echo superseded && exit 93; }\necho "$*" >>"$calls/program"\n' >noisy
rm -f calls/*
# The second of two that Slurm has made of one start notes nothing, and takes its own next job back.
expect_exit 93 bash "$slurm/chain.sbatch" run.toml
expect_stderr 'job 34 is there all the same'
expect_stdout 'outcome: superseded, exit code 93; job 34, which was to go on, is taken back'
expect test "$(cat calls/scancel)" = 34
expect test ! -e calls/program
squeue=''
# A start that could not begin has no end to note, though its next job was submitted only then: that one goes on.
printf '#!/bin/bash\n[[ "$1 $2" != "job begin" ]] || exit 127\necho "$*" >>"$calls/program"\n' >noisy
sbatch='[[ $(wc -l <"$calls/sbatch") -gt 1 ]] && echo 4711'
rm -f calls/*
expect_exit 85 bash "$slurm/chain.sbatch" run.toml
expect_stdout 'outcome: again, exit code 85, next job 4711'
expect test ! -e calls/program
expect test ! -e calls/scancel
# A finished run is an answer to its own run file alone: one with other keys, that has its log.dir by mistake, is refused as train would.
sbatch='echo 4712' sinfo='exit 1' squeue='' srun=''
expect_exit 0 "$fourfold" train run.toml --set log.dir=done
expect_exit 0 "${submit[@]}" --set log.dir=done --go
expect_stderr 'the run is finished, there is nothing to submit'
expect_exit 78 "${submit[@]}" --set log.dir=done --set optim.lr=0.5 --go
expect_stderr 'optim.lr'
expect_no_stdout 4712
expectations_met
