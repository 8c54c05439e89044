/** Ways to write the adapter wrongly, each with the case that finds it. */
import type { Mutant } from "@requeue/conformance"

const parkedFirst = "a redriven parked letter is handled first, and then the messages that waited for it, in order"
const turns = "the messages of each fairBy are taken in turn, and so are those without one"
const inHandlers = "no more messages of a share are in handlers than the limit, over two consumers, and all are handled"
const inWindow = "no more messages of a share are delivered in any window than the limit allows, over two consumers"

export const patches: ReadonlyArray<Mutant.Patch> = [
  {
    name: "frees the last message of a key first",
    kills:
      "messages of a key are handled one at a time in the order of their sends, and keys do not wait for each other",
    file: "connect/schema.ts",
    text: "AND key = OLD.key ORDER BY coalesce(position, seq), seq LIMIT 1",
    replacement: "AND key = OLD.key ORDER BY seq DESC LIMIT 1"
  },
  {
    name: "orders a redriven letter by its row",
    kills: parkedFirst,
    file: "rows.ts",
    text: "place?.position ?? null",
    replacement: "null"
  },
  {
    name: "frees the messages of a key with any row that leaves it",
    kills: "a purge removes the messages that wait for others, and later sends are handled",
    file: "rows.ts",
    text: "SELECT seq FROM requeue_message WHERE lane = ?1 AND queue = ?1 AND ${isBlocked}\n    UNION ALL ",
    replacement: ""
  },
  {
    name: "lets a retry leave its lane",
    kills: "a failed message holds up the later messages of its key until its last retry, and no other key",
    file: "rows.ts",
    text: "metadata, place?.queue ?? null, seq, token",
    replacement: "metadata, null, seq, token"
  },
  {
    name: "does not wake the consumers of a key whose letter was removed",
    kills: "a parked letter that is removed makes way for the next message of its key",
    file: "inspect/browse.ts",
    text: "if (lane !== undefined) wake(lane)",
    replacement: "void lane"
  },
  {
    name: "does not wake the consumers of keys whose letters were purged",
    kills: "a purge of the parked letters makes way for the messages that waited for them",
    file: "inspect/admin.ts",
    text: "        store.wake()\n",
    replacement: ""
  },
  {
    name: "does not wake the consumers of a key whose letter was acked",
    kills: "a parked letter that a consumer of its queue acks makes way for the next message of its key",
    file: "settle/settle.ts",
    text: "    lane\n  ]",
    replacement: "    undefined\n  ]"
  },
  {
    name: "settles by an outdated token",
    kills:
      "outdated receipts settle nothing: they are reported as lost, and the newer deliveries stay with their process",
    file: "rows.ts",
    text: "seq = ? AND token = ? AND ${isLeased}",
    replacement: "seq = ? AND ? > 0 AND ${isLeased}"
  },
  {
    name: "settles a message that was returned",
    kills: "extending reports a lease that has ended, and leaves the other process its delivery",
    file: "rows.ts",
    text: "UPDATE requeue_message SET leased = ? WHERE ${isHeld}`",
    replacement: "UPDATE requeue_message SET leased = ? WHERE seq = ? AND token > 0 * ?`"
  },
  {
    name: "reports a settlement of a lost delivery as done",
    kills:
      "outdated receipts settle nothing: they are reported as lost, and the newer deliveries stay with their process",
    file: "settle/settle.ts",
    text: "error ?? (commands.has(claim) ? undefined : lost)",
    replacement: "error"
  },
  {
    name: "delays sends longer than asked",
    kills: "a delayed send comes at its time",
    file: "rows.ts",
    text: "  queue,\n  dueAt(now, delay),",
    replacement: "  queue,\n  dueAt(now, 2 * delay),"
  },
  {
    name: "delays retries longer than asked",
    kills: "of many retries at a time, none is early and none is late",
    file: "rows.ts",
    text: "run(queue, dueAt(now, delay), metadata",
    replacement: "run(queue, dueAt(now, 2 * delay), metadata"
  },
  {
    name: "does not wake when the next message is due",
    kills: "a delayed send comes at its time",
    file: "consume/consumer.ts",
    text: "sleep(next)",
    replacement: "sleep(Number.POSITIVE_INFINITY)"
  },
  {
    name: "counts what is given back",
    kills: "what is given back has used up no attempt",
    file: "settle/settle.ts",
    text: "Rows.giveBack(connection, receipt, 1)",
    replacement: "Rows.giveBack(connection, receipt, 0)"
  },
  {
    name: "keeps the messages of a subscription that has ended until their leases end",
    kills: "each message goes to one process; when that ends, what it held goes to the other",
    file: "consume/consumer.ts",
    text: "for (const receipt of held) Rows.giveBack(connection, receipt, 0)",
    replacement: "void connection"
  },
  {
    name: "delivers the newest first",
    kills: "messages come in the order in which they were sent",
    file: "internal/claims.ts",
    text: "at <= ? ORDER BY at, seq LIMIT ?",
    replacement: "at <= ? ORDER BY at DESC, seq DESC LIMIT ?"
  },
  {
    name: "does not extend leases",
    kills: "a message whose lease is extended comes to no other process, and stays with its own",
    file: "consume/extend.ts",
    text: "!Rows.extend(connection, receiptOf(each), until)",
    replacement: "!Rows.extend(connection, receiptOf(each), 1)"
  },
  {
    name: "keeps the credit of deliveries whose leases have ended",
    kills:
      "a message that was redelivered with a new lease is settled once: a retry of its first delivery makes no second one",
    file: "consume/consumer.ts",
    text: "if (receipt.until <= time) held.delete(receipt)",
    replacement: "if (receipt.until <= time) continue"
  },
  {
    name: "keeps the credit of what is settled",
    kills: "a delayed retry does not hold up what is not delayed",
    file: "settle/settle.ts",
    text: "held.delete(receiptOf(delivery))",
    replacement: "void delivery"
  },
  {
    name: "forgets that a failed settlement is still to be done",
    kills: "the fate of an ack that never reaches the broker is true, and it can be asked again",
    file: "settle/settle.ts",
    text: "if (error !== undefined) held.add(receiptOf(claim.delivery))",
    replacement: ""
  },
  {
    name: "confirms jobs whose commit has failed",
    kills: "a publish that never reaches the broker ends, and is reported as failed unless the message is stored",
    file: "connect/transactions.ts",
    text: "    rollBack(current)\n      for (const each of group) fail(each, cause)\n",
    replacement: "    rollBack(current)\n      for (const { job } of group) job.end()\n"
  },
  {
    name: "makes a queue that is counted",
    kills: "a queue that is missing is reported as missing, and counting does not create it",
    file: "inspect/admin.ts",
    text: "...Rows.count(connection, queue, now),",
    replacement: "...Rows.count(connection, queue, now), ...Rows.declare(connection, queue)!,"
  },
  {
    name: "counts a browsed message as delivered",
    kills: "what a browser returns is in its old place, and has used up no attempt",
    file: "inspect/browse.ts",
    text: "counts: false",
    replacement: "counts: true"
  },
  {
    name: "purges what a consumer has",
    kills: "a purge leaves alone what a consumer has",
    file: "rows.ts",
    text: "WHERE queue = ?1 AND ${isFree} LIMIT ?2)`",
    replacement: "WHERE queue = ?1 LIMIT ?2)`"
  },
  {
    name: "forgets the other jobs of a transaction that was rolled back",
    kills: "an ack that the broker refuses is settled in the end, without a second run",
    file: "connect/transactions.ts",
    text: "waiting = [...group.filter((other) => other !== each), ...waiting]",
    replacement: "void waiting"
  },
  {
    name: "does not notice what other processes do",
    kills: "a message that one process delays comes to another at its time, and not before",
    file: "connect/store.ts",
    text: "      onChange: () => wake(),",
    replacement: "      onChange: () => undefined,"
  },
  {
    name: "acks by an outdated token in a transaction",
    kills: "a lease that is lost before within makes it fail",
    file: "settle/ackWithin.ts",
    text: "handles.flatMap(({ seq, token }) => [seq, token])",
    replacement: "handles.flatMap(({ seq, token }) => [seq, token + 1])"
  },
  {
    name: "does not notice that another process has the message",
    kills: "a lease that is lost before within makes it fail",
    file: "settle/ackWithin.ts",
    text: "removed.length < handles.length",
    replacement: "removed.length < 0"
  },
  {
    name: "acks the first message of a batch in its transaction",
    kills: "a batch is acked in one transaction, except for the messages that it retries",
    file: "settle/ackWithin.ts",
    text: "const handles = deliveries.map(receiptOf)",
    replacement: "const handles = deliveries.slice(0, 1).map(receiptOf)"
  },
  {
    name: "stores the first message of a batch in its transaction",
    kills: "all messages of a batch that is sent in a transaction exist if that is committed",
    file: "publish/publishWithin.ts",
    text: "const rows = chunk.map(",
    replacement: "const rows = chunk.slice(0, 1).map("
  },
  {
    name: "sends at once what is sent in a transaction",
    kills: "a message that is sent in a transaction without an ack exists if that is committed",
    file: "broker.ts",
    text: "publishWithin(transaction, messages, store, capabilities.maxBodySize)",
    replacement: "(publishWithin, transaction, publish(messages, store, capabilities.maxBodySize))"
  },
  {
    name: "takes a transaction that has ended",
    kills: "a value that is no transaction is refused with a remedy, and so is a transaction that has ended",
    file: "connect/within.ts",
    text: "if (!executor.isOpen()) return yield* ended(context)",
    replacement: ""
  },
  {
    name: "reports the retry of what a transaction has acked as stored",
    kills: "a message is done once its transaction is committed, although its handler then fails",
    file: "settle/settle.ts",
    text: "return Rows.replace(connection, receipt, command, now)",
    replacement: "return Rows.replace(connection, receipt, command, now) || true"
  },
  {
    name: "stores the retry of what a transaction has acked as a copy",
    kills: "when the answers to commits are lost, the messages of those that were not committed are redelivered",
    file: "settle/settle.ts",
    text: "return Rows.replace(connection, receipt, command, now)",
    replacement: `if (Rows.replace(connection, receipt, command, now)) return true
      Rows.insert(connection, { ...command, create: true, headers: null, body: new Uint8Array([34, 34]) }, now)
      return false`
  },
  {
    name: "never syncs",
    kills: "messages that were confirmed before a power cut are delivered after it, as they were sent",
    file: "connect/store.ts",
    text: "flush: durability ===",
    replacement: "flush: true ? undefined : durability ==="
  },
  {
    name: "confirms later sends by a flush that had begun before",
    kills: "of sends that a power cut interrupts, the confirmed ones are not lost",
    file: "connect/flushing.ts",
    text: "      isRunning = false\n      begin()\n",
    replacement: "      isRunning = false\n      if (next !== undefined) end(next, error)\n      next = undefined\n"
  },
  {
    name: "takes from the same share again",
    kills: turns,
    file: "consume/shares.ts",
    text: "if (left === 0) return { rows, round: after(round.last),",
    replacement: "if (left === 0) return { rows, round: begun,"
  },
  {
    name: "passes over the messages without fairBy",
    kills: turns,
    file: "consume/shares.ts",
    text: "firstUnshared.get(unshared, queue)]",
    replacement: "firstUnshared && undefined]"
  },
  {
    name: "takes a whole claim from one share",
    kills: "a batch has messages of each fairBy that waits",
    file: "consume/shares.ts",
    text: "Math.min(room, Math.ceil(left / (open.length - index)))",
    replacement: "Math.min(room, left + 0 * index)"
  },
  {
    name: "stores a message without its fairBy",
    kills: "retries, dead letters and redriven messages keep their fairBy",
    file: "rows.ts",
    text: "fairBy ?? null",
    replacement: "fairBy && null"
  },
  {
    name: "leases one message of a share too many",
    kills: inHandlers,
    file: "consume/limits.ts",
    text: "concurrency - leased",
    replacement: "concurrency - leased + 1"
  },
  {
    name: "counts only the leases of a share from before the claim",
    kills: "what a consumer that has ended held counts no more",
    file: "consume/shares.ts",
    text: "due.push({ name, room })",
    replacement: "due.push({ name, room: Number.POSITIVE_INFINITY })"
  },
  {
    name: "ends the window of a share too early",
    kills: inWindow,
    file: "consume/limits.ts",
    text: "per + ShareLimits.margin",
    replacement: "per / 2 + 0 * ShareLimits.margin"
  },
  {
    name: "forgets deliveries while a window has them",
    kills: inWindow,
    file: "consume/limits.ts",
    text: "WHERE until <= ?",
    replacement: "WHERE until > ?"
  },
  ...["crash", "power cut"].map((fault) => ({
    name: `removes what it delivers, until a ${fault}`,
    kills: `a ${fault} loses no message that was not settled, and may repeat one that was`,
    file: "consume/consumer.ts",
    text: "deliver(row, until, store))",
    replacement: "(Rows.remove(connection, row), deliver(row, until, store)))"
  }))
]
