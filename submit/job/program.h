// The whole program dmlc-submit, from its command line to its exit code. Called by the main function of
// dmlc-submit, and by programs that add a cluster (cluster/clusters.h).
#pragma once

namespace warren::submit {

int RunProgram(int argc, char** argv);

}  // namespace warren::submit
