// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "saved_state.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/model/presets.hpp>

#include <cstring>
#include <vector>

namespace fourfold::benchmarks {
namespace {

/// What AdamW saves.
std::vector<io::TensorId> tensors_of(const model::Architecture& config) {
  std::vector<io::TensorId> tensors;
  for (const model::ParameterSpec& spec : model::parameter_table(config)) {
    for (const char* const state : {"master", "exp_avg", "exp_avg_sq"}) {
      tensors.push_back({spec.name, io::TensorState(state)});
    }
  }
  return tensors;
}

}  // namespace

runfile::RunConfig run_of(double state_gib) {
  runfile::RunConfig run;
  model::Architecture& config = run.model;
  set_family(config, model::Family::llama);
  config.layers = 8;
  config.hidden = 1024;
  config.attention.heads = config.attention.kv_heads = 16;
  config.vocab = 16000;
  config.context = 128;
  config.tie_embeddings = false;
  const double parameters = state_gib * 1073741824.0 / 12;
  const double ends = 2.0 * 16000 * 1024;
  const double attention = 8.0 * 4 * 1024 * 1024;
  config.feed_forward.width =
      static_cast<std::int64_t>((parameters - ends - attention) / (8.0 * 3 * 1024)) / 16 * 16;
  config = config.resolved();
  run.data.train = {"tokens"};
  return run;
}

CutState cut_for(const runfile::RunConfig& config, const std::string& mesh) {
  const train::ResolvedRun run = train::resolve_target(config, mesh);
  return {run.mesh, train::state_layouts(run, tensors_of(config.model))};
}

HeldState::HeldState(const CutState& target, int rank, bool filled) {
  std::size_t bytes = 0;
  const auto each = [&](const auto& visit) {
    for (const io::TensorLayout& layout : target.layouts) {
      for (const io::HeldBox& held : layout.boxes) {
        if (held.holders.contains(rank)) {
          visit(layout, held.box);
        }
      }
    }
  };
  each([&](const io::TensorLayout& layout, const Box& box) {
    bytes += static_cast<std::size_t>(box.elements()) * size_in_bytes(layout.dtype);
  });
  memory_.resize(bytes);
  for (std::size_t place = 0; filled && place + 8 <= bytes; place += 8) {
    const std::uint64_t bits = mix64(place + (static_cast<std::uint64_t>(rank) << 40));
    std::memcpy(memory_.data() + place, &bits, 8);
  }
  std::byte* data = memory_.data();
  each([&](const io::TensorLayout& layout, const Box& box) {
    const TensorView view(data, layout.dtype, box.extent);
    pieces_.push_back({layout.id, box, view});
    wanted_.push_back({layout.id, layout.shape, box, view});
    data += view.bytes();
  });
}

std::vector<std::span<std::byte>> HeldState::spans() const {
  std::vector<std::span<std::byte>> spans;
  for (const io::WantedBox& box : wanted_) {
    spans.emplace_back(static_cast<std::byte*>(box.data.data()), box.data.bytes());
  }
  return spans;
}

}  // namespace fourfold::benchmarks
