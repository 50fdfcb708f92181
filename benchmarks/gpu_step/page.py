# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Pages of Markdown of what was measured on a GPU."""


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def thousands(tokens_per_s):
    return f"{tokens_per_s / 1e3:.1f} k"


def percent(share):
    return "" if share is None else f"{100 * share:.1f} %"


def good(runs):
    return [one for one in runs if "error" not in one]


def mfu(part):
    """By 6 N + 6 L h T FLOPs of a token, of what gpu_step ran well; none where the GPU's peak is not known."""
    one = good(part["ours"])[0]
    peak = one.get("peak_tflop_per_s")
    return part["ours_tokens_per_s"] * one["flop_per_token"] / peak * 1e-12 if peak else None


def one_line(model, part):
    ours = f"{part['ours_tokens_per_s']:.0f} tokens/s" if "ours_tokens_per_s" in part else "failed"
    ratio = f", {part['ratio']:.2f} times PyTorch" if "ratio" in part else ""
    return f"{model}, {part['data']} tokens: {ours}{ratio}"


def step_row(result, part):
    ours = good(part["ours"])
    if not ours:
        return [result["model"], part["data"], "failed: " + part["ours"][0]["error"] if part["ours"] else "no time", *[""] * 8]
    one, tokens_per_s, floors = ours[0], part["ours_tokens_per_s"], result["floors"]
    peak = one.get("peak_tflop_per_s")
    share_12 = tokens_per_s * floors["flop_per_token_12"] / peak * 1e-12 if peak else None
    peer = part.get("peer_tokens_per_s")
    return [result["model"], part["data"], f"{one['micro_batch']} x {one['tokens']}, {one['batch'] // one['micro_batch']} times",
            thousands(tokens_per_s), percent(mfu(part)), percent(share_12), f"{one['memory']['used_bytes'] / 2**30:.1f} GiB",
            thousands(peer) if peer else "", f"{part['ratio']:.2f}" if peer else "",
            *(f"{thousands(floors[name]['tokens_per_s'])}, {tokens_per_s / floors[name]['tokens_per_s']:.2f}"
              for name in ("optimistic", "realistic"))]


def phase_row(result):
    ours = good(result["runs"][0]["ours"])
    if not ours or "phases" not in ours[0]:
        return None
    return [result["model"], *(f"{1e3 * ours[0]['phases'][f'{name}_s']:.2f}"
                               for name in ("load", "forward", "backward", "reduce", "update"))]


def watched_rows(result):
    for part in result["runs"]:
        for who, label in (("ours", "fourfold"), ("peer", "PyTorch")):
            for turn, one in enumerate(good(part[who])):
                seen = ", ".join(f"{value['median']:.0f} ({value['highest']:.0f}) {unit}" for unit, value in one["watched"].items())
                yield [result["model"], part["data"], f"{label} {turn + 1}", thousands(one["median_tokens_per_s"]), seen]


def try_rows(result):
    for one in result["tries"]:
        yield [result["model"], *one["way"], one["error"].replace("|", "/") if "error" in one
               else f"{thousands(one['median_tokens_per_s'])} in micro-batches of {one['micro_batch']}"]


def steps_page(record):
    """record: as compare.py writes it."""
    results = record["models"]
    runs = [one for result in results for part in result["runs"] for one in good(part["ours"])]
    peers = [one["peer"] for result in results for part in result["runs"] for one in good(part["peer"])]
    text = f"# Training steps on a GPU\n\n{runs[0]['device'] if runs else 'no run went well'}"
    text += f"; beside {peers[0]}" if peers else "; no peer was measured"
    text += f".\n\n```\n{record['command']}\n```\n\n"
    text += ("Forward, backward, clipping and AdamW in bf16; tokens per second from the median step of all turns. MFU is by 6 N + "
             "6 L h T FLOPs\nof a token, and by 6 N + 12 L h T. The floors are those of `benchmarks/gpu_step/floors.py`, with the "
             "rate as a share of them.\n\n")
    text += table(["model", "tokens", "micro-batch", "tokens/s", "MFU", "MFU (12)", "memory", "PyTorch", "ratio", "optimistic floor",
                   "realistic floor"], [step_row(result, part) for result in results for part in result["runs"]])
    phases = [row for row in map(phase_row, results) if row]
    if phases:
        text += "\nMilliseconds of a step's parts, between events on its stream:\n\n"
        text += table(["model", "load", "forward", "backward", "reduce", "update"], phases)
    tries = [row for result in results for row in try_rows(result)]
    if tries:
        text += "\nPyTorch's ways, a few steps each; the best of a model took turns with fourfold:\n\n"
        text += table(["model", "precision", "torch.compile", "attention", "tokens/s"], tries)
    text += "\nThe turns, and the GPU meanwhile, median (highest):\n\n"
    text += table(["model", "tokens", "turn", "tokens/s", "GPU"], [row for result in results for row in watched_rows(result)])
    return text


def kernels_page(record):
    """record: as gpu_kernels --json writes it."""
    text = (f"# Kernels on a GPU\n\n{record['device']}. Copy {record['copy_bytes_per_s'] * 1e-9:.0f} GB/s (read and written), large "
            f"product {record['product_flop_per_s'] * 1e-12:.0f} TFLOP/s.\n\n")
    rows = []
    for one in record["kernels"]:
        rated = f"{one['bytes_per_s'] * 1e-9:.0f} GB/s" if one["roof"] == "copy" else f"{one['flop_per_s'] * 1e-12:.1f} TFLOP/s"
        rows.append([one["kernel"], one["shape"], f"{1e3 * one['median_s']:.4f}", rated, percent(one["share"])])
    return text + table(["kernel", "shape", "ms", "rate", "of its roof"], rows)
