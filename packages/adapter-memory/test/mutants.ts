/** Ways to write the memory broker wrongly, each with the case that finds it. */
import type { Mutant } from "@requeue/conformance"

export const patches: ReadonlyArray<Mutant.Patch> = [
  {
    name: "orders a redriven letter by its copy",
    kills: "a redriven parked letter is handled first, and then the messages that waited for it, in order",
    file: "internal/lanes.ts",
    text: "const { position = ++last } = place",
    replacement: "const position = ++last"
  },
  {
    name: "delivers a delayed message when the earlier one of its key has made way",
    kills: "the delay of a message that waited for an earlier one of its key goes on meanwhile",
    file: "internal/queues.ts",
    text: "Math.max(0, message.due - timers.now())",
    replacement: "0"
  },
  {
    name: "purges no message that waits for others",
    kills: "a purge removes the messages that wait for others, and later sends are handled",
    file: "internal/queues.ts",
    text: "      queue.behind.clear()\n",
    replacement: ""
  },
  {
    name: "makes a queue that is counted",
    kills: "a queue that is missing is reported as missing, and counting does not create it",
    file: "inspect/admin.ts",
    text: "count(capabilities, queues.all.get(name))",
    replacement: "count(capabilities, queues.get(name))"
  },
  {
    name: "counts what is given back",
    kills: "what is given back has used up no attempt",
    file: "settle/settle.ts",
    text: "if (capabilities.uncountedRelease) message.deliveries--",
    replacement: ""
  },
  {
    name: "settles by an outdated receipt",
    kills: "a delivery is settled once: what comes after does not reach the broker",
    file: "settle/settle.ts",
    text: "receipt.consumer === consumer && receipt.place !== -1 ?",
    replacement: "receipt.consumer === consumer ?"
  },
  {
    name: "forgets the history of a retry",
    kills: "the history has the failed attempts before the last one",
    file: "settle/settle.ts",
    text: "message.metadata = { ...message.metadata, history, notBefore }",
    replacement: "message.metadata = { ...message.metadata, history: history.slice(0, 0), notBefore }"
  },
  {
    name: "tells the attempts of a dead letter without its last one",
    kills: "maxRetries 3: attempts 1 to 4, then the dead letters",
    file: "consume/toDelivery.ts",
    text: "toDelivery(receipt.message, receipt.message.deliveries, receipt)",
    replacement: "toDelivery(receipt.message, receipt.message.deliveries - 1, receipt)"
  },
  {
    name: "does not say that a delivery is a redelivery",
    kills: "a lease that is not extended ends: the message comes to another process, and the attempt counts",
    file: "consume/toDelivery.ts",
    text: "this.redelivered = deliveries > 1",
    replacement: "this.redelivered = deliveries > 1000"
  },
  {
    name: "lets the old lease end though it was extended",
    kills: "a message whose lease is extended comes to no other process, and stays with its own",
    file: "consume/dispatch.ts",
    text: "    timers.cancel(receipt.expiry)\n    const left",
    replacement: "    const left"
  },
  {
    name: "does not take back the credit of what is settled",
    kills: "where the broker keeps no order, every message comes all the same",
    file: "consume/dispatch.ts",
    text: "timers.cancel(receipt.expiry)\n    update(receipt.consumer)",
    replacement: "timers.cancel(receipt.expiry)"
  },
  {
    name: "keeps what is unsettled when a subscription ends",
    kills: "unsettled messages of a subscription that ends are redelivered",
    file: "consume/subscribe.ts",
    text: "dispatch.lose(consumer.queue, [...consumer.receipts])",
    replacement: ""
  },
  {
    name: "does not tell its consumers that the connection was lost",
    kills: "a message that is redelivered while its handler runs is not run again when that run succeeds",
    file: "inspect/control.ts",
    text: "for (const { options } of consumers) options.onReconnect()",
    replacement: ""
  },
  {
    name: "commits the ack of a message that is no longer held",
    kills:
      "a lease that ends in a transaction gives the message to another process, or to the transaction, not to both",
    file: "internal/transaction.ts",
    text: "if (error === undefined) continue",
    replacement: "if (error !== null) continue"
  },
  {
    name: "commits what is rolled back",
    kills: "a transaction that is rolled back leaves its message in the queue, and no rows and messages",
    file: "internal/transaction.ts",
    text: 'if (this.#state === "open") this.#state = "rolled back"',
    replacement: 'if (this.#state === "open") this.commit()'
  },
  {
    name: "takes a transaction that has ended",
    kills: "a value that is no transaction is refused with a remedy, and so is a transaction that has ended",
    file: "internal/transaction.ts",
    text: 'return transaction.ended("within") ?? transaction',
    replacement: "return transaction"
  },
  {
    name: "makes the first change of a transaction only",
    kills: "a transaction that is committed acks its message, and its rows and messages exist from then on",
    file: "internal/transaction.ts",
    text: "for (const { make } of this.#changes) make()",
    replacement: "this.#changes[0]?.make()"
  },
  {
    name: "finds at the commit that the lease was lost, not before",
    kills: "a lease that is lost before within makes it fail",
    file: "settle/settle.ts",
    text: "if (lost !== undefined) return Effect.fail(lost)",
    replacement: ""
  },
  {
    name: "acks one message of a transaction",
    kills: "a batch whose transaction is rolled back is redelivered whole",
    file: "settle/settle.ts",
    text: "for (const delivery of deliveries) settleOne(",
    replacement: "for (const delivery of deliveries.slice(0, 1)) settleOne("
  },
  {
    name: "publishes what is sent in a transaction before its commit",
    kills: "a message that is sent in a transaction without an ack exists if that is committed",
    file: "publish/publisher.ts",
    text: "changes.add({ refusal: () => refusalOf(messages), make: () => messages.forEach(copy) })",
    replacement: "messages.forEach(copy)"
  }
]
