# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# HPE Cray EX with Slingshot and Cray MPICH. An example; copy and change it.

# module load PrgEnv-gnu cray-mpich fourfold

export FOURFOLD_MPI=cray_shasta
# fourfold moves device memory through NCCL, and two libraries on one device get in each other's way.
export MPICH_GPU_SUPPORT_ENABLED=0
# NCCL over libfabric; without this it would quietly take TCP.
export NCCL_NET="AWS Libfabric"
export NCCL_SOCKET_IFNAME=hsn
# Registrations of memory that NCCL and the allocator change behind libfabric's back.
export FI_MR_CACHE_MONITOR=userfaultfd
export FI_CXI_DISABLE_HOST_REGISTER=1
