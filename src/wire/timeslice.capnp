@0xd2a1f0b3c4958677;
# Everything that crosses a TCP socket: node daemon and tsctl to master. Ordinals are never reused.
#
# An expected refusal is an `Outcome` in the result; an exception means that something is broken.
# Orders carry an operation id that grows within a generation; a node answers a repeated id from its
# record. All durations are microseconds, all sizes bytes.

$import "/capnp/c++.capnp".namespace("ts::wire");

struct Generation {
  # One life of a master. Same number with another id: two masters; the node keeps the one it follows.
  number @0 :UInt32;
  id @1 :UInt64;
}

struct Epoch {
  generation @0 :UInt32;
  counter @1 :UInt64;
}

struct JobKey {
  # A job is one workload in one group; its name is unique within the group.
  group @0 :Text;
  name @1 :Text;
}

enum Residency {
  absent @0;
  resident @1;
  quiescing @2;
  quiet @3;
  saving @4;
  saved @5;
  restoring @6;
  faulted @7;
}

struct MemberFact {
  # As last read from the driver.
  member @0 :UInt64;
  # Chosen by the node; never reused by it.
  pid @1 :Int32;
  residency @2 :Residency;
  bytes @3 :UInt64;
  residue @4 :UInt64;
  devices @5 :List(UInt32);
  unreleased @6 :Bool;
  # Saved, and what was saved is not yet seen to be gone from the devices.
}

struct Outcome {
  code @0 :Code;
  cause @1 :UInt16;
  # ts::Cause by number; translated in src/wire.
  need @2 :UInt64;
  free @3 :UInt64;
  lasting @4 :Bool;
  detail @5 :Text;
  bytes @6 :UInt64;
  members @7 :List(MemberFact);

  enum Code {
    ok @0;
    refused @1;
    failed @2;
    gone @3;
  }
}

struct DeviceInfo {
  index @0 :UInt32;
  uuid @1 :Text;
  name @2 :Text;
  totalBytes @3 :UInt64;
  freeBytes @4 :UInt64;
}

struct DeviceFree {
  index @0 :UInt32;
  bytes @1 :UInt64;
}

struct JobSpec {
  key @0 :JobKey;
  uid @1 :UInt32;
  gang @2 :UInt32;
  priority @3 :Int32;
  keepBroken @4 :Bool;
  backend @5 :Text;
  slurmJob @6 :UInt32;
  # Whose step it is; 0: none of Slurm's.
}

struct Participant {
  id @0 :UInt64;
  # Chosen by the node; never reused by it.
  process @1 :UInt64;
  # The same process in two groups has the same one.
  pid @2 :Int32;
  devices @3 :List(UInt32);
  entered @4 :Bool;
  epoch @5 :Epoch;
  # Of the slice it is in.
  waiting @6 :Bool;
  request @7 :UInt64;
  ticket @8 :Ticket;
  yielded @9 :Bool;
  # It has given `epoch` back, and no master has confirmed that: then it is not entered any more.
}

struct Ticket {
  # A waiter's place, given by a master and kept by the node: order survives a restart of the master.
  generation @0 :UInt32;
  number @1 :UInt64;
}

enum Gathering {
  # Whether all of a job's gang were there at once.
  unknown @0;
  # It has none, or nobody has said: the other side is of a release before 0.1.
  no @1;
  yes @2;
}

struct JobReport {
  spec @0 :JobSpec;
  participants @1 :List(Participant);
  members @2 :List(MemberFact);
  granted @3 :Bool;
  # The slice `epoch` is recorded here, on `grantedDevices`, whoever of it is still inside.
  epoch @4 :Epoch;
  nodes @5 :List(Text);
  # All nodes that the job is on, as the master said last (see NodeDaemon.spans); this one among them.
  grantedDevices @6 :List(UInt32);
  gathered @7 :Gathering;
  # As the master said last (see NodeDaemon.spans).
}

struct NodeReport {
  devices @0 :List(DeviceInfo);
  jobs @1 :List(JobReport);
  withdrawn @2 :List(UInt64);
  # Participants whose join was asked for and never answered here, and is void: they have not joined.
}

