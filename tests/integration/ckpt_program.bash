#!/usr/bin/env bash
# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# Checkpoints looked at as users do it, on a machine without ranks: what they hold, whether they are whole, where two
# differ. Usage: ckpt_program.bash BUILD_DIR
set -u
# shellcheck source=tests/integration/expect.bash
. "$(dirname "$0")/expect.bash"
begin "$1"
golden=$(cd "$(dirname "$0")/../golden" && pwd)

prepare_text 200
cat >run.toml <<'END'
[model]
layers = 2
hidden = 32
heads = 2
vocab = 257
context = 32
[train]
global_batch = 4
micro_batch = 1
steps = 4
[data]
train = ["tokens"]
[checkpoint]
every_steps = 2
[log]
dir = "run"
END
expect_exit 0 ranks 2 train run.toml --set mesh.tp=2
expect_exit 0 ranks 4 train run.toml --set log.dir=two --set mesh.pp=2 --set mesh.zero=1 --set checkpoint.files=node
# (Names of folders as long as each other: the text of the run file is in the payloads, and so in their sizes.)
# As many files as asked for: of 4 ranks on one node 1; the others have theirs.
expect test "$(find run/checkpoints/step-000000004 -name 'shard-*' | wc -l)" -eq 2
expect test "$(find two/checkpoints/step-000000004 -name 'shard-00000-of-00001.h5' | wc -l)" -eq 1
expect_exit 78 ranks 1 train run.toml --set checkpoint.files=0
expect_stderr 'is not one of "rank", "node", or "N" with N from 1'

# Help, and what is wrong with a command line.
expect_exit 0 "$fourfold" ckpt --help
for verb in info verify repair-index diff reshard merge gc export import; do
  expect_stdout "$verb"
done
expect_exit 64 "$fourfold" ckpt
expect_exit 64 "$fourfold" ckpt info
expect_exit 78 "$fourfold" ckpt info no/such
expect_stderr 'is no checkpoint'

# A folder of steps is listed; a step is shown, with its tensors if asked.
expect_exit 0 "$fourfold" ckpt info run/checkpoints
expect_stdout 'pp1 dp1 cp1 tp2'
expect test "$(wc -l <"$output")" -eq 3
expect_exit 0 "$fourfold" ckpt info run/checkpoints/step-000000004 --tensors
expect_stdout 'step      4, saved on mesh pp1 dp1 cp1 tp2'
expect_stdout 'consumed_samples'
expect_stdout '/t/layers.1.mlp.up_proj.weight/master/b1'
# What it says is what any HDF5 reader finds.
expect_exit 0 "$fourfold" ckpt info run/checkpoints/step-000000004 --json
expect python3 -c 'import json, subprocess, sys
facts = json.load(open(sys.argv[1]))
assert facts["step"] == 4 and facts["mesh"]["tp"] == 2 and facts["scalars"]["consumed_samples"] == 16
boxes = 0
for tensor in facts["tensors"]:
    elements = 1
    for extent in tensor["shape"]:
        elements *= extent
    assert sum(box["bytes"] for box in tensor["boxes"]) == tensor["bytes"] == 4 * elements, tensor
    boxes += len(tensor["boxes"])
box = facts["tensors"][0]["boxes"][0]
seen = subprocess.run(["h5dump", "-p", "-H", "-d", box["dataset"], facts["path"] + "/" + box["file"]],
                      check=True, capture_output=True, text=True).stdout
assert "OFFSET %d" % box["byte_offset"] in seen, seen
assert boxes > len(facts["tensors"])' "$output"

# The reader of the documentation, which knows the format and nothing of this program, puts tensors together, and finds
# a damaged one. Debian's h5py belongs to Debian's Python.
python=python3
python3 -c 'import h5py' 2>/dev/null || python=/usr/bin/python3
expect_exit 0 "$python" "$SOURCE_DIR/docs/read_checkpoint.py" run/checkpoints/step-000000004
expect test "$(wc -l <"$output")" -eq "$(grep -c '"state":' <("$fourfold" ckpt info run/checkpoints/step-000000004 --json))"
expect "$python" -B -c 'import shutil, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from read_checkpoint import Checkpoint
cut, other = (Checkpoint(f"{run}/checkpoints/step-000000004") for run in ("run", "two"))
assert len(cut.extents["tensor"]) > len(cut.tensors) and cut.tensors.keys() == other.tensors.keys()
for name in cut.tensors:
    assert np.allclose(cut.read(name), other.read(name), atol=1e-4), name
