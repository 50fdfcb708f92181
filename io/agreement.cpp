// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "agreement.hpp"

#include <fmt/format.h>

namespace fourfold::io {

std::optional<Failure> attempt(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    return Failure{error.code(), error.what()};
  } catch (const std::exception& error) {
    return Failure{ExitCode::internal, error.what()};
  }
}

void agree(comm::Communicator& communicator, const std::optional<Failure>& mine) {
  const std::int64_t code = mine ? static_cast<std::int64_t>(mine->code) : 0;
  if (comm::all_reduce_scalar(communicator, code, comm::ReduceOp::max) == 0) {
    return;
  }
  const auto messages = comm::all_gather_text(
      communicator, mine ? fmt::format("{} {}", code, mine->message) : std::string());
  constexpr int shown = 4;
  ExitCode first_code = ExitCode::internal;
  std::string text;
  int failed = 0;
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    if (messages[rank].empty()) {
      continue;
    }
    const std::size_t space = messages[rank].find(' ');
    const std::string message = messages[rank].substr(space + 1);
    if (failed == 0) {
      first_code = static_cast<ExitCode>(std::stoi(messages[rank]));
    }
    if (failed < shown && messages.size() == 1) {
      text = message;
    } else if (failed < shown) {
      text += fmt::format("{}rank {}: {}", failed == 0 ? "" : "\n", rank, message);
    }
    ++failed;
  }
  if (failed > shown) {
    text += fmt::format("\nand {} more ranks", failed - shown);
  }
  throw SystemError(first_code, text);
}

}  // namespace fourfold::io
