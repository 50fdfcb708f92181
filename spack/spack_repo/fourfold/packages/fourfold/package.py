# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
try:  # Spack 1.0 and later keeps its build systems in the builtin package repository
    from spack_repo.builtin.build_systems.cmake import CMakePackage

    knows_gpus = True
except ImportError:  # before that they come with spack.package
    knows_gpus = False  # no Kokkos there knows a CUDA that is new enough
from spack.package import *


class Fourfold(CMakePackage):
    """Trains transformer language models on machines from a laptop to a cluster: MPI starts it, Kokkos and the vendors'
    libraries compute, HDF5 keeps checkpoints that restart on any number of ranks.

    There is no release to download yet: the sources are the clone that this recipe is part of (spack.yaml there, or
    `spack develop --path CLONE fourfold@main`)."""

    # ADDRESS:recipe (written by scripts/address, as the next one)

    license("Apache-2.0")

    # ADDRESS:version
    version("main")

    variant("openmp", default=True, description="Kernels use all threads of a rank (else one rank per core is best)")
    variant("native", default=False, description="Compile with -march=native instead of for Spack's target")
    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:")
    depends_on("hdf5@1.10: +mpi")
    depends_on("kokkos@3.4: +serial")
    depends_on("kokkos +openmp", when="+openmp")
    if not knows_gpus:
        depends_on("onednn@2.6: cpu_runtime=omp")
    else:
        # One kind of GPU at a time, as Kokkos has it.
        gpus = ("80", "90", "100")
        variant("cuda", default=False, description="Compute on NVIDIA GPUs")
        variant("cuda_arch", default="none", values=("none",) + gpus, multi=False, when="+cuda",
                description="Compute capability: 80 for A100, 90 for H100 and H200, 100 for B200")
        depends_on("onednn@2.6: cpu_runtime=omp", when="~cuda")
        with when("+cuda"):
            conflicts("cuda_arch=none", msg="name the GPU: cuda_arch=80, 90 or 100")
            depends_on("cmake@3.25.2:", type="build")
            depends_on("cuda@12.8:")
            depends_on("nccl@2.27.3:")
            depends_on("cudnn@9:")
            depends_on("cudnnfrontend@1.9:", type="build")
        for gpu in gpus:
            with when("+cuda cuda_arch=" + gpu):
                # Up to 4.7.0 it does not know CUDA 13; without CMake's own CUDA it would want a compiler wrapper.
                depends_on("kokkos@4.7.1: +cuda +cmake_lang cxxstd=20 cuda_arch=" + gpu)
                depends_on("nccl cuda_arch=" + gpu)
    depends_on("fmt@9:")
    depends_on("cli11@2.1:")
    depends_on("nlohmann-json@3.11:")
    depends_on("simdjson@3:")
    depends_on("tomlplusplus@3.3:")
    depends_on("xxhash@0.8:")
    depends_on("libaio@0.3.110:")
    depends_on("pcre2@10.40:")
    depends_on("utf8proc@2.5:")
    depends_on("sentencepiece@0.1.91:")
    with default_args(type=("build", "test")):
        depends_on("catch2@3:", when="+tests")
        depends_on("python@3.9:", when="+tests")
        depends_on("py-h5py@3:", when="+tests")
    variant("tests", default=False, description="Build the test suite, too")

    conflicts("%gcc@:11", msg="fourfold is written in C++20 as GCC 12 and Clang 16 know it")
    conflicts("%clang@:15", msg="fourfold is written in C++20 as GCC 12 and Clang 16 know it")

    sanity_check_is_file = ["bin/fourfold", "libexec/fourfold/fourfold-version"]

    def cmake_args(self):
        device = []
        if knows_gpus and self.spec.satisfies("+cuda"):
            device = [
                self.define("FOURFOLD_DEVICE", "cuda"),
                self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value),
                self.define("NCCL_ROOT", self.spec["nccl"].prefix),
                self.define("CUDNN_FRONTEND_ROOT", self.spec["cudnnfrontend"].prefix),
            ]
        return device + [
            self.define_from_variant("FOURFOLD_NATIVE", "native"),
            self.define_from_variant("FOURFOLD_TESTS", "tests"),
            self.define("FOURFOLD_BENCHMARKS", False),
            # Otherwise MPICH of the operating system could be found before the MPI of the spec.
            self.define("MPI_HOME", self.spec["mpi"].prefix),
            self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc),
            self.define("MPI_CXX_COMPILER", self.spec["mpi"].mpicxx),
            self.define("HDF5_ROOT", self.spec["hdf5"].prefix),
        ]

    def test_version(self):
        """the installed fourfold finds its programs"""
        fourfold = which(self.prefix.bin.fourfold)
        assert "libraries" in fourfold("version", output=str.split, error=str.split)
