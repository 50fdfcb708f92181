#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# fourfold plan as users meet it: on a login node, with its files and its refusals. Usage: plan_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
build=$1
begin "$build"

# No MPI: it must start where there is none. (A shared library of ours is linked as a whole.)
expect_exit 0 ldd "$build/bin/fourfold-plan"
if ! grep -q libfourfold "$output"; then
  expect_no_stdout libmpi
  expect_no_stdout libhdf5
fi

expect_exit 0 "$fourfold" help plan
for section in OUTPUT "SCHEDULE FILES" EXAMPLES "EXIT CODES"; do
  expect_stdout "$section"
done

# The example of the manual page: 24 micro-batches of work 3 on each of 8 ranks, and 7 halves of a forward pass.
expect_exit 0 "$fourfold" plan --schedule zb-v --stages 8 --micro-batches 24 --svg v.svg --trace v.json --csv v.csv
expect_stdout "step     75.5, of which 72 work"
expect_stdout "bubble   3.5 (4.64 %)   closed form 3.5"
expect_stdout "waiting  0 (0.00 %)"
expect_stdout "    7         3.5   4.64 %         8            8  8 + 8"
expect_stdout "wrote v.svg"
expect python3 -c '
import xml.etree.ElementTree as tree
cells = [node for node in tree.parse("v.svg").iter() if node.tag.endswith("rect") and len(node)]
assert len(cells) == 8 * 24 * 6, len(cells)'
expect python3 -c '
import json
events = json.load(open("v.json"))["traceEvents"]
slices = [event for event in events if event["ph"] == "X"]
assert len(slices) == 8 * 24 * 6
assert {event["tid"] for event in slices} == set(range(8))
assert max(event["ts"] + event["dur"] for event in slices) == 75.5e6'

expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 2 --micro-batches 2 --svg one --csv ./one
expect_stderr '--svg and --csv both name ./one; give each a file of its own'
expect test ! -e one

# What it writes it reads again, and prices the same; other costs and links count.
expect_exit 0 "$fourfold" plan --schedule v.csv
expect_stdout "v.csv: 8 stages, 24 micro-batches, 2 chunks per stage"
expect_stdout "bubble   3.5 (4.64 %)"
expect_no_stdout "closed form 3.5"
expect_exit 0 "$fourfold" plan --schedule 1f1b --stages 4 --micro-batches 8 --costs 1,2,1
expect_stdout "bubble   12 (27.27 %)   closed form 12"
expect_exit 0 "$fourfold" plan --schedule 1f1b --stages 4 --micro-batches 8 --costs 1,2,1 --link-time 0.5
expect_no_stdout "bubble   12 "

# Refusals: what is wrong, why, what to do.
expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 4
expect_stderr "--micro-batches"
expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 4 --micro-batches 8 --costs 1,2
expect_stderr "--costs: At least 3"
expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 4 --micro-batches 8 --costs 1,inf,2
expect_stderr "three times"
expect_exit 64 "$fourfold" plan --schedule v.csv --chunks 2
expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 0 --micro-batches 8
expect_exit 78 "$fourfold" plan --schedule zbv --stages 4 --micro-batches 8
expect_stderr 'did you mean "zb-v"?'
expect_exit 78 "$fourfold" plan --schedule interleaved --stages 4 --micro-batches 3
expect_stderr "at least 4 micro-batches"
expect_exit 78 "$fourfold" plan --schedule v.csv --stages 4
expect_stderr "set mesh.pp to 8"
expect_stderr "mesh.pp --stages"
sed '4s/F3.0/F33.0/' v.csv >mistyped.csv
expect_exit 78 "$fourfold" plan --schedule mistyped.csv
expect_stderr "line 4 (rank 0) does nothing with micro-batch 24 (the last micro-batch is that of F33.0 at line 4, column"
expect_exit 78 "$fourfold" plan --schedule missing.csv
expect_stderr "missing.csv cannot be read"
sed '5s/B0/X0/' <<<$'\n\n\nF0,F1,B0,B1\nF0,B0,F1,B1' >broken.csv
expect_exit 78 "$fourfold" plan --schedule broken.csv
expect_stderr "broken.csv line 5, column 4: 'X0' is no action"
printf 'F0,B0,F1,B1\nF0,F1,B0,B1\n' >stuck.csv
expect_exit 78 "$fourfold" plan --schedule stuck.csv
expect_stderr "stuck.csv cannot run: deadlock: line 1, column 4 (B0) waits for what line 2, column 7 (B0) sends"
printf 'F0,B0\n\nF0,B0\n' >gap.csv
expect_exit 78 "$fourfold" plan --schedule gap.csv
expect_stderr "gap.csv line 2 is empty"
expect_exit 73 "$fourfold" plan --schedule 1f1b --stages 2 --micro-batches 2 --svg nowhere/x.svg
expect_exit 78 "$fourfold" plan --schedule 1f1b --stages 64 --micro-batches 1024 --svg large.svg
expect_stderr "too many for a picture"
expect test ! -e large.svg

