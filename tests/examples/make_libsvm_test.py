"""The make_libsvm program: its output and its errors."""
import array
import hashlib
import unittest

from programs import MAKE_LIBSVM, ProgramTest


class MakeLibsvm(ProgramTest):
    def test_writes_the_same_bytes_to_a_file_and_to_standard_output(self):
        text = self.run_well(MAKE_LIBSVM, "--rows", "50", "--seed", "3")
        self.run_well(MAKE_LIBSVM, "--rows", "50", "--seed", "3", "--output", "a.txt")
        self.assertEqual(self.read("a.txt").decode(), text)
        self.assertEqual(text.count("\n"), 50)

    def test_a_long_file_has_the_same_bytes_everywhere(self):
        self.make_data("a.txt", rows=100000, features=30, seed=11)
        self.assertEqual(hashlib.sha256(self.read("a.txt")).hexdigest(), "8b71696e29b792e3eaf499b643d1d7786333cac20ce11828f9fe1c6a809bf65f")

    def test_rows_as_numbers(self):
        for words in ([], ["--task", "regression"], ["--task", "multiclass", "--density", "0.3"]):
            with self.subTest(words=words):
                text = self.run_well(MAKE_LIBSVM, "--rows", "200", "--features", "7", *words)
                expected = array.array("f")
                for line in text.splitlines():
                    label, *entries = line.split(" ")
                    values = dict(entry.split(":") for entry in entries)
                    expected.extend([float(label), *(float(values.get(str(feature), "nan")) for feature in range(1, 8))])
                self.run_well(MAKE_LIBSVM, "--rows", "200", "--features", "7", *words, "--format", "float32", "--output", "numbers")
                self.assertEqual(self.read("numbers"), expected.tobytes())

    def test_wrong_options_end_with_a_message_and_no_file(self):
        for option in (["--task", "none"], ["--density", "2"], ["--features", "0"], ["--rows", "x"], ["--format", "y"]):
            with self.subTest(option=option):
                done = self.run_program(MAKE_LIBSVM, "--output", "a.txt", *option)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(option[0], done.stderr.decode() + done.stdout.decode())
                self.assertEqual(self.files(), [])

    def test_a_file_that_cannot_be_written_is_named(self):
        message = self.run_badly(1, MAKE_LIBSVM, "--output", "no/such/folder")
        self.assertIn("no/such/folder", message)


if __name__ == "__main__":
    unittest.main()
