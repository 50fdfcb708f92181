// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Pages of help, as wide as the terminal that shows them, and a screen at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fourfold::program {

/// Lines of at most `columns`, broken between words only; a word that is longer keeps its line, and
/// so does a first column.
///
/// A line that is too long goes on where its text begins: below the second column where two spaces
/// part columns ("--set KEY=VALUE  Override ..."), else below its first letter. Lines that were one
/// sentence before somebody broke them by hand become one again first: those that begin in that
/// column, after a line that the next word would have made longer than `broken_at`. Where every
/// line fits, the text is as it was.
///
/// @param columns    at least 20 are taken
/// @param broken_at  where the author of the text breaks lines
std::string fit_lines(std::string_view text, std::size_t columns, std::size_t broken_at = 95);

/// Shows a page. On a terminal: as wide as that (at most 100 columns), by $PAGER (default: less
/// -FRX) where it is longer than the screen; a pager that cannot be started is done without.
/// PAGER="" and PAGER=cat mean none. $PAGER is split at spaces; no shell reads it. Elsewhere: lines
/// of at most 100 columns, whoever reads them.
/// @throws std::system_error when standard output cannot be written
void show_page(std::string_view text);

}  // namespace fourfold::program
