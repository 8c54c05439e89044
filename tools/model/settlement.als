/*
 * How a message is settled, given back, copied, quarantined and redriven, and what can go wrong at each step.
 *
 * There are two processes. The consumer takes copies from the queue of work, and runs a handler for each. The redriver
 * takes copies from the queue of dead letters; what it runs for each is the publish of its copy to the queue of work. Both
 * are the same engine. Beneath them an adapter carries out what they ask, in several steps, between each two of which a
 * connection may be cut. Time is not modelled: what waits for a timer is asked again at some later step.
 */

enum Place { Work, Letters }

/* What the engine asks for a delivery. Again and Release give it back natively; Later, Hop and Bury make a copy. */
enum Wish { Ack, Drop, Again, Later, Bury, Hop, Release }

/* Where a delivery is in the engine. A copy with a wish and without a stage is remembered: its delivery was lost. */
enum Stage { Waiting, Running, Asking, Held, Probing, Kept }

/* How far the adapter is with a call: it has done nothing; the copy is stored; that is confirmed; the original is settled. */
enum Phase { Sent, Stored, Confirmed, Settled }

/* What the copy lacks because a larger one was refused. */
enum Size { Whole, NoHistory, NoText, NoError, Least }
fun smaller: Size -> Size { Whole -> NoHistory + NoHistory -> NoText + NoText -> NoError + NoError -> Least }

/* Why the engine keeps a delivery: to give it back when its delay is over, or because all is refused. */
enum Keep { Return, Quarantine }

/* How often a wish was lost with its delivery. */
enum Losses { Once, Often }

/* What a wrong protocol does. Each command that names one must find a counterexample. */
enum Mutant {
  AckFirst,          // settles the original before its copy is confirmed
  RedriveAckFirst,   // removes a dead letter before it is published
  LostIsTaken,       // takes an answer that was lost for a success
  UnknownIsAcked,    // takes `unknown` for `gone`, and settles the original
  RefusedIsDropped,  // drops a dead letter that is refused
  ById,              // remembers by the message's id, and not by the copy's name
  Forgetful,         // remembers nothing of lost deliveries
  QuarantineHolds    // begins no message while one is kept
}
one sig Protocol { mutant: lone Mutant }
pred is [m: Mutant] { m in Protocol.mutant }

sig Id {}
/* Producers may repeat an id. */
sig Message { id: one Id }
var sig Over in Message {}  // it succeeded, was dropped on its handler's word, or was purged

/* A copy of a message in a queue. A copy never moves: what moves a message is another copy. The broker names each copy. */
sig Copy {
  of: one Message,
  home: one Place,
  var stage: lone Stage,
  var wish: lone Wish,
  var size: lone Size,
  var keep: lone Keep,
  var losses: lone Losses,
  var phase: lone Phase,
  var judged: lone Wish  // the last word of its handler, while its process lives
}
var sig InBroker in Copy {}  // it is stored
var sig Out in Copy {}       // it is delivered, and the broker gives it to nobody else
var sig Live in Copy {}      // the delivery that the engine has, or settles, is the one that is out
var sig Anew in Copy {}      // it has come again while it is settled, and the engine has that delivery as well
var sig Last in Copy {}      // its next failure is the last that is allowed
var sig Early in Copy {}     // it is delivered before its time
var sig Used in Copy {}      // it is, or was, stored
var sig Copied in Copy {}    // another copy was made of it
var sig Replaced in Copy {}  // a replacement of it was confirmed

/* What happens in a step, and to which copies. */
enum Act {
  Deliver, Begin, End, Store, Confirm, Settle, Ok, Gone, Ours, Unknown, Refuse, RefuseAll, Resend, TurnAway, Retry, Expire,
  Cut, Die, Purge, Idle
}
one sig Step { var act: one Act, var on: set Copy }
pred step [a: Act, cs: set Copy] { Step.act = a and Step.on = cs }

