// Makes this process run out of descriptors.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace warren::testing {

/// While the object lives, this process can open at most `spare` more files.
class NoDescriptorLeft {
 public:
  explicit NoDescriptorLeft(int spare = 0) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const rlimit low{static_cast<rlim_t>(lowest + spare), before_.rlim_max};
    close(lowest);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  ~NoDescriptorLeft() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptorLeft(const NoDescriptorLeft&) = delete;
  NoDescriptorLeft& operator=(const NoDescriptorLeft&) = delete;

 private:
  rlimit before_{};
};

}  // namespace warren::testing
