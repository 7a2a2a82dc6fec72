// The file from which a restarted tracker takes a job over: rabit-tracker --state FILE. It has a header with
// the port, the number of workers and the job's token, then one line per change (note.h), which is written as
// the change happens. The file survives the end of the tracker's process, but may be incomplete after a crash
// of its machine. Only its owner may read it, because it holds the token.
//
// A failed write (e.g. on a full disk) does not end the job: the unwritten lines are kept and written with a
// later change. Until then, the file is marked as incomplete, and no tracker takes the job over from it.
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
  /// Opens or creates the file and reads it. Throws std::runtime_error naming the file if it cannot be opened
  /// or read, is in use by another tracker, is marked as incomplete, or is not a valid state file.
  explicit StateFile(std::string path);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  /// Whether a previous tracker has begun the job.
  bool begun() const { return port_ != 0; }
  /// The port on which the previous tracker listened.
  std::uint16_t port() const { return port_; }
  /// The number of workers of the job, as text: "4", or "1:4" if it is elastic.
  const std::string& workers() const { return workers_; }
  /// The previous tracker's notes, in order. A last line that is incomplete, because that tracker died while
  /// writing it, is left out.
  const std::vector<Note>& notes() const { return notes_; }

  /// The job's token; std::nullopt if the file has none.
  const std::optional<wire::JobToken>& token() const { return token_; }

  /// Writes the header of a new job. Returns the same as Add.
  [[nodiscard]] std::string Begin(std::uint16_t port, const std::string& workers,
                                  const wire::JobToken& token);
  /// Appends a note. Returns a message for the user if writing begins to fail or the file is complete again,
  /// else an empty string.
  [[nodiscard]] std::string Add(const Note& note);
  /// Deletes the file, once the job is over.
  void Remove();

 private:
  void Read();
  void ReadHeader(const std::string& line);
  std::string Append(const std::string& line);
  /// Returns 0 or, on failure, an errno value.
  int WritePending();
  void Mark(char version);
  [[noreturn]] void Throw(const std::string& what) const;

  std::string path_;
  int descriptor_ = -1;
  std::uint16_t port_ = 0;
  std::string workers_;
  std::optional<wire::JobToken> token_;
  std::vector<Note> notes_;
  std::int64_t size_ = 0;  ///< bytes in the file
  std::string pending_;    ///< bytes that could not be written yet, to be appended
  bool fails_ = false;
};

}  // namespace warren::tracker
