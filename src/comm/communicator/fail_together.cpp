// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

namespace fourfold::comm {
namespace {

constexpr std::string_view users = "user";

/// A failure as it travels: "CODE CLASS PLACE\nMESSAGE". The place is empty for users' errors.
std::string packed(const Failure& failure) {
  const std::string place =
      failure.is_users || failure.where.line() == 0
          ? ""
          : fmt::format("{}:{}", failure.where.file_name(), failure.where.line());
  return fmt::format("{} {} {}\n{}", static_cast<int>(failure.code),
                     failure.is_users ? users : "system", place, failure.message);
}

/// What packed() has packed; its message says the place.
Failure unpacked(std::string_view packed_failure) {
  const std::size_t line_end = packed_failure.find('\n');
  std::string_view head = packed_failure.substr(0, line_end);
  int number = 0;
  std::from_chars(head.data(), head.data() + head.size(), number);
  head.remove_prefix(head.find(' ') + 1);
  const std::string_view place = head.substr(head.find(' ') + 1);
  std::string message(packed_failure.substr(line_end + 1));
  if (!place.empty()) {
    message += fmt::format(" (noticed at {})", place);
  }
  return {static_cast<ExitCode>(number), head.starts_with(users), std::move(message), {}};
}

}  // namespace

std::optional<Failure> capture_failure(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const UserError& error) {
    return Failure{error.code(), true, error.what(), error.where()};
  } catch (const Error& error) {
    return Failure{error.code(), false, error.what(), error.where()};
  } catch (const std::bad_alloc&) {
    return Failure{ExitCode::config, true, out_of_memory_message(), {}};
  } catch (const std::system_error& error) {
    const bool is_thread = error.code() == std::errc::resource_unavailable_try_again;
    return Failure{is_thread ? ExitCode::config : ExitCode::internal,
                   is_thread,
                   is_thread ? no_thread_message(error.what()) : error.what(),
                   {}};
  } catch (const std::exception& error) {
    return Failure{ExitCode::internal, false, error.what(), {}};
  }
}

void throw_if_any_failed(Communicator& communicator, const std::optional<Failure>& mine) {
  const std::int64_t failures = mine ? 1 : 0;
  if (all_reduce_scalar(communicator, failures, ReduceOp::max) == 0) {
    return;
  }
  const auto messages = all_gather_text(communicator, mine ? packed(*mine) : std::string());
  constexpr int shown = 4;
  std::optional<Failure> decides;
  std::string text;
  int failed = 0;
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    if (messages[rank].empty()) {
      continue;
    }
    const Failure report = unpacked(messages[rank]);
    if (failed < shown) {
      text += format_message("{}rank {}: {}", MadeLines{failed == 0 ? "" : "\n  "}, rank,
                             MadeLines{report.message});
    }
    if (!decides || (decides->is_users && !report.is_users)) {
      decides = report;
    }
    ++failed;
  }
  if (failed > shown) {
    text += fmt::format("\n  and {} more ranks", failed - shown);
  }
  // What all of them say, as of one run file that they read, is said once.
  const bool are_alike = std::ranges::count(messages, messages.front()) == std::ssize(messages);
  if (messages.size() == 1 || (are_alike && mine->is_users)) {
    text = mine->message;
  }
  const bool has_place = mine && mine->where.line() != 0;
  const std::source_location where = has_place ? mine->where : std::source_location::current();
  if (decides->is_users) {
    throw UserError(decides->code, text, where);
  }
  throw SystemError(decides->code, text, where);
}

void collective_try(Communicator& communicator, const std::function<void()>& work) {
  throw_if_any_failed(communicator, capture_failure(work));
}

void run_on_root(Communicator& communicator, const std::function<void()>& work) {
  collective_try(communicator, [&] {
    if (communicator.rank() == 0) {
      work();
    }
  });
}

}  // namespace fourfold::comm
