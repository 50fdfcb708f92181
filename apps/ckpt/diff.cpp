// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace fourfold::ckpt {
namespace {

using Kind = io::TensorDifference::Kind;

void print(const io::TensorDifference& tensor) {
  switch (tensor.kind) {
    case Kind::only_in_a:
      program::print("{}  only in A\n", tensor.id.str());
      return;
    case Kind::only_in_b:
      program::print("{}  only in B\n", tensor.id.str());
      return;
    case Kind::other_type:
      program::print("{}  {}\n", tensor.id.str(), tensor.detail);
      return;
    case Kind::other_values:
      break;
  }
  if (tensor.different == 0) {
    program::print("{}  other values\n", tensor.id.str());
    return;
  }
  program::print("{}  {} of {} elements differ, by at most {:.6g}, rms {:.6g}\n", tensor.id.str(),
                 tensor.different, tensor.elements, tensor.max_abs, tensor.rms);
  for (const io::ElementPair& pair : tensor.largest) {
    program::print("  [{}]  {:.9g} and {:.9g}\n", fmt::join(pair.index, ", "), pair.a, pair.b);
  }
}

/// The tensors of one kind of state: in one line where these are all alike.
void print(io::TensorState state, const std::vector<io::TensorDifference>& tensors,
           std::int64_t held) {
  const auto are_all = [&](Kind kind) {
    return std::ranges::all_of(tensors, [&](const auto& tensor) { return tensor.kind == kind; });
  };
  if (tensors.empty()) {
    program::print("{}  equal, bit for bit ({} tensors)\n", state.name(), held);
  } else if (tensors.size() > 1 && (are_all(Kind::only_in_a) || are_all(Kind::only_in_b))) {
    program::print("{}  only in {} ({} tensors)\n", state.name(),
                   are_all(Kind::only_in_a) ? "A" : "B", tensors.size());
  } else {
    for (const io::TensorDifference& tensor : tensors) {
      print(tensor);
    }
  }
}

void print(const io::CheckpointDifferences& differences, const io::Checkpoint& a,
           const io::Checkpoint& b) {
  program::print("A  {} (mesh {})\nB  {} (mesh {})\n", a.path().string(), a.mesh().str(),
                 b.path().string(), b.mesh().str());
  if (differences.none()) {
    program::print("equal: the same state in {} tensors, bit for bit\n", a.tensors().size());
    return;
  }
  for (const std::string& line : differences.scalars) {
    program::print("{}\n", line);
  }
  std::map<io::TensorState, std::int64_t> held;
  for (const io::Checkpoint* const checkpoint : {&a, &b}) {
    std::map<io::TensorState, std::int64_t> held_here;
    for (const io::StoredTensor& tensor : checkpoint->tensors()) {
      ++held_here[tensor.id.state];
    }
    for (const auto& [state, count] : held_here) {
      held[state] = std::max(held[state], count);
    }
  }
  std::map<io::TensorState, std::vector<io::TensorDifference>> by_state;
  for (const io::TensorDifference& tensor : differences.tensors) {
    by_state[tensor.id.state].push_back(tensor);
  }
  for (const auto& [state, count] : held) {
    print(state, by_state[state], count);
  }
  program::print("{} tensors differ\n", differences.tensors.size());
}

}  // namespace

ExitCode diff(const Request& request) {
  program::Progress progress(request.progress, "compared");
  const io::Checkpoint a = open(request.checkpoint);
  const io::Checkpoint b = open(request.other_checkpoint);
  const std::size_t largest = request.largest;
  const io::CheckpointDifferences differences =
      io::compare(a, b,
                  {.elements = !request.digests_only,
                   .largest = largest,
                   .memory_bytes = request.memory_bytes,
                   .progress = [&](std::int64_t done_bytes, std::int64_t total_bytes) {
                     progress.show(done_bytes, total_bytes);
                   }});
  progress.finish();
  if (request.json) {
    program::print_text(diff_json(differences) + "\n");
  } else {
    print(differences, a, b);
  }
  return differences.none() ? ExitCode::finished : ExitCode::differs;
}

}  // namespace fourfold::ckpt
