/* SPDX-License-Identifier: Apache-2.0
 *
 * hcomm.h: the C API of HCOMM, in NCCL's shape.
 *
 * A communicator is a set of ranks that run collectives together. A rank makes its communicator,
 * calls the same collectives in the same order as its peers, and destroys it:
 *
 *     hcommComm_t comm;
 *     hcommCommInitWorld(&comm, NULL);
 *     hcommAllReduce(in, out, count, hcommFloat32, hcommSum, comm, NULL);
 *     hcommCommDestroy(comm);
 *
 * Rules that hold for every call:
 *  - counts are elements; a count of zero succeeds, and still synchronises what it must;
 *  - send buffers are never written; nothing outside the count elements is read or written;
 *  - a buffer pair is either equal where the call allows "in place", or disjoint; anything else is
 *    hcommInvalidArgument;
 *  - stream NULL runs the operation in the calling thread; other streams are asynchronous;
 *  - every wait has a deadline (hcommConfig_t.timeout_ms): an error on every rank, never a hang;
 *  - hcommInvalidArgument leaves the communicator usable; every other error is fatal to it, and
 *    hcommGetLastError() says what was done, to whom, what was seen, what to do.
 *
 * Numbers (the same on every device and transport) are documented in hcomm(7).
 */
#ifndef HCOMM_H
#define HCOMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HCOMM_MAJOR 0
#define HCOMM_MINOR 1
#define HCOMM_PATCH 0
#define HCOMM_VERSION_CODE (HCOMM_MAJOR * 10000 + HCOMM_MINOR * 100 + HCOMM_PATCH)
#define HCOMM_API __attribute__((visibility("default")))

typedef struct hcommComm* hcommComm_t;
typedef struct hcommStream* hcommStream_t; /* NULL: in order, in the calling thread */
typedef struct hcommEvent* hcommEvent_t;
typedef struct hcommPlan* hcommPlan_t;

/* Results. The values up to hcommInProgress are NCCL's. */
typedef enum {
  hcommSuccess = 0,
  hcommUnhandledDeviceError = 1,
  hcommSystemError = 2,
  hcommInternalError = 3,
  hcommInvalidArgument = 4, /* the call is refused, the communicator stays usable */
  hcommInvalidUsage = 5,    /* ranks disagree, or a rule of the API is broken */
  hcommRemoteError = 6,     /* a peer died or left */
  hcommInProgress = 7,
  hcommTimeout = 8,
  hcommAborted = 9,
  hcommUnsupported = 10,
  hcommNumResults = 11
} hcommResult_t;

/* Element types. Values as NCCL's; float8 as OCP defines it. */
typedef enum {
  hcommInt8 = 0,
  hcommChar = 0,
  hcommUint8 = 1,
  hcommInt32 = 2,
  hcommInt = 2,
  hcommUint32 = 3,
  hcommInt64 = 4,
  hcommUint64 = 5,
  hcommFloat16 = 6,
  hcommHalf = 6,
  hcommFloat32 = 7,
  hcommFloat = 7,
  hcommFloat64 = 8,
  hcommDouble = 8,
  hcommBfloat16 = 9,
  hcommFloat8e4m3 = 10,
  hcommFloat8e5m2 = 11,
  hcommNumTypes = 12
} hcommDataType_t;

/* Reduction operators. Values up to hcommAvg as NCCL's; bit operators are for integers.
 * Values from hcommNumOps up are made by hcommRedOpCreatePreMulSum. */
typedef enum {
  hcommSum = 0,
  hcommProd = 1,
  hcommMax = 2,
  hcommMin = 3,
  hcommAvg = 4,
  hcommBand = 5,
  hcommBor = 6,
  hcommBxor = 7,
  hcommNumOps = 8,
  hcommMaxRedOp = 0x7fffffff
} hcommRedOp_t;

