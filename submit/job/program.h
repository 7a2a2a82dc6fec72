// All of dmlc-submit, from its command line to its exit code: for its own main, and for the main of a program
// that adds a cluster (cluster/clusters.h).
#pragma once

namespace warren::submit {

int RunProgram(int argc, char** argv);

}  // namespace warren::submit
