/** Redrives: every dead letter is back in its queue or still there, and the report says which. */
import { Backoff, BrokerError, type Delivery, RetryPolicy } from "@requeue/core"
import { Metadata, Settlement } from "@requeue/core/port"
import type { DeadLetters } from "@requeue/operations"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"
import * as Workload from "../Workload.ts"

const test = Case.inGroup("redriving")

const ids = Array.from({ length: 20 }, (_, index) => `m${index}`)

/** Makes dead letters with these ids. A consumer could store a letter twice if the lease of its message ended. */
export const bury = (lab: Lab, letters: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const error = { name: "Error", message: "boom" }
    const { dlq, queue } = lab
    const unheard = { onDelivery: () => {}, onReconnect: () => {} }
    // A redrive creates no queue that a letter names.
    const made = lab.broker.subscribe({ queue, retry: RetryPolicy.make(), deadLetterQueues: [dlq], ...unheard })
    yield* Effect.scoped(made)
    for (const id of letters) {
      const now = lab.now()
      const { metadata, ...message } = Workload.outgoing(lab.dlq, id, { now })
      const deadLetter = { queue: lab.queue, attempts: 1, reason: "retries-exhausted", at: now, error } as const
      yield* lab.broker.publish([{ ...message, metadata: { ...metadata, deadLetter } }])
    }
    yield* lab.untilPending({ ready: letters.length }, lab.dlq)
  })

/**
 * Handles at least this many redriven messages. Returns the id of each copy. Each copy has a first run; a run with a later
 * attempt does not count as another copy, because a lease may have ended before it.
 */
const redriven = (lab: Lab, count: number) =>
  Effect.gen(function* () {
    yield* lab.start()
    yield* lab.until(`${count} messages`, () => new Set(lab.runs.map(({ id }) => id)).size >= count)
    yield* lab.quiet()
    return [...new Set(lab.runs.map(({ id }) => id))].flatMap((id) => {
      const first = lab.runs.filter((run) => run.id === id && run.attempts === 1)
      return Array.from({ length: Math.max(1, first.length) }, () => id)
    })
  })

export const left = (lab: Lab) =>
  Effect.map(lab.harness.deadLetters(lab.dlq), (letters) => letters.map(({ metadata }) => metadata.id).toSorted())

/**
 * Delays the publish of the last letters, however often the others are tried. Letters without a publish keep the redrive running:
 * a broker that does not answer settlements may have read none of those that were written as its connection broke, and only a
 * running redrive sees them redelivered.
 */
const holdLast = (lab: Lab, last: number, total: number, gate: Deferred.Deferred<void>) => {
  const begun = new Set<string>()
  lab.faults.publish = (messages) => {
    const fresh = messages.filter(({ metadata, queue }) => queue === lab.queue && !begun.has(metadata.id))
    if (fresh.length + begun.size <= total - last) {
      for (const { metadata } of fresh) begun.add(metadata.id)
      return undefined
    }
    if (fresh.length === 0) return undefined
    return Effect.andThen(
      Deferred.await(gate),
      Effect.suspend(() => {
        lab.faults.publish = undefined
        return lab.broker.publish(messages)
      })
    )
  }
}

