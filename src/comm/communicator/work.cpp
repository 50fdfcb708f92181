// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/work.hpp>

#include <exception>
#include <string>

namespace fourfold::comm {
namespace {

/// The transport remembers the failure and every later operation of this rank throws it, so going
/// on here hides nothing.
void wait_in_destructor(Work::Operation& operation) noexcept {
  try {
    operation.wait({});
  } catch (const std::exception& error) {
    log::local(log::Level::error,
               format_message("while an operation that nobody waited for was finished: {}",
                              MadeLines{error.what()}));
  }
}

}  // namespace

Work& Work::operator=(Work&& other) noexcept {
  if (this != &other) {
    if (operation_) {
      wait_in_destructor(*operation_);
    }
    operation_ = std::move(other.operation_);
  }
  return *this;
}

Work::~Work() {
  if (operation_ && std::uncaught_exceptions() == 0) {
    wait_in_destructor(*operation_);
  }
}

void Work::wait(device::StreamRef stream) {
  if (operation_) {
    operation_->wait(stream);
    operation_.reset();
  }
}

bool Work::mark_end(device::TimedEvent& end) {
  return operation_ && operation_->mark_end(end);
}

bool Work::test() {
  return !operation_ || operation_->test();
}

}  // namespace fourfold::comm
