// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "offloaded_update.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/parallel/zero.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace fourfold::train {

using device::MemoryUse;
using parallel::ParameterShard;

namespace {

constexpr std::int64_t alignment = parallel::offloaded_alignment_elements;
static_assert(alignment * sizeof(float) == io::ScratchFile::page_bytes);

std::int64_t whole_pages(std::int64_t elements) {
  return (elements + alignment - 1) / alignment * alignment;
}

std::size_t count(const States& states) {
  return std::ranges::count_if(states, &TensorView::operator bool);
}

std::size_t most_states(const std::vector<States>& runs) {
  std::size_t most = 0;
  for (const States& states : runs) {
    most = std::max(most, count(states));
  }
  return most;
}

/// Tiles of `arrays` kinds of numbers, a few of them in flight, fill the buffer.
std::int64_t elements_per_tile(double buffer_mb, std::size_t arrays, const ParameterShard& share) {
  const double of_an_element =
      static_cast<double>(sizeof(float) * arrays * io::TileStream::usual_slots);
  const auto fitting = static_cast<std::int64_t>(buffer_mb * 1e6 / of_an_element);
  std::int64_t largest = 1;
  for (const ParameterShard::Run& run : share.runs()) {
    largest = std::max(largest, run.flat.count);
  }
  return std::min(std::max(alignment, fitting / alignment * alignment), whole_pages(largest));
}

}  // namespace

OffloadedUpdate::OffloadedUpdate(StateTier& tier, double buffer_mb, const ParameterShard& share,
                                 std::vector<States> states, std::span<const std::size_t> order)
    : tier_(&tier),
      share_(&share),
      states_(std::move(states)),
      tile_elements_(elements_per_tile(buffer_mb, most_states(states_) + 1, share)) {
  for (Staging& staging : staging_) {
    staging.gradient = tier.host().take(MemoryUse::optimizer, DType::f32, Shape{tile_elements_});
    staging.weight =
        tier.host().take(MemoryUse::optimizer, share.compute_dtype(), Shape{tile_elements_});
  }
  gradient_scale_ = tier.host().take(MemoryUse::optimizer, DType::f32, Shape{1});
  if (tier.tier() == runfile::StateTier::nvme) {
    open_stream(order);
  }
}

template <class Body>
void OffloadedUpdate::for_each_part(const ParameterShard::Run& run, const Body& body) const {
  for (std::int64_t begin = 0; begin < run.flat.count; begin += tile_elements_) {
    body(Range{begin, std::min(tile_elements_, run.flat.count - begin)});
  }
}

void OffloadedUpdate::open_stream(std::span<const std::size_t> order) {
  std::vector<io::TileStream::Tile> tiles;
  for (const std::size_t segment : order) {
    const ParameterShard::Run* const run = share_->find(segment);
    if (run == nullptr) {
      continue;
    }
    std::vector<TensorView> arrays{run->master};
    std::ranges::copy_if(states_of(*run), std::back_inserter(arrays), &TensorView::operator bool);
    for_each_part(*run, [&](Range part) {
      io::TileStream::Tile& tile = tiles.emplace_back();
      for (const TensorView& array : arrays) {
        const TensorView state = array.rows(part.begin, part.count);
        tile.push_back({tier_->file() == nullptr ? 0 : tier_->file()->offset_of(state.data()),
                        whole_pages(part.count) * sizeof(float)});
      }
    });
  }
  const std::int64_t bytes = io::TileStream::memory_bytes(tiles, io::TileStream::usual_slots);
  buffer_ = tier_->host().take(MemoryUse::optimizer, DType::u8, Shape{bytes});
  if (tier_->file() != nullptr && !tiles.empty()) {
    tiles_ = std::make_unique<io::TileStream>(
        *tier_->file(), std::move(tiles),
        std::span(static_cast<std::byte*>(buffer_.data()), buffer_.bytes()));
  }
}

void OffloadedUpdate::begin_step() {
  if (tiles_) {
    tiles_->read_ahead();
  }
}

