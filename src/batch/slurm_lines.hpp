// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::batch {

/// Each line of `text`, what a command of Slurm has printed, that is wholly of that form, as its
/// groups; blanks at its ends do not count. What is not, a site's banner, is passed over.
std::vector<std::vector<std::string>> lines_of_form(std::string_view text, const std::regex& form);

/// 0 for what is no number that fits.
long number_of(const std::string& text);

}  // namespace fourfold::batch
