// One of the files of --log-dir. What cannot be written is lost, with a warning: no job fails for that.
#pragma once

#include <string>
#include <string_view>

#include "posix/descriptor.h"

namespace warren::submit {

class KeptLog {
 public:
  /// Begins the file anew, for its user alone. Throws std::runtime_error naming it if it cannot be written.
  explicit KeptLog(std::string path);

  /// At once. After a failure nothing more is written.
  void Write(std::string_view bytes);

 private:
  std::string path_;
  posix::Descriptor file_;
};

}  // namespace warren::submit