shutil.copytree(cut.folder, "copy")
damaged = Checkpoint("copy")
with open(damaged.folder / damaged.files[damaged.extents["file"][0]], "r+b") as file:
    file.seek(int(damaged.extents["byte_offset"][0]))
    file.write(b"\x01\x02\x03")
try:
    damaged.read(list(damaged.tensors)[0])
    sys.exit(1)
except ValueError as error:
    assert "is damaged" in str(error)' "$SOURCE_DIR/docs"

# Payloads say the same as the index, to any HDF5 reader.
expect "$python" -c 'import glob, h5py, numpy as np
for run in ("run", "two"):
    folder = f"{run}/checkpoints/step-000000004"
    index, paths = h5py.File(folder + "/index.h5"), sorted(glob.glob(folder + "/shard-*"))
    payloads = [h5py.File(path) for path in paths]
    for kind in ("integers", "reals", "texts"):
        assert payloads[0]["scalars"][kind].keys() == index["scalars"][kind].keys()
        for name, value in index["scalars"][kind].items():
            assert np.array_equal(payloads[0]["scalars"][kind][name], value), name
    names, states = (index["tensors"][column][()] for column in ("name", "state"))
    extents = index["extents"]
    for tensor, number, file, first in zip(*(extents[column][()] for column in ("tensor", "number", "file", "first_chunk"))):
        box = payloads[file][f"t/{names[tensor].decode()}/{states[tensor].decode()}/b{number}"]
        assert box.attrs["first_chunk"][0] == first, box
    for payload in payloads:
        assert payload.attrs["files"][0] == len(paths) and payload.attrs["save"] == payloads[0].attrs["save"]
        assert payload.attrs["mesh"].tolist() == ([1, 1, 1, 2] if run == "run" else [2, 2, 1, 1])'

# Whole checkpoints are found whole.
expect_exit 0 "$fourfold" ckpt verify run/checkpoints
expect_stdout 'manifest, index, names and sizes hold'
expect_exit 0 "$fourfold" ckpt verify --deep run/checkpoints two/checkpoints/step-000000002
expect test "$(grep -c intact "$output")" -eq 3

# The same state on other meshes, and other states.
cp -r run/checkpoints/step-000000002 start
expect_exit 0 "$fourfold" ckpt diff start run/checkpoints/step-000000002
expect_stdout 'equal: the same state'
expect_exit 1 "$fourfold" ckpt diff run/checkpoints two/checkpoints --json
expect python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))
assert not found["equal"] and not found["scalars"] and found["tensors"], found
for tensor in found["tensors"]:  # rounding of another mesh
    assert 0 < tensor["max_abs"] < 1e-4 and 0 < tensor["different"] <= tensor["elements"], tensor' "$output"
expect_exit 1 "$fourfold" ckpt diff run/checkpoints/step-000000002 run/checkpoints/step-000000004 --digests-only
expect_stdout 'step: 2 and 4'
expect_stdout 'other values'