interface Master {
  # Bootstrap capability of the master's listeners.

  greet @0 (minVersion :UInt16, maxVersion :UInt16, nonce :Data)
        -> (version :UInt16, nonce :Data, generation :Generation, credential :Text, auth :Text,
            door :Door);
  # First call. `credential` proves the master over both nonces (MUNGE), or is empty with auth "none".
  # No common version: an exception that names both ranges.
}

interface Door {
  enterNode @0 (credential :Text, name :Text, highest :Generation, daemon :NodeDaemon,
                report :NodeReport, instance :UInt64)
            -> (session :NodeSession, generation :Generation, heartbeatUs :UInt64);
  # `instance`: a random number of the daemon's life. A later session of the same name and instance
  # ends this one; its unread orders are void. With another instance it does so only when nobody
  # answers on this one: two nodes that have one name would throw each other out for ever.

  enterOperator @1 (credential :Text) -> (session :OperatorSession);
}

interface NodeSession {
  # What a node tells. Calls are delivered in order; each returns at once.

  join @0 (spec :JobSpec, participant :Participant) -> (outcome :Outcome);
  left @1 (participant :UInt64, died :Bool);
  jobEnded @2 (key :JobKey);
  # Nothing of the job is left on this node.
  memberSeen @3 (key :JobKey, fact :MemberFact);
  memberDied @4 (member :UInt64);
  memberCleared @5 (member :UInt64);
  acquire @6 (request :UInt64, participant :UInt64, tryOnly :Bool, phase :Text)
          -> (ticket :Ticket);
  # The answer comes as NodeDaemon.grant or NodeDaemon.refuse. Of a request that waits already, only
  # its place is told once more.
  cancel @7 (request :UInt64);
  yield @8 (participant :UInt64, epoch :Epoch);
  heartbeat @9 (free :List(DeviceFree));
  # What is free now on each device that could be measured.
  finished @10 (operation :UInt64, outcome :Outcome);
  # The late end of an order whose answer was `refused` with cause busy or overdue: see NodeDaemon.
  admit @11 (spec :JobSpec, devices :List(UInt32)) -> (outcome :Outcome, environment :List(Text));
  # Whether a process of this job could join with these devices; nothing changes. `environment`: what
  # the group's section sets in its jobs, each NAME=VALUE.
  outlook @12 (key :JobKey) -> (before :UInt32, missing :UInt32, text :Text);
  # Of a job that waits: how many jobs are before it, how many participants its gang lacks, and why it
  # waits, as a sentence.
}

struct Order {
  operation @0 :UInt64;
  key @1 :JobKey;
}

interface NodeDaemon {
  # What a master orders. One operation per member at a time. A result is the order's one outcome, but
  # for `refused` with cause overdue (past its deadline, still running), or busy with its own operation
  # id in `need` (a repeated order, still running): then NodeSession.finished brings the end. Busy with
  # another id, the one that runs: the order was not begun. After a reconnection within one generation the
  # master repeats what is open, with the same operation ids and in the same order.

  prepare @0 (order :Order, outgoing :List(UInt64), incoming :List(UInt64)) -> (outcome :Outcome);
  dropBooking @1 (order :Order) -> (outcome :Outcome);
  quiesce @2 (order :Order, deadlineUs :UInt64) -> (outcome :Outcome);
  release @3 (order :Order) -> (outcome :Outcome);
  save @4 (order :Order, member :UInt64, devices :List(UInt32)) -> (outcome :Outcome);
  restore @5 (order :Order, member :UInt64, devices :List(UInt32)) -> (outcome :Outcome);
  grant @6 (order :Order, epoch :Epoch, devices :List(UInt32), requests :List(UInt64),
            waitedUs :UInt64, restored :Bool, bytes :UInt64) -> (outcome :Outcome);
  endSlice @7 (order :Order, epoch :Epoch) -> (outcome :Outcome);
  discard @8 (order :Order, member :UInt64) -> (outcome :Outcome);
  kill @9 (order :Order, why :Text) -> (outcome :Outcome);
  refuse @10 (request :UInt64, cause :UInt16, holder :Text, need :UInt64, free :UInt64,
              detail :Text);
  askToYield @11 (key :JobKey, epoch :Epoch);
  heartbeat @12 ();
  spans @13 (key :JobKey, nodes :List(Text), gathered :Gathering);
  # All nodes that the job is on now, and whether its gang has gathered. Told before any order
  # that depends on it; kept by the node, for the report to a master that knows nothing.
}

