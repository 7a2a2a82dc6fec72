// The file from which a tracker that is started again takes a job over: rabit-tracker --state FILE. A header
// with the port, the number of workers and the job's token, then a line for each change (note.h), appended as
// it happens. What was written is safe from the death of the tracker's process, not from that of its machine.
// The file is made for its owner's eyes alone, for the sake of the token.
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
  /// Where that one listened.
  std::uint16_t port() const { return port_; }
  /// The workers that it was told to wait for.
  int num_workers() const { return num_workers_; }
  /// What it knew, in order. Lines that were cut off by its death are not among them.
  const std::vector<Note>& notes() const { return notes_; }

  /// The job's token; none in a file of a tracker that knew none.
  const std::optional<wire::JobToken>& token() const { return token_; }

  /// Begins the file of a new job. Throws std::runtime_error.
  void Begin(std::uint16_t port, int num_workers, const wire::JobToken& token);
  /// Appends. Throws std::runtime_error when the disk is full, say.
  void Add(const Note& note);
  /// The job is over.
  void Remove();

 private:
  void Read();
  void ReadHeader(const std::string& line);
  void Append(const std::string& line);
  [[noreturn]] void Throw(const std::string& what) const;

  std::string path_;
  int descriptor_ = -1;
  std::uint16_t port_ = 0;
  int num_workers_ = 0;
  std::optional<wire::JobToken> token_;
  std::vector<Note> notes_;
};

}  // namespace warren::tracker
