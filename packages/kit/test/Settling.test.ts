import { assert, describe, it } from "@effect/vitest"
import { type Broker, BrokerError, type Delivery, Metadata, Outgoing, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as fc from "fast-check"
import * as Settling from "../src/Settling.ts"

type Direct = { readonly _tag: "Ack" } | { readonly _tag: "Requeue" }

type Answer = "done" | "transient" | "unknown" | "lost" | "rejected"

/** How a delivery is settled, and what the broker answers. */
interface Case {
  readonly isHeld: boolean
  readonly how: "Ack" | "Requeue" | "Copy"
  readonly hasInstead: boolean
  /** Whether the delivery is lost until its claim is released. */
  readonly isLost: boolean
  readonly published: Answer
  readonly written: Answer
}

const reasons = {
  transient: "Throttled",
  unknown: "Timeout",
  lost: "LeaseLost",
  rejected: "BodyTooLarge"
} as const

const errorOf = (answer: Answer): BrokerError.BrokerError | undefined =>
  answer === "done"
    ? undefined
    : new BrokerError.BrokerError({ broker: "model", operation: "settle", reason: reasons[answer], detail: answer })

const deliveryOf = (index: number): Delivery.Delivery => ({
  body: new Uint8Array(),
  headers: {},
  attempts: 1,
  metadata: Metadata.make(String(index), 0),
  receipt: index
})

const indexOf = ({ delivery }: { readonly delivery: Delivery.Delivery }): number => delivery.receipt as number // as made above

const outgoing = Outgoing.make({ queue: "dead", id: "copy", body: new Uint8Array(), headers: {}, delay: 0 }, 0)

/** Settles all cases at once on a broker that answers in this order, and returns what happened to each. */
const settle = async (cases: ReadonlyArray<Case>, order: () => number) => {
  const log = cases.map((): Array<string> => [])
  const answers: Array<() => void> = []
  /** The claims without an answer. */
  const open = new Set<unknown>()
  const note = (request: { readonly delivery: Delivery.Delivery }, what: string): void =>
    void log[indexOf(request)]!.push(what)
  const later =
    <C>(what: (claim: Settling.Claim<C>) => string, answerOf: (each: Case) => Answer) =>
    (claims: ReadonlyArray<Settling.Claim<C>>, done: Settling.Done<C>): void => {
      for (const claim of claims) {
        note(claim, what(claim))
        const answer = (): void => {
          open.delete(claim)
          done(claim, errorOf(answerOf(cases[indexOf(claim)]!)))
        }
        open.add(claim)
        // A broker's client may report an end twice.
        answers.push(answer, answer)
      }
    }
  const run = Settling.make<Direct>({
    claim: (request) => (cases[indexOf(request)]!.isHeld ? undefined : errorOf("lost")),
    release: (claim) => {
      note(claim, "released")
      return cases[indexOf(claim)]!.isLost ? errorOf("lost") : undefined
    },
    toCommand: (request) => {
      const { hasInstead, how } = cases[indexOf(request)]!
      if (how !== "Copy") return { _tag: how }
      return { _tag: how, outgoing, instead: hasInstead ? { _tag: "Requeue" } : undefined }
    },
    ack: { _tag: "Ack" },
    carryOut: later(
      ({ command }) => command._tag,
      ({ written }) => written
    ),
    publish: later(
      () => "published",
      ({ published }) => published
    ),
    stored: (request) => note(request, "stored"),
    ended: (claim, end) => note(claim, end)
  })
  const requests = cases.map((_, index) => ({ delivery: deliveryOf(index), settlement: Settlement.Ack }))
  const fiber = Effect.runFork(run(requests))
  while (answers.length > 0) {
    if (open.size > 0) assert.isUndefined(fiber.pollUnsafe())
    answers.splice(order() % answers.length, 1)[0]!()
    await Promise.resolve()
  }
  const failures = await Effect.runPromise(Fiber.join(fiber))
  return {
    log: log.map((each) => each.join(" ")),
    fates: cases.map((_, index) => {
      const [failure, ...others] = failures.filter((each) => indexOf(each) === index)
      assert.isEmpty(others)
      return failure && fateOf(failure)
    })
  }
}

const fateOf = ({ fate, smaller }: Broker.SettleFailure): string => (smaller === true ? `${fate}, smaller` : fate)

const one = async (given: Partial<Case>) => {
  const usual = {
    isHeld: true,
    how: "Ack",
    hasInstead: false,
    isLost: false,
    published: "done",
    written: "done"
  } as const
  const { fates, log } = await settle([{ ...usual, ...given }], () => 0)
  return [log[0], fates[0]]
}

describe("a delivery", () => {
  it.each<readonly [name: string, given: Partial<Case>, log: string, fate: string | undefined]>([
    ["that is not held reaches no broker", { isHeld: false }, "", "lost"],
    ["is acked", {}, "Ack gone", undefined],
    ["is requeued", { how: "Requeue" }, "Requeue returned", undefined],
    ["is held again after a failure", { written: "unknown" }, "Ack released", "unknown"],
    ["is not held again after a loss", { written: "lost" }, "Ack lost", "lost"],
    ["is lost while it is settled", { written: "transient", isLost: true }, "Ack released lost", "lost"],
    ["is acked after its copy is stored", { how: "Copy" }, "published stored Ack gone", undefined],
    ["keeps its place when its copy fails", { how: "Copy", published: "unknown" }, "published released", "unknown"],
    ["may need a smaller copy", { how: "Copy", published: "rejected" }, "published released", "rejected, smaller"],
    [
      "is lost while it is copied",
      { how: "Copy", published: "transient", isLost: true },
      "published released lost",
      "lost"
    ],
    [
      "is requeued instead, if its copy is rejected",
      { how: "Copy", published: "rejected", hasInstead: true },
      "published Requeue returned",
      undefined
    ],
    [
      "is not requeued instead, if its copy may be stored",
      { how: "Copy", published: "unknown", hasInstead: true },
      "published released",
      "unknown"
    ],
    [
      "is settled by its copy, whatever becomes of the ack",
      { how: "Copy", written: "unknown" },
      "published stored Ack gone",
      undefined
    ],
    [
      "is settled by its copy, even if it is lost then",
      { how: "Copy", written: "lost" },
      "published stored Ack gone",
      undefined
    ],
    [
      "stays held if the broker rejects the ack after the copy",
      { how: "Copy", written: "rejected" },
      "published stored Ack released",
      "rejected, smaller"
    ]
  ])("%s", async (_, given, log, fate) => assert.deepStrictEqual(await one(given), [log, fate]))
})

const answer = fc.constantFrom<Array<Answer>>("done", "done", "transient", "unknown", "lost", "rejected")
const cases: fc.Arbitrary<Case> = fc.record({
  isHeld: fc.boolean(),
  how: fc.constantFrom<Array<Case["how"]>>("Ack", "Requeue", "Copy"),
  hasInstead: fc.boolean(),
  isLost: fc.boolean(),
  published: answer,
  written: answer
})

it("each delivery of a call ends as it would alone, in any order of answers, and the call ends with the last", () =>
  fc.assert(
    fc.asyncProperty(fc.array(cases, { maxLength: 8 }), fc.infiniteStream(fc.nat()), async (all, order) => {
      const together = await settle(all, () => order.next().value)
      const alone = await Promise.all(all.map(one))
      assert.deepStrictEqual(
        together.log.map((log, index) => [log, together.fates[index]]),
        alone
      )
    }),
    { numRuns: 300 }
  ))

it("a defect of an adapter ends the call", async () => {
  const run = Settling.make<Direct>({
    claim: () => undefined,
    release: () => undefined,
    toCommand: () => ({ _tag: "Ack" }),
    ack: { _tag: "Ack" },
    carryOut: () => {
      throw new Error("defect")
    },
    publish: () => {}
  })
  const exit = await Effect.runPromiseExit(run([{ delivery: deliveryOf(0), settlement: Settlement.Ack }]))
  assert.strictEqual(exit._tag, "Failure")
})

it("a copy that the adapter cannot publish ends the call", async () => {
  const run = Settling.make<Direct>({
    claim: () => undefined,
    release: () => undefined,
    toCommand: () => ({ _tag: "Copy", outgoing }),
    ack: { _tag: "Ack" },
    carryOut: () => {}
  })
  const exit = await Effect.runPromiseExit(run([{ delivery: deliveryOf(0), settlement: Settlement.Ack }]))
  assert.strictEqual(exit._tag, "Failure")
})
