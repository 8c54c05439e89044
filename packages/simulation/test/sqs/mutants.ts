/** Ways to write the adapter wrongly, each with the case that finds it. */
import type { Mutant } from "@requeue/conformance"

export const patches: ReadonlyArray<Mutant.Patch> = [
  {
    name: "takes a queue that is missing for an empty one",
    kills: "a queue that is missing is reported as missing, and counting does not create it",
    file: "inspect/admin.ts",
    text: "delayed: 0, isMissing: true }",
    replacement: "delayed: 0 }"
  },
  {
    name: "leaves what a browser has shown hidden",
    kills: "what a browser has shown is in its queue again when its scope has closed",
    file: "inspect/hold.ts",
    text: "({ handle, seconds: 0 })",
    replacement: "({ handle, seconds: 600 })"
  },
  {
    name: "takes a call that fails for done",
    kills: "a publish that the broker refuses ends, and is reported as failed unless the message is stored",
    file: "src/internal/batchCall.ts",
    text: "some.map(() => ({ error, again: mayRepeat(error) }))",
    replacement: "some.map(() => undefined)"
  },
  {
    name: "tells of a batch in another order what became of its entries",
    kills: "a batch with a publish that the broker refuses reports for each entry whether it is stored",
    file: "src/SqsBroker.ts",
    text: "BrokerError.ofBatch(results)",
    replacement: "BrokerError.ofBatch(results.toReversed())"
  },
  {
    name: "deletes an original before its copy is stored",
    kills: "a dead letter's copy that the broker refuses before its subscription ends leaves its original there",
    file: "settle/settle.ts",
    text: "      end(claims, done, publisher.publish(items))",
    replacement: "      for (const claim of claims) done(claim)\n      end(claims, done, publisher.publish(items))"
  },
  {
    name: "keeps an original whose copy is stored",
    kills: "what was settled comes to no other process when its subscription ends, nor when its lease would",
    file: "settle/settle.ts",
    text: "if (copied.length > 0) deleteCopied()",
    replacement: "for (const each of copied.splice(0)) each.done(each.claim)"
  },
  {
    name: "does not extend leases",
    kills: "a message whose lease is extended comes to no other process, and stays with its own",
    file: "consume/leases.ts",
    text: "extensions.push({ delivery, handle: receipt.handle, seconds })",
    replacement: ""
  },
  {
    name: "settles by a receipt whose lease has ended",
    kills:
      "outdated receipts settle nothing: they are reported as lost, and the newer deliveries stay with their process",
    file: "consume/receipt.ts",
    text: "now >= Math.min(leaseEnds, receivedAt + Limits.visibility)",
    replacement: "now >= Math.max(leaseEnds, receivedAt + Limits.visibility)"
  },
  {
    name: "drops the delay",
    kills: "a delayed send comes at its time",
    file: "publish/toPublication.ts",
    text: "...(delay > 0 && !fifo ? {",
    replacement: "...(delay > Limits.sendDelay && !fifo ? {"
  },
  {
    name: "does not ask how often a message was received",
    kills: "where giving back counts, the message is not lost for it and attempts only grow",
    file: "consume/receive.ts",
    text: `      MessageSystemAttributeNames: ["All"],\n`,
    replacement: ""
  },
  {
    name: "keeps what is unsettled when a subscription ends",
    kills: "each message goes to one process; when that ends, what it held goes to the other",
    file: "consume/subscribe.ts",
    text: "release(inFlight.deliveries().filter((delivery) => !receiptOf(delivery).isSettling))",
    replacement: "Effect.void"
  },
  {
    name: "makes copies without their metadata",
    kills: "a dead letter has origin, id, attempts, times, reason and error",
    file: "publish/toPublication.ts",
    text: "Wire.json(JSON.stringify(Object.fromEntries(rest)))) }),\n    ...own",
    replacement: "Wire.json(JSON.stringify(Object.fromEntries(rest)))) }),\n    ...(original === undefined && own)"
  },
  {
    name: "does not take back the credit of what is settled",
    kills: "where the broker keeps no order, every message comes all the same",
    file: "consume/inFlight.ts",
    text: "    receipts.delete(receipt)\n",
    replacement: ""
  },
  {
    name: "polls no more after a poll that failed",
    kills: "a receive that the broker refuses is followed by others, and loses nothing",
    file: "consume/polls.ts",
    text: "        timer = undefined\n        onEnd()",
    replacement: "        onEnd()"
  },
  {
    name: "settles a delivery twice",
    kills: "a delivery is settled once: what comes after does not reach the broker",
    file: "settle/settle.ts",
    text: "    receipt.isSettling = true\n    if (!isExpired",
    replacement: "    if (!isExpired"
  },
  {
    name: "does not tell the group of a message",
    kills: "a batch has several messages of a FIFO group, and the first that is retried takes those behind it along",
    file: "consume/receipt.ts",
    text: "group: fifo ? message.Attributes?.MessageGroupId : undefined",
    replacement: "group: undefined"
  },
  {
    name: "receives messages of a group one by one for batches as well",
    kills: "a batch has several messages of a FIFO group, and the first that is retried takes those behind it along",
    file: "consume/subscribe.ts",
    text: "Math.min(maxBatchSize, Limits.batch)",
    replacement: "1"
  },
  {
    name: "puts the error of a refused delete at another place of its batch",
    kills: "the error of a refused delete is that of its delivery, where copies of others were refused before",
    file: "settle/settle.ts",
    text: "done(claim, errors[index])",
    replacement: "done(claim, errors.at(-1 - index))"
  },
  {
    name: "reads failed entries by their order, not by their ids",
    kills: "the error of a refused ack is that of its delivery",
    file: "src/internal/batchCall.ts",
    text: 'const place = typeof id === "string" ? ids.indexOf(id) : -1',
    replacement: "const place = objectsIn(answer, list).indexOf(entry)"
  },
  {
    name: "decodes base64 as far as it goes",
    kills: "a body that is marked base64 and is not: its dead letter has the text, and no handler runs",
    file: "src/internal/wire.ts",
    text: `return bytes.toString("base64") === text ? bytes : undefined`,
    replacement: "return bytes"
  },
  {
    name: "takes a body that is marked empty for empty",
    kills: "a body that is marked empty and is not: its dead letter has the text, and no handler runs",
    file: "src/internal/wire.ts",
    text: `text === "" || text === emptyBody ? new Uint8Array() : undefined`,
    replacement: "new Uint8Array()"
  },
  {
    name: "looks at all that is in flight for each arrival",
    kills: "an arrival costs the same, however much is in flight",
    file: "consume/inFlight.ts",
    text: "if (remembered.settled.has(MessageId)) {",
    replacement:
      "const isHeld = deliveries().some((each) => Receipt.receiptOf(each).messageId === MessageId)\n      if (!isHeld && remembered.settled.has(MessageId)) {"
  }
]
