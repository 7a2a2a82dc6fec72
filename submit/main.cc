// dmlc-submit starts a distributed job: N copies of a command that find each other through a tracker.
#include "submit/job/program.h"

int main(int argc, char** argv) {
  return warren::submit::RunProgram(argc, argv);
}
