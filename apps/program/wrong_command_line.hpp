// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/program/command_line.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::program {

/// "fourfold ckpt verify": the program and the verb whose options are read.
std::string program_of(const CLI::App& command);

/// The first word after a leading --help that is no verb, so that there is no page for it; or "".
/// "--help export" asks for the page of a verb, "run.toml --help" for that of the program.
/// @param typed  the command line without the program's name
std::string word_without_help(const CLI::App& command, const std::vector<std::string>& typed);
/// What is wrong about a word that stands where a verb does.
std::string unknown_verb_text(const CLI::App& command, const std::string& word);
/// What is wrong about a word that asks for a part of the help of a run file's keys.
std::string unknown_part_text(const std::string& word);

/// What is wrong about words that no option and no argument takes, a line each in the order in
/// which they were typed, with what was probably meant.
/// @param typed  the command line without the program's name
/// @param wrong  what is wrong about a word that is known, which it begins with: "--steps: ...";
///   a line of its own where that word stands. Empty: nothing
/// @pre command.remaining(true) is not empty
std::string unknown_words_text(const CLI::App& command, std::span<const std::string> typed,
                               const KeySearch& keys, std::string_view wrong = {});

}  // namespace fourfold::program
