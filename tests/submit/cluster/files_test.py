"""--files and --archives: the files in the processes' working directory, during the job and after it."""

import os
import signal
import subprocess
import unittest

from submit_case import LIMIT_S, SubmitCase
from warren_testing import wait_for


class Files(SubmitCase):
    def setUp(self):
        super().setUp()
        self.elsewhere = self.file("elsewhere")
        self.elsewhere.mkdir()
        (self.elsewhere / "a file").write_text("content\n")
        (self.elsewhere / "tool").write_text("#!/bin/sh\necho tool\n")
        (self.elsewhere / "tool").chmod(0o755)
        inside = self.elsewhere / "inside"
        inside.mkdir()
        (inside / "x").write_text("packed\n")
        subprocess.run(["tar", "-czf", "../data.tar.gz", "x"], cwd=inside, check=True)
        subprocess.run(["python3", "-m", "zipfile", "-c", "../z.zip", "x"], cwd=inside, check=True)
        self.before = {"elsewhere"}

    def names(self):
        return {path.name for path in self.directory.iterdir()}

    def test_they_are_there_during_the_job_and_gone_after_it(self):
        process = self.submit("--num-workers", 2, "--files", self.elsewhere / "a file", "--files", self.elsewhere / "tool",
                              "--archives", self.elsewhere / "data.tar.gz", "sh", "-c", "cat 'a file' data/x; ./tool")  # fmt: skip
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(sorted(process.out.split("\n")[:-1]),
                         sorted(f"[{i}] {line}" for i in (0, 1) for line in ("content", "packed", "tool")))  # fmt: skip
        self.assertEqual(self.names(), self.before)

    def test_a_zip_is_unpacked_where_unzip_is(self):
        process = self.submit("--num-workers", 1, "--archives", self.elsewhere / "z.zip", "cat", "z/x")
        if "unzip is not installed here" in process.err:
            self.skipTest("there is no unzip here")
        self.assertEqual(process.out, "[0] packed\n")

    def test_they_are_gone_after_a_failure_and_an_interrupt(self):
        options = ["--num-workers", 1, "--files", self.elsewhere / "tool", "--archives", self.elsewhere / "data.tar.gz"]
        self.assertEqual(self.submit(*options, "sh", "-c", "exit 3").returncode, 3)
        self.assertEqual(self.names(), self.before)
        process = self.start(*options, "sh", "-c", "echo r > elsewhere/ready; exec sleep 600")
        self.wait_for_files("elsewhere/ready")
        self.assertIn("tool", self.names())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(self.names(), self.before)

    def test_they_are_gone_after_dmlc_submit_was_killed(self):
        options = ["--num-workers", 1, "--files", self.elsewhere / "a file", "--archives", self.elsewhere / "data.tar.gz"]
        process = self.start(*options, "sh", "-c", "echo r > elsewhere/ready; exec sleep 600")
        self.wait_for_files("elsewhere/ready")
        self.assertEqual(self.names(), {*self.before, "a file", "data"})
        process.kill()
        process.communicate(timeout=LIMIT_S)
        wait_for(lambda: self.names() == self.before, LIMIT_S, "the end of the files")

    def test_what_is_there_already_stays_and_is_not_overwritten(self):
        self.file("tool").write_bytes((self.elsewhere / "tool").read_bytes())
        process = self.submit("--num-workers", 1, "--files", self.elsewhere / "tool", "true")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertTrue(self.file("tool").exists())
        self.file("tool").write_text("mine")
        process = self.submit("--num-workers", 1, "--files", self.elsewhere / "a file", "--files", self.elsewhere / "tool",
                              "true")  # fmt: skip
        self.assertEqual(process.returncode, 2)
        self.assertIn("the 'tool' in this directory is not the same file as", process.err)
        self.assertEqual(self.file("tool").read_text(), "mine")
        self.assertFalse(self.file("a file").exists())
        self.file("data").mkdir()
        process = self.submit("--num-workers", 1, "--archives", self.elsewhere / "data.tar.gz", "true")
        self.assertEqual(process.returncode, 2)
        self.assertIn("which already exists", process.err)

    def test_what_cannot_be_shipped_is_named(self):
        (self.elsewhere / "bad.tar").write_text("no archive")
        for options, said in [
            (["--files", "nonesuch"], "--files: 'nonesuch' does not exist"),
            (["--files", "elsewhere"], "pass a directory as an archive"),
            (["--archives", "elsewhere/tool"], "is not a supported archive"),
            (["--archives", "elsewhere/bad.tar"], "cannot be unpacked"),
            (["--files", "elsewhere/tool", "--files", "elsewhere/inside/../../elsewhere/inside/tool"], "does not exist"),
        ]:
            process = self.submit("--num-workers", 1, *options, "touch", "started")
            self.assertIn(process.returncode, (1, 2))
            self.assertIn(said, process.err)
        self.assertEqual(self.names(), self.before)
        os.link(self.elsewhere / "tool", self.elsewhere / "inside/tool")
        process = self.submit("--num-workers", 1, "--files", "elsewhere/tool", "--files", "elsewhere/inside/tool", "true")
        self.assertEqual(process.returncode, 2)
        self.assertIn("would both be called tool", process.err)


if __name__ == "__main__":
    unittest.main()
