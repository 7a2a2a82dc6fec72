"""Programs written for rabit 0.1 and for its copy in XGBoost work, alone and in jobs of 1 to 4 workers."""

import unittest

from api_testing import BIN, alone, job

WORKERS = (1, 2, 3, 4)


class Jobs(unittest.TestCase):
    def assert_ends_well(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_program_for_rabit_0_1_finds_all_it_expects(self):
        for program in ("api-user-rabit_0_1", "api-user-static"):
            self.assertIn("[0] done\n", self.assert_ends_well(alone(BIN / program)))
            for workers in WORKERS:
                out = self.assert_ends_well(job(workers, BIN / program))
                for rank in range(workers):
                    self.assertIn(f"[{rank}] done\n", out)

    def test_the_program_for_xgboosts_copy_finds_all_it_expects(self):
        self.assert_ends_well(alone(BIN / "api-user-xgboost_copy"))
        for workers in WORKERS:
            self.assert_ends_well(job(workers, BIN / "api-user-xgboost_copy"))

    def test_sums_of_sixteen_bit_floats_are_rounded_once(self):
        self.assert_ends_well(alone(BIN / "api-user-sixteen_bits"))
        for memory in ("auto", "off"):
            for workers in WORKERS:
                self.assert_ends_well(job(workers, BIN / "api-user-sixteen_bits", WARREN_SHARED_MEMORY=memory))

    def test_a_child_that_a_reduction_function_forks_is_told_and_the_job_goes_on(self):
        for memory in ("auto", "off"):
            for call in (1, 2, 20):
                with self.subTest(memory=memory, call=call):
                    out = self.assert_ends_well(job(3, BIN / "api-forking-reducer", str(call), WARREN_SHARED_MEMORY=memory))
                    children = out.count("and there was a child")
                    self.assertGreater(children, 0, out)
                    self.assertEqual(out.count("sums are right"), 3, out)
                    self.assertEqual(out.count("the child was told: "), children, out)
                    self.assertNotIn("the child took part", out)

    def test_messages_can_be_customised(self):
        self.assertEqual(self.assert_ends_well(alone(BIN / "api-user-custom_messages")), "my print: 1\n")

    def test_prints_of_any_length_reach_the_user_who_watches_the_job(self):
        out = self.assert_ends_well(job(2, BIN / "api-user-rabit_0_1"))
        self.assertRegex(out, r"(?m)^printed$")
        self.assertRegex(out, r"(?m)^printed 2 of x{3000}$")

    def test_a_limit_of_file_sizes_leaves_tcp(self):
        done = job(3, "sh", "-c", 'ulimit -f 16; exec "$0"', BIN / "api-user-rabit_0_1")
        out = self.assert_ends_well(done)
        self.assertEqual(out.count("] done\n"), 3, out)
        self.assertRegex(done.stderr, r"rabit: rank 0: the shared memory of this host takes \d+ bytes, and its limit of file "
                                      r"sizes \(ulimit -f\) is \d+ bytes; the ranks here use TCP")

    def test_arguments_win_over_the_environment(self):
        done = alone(BIN / "api-user-xgboost_copy", "rabit_tracker_uri=NULL", DMLC_TRACKER_URI="127.0.0.1",
                     DMLC_TRACKER_PORT="1")
        self.assert_ends_well(done)

    def test_servers_and_schedulers_of_a_job_end_at_once_with_success(self):
        done = alone(BIN / "api-user-rabit_0_1", DMLC_ROLE="server")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("server", done.stderr)

    def test_a_tracker_that_is_not_there_is_an_error_that_says_where_it_was_sought(self):
        done = alone(BIN / "api-user-rabit_0_1", DMLC_TRACKER_URI="127.0.0.1", DMLC_TRACKER_PORT="1",
                     DMLC_WORKER_CONNECT_RETRY="1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rabit::Init", done.stderr)
        self.assertIn("127.0.0.1", done.stderr)


if __name__ == "__main__":
    unittest.main()