# Cut for another mesh: the boxes and files that its ranks make, every bit kept, and back: the same files, byte for byte.
expect_exit 0 "$fourfold" ckpt reshard run/checkpoints recut --to pp=2,dp=2,zero=1 --files 1 --dry-run
expect_stdout 'nothing was written'
expect test ! -e recut
# What the verbs that write would do and did, for programs.
json_of() { python3 -c 'import json, sys; facts = json.load(open(sys.argv[1])); print(eval(sys.argv[2], facts | {"null": None}))' "$output" "$1"; }
expect_exit 0 "$fourfold" ckpt reshard run/checkpoints recut --to pp=2,dp=2,zero=1 --files 1 --dry-run --json
expect test "$(json_of 'step, files, mesh["dp"], dry_run, path')" = "(4, 1, 2, True, 'recut')"
expect_exit 0 "$fourfold" ckpt reshard run/checkpoints by-json --to tp=2,dp=2 --json --progress none
expect test "$(json_of 'step, files, mesh["tp"], dry_run, path')" = "(4, $(find by-json -name 'shard-*' | wc -l), 2, False, 'by-json/step-000000004')"
expect_exit 0 "$fourfold" ckpt reshard run/checkpoints recut --to pp=2,dp=2,zero=1 --files 1
expect_stdout 'every bit was kept'
expect_exit 0 "$fourfold" ckpt diff run/checkpoints recut
# What macOS leaves in folders that are looked at does not make a step a damaged one.
# Nor do notes: they are nothing to a reader.
beside=(.DS_Store ._MANIFEST.json Thumbs.db desktop.ini .nfs00a1 .fuse_hidden0001 notes.txt)
(cd recut/step-000000004 && touch "${beside[@]}")
expect_exit 0 "$fourfold" ckpt verify --deep recut
expect_exit 0 "$fourfold" ckpt diff run/checkpoints recut
(cd recut/step-000000004 && rm "${beside[@]}")
cp recut/step-000000004/shard-00000-of-00001.h5 recut/step-000000004/shard-00000-of-00002.h5
expect_exit 65 "$fourfold" ckpt verify recut
expect_stdout 'shard-00000-of-00002.h5 does not belong to the checkpoint'
rm recut/step-000000004/shard-00000-of-00002.h5
"$fourfold" ckpt info recut/step-000000004 --json >recut.json
"$fourfold" ckpt info two/checkpoints/step-000000004 --json >two.json
expect python3 -c 'import json
recut, other = (json.load(open(name + ".json")) for name in ("recut", "two"))
boxes = [[(tensor["name"], tensor["state"], tensor["boxes"]) for tensor in side["tensors"]] for side in (recut, other)]
assert recut["files"] == other["files"] and boxes[0] == boxes[1]'
expect_exit 0 "$fourfold" ckpt reshard run/checkpoints recut --to pp=2,dp=2,zero=1 --files 1  # it is there already
expect_exit 73 "$fourfold" ckpt reshard run/checkpoints recut --to tp=2
expect_stderr 'never overwritten'
# Not where it is read from, however that is named.
find run recut | sort >before
for names in 'recut recut' 'recut/step-000000004 recut' 'run run' 'run run/checkpoints' "$PWD/run/ run/."; do
  # shellcheck disable=SC2086  # words
  expect_exit 78 "$fourfold" ckpt reshard $names --to tp=2
  expect_stderr 'is read from (a step is never replaced by another cut of it); name another folder'
done
expect diff before <(find run recut | sort)
# Nor among the steps of another run.
expect_exit 0 ranks 1 train run.toml --set log.dir=of_other_seed --set train.seed=7 --set train.steps=2
find of_other_seed | sort >before
expect_exit 78 ranks 2 ckpt reshard run of_other_seed/checkpoints --to dp=2
expect_stderr 'of_other_seed/checkpoints: holds steps of another run (train.seed: '
expect diff before <(find of_other_seed | sort)
# Which may have the same run file: other tokens, or other weights to begin with.
expect_exit 0 ranks 1 train run.toml --set log.dir=first --set train.steps=2 --set checkpoint.every_steps=1 --set optim.decay_steps=4
cp -r first other_numbers
find other_numbers/checkpoints -name 'step-*2' -exec rm -r {} + && rm -f other_numbers/checkpoints/LATEST
expect_exit 0 ranks 1 train run.toml --set log.dir=second --set train.steps=2 --set checkpoint.every_steps=1 --set optim.decay_steps=4 \
  --resume-weights-only=run/checkpoints