Elements OffloadedUpdate::tile_of(const ParameterShard::Run& run, Range part,
                                  const Staging& staging) const {
  Elements tile{.state = {run.state.begin + part.begin, part.count},
                .master = run.master.rows(part.begin, part.count),
                .states = {},
                .gradient = staging.gradient.rows(0, part.count),
                .weight = staging.weight.rows(0, part.count),
                .decay = run.decay,
                .place = kernels::MemorySpace::host};
  const States& states = states_of(run);
  for (std::size_t i = 0; i < count(states); ++i) {
    tile.states[i] = states[i].rows(part.begin, part.count);
  }
  return tile;
}

const States& OffloadedUpdate::states_of(const ParameterShard::Run& run) const {
  return states_[&run - share_->runs().data()];
}

void OffloadedUpdate::update(const ParameterShard::Run& run, const float* gradient_scale,
                             const Update& work, device::StreamRef stream) {
  produced_.record(stream);
  produced_.wait(to_host_);
  if (gradient_scale != nullptr) {
    device::copy(gradient_scale_.data(), gradient_scale, sizeof(float), to_host_);
  }
  const float* const scale = gradient_scale != nullptr ? gradient_scale_.as<float>() : nullptr;
  for_each_part(run, [&](Range part) {
    Staging& staging = next_staging();
    const Elements tile = tile_of(run, part, staging);
    staging.updated.wait(to_host_);  // the tile before has used this gradient
    const TensorView gradient = run.gradient.rows(part.begin, part.count);
    device::copy(staging.gradient.data(), gradient.data(), gradient.bytes(), to_host_);
    staging.arrived.record(to_host_);
    staging.arrived.wait(host_);
    staging.sent.wait(host_);  // the tile before has given this weight away
    device::run_on_host([this, tile, scale, work] { run_tile(tile, scale, work); }, host_);
    staging.updated.record(host_);
    send_weight(run, part, staging);
  });
  produced_.record(to_device_);
  produced_.wait(stream);
}

/// In place, or in the tile that the disk has brought. A step whose gradients overflowed leaves the
/// state as it is, and the weight what it was.
void OffloadedUpdate::run_tile(Elements tile, const float* gradient_scale, const Update& work) {
  if (tiles_) {
    const std::int64_t elements = tile.master.elements();
    std::byte* memory = tiles_->next();
    const auto streamed = [&](TensorView& state) {
      state = TensorView(memory, DType::f32, Shape{elements});
      memory += whole_pages(elements) * sizeof(float);
    };
    streamed(tile.master);
    for (std::size_t i = 0, states = count(tile.states); i < states; ++i) {
      streamed(tile.states[i]);
    }
  }
  if (gradient_scale == nullptr || std::isfinite(*gradient_scale)) {
    work.update(tile, gradient_scale);
  } else {
    work.keep(tile);
  }
  if (tiles_) {
    tiles_->write_back();
  }
}

void OffloadedUpdate::send_weight(const ParameterShard::Run& run, Range part, Staging& staging) {
  staging.updated.wait(to_device_);
  const TensorView weight = run.weight.rows(part.begin, part.count);
  device::copy(weight.data(), staging.weight.data(), weight.bytes(), to_device_);
  staging.sent.record(to_device_);
}

void OffloadedUpdate::weights_from_masters(const ParameterShard::Run& run, const Work& round,
                                           device::StreamRef stream) {
  produced_.record(stream);
  produced_.wait(host_);
  for_each_part(run, [&](Range part) {
    Staging& staging = next_staging();
    const Elements tile = tile_of(run, part, staging);
    staging.sent.wait(host_);
    device::run_on_host(
        [this, tile, round] {
          round(tile);
          tier_->release(tile.master.data(), tile.master.bytes());
        },
        host_);
    staging.updated.record(host_);
    send_weight(run, part, staging);
  });
  produced_.record(to_device_);
  produced_.wait(stream);
}

void OffloadedUpdate::synchronize() {
  host_.ref().synchronize();
  if (tiles_) {
    tiles_->synchronize();
  }
}

}  // namespace fourfold::train