struct LateCall {
  # A call past its deadline and still running.
  node @0 :Text;
  key @1 :JobKey;
  call @2 :Text;
  # The order's verb: quiesce, save, restore, release, grant, prepare, discard, kill.
  pids @3 :List(Int32);
  # The processes that it was about when it got late.
  forUs @4 :UInt64;
}

struct MemberStatus {
  node @0 :Text;
  fact @1 :MemberFact;
}

struct JobStatus {
  key @0 :JobKey;
  uid @1 :UInt32;
  phase @2 :Text;
  priority @3 :Int32;
  participants @4 :UInt32;
  entered @5 :UInt32;
  epoch @6 :Epoch;
  sinceUs @7 :UInt64;
  # For how long it has waited, held, been faulted or broken.
  place @8 :UInt32;
  cause @9 :Text;
  fault @10 :Text;
  waitsFor @11 :List(JobKey);
  detail @12 :Text;
  claim @13 :List(ClaimPart);
  members @14 :List(MemberStatus);
  label @15 :Text;
  # What its last acquire gave as the phase of its work.
  late @16 :List(LateCall);

  struct ClaimPart {
    node @0 :Text;
    devices @1 :List(UInt32);
  }
}

struct GroupStatus {
  name @0 :Text;
  policy @1 :Text;
  paused @2 :Bool;
  holders @3 :List(Text);
  queue @4 :List(Text);
  switches @5 :UInt64;
}

struct NodeStatus {
  name @0 :Text;
  state @1 :Text;
  # up, suspect, dead, drained
  address @2 :Text;
  devices @3 :List(DeviceInfo);
  jobs @4 :UInt32;
  sinceUs @5 :UInt64;
  late @6 :List(LateCall);
  # Of the jobs that the asker may touch.
}

struct EventLine {
  # One line of the event log.
  unixUs @0 :UInt64;
  verb @1 :Text;
  text @2 :Text;
  # The whole line, logfmt.
}

interface EventSink {
  event @0 (line :EventLine) -> ();
  # The next is sent when this returns; a reader that stays too far behind is dropped with a last line.
  caughtUp @1 () -> ();
  # Once, when all past events were sent: what follows is new.
}

interface OperatorSession {
  status @0 () -> (version :Text, generation :Generation, uptimeUs :UInt64,
                   groups :List(GroupStatus), jobs :List(JobStatus), nodes :List(NodeStatus));
  why @1 (job :Text) -> (outcome :Outcome, jobs :List(JobStatus));
  # `job` is a name, or GROUP/NAME. The job first, then who is before it.
  pauseGroup @2 (group :Text, on :Bool) -> (outcome :Outcome);
  evict @3 (job :Text, kill :Bool) -> (outcome :Outcome);
  clearFault @4 (job :Text) -> (outcome :Outcome);
  drain @5 (node :Text, on :Bool) -> (outcome :Outcome);
  events @6 (since :UInt64, sink :EventSink) -> (handle :Handle);
  # Past events from `since` (unix µs) on, then new ones. Dropping `handle` ends it.
  declareDead @7 (node :Text) -> (outcome :Outcome);
  # A person's verdict on a node that cannot be reached: its slices are void when it returns.
  slurmEnded @8 (slurmJob :UInt32) -> (outcome :Outcome, left :UInt32, graceUs :UInt64);
  # Slurm's, by EpilogSlurmctld: the job ends. `left`: jobs of ours that are still here of it; what is
  # left after `graceUs` is killed.

  interface Handle {}
}
