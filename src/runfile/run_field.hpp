// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Turns a path of member pointers into a RunField, so that the tables of keys name each member
/// once.
#pragma once

#include <fourfold/base/enum_name.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fourfold::runfile {

template <class Member>
Value to_value(const Member& member) {
  if constexpr (std::same_as<Member, bool>) {
    return member;
  } else if constexpr (std::integral<Member>) {
    const std::int64_t number = member;
    return number;
  } else {
    return member;
  }
}

template <class Member>
void from_value(Member& member, const Value& value) {
  if constexpr (std::integral<Member> && !std::same_as<Member, bool>) {
    const auto* number = std::get_if<std::int64_t>(&value);
    member = number ? static_cast<Member>(*number) : Member{0};  // "auto" is kept as 0
  } else if constexpr (std::floating_point<Member>) {
    member = static_cast<Member>(std::get<double>(value));
  } else {
    member = std::get<Member>(value);
  }
}

template <class Member>
constexpr ValueKind kind_of() {
  if constexpr (std::same_as<Member, bool>) {
    return ValueKind::boolean;
  } else if constexpr (std::integral<Member>) {
    return ValueKind::integer;
  } else if constexpr (std::floating_point<Member>) {
    return ValueKind::real;
  } else if constexpr (std::same_as<Member, std::string>) {
    return ValueKind::text;
  } else if constexpr (std::same_as<Member, std::vector<std::int64_t>>) {
    return ValueKind::integer_list;
  } else {
    static_assert(std::same_as<Member, std::vector<std::string>>);
    return ValueKind::text_list;
  }
}

/// Follows a path of member pointers: at(config, &RunConfig::train, &TrainConfig::steps) is
/// config.train.steps.
template <class Object, class First, class... Rest>
auto& at(Object& object, First first, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return object.*first;
  } else {
    return at(object.*first, rest...);
  }
}

/// A member of plain type.
template <class... Path>
RunField field(Path... path) {
  using Member = std::remove_reference_t<decltype(at(std::declval<RunConfig&>(), path...))>;
  RunField result;
  result.kind = kind_of<Member>();
  result.get = [=](const RunConfig& config) { return to_value<Member>(at(config, path...)); };
  result.set = [=](RunConfig& config, const Value& value) {
    from_value<Member>(at(config, path...), value);
  };
  if constexpr (std::is_arithmetic_v<Member>) {
    result.lowest = static_cast<double>(std::numeric_limits<Member>::lowest());
    result.highest = static_cast<double>(std::numeric_limits<Member>::max());
  }
  return result;
}

/// What is written as text, one of some words.
template <class Get, class Set>
RunField text_field(std::vector<std::string> choices, Get get, Set set) {
  RunField result;
  result.kind = ValueKind::text;
  result.choices = std::move(choices);
  result.get = [=](const RunConfig& config) { return Value(std::string(get(config))); };
  result.set = [=](RunConfig& config, const Value& value) {
    set(config, std::get<std::string>(value));
  };
  return result;
}

/// A member of an enumeration that has names_of().
template <class... Path>
RunField named_field(Path... path) {
  using Member = std::remove_reference_t<decltype(at(std::declval<RunConfig&>(), path...))>;
  return text_field(
      names_in(named_values<Member>),
      [=](const RunConfig& config) { return name(at(config, path...)); },
      [=](RunConfig& config, const std::string& text) {
        at(config, path...) = *value_named<Member>(text);
      });
}

/// The key that --allow-change names. @throws UserError (config), with a suggestion, when there is
/// none
const RunKey& allowed_key(const std::string& name);

// The keys of each table of the run file, still without its name: [name] is described in
// run_key_<name>.cpp, and run_tables() has them in their order.

std::vector<RunKey> model_keys();
std::vector<RunKey> rope_scaling_keys();
std::vector<RunKey> mesh_keys();
std::vector<RunKey> train_keys();
std::vector<RunKey> optim_keys();
std::vector<RunKey> offload_keys();
std::vector<RunKey> data_keys();
std::vector<RunKey> checkpoint_keys();
std::vector<RunKey> log_keys();
std::vector<RunKey> watchdog_keys();

}  // namespace fourfold::runfile
