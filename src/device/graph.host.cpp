// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Work on a host stream is done when it is enqueued: there is nothing to record.
#include <fourfold/base/contract.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/graph.hpp>

#include <utility>

namespace fourfold::device {

struct Graph::Impl {};

Graph::Graph() = default;
Graph::Graph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Graph Graph::capture(StreamRef /*stream*/, const std::function<void()>& /*enqueue*/) {
  FOURFOLD_EXPECT(has_own_memory);
  return {};
}

void Graph::launch(StreamRef /*stream*/) const {
  FOURFOLD_EXPECT(impl_ != nullptr);
}

}  // namespace fourfold::device