expect_exit 78 "$fourfold" ckpt reshard second/checkpoints/step-000000002 other_numbers/checkpoints --to dp=2
expect_stderr 'holds step 1 (with other numbers than that of second'
expect_exit 0 "$fourfold" ckpt reshard first/checkpoints/step-000000001 same_run --to dp=2
expect_exit 0 "$fourfold" ckpt reshard first same_run --to dp=2
expect_exit 0 "$fourfold" ckpt diff first same_run
rm -r first/checkpoints/step-000000001
expect_exit 0 "$fourfold" ckpt reshard first/checkpoints another --to dp=2
# Where they have no step in common the data, the beginning and [optim] tell: retention takes the older ones of a run that goes on.
rm -r second/checkpoints/step-000000001
expect_exit 78 "$fourfold" ckpt reshard second other_numbers/checkpoints --to dp=2
expect_stderr 'holds step 1 (there is none in '
expect_exit 0 "$fourfold" ckpt reshard first other_numbers/checkpoints --to dp=2
expect_exit 0 "$fourfold" ckpt diff first other_numbers
expect_exit 0 ranks 3 ckpt reshard recut back --to tp=2 --memory 96M
expect diff -r run/checkpoints/step-000000004 back/step-000000004
expect_exit 0 ranks 4 train run.toml --set log.dir=on --set mesh.pp=2 --set mesh.zero=1 --set train.steps=6 --set optim.decay_steps=4 \
  --set checkpoint.resume=recut/step-000000004
expect_stderr 'saved on mesh pp2 dp2 cp1 tp1'
for mesh in tp=3 dp=auto tp tp=2,foo=3 pp=4 tp=2,tp=2; do
  expect_exit 78 "$fourfold" ckpt reshard run/checkpoints no --to "$mesh"
  expect_stderr "--to $mesh"
done
expect_exit 64 "$fourfold" ckpt reshard run/checkpoints no --to tp=2 --memory 1M
expect_exit 64 "$fourfold" ckpt reshard run/checkpoints no --to tp=2 --files 0
expect test ! -e no

# Nothing else may be written into a step: it would count as damaged.
step=run/checkpoints/step-000000004
expect_exit 78 "$fourfold" ckpt reshard run/checkpoints "$step/sub" --to dp=1
expect_stderr 'lies in the checkpoint'
expect_exit 78 "$fourfold" ckpt merge run/checkpoints "$step/all.h5"
expect_exit 78 "$fourfold" ckpt export --format hf run/checkpoints "$step/deep/hf"
expect_exit 78 ranks 1 train run.toml --set checkpoint.dir="$step/more"
expect_exit 78 ranks 1 train run.toml --set log.dir="$step/log"
expect_exit 0 "$fourfold" ckpt verify "$step"
# Files of the names that are in a step, where the user is.
for name in index.h5 MANIFEST.json LATEST; do echo 'something else' >$name; done
expect_exit 0 "$fourfold" ckpt verify "$step"
expect_exit 0 env --chdir="$step" "$fourfold" ckpt verify .
rm index.h5 MANIFEST.json LATEST

# One HDF5 file with each tensor whole.
expect_exit 0 "$fourfold" ckpt merge run/checkpoints merged.h5 --memory 1M
expect_exit 73 "$fourfold" ckpt merge run/checkpoints merged.h5
expect_exit 0 "$fourfold" ckpt merge run/checkpoints by-json.h5 --json
expect test "$(json_of 'path, files, mesh')" = "('by-json.h5', 1, None)"
expect "$python" -B -c 'import sys
sys.path.insert(0, sys.argv[1])
import h5py, numpy as np
from read_checkpoint import Checkpoint
step = Checkpoint("run/checkpoints/step-000000004")
merged = h5py.File("merged.h5")
assert merged.attrs["identity"].decode() == step.manifest["identity"] and merged.attrs["consumed_samples"] == b"16"
for name in step.tensors:
    assert merged[name].dtype == np.float32 and np.array_equal(merged[name], step.read(name)), name' "$SOURCE_DIR/docs"

# Old steps and leftovers go; never the newest step that a run could go on from.
expect_exit 0 ranks 1 train run.toml --set log.dir=many --set checkpoint.every_steps=1 --set checkpoint.keep_last=0 \
  --set train.eval_every_steps=2 --set 'data.validation=["tokens"]'
