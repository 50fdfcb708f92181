// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include <algorithm>
#include <utility>

namespace fourfold::comm {

ChunkedReduction::ChunkedReduction(Transport& transport, int tag, Plan plan)
    : transport_(transport), tag_(tag), plan_(std::move(plan)) {
  const std::int64_t element_bytes = size_in_bytes(plan_.dtype);
  const std::int64_t piece_elements =
      std::max<std::int64_t>(1, reduction_chunk_bytes / (element_bytes * transport.size()));
  piece_bytes_ = piece_elements * element_bytes;
  chunks_ = pieces_of(plan_.parts, piece_bytes_);
  for (int slot = 0; slot < slot_count; ++slot) {
    slots_[slot].chunk = slot;
    start_chunk(slot);
  }
}

/// A tag per slot and stage: slots overtake each other, chunks within a slot do not.
int ChunkedReduction::tag(int slot, Stage stage) const {
  return tag_ + 2 * slot + (stage == Stage::gathering ? 1 : 0);
}

void ChunkedReduction::start_chunk(int slot_index) {
  Slot& slot = slots_[slot_index];
  if (slot.chunk >= chunks_) {
    slot.stage = Stage::finished;
    slot.scratch = {};
    return;
  }
  slot.stage = Stage::scattering;
  if (!slot.batch) {
    slot.batch = transport_.batch();
  }
  const int size = transport_.size();
  const int rank = transport_.rank();
  const Extent own = piece(rank, slot.chunk);
  if (slot.scratch.data() == nullptr && own.bytes > 0) {
    slot.scratch = transport_.progress().scratch().take(own.bytes * (size - 1));
  }
  for (int distance = 1; distance < size; ++distance) {
    const int source = (rank - distance + size) % size;
    if (own.bytes > 0) {
      const std::int64_t place = (source < rank ? source : source - 1) * own.bytes;
      slot.batch->recv(slot.scratch.data() + place, own.bytes, source,
                       tag(slot_index, Stage::scattering));
    }
    const int peer = (rank + distance) % size;
    const Extent theirs = piece(peer, slot.chunk);
    if (theirs.bytes > 0) {
      slot.batch->send(plan_.send + theirs.begin, theirs.bytes, peer,
                       tag(slot_index, Stage::scattering));
    }
  }
}

void ChunkedReduction::reduce_chunk(Slot& slot) const {
  const int rank = transport_.rank();
  const Extent own = piece(rank, slot.chunk);
  if (own.bytes == 0) {
    return;
  }
  std::vector<const void*> inputs(transport_.size());
  for (int source = 0; source < transport_.size(); ++source) {
    inputs[source] = slot.scratch.data() + (source < rank ? source : source - 1) * own.bytes;
  }
  inputs[rank] = plan_.send + own.begin;
  reduce(plan_.dtype, plan_.op, inputs, plan_.result + (own.begin - plan_.parts[rank].begin),
         own.bytes / size_in_bytes(plan_.dtype), plan_.order);
}

/// By now this rank's pieces of the chunk have all been sent, so their places may be written to.
void ChunkedReduction::gather_chunk(int slot_index) {
  Slot& slot = slots_[slot_index];
  slot.stage = Stage::gathering;
  const int size = transport_.size();
  const int rank = transport_.rank();
  const Extent own = piece(rank, slot.chunk);
  for (int distance = 1; distance < size; ++distance) {
    const int source = (rank - distance + size) % size;
    const Extent theirs = piece(source, slot.chunk);
    if (theirs.bytes > 0) {
      slot.batch->recv(plan_.gather + theirs.begin, theirs.bytes, source,
                       tag(slot_index, Stage::gathering));
    }
    if (own.bytes > 0) {
      slot.batch->send(plan_.gather + own.begin, own.bytes, (rank + distance) % size,
                       tag(slot_index, Stage::gathering));
    }
  }
}

bool ChunkedReduction::advance_slot(int slot_index) {
  Slot& slot = slots_[slot_index];
  while (slot.stage != Stage::finished && slot.batch->done()) {
    if (slot.stage == Stage::scattering) {
      reduce_chunk(slot);
      if (plan_.gather != nullptr) {
        gather_chunk(slot_index);
        continue;
      }
    }
    slot.chunk += slot_count;
    start_chunk(slot_index);
  }
  return slot.stage == Stage::finished;
}

bool ChunkedReduction::advance() {
  bool finished = true;
  for (int slot = 0; slot < slot_count; ++slot) {
    finished = advance_slot(slot) && finished;
  }
  return finished;
}

}  // namespace fourfold::comm
