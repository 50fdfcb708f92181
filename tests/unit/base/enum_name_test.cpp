// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/enum_name.hpp>
#include <fourfold/base/progress_mode.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using fourfold::is_enumerator;
using fourfold::Named;
using fourfold::NamedEnum;
using fourfold::ProgressMode;

namespace {

enum class Fruit : std::uint8_t { apple, pear, fig2 };
constexpr auto names_of(Fruit /*any*/) {
  using enum Fruit;
  return std::to_array<Named<Fruit>>({{apple, "apple"}, {pear, "a pear"}, {fig2, "fig"}});
}

struct Basket {
  enum class Size { small, large };
};

}  // namespace

TEST_CASE("a value has the name at its place", "[enum_name]") {
  enum class Color { red, green };
  constexpr std::array<std::string_view, 2> names{"red", "green"};
  static_assert(fourfold::name_in(names, Color::green) == "green");
  CHECK(fourfold::name_in(names, Color::red) == "red");
  static_assert(is_enumerator<Color, Color::green>() && !is_enumerator<Color, Color{2}>());
}

TEST_CASE("a compiler tells enumerators from other values, wherever they are declared",
          "[enum_name]") {
  STATIC_CHECK(is_enumerator<Fruit, Fruit::apple>());
  STATIC_CHECK(is_enumerator<Fruit, Fruit{2}>());
  STATIC_CHECK_FALSE(is_enumerator<Fruit, Fruit{3}>());
  STATIC_CHECK_FALSE(is_enumerator<Fruit, Fruit{255}>());
  STATIC_CHECK(is_enumerator<Basket::Size, Basket::Size::large>());
  STATIC_CHECK_FALSE(is_enumerator<Basket::Size, Basket::Size{2}>());
  STATIC_CHECK(is_enumerator<ProgressMode, ProgressMode{3}>());
  STATIC_CHECK_FALSE(is_enumerator<ProgressMode, ProgressMode{4}>());
}

TEST_CASE("names, values and lists come from one table", "[enum_name]") {
  STATIC_CHECK(fourfold::name(Fruit::pear) == "a pear");
  CHECK(fourfold::value_named<Fruit>("fig") == Fruit::fig2);
  CHECK(fourfold::value_named<Fruit>("fig2") == std::nullopt);
  CHECK(fourfold::value_named<Fruit>("") == std::nullopt);
  CHECK(fourfold::names_in(fourfold::named_values<Fruit>) ==
        std::vector<std::string>{"apple", "a pear", "fig"});
  CHECK(fourfold::values_in(fourfold::named_values<Fruit>) ==
        std::array{Fruit::apple, Fruit::pear, Fruit::fig2});
  CHECK(fourfold::name(ProgressMode::automatic) == "auto");
  STATIC_CHECK_FALSE(NamedEnum<Basket::Size>);
}

TEST_CASE("a value that is not in a table has no name", "[enum_name]") {
  constexpr auto table = std::to_array<Named<int>>({{2, "two"}, {5, "five"}});
  CHECK(fourfold::name_in(table, 5) == "five");
  CHECK(fourfold::name_in(table, 3).empty());
  CHECK(fourfold::value_in(table, "two") == 2);
  CHECK_FALSE(fourfold::value_in(table, "three").has_value());
}
