/*
 * What `lost` means after an ack in a transaction. One message is a row of a table. Each delivery has a lease and a transaction of
 * its handler, which the engine does not see. The transaction may end before the handler, after it, or not at all; the lease may
 * end at any time.
 */

one sig Row {}
var sig InQueue in Row {}       // the message is in its queue

sig Delivery {}
var lone sig Holder in Delivery {}   // the delivery whose lease has not ended
var sig Given in Delivery {}
var sig Running in Delivery {}       // its handler runs
var sig Ended in Delivery {}         // its handler has ended, in whatever way; it is not settled
var sig Open in Delivery {}          // its handler has acked it in a transaction that is open
var sig Committed in Delivery {}     // that transaction is committed, and so the effect of the handler exists once more
var sig Settled in Delivery {}
var sig Lost in Delivery {}          // it was settled, and the answer was `lost`

/* What a wrong protocol does. Each command that names one must find a counterexample. */
enum Mutant {
  AckOnSuccess,   // acks a message whose handler succeeds, although its transaction was rolled back
  AckUnfenced,    // removes the message in the transaction although its lease has ended
  EffectAlone,    // commits the effect without the ack
  StoresRetry     // stores the message again when the retry is lost
}
one sig Protocol { mutant: lone Mutant }
pred is [m: Mutant] { m in Protocol.mutant }

pred sameRow { InQueue' = InQueue and Holder' = Holder }
pred sameRuns { Given' = Given and Running' = Running and Ended' = Ended and Settled' = Settled and Lost' = Lost }
pred sameTransactions { Open' = Open and Committed' = Committed }

pred deliver [d: Delivery] {
  some InQueue and no Holder and d not in Given
  InQueue' = InQueue and Holder' = d and Given' = Given + d and Running' = Running + d
  Ended' = Ended and Settled' = Settled and Lost' = Lost and sameTransactions
}
/* The handler calls `within`, which fails for a delivery that is not held. */
pred within [d: Delivery] {
  d in Running - Open - Committed and (d in Holder or is[AckUnfenced])
  Open' = Open + d and Committed' = Committed and sameRow and sameRuns
}
/* The commit fails, as a rollback, if the delivery is no longer held. */
pred commit [d: Delivery] {
  d in Open and Open' = Open - d and sameRuns
  (d in Holder or is[AckUnfenced]) implies {
    Committed' = Committed + d
    is[EffectAlone] implies sameRow else (no InQueue' and no Holder')
  } else (Committed' = Committed and sameRow)
}
pred rollBack [d: Delivery] { d in Open and Open' = Open - d and Committed' = Committed and sameRow and sameRuns }
pred end [d: Delivery] {
  d in Running and Running' = Running - d and Ended' = Ended + d
  Given' = Given and Settled' = Settled and Lost' = Lost and sameRow and sameTransactions
}
/* The engine requests a retry, whatever the outcome of the handler. */
pred settle [d: Delivery] {
  d in Ended and Ended' = Ended - d and Settled' = Settled + d
  Given' = Given and Running' = Running and sameTransactions
  d in Holder implies (no Holder' and Lost' = Lost and (is[AckOnSuccess] implies no InQueue' else InQueue' = InQueue))
  else {
    Lost' = Lost + d and Holder' = Holder
    is[StoresRetry] implies InQueue' = Row else InQueue' = InQueue
  }
}
pred expire { some Holder and no Holder' and InQueue' = InQueue and sameRuns and sameTransactions }
pred idle { sameRow and sameRuns and sameTransactions }

pred protocol [m: lone Mutant] {
  Protocol.mutant = m
  InQueue = Row and no Holder + Given + Running + Ended + Open + Committed + Settled + Lost
  always ((some d: Delivery | deliver[d] or within[d] or commit[d] or rollBack[d] or end[d] or settle[d]) or expire or idle)
}

/* The effect exists once if the message is done, and not at all before. */
pred effectOnce { lone Committed and (no InQueue iff some Committed) }
/* A delivery that was lost was committed, or its lease had ended: then the message is in its queue, or another delivery is committed. */
pred truth { all d: Lost | d in Committed or some InQueue or some Committed - d }

check HoldsOnce { protocol[none] implies always (effectOnce and truth) } for 4 but 1..14 steps expect 0
check MutantAckOnSuccess { protocol[AckOnSuccess] implies always effectOnce } for 3 but 12 steps expect 1
check MutantAckUnfenced { protocol[AckUnfenced] implies always effectOnce } for 3 but 12 steps expect 1
check MutantEffectAlone { protocol[EffectAlone] implies always effectOnce } for 3 but 12 steps expect 1
check MutantStoresRetry { protocol[StoresRetry] implies always effectOnce } for 3 but 12 steps expect 1
