/** Mutants of adapters. */
import type { Mutant } from "./Mutant.ts"

const adapter = (file: string): string => `adapter-sqlite/src/internal/${file}.ts`

export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "an ack in a transaction does not need the lease",
    file: adapter("settle/ackWithin"),
    from: "if (removed.length < handles.length) return yield* errors.leaseLost(context)",
    to: ""
  },
  {
    name: "sends in a transaction are committed by the adapter",
    file: adapter("publish/publishWithin"),
    from: "for (const chunk of chunksOf(messages)) {",
    to: `for (const chunk of chunksOf(messages)) {
      const run = (connection) => chunk.forEach((message) => Rows.insert(connection, SqlMessage.toRow(message, store.now()), store.now()))
      store.add({ operation: "publish", queue: "receipts", weight: 1, run, end: () => {} })
      continue`
  },
  {
    name: "leases end a second early",
    file: adapter("claims"),
    from: "WHERE ${isLeased} AND leased <= ?`",
    to: "WHERE ${isLeased} AND leased <= ? + 1000`"
  },
  {
    name: "messages are due after half of their delay",
    file: adapter("rows"),
    from: "Math.ceil(now + delay)",
    to: "Math.ceil(now + delay / 2)"
  },
  {
    name: "a message is removed without its dead letter",
    file: adapter("settle/settle"),
    from: "return Rows.replace(connection, receipt, command, now)",
    to: 'return Rows[command.queue === "work" ? "replace" : "remove"](connection, receipt, command, now)'
  },
  {
    name: "a send is confirmed before it is on the disk",
    file: adapter("publish/publisher"),
    from: "isDurable: true,",
    to: "isDurable: false,"
  },
  {
    name: "jobs whose commit failed succeed after that",
    file: adapter("connect/transactions"),
    from: "rollBack(current)\n      for (const each of group) fail(each, cause)\n      return\n",
    to: "rollBack(current)\n      for (const each of group) fail(each, cause)\n"
  },
  {
    name: "a retry keeps the count of deliveries",
    file: adapter("rows"),
    from: "leased = ${free}, deliveries = 0, lane",
    to: "leased = ${free}, lane"
  },
  {
    name: "a retry leaves the lane of its key",
    file: adapter("rows"),
    from: "metadata, place?.queue ?? null, seq, token",
    to: "metadata, null, seq, token"
  },
  {
    name: "a message that leaves its lane frees the last one",
    file: adapter("connect/schema"),
    from: "AND key = OLD.key ORDER BY coalesce(position, seq), seq LIMIT 1",
    to: "AND key = OLD.key ORDER BY seq DESC LIMIT 1"
  },
  {
    name: "a message that is acked in a transaction frees none",
    file: adapter("connect/schema"),
    from: 'after("deleted", "DELETE", wasFirst, freeNext)',
    to: 'after("deleted", "DELETE", `${wasFirst} AND OLD.deliveries = 0`, freeNext)'
  },
  {
    name: "nsqd's delays are timed by the wall clock",
    file: "adapter-nsq/src/internal/connect/known.ts",
    from: "const { now: elapsed } = yield* Timers.make",
    to: "const elapsed = yield* Effect.clockWith((clock) => Effect.succeed(() => clock.currentTimeMillisUnsafe()))"
  },
  {
    name: "a share gets one message more than its limit",
    file: adapter("consume/limits"),
    from: "concurrency - leased",
    to: "concurrency - leased + 1"
  },
  {
    name: "a claim counts the leases of a share before it, and none of its own",
    file: adapter("consume/shares"),
    from: "due.push({ name, room })",
    to: "due.push({ name, room: Infinity })"
  },
  {
    name: "the window of a share ends too early",
    file: adapter("consume/limits"),
    from: "per + ShareLimits.margin",
    to: "per / 2"
  },
  {
    name: "a claim does not record its deliveries",
    file: adapter("consume/shares"),
    from: "Limits.record(connection,",
    to: "Limits.windowOf(rateLimit, connection,"
  },
  {
    name: "each claim begins with the same share",
    file: adapter("consume/shares"),
    from: "if (left === 0) return { rows, round: after(round.last),",
    to: "if (left === 0) return { rows, round: begun,"
  }
]
