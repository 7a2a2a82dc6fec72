// --files, --archives and --auto-file-cache, with one meaning on every cluster: each process finds the files
// in the directory it runs in, under their own names, and the content of each archive in a directory that is
// called as the archive is without its suffix.
//
// Where the processes run in this directory, or in one that all hosts share, or in a copy of it, the files
// are put here before the job and removed after it. Where they run in directories of their own (yarn), the
// files are sent along, and with --auto-file-cache those that the command names, too.
#pragma once

#include <string>
#include <vector>

#include "submit/options.h"

namespace warren::submit {

/// Something to be unpacked, and where.
struct Archive {
  std::string path;
  std::string directory;  ///< "data" of "x/data.tar.gz"
};

struct Shipment {
  std::vector<std::string> files;  ///< full paths, no two of one name
  std::vector<Archive> archives;   ///< of full paths
  /// Files that the command names and that the cluster cannot carry: they have to be there.
  std::vector<std::string> too_big;
  /// The command, in which files that are sent along for it go by their names alone.
  std::vector<std::string> command;
};

/// What has to be shipped. Throws UsageError for a file that is not there, or is not what it should be.
Shipment PlanShipment(const Options& options);

/// The files of a shipment in the current directory, as long as this lives. What is there already and is the
/// same stays.
class PlacedFiles {
 public:
  /// Throws UsageError when something else of that name is there, std::runtime_error when one cannot be
  /// copied or unpacked; nothing is left behind then.
  explicit PlacedFiles(const Shipment& shipment);
  ~PlacedFiles();
  /// The commands of a shell that remove them; empty: there are none.
  std::string Removal() const;
  PlacedFiles(const PlacedFiles&) = delete;
  PlacedFiles& operator=(const PlacedFiles&) = delete;

 private:
  void PlaceAll(const Shipment& shipment);
  void RemoveAll();

  std::vector<std::string> placed_;
};

}  // namespace warren::submit
