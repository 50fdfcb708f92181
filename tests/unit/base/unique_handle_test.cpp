// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/unique_handle.hpp>

#include <catch2/catch_test_macros.hpp>

#include <type_traits>
#include <utility>
#include <vector>

namespace {

std::vector<int> closed;

struct Traits {
  using native_type = int;
  static int null() noexcept { return -1; }
  static void close(int handle) noexcept { closed.push_back(handle); }
};
using Handle = fourfold::UniqueHandle<Traits>;
static_assert(!std::is_copy_constructible_v<Handle> && !std::is_copy_assignable_v<Handle>);

}  // namespace

TEST_CASE("a handle is closed exactly once, by its last owner", "[unique_handle]") {
  closed.clear();
  {
    Handle first(3);
    Handle second(std::move(first));
    CHECK(second.get() == 3);
    Handle third(4);
    third = std::move(second);
    CHECK(closed == std::vector{4});
    CHECK(third.get() == 3);
  }
  CHECK(closed == std::vector{4, 3});
}

TEST_CASE("release gives the handle away; nothing is closed for none", "[unique_handle]") {
  closed.clear();
  {
    Handle handle(5);
    CHECK(handle.release() == 5);
    CHECK_FALSE(static_cast<bool>(handle));
    handle.reset(6);
    handle.reset(7);
    Handle& same = handle;
    handle = std::move(same);
    CHECK(handle.get() == 7);
  }
  CHECK(closed == std::vector{6, 7});
}
