// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fourfold::program {

/// What hangup_was_ignored() answers is asked here, as the first that a program does.
void ask_about_hangup(int argc, char** argv, char** environment);

}  // namespace fourfold::program
