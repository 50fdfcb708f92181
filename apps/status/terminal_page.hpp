// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

namespace fourfold::status_program {

/// A page that is drawn over itself on a terminal, on its second screen, so that nothing scrolls
/// away. Signals that end or stop the program (Ctrl-C, Ctrl-Z) find the terminal as it was before.
/// One per process, on stdout.
class TerminalPage {
 public:
  TerminalPage();
  ~TerminalPage();
  TerminalPage(const TerminalPage&) = delete;
  TerminalPage& operator=(const TerminalPage&) = delete;

  /// Whether stdout is a terminal on which that can be done.
  static bool is_possible();

  /// Lines on the terminal as it is now; at least 1.
  static std::size_t rows();

  /// What does not fit is cut off.
  void draw(const std::vector<std::string>& lines);

  /// Waits, less if the size of the terminal changes. A signal that ends the program does so here.
  void wait(double seconds);

  /// Back to the first screen.
  void leave();

 private:
  void enter();
  void obey(int signal_number);

  sigset_t usual_signals_ = {};
  bool on_second_screen_ = false;
};

}  // namespace fourfold::status_program
