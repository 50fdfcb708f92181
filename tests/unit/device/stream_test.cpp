// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/stream.hpp>

#include <catch2/catch_test_macros.hpp>

#include <type_traits>
#include <utility>

using fourfold::device::Event;
using fourfold::device::Stream;

static_assert(!std::is_copy_constructible_v<Stream> && !std::is_copy_constructible_v<Event>);

TEST_CASE("work after an event sees what the event marks", "[stream]") {
  const Stream producer;
  const Stream consumer;
  const fourfold::device::Tensor source(fourfold::DType::f32, {1});
  const fourfold::device::Tensor middle(fourfold::DType::f32, {1});
  const fourfold::device::Tensor target(fourfold::DType::f32, {1});
  source.as<float>()[0] = 1.5F;
  fourfold::device::copy(middle.view().data(), source.view().data(), 4, producer);
  Event copied;
  copied.wait(consumer);  // never recorded: no wait
  copied.record(producer);
  const Event moved = std::move(copied);
  moved.wait(consumer);
  fourfold::device::copy(target.view().data(), middle.view().data(), 4, consumer);
  consumer.ref().synchronize();
  CHECK(target.as<float>()[0] == 1.5F);
}
