/** Ways to write the adapter wrongly, each with the case that finds it. */
import type { Mutant } from "@requeue/conformance"

export const patches: ReadonlyArray<Mutant.Patch> = [
  {
    name: "takes a queue that is missing for an empty one",
    kills: "a queue that is missing is reported as missing, and counting does not create it",
    file: "inspect/counting.ts",
    text: "consumers: 0, isMissing: true",
    replacement: "consumers: 0"
  },
  {
    name: "shows the first page alone",
    kills: "a browser shows each waiting message once, the oldest first where the broker has an order",
    file: "inspect/browseSession.ts",
    text: "Math.min((await count()).messageCount, most - taken.length)",
    replacement: "held.size > 0 ? 0 : Math.min((await count()).messageCount, most - taken.length)"
  },
  {
    name: "takes a publication for stored as soon as it is written",
    kills: "a publish that never reaches the broker ends, and is reported as failed unless the message is stored",
    file: "publish/confirms.ts",
    text: "writer.write(publication, done)",
    replacement: "writer.write(publication, () => {})\n          done(null)"
  },
  {
    name: "acknowledges an original before its copy is stored",
    kills: "a dead letter's copy that never reaches the broker before its subscription ends leaves its original there",
    file: "settle/settle.ts",
    text: "      const published = publish(copies, ",
    replacement: "      for (const claim of claims) done(claim)\n      const published = publish(copies, "
  },
  {
    name: "retries an original whose copy is stored",
    kills: "a message that was redelivered while its copy was in flight is settled by that: a retry of it only ends it",
    file: "settle/toCommand.ts",
    text: "if (isSettled) return Ack",
    replacement: ""
  },
  {
    name: "keeps an original whose copy is stored",
    kills: "what was settled comes to no other process when its subscription ends, nor when its lease would",
    file: "settle/settle.ts",
    text: "const isWritten = settler.ack(some.map(({ delivery }) => receiptOf(delivery)))",
    replacement: `const isWritten = some.some(({ settlement: { _tag } }) => _tag === "DeadLetter") ||
        settler.ack(some.map(({ delivery }) => receiptOf(delivery)))`
  },
  {
    name: "takes a returned publication for stored",
    kills: "a queue that is deleted between two sends is there again for the second",
    file: "publish/confirms.ts",
    text: "if (one.isReturned) onOutcome(unroutable(publication))\n          else if (error === null)",
    replacement: "if (error === null)"
  },
  {
    name: "gives a new connection no credit",
    kills: "a settlement of a lost connection is refused, and the message is redelivered on the new one",
    file: "consume/sessions.ts",
    text: "session.credit.set(limit)",
    replacement: ""
  },
  {
    name: "settles a delivery twice",
    kills: "a delivery is settled once: what comes after does not reach the broker",
    file: "consume/settler.ts",
    text: `if (!isOpen() || receipt.state !== "open") return false`,
    replacement: "if (!isOpen()) return false"
  },
  {
    name: "acknowledges what is older as well",
    kills: "unsettled messages of a subscription that ends are redelivered",
    file: "consume/unacknowledged.ts",
    text: "} else break",
    replacement: "}"
  },
  {
    name: "drops the delay",
    kills: "a message that one process delays comes to another at its time, and not before",
    file: "publish/routes.ts",
    text: "(delay > 0 ? delayed(plan, delay, started) : direct(queue))",
    replacement: "direct(queue)"
  },
  {
    name: "does not count returns",
    kills: "what was redelivered has a higher attempt, never a lower one",
    file: "consume/toDelivery.ts",
    text: "if (!redelivered) return 0",
    replacement: "if (redelivered || !redelivered) return 0"
  },
  {
    name: "says of no delivery that it comes again",
    kills: "with one attempt, a connection that breaks in a run that succeeds leaves one run and no dead letter",
    file: "consume/toDelivery.ts",
    text: "redelivered: message.fields.redelivered || formerReturns !== undefined",
    replacement: "redelivered: formerReturns !== undefined"
  },
  {
    name: "makes copies without the headers of the message",
    kills: "headers, body, id and time of first publish are the same after retries",
    file: "publish/toPublication.ts",
    text: "const foreign = Wire.foreignEntries(original)",
    replacement: "const foreign = Wire.foreignEntries(undefined)"
  },
  {
    name: "makes copies that count from the beginning",
    kills: "a dead letter has origin, id, attempts, times, reason and error",
    file: "publish/toPublication.ts",
    text: "Metadata.encode(metadata)",
    replacement: "Metadata.encode({ ...metadata, deadLetter: undefined, attempts: 0 })"
  },
  {
    name: "does not take back the credit of what is settled",
    kills: "no more deliveries are unsettled than the credit allows, and credit 0 stops them",
    file: "consume/credit.ts",
    text: "    this.#orphans--\n    this.#pump()",
    replacement: "    this.#pump()"
  },
  {
    name: "takes a queue that somebody else has made for one of its own",
    kills: "a queue of another kind is refused with a remedy, and keeps its messages; or they have all their attempts",
    file: "inspect/question.ts",
    text: "RabbitMqQueue.refused(queue, typeOf(told), known)",
    replacement: `({ ...RabbitMqQueue.refused(queue, "quorum", known), deliveryLimit: 3 })`
  },
  {
    name: "sends delayed retries of a queue that is not bound through the exchange for those that are",
    kills: "a queue of another kind is refused with a remedy, and keeps its messages; or they have all their attempts",
    file: "topologies/ladder.ts",
    text: "exchange: Names.back(found, settings)",
    replacement: "exchange: Names.deliver(settings)"
  },
  {
    name: "ends without waiting for the end of its consumers",
    kills: "what comes because of a resume right before the end has used up no attempt",
    file: "consume/session.ts",
    text: "await credit.stop()",
    replacement: "credit.set(0)"
  },
  {
    name: "takes a queue for made though it was deleted",
    kills: "a queue that is deleted under its consumer is made again by it, and what comes later is handled",
    file: "consume/sessions.ts",
    text: "if (error !== undefined && isMissing(error)) isStale = true",
    replacement: ""
  },
  {
    name: "declares nothing again that it has declared before",
    kills: "a queue that is deleted between two sends is there again for the second",
    file: "declare/declaring.ts",
    text: "renew: { skips: false",
    replacement: "renew: { skips: true"
  },
  {
    name: "declares nothing again for a message that has nowhere to go",
    kills: "a queue that is deleted between two sends is there again for the second",
    file: "publish/sender.ts",
    text: "else if (isNowhere(error)) redeclare(sending)",
    replacement: ""
  }
]
