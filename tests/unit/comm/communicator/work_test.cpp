// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/work.hpp>

#include <catch2/catch_test_macros.hpp>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

using fourfold::comm::Work;

namespace {

/// Notes its number when it is waited for.
class Noted : public Work::Operation {
 public:
  Noted(int number, std::vector<int>& waits) : number_(number), waits_(waits) {}
  void wait(fourfold::device::StreamRef /*stream*/) override { waits_.push_back(number_); }
  bool test() override { return false; }

 private:
  int number_;
  std::vector<int>& waits_;
};

Work noted(int number, std::vector<int>& waits) {
  return Work(std::make_unique<Noted>(number, waits));
}

}  // namespace

TEST_CASE("an operation is waited for exactly once, at the latest by the destructor", "[work]") {
  std::vector<int> waits;
  {
    Work explicitly = noted(1, waits);
    CHECK_FALSE(explicitly.test());
    fourfold::device::TimedEvent end;
    CHECK_FALSE(explicitly.mark_end(end));
    CHECK_FALSE(Work().mark_end(end));
    explicitly.wait({});
    explicitly.wait({});
    CHECK(explicitly.test());
    const Work forgotten = noted(2, waits);
    CHECK(waits == std::vector{1});
  }
  CHECK(waits == std::vector{1, 2});
}

TEST_CASE("assigning over an operation waits for it first", "[work]") {
  std::vector<int> waits;
  Work work = noted(1, waits);
  work = noted(2, waits);
  CHECK(waits == std::vector{1});
  Work moved = std::move(work);
  moved.wait({});
  CHECK(waits == std::vector{1, 2});
  CHECK(Work().test());
}

TEST_CASE("nothing is waited for while an exception unwinds", "[work]") {
  std::vector<int> waits;
  try {
    const Work work = noted(1, waits);
    throw std::runtime_error("failure");
  } catch (const std::runtime_error&) {
    CHECK(waits.empty());
  }
}
