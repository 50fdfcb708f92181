// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0

#include "wrong_command_line.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/help_page.hpp>
#include <fourfold/program/print.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::program {
namespace {

std::string_view meaning(ExitCode code) {
  switch (code) {
    case ExitCode::finished:
      return "finished";
    case ExitCode::differs:
      return "what was compared is not the same";
    case ExitCode::usage:
      return "wrong command line: unknown option, verb or value";
    case ExitCode::data_corrupt:
      return "a token file or checkpoint is damaged, or the loss is not finite";
    case ExitCode::internal:
      return "a bug of fourfold; " FOURFOLD_REPORT_IT;
    case ExitCode::cannot_write:
      return "a file cannot be written (disk full, quota, permissions); what was saved before is "
             "intact";
    case ExitCode::stopped_saved:
      return "stopped on time or signal with a checkpoint saved: run again to go on";
    case ExitCode::config:
      return "the run file, the mesh or the way of starting does not fit";
    case ExitCode::node_fault:
      return "a node or its network failed; the last checkpoint is good";
    case ExitCode::hang:
      return "ranks waited for each other too long";
    case ExitCode::no_progress:
      return "no progress is possible: do not restart";
  }
  return "unknown";
}

ExitCode refuse(const CLI::App& command, const std::string& what) {
  log::write_stderr(format_message("{}: error: {}\nRun with --help for more information.\n",
                                   program_of(command), MadeLines{printable_message(what)}));
  return ExitCode::usage;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What CLI11 says of a value, in words that people use.
std::string own_words(const CLI::ParseError& error) {
  const std::string_view said = error.what();
  const std::string name(said.substr(0, said.find(':')));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    if (contains(said, "required") && contains(said, "missing")) {
      return fmt::format("{} needs a value after it", name);
    }
    if (contains(said, "At Most 1 required")) {
      return fmt::format("{} is given more than once; give it once", name);
    }
  }
  return std::string(said);
}

/// Whether a word is that option of several characters, with its value after "=" or in the next
/// word.
bool is_long_option(const std::string& word, const CLI::Option& option) {
  return std::ranges::any_of(option.get_lnames(), [&](const std::string& name) {
    return word == "--" + name || word.starts_with("--" + name + "=");
  });
}

/// The words with those options first that can be given by their position as well: CLI11 fills
/// positions in the order of the words, and would take another argument for a checkpoint that is
/// named after it.
std::vector<const char*> named_first(const CLI::App& command, int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  const CLI::App* verb = &command;
  auto begin = words.begin() + (words.empty() ? 0 : 1);
  for (; begin != words.end(); ++begin) {
    const auto verbs =
        verb->get_subcommands([&](const CLI::App* one) { return one->check_name(*begin); });
    if (verbs.empty()) {
      break;
    }
    verb = verbs.front();
  }
  const auto end = std::ranges::find(begin, words.end(), std::string_view("--"));
  for (auto at = begin; at < end; ++at) {
    const std::string word = *at;
    const auto options = verb->get_options([&](const CLI::Option* option) {
      return option->get_positional() && is_long_option(word, *option);
    });
    if (!options.empty()) {
      const bool has_value = word.find('=') != std::string::npos;
      const auto after = at + std::min<std::ptrdiff_t>(has_value ? 1 : 2, end - at);
      std::rotate(begin, at, after);
      begin += after - at;
      at = after - 1;
    }
  }
  return words;
}

/// `fourfold ckpt help` and `fourfold ckpt help info`, as `fourfold help ckpt info`; else nothing.
std::optional<std::vector<const char*>> question_for_help(const CLI::App& command, int argc,
                                                          const char* const* argv) {
  const bool has_verbs = !command.get_subcommands([](const CLI::App*) { return true; }).empty();
  if (!has_verbs || argc < 2 || argc > 3 || std::string_view(argv[1]) != "help") {
    return std::nullopt;
  }
  std::vector<const char*> words(argv, argv + argc);
  words[1] = "--help";
  return words;
}

/// @param range  which numbers these are, in words; `name` is what help calls them
template <class Holds>
CLI::Validator number_where(const Holds& holds, const std::string& range, const std::string& name) {
  const auto refuse = [=](const std::string& text) -> std::string {
    double number = 0;
    const bool is_one = CLI::detail::lexical_cast(text, number) && holds(number);
    return is_one ? "" : fmt::format("{} is no number {}", text, range);
  };
  return {refuse, name};
}

}  // namespace

