/** Ways to write the adapter wrongly, each with the case that finds it. */
import type { Mutant } from "@requeue/conformance"

export const patches: ReadonlyArray<Mutant.Patch> = [
  {
    name: "never answers for a copy that is withdrawn",
    kills:
      "the settlement of a dead letter's copy that never reaches the broker ends, although its subscription has ended",
    file: "settle/settle.ts",
    text: 'Effect.onInterrupt(ended, () => Effect.sync(() => done(claim, loss(queue, false), "lost")))',
    replacement: "ended"
  },
  {
    name: "takes a topic that is missing for an empty one",
    kills: "a queue that is missing is reported as missing, and counting does not create it",
    file: "internal/nsqdStats.ts",
    text: "isMissing: found === undefined ||",
    replacement: "isMissing: "
  },
  {
    name: "shows the first page alone",
    kills: "a browser shows each waiting message once, the oldest first where the broker has an order",
    file: "inspect/browse.ts",
    text: "Math.min(wanted, pages.size())",
    replacement: "holders.length > 0 ? 0 : pages.size()"
  },
  {
    name: "takes a publication for stored whose connection is lost",
    kills: "a publish that never reaches the broker ends, and is reported as failed unless the message is stored",
    file: "publish/publisher.ts",
    text: `if (error === null) return "Stored"`,
    replacement: `if (error?.message.startsWith("E_") !== true) return "Stored"`
  },
  {
    name: "retries an original whose copy is stored",
    kills: "a message that was redelivered while its copy was in flight is settled by that: a retry of it only ends it",
    file: "settle/toCommand.ts",
    text: "if (isFinished) return finish",
    replacement: ""
  },
  {
    name: "keeps an original whose copy is stored",
    kills: "what was settled comes to no other process when its subscription ends, nor when its lease would",
    file: "settle/settle.ts",
    text: "    carryOut: writing(dependencies),",
    replacement: `    carryOut: (claims, done) => {
      const [isCopied, all] = [claims.some(({ settlement: { _tag } }) => _tag === "DeadLetter"), writing(dependencies)]
      if (isCopied) for (const claim of claims) done(claim)
      else all(claims, done)
    },`
  },
  {
    name: "drops the delay",
    kills: "a message that one process delays comes to another at its time, and not before",
    file: "publish/toPublication.ts",
    text: "const defer = Math.min(wait, limits.maxReqTimeout)",
    replacement: "const defer = Math.min(wait, 0)"
  },
  {
    name: "does not extend leases",
    kills: "a message whose lease is extended comes to no other process, and stays with its own",
    file: "consume/session.ts",
    text: "if (isHeld) write(`TOUCH ${receipt.id}\\n`, ignore)",
    replacement: ""
  },
  {
    name: "settles by a receipt whose lease has ended",
    kills:
      "outdated receipts settle nothing: they are reported as lost, and the newer deliveries stay with their process",
    file: "consume/held.ts",
    text: "!isOpen() || elapsed() >= leaseEnds",
    replacement: "!isOpen() || leaseEnds < 0"
  },
  {
    name: "settles a newer delivery by an older receipt",
    kills: "a delivery is settled once: what comes after does not reach the broker",
    file: "consume/held.ts",
    text: "receipts.get(receipt.id) === receipt",
    replacement: "receipts.has(receipt.id)"
  },
  {
    name: "does not take back the credit of what is settled",
    kills: "what was in a queue before its first consumer has all its attempts",
    file: "consume/session.ts",
    text: "// After the command, because it may write a RDY.\n      membership?.settled()",
    replacement: ""
  },
  {
    name: "keeps what is unsettled when a subscription ends",
    kills: "each message goes to one process; when that ends, what it held goes to the other",
    file: "consume/session.ts",
    text: "held.clear().forEach(giveBack)",
    replacement: "held.clear()"
  },
  {
    name: "takes every delivery for the first of its copy",
    kills: "where giving back counts, the message is not lost for it and attempts only grow",
    file: "consume/toDelivery.ts",
    text: "const attempts = metadata.attempts + frame.attempts",
    replacement: "const attempts = metadata.attempts + 1"
  },
  {
    name: "does not tell that a connection was lost",
    kills: "a consumer goes on after its connection broke, with all its credit",
    file: "consume/session.ts",
    text: "onReconnect((delivery) => receiptOf(delivery).session === session)",
    replacement: ""
  },
  {
    name: "purges only where something is delayed",
    kills: "a purge removes waiting messages, and returns their number",
    file: "inspect/admin.ts",
    text: "answer.ready + answer.delayed > 0",
    replacement: "answer.delayed > 0"
  },
  {
    name: "lets one more be in flight than the credit",
    kills: "without prefetch, no more is in flight than handlers work on",
    file: "consume/credit.ts",
    text: "limit = wanted",
    replacement: "limit = wanted === 0 ? 0 : wanted + 1"
  },
  {
    name: "lets a message wait behind another one",
    kills: "without prefetch, no message waits behind a slow one while another consumer is idle",
    file: "consume/credit.ts",
    text: "limit = wanted",
    replacement: "limit = wanted === 0 ? 0 : wanted + 9"
  },
  {
    name: "knows a message by the id that its producer gave it",
    kills: "messages of one id are each handled once, also when an ack of one of them is lost with the connection",
    file: "consume/subscribe.ts",
    text: "receiptOf(delivery).name",
    replacement: "delivery.metadata.id"
  }
]

