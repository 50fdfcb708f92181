# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# InfiniBand with MPICH or Open MPI over UCX. An example; copy and change it.

# module load gcc openmpi hdf5 fourfold

# Open MPI from 2 on meets Slurm over PMIx; MPICH over pmi2. `srun --mpi=list` shows what this Slurm has.
export FOURFOLD_MPI=pmix
# The ports that MPI may use; `ibdev2netdev` lists them. Storage often has one of its own.
#   export UCX_NET_DEVICES=mlx5_0:1
#   export NCCL_IB_HCA=mlx5_0,mlx5_1
# Fail at once where the fast network is missing, rather than crawl over Ethernet.
export NCCL_NET=IB