expect_exit 0 "$fourfold" ckpt info many/checkpoints/step-000000002
expect_stdout 'validation_loss'
expect_exit 0 "$fourfold" ckpt info many/checkpoints/step-000000003  # which was not evaluated
expect_no_stdout 'validation_loss'
mkdir many/checkpoints/{.tmp-step-000000009-,.trash-,damaged-step-000000001-}0123456789abcdef
expect_exit 0 "$fourfold" ckpt gc many/checkpoints --keep-last 1 --keep-best 1 --dry-run
expect_stdout 'would remove step 1'
expect_stdout 'would remove .trash-0123456789abcdef'
expect test "$(find many/checkpoints -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 7
expect_exit 64 "$fourfold" ckpt gc many/checkpoints --keep-best 1
truncate -s 100 many/checkpoints/step-000000004/MANIFEST.json
expect_exit 0 "$fourfold" ckpt gc many/checkpoints --keep-last 1 --keep-every 2 --json --dry-run
expect test "$(json_of 'steps, spared, dry_run')" = "([1], 3, True)"
# What somebody has put into a step stays, that step with it, and the others go.
cp -r many noted
echo mine >noted/checkpoints/step-000000001/notes.txt
expect_exit 0 "$fourfold" ckpt gc noted/checkpoints --keep-last 1
expect_stdout 'removes step 2'
expect_no_stdout 'removes step 1'
expect_stderr 'step-000000001: is not removed, since it holds notes.txt, which no checkpoint has'
expect grep -qx mine noted/checkpoints/step-000000001/notes.txt
expect test -e noted/checkpoints/step-000000001/MANIFEST.json
expect test ! -e noted/checkpoints/step-000000002
expect_exit 0 "$fourfold" ckpt gc many/checkpoints --keep-last 1 --keep-every 2
expect_stdout 'step 3 stays'
expect test "$(cd many/checkpoints && echo *)" = 'LATEST damaged-step-000000001-0123456789abcdef step-000000002 step-000000003 step-000000004'
expect_exit 0 "$fourfold" ckpt gc many/checkpoints --set-aside
expect_stdout 'removes damaged-step-000000001-0123456789abcdef'
expect_exit 0 "$fourfold" ckpt gc many/checkpoints
expect_stdout 'nothing to remove'

# A second job is refused while the first one lives, and takes over at once when it was killed.
"$fourfold" train run.toml --set log.dir=alone --set train.steps=1000000 --set checkpoint.every_steps=0 >first.log 2>&1 &
first=$!
for ((i = 0; i < 100; ++i)); do
  [[ -e alone/checkpoints/.lease ]] && break
  sleep 0.1
done
expect_exit 78 "$fourfold" train run.toml --set log.dir=alone --set log.report=false
expect_stderr "process $first on $(uname -n) is running here"
expect_exit 78 "$fourfold" ckpt gc alone/checkpoints
expect_exit 78 "$fourfold" ckpt reshard run/checkpoints alone/checkpoints --to tp=1  # the run would sweep what is unfinished
expect_stderr "process $first on $(uname -n) is running here"
kill -9 "$first"
wait "$first" 2>/dev/null
expect_exit 0 "$fourfold" train run.toml --set log.dir=alone
expect test ! -e alone/checkpoints/.lease

# Where no step holds together the data are damaged, whoever asks.
cp -r run/checkpoints damaged
rm -r damaged/step-000000002
printf x | dd of=damaged/step-000000004/MANIFEST.json bs=1 seek=100 conv=notrunc status=none
for verb in 'reshard damaged again --to tp=1' 'merge damaged all.h5' 'export --format hf damaged again' 'diff damaged run/checkpoints'; do
  # shellcheck disable=SC2086  # words
  expect_exit 65 "$fourfold" ckpt $verb
  expect_stderr 'none of the steps there holds together'
done