# A run file: what 16,384 ranks would hold, without one of them, and without the data.
cat >run.toml <<'END'
[model]
family = "llama"
layers = 128
hidden = 16384
heads = 128
kv_heads = 16
vocab = 128256
context = 8192
tie_embeddings = false
[mesh]
pp = 16
cp = 2
tp = 8
[train]
precision = "bf16"
global_batch = 2048
micro_batch = 1
[data]
train = ["not/here.bin"]
END
expect_exit 0 "$fourfold" plan run.toml --ranks 16384 --rank 9381 --svg run.svg
expect_stdout "mesh      pp16 dp64 cp2 tp8: 16384 ranks"
expect_stdout "2048 sequences of 8192 tokens: 32 micro-batches of 1 on each replica"
expect_stdout "tp       position 5 of 8: ranks 9376, 9377, 9378, 9379, 9380, 9381, 9382, 9383"
expect_stdout "dp       position 10 of 64: ranks 9221, 9237, 9253 ... 10229 (every 16th)"
expect_stdout "pp       position 9 of 16: ranks 165, 1189, 2213 ... 15525 (every 1024th)"
expect_stdout "tokens   0-2047 and 6144-8191 of the 8192 of each sequence"
expect_stdout "[16384, 16384]  dim 0: 10240-12287"
expect_stdout "1f1b: 16 stages, 32 micro-batches"
expect test "$(grep -cE '^ +[0-9]+ .* layers [0-9]+-[0-9]+' "$output")" -ge 16
expect test -s run.svg
expect_exit 0 "$fourfold" plan run.toml --set mesh.dp=64
expect_stdout "16384 ranks"
expect_stdout " GiB  holds"
# Small enough for a laptop: in a unit that shows it.
expect_exit 0 "$fourfold" plan run.toml --ranks 16 --set model.layers=16 --set model.hidden=1024 --set mesh.tp=1 \
  --set mesh.cp=1 --set model.vocab=512 --set model.context=64
expect_stdout " MiB  holds"
expect_stdout "the process of each rank beside its tensors"
expect_no_stdout "    0.000      0.000      0.000        0.000      0.000      0.000"
expect_exit 64 "$fourfold" plan run.toml
expect_stderr "give --ranks"
expect_exit 64 "$fourfold" plan run.toml --ranks 16384 --rank 16384
expect_stderr "ranks 0 to 16383"
expect_exit 64 "$fourfold" plan run.toml --schedule 1f1b --ranks 4
expect_stderr "not both"
expect_exit 64 "$fourfold" plan run.toml --stages 4 --ranks 16384
expect_stderr "mesh.pp"
expect_exit 64 "$fourfold" plan
expect_stderr "either a run file or --schedule"
expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 4 --micro-batches 8 --ranks 4
expect_stderr "belong to a run file"
expect_exit 64 "$fourfold" plan --schedule 1f1b --stages 4 --micro-batches 8 --gpu 90
expect_stderr "belong to a run file"
expect_exit 64 "$fourfold" plan run.toml --ranks 16384 --gpu 75
expect_stderr "--gpu"
expect_exit 78 "$fourfold" plan run.toml --ranks 1000
expect_stderr "run.toml:"
expect_stderr "start 512 ranks (dp = 2) or 1024 ranks (dp = 4)" # not 768: 3 replicas do not share 2048 sequences
expect_exit 78 "$fourfold" plan run.toml --ranks 16384 --set mesh.tp=7
expect_stderr "mesh.tp"
expect_exit 78 "$fourfold" plan run.toml --ranks 16384 --set train.global_batch=100
expect_stderr "train.global_batch"

# Values without effect are named, as in training.
expect_exit 0 "$fourfold" plan run.toml --ranks 16 --set mesh.pp=1 --set mesh.schedule=zb-v
expect_stderr '--set: mesh.schedule has no effect (it needs mesh.pp > 1 or mesh.chunks > 1)'

