// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::batch {

/// Each line of `text`, what a command of Slurm has printed, that is wholly of that form, as its
/// groups; blanks at its ends do not count. What is not, a site's banner, is passed over.
std::vector<std::vector<std::string>> lines_of_form(std::string_view text, const std::regex& form);

/// 0 for what is no number that fits.
template <class Integer = std::int64_t>
Integer number_of(const std::string& text) {
  Integer value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::max<Integer>(0, value);
}

}  // namespace fourfold::batch
