// The whole of dmlc-submit, from its command line to its exit code: for its main, and for that of a program
// which adds a cluster of its own (cluster/clusters.h).
#pragma once

namespace warren::submit {

int RunProgram(int argc, char** argv);

}  // namespace warren::submit