/** Further ones, found by this adapter's own cases. */
export const ownPatches: ReadonlyArray<Mutant.Patch> = [
  {
    name: "publishes the copies of one call in several turns",
    kills:
      "the dead letters of one call share a command, and those that nsqd refuses take no others with them, and can be settled again",
    file: "consume/subscribe.ts",
    text: ", { startImmediately: true }",
    replacement: ""
  },
  {
    name: "takes the refusal of a command for one of each of its messages",
    kills: "of messages that are published in one turn, one that nsqd refuses is refused, and no neighbour",
    file: "publish/publisher.ts",
    text: `if (isShared && isOfSize(error)) return "Unread"`,
    replacement: ""
  },
  {
    name: "does not tell of a settlement that nsqd refuses",
    kills: "a FIN that nsqd refuses is reported as failed, after it was reported as done",
    file: "consume/sessions.ts",
    text: 'if (typeof refused === "object") {',
    replacement: 'if (typeof refused === "number") {'
  },
  {
    name: "takes a refused REQ for another command",
    kills: "a REQ that nsqd refuses is reported as failed, after it was reported as done",
    file: "consume/session.ts",
    text: `\`\${text.slice("E_".length, "E_FIN".length)} \${refusedId(text)}\``,
    replacement: "`FIN ${refusedId(text)}`"
  },
  {
    name: "does not extend the leases of messages that wait",
    kills: "messages that wait behind slow handlers for longer than their leases are delivered once each",
    file: "consume/held.ts",
    text: "receipt.leaseEnds = Math.min(elapsed() + msgTimeout, receipt.receivedAt + maxMsgTimeout)",
    replacement: ""
  },
  {
    name: "keeps a lease that nsqd refuses to extend",
    kills: "a lease that is lost while a handler runs is reported once",
    file: "consume/held.ts",
    text: "receipt.leaseEnds = -Infinity",
    replacement: "receipt.leaseEnds += 0"
  },
  {
    name: "does not ask whether a channel is paused",
    kills: "the consumer of a channel that is paused is down, and says so, until it is unpaused",
    file: "nsqdStats.ts",
    text: "|| its?.isPaused === true",
    replacement: ""
  },
  {
    name: "asks as often for each of many consumers",
    kills: "a hundred idle consumers ask nsqd no more than fifty times a second, all together",
    file: "consume/troubles.ts",
    text: "Math.max(interval, share * consumers.size)",
    replacement: "interval"
  },
  {
    name: "does not ask whether a topic is paused",
    kills: "the consumer of a topic that is paused is down, and says so, until it is unpaused",
    file: "nsqdStats.ts",
    text: "found?.isPaused === true ||",
    replacement: ""
  },
  {
    name: "takes a channel for paused that is so on some nsqd",
    kills: "a channel that is paused on one nsqd of two leaves its consumer running",
    file: "consume/troubles.ts",
    text: "answers.every((each) => each !== false)",
    replacement: "answers.some((each) => each !== false)"
  },
  {
    name: "finishes any number of messages for one twin",
    kills: "bytes of a message stored twice run again when they are published again: 1 ran, on the same nsqd",
    file: "consume/remembered.ts",
    text: "if (nonce === undefined || taken.has(receipt)) return",
    replacement: "if (nonce === undefined) return"
  },
  {
    name: "takes a message for the twin of two that ran",
    kills: "bytes of a message stored twice run again when they are published again: 2 ran, on the same nsqd",
    file: "consume/remembered.ts",
    text: "if (isSecond(receipt)) finished.delete(nonce)\n      else finished.set(nonce, session.node)",
    replacement: "finished.set(nonce, session.node)"
  },
  {
    name: "keeps the credit of deliveries whose connection is lost",
    kills: "after a lost connection a consumer has all its credit again, less what its handlers still have",
    file: "consume/session.ts",
    text: "session)\n      membership?.leave()",
    replacement: "session)"
  },
  {
    name: "finishes an original before its copy is stored",
    kills: "a message whose dead letter was not stored when its process ended is still in its channel",
    file: "settle/settle.ts",
    text: "    for (const claim of claims) {\n      const published",
    replacement: "    for (const claim of claims) {\n      done(claim)\n      const published"
  },
  {
    name: "asks only the nsqd that nsqlookupd reports",
    kills:
      "while nsqlookupd has restarted and knows no nsqd, counts, browsers, redrives and purges reach every nsqd that a process is connected to",
    file: "connect/known.ts",
    text: "const always = [...given, ...keptBeside(nodes, named)]",
    replacement: "const always = given"
  },
  {
    name: "leaves an nsqd that nsqlookupd has forgotten",
    kills:
      "a consumer stays with the nsqd that it has, while nsqlookupd has forgotten them, and finds a topic on a further one later",
    file: "consume/topics.ts",
    text: "return connection.current() === undefined && (wasAbsent || absences.count >= maxAbsences)",
    replacement: "return wasAbsent || absences.count >= maxAbsences"
  },
  {
    name: "adds negative counts",
    kills: `an nsqd whose HTTP interface answers nonsense is missing, with its answer: {"version":"1.3.0","topics":[{"topic_name":"t","depth":-3,"channels":[]}]}`,
    file: "internal/http.ts",
    text: 'typeof value === "number" && value >= 0 ? value : undefined',
    replacement: 'typeof value === "number" ? value : undefined'
  },
  {
    name: "knows a message by its id alone",
    kills: "a copy that has the id of a message in another topic runs all the same",
    file: "consume/toDelivery.ts",
    text: 'named.toString("latin1")',
    replacement: 'named.toString("latin1", offsets.attempts)'
  },
  {
    name: "trusts nsqd to keep a delay over its restart",
    kills: "a delayed send comes no earlier, and as the first attempt, although nsqd restarts in order meanwhile",
    file: "consume/toDelivery.ts",
    text: "deferred === undefined ? metadata.notBefore : dueOf(stored, deferred, metadata, context)",
    replacement: "deferred === undefined ? metadata.notBefore : 0"
  },
  {
    name: "forgets when a requeued message is due",
    kills: "a retry that is native comes no earlier, and is counted once, although nsqd restarts in order meanwhile",
    file: "consume/remembered.ts",
    text: "requeued: ({ name, session }, due) => at(session).due.set(name, due)",
    replacement: "requeued: () => {}"
  },
  {
    name: "publishes retries to all channels of the topic",
    kills: "a retry that is exact in one channel is not seen by another",
    file: "internal/names.ts",
    text: 'topic: own(queue, "retry", isEphemeral(queue) ? ephemeral : "")',
    replacement: "topic: queue.topic"
  },
  {
    name: "stays with a subscription that nsqd has forgotten",
    kills: "a subscription that nsqd has forgotten with its topic is made again",
    file: "consume/sessions.ts",
    text: "if (!found && isTrusted)",
    replacement: "if (false)"
  },
  {
    name: "leaves a subscription that nsqd has never listed",
    kills: "a subscription that nsqd has never listed stays: its HTTP interface may be that of another",
    file: "consume/sessions.ts",
    text: "if (!found && isTrusted)",
    replacement: "if (!found)"
  },
  {
    name: "lets nsqd cut a long delay",
    kills:
      "a delay beyond the longest of nsqd is kept in hops: the handler runs again not before, as the second attempt",
    file: "settle/toCommand.ts",
    text: 'retry === "native" && delay <= cap && deliveries < countLimit',
    replacement: 'retry === "native" && deliveries < countLimit'
  },
  {
    name: "writes an envelope around every body",
    kills: 'envelope: "never" leaves the body bare for others, and keeps the history of a dead letter',
    file: "publish/toPublication.ts",
    text: 'if (envelope === "never" && !target.isOwn) {',
    replacement: "if (false) {"
  }
]

