// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The reference bodies: plain, serial, obviously right; every kernel of this room again under the
/// same name and signature in namespace reference, for f32 (and, where storage matters, bf16).
/// Tests compare the fast bodies with these. Not for use in a run.
#pragma once

#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/attention.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/kernels/embedding.hpp>
#include <fourfold/kernels/matmul.hpp>
#include <fourfold/kernels/norm.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/kernels/rotary.hpp>