/* Names a communicator before it exists: addresses of its root, a port and a nonce. Made by one
 * rank, given to the others by any means; valid for one communicator. */
#define HCOMM_UNIQUE_ID_BYTES 256
typedef struct {
  char internal[HCOMM_UNIQUE_ID_BYTES];
} hcommUniqueId;

#define HCOMM_CONFIG_UNDEF_INT INT32_MIN
typedef struct {
  size_t size;            /* set by HCOMM_CONFIG_INITIALIZER; as are magic and version */
  unsigned magic;
  unsigned version;
  int blocking;           /* 1 (default): init returns when the communicator is ready; 0: at once,
                             with hcommInProgress: only hcommCommGetAsyncError (until it tells
                             another result), Abort and Destroy may follow. Not of split, shrink */
  const char* name;       /* shown in errors, logs and tools; default "world" */
  const char* device;     /* "cpu" (default) */
  int timeout_ms;         /* of one operation, 0: none; default HCOMM_TIMEOUT, else 600000 */
  int init_timeout_ms;    /* default HCOMM_INIT_TIMEOUT, else 60000 */
  const char* transports; /* e.g. "shm,tcp"; default HCOMM_TRANSPORT, else all that work */
  const char* compression; /* not offered in this version: NULL or "none" */
  const char* integrity;  /* not offered in this version: NULL or "off" */
  int deterministic;      /* 1: bits depend on the inputs and the rank order alone */
  const char* topology;   /* file; not offered in this version */
  const char* policy;     /* file of rules; default HCOMM_POLICY, else /etc/hcomm/policy.conf */
  int priority;           /* of hcommCommVirtual only: 0 to 3, the higher goes first */
} hcommConfig_t;

#define HCOMM_CONFIG_MAGIC 0x48434f4du
#define HCOMM_CONFIG_INITIALIZER                                                              \
  {                                                                                           \
    sizeof(hcommConfig_t), HCOMM_CONFIG_MAGIC, HCOMM_VERSION_CODE, HCOMM_CONFIG_UNDEF_INT,    \
        NULL, NULL, HCOMM_CONFIG_UNDEF_INT, HCOMM_CONFIG_UNDEF_INT, NULL, NULL, NULL,         \
        HCOMM_CONFIG_UNDEF_INT, NULL, NULL, HCOMM_CONFIG_UNDEF_INT                            \
  }

/* The last error of a communicator as data. Strings end in 0 and may be cut. */
typedef struct {
  size_t size; /* set by the caller to sizeof(hcommErrorInfo_t) */
  hcommResult_t code;
  int rank;          /* who reports */
  int peer;          /* who is blamed, -1: nobody */
  uint64_t sequence; /* number of the operation in its communicator, 0: none */
  uint64_t bytes;    /* of the operation, a rank */
  char communicator[64];
  char operation[32];
  char transport[16];
  char host[64]; /* of the peer, or of the reporter where nobody is blamed */
  char text[1024];
} hcommErrorInfo_t;

/* -- version, errors ------------------------------------------------------------------------ */

/* Stores HCOMM_VERSION_CODE of the library. */
HCOMM_API hcommResult_t hcommGetVersion(int* version);
/* A constant, short text for a result. Never NULL. */
HCOMM_API const char* hcommGetErrorString(hcommResult_t result);
/* The text of the last error: of comm, or with NULL of the calling thread. Valid until the next
 * HCOMM call of this thread. Never NULL. */
HCOMM_API const char* hcommGetLastError(hcommComm_t comm);
HCOMM_API hcommResult_t hcommCommGetErrorInfo(hcommComm_t comm, hcommErrorInfo_t* info);

/* -- life of a communicator ----------------------------------------------------------------- */

/* Makes the id of a new communicator; the calling process serves its rendezvous. */
HCOMM_API hcommResult_t hcommGetUniqueId(hcommUniqueId* id);
/* Joins the communicator of nranks ranks that id names, as rank. Blocks until all have joined or
 * init_timeout_ms is over: then hcommTimeout on every rank, naming who is missing. */
