"""warren._engine.sealed: Python objects sent between processes, and messages refused before they are unpickled."""
import os
import pickle
import threading
import unittest
from unittest import mock

import numpy as np

from warren._engine import sealed as _sealed

TOKEN = "5a" * 32
ran = []


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return ran.append, ("code of another process", )


def knowing(token):
    """Starts a patch of os.environ that sets the job's token, or removes it if `token` is None. Returns the patch."""
    found = mock.patch.dict(os.environ)
    found.start()
    os.environ.pop("DMLC_JOB_TOKEN", None)
    if token is not None:
        os.environ["DMLC_JOB_TOKEN"] = token
    return found


class SealedTest(unittest.TestCase):
    def setUp(self):
        ran.clear()

    def having(self, token):
        self.addCleanup(knowing(token).stop)

    def refuses(self, message, words, **options):
        with self.assertRaisesRegex(RuntimeError, f"^call: the message of rank 1 was refused and not unpickled: .*{words}"):
            _sealed.loads(message, "call", 1, **options)
        self.assertEqual(ran, [])


class WithAToken(SealedTest):
    def setUp(self):
        super().setUp()
        self.having(TOKEN)

    def test_objects_come_as_they_were_sent(self):
        for value in (None, {"a": {1, 2}}, range(3), b"x" * 100_000, np.arange(5)):
            for objects in (True, False):
                found = _sealed.loads(_sealed.seal(value, "call", 1, objects=objects), "call", 1, objects=objects)
                self.assertEqual(repr(found), repr(value))

    def test_the_key_is_derived_as_other_secrets_of_the_token_are_and_is_none_of_them(self):
        """If the key were equal to another secret derived from the token, other messages of the job could serve as seals."""
        from warren_testing import derive
        secret = bytes.fromhex(TOKEN)
        self.assertEqual(_sealed._derived(secret, b"claim"), derive(secret, b"claim"))
        self.assertNotIn(b"\0", b"python objects")

    def test_a_pickle_without_a_seal_is_not_unpickled(self):
        for message in (pickle.dumps(Evil()), b"P" + pickle.dumps(Evil()), b"J[]", b"E", b"", b"p", b"p" + pickle.dumps(Evil())[:20]):
            self.refuses(message, "it is not sealed with the job's token")
        for message in (b"p" + bytes(32) + pickle.dumps(Evil()), b"e" + bytes(32) + b"text"):
            self.refuses(message, "its seal does not match")

    def test_nor_one_sealed_with_another_token_for_another_call_or_by_another_rank(self):
        with mock.patch.dict(os.environ, DMLC_JOB_TOKEN="ab" * 32):
            other = bytes(_sealed.seal(Evil(), "call", 1))
        for message in (other, _sealed.seal(Evil(), "another", 1), _sealed.seal(Evil(), "call", 2), _sealed.seal(Evil(), "call\0" + "1", 1)):
            self.refuses(message, "its seal does not match")

    def test_nor_one_that_was_changed(self):
        good = bytes(_sealed.seal({"a": 1}, "call", 1))
        for at in range(1, len(good)):
            self.refuses(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:], "its seal does not match")
        self.refuses(b"e" + good[1:], "its seal does not match")
        self.refuses(good + b"x", "its seal does not match")

    def test_an_object_that_cannot_be_sent_is_a_type_error_where_it_arrives(self):
        message = _sealed.seal_or_refuse(lambda: 0, "call", 1)
        self.assertTrue(_sealed.is_refusal(message))
        with self.assertRaisesRegex(TypeError, "rank 1's object cannot be sent to the other ranks: .*lambda"):
            _sealed.loads(message, "call", 1)
        with self.assertRaises((TypeError, AttributeError, pickle.PicklingError)):
            _sealed.seal(lambda: 0, "call", 1)

    def test_a_malformed_token_is_named_and_not_quoted(self):
        for text in ("secret", "5a" * 31, "zz" * 32):
            with mock.patch.dict(os.environ, DMLC_JOB_TOKEN=text), self.assertRaises(RuntimeError) as caught:
                _sealed.token()
            self.assertIn("DMLC_JOB_TOKEN is malformed", str(caught.exception))
            self.assertNotIn(text, str(caught.exception))


