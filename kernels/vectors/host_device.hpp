// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What marks small functions that hosts and devices call alike, in files that need no Kokkos.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define FOURFOLD_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define FOURFOLD_HOST_DEVICE [[gnu::always_inline]] inline
#endif
