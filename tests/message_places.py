# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Where messages.py finds messages beside the throws whose text stands in them."""
import re

CODES = {
    "finished": 0, "differs": 1, "usage": 64, "data_corrupt": 65, "internal": 70, "cannot_write": 73,
    "stopped_saved": 75, "config": 78, "node_fault": 85, "hang": 86, "no_progress": 93}
# What is thrown: the argument that is its message, the one that is its code, and the codes where none is given.
THROWN = {"UserError": (1, 0, ()), "SystemError": (1, 0, ()), "Error": (1, 0, ()), "NoRoom": (0, None, (73,)),
          "MaybeSubmitted": (0, None, (78,))}
DEFINED_IN = {"src/base/include/fourfold/base/error.hpp", "src/base/include/fourfold/base/contract.hpp",
              "io/include/fourfold/io/atomic_file.hpp", "apps/submit/send.hpp"}

# Functions that are given a message and keep it: (name, file): (number of the message, codes, what they add).
KEEPERS = {
    ("object", "src/train/inputs/data_facts.cpp"): (0, (78,), " ({}); {}"),
    ("emplace_back", "src/runfile/run_config.toml.cpp"): (1, (78,), ""),
    ("unknown", "src/runfile/run_config.toml.cpp"): (1, (78,), ""),
}

# Functions that return messages, or parts of them: {file: {function: codes}}. A code that stands beside the text counts
# instead.
RETURNED = {
    "src/base/regular_file.cpp": {
        "refused": (65, 73, 78), "not_opened": (65, 73, 78), "read_regular_file": (65, 73, 78)},
    "src/base/include/fourfold/base/regular_file.hpp": {"": (78,)},
    "src/base/error.cpp": {"out_of_memory_message": (78,), "no_thread_message": (78,)},
    "src/comm/nccl/check.nccl.cpp": {"nccl_failure": (70, 78, 85)},
    "src/comm/watchdog/launch.cpp": {"singleton_problem": (78,)},
    "src/comm/watchdog/startup_analysis.cpp": {"reason_of_all": (86,), "reason_of": (86,)},
    "src/comm/watchdog/startup_watchdog.cpp": {"error_text": (86,)},
    "src/comm/watchdog/watchdog.cpp": {"execute": (86,)},
    "src/device/cuda_check.cuda.cpp": {"out_of_pinned_memory": (78,)},
    "src/runfile/run_config.toml.cpp": {"unknown": (78,)},
    "src/runfile/run_file_message.cpp": {"unknown_key": (78,), "unknown_table": (78,), "key_outside_table": (78,)},
    "src/runfile/run_file_value.toml.cpp": {"wrong_value": (78,)},
    "io/disk/file.cpp": {"why_not_replaceable": (73,)},
    "apps/program/run.cpp": {"explain": (), "end_without_mapped_file": (85,), "end_uncaught": (78,)},
    "apps/program/wrong_command_line.cpp": {
        "option_text": (64,), "argument_text": (64,), "unknown_verb_text": (64,), "unknown_part_text": (64,)},
    "apps/program/command_line.cpp": {"own_words": (64,)},
}
# In these functions: pieces that are put into a message, or that something is compared with.
FRAGMENT = re.compile(
    r"; (did|there)|\.\.\. | of \{\}|At Most|SLURM_|start with|\{\} wait|\{\}$|fourfold: error: \{\}\n$")

# Throws that pass on what is listed where it is made: {file: begins of their tokens}.
PASSED_ON = {
    "apps/ckpt/reshard.cpp": ("format_message ( --to {}: {}",),
    "apps/plan/main.cpp": ("fourfold :: format_message ( {} [here",),  # and says what options stand for the keys
    "apps/plan/run_plan.cpp": ("runfile :: located ( error . what ( )",),
    "apps/program/checkpoint_run_file.cpp": ("said . error",),  # by the program that it has started
    "apps/verify/arguments.cpp": ("format_message ( --mesh {}: {}",),
    "io/disk/line_reader.cpp": ("format_message ( {}: {} , path . string ( ) , file . defect",),  # of regular_file.hpp
    "io/external_formats/stored_array.cpp": ("format_message ( {}: {} , path . string ( ) , * defect",),  # the same
    "io/step/step_folder.cpp": ("failure -> message",),
    "src/comm/communicator/fail_together.cpp": ("text",),
    "src/comm/nccl/calls.nccl.cpp": ("text",),
    "src/comm/nccl/check.nccl.cpp": ("nccl_failure (",),
    "src/comm/runtime/mpi_runtime.mpi.cpp": ("* problem",),
    "src/model_conversion/hf_config_read.json.cpp": ("format_message ( {}: {} , file_name , error . what ( )",),
    "src/runfile/run_config.toml.cpp": (
        "text", "effective . origins", "wrong_value", "unknown_", "dot ==", "inner !=", "is_saved_",
        "format_message ( {} {} , key"),
    "src/runfile/run_file_message.hpp": ("const Origins & origins",),
    "src/train/inputs/data_facts.cpp": ("format_message ( {} ({}); {}, or {}",),
    "src/train/inputs/resolved_run.cpp": ("runfile :: located ( error . what ( )", "message"),
    "src/train/plan/elastic_mesh.cpp": ("runfile :: located ( error . what ( )",),
}

# Throws whose words are a library's, or are put together elsewhere: (file, begin of their tokens): what to list, and
# its codes.
WORDED_ELSEWHERE = {
    ("src/runfile/run_config.toml.cpp", "format_message ( {}:{}:{}: {}"):
        ("{}:{}:{}: what the TOML parser says", (78,)),
    ("src/base/include/fourfold/base/json_text.hpp", "printable ( file_name )"):
        ("{}: line {}, byte {}: is not JSON from here on; {}", (65,)),
    ("src/device/cuda_check.cuda.cpp", "of_host ? out"):
        ("{}: {} of {} bytes ({} GiB) failed ({} of {} GiB are free); {}", (78,)),
    ("kernels/backend/cuda/kokkos_errors.cuda.cpp", "fmt :: format ( {}: {} failed: {}"):
        ("{}: {} failed: what Kokkos says", (70,)),
}