class WithoutAToken(SealedTest):
    def setUp(self):
        super().setUp()
        self.having(None)

    def test_plain_data_are_no_pickles_and_come_as_they_were_sent(self):
        for value in (None, True, 1, 2**70, 1.5, float("inf"), "ä\udc80", b"\0x", (), (1, ("a", [2, {3: None, "b": (4,)}])), np.dtype("f4"),
                      np.float32(1.5), np.int64(-3), np.arange(6, dtype="u2").reshape(2, 3), np.empty((0, 3)), np.array("2026-01-01", "M8[D]")):
            message = bytes(_sealed.seal(value, "call", 1, objects=False))
            self.assertEqual(message[:1], b"J")
            found = _sealed.loads(message, "call", 1, objects=False)
            self.assertIs(type(found), type(value))
            self.assertEqual(repr(found), repr(value))

    def test_other_objects_need_a_call_that_takes_them(self):
        with self.assertRaisesRegex(TypeError, "builtins.set is not plain data.*DMLC_JOB_TOKEN.*sends only plain data"):
            _sealed.seal({1}, "call", 1, objects=False)
        self.assertEqual(_sealed.loads(_sealed.seal({1}, "call", 1), "call", 1), {1})

    def test_a_pickle_is_refused_where_plain_data_are_expected(self):
        self.refuses(b"P" + pickle.dumps(Evil()), "not the plain data", objects=False)
        self.refuses(pickle.dumps(Evil()), "not the plain data", objects=False)
        self.refuses(b"", "not the plain data", objects=False)

    def test_what_is_malformed_is_refused(self):
        for text in (b"", b"{", b"[]", b'["set"]', b'{"a":1}', b'["dict",[1]]', b'["dtype","O"]', b'["dtype","nonsense"]', b"[" * 10_000,
                     b'["array",["dtype","<i4"],[2],"AAAA"]', b'["bytes","a"]', b'["dict",[["list"],1]]'):
            self.refuses(b"J" + text, "malformed", objects=False)

    def test_a_sealed_message_says_that_the_token_is_missing_here(self):
        with mock.patch.dict(os.environ, DMLC_JOB_TOKEN=TOKEN):
            message = bytes(_sealed.seal(1, "call", 1))
        self.refuses(message, "this process has none; DMLC_JOB_TOKEN must be set to the same value")


class Proof(SealedTest):
    """Threads act as the ranks of a communicator whose members have not yet proved that they know the token. In each round, every rank
    contributes an array to an element-wise maximum."""

    def run_ranks(self, size, others=None):
        """Returns each rank's error, or None. `others` maps a rank to a function of the round and the array, whose result replaces the
        rank's contribution."""
        barrier, tables = threading.Barrier(size), [None] * size
        results = [None] * size

        def work(rank):
            rounds = iter(range(10))

            def greatest(values):
                number = next(rounds)
                tables[rank] = others[rank](number, values) if others and rank in others else values
                barrier.wait(10)
                found = np.maximum.reduce(tables)
                barrier.wait(10)
                return found

            try:
                _sealed.prove_to_each_other(rank, size, greatest)
            except threading.BrokenBarrierError:
                results[rank] = "alone"
            except RuntimeError as error:
                results[rank] = str(error)
            if results[rank]:
                barrier.abort()

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def test_ranks_that_know_the_token_go_on(self):
        self.having(TOKEN)
        for size in (2, 3, 16):
            self.assertEqual(self.run_ranks(size), [None] * size)

    def test_without_a_token_nothing_is_proved(self):
        self.having(None)
        self.assertEqual(self.run_ranks(3), [None] * 3)

    def test_a_rank_with_made_up_proofs_is_named_by_all_others(self):
        self.having(TOKEN)
        for made_up in (lambda number, values: values if number < 2 else np.zeros_like(values),
                        lambda number, values: values if number < 2 else values // 2):
            found = self.run_ranks(3, {1: made_up})
            for rank in (0, 2):
                self.assertRegex(found[rank], "rank 1 of 3 did not prove knowledge of the job's token|alone")
            self.assertTrue(any("rank 1 of 3" in one for one in found if one))

    def test_a_rank_that_says_it_has_no_token_is_named(self):
        self.having(TOKEN)
        found = self.run_ranks(3, {2: lambda number, values: np.array([0, 3 - 2], np.uint64) if number == 0 else values})
        self.assertIn("rank 2 does not have the job's token (DMLC_JOB_TOKEN)", "".join(filter(None, found)))

    def test_nobody_gets_through_who_spoils_the_random_bytes_of_others(self):
        """A rank might spoil the random bytes of others to reuse the proofs of an earlier job."""
        self.having(TOKEN)
        found = self.run_ranks(2, {1: lambda number, values: np.full_like(values, 255) if number == 1 else values})
        self.assertTrue(any("did not prove" in one for one in found if one), found)


if __name__ == "__main__":
    unittest.main()
