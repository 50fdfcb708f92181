# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""What an H100 or H200 has to reach, and whether what was measured does. docs/gpu.md ("Proving a GPU") has the same figures."""

import page

# Of the copy that gpu_kernels measures in the same run: the best norms of others (cuDNN's on an H200) reach 82 to 88 %.
COPY_SHARE = 0.80
COPYING_KERNELS = {"norm kernels": ("layer_norm", "rms_norm"), "activation kernels": ("gelu", "swiglu"),
                   "classifier kernel": ("cross_entropy",), "AdamW kernel": ("adam",)}
# By 6 N + 6 L h T FLOPs of a token and the data sheet's peak. What floors.py holds for realistic on an H100 is 40.1, 51.0 and
# 61.8 %.
MFU = {"gpt2-124m": 0.40, "gpt2-1558m": 0.50, "llama-8b-layers": 0.58}
# Tokens per second of the best that torch.compile makes of the same model, which takes turns with fourfold.
TIMES_PYTORCH = 1.0
# Between the mean losses of the last steps, on a GPU in bf16 and on a CPU in f32.
LOSS_ERROR = 0.01


def kernel_bars(tiny):
    return [name + " tiny" * tiny for name in COPYING_KERNELS]


def model_bars(model):
    return [f"MFU {model}"] * (model in MFU) + [f"PyTorch {model}"]


def verdict(reached, bar):
    return "passed" if reached >= bar else "FAILED"


def skipped(names, why):
    return {name: ("skipped", why) for name in names}


def check_kernels(record):
    """record: as gpu_kernels --json writes it. A verdict and a note of each bar, by the slowest kernel and shape."""
    found = {}
    for name, parts in COPYING_KERNELS.items():
        shares = {f"{one['kernel']} {one['shape']}": one["share"] for one in record["kernels"]
                  if one["roof"] == "copy" and any(part in one["kernel"] for part in parts)}
        if not shares:
            found |= skipped([name], "not measured")
            continue
        slow = sorted((share, what) for what, share in shares.items() if verdict(share, COPY_SHARE) != "passed")
        shown = [(min(shares.values()), min(shares, key=shares.get))] if not slow else slow
        text = ", ".join(f"{what} {page.percent(share)}" for share, what in shown[:4]) + ", ..." * (len(shown) > 4)
        found[name] = ("FAILED" if slow else "passed",
                       f"{len(shares) - len(slow)} of {len(shares)} at {100 * COPY_SHARE:.0f} % of a copy or more, slowest: {text}")
    return found


def check_steps(model, record):
    """record: as compare.py --json writes it of one model. By the slowest of the token streams that it was trained on."""
    parts = [part for result in record["models"] for part in result["runs"] if "ours_tokens_per_s" in part]
    if not parts:
        return skipped(model_bars(model), "gpu_step gave no figure")
    found = {}
    if model in MFU:
        found[f"MFU {model}"] = check_mfu(parts, MFU[model])
    ratios = [(part["ratio"], part["data"]) for part in parts if "ratio" in part]
    if ratios:
        ratio, data = min(ratios)
        reached, note = verdict(ratio, TIMES_PYTORCH), f"{ratio:.3f} times PyTorch on {data} tokens (bar {TIMES_PYTORCH:.2f})"
        left_out = [" ".join(one["way"]) for result in record["models"] for one in result["tries"] if one.get("left_out")]
        if reached == "passed" and left_out:  # one of them may be faster
            reached = "skipped"
            note += f"; there was no time for {', '.join(left_out)}: run it again into the same folder"
        found[f"PyTorch {model}"] = (reached, note)
    else:
        found |= skipped([f"PyTorch {model}"], no_peer(record))
    return found


def check_mfu(parts, bar):
    shares = [(page.mfu(part), part["data"]) for part in parts]
    if any(share is None for share, _ in shares):
        return "skipped", f"no MFU: the peak of {page.good(parts[0]['ours'])[0]['device'].split(';')[0]} is not known"
    share, data = min(shares)
    return verdict(share, bar), f"{page.percent(share)} on {data} tokens (bar {100 * bar:.0f} %)"


def no_peer(record):
    tried = [one for result in record["models"] for runs in (result["tries"], *(part["peer"] for part in result["runs"]))
             for one in runs]
    if not tried:
        return "no PyTorch was measured (--peer-python names a Python that has it)"
    errors = [one["error"] for one in tried if "error" in one]
    return f"PyTorch failed: {errors[-1]}"[:160] if errors else "no time was left for PyTorch"
