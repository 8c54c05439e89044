/** Crashes and power cuts: what was confirmed survives, and what was not confirmed is at most done again. */
import { Backoff, Broker, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import * as Lab from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Wait from "../Wait.ts"

const faults = {
  crash: { words: "a crash", needs: Needs.crash },
  powerCut: { words: "a power cut", needs: Needs.powerCut }
} as const

type Fault = keyof typeof faults

/** Moments at which the fault happens, in one case. */
const moments = Array.from({ length: 12 }, (_, moment) => moment)

/** Runs a program to its end, breaks the broker under its consumers, and returns the laboratory of a new process. */
const broken = (lab: Lab.Lab, fault: Fault, program: Effect.Effect<unknown, unknown, Case.Requirements>) =>
  Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
    yield* Effect.provideService(program, Scope.Scope, scope)
    const broker = yield* lab.harness[fault]!
    // The consumers of a client outlive the crash of a server. They would take deliveries from those of the new process.
    yield* Scope.close(scope, Exit.void)
    return yield* Effect.provideService(Lab.at(lab.queue), Broker.Broker, broker)
  })

const idsOf = (runs: ReadonlyArray<Lab.Run>) => new Set(runs.map(({ id }) => id))

const untilAll = (lab: Lab.Lab, ids: ReadonlyArray<string>) =>
  lab.until(`the runs of ${ids.join(" ")}`, () => ids.every((id) => idsOf(lab.runs).has(id)), lab.recovery)

const fails = () => Effect.fail(new Error("no"))

/** Sends of which some are not confirmed when the fault happens. */
const sends = (fault: Fault): Case.Body =>
  function* (lab) {
    let current = lab
    const confirmed: Array<string> = []
    for (const moment of moments) {
      const fibers = new Map<string, Fiber.Fiber<unknown, unknown>>()
      const program = Effect.gen(function* () {
        for (let index = 0; index <= moment; index++) {
          fibers.set(`${moment}-${index}`, yield* Effect.forkScoped(current.send(`${moment}-${index}`)))
          yield* Effect.sleep(1)
        }
        // The fault must not depend on a confirmation alone: it also happens while there is none.
        for (const [id, fiber] of fibers) if (fiber.pollUnsafe()?._tag === "Success") confirmed.push(id)
      })
      current = yield* broken(current, fault, program)
    }
    yield* current.send("last")
    yield* current.start()
    yield* untilAll(current, [...confirmed, "last"])
    yield* current.untilEmpty
  }

/** Messages whose ways to the dead-letter queue the fault interrupts. */
const letters = (fault: Fault): Case.Body =>
  function* (lab) {
    const retry = RetryPolicy.make({ maxRetries: 0 })
    let current = lab
    for (const moment of moments) {
      const program = Effect.gen(function* () {
        const ran = yield* Deferred.make<void>()
        yield* current.start({ retry }, ({ id }) =>
          Effect.andThen(id === `m${moment}` ? Deferred.succeed(ran, undefined) : Effect.void, fails())
        )
        yield* current.send(`m${moment}`)
        yield* Deferred.await(ran)
        for (let turn = 0; turn < moment; turn++) yield* Effect.yieldNow
      })
      current = yield* broken(current, fault, program)
    }
    yield* current.start({ retry }, fails)
    const found = Effect.map(lab.harness.deadLetters(lab.dlq), (all) => {
      const ids = new Set(all.map(({ metadata }) => metadata.id))
      return moments.every((moment) => ids.has(`m${moment}`)) || undefined
    })
    yield* Wait.found("each message as a dead letter", found, { within: lab.recovery })
    yield* current.untilEmpty
  }

/** The cases that hold for both faults. */
const casesOf = (fault: Fault): ReadonlyArray<Case.Case> => {
  const { needs, words } = faults[fault]
  const test = (name: string, body: Case.Body) => Case.inGroup("durability")(name, body, needs)
  return [
    test(`messages that were confirmed before ${words} are delivered after it, as they were sent`, function* (lab) {
      const next = yield* broken(lab, fault, lab.send("a", "b", "c"))
      yield* next.start()
      yield* untilAll(next, ["a", "b", "c"])
      yield* next.untilEmpty
      for (const { attempts, body, id } of next.runs) Check.equal("message", [body, attempts], [id, 1])
    }),
    test(`of sends that ${words} interrupts, the confirmed ones are not lost`, sends(fault)),
    test(`${words} loses no message that was not settled, and may repeat one that was`, function* (lab) {
      const program = Effect.gen(function* () {
        yield* lab.send("a", "b", "c")
        yield* lab.start({ concurrency: 3 }, ({ id }) => (id === "c" ? Effect.never : Effect.void))
        yield* lab.untilRuns(3)
        yield* lab.untilEvents("Succeeded", 2)
      })
      const next = yield* broken(lab, fault, program)
      yield* next.start()
      yield* untilAll(next, ["c"])
      yield* next.untilEmpty
    }),
    test(`${words} loses no message on its way to the dead letters`, letters(fault)),
    test(`the delay of a send survives ${words}`, function* (lab) {
      const sent = lab.now()
      const next = yield* broken(lab, fault, lab.sendDelayed("a", 4 * lab.unit))
      yield* next.start()
      const [run] = yield* next.untilRuns(1, lab.recovery)
      next.checkNotEarly("the message", 4 * lab.unit, sent, run!.at)
      Check.equal("attempts", run!.attempts, 1)
    })
  ]
}

export const cases: ReadonlyArray<Case.Case> = [
  ...casesOf("crash"),
  Case.inGroup("durability")(
    "the delay of a retry survives a crash, with its attempts",
    function* (lab) {
      const delay = 4 * lab.unit
      const retry = RetryPolicy.make({ maxRetries: 3, backoff: Backoff.constant(delay) })
      const program = Effect.gen(function* () {
        yield* lab.send("a")
        yield* lab.start({ retry }, fails)
        yield* lab.until("the retry", () => lab.entriesOf("Settled").length > 0)
      })
      const next = yield* broken(lab, "crash", program)
      yield* next.start({ retry })
      const [run] = yield* next.untilRuns(1, lab.recovery)
      Check.equal("attempts", run!.attempts, 2)
      next.checkNotEarly("the retry", delay, lab.runs[0]!.at, run!.at)
    },
    Needs.crash
  ),
  ...casesOf("powerCut")
]