/** Rejects the publishes of one message, whose original is a dead letter. */
const refuse = (lab: Lab, id: string) => {
  lab.faults.publish = (messages) => {
    if (messages.every(({ metadata, queue }) => metadata.id !== id || queue !== lab.queue)) return undefined
    const reason = "Unroutable"
    return Effect.fail(new BrokerError.BrokerError({ broker: "conformance", operation: "publish", reason, detail: id }))
  }
}

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "a redrive whose connections break decides on each letter once, loses none, and its report balances",
    function* (lab) {
      yield* bury(lab, ids)
      const isMeant = (id: string) => Number(id.slice(1)) % 4 !== 0
      const meant = ids.filter(isMeant)
      const decided: Array<string> = []
      let report: DeadLetters.RedriveReport | undefined
      const letters = yield* lab.letters
      const redrive = letters.redrive({
        rate: 10,
        filter: ({ metadata }) => {
          decided.push(metadata.id)
          return isMeant(metadata.id)
        },
        onProgress: (current) => void (report = current)
      })
      const cut = (count: number) =>
        Effect.andThen(
          lab.until(`${count} redriven letters`, () => (report?.redriven ?? 0) >= count, lab.recovery),
          lab.harness.cutConnections!
        )
      const begun = lab.now()
      const isCut = yield* Deferred.make<void>()
      holdLast(lab, 5, meant.length, isCut)
      const cuts = Effect.all([cut(3), cut(7), Deferred.succeed(isCut, undefined)])
      const [end] = yield* Effect.all([redrive, cuts], { concurrency: "unbounded" })
      Check.equal("decided", decided.toSorted(), ids.toSorted())
      Check.equal("redriven or in both queues", end.redriven + end.unremoved, meant.length)
      Check.equal("passed over", end.filtered, ids.length - meant.length)
      const isLeft = yield* Effect.exit(lab.untilPending({ ready: ids.length - end.redriven, inFlight: 0 }, lab.dlq))
      if (lab.capabilities.lease !== undefined && Exit.isFailure(isLeft)) {
        // A process that stands still for longer than a lease removes nothing, and not every broker reports that.
        return lab.checkTimely("letters that are left", String(isLeft.cause), "as the report tells", begun)
      }
      yield* isLeft
      const unremoved = end.failures.map(({ id }) => id)
      const passed = ids.filter((id) => !isMeant(id))
      Check.equal("left", yield* left(lab), [...passed, ...unremoved].toSorted())
      const publishes = lab.entriesOf("Publishing").filter(({ messages }) => messages[0]?.queue === lab.queue).length
      const runs = yield* redriven(lab, meant.length)
      Check.equal("at work again", [...new Set(runs)].toSorted(), meant.toSorted())
      // A driver that publishes again after a lost connection may store a copy that no call reports.
      const untold = lab.capabilities.connectionBound ? 0 : meant.length
      // A letter with several unanswered publishes is reported once.
      const told = end.unconfirmed === 0 ? 0 : publishes - meant.length
      const { failures: _, ...figures } = end
      const seen = { runs, publishes, figures }
      Check.isTrue("no copy more than is told", runs.length <= meant.length + told + untold, seen)
    },
    Needs.cutConnections
  ),
  test("a letter that cannot be redriven holds up no other, and none is redriven twice", function* (lab) {
    const some = ids.slice(0, 5)
    yield* bury(lab, some)
    const letters = yield* lab.letters
    refuse(lab, "m2")
    for (const count of [4, 0]) {
      const { failures, redriven, refused } = yield* letters.redrive()
      Check.equal("redriven and refused", [redriven, refused], [count, 1])
      Check.equal(
        "refused",
        failures.map(({ error, id, isPublished }) => [id, isPublished, error?.reason]),
        [["m2", false, "Unroutable"]]
      )
      yield* lab.untilPending({ ready: 1, inFlight: 0 }, lab.dlq)
      Check.equal("left", yield* left(lab), ["m2"])
    }
    lab.faults.publish = undefined
    Check.equal("afterwards", (yield* letters.redrive()).redriven, 1)
    Check.equal("at work again", (yield* redriven(lab, 5)).toSorted(), some)
  }),
  test("a redrive reports the letters of another reader, and another redrive takes them", function* (lab) {
    const some = ids.slice(0, 3)
    yield* bury(lab, some)
    const letters = yield* lab.letters
    let isKept = true
    yield* Effect.scoped(
      Effect.gen(function* () {
        const retry = RetryPolicy.make({ maxRetries: "unlimited", backoff: Backoff.constant("1 second") })
        const begun = lab.now()
        const reader = yield* Port.open(lab.broker, {
          queue: lab.dlq,
          retry,
          deadLetterQueues: [],
          credit: 1,
          keep: true
        })
        const letter = yield* reader.next
        reader.credit(0)
        const { held, redriven } = yield* letters.redrive()
        isKept = checkKept(lab, "redriven", redriven, 2, begun)
        if (isKept) Check.isTrue("held by the reader", held === 1 || held === undefined, held)
        yield* reader.settle(letter, Settlement.Release())
      })
    )
    if (!isKept) return
    yield* lab.untilPending({ ready: 1, inFlight: 0 }, lab.dlq)
    Check.equal("redriven afterwards", (yield* letters.redrive()).redriven, 1)
    Check.equal("at work again", (yield* redriven(lab, 3)).toSorted(), some)
  }),
  test("a redrive from which another reader takes letters says what that one has, and another redrive takes them", function* (lab) {
    const some = ids.slice(0, 5)
    yield* bury(lab, some)
    const letters = yield* lab.letters
    let isKept = true
    yield* Effect.scoped(
      Effect.gen(function* () {
        const begun = lab.now()
        const reader = yield* Port.open(lab.broker, { queue: lab.dlq, deadLetterQueues: [], keep: true })
        let taken: ReadonlyArray<Delivery.Delivery> = []
        // With a rate of 1 it takes one letter at a time. While it publishes the first one, the reader takes the others.
        lab.faults.publish = (messages) => {
          if (messages.every(({ queue }) => queue !== lab.queue)) return undefined
          lab.faults.publish = undefined
          reader.credit(4)
          const others = Effect.map(Effect.orDie(reader.take(4)), (all) => void (taken = all))
          return Effect.andThen(others, lab.broker.publish(messages))
        }
        const { held, queued, redriven } = yield* letters.redrive({ rate: 1 })
        isKept = checkKept(lab, "redriven", redriven, 1, begun)
        if (isKept) {
          const isTold = lab.capabilities.exactCounts ? held === 4 : held !== 0
          Check.isTrue("held by the reader", isTold, held)
          Check.isTrue("queued", queued === 0 || queued === undefined, queued)
        }
        reader.credit(0)
        yield* reader.settleAll(taken.map((delivery) => ({ delivery, settlement: Settlement.Release() })))
      })
    )
    if (!isKept) return
    yield* lab.untilPending({ ready: 4, inFlight: 0 }, lab.dlq)
    Check.equal("redriven afterwards", (yield* letters.redrive()).redriven, 4)
    Check.equal("at work again", (yield* redriven(lab, 5)).toSorted(), some)
  }),
  test("what a purge or a redrive has passed over is there again at its end", function* (lab) {
    const some = ids.slice(0, 5)
    yield* bury(lab, some)
    const letters = yield* lab.letters
    const shown = Effect.map(letters.list(), (all) => all.map(({ id }) => id).toSorted())
    Check.equal("purged", yield* letters.purge({ filter: ({ metadata }) => metadata.id === "m1" }), 1)
    Check.equal("after the purge", yield* shown, ["m0", "m2", "m3", "m4"])
    Check.equal("redriven", (yield* letters.redrive({ filter: ({ metadata }) => metadata.id === "m3" })).redriven, 1)
    Check.equal("after the redrive", yield* shown, ["m0", "m2", "m4"])
  }),
  test(
    "letters of a foreign producer that have one id are each redriven, also when they were browsed before",
    function* (lab) {
      const bodies = [0, 1, 2, 3, 4, 5, 6, 7]
      // A redrive creates no queue that a letter names.
      yield* bury(lab, [])
      const [q, t] = [lab.queue, lab.now()]
      const header = {
        v: 1,
        id: "same",
        a: 0,
        t0: t,
        dl: { q, a: 1, r: "retries-exhausted", t, n: "Error", m: "boom" }
      }
      const headers = { [Metadata.header]: JSON.stringify(header) }
      for (const body of bodies) {
        yield* lab.harness.publishRaw(lab.dlq, new TextEncoder().encode(String(body)), headers)
      }
      yield* lab.untilPending({ ready: bodies.length }, lab.dlq)
      const letters = yield* lab.letters
      Check.equal("browsed", (yield* letters.list()).length, bodies.length)
      yield* lab.untilPending({ ready: bodies.length, inFlight: 0 }, lab.dlq)
      const begun = lab.now()
      const { filtered, redriven, refused, unknownOrigin } = yield* letters.redrive({
        to: lab.queue,
        filter: ({ body }) => new TextDecoder().decode(body) !== "3"
      })
      const fates = [redriven, filtered, refused, unknownOrigin]
      if (!checkKept(lab, "redriven, passed over, refused, of unknown origin", fates, [7, 1, 0, 0], begun)) return
      yield* lab.start({ concurrency: bodies.length })
      yield* lab.until("all others", () => new Set(lab.runs.map(({ body }) => body)).size === 7)
      yield* lab.quiet()
      const handled = [...new Set(lab.runs.map(({ body }) => Number(body)))].toSorted((a, b) => a - b)
      Check.equal(
        "handled",
        handled,
        bodies.filter((body) => body !== 3)
      )
    },
    Needs.has("headers")
  ),
  test("a redrive that is aborted ends at once, and another one goes on with the others", function* (lab) {
    const some = ids.slice(0, 10)
    yield* bury(lab, some)
    const letters = yield* lab.letters
    const stop = new AbortController()
    const before = lab.entriesOf("Publishing").length
    const published = () => lab.entriesOf("Publishing").length - before
    let begun = 0
    const first = yield* letters.redrive({
      rate: 2,
      signal: stop.signal,
      onProgress: ({ redriven }) => {
        // A page may have several letters.
        if (redriven < 2 || begun > 0) return
        begun = published()
        stop.abort()
      }
    })
    // If the broker is slower than the rate, the next publish is in flight then. It ends, and no other begins.
    Check.isTrue("publishes before the abort", begun >= 2 && begun < some.length, begun)
    Check.equal("publishes", published(), begun)
    Check.equal("redriven", [first.redriven, first.unremoved, first.unconfirmed], [begun, 0, 0])
    const rest = some.length - begun
    if (lab.capabilities.counts.ready) Check.equal("queued", first.queued, rest)
    yield* lab.untilPending({ ready: rest, inFlight: 0 }, lab.dlq)
    Check.equal("redriven by another one", (yield* letters.redrive()).redriven, rest)
    Check.equal("at work again", (yield* redriven(lab, some.length)).toSorted(), some.toSorted())
  })
]
