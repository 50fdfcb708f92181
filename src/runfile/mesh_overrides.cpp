// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

namespace fourfold::runfile {
namespace {

/// Cuts at commas that stand outside brackets and quotes.
std::vector<std::string> items(const std::string& text) {
  std::vector<std::string> result(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      quote = c == quote ? '\0' : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == ']') {
      depth += c == '[' ? 1 : -1;
    }
    if (c == ',' && depth == 0 && quote == 0) {
      result.emplace_back();
    } else {
      result.back() += c;
    }
  }
  return result;
}

}  // namespace

std::vector<std::string> mesh_overrides(const std::string& mesh) {
  std::vector<std::string> overrides;
  for (const comm::Axis axis : comm::all_axes) {
    overrides.push_back(fmt::format("mesh.{}=1", name(axis)));
  }
  std::set<std::string> keys;
  for (const std::string& item : items(mesh)) {
    std::string key = item.substr(0, item.find('='));
    if (key.empty() || key.size() == item.size()) {
      throw UserError(ExitCode::config,
                      format_message("\"{}\" has no value (a mesh is KEY=VALUE,... of [mesh], "
                                     "other keys with their table); write for instance dp=2,tp=2",
                                     item));
    }
    const std::string table = key.find('.') == std::string::npos ? "mesh." : "";
    key = table + key;
    // Of one key's two values one would be dropped without a word.
    if (!keys.insert(key).second) {
      throw UserError(
          ExitCode::config,
          format_message("{} stands there twice (it has one value); leave one out", key));
    }
    overrides.push_back(table + item);
  }
  return overrides;
}

}  // namespace fourfold::runfile