HCOMM_API hcommResult_t hcommCommInitRank(hcommComm_t* comm, int nranks, hcommUniqueId id,
                                          int rank);
HCOMM_API hcommResult_t hcommCommInitRankConfig(hcommComm_t* comm, int nranks, hcommUniqueId id,
                                                int rank, const hcommConfig_t* config);
/* Joins the job that started this process: hcc-launch, torchrun, Open MPI, MPICH or Slurm. Without
 * any of them the communicator has one rank. config may be NULL. */
HCOMM_API hcommResult_t hcommCommInitWorld(hcommComm_t* comm, const hcommConfig_t* config);
/* Makes a communicator of ndev ranks in this process; comms[i] is rank i on devices[i] (NULL: all
 * "cpu"). Its ranks are driven by a thread each, or by one thread inside a group. */
HCOMM_API hcommResult_t hcommCommInitAll(hcommComm_t* comms, int ndev,
                                         const char* const* devices);
#define HCOMM_SPLIT_NOCOLOR (-1)
/* Collective over comm: ranks of equal color >= 0 form a new communicator, ordered by key, then by
 * rank. HCOMM_SPLIT_NOCOLOR: takes part, gets NULL. config NULL: inherited from comm. */
HCOMM_API hcommResult_t hcommCommSplit(hcommComm_t comm, int color, int key,
                                       hcommComm_t* newcomm, const hcommConfig_t* config);
/* Collective over comm: the same ranks once more, as a communicator with an order of its own, so
 * that its operations neither wait for those of comm nor of other virtual ones. While an operation
 * of a higher config->priority moves on this rank, those of lower ones, also of comm itself, stand
 * still; virtual ones of priority 0 keep few bytes on their way at once (over TCP), so that others
 * do not queue behind them. That costs these some bandwidth on fast links. name: shown in errors
 * and tools, not NULL. config NULL: inherited from comm; without a priority, "forward" has 1,
 * every other name 0. Operations of two priorities run at once on streams, or in plans.
 * Errors: hcommInvalidUsage, ranks differ in name or priority. */
HCOMM_API hcommResult_t hcommCommVirtual(hcommComm_t comm, const char* name, hcommComm_t* newcomm,
                                         const hcommConfig_t* config);
#define HCOMM_SHRINK_DEFAULT 0
#define HCOMM_SHRINK_ABORT 1 /* ends what is in flight on comm, as hcommCommRevoke does, first */
/* The ranks of comm that are not among exclude[0..excluded) form a new communicator, in the same
 * order. They call it with the same list; the excluded ranks do not, and may be dead: this also
 * works after comm has failed, as long as the process of the job's rank 0 lives. config NULL:
 * inherited from comm. Errors: hcommInvalidArgument, a list that names this rank or no rank;
 * hcommTimeout after init_timeout_ms, naming who did not call; hcommRemoteError, a member died. */
HCOMM_API hcommResult_t hcommCommShrink(hcommComm_t comm, const int* exclude, int excluded,
                                        hcommComm_t* newcomm, const hcommConfig_t* config,
                                        int flags);
/* Waits until all operations of this rank are done. Afterwards only destroy is allowed. */
HCOMM_API hcommResult_t hcommCommFinalize(hcommComm_t comm);
/* Finalizes if need be, frees. The handle is invalid afterwards, whatever is returned; but inside a
 * group that splits or shrinks comm nothing is done: hcommInvalidUsage. */
HCOMM_API hcommResult_t hcommCommDestroy(hcommComm_t comm);
/* Ends what is in flight on every rank with hcommAborted and frees nothing that a caller uses: a
 * blocked call returns, then hcommCommDestroy is safe. From any thread; returns within 2 s. */
