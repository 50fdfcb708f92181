// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "wrong_command_line.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace fourfold::program {
namespace {

/// The verbs that were parsed, from the program down.
std::vector<const CLI::App*> parsed_verbs(const CLI::App& command) {
  std::vector<const CLI::App*> verbs{&command};
  for (std::vector<CLI::App*> next = verbs.back()->get_subcommands(); !next.empty();
       next = verbs.back()->get_subcommands()) {
    verbs.push_back(next.front());
  }
  return verbs;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

std::vector<std::string> known_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* const verb : parsed_verbs(command)) {
    for (const CLI::Option* const option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        if (name != "help") {  // no answer to what was meant
          names.push_back("--" + name);
        }
      }
    }
  }
  return names;
}

std::vector<std::string> known_verbs(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* const verb : command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

std::string did_you_mean(const std::vector<std::string>& meant) {
  if (meant.empty()) {
    return "";
  }
  return format_message("; did you mean '{}'?", fmt::join(meant, "' or '"));
}

/// What other programs call it.
std::string own_word(std::string word) {
  constexpr std::array<std::array<std::string_view, 2>, 3> words{
      {{"ckpt", "checkpoint"}, {"max_tokens", "tokens"}, {"max_new_tokens", "tokens"}}};
  std::ranges::replace(word, '-', '_');
  const auto found =
      std::ranges::find_if(words, [&](const auto& pair) { return pair.front() == word; });
  return found == words.end() ? word : std::string(found->back());
}

/// "--steps" with "100" is --set train.steps=100, and so is "--train.steps".
std::vector<std::string> as_keys(const std::string& name, const std::string& value,
                                 const KeySearch& keys) {
  std::vector<std::string> meant;
  if (keys && name.starts_with("--")) {
    std::string full = name.substr(2);
    std::ranges::replace(full, '-', '_');
    const std::string last = full.substr(full.rfind('.') + 1);  // npos + 1 is 0
    std::vector<std::string> found = keys(last);
    if (last !=
        full) {  // a key of ours stands in its own table; of theirs the table is theirs, too
      std::erase_if(
          found, [&](const std::string& key) { return key != full && key.ends_with("." + last); });
    }
    for (const std::string& key : found) {
      meant.push_back(format_message("--set {}={}", key, value.empty() ? "VALUE" : value));
    }
  }
  return meant;
}

/// "--ckpt" is --checkpoint; "--keep" any of --keep-last and --keep-best; else one that is like it.
std::vector<std::string> as_options(const CLI::App& command, const std::string& name) {
  const std::vector<std::string> known = known_options(command);
  if (name.starts_with("--")) {
    const std::string own = "--" + own_word(name.substr(2));
    if (std::ranges::count(known, own) > 0) {
      return {own};
    }
    std::vector<std::string> longer;
    std::ranges::copy_if(known, std::back_inserter(longer),
                         [&](const std::string& option) { return option.starts_with(name + "-"); });
    if (!longer.empty()) {
      return longer;
    }
  }
  const auto option = likely(name, known);
  return option ? std::vector{*option} : std::vector<std::string>{};
}

/// @param value  the word after it, or ""
std::string option_text(const CLI::App& command, const std::string& word, std::string value,
                        const KeySearch& keys) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  if (equals != std::string::npos) {
    value = word.substr(equals + 1);
  }
  std::vector<std::string> meant = as_keys(name, value, keys);
  if (meant.empty()) {
    meant = as_options(command, name);
  }
  return format_message("unknown option '{}'{}", name, did_you_mean(meant));
}

bool wants_verb(const CLI::App& command) {
  return !known_verbs(command).empty() && command.get_subcommands().empty();
}

std::string argument_text(const CLI::App& command, const std::string& word) {
  return wants_verb(command) ? unknown_verb_text(command, word)
                             : format_message("'{}' is one argument too many", word);
}

}  // namespace

std::string program_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* const verb : parsed_verbs(command)) {
    names.push_back(verb->get_name());
  }
  return format_message("{}", fmt::join(names, " "));
}

std::string word_without_help(const CLI::App& command, const std::vector<std::string>& typed) {
  const bool asks_for_verb = !typed.empty() && (typed[0] == "--help" || typed[0] == "-h");
  const std::size_t verbs = parsed_verbs(command).size();  // the program itself stands for --help
  return asks_for_verb && typed.size() > verbs ? typed[verbs] : "";
}

std::string unknown_verb_text(const CLI::App& command, const std::string& word) {
  const std::vector<std::string> verbs = known_verbs(*parsed_verbs(command).back());
  if (const auto verb = likely(word, verbs)) {
    return format_message("there is no verb '{}'{}", word, did_you_mean({*verb}));
  }
  return format_message(
      "there is no verb '{}'{}", word,
      verbs.empty() ? "" : format_message("; there are {}", fmt::join(verbs, ", ")));
}

std::string unknown_part_text(const std::string& word) {
  return format_message(
      "no table and no key of the run file is called '{}'; fourfold help train shows all", word);
}

std::string unknown_words_text(const CLI::App& command, std::span<const std::string> typed,
                               const KeySearch& keys, std::string_view wrong) {
  std::vector<std::string> unknown = command.remaining(true);
  std::vector<std::string> lines;
  bool is_value = false;  // of the unknown option before it
  for (std::size_t i = 0; i < typed.size(); ++i) {
    const std::string& word = typed[i];
    const auto found = std::ranges::find(unknown, word);
    if (found == unknown.end()) {
      is_value = false;
      const std::string name = word.substr(0, word.find('='));
      if (wrong.starts_with(name + ":") || wrong.starts_with(name + " ")) {
        lines.emplace_back(std::exchange(wrong, {}));
      }
      continue;
    }
    unknown.erase(found);
    if (is_option(word)) {
      const bool has_next = i + 1 < typed.size() && !is_option(typed[i + 1]);
      lines.push_back(option_text(command, word, has_next ? typed[i + 1] : "", keys));
    } else if (!is_value) {
      lines.push_back(argument_text(command, word));
      if (wants_verb(command)) {
        return lines.back();  // what comes after it would mean something to the right one
      }
    }
    is_value = is_option(word) && word.find('=') == std::string::npos;
  }
  if (!wrong.empty()) {
    lines.emplace_back(wrong);
  }
  return format_message("{}", fmt::join(lines, "\n  "));
}

}  // namespace fourfold::program
