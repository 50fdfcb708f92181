# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A plain cluster: Ethernet, Debian's or one's own MPICH. An example; copy and change it.

# MPICH and Slurm meet over PMI-2. Without it every task would be rank 0 of 1 (fourfold refuses that with code 78).
export FOURFOLD_MPI=pmi2
# One interface for MPI's traffic, where a node has several:
#   export UCX_NET_DEVICES=eth0
