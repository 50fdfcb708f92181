// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/checkpoint_load.hpp>
#include <fourfold/io/save_request.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/train/state_layouts.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fourfold::benchmarks {

/// The run file of a llama whose masters and two moments are about so large.
runfile::RunConfig run_of(double state_gib);

/// How a state lies on a mesh.
struct CutState {
  comm::MeshShape shape;
  std::vector<io::TensorLayout> layouts;
};

/// Of that run, on "dp=2,zero=1".
CutState cut_for(const runfile::RunConfig& config, const std::string& mesh);

/// One rank's share of a state, in memory that has been touched.
class HeldState {
 public:
  /// `filled`: with numbers, of no pattern that a disk could make less of.
  HeldState(const CutState& target, int rank, bool filled);
  HeldState(const HeldState&) = delete;
  HeldState& operator=(const HeldState&) = delete;

  std::span<const io::Piece> pieces() const { return pieces_; }
  std::span<const io::WantedBox> wanted() const { return wanted_; }
  /// The memory of all boxes.
  std::vector<std::span<std::byte>> spans() const;
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.size()); }

 private:
  std::vector<std::byte> memory_;
  std::vector<io::Piece> pieces_;
  std::vector<io::WantedBox> wanted_;
};

}  // namespace fourfold::benchmarks
