// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/kernels/runtime.hpp>

#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>

#include <optional>

namespace {

/// Keeps the kernels' runtime up from the first test to the last.
class RuntimeListener : public Catch::EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;
  void testRunStarting(const Catch::TestRunInfo& /*run*/) override { runtime_.emplace(); }
  void testRunEnded(const Catch::TestRunStats& /*run*/) override { runtime_.reset(); }

 private:
  std::optional<fourfold::kernels::Runtime> runtime_;
};

CATCH_REGISTER_LISTENER(RuntimeListener)

}  // namespace