# Its own files are replaced; those of others, and its inputs, are not.
drawn=("$fourfold" plan --schedule 1f1b --stages 2 --micro-batches 2)
for _ in 1 2; do expect_exit 0 "${drawn[@]}" --svg own.svg --trace own.json --csv own.csv; done
# So are those of earlier versions, which had the mark elsewhere, or none.
sed 's/^{"otherData":{"made_by":"fourfold"},/{/' own.json >older.json
sed '1s/fourfold/fourfold plan/' own.svg >older.svg
tail -n +2 own.svg >oldest.svg
for pair in 'trace older.json' 'svg older.svg' 'svg oldest.svg'; do
  read -r option older <<<"$pair"
  expect_exit 0 "${drawn[@]}" "--$option" "$older"
  expect cmp "own.${option/trace/json}" "$older"
done
printf '{"displayTimeUnit":"ms","traceEvents":[{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"theirs"}}]}' >theirs.json
printf '# planned: 2 stages, 2 micro-batches\n# placement: loop\nF0,F1,B0,B1\nF0,B0,F1,B1\n' >theirs.csv
for pair in 'csv theirs.csv' 'trace theirs.json'; do
  read -r option theirs <<<"$pair"
  cp "$theirs" kept
  expect_exit 78 "${drawn[@]}" "--$option" "$theirs"
  expect cmp kept "$theirs"
done
for option in svg trace csv; do
  echo mine >"mine.$option"
  expect_exit 78 "${drawn[@]}" "--$option" "mine.$option"
  expect_stderr "mine.$option: is there already, and not made by \`fourfold plan --$option\`"
  expect test "$(cat "mine.$option")" = mine
done
expect_exit 78 "$fourfold" plan run.toml --ranks 16 --svg ./run.toml
expect_stderr 'is an input'
expect_exit 78 "$fourfold" plan --schedule own.csv --stages 2 --micro-batches 2 --csv own.csv
expect_stderr 'is an input'

# A table that somebody has changed is his, and so is one of a version that did not tell.
sed 's/F1,B0/B0,F1/' own.csv >edited.csv
{ cat own.csv && echo '# a note of mine'; } >noted.csv
grep -v crc32c own.csv >unsigned.csv
{ sed -n 2,3p own.csv && sed -n 1p own.csv && tail -n +4 own.csv; } >older.csv
for table in edited noted unsigned older; do
  expect_exit 0 "$fourfold" plan --schedule "$table.csv"
  cp "$table.csv" kept
  expect_exit 78 "${drawn[@]}" --csv "$table.csv"
  if [[ $table == older ]]; then
    expect_stderr "older.csv: is there already, and not made by \`fourfold plan --csv\`"
  else
    expect_stderr "$table.csv: was changed since \`fourfold plan --csv\` made it, and would be replaced; choose another name"
  fi
  expect cmp kept "$table.csv"
done

# What a run has measured is not replaced by what was planned, even where it is of the same kind.
mkdir measured && echo '{"event":"start"}' >measured/metrics.jsonl
expect_exit 0 "${drawn[@]}" --svg measured/timeline.new --trace measured/trace.new
for file in trace.json timeline.svg; do
  cp "measured/${file%.*}.new" "measured/$file"
  expect_exit 78 "${drawn[@]}" "--$([[ $file == trace.json ]] && echo trace || echo svg)" "measured/$file"
  expect_stderr "measured/$file: is the place of a file of the run whose directory measured is"
  expect cmp "measured/${file%.*}.new" "measured/$file"
done

# A link to a drawing of ours is followed.
mkdir far && expect_exit 0 "${drawn[@]}" --svg far/drawn.svg && ln -s far/drawn.svg near.svg && : >far/drawn.svg
expect_exit 0 "${drawn[@]}" --svg near.svg
expect test -L near.svg && expect test -s far/drawn.svg
expect_exit 64 "${drawn[@]}" --svg both --csv ./both
expect_stderr 'both name'

# The table that the run file names is an input, too.
expect_exit 0 "$fourfold" plan --schedule 1f1b --stages 2 --micro-batches 4 --csv two.csv
cp two.csv kept.csv
expect_exit 78 "$fourfold" plan run.toml --ranks 2 --set mesh.pp=2 --set mesh.dp=1 --set mesh.tp=1 --set mesh.cp=1 --set mesh.schedule=two.csv \
  --set train.global_batch=4 --set train.micro_batch=1 --csv ./two.csv
expect_stderr 'is an input'
expect cmp kept.csv two.csv

expectations_met
