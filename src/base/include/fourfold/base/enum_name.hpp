// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Enumerations that people name. Values count from 0, and each has its name in one table:
///
///   enum class Color : std::uint8_t { red, green };
///   constexpr auto names_of(Color /*any*/) {
///     return std::to_array<Named<Color>>({{Color::red, "red"}, {Color::green, "green"}});
///   }
///   using fourfold::name;
///
/// name(), value_named() and all lists of names are made from it. A value without a name does not
/// compile.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fourfold {

/// A value and how run files, command lines and messages spell it.
template <class T>
struct Named {
  T value;
  std::string_view name;
};

/// Whether `value` is an enumerator: compilers spell others as numbers, "(Color)2".
template <class Enum, Enum value>
consteval bool is_enumerator() {
  const std::string_view spelled = __PRETTY_FUNCTION__;
  const std::size_t cast = spelled.rfind(')');
  return cast + 1 >= spelled.size() || spelled[cast + 1] < '0' || spelled[cast + 1] > '9';
}

/// The name of a value. Empty: it is not in the table.
template <class T, std::size_t count>
constexpr std::string_view name_in(const std::array<Named<T>, count>& table, const T& value) {
  for (const Named<T>& row : table) {
    if (row.value == value) {
      return row.name;
    }
  }
  return {};
}

/// The value of that name, if there is one.
template <class T, std::size_t count>
constexpr std::optional<T> value_in(const std::array<Named<T>, count>& table,
                                    std::string_view name) {
  for (const Named<T>& row : table) {
    if (row.name == name) {
      return row.value;
    }
  }
  return std::nullopt;
}

/// The names of a table, or those of some values, in their order.
template <class Values>
std::vector<std::string> names_in(const Values& values) {
  std::vector<std::string> names;
  for (const auto& each : values) {
    if constexpr (requires { each.name; }) {
      names.emplace_back(each.name);
    } else {
      names.emplace_back(name(each));
    }
  }
  return names;
}

/// `table`, which has all values of an enumeration in their order: another one does not compile.
template <class Enum, std::size_t count>
consteval auto complete_table(const std::array<Named<Enum>, count>& table) {
  static_assert(!is_enumerator<Enum, Enum{count}>(), "the last value has no name");
  for (std::size_t place = 0; place < count; ++place) {
    if (static_cast<std::size_t>(table[place].value) != place) {
      throw "a value has no name, or not the place of the enumeration";
    }
  }
  return table;
}

/// The values of a table, in their order.
template <class T, std::size_t count>
constexpr std::array<T, count> values_in(const std::array<Named<T>, count>& table) {
  std::array<T, count> values{};
  for (std::size_t place = 0; place < count; ++place) {
    values[place] = table[place].value;
  }
  return values;
}

/// An enumeration that has a table.
template <class Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires(Enum value) {
  names_of(value);
};

/// All values of an enumeration with their names, in their order.
template <NamedEnum Enum>
inline constexpr auto named_values = complete_table(names_of(Enum{}));

template <NamedEnum Enum>
constexpr std::string_view name(Enum value) noexcept {
  return name_in(named_values<Enum>, value);
}

template <NamedEnum Enum>
constexpr std::optional<Enum> value_named(std::string_view text) noexcept {
  return value_in(named_values<Enum>, text);
}

/// The name of a value that nobody reads back.
/// @param names  of all values, in their order
template <class Enum, std::size_t count>
constexpr std::string_view name_in(const std::array<std::string_view, count>& names,
                                   Enum value) noexcept {
  static_assert(!is_enumerator<Enum, Enum{count}>(), "the last value has no name");
  return names[static_cast<std::size_t>(value)];
}

}  // namespace fourfold
