// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/parallel/shard_layout.hpp>

#include <array>
#include <cstddef>
#include <vector>

namespace fourfold::parallel {

/// Brings together the weights of which each rank of a group has updated its share.
///
/// Where the memory of matrices is whole, a segment is gathered as soon as it is updated, beside
/// what comes then, and stays. Where it is double_buffered (ZeRO-3), a part is gathered into its
/// buffer before it is needed, and stays until another takes the buffer. Vectors are always whole.
/// The gathers run on a stream of their own. Collective: all ranks make the same calls in the same
/// order.
class WeightGathering {
 public:
  /// Everything is borrowed. With one rank in the group nothing is sent.
  /// @param layout  of the share; its ranks are those of the group, or one: nothing is sharded
  WeightGathering(comm::Communicator& group, const model::Parameters& parameters,
                  const ParameterShard& share, const ShardLayout& layout);

  /// The share's weights of a segment are new, as far as `stream` can tell.
  void updated(std::size_t segment, device::StreamRef stream);

  /// As ParallelHooks: orders `stream` after the gather of the part's weights, and of the vectors.
  void acquire(model::WeightGroup part, device::StreamRef stream);
  void release(model::WeightGroup part, device::StreamRef stream);
  /// Orders `stream` after all gathers under way.
  void wait(device::StreamRef stream);
  /// The part will be needed next. Begins its gather, if its buffer is free.
  void prefetch(model::WeightGroup part);

 private:
  /// A buffer that parts take turns with.
  struct Buffer {
    model::WeightGroup part =
        model::Segment::every_unit;  ///< whose weights it has; every_unit: nobody's
    int in_use = 0;                  ///< needed() without done()
    device::Event last_read;
    std::vector<comm::Work> gathers;
  };
  Buffer* buffer_of(model::WeightGroup part);
  bool is_double_buffered(std::size_t segment) const;
  comm::Work gather(std::size_t segment);
  void begin(Buffer& buffer, model::WeightGroup part);

  comm::Communicator* group_;
  const model::Parameters* parameters_;
  const ParameterShard* share_;
  const ShardLayout* layout_;
  device::Stream communication_;
  device::Event produced_;
  std::array<Buffer, model::FlatMemory::buffers> buffers_;
  std::vector<comm::Work> works_;  ///< by segment: of whole memory
};

}  // namespace fourfold::parallel
