# The ways to find peers without a tracker. bootstrap/CMakeLists.txt includes this file and adds
# ${WARREN_MPI_BOOTSTRAP_SOURCES} to its sources.
set(WARREN_MPI_BOOTSTRAP_SOURCES
  mpi_bootstrap.cc
  pmi_bootstrap.cc
  pmi_client.cc
  slurm_bootstrap.cc
  slurm_meeting.cc
  slurm_step.cc
  slurm_stream.cc)
