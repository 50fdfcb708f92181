#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# fourfold doctor as a batch job on a real Slurm of four nodes: sound ones, one that is slow, one on a file system of its
# own, and a launcher that MPI does not understand. Usage: doctor.bash BUILD_DIR
set -u
# shellcheck source=tests/slurm/cluster.bash
. "$(dirname "$0")/cluster.bash"
begin_cluster "$1" 4
write_run
mesh=(--set mesh.dp=2 --set mesh.tp=2 --set mesh.pp=2 --set train.micro_batch=2)

# submit ARGUMENT...: doctor.sbatch on eight ranks; "$job" is its number, "$log" what it wrote when it is over.
submit() {
  job=$(sbatch --parsable --nodes=4 --ntasks=8 --time=5 "$slurm/doctor.sbatch" "$@")
  log=fourfold-doctor-$job.log
}

# Sound nodes. Eight ranks take turns on the cores of one machine, and what else runs on it may hit some of them each time;
# so a row of figures may stand out here, and is looked at in the next job.
submit run.toml "${mesh[@]}" --seconds 30
until_holds 90 is_over "$job"
if [[ $(exit_of "$job") == 85 ]] && ! grep -E ' FAIL ' "$log" | grep -qvE '^(products|memory speed)'; then
  submit run.toml "${mesh[@]}" --seconds 30
fi
expect_job "$job" 90 COMPLETED 0
expect grep -qE '^launch +ok +8 ranks on 4 nodes, 2 on each' "$log"
expect grep -qE '^mesh +ok +pp2 dp2 cp1 tp2; neighbours on tp share a node' "$log"
expect grep -qE '^transport tp .* 4 groups at once of 2' "$log"
expect grep -qE '^network +(ok|warning) +[0-9.]+ GB/s from node to node' "$log"
expect grep -qE '^checkpoint.dir +ok ' "$log"
expect grep -qE '^data.train +ok ' "$log"
expect grep -qE '^clocks +ok ' "$log"
expect grep -qE '^host names +ok ' "$log"
expect grep -qE '^versions +ok ' "$log"
expect grep -qx 'exclude:' "$log"
expect python3 -c 'import re, sys
assert float(re.search(r"checks in ([0-9.]+) s", open(sys.argv[1]).read()).group(1)) < 60' "$log"

# A node whose ranks are stopped for most of the time, as if something else ran there.
cat >slowed <<'END'
#!/bin/bash
if [[ $SLURMD_NODENAME == node2 && $1 == doctor && -n ${SLURM_PROCID-} ]]; then
  rank=$$
  (while kill -STOP $rank; do sleep 0.08; kill -CONT $rank; sleep 0.02; done) 2>/dev/null &
fi
exec fourfold "$@"
END
chmod +x slowed
job=$(FOURFOLD=$PWD/slowed FOURFOLD_SLURM=$slurm sbatch --parsable --nodes=4 --ntasks=8 --time=5 "$slurm/doctor.sbatch" \
  run.toml "${mesh[@]}" --seconds 40)
log=fourfold-doctor-$job.log
expect_job "$job" 90 FAILED 85
expect grep -qE '^products +FAIL ' "$log"
expect grep -qE 'rank [45] on node2 has .* GFLOP/s, the median .*something else runs there' "$log"
expect grep -qE '^exclude: --exclude=(.*,)?node2(,|$)' "$log"

# A rank that stands still: found out by the watch, as in training, and its node is left out the same way.
cat >slowed <<'END'
#!/bin/bash
[[ $1 != doctor || ${SLURM_PROCID-} != 3 ]] || { rank=$$; (sleep 2; kill -STOP $rank) & }
exec fourfold "$@"
END
job=$(FOURFOLD=$PWD/slowed FOURFOLD_SLURM=$slurm sbatch --parsable --nodes=4 --ntasks=8 --time=5 "$slurm/doctor.sbatch" \
  run.toml "${mesh[@]}" --seconds 20)
until_holds 90 is_over "$job" || complain "a stopped rank keeps the job"
expect grep -q 'rank 3 on node1 has given no sign of life' "fourfold-doctor-$job.log"
expect grep -qx 'exclude: --exclude=node1' "fourfold-doctor-$job.log"

# A directory that one node has a file system of its own over; then one that every node has.
mount_apart() { nsenter --mount="/proc/$(cut -d ' ' -f 1 "$TEST_CLUSTER_DIR/run/$1.id")/ns/mnt" mount -t tmpfs apart "$PWD/shared"; }
mkdir shared
expect mount_apart node3
submit --dir shared --seconds 20
until_holds 90 is_over "$job"
expect grep -qE 'node3 has another shared than the other nodes' "$log"
expect grep -qE '^exclude: --exclude=(.*,)?node3(,|$)' "$log"
[[ $(exit_of "$job") == 85 ]] || complain "a node apart ends with $(exit_of "$job")"
for node in node0 node1 node2; do
  expect mount_apart "$node"
done
submit --dir shared --seconds 20
expect_job "$job" 90 FAILED 78
expect grep -qF 'shared is not a shared file system' "$log"

# Without a process manager that MPI understands each rank would be alone: refused, with the word to say.
job=$(FOURFOLD_MPI=none sbatch --parsable --nodes=2 --ntasks=4 --time=5 "$slurm/doctor.sbatch" --seconds 10)
expect_job "$job" 60 FAILED 78
expect grep -q 'srun --mpi=pmi2' "fourfold-doctor-$job.log"
expectations_met
