"""scripts/release, in a separate repository with the real script and CMakeLists.txt, and a stand-in for scripts/test. The wheels, packages
and the installed tree take minutes and are left out; python_wheel, install_components and installed_package test them."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
VERSION = re.search(r"^project\(warren VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
RELEASED = f"# Changelog\n\n## [Unreleased]\n\n## [{VERSION}] - 2026-01-31\n\n### Added\n\n- Everything.\n\n## [0.0.1] - 2026-01-01\n\n- Less.\n"


@unittest.skipUnless(shutil.which("git"), "no git here")
class Release(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name) / "tree"
        self.output = pathlib.Path(scratch.name) / "out"
        (self.root / "scripts").mkdir(parents=True)
        shutil.copy(SOURCE / "scripts/release", self.root / "scripts")
        shutil.copy(SOURCE / "CMakeLists.txt", self.root)
        (self.root / "scripts/test").write_text("#!/bin/sh\ntouch ../tested\n")
        (self.root / "scripts/test").chmod(0o755)
        (self.root / "CHANGELOG.md").write_text(RELEASED)
        self.environment = {"PATH": os.environ["PATH"], "HOME": scratch.name, "GIT_CONFIG_NOSYSTEM": "1",
                            "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
                            "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org"}
        self.git("init", "-q", "-b", "main")
        self.git("init", "-q", "--bare", "../origin")
        self.git("remote", "add", "origin", "../origin")
        self.commit()

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.root, env=self.environment, check=True, capture_output=True, text=True).stdout

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "A commit")

    def release(self, *options):
        return subprocess.run(["scripts/release", "--skip-wheel", "--skip-packages", "--skip-installed", "--output", self.output, *options], cwd=self.root,
                              env=self.environment, capture_output=True, text=True, timeout=60)

    def refused(self, why, *options):
        done = self.release(*options)
        self.assertRegex(done.stderr, why)
        self.assertEqual(done.returncode, 1)
        self.assertFalse((self.output / "SHA256SUMS").exists())
        self.assertFalse((self.root.parent / "tested").exists())

    def change(self, file, before, after):
        path = self.root / file
        self.assertIn(before, path.read_text())
        path.write_text(path.read_text().replace(before, after))
        self.commit()

    def test_refuses_while_users_are_led_to_a_placeholder(self):
        (self.root / "python").mkdir()
        (self.root / "python/pyproject.toml").write_text('[project.urls]\nHomepage = "https://example.org/warren"\n')
        self.commit()
        self.refused(r"release: https://example.org/warren stands for the project's own address in python/pyproject.toml; replace it")

    def test_makes_artifacts_with_checksums_and_a_tag_that_has_the_changes_and_pushes_nothing(self):
        done = self.release()
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        self.assertTrue((self.root.parent / "tested").exists())
        tarball = self.output / f"warren-{VERSION}.tar.gz"
        self.assertEqual(sorted(self.output.iterdir()), [self.output / "SHA256SUMS", tarball])
        self.assertEqual((self.output / "SHA256SUMS").read_text(),
                         f"{hashlib.sha256(tarball.read_bytes()).hexdigest()}  {tarball.name}\n")
        with tarfile.open(tarball) as archive:
            files = {name.removeprefix(f"warren-{VERSION}/") for name in archive.getnames() if not archive.getmember(name).isdir()}
        self.assertEqual(files, set(self.git("ls-files").split()))
        self.assertEqual(self.git("cat-file", "-t", f"v{VERSION}"), "tag\n")
        self.assertEqual(self.git("rev-parse", f"v{VERSION}^{{commit}}"), self.git("rev-parse", "HEAD"))
        self.assertEqual(self.git("tag", "-l", "--format=%(contents)", f"v{VERSION}").strip(),
                         f"Warren {VERSION}\n\n### Added\n\n- Everything.")
        self.assertEqual(self.git("ls-remote", "origin"), "")

    def test_is_refused_where_the_tree_is_not_what_is_committed_on_main(self):
        (self.root / "new").touch()
        self.refused("not clean: .*new")
        (self.root / "new").unlink()
        (self.root / "CHANGELOG.md").write_text(RELEASED + "- More.\n")
        self.refused("not clean: .*CHANGELOG.md")
        self.git("checkout", "-q", "CHANGELOG.md")
        self.git("checkout", "-q", "-b", "side")
        self.refused("this is the branch side")
        self.git("checkout", "-q", "--detach")
        self.refused("no branch is checked out")

    def test_is_refused_where_version_and_changelog_disagree(self):
        self.change("CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n- News.\n")
        self.refused("changes under Unreleased")
        self.change("CHANGELOG.md", "- News.\n", "")
        self.change("CHANGELOG.md", "2026-01-31", "2026-02-31")
        self.refused(rf"expected '## \[{VERSION}\] - YYYY-MM-DD'")
        self.change("CHANGELOG.md", f"## [{VERSION}] - 2026-02-31\n\n### Added\n\n- Everything.\n", f"## [{VERSION}] - 2026-02-01\n")
        self.refused(f"has no entries for {VERSION}")
        self.change("CHANGELOG.md", f"## [{VERSION}] - 2026-02-01\n", "")
        self.refused(r"newest release is '## \[0.0.1\] - 2026-01-01'")
        self.change("CMakeLists.txt", "project(warren", "project(rabbits")
        self.refused("CMakeLists.txt has no line")

    def test_never_replaces_a_release(self):
        self.output.mkdir()
        self.refused("exists already")
        self.output.rmdir()
        self.git("tag", f"v{VERSION}")
        self.refused(f"the tag v{VERSION} exists already")

    def test_makes_nothing_when_a_test_fails_unless_tests_are_skipped(self):
        self.change("scripts/test", "touch ../tested", "exit 7")
        self.assertEqual(self.release().returncode, 7)
        self.assertFalse(self.output.exists())
        self.assertEqual(self.git("tag"), "")
        self.assertEqual(self.release("--skip-tests").returncode, 0)
        self.assertEqual(self.git("tag"), f"v{VERSION}\n")

    def test_says_its_options_when_it_is_asked_wrongly(self):
        done = self.release("--fast")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--skip-tests", done.stderr)


if __name__ == "__main__":
    unittest.main()