std::optional<ExitCode> parse(CLI::App& command, int argc, const char* const* argv,
                              const KeySearch& keys, const HelpSearch& parts) {
  if (const auto words = question_for_help(command, argc, argv)) {
    return parse(command, argc, words->data(), keys, parts);
  }
  try {
    const std::vector<const char*> words = named_first(command, argc, argv);
    command.parse(argc, words.data());
    return std::nullopt;
  } catch (const CLI::Success& end) {  // --help
    const std::string word = word_without_help(command, {argv + 1, argv + argc});
    const std::string part = word.empty() || !parts ? "" : parts(word);
    if (!part.empty()) {
      show_page(part);
      return ExitCode::finished;
    }
    if (!word.empty()) {
      return refuse(command, parts ? unknown_part_text(word) : unknown_verb_text(command, word));
    }
    std::ostringstream out;
    std::ostringstream error;
    command.exit(end, out, error);
    show_page(out.str());
    log::write_stderr(error.str());
    return ExitCode::finished;
  } catch (const CLI::ParseError& end) {
    const std::vector<std::string> typed(argv + 1, argv + argc);
    // What is missing is so perhaps because of what is there and means nothing: a misspelt verb.
    const bool is_of_the_unknown = dynamic_cast<const CLI::RequiredError*>(&end) != nullptr ||
                                   dynamic_cast<const CLI::ExtrasError*>(&end) != nullptr;
    const std::string wrong = printable(own_words(end));  // a value of the user's is part of it
    if (command.remaining(true).empty()) {
      return refuse(command, wrong);
    }
    return refuse(command,
                  unknown_words_text(command, typed, keys, is_of_the_unknown ? "" : wrong));
  }
}

CLI::Option* add_repeatable_option(CLI::App& command, const std::string& name,
                                   std::vector<std::string>& values, const std::string& meaning,
                                   const std::string& type) {
  return command.add_option(name, values, meaning)
      ->type_name(type)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Validator whole_number(std::int64_t low, std::int64_t high) {
  const bool is_bounded = high < std::numeric_limits<std::int32_t>::max();
  const std::string range =
      is_bounded ? fmt::format("from {} to {}", low, high) : fmt::format("of at least {}", low);
  const auto refuse = [low, high, range](const std::string& text) -> std::string {
    std::int64_t number = 0;
    const bool is_number = CLI::detail::lexical_cast(text, number);
    if (is_number && number >= low && number <= high) {
      return {};
    }
    const bool is_too_long =
        !is_number && !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return is_too_long || (is_number && number > high)
               ? fmt::format("{} is more than {}", text, high)
               : fmt::format("{} is no whole number {}", text, range);
  };
  return {refuse, range};
}

CLI::Validator number_between(double low, double high) {
  return number_where([=](double number) { return number >= low && number <= high; },
                      fmt::format("from {} to {}", low, high),
                      fmt::format("in [{} - {}]", low, high));
}

CLI::Validator number_above(double bound, double high) {
  return number_where([=](double number) { return number > bound && number <= high; },
                      fmt::format("above {} and at most {}", bound, high),
                      fmt::format("in ({} - {}]", bound, high));
}

CLI::Validator place_to_write() {
  return {[](const std::string& text) -> std::string {
            return begins_with_home(text) ? fmt::format("{} {}", text, home_is_a_shells) : "";
          },
          ""};
}

std::vector<std::string> said_by(const CLI::App& command) {
  std::vector<std::string> lines;
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_name() == "--progress") {  // rank 0 shows it
      continue;
    }
    const std::vector<std::string> values = option->results();
    const std::string said =
        values.empty() ? option->get_default_str() : fmt::format("{}", fmt::join(values, " "));
    lines.push_back(format_message("{} = {}", option->get_name(), said));
  }
  return lines;
}

std::string exit_codes_table(std::initializer_list<ExitCode> codes) {
  std::vector<ExitCode> all(codes);
  all.insert(all.end(), {ExitCode::finished, ExitCode::usage, ExitCode::internal});
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::string text;
  for (const ExitCode code : all) {
    text += fmt::format("  {:<3} {}\n", code, meaning(code));
  }
  return text;
}

}  // namespace fourfold::program