fun asking: set Copy { stage.(Asking + Probing) }
fun copying: set Copy { asking & wish.(Later + Hop + Bury) + stage.Running & home.Letters }

/* ---- What stays the same. ---- */

pred sameStored [c: Copy] { (c in InBroker iff c in InBroker') and (c in Last iff c in Last') and (c in Early iff c in Early') }
pred sameDelivery [c: Copy] { (c in Out iff c in Out') and (c in Live iff c in Live') and (c in Anew iff c in Anew') }
pred sameBroker [c: Copy] { sameStored[c] and sameDelivery[c] }
pred sameEngine [c: Copy] {
  c.stage' = c.stage and c.wish' = c.wish and c.size' = c.size and c.keep' = c.keep and c.losses' = c.losses
}
pred same [c: Copy] { sameBroker[c] and sameEngine[c] and c.phase' = c.phase and c.judged' = c.judged }
pred sameJudgement [c: Copy] { c.judged' = c.judged and Over' = Over }

/* ---- What the engine does with a delivery. ---- */

pred engine [c: Copy, s: lone Stage, w: lone Wish, z: lone Size, k: lone Keep, l: lone Losses] {
  c.stage' = s and c.wish' = w and c.size' = z and c.keep' = k and c.losses' = l
  c.phase' = ((some s & (Asking + Probing) or (s = Running and c.home = Letters)) implies Sent else none)
}
pred ask [c: Copy, w: Wish, z: Size] { engine[c, Asking, w, z, c.keep, c.losses] }
pred forget [c: Copy] { engine[c, none, none, none, none, none] }

/* A delivery that came while its predecessor was being settled takes its place. */
pred adopt [c: Copy] { sameStored[c] and (c in Out iff c in Out') and (c in Live' iff c in Out) and c not in Anew' }

/* The delivery is lost, and what was asked for it is remembered. What came before its time is only looked at again. */
pred lose [c: Copy] {
  (c in wish.(Hop + Release) or is[Forgetful]) implies forget[c] else
    engine[c, none, c.wish, wholeAgain[c], none, (some c.losses implies Often else Once)]
}
fun wholeAgain [c: Copy]: Size { c in wish.(Later + Again) implies Whole else c.size }

/* ---- The broker and the engine. ---- */

pred deliver [c: Copy] {
  step[Deliver, c] and c in InBroker - Out
  // What goes back at once comes again by right; that it overtakes its own answer is not modelled.
  c in asking implies c not in phase.Settled + wish.(Again + Release)
  sameStored[c] and sameJudgement[c] and c in Out'
  some c.stage implies {
    // It takes the place of the lost delivery; one that is being settled stays with that one until the answer.
    sameEngine[c] and c.phase' = c.phase
    c in Live' iff c not in asking
    c in Anew' iff c in asking
  } else {
    c in Live' and c not in Anew'
    some recalled[c] implies (some d: recalled[c] | repeat[c, d])
    else c in Early implies engine[c, Asking, Hop, Whole, none, none]
    else engine[c, Waiting, none, none, none, none]
  }
}
/* The copies whose wish the engine remembers when this one comes. */
fun recalled [c: Copy]: set Copy { { d: Copy | no d.stage and some d.wish and (d = c or (is[ById] and d.of.id = c.of.id)) } }
/* What was asked for a lost delivery is asked for this one. After several losses it waits before. */
pred repeat [c, d: Copy] {
  engine[c, (d.losses = Often implies Kept else Asking), d.wish, d.size, none, d.losses]
}

/* The consumer runs one handler at a time, and none while the broker does not take settlements. */
pred mayBegin [c: Copy] {
  c.stage = Waiting
  no home.(c.home) & stage.(Held + Probing)
  c.home = Work implies no home.Work & stage.Running
  is[QuarantineHolds] implies no stage.Kept
}
pred begin [c: Copy] {
  step[Begin, c] and mayBegin[c]
  sameBroker[c] and sameJudgement[c]
  (c.home = Letters and is[RedriveAckFirst]) implies engine[c, Asking, Ack, Whole, none, none]
  else engine[c, Running, none, none, none, none]
}

/* The handler ends: well, with a word that drops the message, or with a failure. The redriver's has its confirmation. */
pred end [c: Copy] {
  step[End, c] and c.stage = Running and sameBroker[c]
  c.home = Letters implies c.phase = Confirmed
  some w: verdicts[c] {
    engine[c, Asking, w, Whole, none, none]
    c.judged' = w & (Ack + Drop + Bury)
    Over' = Over + ((c.home = Work and w in Ack + Drop) implies c.of else none)
  }
}
fun verdicts [c: Copy]: set Wish {
  c.home = Letters implies Ack else Ack + Drop + Bury + (c in Last implies none else Again + Later)
}

/* The redriver's publish gets no answer, and is tried again. */
pred resend [c: Copy] {
  step[Resend, c] and c in stage.Running & phase.(Sent + Stored)
  sameBroker[c] and sameEngine[c] and sameJudgement[c]
  c.phase' = (is[LostIsTaken] implies Confirmed else Sent)
}
/* The redriver's publish is refused: the letter goes back. */
pred turnAway [c: Copy] {
  step[TurnAway, c] and c.stage = Running and c.home = Letters and c.phase = Sent
  sameBroker[c] and sameJudgement[c] and ask[c, Release, Whole]
}

/* The time has come to ask once more. */
pred retry [c: Copy] {
  step[Retry, c] and c in stage.(Held + Kept)
  sameDelivery[c] and sameJudgement[c] and (c in InBroker iff c in InBroker') and (c in Last iff c in Last')
  // The process has kept the delay.
  let over = (c.stage = Kept and c.keep = Return) implies c.wish & (Later + Hop) else none {
    c in Early' iff (c in Early and over != Hop)
    engine[c, (c.stage = Held implies Probing else Asking),
      (over = Later implies Again else over = Hop implies Release else c.wish),
      (some over implies Whole else c.size), c.keep, c.losses]
  }
}

/* ---- The adapter. ---- */

pred store [c, d: Copy] {
  step[Store, c + d] and c in copying and c.phase = Sent
  d.of = c.of and d not in Used
  sameBroker[c] and sameEngine[c] and c.phase' = Stored and c.judged' = c.judged and Over' = Over
  d.home = (c.wish = Bury implies Letters else Work)
  d in InBroker' and d not in Out' + Live' + Anew' + Early'
  d in Last' iff (c.wish = Later or (c.wish = Hop and c in Last))
  sameEngine[d] and d.phase' = d.phase and d.judged' = d.judged
}
pred confirm [c: Copy] {
  step[Confirm, c] and c in copying and c.phase = Stored
  sameBroker[c] and sameEngine[c] and sameJudgement[c] and c.phase' = Confirmed
}
/* A delay, too, may be native, where the broker has one; else there is a copy. */
pred native [c: Copy] { c in phase.Sent & wish.(Again + Release + Later + Hop) }
/* The original is removed or given back, on the connection that delivered it. */
pred settle [c: Copy] {
  step[Settle, c] and c in asking & Live
  c.phase = Sent or c.phase = Confirmed
  c.wish = Bury implies (c.phase = Confirmed or is[AckFirst])
  native[c] implies c in InBroker' else c not in InBroker'
  c in Last' iff (c in Last or (native[c] and c in wish.(Again + Later)))
  c in Early' iff (c in Early and not (native[c] and c.wish = Hop))
  c not in Out' + Live' and (c in Anew iff c in Anew')
  sameEngine[c] and sameJudgement[c] and c.phase' = Settled
}

/* ---- The adapter's answers, and what the engine makes of them. ---- */

pred ok [c: Copy] { step[Ok, c] and c in asking and c.phase = Settled and sameBroker[c] and sameJudgement[c] and forget[c] }

/* The delivery is lost. If it has come again meanwhile, the wish is asked for that one. */
pred gone [c: Copy] {
  step[Gone, c] and c in asking - Live
  adopt[c] and sameJudgement[c]
  c not in Anew implies lose[c] else let often = some c.losses |
    engine[c, (often implies Kept else Asking), c.wish, wholeAgain[c], none, (often implies Often else Once)]
}
/* Nothing was done, and it may be asked again. */
pred ours [c: Copy] {
  step[Ours, c] and c in asking and c.phase = Sent
  adopt[c] and sameJudgement[c] and engine[c, Held, c.wish, c.size, c.keep, c.losses]
}
/* No answer came, whatever was done. */
pred unknown [c: Copy] {
  step[Unknown, c] and c in asking and sameJudgement[c]
  is[UnknownIsAcked] and c in Live & wish.(Later + Hop + Bury) implies {
    c not in InBroker' + Out' + Live' + Anew' and (c in Last iff c in Last') and (c in Early iff c in Early') and lose[c]
  } else {
    adopt[c]
    is[LostIsTaken] implies forget[c] else engine[c, Held, c.wish, c.size, c.keep, c.losses]
  }
}
/* This settlement is refused. Where a smaller copy may be taken, that is asked at once. */
pred refuse [c: Copy] {
  step[Refuse, c] and c in asking and c.phase = Sent
  c not in wish.(Ack + Drop + Release) and some c.size.smaller
  adopt[c] and sameJudgement[c] and ask[c, c.wish, c.size.smaller]
}
/* It is refused in any size. What has a delay is given back natively when that is over; all else is quarantined. */
pred refuseAll [c: Copy] {
  step[RefuseAll, c] and c in asking and c.phase = Sent
  adopt[c] and sameJudgement[c]
  is[RefusedIsDropped] and c.wish = Bury implies ask[c, Drop, Whole]
  else c in wish.(Later + Hop) implies engine[c, Kept, c.wish, c.size, Return, c.losses]
  else engine[c, Kept, c.wish, Whole, Quarantine, c.losses]
}

/* ---- What happens to deliveries, processes and queues. ---- */

/* A lease ends. Nobody is told. */
pred expire [c: Copy] {
  step[Expire, c] and c in Out
  sameStored[c] and sameEngine[c] and c.phase' = c.phase and sameJudgement[c]
  c not in Out' + Live' and (c in Anew iff c in Anew')
}
/* The connection of a process is cut and made again, and the process is told. What its handler or the adapter has goes on. */
pred cut [p: Place] {
  step[Cut, home.p & (Out + asking + stage.Stage)] and some Step.on
  Over' = Over
  all c: Step.on {
    sameStored[c] and c not in Out' + Live' + Anew' and c.judged' = c.judged
    c.stage = Waiting implies forget[c]
    else c in stage.(Held + Kept) implies lose[c]
    else (sameEngine[c] and c.phase' = c.phase)
  }
}
/* A process dies, and with it all that it knew. */
pred die [p: Place] {
  step[Die, home.p & (Out + stage.Stage + wish.Wish + judged.Wish)] and some Step.on
  Over' = Over
  all c: Step.on { sameStored[c] and c not in Out' + Live' + Anew' and no c.judged' and forget[c] }
}
/* An operator removes a dead letter that waits. */
pred purge [c: Copy] {
  step[Purge, c] and c.home = Letters and c in InBroker - Out and no c.stage
  c not in InBroker' and sameDelivery[c] and sameEngine[c] and c.phase' = c.phase and c.judged' = c.judged
  (c in Last iff c in Last') and (c in Early iff c in Early')
  Over' = Over + c.of
}
pred idle { step[Idle, none] and Over' = Over }

pred begins {
  all m: Message | one of.m & InBroker
  Used = InBroker and Early in InBroker & home.Work
  no Out + Live + Anew + Last + Over + Copied + Replaced
  no stage + wish + size + keep + losses + phase + judged
}
pred moves {
  (some c: Copy |
    deliver[c] or begin[c] or end[c] or resend[c] or turnAway[c] or retry[c] or confirm[c] or settle[c] or ok[c] or gone[c] or
    ours[c] or unknown[c] or refuse[c] or refuseAll[c] or expire[c] or purge[c] or (some d: Copy - c | store[c, d]))
  or (some p: Place | cut[p] or die[p]) or idle
  all c: Copy - Step.on | same[c]
  Used' = Used + InBroker'
  Copied' = Copied + (Step.act = Store implies Step.on & Used else none)
  Replaced' = Replaced + (Step.act = Confirm implies Step.on else none)
}
/* The protocol, as it should be or with a mutant. */
pred protocol [m: lone Mutant] { Protocol.mutant = m and begins and always moves }

/* ---- What must hold. ---- */

/* Nothing is lost: a message has a copy somewhere, unless it is over. */
pred stored { all m: Message | some of.m & InBroker or m in Over }
/* A message that is not over is removed from a queue only after a replacement of it was confirmed. */
pred confirmed { all c: InBroker | (c not in InBroker' and c.of not in Over') implies c in Replaced }
/* After the last run that is allowed, or one that dropped the message, none follows while the process lives. */
pred lastIsLast { Step.act = Begin implies no Step.on & judged.(Bury + Drop) }
/* After a success none follows either, whatever became of the ack. */
pred successIsLast { Step.act = Begin implies no Step.on & judged.Ack }

pred safe { stored and confirmed and lastIsLast and successIsLast }

/*
 * Why it holds: this is true at first, stays true in each step, and makes the step safe. So the protocol is safe in traces of
 * any length, with as many messages and copies as the commands say.
 */
pred because {
  // A message that is not over has a copy that is stored and was not copied itself.
  all m: Message - Over | some (of.m & InBroker) - Copied
  Replaced in Copied and Copied in Used and InBroker in Used
  Live in Out and Out in InBroker
  all c: Copy {
    // Only what is over, or was replaced, is removed.
    c in wish.(Ack + Drop) implies (c.home = Work and c.of in Over or c in Replaced)
    c.phase = Stored implies c in copying & Copied
    c.phase = Confirmed implies c in copying & Replaced
    c in phase.Settled & wish.(Ack + Drop + Bury) implies c not in InBroker
    some c.stage + c.wish + c.judged implies c in Used
    c in stage.(Waiting + Running) implies no c.wish
    c in stage.(Held + Probing + Kept + Asking) implies some c.wish
    c in asking iff (some c.phase and c.stage != Running)
    // What was judged has its wish, here or in the memory, until it is no more.
    c.judged in Ack + Drop + Bury
    some c.judged implies (c not in stage.(Waiting + Running) and (c.wish = c.judged or (no c.wish and c not in InBroker)))
  }
}

check HoldsAtFirst { begins implies because } for 3 but 6 Copy, 1 steps expect 0
check HoldsInEachStep { (no Protocol.mutant and because and moves) implies (safe and after because) } for 3 but 6 Copy, 1..2 steps expect 0

/* The same without this reason, in the scope in which each wrong protocol shows its fault. */
check HoldsInTraces { protocol[none] implies always safe } for 2 but 2 Copy, 8..8 steps expect 0
check MutantAckFirst { protocol[AckFirst] implies always stored } for 1 but 2 Copy, 10 steps expect 1
check MutantRedriveAckFirst { protocol[RedriveAckFirst] implies always stored } for 1 but 2 Copy, 10 steps expect 1
check MutantLostIsTaken { protocol[LostIsTaken] implies always stored } for 1 but 2 Copy, 10 steps expect 1
check MutantLostIsTakenAck { protocol[LostIsTaken] implies always successIsLast } for 1 but 2 Copy, 10 steps expect 1
check MutantUnknownIsAcked { protocol[UnknownIsAcked] implies always stored } for 1 but 2 Copy, 10 steps expect 1
check MutantRefusedIsDropped { protocol[RefusedIsDropped] implies always stored } for 1 but 2 Copy, 10 steps expect 1
check MutantById { protocol[ById] implies always stored } for 2 but exactly 2 Copy, 10 steps expect 1
check MutantForgetful { protocol[Forgetful] implies always (lastIsLast and successIsLast) } for 1 but 2 Copy, 10 steps expect 1

/* A message in quarantine holds up no other: where only refusals happen to it, another one that can go on is acked in the end. */
pred othersEnd {
  all disj c, d: home.Work | (eventually always (c.keep = Quarantine and c in stage.(Kept + Asking)) and well[d]) implies
    eventually d not in InBroker
}
/* No fault befalls it, its handler succeeds, and what it can do for ever, it does (weak fairness). */
pred well [d: Copy] {
  d not in Early
  always (d in Step.on implies Step.act in Deliver + Begin + End + Settle + Ok)
  always ((Step.act = End and d in Step.on) implies d in wish'.Ack)
  (eventually always can[d]) implies (always eventually d in Step.on)
}
pred can [d: Copy] { (d in InBroker - Out and no d.stage) or mayBegin[d] or d in stage.Running + asking }

check HoldsForOthers { protocol[none] implies othersEnd } for 2 but exactly 2 Copy, 10..10 steps expect 0
check MutantQuarantineHolds { protocol[QuarantineHolds] implies othersEnd } for 2 but exactly 2 Copy, 10 steps expect 1

/* ---- Traces that are replayed on the engine. ---- */

/*
 * One process, which lives. It begins what may begin, and waits for one timer at a time: which of two ends first is time,
 * and so is when a cut connection ends a pause.
 */
pred replayed [p: Place] {
  protocol[none]
  some InBroker & home.p
  always (Step.act not in Die + Purge and (Step.act = Store or Step.on in home.p))
  always (Step.act = Idle implies always Step.act = Idle)
  always (Step.act in Expire + Cut implies after Step.act not in Expire + Cut)
  always ((some c: Copy | mayBegin[c]) implies Step.act = Begin)
  always lone stage.(Held + Kept + Probing)
  always (Step.act = Cut implies no stage.Probing)
}
pred busy { always Step.act != Idle }
pred ends [c: Copy] { eventually (Step.act = End and c in Step.on) }
pred fails { eventually Step.act in Gone + Ours + Unknown + Refuse + RefuseAll }
/* A handler of a message that came in time ends with one of these words, and then not all goes well. */
pred told [ws: set Wish] {
  replayed[Work] and busy and no Early
  eventually (Step.act = End and Step.on in wish'.ws and fails)
}

run TraceEnded { told[Ack + Drop] } for 1 but 2 Copy, 10..10 steps
run TraceAgain { told[Again] } for 1 but 2 Copy, 10..10 steps
run TraceLater { told[Later] } for 1 but 3 Copy, 10..10 steps
run TraceBuried { told[Bury] } for 1 but 3 Copy, 10..10 steps
run TraceHopped { replayed[Work] and busy and some d: Copy - InBroker | ends[d] } for 1 but 3 Copy, 10..10 steps
/* A handler begins while the ack of another message of the same id is remembered, and while one is in quarantine. */
run TraceAlike {
  replayed[Work] and busy and eventually (Step.act = Begin and some wish.Ack - stage.Stage)
} for exactly 2 Message, exactly 1 Id, exactly 2 Copy, 10..10 steps
run TraceBeside {
  replayed[Work] and busy and eventually (Step.act = Begin and some keep.Quarantine)
} for 2 but exactly 2 Copy, 10..10 steps
/* What was lost often is refused, and given back. */
run TraceOften {
  replayed[Work] and busy and eventually (Step.act = Retry and Step.on in losses.Often & stage.Kept & keep.Return)
} for 1 but 2 Copy, 14..14 steps
