// --files, --archives and --auto-file-cache, with the same meaning on every cluster: each process finds the
// files in its working directory under their own names, and each archive's content in a directory named like
// the archive without its suffix.
//
// If the processes run in the current directory or in a copy of it, the files are placed in the current
// directory before the job and removed afterwards. If they run in their own directories (yarn, kubernetes),
// the files are sent along, including, with --auto-file-cache, those that the command names.
#pragma once

#include <string>
#include <vector>

#include "submit/options/options.h"

namespace warren::submit {

/// An archive and the directory it is unpacked into.
struct Archive {
  std::string path;
  std::string directory;  ///< "data" for "x/data.tar.gz"
};

struct Shipment {
  std::vector<std::string> files;  ///< full paths with distinct names
  std::vector<Archive> archives;   ///< with full paths
  /// Files named by the command that are too big for the cluster to ship; they must already exist where the
  /// processes run.
  std::vector<std::string> too_big;
  /// The command, which refers to files sent along by their names only.
  std::vector<std::string> command;
};

/// The files to ship. Throws UsageError if a file is missing or has the wrong type, or if two files have the
/// same name.
Shipment PlanShipment(const Options& options);

/// Keeps the files and the unpacked archives of a shipment in the current directory while this object exists.
/// Identical existing files are left alone.
class PlacedFiles {
 public:
  /// Throws UsageError if a different file of the same name, or the directory of an archive, exists, and
  /// std::runtime_error if a file cannot be copied or unpacked; all files placed so far are then removed.
  explicit PlacedFiles(const Shipment& shipment);
  ~PlacedFiles();
  /// The shell command that removes the placed files; empty if there are no such files.
  std::string Removal() const;
  PlacedFiles(const PlacedFiles&) = delete;
  PlacedFiles& operator=(const PlacedFiles&) = delete;

 private:
  void PlaceAll(const Shipment& shipment);
  void RemoveAll();

  std::vector<std::string> placed_;
};

}  // namespace warren::submit