/** Defects that this adapter once had. */
export const planted: ReadonlyArray<Mutant.Patch> = [
  {
    name: "measures the delay of a message by the consumer's wall clock",
    kills: "a consumer whose clock is 20 seconds slow gets a delayed message at its time",
    file: "consume/toDelivery.ts",
    text: "Math.min(stored + deferred - nsqdNow, notBefore - nsqdNow, deferred)",
    replacement: "Math.min(stored + deferred - now, notBefore - now, deferred)"
  },
  {
    name: "measures time by the wall clock",
    kills: "a retry that is native comes at its time, although the consumer's clock is set back by an hour",
    file: "connect/known.ts",
    text: "const { now: elapsed } = yield* Timers.make",
    replacement:
      "const elapsed = yield* Effect.clockWith((clock) => Effect.succeed(() => clock.currentTimeMillisUnsafe()))"
  },
  {
    name: "measures leases by the wall clock",
    kills: "a clock that is set ends no lease",
    file: "connect/known.ts",
    text: "const { now: elapsed } = yield* Timers.make",
    replacement:
      "const elapsed = yield* Effect.clockWith((clock) => Effect.succeed(() => clock.currentTimeMillisUnsafe()))"
  },
  {
    name: "takes each address for an nsqd",
    kills: "an nsqd that is reached at two addresses counts once",
    file: "connect/nodes.ts",
    text: "one === other || (one.identity !== undefined && one.identity === other.identity)",
    replacement: "one === other"
  },
  {
    name: "stores both copies on one nsqd with two addresses",
    kills: "an nsqd that is reached at two addresses does not store a message twice for publishTo: 2",
    file: "connect/nodes.ts",
    text: "one === other || (one.identity !== undefined && one.identity === other.identity)",
    replacement: "one === other"
  },
  {
    name: "takes every nsqd for the same",
    kills: "two nsqd that say the same of themselves, except for their start, are two",
    file: "connect/nodes.ts",
    text: "one.identity !== undefined && one.identity === other.identity",
    replacement: "one.identity !== undefined"
  }
]
