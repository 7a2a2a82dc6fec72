# The recipe for Spack 1.0 and later, to be placed in a package repository as repos/.../packages/warren/package.py
# (packaging/README.md). `spack checksum warren` adds the version of a release.
from spack.package import *
from spack_repo.builtin.build_systems.cmake import CMakePackage


class Warren(CMakePackage):
    """Starts distributed jobs of XGBoost, LightGBM, PyTorch and rabit over ssh, MPI, Slurm, Grid Engine and Kubernetes,
    with a tracker and an allreduce engine, librabit."""

    homepage = "https://example.org/warren"
    git = "https://example.org/warren.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("cuda", default=False, description="librabit_cuda: collectives on GPUs by NCCL")
    variant("mpi", default=False, description="The plugin by which librabit communicates over MPI")
    variant("python", default=True, description="The Python package warren")
    variant("xgboost", default=False, description="xgb-train, and XGBoost's matrices for warren::data")

    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")

    # Needed by users of the CMake package, too.
    depends_on("boost@1.74:", type=("build", "link"))
    depends_on("fmt@8.1:")
    depends_on("spdlog@1.9.2:")
    depends_on("dmlc-core")
    depends_on("bzip2")
    depends_on("openssl@3:", type=("build", "run"))  # loaded when a job is encrypted
    depends_on("xxhash")
    depends_on("xz")
    depends_on("yaml-cpp@0.7:")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("cli11@2.1:", type="build")
    depends_on("fast-float@3:", type="build")
    depends_on("nlohmann-json@3.10:", type="build")

    depends_on("cuda@12.5:", when="+cuda")
    depends_on("nccl", when="+cuda")
    depends_on("mpi", when="+mpi")
    depends_on("xgboost@1.7:", when="+xgboost")

    extends("python@3.9:", when="+python")
    depends_on("py-numpy@1.21:", type="run", when="+python")
    # The extension module for fast allreduce calls is built once for all versions from 3.11 on.
    depends_on("python@3.11:", type=("build", "link", "run"), when="+python")

    conflicts("%gcc@:10")
    conflicts("%clang@:13")
    conflicts("platform=darwin", msg="Warren needs Linux")
    conflicts("platform=windows", msg="Warren needs Linux")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("WARREN_TESTS", False),
            self.define("WARREN_BENCH", False),
            self.define("WARREN_FETCH", False),
            self.define_from_variant("WARREN_CUDA", "cuda"),
        ]
        # OFF, unlike NOTFOUND, keeps CMake from searching, so it does not use an MPI or XGBoost of the machine.
        for name in ("openmpi", "mpich"):
            args.append(self.define("WARREN_MPICC_" + name, self.spec["mpi"].mpicc if self.spec.satisfies("+mpi") else "OFF"))
        if self.spec.satisfies("~xgboost"):
            args.append(self.define("XGBOOST_LIBRARY", "OFF"))
        return args

    @run_after("install")
    def install_python(self):
        """Installs the Python package, with links to the programs and libraries where the wheel has them."""
        if self.spec.satisfies("~python"):
            return
        package = join_path(python_platlib, "warren")
        install_tree("python/src/warren", package)
        for folder in ("bin", "lib"):
            mkdirp(join_path(package, "_native", folder))
        for name in ("dmlc-submit", "rabit-tracker", "rabit-data"):
            symlink(self.prefix.bin.join(name), join_path(package, "_native", "bin", name))
        for name in ("librabit.so", "librabit_xgboost.so"):
            library = find(self.prefix, name, recursive=True)[0]
            symlink(library, join_path(package, "_native", "lib", name))
        for name in ("libwarren_data.so", "warren_allreduce.abi3.so"):
            install(join_path(self.build_directory, "lib", name), join_path(package, "_native", "lib"))
