// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a user of this program can do where something is short. Code that several programs share
/// knows what is wrong; which keys and options there are to mend it only the program knows, so that
/// its main says it here.
#pragma once

#include <string>

namespace fourfold {

/// Each is a piece of a sentence: "use a smaller --micro-batch".
struct Remedies {
  std::string host_memory = "free some there, or run it where there is more";
  std::string device_memory = "free some there, or run it on a GPU that has more";
};

/// Call it before other threads are there. What is not called keeps what any program can do.
void set_remedies(Remedies remedies);
const Remedies& remedies() noexcept;

/// The message for memory of this host that was refused.
std::string out_of_memory_message();
/// Of a thread that cannot be started: too many processes, or no memory for its stack.
/// @param why  what the system says
std::string no_thread_message(const std::string& why);

}  // namespace fourfold
