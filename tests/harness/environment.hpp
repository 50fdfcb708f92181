// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::harness {

/// What this process has in its environment for as long as this lives, and nothing else: a job's or
/// a launcher's variables do not depend on who runs the test.
class Environment {
 public:
  Environment(std::initializer_list<std::pair<const std::string, std::string>> variables)
      : Environment(std::map(variables)) {}
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (char** one = environ; *one != nullptr; ++one) {
      before_.emplace_back(*one);
    }
    ::clearenv();
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Environment() {
    ::clearenv();
    for (const std::string& one : before_) {
      const std::size_t equals = one.find('=');
      ::setenv(one.substr(0, equals).c_str(), one.c_str() + equals + 1, 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::string> before_;
};

}  // namespace fourfold::harness
