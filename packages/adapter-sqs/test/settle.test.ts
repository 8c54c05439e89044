/** What is answered for each settlement of a batch, whatever SQS answers for its neighbours. */
import { BrokerError } from "@requeue/core"
import { type Delivery, Metadata, Outgoing, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { expect, test } from "vitest"
import type { Client } from "../src/internal/client.ts"
import * as Receipt from "../src/internal/consume/receipt.ts"
import type { Queues } from "../src/internal/declare/declare.ts"
import * as Publisher from "../src/internal/publish/publisher.ts"
import * as ReceiptCalls from "../src/internal/settle/receiptCalls.ts"
import * as Settle from "../src/internal/settle/settle.ts"
import type { Command } from "../src/internal/settle/toCommand.ts"

/** What SQS answers for an entry, call by call; the last answer is repeated. */
type Answers = ReadonlyArray<"done" | "refused" | "failed">

/** How a delivery is settled, and what SQS answers for each of its entries. */
interface Case {
  readonly how: Command["_tag"]
  /** Whether its copy is too large, so that it is in no call. */
  readonly isTooLarge: boolean
  readonly sent: Answers
  readonly removed: Answers
  readonly hidden: Answers
}

/** The failure of calls whose repetition does no harm: the last answer. */
const ofRemoval = (answers: Answers) => (answers.at(-1) === "refused" ? "AccessRefused" : undefined)

/** The failure of calls of which an earlier one may have been done. */
const ofOnce = (answers: Answers) =>
  answers.at(-1) === "done" ? undefined : answers.includes("failed") ? "ConnectionLost" : "AccessRefused"

/** The failure of a settlement, from the answers for its own entries alone. */
const expected = ({ hidden, how, isTooLarge, removed, sent }: Case): string | undefined => {
  if (how === "Delete") return ofRemoval(removed)
  if (how === "Hide") return ofOnce(hidden)
  if (how === "Refuse") return "Unsupported"
  if (how === "Leave") return undefined
  return isTooLarge ? "BodyTooLarge" : (ofOnce(sent) ?? ofRemoval(removed))
}

const tooLarge = "x".repeat(1024 * 1024)

const unsupported = new BrokerError.BrokerError({
  broker: "sqs",
  operation: "settle",
  queue: "q",
  reason: "Unsupported",
  detail: "no copy can be made"
})

const run = (cases: ReadonlyArray<Case>) =>
  Effect.gen(function* () {
    const asked = new Map<string, number>()
    const answer = async <E extends { readonly Id?: string | undefined }>(
      entries: ReadonlyArray<E> = [],
      answersOf: (entry: E) => Answers
    ) => {
      expect(entries.length).toBeLessThanOrEqual(10)
      const told = entries.map((entry) => {
        const answers = answersOf(entry)
        const key = JSON.stringify({ ...entry, Id: undefined })
        const turn = asked.get(key) ?? 0
        asked.set(key, turn + 1)
        return { Id: entry.Id, answer: answers[Math.min(turn, answers.length - 1)]! }
      })
      return {
        // SQS does not keep the order of the entries.
        Successful: told.filter(({ answer: each }) => each === "done").toReversed(),
        Failed: told
          .filter(({ answer: each }) => each !== "done")
          .map(({ Id, answer: each }) => ({
            Id,
            Code: each === "refused" ? "AccessDenied" : "InternalError",
            SenderFault: each === "refused"
          }))
          .toReversed()
      }
    }
    const caseOf = ({ ReceiptHandle }: { readonly ReceiptHandle?: string | undefined }) => cases[Number(ReceiptHandle)]!
    type Calls = "deleteMessageBatch" | "changeMessageVisibilityBatch" | "sendMessageBatch"
    const calls: { readonly [K in Calls]: (input: Parameters<Client[K]>[0]) => Promise<unknown> } = {
      deleteMessageBatch: ({ Entries }) => answer(Entries, (entry) => caseOf(entry).removed),
      changeMessageVisibilityBatch: ({ Entries }) => answer(Entries, (entry) => caseOf(entry).hidden),
      sendMessageBatch: ({ Entries }) => answer(Entries, ({ MessageBody }) => cases[Number(MessageBody)]!.sent)
    }
    const client = calls as unknown as Client // all that is used of it
    const context = yield* Effect.context()
    const fork = (effect: Effect.Effect<unknown>): void => void Effect.runForkWith(context)(effect)
    const ends = new Map<string, string>()
    const held: Array<string> = []
    const name = (delivery: Delivery.Delivery) => Receipt.receiptOf(delivery).handle

    const requests = cases.map((_, index) => ({
      settlement: Settlement.Ack,
      delivery: {
        body: Buffer.from(String(index)),
        headers: {},
        attempts: 1,
        metadata: Metadata.make(String(index), 0),
        receipt: Receipt.make(
          { MessageId: String(index), ReceiptHandle: String(index) },
          { countsHere: false, fifo: false, leaseEnds: Infinity, receivedAt: 0 }
        )
      }
    }))
    const settle = Settle.make({
      queue: "q",
      calls: ReceiptCalls.make({ client, queue: "q", url: () => "url", fork }),
      publisher: Publisher.make({
        client,
        queues: { find: () => Effect.succeed({ fifo: false, url: "url" }), forget: () => {} } as unknown as Queues, // all that is used
        fork
      }),
      command: ({ delivery }) => {
        const index = Number(name(delivery))
        const { how, isTooLarge } = cases[index]!
        if (how === "Hide") return { _tag: how, seconds: 1 }
        if (how === "Delete" || how === "Leave") return { _tag: how }
        if (how === "Refuse") return { _tag: how, error: unsupported }
        const headers: Record<string, string> = isTooLarge ? { tooLarge } : {}
        const copy = { queue: "dead", id: String(index), body: delivery.body, headers, delay: 0 }
        return { _tag: how, outgoing: Outgoing.make(copy, 0) }
      },
      settled: { has: () => false, set: () => {} },
      onEnd: (delivery, how) => void ends.set(name(delivery), how),
      onHeld: (delivery) => void held.push(name(delivery)),
      fork,
      now: () => 0
    })
    const fiber = yield* Effect.forkChild(settle(requests))
    for (let second = 0; second < 5; second++) {
      yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
      yield* TestClock.adjust("1 second")
    }
    const failures = new Map((yield* Fiber.join(fiber)).map(({ delivery, error }) => [name(delivery), error.reason]))
    const isSettling = requests.map(({ delivery }) => Receipt.receiptOf(delivery).isSettling)
    return { failures, ends, held: held.toSorted(), isSettling }
  }).pipe(Effect.provide(TestClock.layer()), Effect.runPromise)

const answers = fc.constantFrom<Array<Answers>>(
  ["done"],
  ["done"],
  ["refused"],
  ["failed", "done"],
  ["failed", "refused"]
)
const settlement: fc.Arbitrary<Case> = fc.record({
  how: fc.constantFrom<Array<Command["_tag"]>>("Copy", "Copy", "Copy", "Delete", "Hide", "Refuse", "Leave"),
  isTooLarge: fc.integer({ max: 4, min: 0 }).map((drawn) => drawn === 0),
  sent: answers,
  removed: answers,
  hidden: answers
})

test("each settlement of a batch fails by the answers for its own entries, and by no other", () =>
  fc.assert(
    fc.asyncProperty(fc.array(settlement, { minLength: 1, maxLength: 25 }), async (cases) => {
      const names = [...cases.keys()].map(String)
      const failures = cases.map(expected)
      const told = await run(cases)
      expect(names.map((name) => told.failures.get(name))).toEqual(failures)
      expect(told.held).toEqual(names.filter((_, index) => failures[index] !== undefined).toSorted())
      expect(told.isSettling).toEqual(failures.map((failure) => failure === undefined))
      expect(names.map((name) => told.ends.get(name))).toEqual(
        cases.map(({ how }, index) =>
          failures[index] !== undefined ? undefined : how === "Hide" || how === "Leave" ? "returned" : "gone"
        )
      )
    }),
    { numRuns: 60 }
  ))