HCOMM_API hcommResult_t hcommCommAbort(hcommComm_t comm);
/* As abort, but the handle stays valid: later calls return hcommAborted. */
HCOMM_API hcommResult_t hcommCommRevoke(hcommComm_t comm);
/* The sticky error of the communicator, hcommSuccess or hcommInProgress. */
HCOMM_API hcommResult_t hcommCommGetAsyncError(hcommComm_t comm, hcommResult_t* error);
HCOMM_API hcommResult_t hcommCommCount(hcommComm_t comm, int* count);
HCOMM_API hcommResult_t hcommCommUserRank(hcommComm_t comm, int* rank);
HCOMM_API hcommResult_t hcommCommDevice(hcommComm_t comm, const char** device);
HCOMM_API hcommResult_t hcommCommName(hcommComm_t comm, const char** name);

/* -- memory --------------------------------------------------------------------------------- */

/* Memory that peers on the node can map: collectives on it need no copy. device NULL: "cpu". */
HCOMM_API hcommResult_t hcommMemAlloc(void** pointer, size_t bytes, const char* device);
HCOMM_API hcommResult_t hcommMemFree(void* pointer);
/* Tells comm of memory that will be used often. handle is given back to Deregister. */
HCOMM_API hcommResult_t hcommCommRegister(hcommComm_t comm, void* pointer, size_t bytes,
                                          void** handle);
HCOMM_API hcommResult_t hcommCommDeregister(hcommComm_t comm, void* handle);

/* -- streams, events ------------------------------------------------------------------------ */

/* A queue of operations that run in order in a worker of the library. device NULL: "cpu". */
HCOMM_API hcommResult_t hcommStreamCreate(hcommStream_t* stream, const char* device);
/* Wraps a vendor's stream; hcommUnsupported for "cpu". */
HCOMM_API hcommResult_t hcommStreamWrap(hcommStream_t* stream, const char* device, void* native);
/* Waits for all that was queued; the first error of it is returned. */
HCOMM_API hcommResult_t hcommStreamSynchronize(hcommStream_t stream);
/* hcommSuccess: idle; hcommInProgress: not. */
HCOMM_API hcommResult_t hcommStreamQuery(hcommStream_t stream);
HCOMM_API hcommResult_t hcommStreamDestroy(hcommStream_t stream);
HCOMM_API hcommResult_t hcommEventCreate(hcommEvent_t* event);
HCOMM_API hcommResult_t hcommEventRecord(hcommEvent_t event, hcommStream_t stream);
HCOMM_API hcommResult_t hcommStreamWaitEvent(hcommStream_t stream, hcommEvent_t event);
HCOMM_API hcommResult_t hcommEventQuery(hcommEvent_t event);
HCOMM_API hcommResult_t hcommEventDestroy(hcommEvent_t event);

/* -- groups --------------------------------------------------------------------------------- */

/* Calls between Start and End are started together by the outermost End: sends and receives of any
 * order, operations of several communicators, several ranks driven by one thread. Small all-reduces
 * of one type and operator that follow one another on a communicator may travel as one, so a group
 * that holds several is the same on all ranks, and none of them may read or write what another
 * writes (hcommInvalidArgument). Calls inside return hcommSuccess or an argument
 * error; End returns the first error. */
HCOMM_API hcommResult_t hcommGroupStart(void);
HCOMM_API hcommResult_t hcommGroupEnd(void);
/* Ends the group without running it and drops its operations; hcommSuccess if it could have run. */
HCOMM_API hcommResult_t hcommGroupSimulateEnd(void);

/* -- plans ----------------------------------------------------------------------------------- */

