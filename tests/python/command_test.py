"""The warren command itself: the list of commands, errors for unknown ones, completion in real shells, the manual page."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import shell_completion
from warren_testing import BIN

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

COMMANDS = {"submit", "jobs", "status", "logs", "wait", "cancel", "doctor", "bench", "data", "tracker"}


def warren(*words, code=0):
    done = subprocess.run([sys.executable, "-m", "warren", *words], text=True, capture_output=True, check=False)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


class Command(unittest.TestCase):
    def test_help_lists_all_commands(self):
        out, _ = warren("--help")
        self.assertEqual(set(re.findall(r"^  (\w+)  ", out, re.M)), COMMANDS)
        self.assertEqual(warren(code=2)[1], out)

    def test_a_closed_standard_output_changes_nothing(self):
        for words in (["-m", "warren.submit", "--version"], ["-m", "warren", "submit", "--version"],
                      ["-c", "from warren import rabit; rabit.init([]); rabit.tracker_print('no one reads this')"]):
            done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, *words], stderr=subprocess.PIPE, text=True,
                                  check=False)
            self.assertNotIn("Traceback", done.stderr)
            self.assertNotIn("NoneType", done.stderr)

    def test_version_is_that_of_the_package(self):
        self.assertRegex(warren("--version")[0], r"^warren [0-9]\S*\n$")

    def test_an_unknown_command_suggests_another(self):
        for typed, meant in (("job", "jobs"), ("benchmark", "bench"), ("docter", "doctor"), ("sumbit", "submit")):
            self.assertIn(f"there is no command '{typed}'; did you mean {meant}?", warren(typed, code=2)[1])
        for word in ("xyzzy", "kill", "list"):
            self.assertNotIn("did you mean", warren(word, code=2)[1], word)

    def test_commands_of_other_programs_are_answered_by_what_to_type(self):
        for typed, answer in (("ps", "warren jobs lists"), ("kill", "warren cancel NAME ends a job"),
                              ("tail", "warren logs NAME --follow"), ("run", "warren submit -n N COMMAND starts a job")):
            said = warren(typed, code=2)[1]
            self.assertIn(f"there is no command '{typed}'; ", said)
            self.assertIn(answer, said)

    def test_help_of_a_command_is_that_commands(self):
        for words in (("help", "submit"), ("--help", "submit"), ("-h", "submit")):
            self.assertEqual(warren(*words)[0], warren("submit", "--help")[0])
        self.assertEqual(warren("help", "jobs")[0], warren("jobs", "--help")[0])
        self.assertEqual(warren("help")[0], warren("--help")[0])
        self.assertIn("there is no command 'sumbit'; did you mean submit?", warren("help", "sumbit", code=2)[1])
        for name in sorted(COMMANDS - {"data"}):  # the help of `warren data` needs NumPy
            shown = warren(name, "--help")[0]
            self.assertIn("usage", shown.lower())
            self.assertEqual(warren(name, "-h")[0], shown)

    def test_programs_are_reached_by_it(self):
        self.assertRegex(warren("submit", "--version")[0], r"^dmlc-submit \(Warren\)")
        self.assertRegex(warren("tracker", "--version")[0], r"^rabit-tracker \(Warren\)")

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        done = subprocess.run(["sh", "-c", f"{sys.executable} -m warren --completion bash | head -1"],
                              text=True,
                              capture_output=True,
                              check=True)
        self.assertEqual(done.stderr, "")


class Completion(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="warren-completion-")))
        (self.directory / "hosts.txt").write_text("")
        (self.directory / "logs").mkdir()

    def script(self, shell):
        path = self.directory / f".completion.{shell}"
        path.write_text(warren("--completion", shell)[0])
        return str(path)

    LINES = (("warren do", ["doctor"]), ("warren submit --bind ", ["core", "none", "numa"]), ("warren jobs --la", ["--last"]),
             ("warren doctor --host-file h", ["hosts.txt"]), ("warren submit --tls -n 2 cat hos",
                                                              ["hosts.txt"]), ("warren data v", ["validate"]))

    def test_bash_completes_commands_and_submit_as_dmlc_submit(self):
        script = self.script("bash")
        for line, expected in (*self.LINES, ("warren jobs --log-dir ", ["logs"]), ("warren --completion z", ["zsh"]),
                               ("warren jobs --log-dir=l", ["logs"]), ("warren jobs --last ", [])):
            with self.subTest(line=line):
                self.assertEqual(shell_completion.bash(script, "_warren", line, self.directory), expected)
        self.assertLessEqual(COMMANDS, set(shell_completion.bash(script, "_warren", "warren ", self.directory)))

    @unittest.skipUnless(shell_completion.have("fish"), "SKIPPED: no fish here")
    def test_fish_completes_the_same(self):
        script = self.script("fish")
        for line, expected in self.LINES:
            with self.subTest(line=line):
                self.assertEqual(shell_completion.fish(script, line, self.directory), expected)

    @unittest.skipUnless(shell_completion.have("zsh"), "SKIPPED: no zsh here")
    def test_zsh_at_a_terminal(self):
        with shell_completion.zsh(self.script("zsh"), self.directory) as terminal:
            for typed, shown in (("warren do", "doctor"), ("--host-file h", "hosts.txt")):
                terminal.type(typed + "\t")
                terminal.wait_for(shown)
            terminal.run("")
            terminal.type("warren submit --tls --bind=co\t")
            terminal.wait_for("--bind=core")

    def test_another_shell_is_refused(self):
        self.assertIn("bash, zsh or fish", warren("--completion", "tcsh", code=2)[1])


class Manual(unittest.TestCase):
    def test_each_command_and_its_options_are_in_the_page(self):
        page = warren("--help-man")[0].replace("\\-", "-")
        for name in COMMANDS:
            self.assertIn(f".B warren {name}\n", page)
        for name in ("jobs", "doctor", "bench"):
            options = set(re.findall(r"(?<!\w)(--[a-z-]+)", warren(name, "--help")[0]))
            self.assertEqual({option for option in options if option not in page}, set())

    @unittest.skipUnless(shutil.which("mandoc"), "SKIPPED: no mandoc here")
    def test_mandoc_finds_nothing_but_the_missing_date(self):
        done = subprocess.run(["mandoc", "-T", "lint"],
                              input=warren("--help-man")[0],
                              capture_output=True,
                              text=True,
                              check=False)
        self.assertEqual([line for line in done.stdout.splitlines() if "missing date" not in line], [])


if __name__ == "__main__":
    unittest.main()
