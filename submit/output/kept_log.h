// One of the files of --log-dir. If writing fails, a warning is logged and all further text is lost; the job
// continues.
#pragma once

#include <string>
#include <string_view>

#include "posix/descriptor.h"

namespace warren::submit {

class KeptLog {
 public:
  /// Truncates the file and makes it private to the user. Throws a std::runtime_error that names the file if
  /// it cannot be written.
  explicit KeptLog(std::string path);

  /// Writes immediately. After a failure, nothing more is written.
  void Write(std::string_view bytes);

 private:
  std::string path_;
  posix::Descriptor file_;
};

}  // namespace warren::submit
