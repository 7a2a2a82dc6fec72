"""Completion of dmlc-submit in real shells, and its manual pages as they are displayed."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import shell_completion
from warren_testing import BIN

SUBMIT = str(BIN / "dmlc-submit")
BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Completion(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="warren-completion-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        for name in ("hosts.txt", "a b.txt"):
            (self.directory / name).write_text("")
        (self.directory / "logs").mkdir()

    def script(self, shell):
        path = self.directory / f".completion.{shell}"
        path.write_text(said(SUBMIT, "--completion", shell))
        return str(path)

    def test_each_shell_knows_each_option(self):
        options = set(re.findall(r"^  (--[a-z-]+)", said(SUBMIT, "--help"), re.M))
        self.assertGreater(len(options), 40)
        for shell in ("bash", "zsh", "fish"):
            text = self.script(shell)
            names = set(re.findall(r"-l ([a-z-]+)" if shell == "fish" else r"--([a-z-]+)", pathlib.Path(text).read_text()))
            self.assertEqual(options - {f"--{name}" for name in names}, set(), shell)

    def test_bash_completes_names_values_files_and_commands(self):
        script = self.script("bash")
        for line, expected in (("dmlc-submit --bi", ["--bind"]), ("dmlc-submit --bind ", ["core", "none", "numa"]),
                               ("dmlc-submit --bind=c", ["core"]), ("dmlc-submit --bind=", ["core", "none", "numa"]),
                               ("dmlc-submit --num-workers 3 --tls --bind n",
                                ["none", "numa"]), ("dmlc-submit --num-workers=3 --cluster k", ["kubernetes"]),
                               ("dmlc-submit --host-ip ", ["auto", "dns"]), ("dmlc-submit -H hos", ["hosts.txt"]),
                               ("dmlc-submit --log-dir ", ["logs"]), ("dmlc-submit --job ho", ["hosts.txt"]),
                               ("dmlc-submit --preemption-notice ho", ["hosts.txt"]), ("dmlc-submit -n 3 --mpirun hostnam",
                                                                      ["hostname",
                                                                       "hostnamectl"]), ("dmlc-submit --num-workers ", []),
                               ("dmlc-submit --env A=B --bi", ["--bind"]),
                               ("dmlc-submit --env=A=B --bi", ["--bind"]),
                               ("dmlc-submit --host-ip h:1 --env A= --bi", ["--bind"]),
                               ("dmlc-submit --env A=ho", []),
                               ("dmlc-submit -n3 cat a", ["a b.txt"]),
                               ("dmlc-submit -n3 -Hx --bi", ["--bind"]),
                               ("dmlc-submit -np 3 cat a", ["a b.txt"]),
                               ("dmlc-submit -np 3 --bi", ["--bind"]),
                               ("dmlc-submit -n 3 bash --bi", []), ("dmlc-submit -n 3 cat a", ["a b.txt"]), ("dmlc-submit -- hos",
                                                                                                             ["hosts.txt"])):
            with self.subTest(line=line):
                found = shell_completion.bash(script, "_dmlc_submit", line, self.directory)
                if line.endswith(("hostnam", "-- hos")):  # programs on PATH may match, too
                    self.assertTrue(set(found) & set(expected), found)
                else:
                    self.assertEqual(found, expected)

    def test_bash_at_a_terminal(self):
        with shell_completion.Terminal(["bash", "--norc", "--noprofile", "-i"], self.directory) as terminal:
            terminal.run(f"source {self.script('bash')}")
            terminal.type("dmlc-submit --bind=co\t")
            terminal.wait_for("dmlc-submit --bind=core")
            terminal.type("--host-file ho\t")
            terminal.wait_for("--host-file hosts.txt")

    @unittest.skipUnless(os.path.exists(BASH_COMPLETION), "SKIPPED: no package bash-completion here")
    def test_bash_completes_the_command_by_its_own_completion(self):
        folder = self.directory / "data/completions"
        folder.mkdir(parents=True)
        (folder / "dmlc-submit").write_text(pathlib.Path(self.script("bash")).read_text())
        (folder / "toy").write_text("complete -W 'carrot turnip' toy\n")
        with shell_completion.Terminal(["bash", "--norc", "--noprofile", "-i"], self.directory) as terminal:
            terminal.run(f"PATH={BIN}:$PATH; BASH_COMPLETION_USER_DIR={self.directory}/data; source {BASH_COMPLETION}")
            terminal.type("dmlc-submit --tls -n 2 toy ca\t")
            terminal.wait_for("toy carrot")

    @unittest.skipUnless(shell_completion.have("fish"), "SKIPPED: no fish here")
    def test_fish_completes_names_values_files_and_commands(self):
        script = self.script("fish")
        for line, expected in (("dmlc-submit --bin", ["--bind"]), ("dmlc-submit --bind ", ["core", "none", "numa"]),
                               ("dmlc-submit --tls --bind=c", ["--bind=core"]), ("dmlc-submit -n 3 --cluster k", ["kubernetes"]),
                               ("dmlc-submit --host-file hos", ["hosts.txt"]), ("dmlc-submit --log-dir l", ["logs/"]),
                               ("dmlc-submit -n 3 cat hos", ["hosts.txt"]), ("dmlc-submit -n 3 cat --bin", [])):
            with self.subTest(line=line):
                self.assertEqual(shell_completion.fish(script, line, self.directory), expected)
        self.assertIn("bash", shell_completion.fish(script, "dmlc-submit -n 3 bas", self.directory))

    @unittest.skipUnless(shell_completion.have("zsh"), "SKIPPED: no zsh here")
    def test_zsh_at_a_terminal(self):
        with shell_completion.zsh(self.script("zsh"), self.directory) as terminal:
            for typed, shown in (("dmlc-submit --auto-f", "--auto-file-cache="), ("of", "off"), (" --host-file hos", "hosts.txt"),
                                 (" --bind=co", "--bind=core"), ("-n 3 cat log", "logs/")):
                terminal.type(typed + "\t")
                terminal.wait_for(shown)

    def test_scripts_are_right_to_each_shell(self):
        for shell in ("bash", "zsh", "fish"):
            if shell_completion.have(shell):
                subprocess.run([shell, "-n", self.script(shell)], check=True, timeout=60)

    def test_another_shell_is_refused(self):
        done = subprocess.run([SUBMIT, "--completion", "tcsh"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("bash", done.stderr)


class Manual(unittest.TestCase):
    def pages(self):
        for name in ("dmlc-submit", "rabit-tracker"):
            yield name, said(str(BIN / name), "--help-man")

    def test_each_option_is_in_its_page(self):
        for name, page in self.pages():
            options = set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", said(str(BIN / name), "--help"), re.M))
            self.assertGreater(len(options), 8)
            self.assertEqual({option for option in options if option.replace("-", r"\-") not in page}, set(), name)

    def test_words_that_roff_would_take_for_requests_are_text(self):
        for name, page in self.pages():
            requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
            self.assertLessEqual(requests, {".TH", ".SH", ".B", ".TP", ".PP"}, name)

    @unittest.skipUnless(shutil.which("mandoc"), "SKIPPED: no mandoc here")
    def test_mandoc_finds_nothing_but_the_missing_date(self):
        for name, page in self.pages():
            done = subprocess.run(["mandoc", "-T", "lint"], input=page, capture_output=True, text=True, check=False)
            self.assertEqual([line for line in done.stdout.splitlines() if "missing date" not in line], [], name)


if __name__ == "__main__":
    unittest.main()
