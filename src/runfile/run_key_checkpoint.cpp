// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <algorithm>
#include <string>

namespace fourfold::runfile {
namespace {

RunField member(auto path) {
  return field(&RunConfig::checkpoint, path);
}

bool is_file_count(const std::string& text) {
  return !text.empty() && text.size() <= 6 && text.front() != '0' &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

RunField files_field() {
  RunField result = field(&RunConfig::checkpoint, &CheckpointConfig::files);
  result.choices = {"rank", "node"};
  result.form = "N";
  result.form_condition = "with N from 1 to 999999";
  result.has_form = is_file_count;
  result.takes_integers = true;
  return result;
}

}  // namespace

std::vector<RunKey> checkpoint_keys() {
  const Relevance deletes{"checkpoint.keep_last > 0",
                          [](const RunConfig& config) { return config.checkpoint.keep_last > 0; }};
  const Relevance is_async{"checkpoint.async = true",
                           [](const RunConfig& config) { return config.checkpoint.async; }};
  const Relevance is_node_local{"checkpoint.node_local_dir", [](const RunConfig& config) {
                                  return !config.checkpoint.node_local_dir.empty();
                                }};
  return {
      // When a checkpoint is saved, and which stay.
      {.name = "dir",
       .field = member(&CheckpointConfig::dir),
       .path_after = "",
       .meaning = "Directory of the checkpoints.",
       .automatic = "log.dir + \"/checkpoints\""},
      {.name = "every_steps",
       .field = member(&CheckpointConfig::every_steps),
       .unit = "updates",
       .meaning = "Updates between checkpoints; 0: only when the run ends.",
       .minimum = 0},
      {.name = "margin_s",
       .field = member(&CheckpointConfig::margin_s),
       .unit = "seconds",
       .meaning = "Left to the end of the job when the last save is over, if that takes as long as "
                  "one and a half of the longest of the last eight: for the end of the processes, "
                  "and for what comes in between.",
       .minimum = 0,
       .maximum = 86400},
      {.name = "keep_last",
       .field = member(&CheckpointConfig::keep_last),
       .unit = "checkpoints",
       .meaning =
           "Older checkpoints are deleted once so many newer ones are complete; 0: keep all.",
       .minimum = 0,
       .maximum = 1000000},
      {.name = "keep_every_steps",
       .field = member(&CheckpointConfig::keep_every_steps),
       .unit = "updates",
       .meaning =
           "Checkpoints of steps that are multiples of this are kept for good; 0: none for that.",
       .minimum = 0,
       .relevance = deletes},
      {.name = "keep_best",
       .field = member(&CheckpointConfig::keep_best),
       .unit = "checkpoints",
       .meaning = "So many checkpoints of the lowest validation loss are kept, of steps that were "
                  "evaluated when they were saved, on the validation data of the newest of them; "
                  "0: none for that.",
       .minimum = 0,
       .maximum = 1000000,
       .relevance = {"checkpoint.keep_last > 0 and data.validation",
                     [](const RunConfig& config) {
                       return config.checkpoint.keep_last > 0 && !config.data.validation.empty();
                     }}},
      {.name = "files",
       .field = files_field(),
       .meaning = "Payload files of a checkpoint: one per rank that writes (fast up to some "
                  "thousand ranks), one per node, or N that neighbouring ranks share."},
      {.name = "async",
       .field = member(&CheckpointConfig::async),
       .meaning = "Training stands still only while each rank copies what it writes, in host "
                  "memory (as much as its payload file has); a thread writes the copy."},
      {.name = "async_copies",
       .field = member(&CheckpointConfig::async_copies),
       .meaning = "Copies that a rank has memory for. With 2 the next checkpoint is copied while "
                  "one is still being written, and only the one after that finds none free.",
       .minimum = 1,
       .maximum = 2,
       .relevance = is_async},
      {.name = "when_busy",
       .field = named_field(&RunConfig::checkpoint, &CheckpointConfig::when_busy),
       .meaning = "When a checkpoint is due and no copy is free, because checkpoints are still "
                  "being written: wait for the oldest, or leave the new one out. The last one of a "
                  "run is never left out.",
       .relevance = is_async},
      {.name = "node_local_dir",
       .field = member(&CheckpointConfig::node_local_dir),
       .path_after = "",
       .meaning = "Folder of each node (on its own disk, or in /dev/shm) for steps between "
                  "checkpoints; a restart takes the newest if it is newer and whole.",
       .automatic = "no such steps"},
      {.name = "node_local_every_steps",
       .field = member(&CheckpointConfig::node_local_every_steps),
       .unit = "updates",
       .meaning = "Updates between steps in node_local_dir; one that is due in dir as well goes "
                  "there alone.",
       .minimum = 0,
       .relevance = is_node_local},
      {.name = "node_local_keep_last",
       .field = member(&CheckpointConfig::node_local_keep_last),
       .unit = "steps",
       .meaning = "So many steps stay in node_local_dir; while one is written there is one more.",
       .minimum = 1,
       .maximum = 1000000,
       .relevance = is_node_local},
      {.name = "node_local_partner",
       .field = member(&CheckpointConfig::node_local_partner),
       .meaning = "Each node also keeps what the node before it has in node_local_dir, so that no "
                  "single node is missed; twice the room.",
       .relevance = is_node_local},
      {.name = "resume",
       .field = member(&CheckpointConfig::resume),
       .path_after = "",
       .meaning = "\"auto\": go on from the newest good checkpoint in dir, or start anew if there "
                  "is none; \"never\": start anew, and refuse a directory that has checkpoints; "
                  "else the step to go on from, or a folder of steps or a run, of which it is the "
                  "newest good one."},
      {.name = "share_reads_from",
       .field = member(&CheckpointConfig::share_reads_from),
       .unit = "ranks",
       .meaning = "So many ranks that go on from the same part of a checkpoint, or more, share the "
                  "reading: each reads a piece of it and sends it to the others, so that the file "
                  "system gives it once. 0: each reads all it needs.",
       .minimum = 0,
       .maximum = 1000000000},
      {.name = "weights_only",
       .field = member(&CheckpointConfig::weights_only),
       .meaning = "Of the checkpoint that resume names only the weights are taken, for a new run "
                  "from step 0 with whatever data, optimizer and seed; a later start goes on from "
                  "the run's own checkpoints. --resume-weights-only=PATH is short for both."},
  };
}

}  // namespace fourfold::runfile