/* A plan is a group that is kept: its calls are checked once, with their buffers, and can be
 * started again and again, as persistent operations of MPI. What is called on a communicator comes
 * in one order on all ranks; the place of a plan in it is that of its start.
 *
 *     hcommGroupStart();
 *     hcommAllReduce(a, a, n, hcommFloat32, hcommSum, comm, NULL);
 *     hcommPlanCreate(&plan);  // in place of hcommGroupEnd; nothing has run
 *     for (;;) { hcommPlanStart(plan); compute(); hcommPlanWait(plan); }
 *
 * Ends the outermost open group and stores its operations as a plan; V forms keep copies of their
 * arrays, buffers must stay. Errors: those of the calls inside; hcommInvalidUsage outside of a
 * group, in an inner group, or when the group joins, splits or shrinks communicators: the group is
 * ended all the same, except where there is an inner or no group. */
HCOMM_API hcommResult_t hcommPlanCreate(hcommPlan_t* plan);
/* Starts the operations and returns. On streams they run there. Without a stream they move in this
 * thread: in hcommProgress, hcommPlanQuery, and whatever else of HCOMM it waits in. Buffers belong
 * to the plan until hcommPlanWait has returned. A thread that ends before that fails the
 * communicator. */
HCOMM_API hcommResult_t hcommPlanStart(hcommPlan_t plan);
/* hcommSuccess: not started, or hcommPlanWait would return at once; hcommInProgress: not yet. */
HCOMM_API hcommResult_t hcommPlanQuery(hcommPlan_t plan);
/* Waits until the operations of the last start have ended; the first error of them. Without a
 * stream only by the thread that started it. */
HCOMM_API hcommResult_t hcommPlanWait(hcommPlan_t plan);
/* Waits if need be, frees. */
HCOMM_API hcommResult_t hcommPlanDestroy(hcommPlan_t plan);
/* Moves all that this thread has started without a stream, without waiting; for a caller that
 * computes. underway (may be NULL): how many plans have not ended. */
HCOMM_API hcommResult_t hcommProgress(int* underway);

/* -- operators ------------------------------------------------------------------------------ */

/* An operator that multiplies each contribution of this rank by *scalar (of datatype) and sums. */
HCOMM_API hcommResult_t hcommRedOpCreatePreMulSum(hcommRedOp_t* op, const void* scalar,
                                                  hcommDataType_t datatype, hcommComm_t comm);
HCOMM_API hcommResult_t hcommRedOpDestroy(hcommRedOp_t op, hcommComm_t comm);

/* -- collectives ---------------------------------------------------------------------------- */
/* n = ranks of comm. "send: 3 count" = shape of the buffer in elements. */

/* send: count, recv: count; recv = op over the ranks' send. In place: equal pointers. */
HCOMM_API hcommResult_t hcommAllReduce(const void* send, void* recv, size_t count,
                                       hcommDataType_t type, hcommRedOp_t op, hcommComm_t comm,
                                       hcommStream_t stream);
/* As all-reduce, the result at root only; recv is read and written at root only. */
HCOMM_API hcommResult_t hcommReduce(const void* send, void* recv, size_t count,
                                    hcommDataType_t type, hcommRedOp_t op, int root,
                                    hcommComm_t comm, hcommStream_t stream);
/* send (root only): count, recv: count. In place: equal pointers. */
HCOMM_API hcommResult_t hcommBroadcast(const void* send, void* recv, size_t count,
                                       hcommDataType_t type, int root, hcommComm_t comm,
                                       hcommStream_t stream);
/* send: count, recv: n count. In place: send == recv + rank count. */
HCOMM_API hcommResult_t hcommAllGather(const void* send, void* recv, size_t count,
                                       hcommDataType_t type, hcommComm_t comm,
                                       hcommStream_t stream);
/* send: n count, recv: count. In place: recv == send + rank count. */
HCOMM_API hcommResult_t hcommReduceScatter(const void* send, void* recv, size_t count,
                                           hcommDataType_t type, hcommRedOp_t op,
                                           hcommComm_t comm, hcommStream_t stream);
