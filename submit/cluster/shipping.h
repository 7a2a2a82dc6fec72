// --files, --archives and --auto-file-cache, with the same meaning on every cluster: the working directory of
// each process contains the files under their own names, and each archive's content in a directory named like
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

/// An archive and the directory into which it is unpacked.
struct Archive {
  std::string path;
  std::string directory;  ///< "data" for "x/data.tar.gz"
};

struct Shipment {
  std::vector<std::string> files;  ///< absolute paths; their file names differ
  std::vector<Archive> archives;   ///< with absolute paths
  /// Files named by the command that are too big for the cluster to ship; they must already exist where the
  /// processes run.
  std::vector<std::string> too_big;
  /// The command. The paths of files that are shipped because the command names them are replaced by names in
  /// the working directory.
  std::vector<std::string> command;
};

/// The files to ship. Throws UsageError if a file is missing or is not a regular file, if an archive's format
/// is not supported, or if two different files have the same name.
Shipment PlanShipment(const Options& options);

/// Keeps the files and the unpacked archives of a shipment in the current directory while this object exists.
/// A file that already exists there with the same content is neither replaced nor removed.
class PlacedFiles {
 public:
  /// Throws UsageError if a different file of the same name, or the directory of an archive, exists, and
  /// std::runtime_error if a file cannot be copied or unpacked; all files placed so far are then removed.
  explicit PlacedFiles(const Shipment& shipment);
  ~PlacedFiles();
  /// The shell command that removes the placed files and directories; empty if none were placed.
  std::string Removal() const;
  PlacedFiles(const PlacedFiles&) = delete;
  PlacedFiles& operator=(const PlacedFiles&) = delete;

 private:
  void PlaceAll(const Shipment& shipment);
  void RemoveAll();

  std::vector<std::string> placed_;
};

}  // namespace warren::submit
