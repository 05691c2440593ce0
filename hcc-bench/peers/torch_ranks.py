# SPDX-License-Identifier: Apache-2.0
"""The driver of torch.distributed with its Gloo backend: torch_ranks.py HARNESS.so, and the words of a job.

What a call costs in Python is part of the time: it is what a user of torch pays. torch reduces in
place only, so its all-reduce and reduce do; both spare it a copy that the others have to make.
"""
import ctypes
import os
import socket
import sys

KINDS = ["allreduce", "reducescatter", "allgather", "broadcast", "reduce", "alltoall", "sendrecv",
         "pingpong", "barrier"]
IN_PLACE = ["allreduce", "reduce"]
MISSING = ["reducescatter"]  # not in the Gloo backend of every torch

BIND = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p,
                        ctypes.c_void_p)
REPEAT = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_long, ctypes.c_long)


def bits(names):
    return sum(1 << KINDS.index(name) for name in names)


def check_failed(rank, error):
    print("rank %d: %s" % (rank, error), file=sys.stderr, flush=True)
    os._exit(1)


class Driver:
    """The tensors over the harness's buffers, and the operation on them."""

    def __init__(self, torch, dist, rank, ranks):
        self.torch, self.dist, self.rank, self.ranks = torch, dist, rank, ranks
        self.operation = None

    def tensor(self, address, count):
        memory = (ctypes.c_float * count).from_address(address)
        return self.torch.frombuffer(memory, dtype=self.torch.float32)

    def bind(self, kind, count, block, send, recv):
        self.operation = None
        if kind < 0:
            return
        dist, rank, ranks = self.dist, self.rank, self.ranks
        full = max(count, block * ranks)
        s, r = self.tensor(send, full), self.tensor(recv, full)
        whole_s, whole_r = s[:count], r[:count]
        blocks = [r[i * block:(i + 1) * block] for i in range(ranks)]
        own, all_s, all_r = s[:block], s[:block * ranks], r[:block * ranks]
        after, before, other = (rank + 1) % ranks, (rank - 1) % ranks, 1 - rank

        def ring():
            request = dist.isend(whole_s, after)
            dist.recv(whole_r, before)
            request.wait()

        def ping_pong():
            if rank == 0:
                dist.send(whole_s, other)
                dist.recv(whole_r, other)
            elif rank == 1:
                dist.recv(whole_r, other)
                dist.send(whole_s, other)

        self.operation = {
            "allreduce": lambda root: dist.all_reduce(whole_r),
            "allgather": lambda root: dist.all_gather(blocks, own),
            "broadcast": lambda root: dist.broadcast(whole_r, root),
            "reduce": lambda root: dist.reduce(whole_r, root),
            "alltoall": lambda root: dist.all_to_all_single(all_r, all_s),
            "sendrecv": lambda root: ring(),
            "pingpong": lambda root: ping_pong(),
            "barrier": lambda root: dist.barrier(),
        }[KINDS[kind]]

    def repeat(self, _kind, turn, count):
        operation, ranks = self.operation, self.ranks
        for i in range(turn, turn + count):
            operation(i % ranks)


def guarded(rank, function):
    """An exception would be printed by ctypes, and forgotten."""
    def call(*arguments):
        try:
            function(*arguments)
        except BaseException as error:  # noqa: B902
            check_failed(rank, error)
    return call


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    harness = ctypes.CDLL(sys.argv[1])
    words = [sys.argv[0]] + sys.argv[2:]
    if len(words) != 7:
        return 2
    vector = (ctypes.c_char_p * len(words))(*[word.encode() for word in words])
    ranks = int(words[3])
    port = free_port()  # before the ranks are made: theirs is the same
    rank = harness.torch_open(len(words), vector)
    if rank < 0:
        return 2
    try:
        import torch
        import torch.distributed as dist
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%d" % port, rank=rank,
                                world_size=ranks)
    except Exception as error:
        check_failed(rank, error)
    driver = Driver(torch, dist, rank, ranks)
    bind, repeat = BIND(guarded(rank, driver.bind)), REPEAT(guarded(rank, driver.repeat))
    code = harness.torch_serve(("torch %s, Gloo" % torch.__version__).encode(),
                               bits(name for name in KINDS if name not in MISSING),
                               bits(IN_PLACE), bind, repeat)
    sys.stderr.flush()
    os._exit(code)


sys.exit(main())