/* send: n count, recv: n count; block j of send goes to rank j. In place: equal pointers. */
HCOMM_API hcommResult_t hcommAllToAll(const void* send, void* recv, size_t count,
                                      hcommDataType_t type, hcommComm_t comm,
                                      hcommStream_t stream);
/* send: count, recv (root only): n count. In place at root: send == recv + root count. */
HCOMM_API hcommResult_t hcommGather(const void* send, void* recv, size_t count,
                                    hcommDataType_t type, int root, hcommComm_t comm,
                                    hcommStream_t stream);
/* send (root only): n count, recv: count. In place at root: recv == send + root count. */
HCOMM_API hcommResult_t hcommScatter(const void* send, void* recv, size_t count,
                                     hcommDataType_t type, int root, hcommComm_t comm,
                                     hcommStream_t stream);
/* Returns when every rank has called it. */
HCOMM_API hcommResult_t hcommBarrier(hcommComm_t comm, hcommStream_t stream);

/* The V forms: block i has counts[i] elements at displs[i] elements (displs NULL: packed). Arrays
 * have n entries and are read before the call returns. */
/* send: counts[rank]; recv: blocks. In place: send == recv + displs[rank]. */
HCOMM_API hcommResult_t hcommAllGatherV(const void* send, void* recv, const size_t* counts,
                                        const size_t* displs, hcommDataType_t type,
                                        hcommComm_t comm, hcommStream_t stream);
/* send: blocks; recv: counts[rank]. In place: recv == send + displs[rank]. */
HCOMM_API hcommResult_t hcommReduceScatterV(const void* send, void* recv, const size_t* counts,
                                            const size_t* displs, hcommDataType_t type,
                                            hcommRedOp_t op, hcommComm_t comm,
                                            hcommStream_t stream);
/* Block j of send goes to rank j; block i of recv comes from rank i. Counts must agree pairwise:
 * sendcounts[j] of rank i == recvcounts[i] of rank j. In place: equal pointers, counts, displs. */
HCOMM_API hcommResult_t hcommAllToAllV(const void* send, const size_t* sendcounts,
                                       const size_t* sdispls, void* recv,
                                       const size_t* recvcounts, const size_t* rdispls,
                                       hcommDataType_t type, hcommComm_t comm,
                                       hcommStream_t stream);
/* send: sendcount; recv, counts and displs at root only. In place at root:
 * send == recv + displs[root]. */
HCOMM_API hcommResult_t hcommGatherV(const void* send, size_t sendcount, void* recv,
                                     const size_t* counts, const size_t* displs,
                                     hcommDataType_t type, int root, hcommComm_t comm,
                                     hcommStream_t stream);
/* send, counts and displs at root only; recv: recvcount. In place at root:
 * recv == send + displs[root]. */
HCOMM_API hcommResult_t hcommScatterV(const void* send, const size_t* counts,
                                      const size_t* displs, void* recv, size_t recvcount,
                                      hcommDataType_t type, int root, hcommComm_t comm,
                                      hcommStream_t stream);

/* send: count to peer; matched, in order, by the peer's receives. A send may wait for its receive:
 * exchanges belong into a group. */
HCOMM_API hcommResult_t hcommSend(const void* send, size_t count, hcommDataType_t type, int peer,
                                  hcommComm_t comm, hcommStream_t stream);
HCOMM_API hcommResult_t hcommRecv(void* recv, size_t count, hcommDataType_t type, int peer,
                                  hcommComm_t comm, hcommStream_t stream);

/* -- what ran ------------------------------------------------------------------------------- */

/* How a collective of this shape would run on comm: "ring tile=512KiB window=4 shm", for tables and
 * logs. Cut to bytes, ends in 0. Local, not collective. name is that of the call in snake case
 * without prefix: "all_reduce", "all_gather_v". */
HCOMM_API hcommResult_t hcommCommExplain(hcommComm_t comm, const char* name, size_t count,
                                         hcommDataType_t type, char* text, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif /* HCOMM_H */
