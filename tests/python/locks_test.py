"""warren._system.locks: folders that are locked by the process that created them, and which of them are removed as leftovers."""
import contextlib
import fcntl
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from warren._system import locks as _locks

PREFIX = "warren-pages-"
MAKE = ("import signal, sys\nfrom warren._system import locks\nfolder = locks.LockedFolder(sys.argv[1], 'warren-pages-')\n"
        "open(folder.path + '/page', 'w').write('rows')\nprint(folder.path, flush=True)\nsignal.pause()")


class Folders(unittest.TestCase):
    def setUp(self):
        self.place = self.enterContext(tempfile.TemporaryDirectory())

    def made(self):
        """Makes a folder; returns it and the printed messages."""
        with contextlib.redirect_stderr(io.StringIO()) as said:
            return _locks.LockedFolder(self.place, PREFIX), said.getvalue()

    def another(self, *before):
        """Starts another process that makes a folder; returns the folder and the process."""
        process = subprocess.Popen([*before, sys.executable, "-c", MAKE, self.place], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return pathlib.Path(process.stdout.readline().strip()), process

    def test_it_goes_with_its_object_and_only_in_the_process_that_made_it(self):
        folder, said = self.made()
        self.assertEqual((os.path.dirname(folder.path), said), (self.place, ""))
        child = os.fork()
        if child == 0:
            del folder
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(os.listdir(folder.path), ["lock"])
        del folder
        self.assertEqual(os.listdir(self.place), [])

    def test_a_live_one_stays_whatever_its_pid_is_called_here(self):
        there, process = self.another()
        ours, said = self.made()
        self.assertEqual(((there / "page").read_text(), said), ("rows", ""))
        process.kill()
        process.wait()
        again, said = self.made()
        self.assertEqual((sorted(os.listdir(self.place)), said), (sorted(map(os.path.basename, (ours.path, again.path))), ""))

    def test_a_live_one_of_another_container_stays(self):
        unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"]
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no namespaces can be made here")
        there, process = self.another(*unshare)
        self.made()
        self.assertEqual((there / "page").read_text(), "rows")
        process.send_signal(signal.SIGKILL)
        process.wait()
        # Waits until the kernel has released the lock.
        fcntl.flock(self.enterContext(open(there / "lock", encoding="ascii")), fcntl.LOCK_SH)
        self.assertEqual((there / "page").read_text(), "rows")

    def test_one_that_another_machine_may_use_stays_and_is_told(self):
        for name, boot in (("warren-pages-far", "another boot"), ("warren-pages-new", ""), ("warren-pages-none", None),
                           ("warren-pages-old-host-12-abc", None)):  # fmt: skip
            folder = pathlib.Path(self.place) / name
            folder.mkdir()
            if boot is not None:
                (folder / "lock").write_text(boot)
        said = self.made()[1]
        self.assertRegex(said, f"^{self.place}: has 1 folder that processes of another machine use.*remove warren-pages-far\n$")
        self.assertEqual(len(os.listdir(self.place)), 4)

    def test_other_names_and_links_stay(self):
        outside = pathlib.Path(self.place) / "outside"
        outside.mkdir()
        (outside / "lock").write_text(_locks.boot())
        os.symlink(outside, pathlib.Path(self.place) / "warren-pages-link")
        (pathlib.Path(self.place) / "warren-pages-file").write_text("")
        self.made()
        self.assertTrue((outside / "lock").exists())
        self.assertEqual(len(os.listdir(self.place)), 3)

    def test_a_pipe_in_the_place_of_a_lock_holds_nobody_up(self):
        folder = pathlib.Path(self.place) / "warren-pages-pipe"
        folder.mkdir()
        os.mkfifo(folder / "lock")
        self.addCleanup(signal.alarm, 0)
        signal.alarm(60)
        self.made()
        self.assertTrue(folder.exists())

    def test_without_locks_it_says_so_and_nobody_takes_it_for_a_leftover(self):
        def none(*_):
            raise OSError(95, "Operation not supported")

        with mock.patch("fcntl.flock", none):
            folder, said = self.made()
        self.assertRegex(said, r"has no locks \(Operation not supported\): if this process is killed, remove the folder by hand")
        self.made()
        self.assertEqual(os.listdir(self.place), [os.path.basename(folder.path)])
        del folder
        self.assertEqual(os.listdir(self.place), [])

    def test_a_place_that_is_none_is_an_error(self):
        with self.assertRaisesRegex(FileNotFoundError, "there is no such folder"):
            _locks.LockedFolder(self.place + "/nowhere", PREFIX)

    def test_whether_a_file_is_locked(self):
        path = os.path.join(self.place, "file")
        self.assertIsNone(_locks.is_held(path))
        with open(path, "w", encoding="ascii") as file:
            self.assertIs(_locks.is_held(path), False)
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertIs(_locks.is_held(path), True)
        self.assertIs(_locks.is_held(path), False)


if __name__ == "__main__":
    unittest.main()
