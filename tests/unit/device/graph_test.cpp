// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Graphs, which only devices with streams of their own have.
#include "on_host.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/graph.hpp>
#include <fourfold/device/stream.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace fourfold;
using namespace fourfold::device;

namespace {

/// A number of the host, and two of the device.
struct Numbers {
  Buffer pinned{sizeof(int), MemoryKind::pinned};
  Buffer middle{sizeof(int)};
  Buffer end{sizeof(int)};

  int& on_host() const { return *static_cast<int*>(pinned.data()); }
  int at_end() const { return harness::on_host<int>(end.data(), 1)[0]; }
};

}  // namespace

TEST_CASE("a graph does what was recorded, with each launch and not before", "[graph]") {
  const Stream stream;
  const Numbers numbers;
  Graph nothing;
  CHECK(!nothing);
  numbers.on_host() = 1;
  nothing = Graph::capture(stream, [&] {
    copy(numbers.middle.data(), numbers.pinned.data(), sizeof(int), stream);
    copy(numbers.end.data(), numbers.middle.data(), sizeof(int), stream);
  });
  REQUIRE(nothing);
  const Graph graph = std::move(nothing);
  stream.ref().synchronize();
  CHECK(numbers.at_end() == 0);
  for (const int value : {2, 3}) {
    numbers.on_host() = value;
    graph.launch(stream);
    stream.ref().synchronize();
    CHECK(numbers.at_end() == value);
  }
  zero(numbers.pinned.data(), sizeof(int), stream);
  graph.launch(stream);  // after it
  stream.ref().synchronize();
  CHECK(numbers.at_end() == 0);
  const Stream other;
  numbers.on_host() = 5;
  graph.launch(other);
  other.ref().synchronize();
  CHECK(numbers.at_end() == 5);
}

TEST_CASE("streams that are joined by events are recorded with the first", "[graph]") {
  const Stream stream;
  const Stream beside;
  beside.ref().synchronize();  // it is there now
  const Numbers numbers;
  Event there;
  Event back;
  const Graph graph = Graph::capture(stream, [&] {
    copy(numbers.middle.data(), numbers.pinned.data(), sizeof(int), stream);
    there.record(stream);
    there.wait(beside);
    copy(numbers.end.data(), numbers.middle.data(), sizeof(int), beside);
    back.record(beside);
    back.wait(stream);
  });
  beside.ref().synchronize();
  CHECK(numbers.at_end() == 0);
  numbers.on_host() = 4;
  graph.launch(stream);
  stream.ref().synchronize();
  CHECK(numbers.at_end() == 4);
  there.record(stream);  // as any event
  there.wait(beside);
  CHECK_THROWS_WITH(Graph::capture(stream,
                                   [&] {
                                     there.record(stream);
                                     there.wait(beside);
                                     zero(numbers.end.data(), sizeof(int), beside);
                                   }),
                    Catch::Matchers::ContainsSubstring("cudaStreamEndCapture") &&
                        Catch::Matchers::ContainsSubstring("cudaErrorStreamCaptureUnjoined"));
  CHECK(numbers.at_end() == 4);
}

TEST_CASE("what cannot be recorded is named, and the stream goes on", "[graph]") {
  const Stream stream;
  const Numbers numbers;
  const Stream elsewhere;
  Event outside;
  outside.record(elsewhere);
  Event inside;
  struct Case {
    std::string call;
    std::string error;
    std::function<void()> enqueue;
  };
  const std::string unsupported = "cudaErrorStreamCaptureUnsupported";
  const std::vector<Case> cases = {
      {"cudaStreamSynchronize", unsupported, [&] { stream.ref().synchronize(); }},
      {"cudaMalloc", unsupported, [] { const Buffer taken(4); }},
      {"cudaMallocAsync", unsupported, [&] { const StreamBuffer taken(4, stream); }},
      {"cudaLaunchHostFunc", unsupported, [&] { run_on_host([] {}, stream); }},
      {"cudaStreamWaitEvent", "cudaErrorStreamCaptureIsolation", [&] { outside.wait(stream); }},
      {"cudaEventQuery", "cudaErrorCapturedEvent",
       [&] {
         inside.record(stream);
         static_cast<void>(inside.has_happened());
       }},
  };
  for (const Case& each : cases) {
    CAPTURE(each.call);
    const auto capture = [&] {
      return Graph::capture(stream, [&] {
        zero(numbers.end.data(), sizeof(int), stream);
        each.enqueue();
      });
    };
    CHECK_THROWS_MATCHES(
        capture(), SystemError,
        Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(each.call) &&
                                        Catch::Matchers::ContainsSubstring(each.error)));
    numbers.on_host() = 6;
    copy(numbers.end.data(), numbers.pinned.data(), sizeof(int), stream);
    stream.ref().synchronize();
    CHECK(numbers.at_end() == 6);
  }
  CHECK_THROWS_WITH(Graph::capture(stream, [] { throw std::runtime_error("no way"); }), "no way");
  CHECK(Graph::capture(stream, [&] { zero(numbers.end.data(), sizeof(int), stream); }));
}

TEST_CASE("other threads take memory and wait while one records", "[graph]") {
  const Stream stream;
  const Numbers numbers;
  const Graph graph = Graph::capture(stream, [&] {
    std::thread([] {
      const Buffer taken(64);
      const Stream own;
      zero(taken.data(), 64, own);
      own.ref().synchronize();
    }).join();
    copy(numbers.end.data(), numbers.pinned.data(), sizeof(int), stream);
  });
  numbers.on_host() = 8;
  graph.launch(stream);
  stream.ref().synchronize();
  CHECK(numbers.at_end() == 8);
}
