// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/folder_claims.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/text_file.hpp>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

namespace fourfold::data::detail {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t longest_claim_bytes = std::uint64_t{64} << 20;

/// The object in a file beside the tokenizer's, or where a link of that name leads; an empty one
/// where there is none that can be read.
json object_in(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) {
    return json::object();
  }
  try {
    const json value = json_if_any<json>(io::text_of_file(file, longest_claim_bytes));
    return value.is_object() ? value : json::object();
  } catch (const UserError&) {
    return json::object();
  }
}

[[noreturn]] void refuse(const TokenizerFiles& files, const fs::path& by,
                         const std::string& claim) {
  throw UserError(
      ExitCode::config,
      format_message("{}: is not all of its tokenizer ({} says {}); give its tokenizer.json, which "
                     "save_pretrained of transformers' fast tokenizers writes, or copy the file to "
                     "a folder of its own to have it read as it is",
                     files.main.path.string(), by.string(), claim));
}

/// Whether a class makes the tokens of these files that are made here.
bool is_read_so(const TokenizerFiles& files, std::string_view name) {
  if (files.kind == TokenizerKind::vocab_and_merges) {
    return name == "GPT2Tokenizer" || name == "GPT2TokenizerFast";
  }
  // These number the pieces of a SentencePiece model anew.
  constexpr std::array<std::string_view, 9> renumbering{
      "XLMRobertaTokenizer", "CamembertTokenizer", "BarthezTokenizer",
      "MBartTokenizer",      "MBart50Tokenizer",   "NllbTokenizer",
      "XGLMTokenizer",       "M2M100Tokenizer",    "PLBartTokenizer"};
  return std::ranges::none_of(renumbering,
                              [&](std::string_view one) { return name.starts_with(one); });
}

/// What the other files of a folder say of its tokenizer.
struct Claims {
  explicit Claims(const TokenizerFiles& files)
      : config_file(files.main.path.parent_path() / "tokenizer_config.json"),
        added_file(files.main.path.parent_path() / "added_tokens.json"),
        config(object_in(config_file)),
        added(object_in(added_file)) {}

  /// visit(file that says so, text of a token, its number)
  using Visit = std::function<void(const fs::path&, const std::string&, std::int64_t)>;
  void for_each_token(const Visit& visit) const {
    const json decoder = config.value("added_tokens_decoder", json::object());
    for (const auto& [key, token] : decoder.items()) {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
      const json content = token.is_object() ? token.value("content", json()) : json();
      if (error == std::errc{} && end == key.data() + key.size() && content.is_string()) {
        visit(config_file, content.get<std::string>(), number);
      }
    }
    for (const auto& [text, number] : added.items()) {
      if (number.is_number_integer()) {
        visit(added_file, text, number.get<std::int64_t>());
      }
    }
  }

  fs::path config_file;
  fs::path added_file;
  json config;
  json added;
};

void refuse_other_class(const TokenizerFiles& files, const fs::path& file, const json& config) {
  const json name = config.value("tokenizer_class", json());
  if (name.is_string() && !is_read_so(files, name.get_ref<const std::string&>())) {
    refuse(files, file,
           format_message("tokenizer_class \"{}\", which makes other tokens of it",
                          name.get_ref<const std::string&>()));
  }
  if (files.kind == TokenizerKind::vocab_and_merges &&
      config.value("add_prefix_space", json()) == json(true)) {
    refuse(files, file, "add_prefix_space, which makes other tokens of the first word");
  }
}

void refuse_other_token(const TokenizerFiles& files, const fs::path& file, const TokenOf& token_of,
                        const std::string& text, std::int64_t number) {
  const auto known = token_of(text);
  if (known != number) {
    refuse(files, file,
           format_message("that \"{}\" is token {}, {}", text, number,
                          known ? format_message("which is {} in it", *known)
                                : std::string("which it has not")));
  }
}

}  // namespace

void refuse_other_claims_beside(const TokenizerFiles& files, const TokenOf& token_of) {
  const Claims claims(files);
  refuse_other_class(files, claims.config_file, claims.config);
  claims.for_each_token([&](const fs::path& by, const std::string& text, std::int64_t number) {
    refuse_other_token(files, by, token_of, text, number);
  });
}

std::string told_of_tokens_beside(const TokenizerFiles& files,
                                  const std::function<bool(const std::string&)>& is_token) {
  constexpr std::size_t shown = 3;
  std::set<std::string> missing;
  fs::path first_by;
  Claims(files).for_each_token(
      [&](const fs::path& by, const std::string& text, std::int64_t /*number*/) {
        if (!is_token(text)) {
          first_by = missing.empty() ? by : first_by;
          missing.insert(text);
        }
      });
  if (missing.empty()) {
    return "";
  }
  std::vector<std::string> names(missing.begin(), missing.end());
  names.resize(std::min(names.size(), shown));
  return format_message(
      "{}: {} texts that {} calls tokens are none in it ({}{}): transformers adds them when it "
      "opens the folder, and makes other tokens of texts with them; here the file is read as it is "
      "(save_pretrained writes one that has them)",
      files.main.path.string(), missing.size(), first_by.string(), fmt::join(names, ", "),
      missing.size() > shown ? ", ..." : "");
}

void refuse_other_claims_beside(const TokenizerFiles& vocabulary) {
  std::optional<json> entries;  // read a second time where somebody asks
  refuse_other_claims_beside(vocabulary,
                             [&](const std::string& text) -> std::optional<std::int64_t> {
                               if (!entries) {
                                 entries = json_if_any<json>(vocabulary.main.bytes);
                               }
                               const auto found = entries->find(text);
                               return found != entries->end() && found->is_number_integer()
                                          ? std::optional(found->get<std::int64_t>())
                                          : std::nullopt;
                             });
}

}  // namespace fourfold::data::detail
