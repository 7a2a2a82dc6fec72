// The file from which a tracker that is started again takes a job over: rabit-tracker --state FILE. A header
// with the port, the number of workers and the job's token, then a line for each change (note.h), appended as
// it happens. What was written is safe from the death of the tracker's process, not from that of its machine.
// Only its owner may read the file, because it holds the token.
//
// A write that fails (a full disk) ends nothing: what could not be written is kept, and written with a later
// change. Meanwhile the file is marked as incomplete, and no tracker takes the job over from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracker/note.h"
#include "wire/job_token.h"

namespace warren::tracker {

class StateFile {
 public:
  /// Opens the file or makes it, and reads what is in it. Throws std::runtime_error that names the file: it
  /// cannot be opened, another tracker has it, or it is something else.
  explicit StateFile(std::string path);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  /// Whether a tracker before this one has begun the job.
  bool begun() const { return port_ != 0; }
  /// The port on which that one listened.
  std::uint16_t port() const { return port_; }
  /// The workers that it was told to wait for.
  int num_workers() const { return num_workers_; }
  /// What it knew, in order. Lines that were cut off by its death are not among them.
  const std::vector<Note>& notes() const { return notes_; }

  /// The job's token; none in a file of a tracker that knew none.
  const std::optional<wire::JobToken>& token() const { return token_; }

  /// Begins the file of a new job. Returns what Add returns.
  [[nodiscard]] std::string Begin(std::uint16_t port, int num_workers, const wire::JobToken& token);
  /// Appends. Returns a warning to show when writing begins to fail, and when the file is complete again;
  /// otherwise an empty string.
  [[nodiscard]] std::string Add(const Note& note);
  /// The job is over.
  void Remove();

 private:
  void Read();
  void ReadHeader(const std::string& line);
  std::string Append(const std::string& line);
  /// The error of the system, or 0.
  int WritePending();
  void Mark(char version);
  [[noreturn]] void Throw(const std::string& what) const;

  std::string path_;
  int descriptor_ = -1;
  std::uint16_t port_ = 0;
  int num_workers_ = 0;
  std::optional<wire::JobToken> token_;
  std::vector<Note> notes_;
  std::int64_t size_ = 0;  ///< bytes in the file
  std::string pending_;    ///< bytes that follow them and could not be written
  bool fails_ = false;
};

}  // namespace warren::tracker
