/** Ways to write the adapter wrongly, each with the case that finds it. */
import type { Mutant } from "@requeue/conformance"

const outdated =
  "outdated receipts settle nothing: they are reported as lost, and the newer deliveries stay with their process"

export const patches: ReadonlyArray<Mutant.Patch> = [
  {
    name: "frees the last message of a key first",
    kills:
      "messages of a key are handled one at a time in the order of their sends, and keys do not wait for each other",
    file: "connect/order.ts",
    text: "ORDER BY ${place} LIMIT 1",
    replacement: "ORDER BY seq DESC LIMIT 1"
  },
  {
    name: "orders a redriven letter by its row",
    kills: "a redriven parked letter is handled first, and then the messages that waited for it, in order",
    file: "internal/rows.ts",
    text: "key, lane, position, fair_by",
    replacement: "key, lane, position: undefined && position, fair_by"
  },
  {
    name: "lets a retry leave its lane",
    kills: "a failed message holds up the later messages of its key until its last retry, and no other key",
    file: "settle/changes.ts",
    text: "place?.queue ?? null",
    replacement: "(void place, null)"
  },
  {
    name: "purges only messages that wait for none",
    kills: "a purge removes the messages that wait for others, and later sends are handled",
    file: "internal/statements.ts",
    text: 'someBlocked(message, "$1", "$2::bigint")',
    replacement: 'someBlocked(message, "$1", "0")'
  },
  {
    name: "does not free the next message of a key",
    kills: "a dead letter makes way for the next message of its key",
    file: "internal/statements.ts",
    text: 'leaves: "h.lane IS NULL",',
    replacement: "leaves: \"h.lane IS NULL AND set_config('requeue.settles', 'read committed', true) IS NULL\","
  },
  {
    name: "counts no blocked messages",
    kills: "a parked letter holds up its key, and shows how many messages wait for it",
    file: "inspect/admin.ts",
    text: "blocked === 0",
    replacement: "blocked >= 0"
  },
  {
    name: "does not go on to the next share",
    kills: "the messages of each fairBy are taken in turn, and so are those without one",
    file: "connect/shares.ts",
    text: "      last := share;",
    replacement: ""
  },
  {
    name: "stores no fairBy",
    kills: "a message does not wait for those of another fairBy that were sent before",
    file: "internal/rows.ts",
    text: "fair_by: fairBy",
    replacement: "fair_by: void fairBy"
  },
  {
    name: "shows no letters with fairBy",
    kills: "retries, dead letters and redriven messages keep their fairBy",
    file: "internal/statements.ts",
    text: "(TABLE one UNION ALL TABLE other)",
    replacement: "(TABLE one UNION ALL SELECT * FROM other LIMIT 0)"
  },
  {
    name: "counts no message of a share that is leased",
    kills: "a share at its limit holds up no other, and goes on when one of its messages has ended",
    file: "connect/shares.ts",
    text: "concurrency - count(*)",
    replacement: "concurrency - 0 * count(*)"
  },
  {
    name: "forgets deliveries before their window has ended",
    kills: "no more messages of a share are delivered in any window than the limit allows, over two consumers",
    file: "connect/shares.ts",
    text: "AND at > ${exact} - span;",
    replacement: "AND at > ${exact} - span / 2;"
  },
  {
    name: "acks by an outdated token",
    kills: outdated,
    file: "internal/statements.ts",
    text: "USING handle h WHERE m.seq = h.seq AND m.token = h.token",
    replacement: "USING handle h WHERE m.seq = h.seq AND m.token >= 0 * h.token"
  },
  {
    name: "changes messages by an outdated token",
    kills: "extending reports a lease that has ended, and leaves the other process its delivery",
    file: "internal/statements.ts",
    text: "JOIN handle h ON m.seq = h.seq AND m.token = h.token",
    replacement: "JOIN handle h ON m.seq = h.seq AND m.token >= 0 * h.token"
  },
  {
    name: "reports the ack of a lost delivery as done",
    kills: outdated,
    file: "settle/changes.ts",
    text: 'removed.has(seq) ? 0 : "lost"',
    replacement: 'removed.has(seq) ? 0 : ("lost", 0)'
  },
  {
    name: "takes any removed message for one that it has removed",
    kills: "a message is done once its transaction is committed, although its handler then fails",
    file: "internal/statements.ts",
    text: "former: replaced",
    replacement: "former: removed"
  },
  {
    name: "does not recognise a stored copy",
    kills: "the fate of a dead letter with a copy that the broker never answers is true, and it can be asked again",
    file: "internal/statements.ts",
    text: "former: replaced",
    replacement: 'former: replaced && "NULL"'
  },
  {
    name: "delays sends longer than asked",
    kills: "a delayed send comes at its time",
    file: "internal/statements.ts",
    text: 'dueAfter("m.delay")',
    replacement: 'dueAfter("2 * m.delay")'
  },
  {
    name: "delays retries longer than asked",
    kills: "of many retries at a time, none is early and none is late",
    file: "internal/statements.ts",
    text: 'dueAfter("h.delay")',
    replacement: 'dueAfter("2 * h.delay")'
  },
  {
    name: "does not wake when the next message is due",
    kills: "a delayed send comes at its time",
    file: "consume/consumer.ts",
    text: "sleep(due)",
    replacement: "sleep(Number.POSITIVE_INFINITY)"
  },
  {
    name: "counts what is given back",
    kills: "what is given back has used up no attempt",
    file: "settle/settle.ts",
    text: "uncounted: 1",
    replacement: "uncounted: 0"
  },
  {
    name: "keeps the messages of a subscription that has ended until their leases end",
    kills: "each message goes to one process; when that ends, what it held goes to the other",
    file: "consume/subscribe.ts",
    text: "[...held],",
    replacement: "[...held].slice(held.size),"
  },
  {
    name: "delivers the newest first",
    kills: "messages come in the order in which they were sent",
    file: "internal/statements.ts",
    text: "LEFT JOIN taken t ON t.seq = d.seq ORDER BY d.at, d.seq",
    replacement: "LEFT JOIN taken t ON t.seq = d.seq ORDER BY d.at DESC, d.seq DESC"
  },
  {
    name: "does not go back to a message that was returned",
    kills: "where the broker keeps an order, what is given back comes before what was sent after it",
    file: "consume/cursor.ts",
    text: "if (from <= position.at) position = before(from)",
    replacement: ""
  },
  {
    name: "does not extend leases",
    kills: "a message whose lease is extended comes to no other process, and stays with its own",
    file: "internal/statements.ts",
    text: "SET leased = ceil(${exact} + $3)::bigint WHERE",
    replacement: "SET leased = leased + 0 * $3::bigint WHERE"
  },
  {
    name: "does not end the leases of others",
    kills: "a lease that is not extended ends: the message comes to another process, and the attempt counts",
    file: "connect/store.ts",
    text: "        expire()\n",
    replacement: "        void expire\n"
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
    text: "held.delete(receipt)",
    replacement: "void receipt"
  },
  {
    name: "makes a queue that is counted",
    kills: "a queue that is missing is reported as missing, and counting does not create it",
    file: "inspect/admin.ts",
    text: "const [row = []] = await session.query(statements.count, [queue])",
    replacement:
      "const [row = []] = await session.query(statements.declare, [[queue]]).then(() => session.query(statements.count, [queue]))"
  },
  {
    name: "counts a browsed message as delivered",
    kills: "what a browser returns is in its old place, and has used up no attempt",
    file: "inspect/claiming.ts",
    text: "settings.lease, 0, token]",
    replacement: "settings.lease, 1, token]"
  },
  {
    name: "purges what a consumer has",
    kills: "a purge leaves alone what a consumer has",
    file: "internal/statements.ts",
    text: "WHERE queue = $1 AND ${free} LIMIT $2",
    replacement: "WHERE queue = $1 LIMIT $2"
  },
  {
    name: "acks by an outdated token in a transaction",
    kills: "a lease that is lost before within makes it fail",
    file: "internal/statements.ts",
    text: "AS h(seq bigint, token int)\n      WHERE m.seq = h.seq AND m.token = h.token",
    replacement: "AS h(seq bigint, token int)\n      WHERE m.seq = h.seq AND m.token >= 0 * h.token"
  },
  {
    name: "does not notice that another process has the message",
    kills: "a lease that is lost before within makes it fail",
    file: "settle/ackWithin.ts",
    text: "removed.length < deliveries.length",
    replacement: "removed.length < 0"
  },
  {
    name: "acks the first message of a batch in its transaction",
    kills: "a batch is acked in one transaction, except for the messages that it retries",
    file: "settle/ackWithin.ts",
    text: "JSON.stringify(handles)",
    replacement: "JSON.stringify(handles.slice(0, 1))"
  },
  {
    name: "stores the first message of a batch in its transaction",
    kills: "all messages of a batch that is sent in a transaction exist if that is committed",
    file: "publish/publishWithin.ts",
    text: "const rows = messages.map(",
    replacement: "const rows = messages.slice(0, 1).map("
  },
  {
    name: "sends immediately what is sent in a transaction",
    kills: "a message that is sent in a transaction without an ack exists if that is committed",
    file: "internal/broker.ts",
    text: "publishWithin(transaction, messages, store, publisher)",
    replacement: "(void [transaction, publishWithin], publisher.publish(messages))"
  },
  {
    name: "takes a transaction that has ended",
    kills: "a value that is no transaction is refused with a remedy, and so is a transaction that has ended",
    file: "connect/within.ts",
    text: "executor.query(statements.enter, [])",
    replacement: 'executor.query("SELECT 1", [])'
  }
]

export const afterCrash: ReadonlyArray<Mutant.Patch> = [
  {
    name: "confirms sends before they are on the disk",
    kills: "of sends that a crash interrupts, the confirmed ones are not lost",
    file: "internal/statements.ts",
    text: "publish: publish(synced",
    replacement: "publish: publish(unsynced"
  },
  {
    name: "removes what it delivers",
    kills: "a crash loses no message that was not settled, and may repeat one that was",
    file: "consume/claims.ts",
    text: "cursor.claimed(due.at(-1), timers.now())",
    replacement: `cursor.claimed(due.at(-1), timers.now())
      await session.query(statements.removeUnlocked, [due.map(({ seq }) => seq), due.map(({ token }) => token)])
      await session.query("CHECKPOINT", [])`
  }
]