# Index, manifest or both lost: named with what to do, and made again from the payloads as they were; a dry run changes
# nothing; damage of payloads is named.
cp -r two/checkpoints lost
step=lost/step-000000004
expect_exit 0 "$fourfold" ckpt repair-index $step
expect_stdout 'nothing to repair'
truncate -s 1000 $step/index.h5
expect_exit 65 "$fourfold" ckpt verify $step
expect_stdout "fourfold ckpt repair-index $step"
expect_exit 0 "$fourfold" ckpt repair-index $step --dry-run
expect_stdout 'would make again index.h5'
expect test "$(stat -c %s $step/index.h5)" -eq 1000
expect_exit 0 "$fourfold" ckpt repair-index $step
expect_stdout 'proven by MANIFEST.json'
expect diff -r two/checkpoints lost
rm $step/MANIFEST.json
expect_exit 78 "$fourfold" ckpt info $step
expect_stderr "fourfold ckpt repair-index $step"
expect_exit 0 "$fourfold" ckpt repair-index $step --json
expect python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
assert report["rebuilt"] == ["MANIFEST.json"] and report["proof"] == "index" and report["step"] == 4, report' "$output"
expect diff -r two/checkpoints lost
rm $step/index.h5
printf 'x' >>$step/MANIFEST.json
cp -r lost lost_too
expect_exit 0 "$fourfold" train run.toml --set log.dir=lost_run --set checkpoint.dir=lost_too --set train.steps=2 \
  --set optim.decay_steps=4
expect_stderr 'repair-index'
expect_exit 0 "$fourfold" ckpt repair-index $step
expect_stdout 'proven by LATEST'
expect diff -r two/checkpoints lost
rm lost/LATEST $step/index.h5 $step/MANIFEST.json
cd $step || exit 1
expect_exit 65 "$fourfold" ckpt repair-index .
expect_stderr 'trust-payloads'
cd "$work" || exit 1
expect_exit 0 "$fourfold" ckpt repair-index $step --trust-payloads
expect_stdout 'NOT PROVEN'
expect diff -r two/checkpoints/step-000000004 $step
rm $step/index.h5
shard=$(find $step -name 'shard-*' | sort | head -n 1)
truncate -s -1 "$shard"
expect_exit 65 "$fourfold" ckpt repair-index $step
expect_stderr "$(basename "$shard") has"
expect_exit 78 "$fourfold" ckpt repair-index no/such

# A new run from the weights of another.
expect_exit 0 "$fourfold" train run.toml --set log.dir=tuned --resume-weights-only run/checkpoints/step-000000004 \
  --set optim.name=sgd --set train.steps=2
expect_stderr 'begins with the weights of run/checkpoints/step-000000004 (step 4'

# On tokens of another tokenizer each would begin with the weights of another.
expect python3 -c 'import json, sys
made = json.load(open(sys.argv[1]))
letters = sorted(text for text in made["model"]["vocab"] if len(text) == 1)
made["model"].update(vocab={text: number for number, text in enumerate(letters)}, merges=[])
json.dump(made | {"added_tokens": []}, open("letters.json", "w"))' "$golden/tokenizers/gpt2.json"
expect_exit 0 "$fourfold" data prepare --output spelled --tokenizer letters.json text.txt
weights_on_others=("$fourfold" train run.toml --set log.dir=mixed --set 'data.train=["spelled"]' --set train.steps=1
  --resume-weights-only run/checkpoints/step-000000004)
expect_exit 78 "${weights_on_others[@]}"
expect_stderr 'letters.json made the tokens of data.train (256 different ones), and run/checkpoints/step-000000004 was trained on'
expect_stderr 'those of byte (257) (each token would begin with the weights of another)'
expect test ! -e mixed
expect_exit 0 "${weights_on_others[@]}" --set data.allow_mixed_tokenizers=true
expect_stderr "warning: $PWD/letters.json made the tokens of data.train"

# One flipped bit, a file that is short, one that is missing: named, each by its verb.
damaged=$(find start -name 'shard-*' | sort | head -n 1)
python3 -c 'import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(9000)
    byte = file.read(1)
    file.seek(9000)
    file.write(bytes([byte[0] ^ 4]))' "$damaged"
expect_exit 0 "$fourfold" ckpt verify start
expect_exit 65 "$fourfold" ckpt verify --deep start --json
expect python3 -c 'import json, sys
(step,) = json.load(open(sys.argv[1]))
assert not step["intact"] and "shard-00000" in step["damage"][0], step' "$output"
expect_exit 65 "$fourfold" ckpt verify --deep run/checkpoints start
expect_stdout 'start: DAMAGED'
truncate -s -1 "$damaged"
expect_exit 65 "$fourfold" ckpt verify start
expect_stdout 'bytes instead of'
rm "$damaged"
expect_exit 65 "$fourfold" ckpt info start
expect_stderr 'No such file or directory'

expectations_met
