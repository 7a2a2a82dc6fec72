"""Tests of scripts/comments: which comments it reports as odd, where it finds comments, and when it fails."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from warren_testing import SOURCE, load_script

comments = load_script("scripts/comments")

PAIRS = (("Of a queue, while it runs.", "A command of the queue that is running."),
         ("Who waits runs the cycles meanwhile.", "The waiting thread runs the cycles."),
         ("That this thread runs on now.", "The core this thread runs on."),
         ("None: nobody.", "The first rank lost, or nullopt."),
         ("Made where there is one of its own.", "Made unless the job has one."),
         ("The slot whose owner is none.", "The slot's owner, or null if there is none."),
         ("It goes on without a word.", "It goes on silently."))


class Comments(unittest.TestCase):
    def test_fragments_without_a_subject_are_odd_and_their_plain_forms_are_not(self):
        for odd, plain in PAIRS:
            with self.subTest(odd):
                self.assertTrue(comments.is_odd(odd))
                self.assertFalse(comments.is_odd(plain))
        self.assertFalse(comments.is_odd("Of course the last one counts."))
        self.assertFalse(comments.is_odd("Offsets of slices."))

    def test_comments_are_found_with_their_first_lines(self):
        source = "int a;  // Of one.\n/// Two\n/// lines.\nint b; ///< that\nconst char* c = \"http://x\";\n"
        self.assertEqual(list(comments.source_comments(source)), [(1, "Of one."), (2, "Two lines."), (4, "that")])
        python = '"""Of a module.\n\nMore."""\n\n\ndef f():\n    """One."""\n    return "# none"  #: Of f.\n'
        self.assertEqual(list(comments.python_comments(python)), [(1, "Of a module."), (7, "One."), (8, "Of f.")])

    def test_more_than_the_limit_is_an_error_that_names_each(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "scripts").mkdir()
            shutil.copy2(SOURCE / "scripts/comments", tree / "scripts")
            (tree / "a.cc").write_text("// Of a queue.\nint a;\n// The rank.\nint b;\n", encoding="utf-8")
            (tree / "not_listed.cc").write_text("// Of a queue.\n", encoding="utf-8")
            for command in (["init", "-q"], ["add", "a.cc"]):
                subprocess.run(["git", *command], cwd=tree, check=True)
            for limit, code, shown in ((500, 0, ""), (499, 1, "a.cc:1: Of a queue.\n")):
                run = subprocess.run([tree / "scripts/comments", "--limit", str(limit)], capture_output=True, text=True)
                self.assertEqual((run.returncode, run.stdout),
                                 (code, f"{shown}comments: 1 of 2 are odd, 500.0 in 1,000; the limit is {limit}\n"))


if __name__ == "__main__":
    unittest.main()
