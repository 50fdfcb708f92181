// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/replica_sums.hpp>
#include <fourfold/parallel/tensor_cut.hpp>

#include <algorithm>
#include <numeric>

namespace fourfold::parallel {
namespace {

std::vector<int> members(Range holders) {
  std::vector<int> ranks(holders.count);
  std::iota(ranks.begin(), ranks.end(), static_cast<int>(holders.begin));
  return ranks;
}

}  // namespace

ReplicaSums::ReplicaSums(comm::Communicator& tp, const model::Parameters& parameters,
                         bool sequence_parallel) {
  for (const model::Parameter& parameter : parameters) {
    const TensorShard shard = tensor_shard(parameter.spec, tp.size(), tp.rank());
    if (!gradient_is_partial(parameter.spec, shard, sequence_parallel)) {
      continue;
    }
    comm::Communicator* holders = &tp;
    if (shard.holders.count < tp.size()) {  // only key/value heads, all by the same ranks
      if (!sharers_) {
        sharers_ =
            std::make_unique<RecordedCommunicator>(tp.subgroup(members(shard.holders), "tp.kv"));
      }
      holders = sharers_.get();
    }
    if (parameter.spec.is_vector()) {
      addends_.push_back({parameter.spec.unit, false, holders, parameter.gradient});
    } else {
      add_matrix(parameters, parameter.flat, *holders);
    }
  }
}

void ReplicaSums::add_matrix(const model::Parameters& parameters, Range flat,
                             comm::Communicator& holders) {
  for (const model::Segment& segment : parameters.layout().segments) {
    const Range part = intersection(segment.flat, flat);
    if (part.count > 0) {
      addends_.push_back({segment.part(), true, &holders, parameters.gradient_memory().at(part)});
    }
  }
}

std::vector<comm::Communicator*> ReplicaSums::holders() const {
  std::vector<comm::Communicator*> distinct;
  for (const Addend& addend : addends_) {
    if (std::ranges::find(distinct, addend.holders) == distinct.end()) {
      distinct.push_back(addend.holders);
    }
  }
  return distinct;
}

void ReplicaSums::record_into(CollectiveRecorder* recorder) noexcept {
  if (sharers_) {
    sharers_->record_into(recorder);
  }
}

template <class Belongs>
void ReplicaSums::sum(device::StreamRef stream, const Belongs& belongs) {
  for (const Addend& addend : addends_) {
    if (belongs(addend)) {
      addend.holders->all_reduce(addend.gradient, comm::ReduceOp::sum, stream).wait(stream);
    }
  }
}

void ReplicaSums::sum_matrices(model::WeightGroup part, device::StreamRef stream) {
  sum(stream, [&](const Addend& addend) { return addend.matrix && addend.part == part; });
}

void ReplicaSums::sum_matrices_of_unit(int unit, device::StreamRef stream) {
  sum(stream, [&](const Addend& addend) { return addend.matrix && addend.part.unit == unit; });
}

void ReplicaSums::sum_vectors(int unit, device::StreamRef stream) {
  sum(stream, [&](const Addend& addend) { return !addend.matrix && addend.part == unit; });
}

std::vector<Range> counted_once(const model::Parameters& parameters, int tp, int rank) {
  std::vector<const model::Parameter*> in_memory;
  for (const model::Parameter& parameter : parameters) {
    in_memory.push_back(&parameter);
  }
  std::ranges::sort(in_memory, {}, [](const model::Parameter* p) { return p->flat.begin; });
  std::vector<Range> merged;
  bool goes_on = false;
  for (const model::Parameter* parameter : in_memory) {
    const bool second_copy = parameter->spec.is_token_embedding() && parameter->spec.unit != 0;
    const bool counts =
        !second_copy && tensor_shard(parameter->spec, tp, rank).holders.begin == rank;
    if (counts && goes_on) {
      merged.back().count = parameter->flat.end() - merged.back().begin;
    } else if (counts) {
      merged.push_back(parameter->flat);
    }
    goes_on = counts;
  }
  return merged;
}

}  // namespace fourfold::parallel
