/** Limits of the messages with one `fairBy`, over all consumers of a queue. */
import { RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { no } from "../internal/keys.ts"
import { limitTest as test, manyOf, sendShared, shareOf, watch } from "../internal/shares.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const runsOf = ({ runs }: Lab, share: string) => runs.filter(({ id }) => shareOf(id) === share)

const refused = (options: Parameters<Lab["start"]>[0], ...needs: ReadonlyArray<Case.Requirement>) =>
  [
    function* (lab: Lab) {
      yield* lab.send("a0")
      const error = yield* Effect.flip(lab.start(options))
      Check.equal("error", [error._tag, "field" in error && error.field], ["ConfigurationError", "shareLimits"])
      yield* lab.quiet()
      Check.equal("runs", lab.runs.length, 0)
    },
    ...needs
  ] as const

export const cases: ReadonlyArray<Case.Case> = [
  test("no more messages of a share are in handlers than the limit, over two consumers, and all are handled", function* (lab) {
    const [count, watched] = [6, watch()]
    yield* sendShared(lab, ...["a", "b", "c"].flatMap((share) => manyOf(share, count)))
    const options = { concurrency: 6, shareLimits: { concurrency: 2 }, retry: RetryPolicy.make({ maxRetries: 1 }) }
    // One of each share fails once.
    const work = (message: { readonly attempts: number; readonly id: string }) =>
      watched.during(
        message,
        Effect.andThen(Effect.sleep(5), message.id.endsWith("3") && message.attempts === 1 ? no : Effect.void)
      )
    const other = yield* lab.another
    yield* lab.start(options, work)
    yield* other.start(options, work)
    const succeeded = () =>
      [lab, other].flatMap(({ events }) => events.filter(({ _tag }) => _tag === "Succeeded")).length
    yield* lab.until("all", () => succeeded() === 3 * count)
    for (const [share, most] of watched.most) Check.isTrue(`at most 2 of ${share}`, most <= 2, most)
  }),
  test("a share at its limit holds up no other, and goes on when one of its messages has ended", function* (lab) {
    yield* sendShared(lab, ...manyOf("a", 5), ...manyOf("b", 5))
    const gate = yield* Deferred.make<void>()
    yield* lab.start({ concurrency: 4, shareLimits: { concurrency: 2 } }, ({ id }) =>
      shareOf(id) === "a" ? Deferred.await(gate) : Effect.void
    )
    yield* lab.untilEvents("Succeeded", 5)
    Check.equal("runs of a", runsOf(lab, "a").length, 2)
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 10)
    yield* lab.untilEmpty
  }),
  test("what a consumer that has ended held counts no more", function* (lab) {
    yield* sendShared(lab, "a0", "a1")
    const options = { concurrency: 2, shareLimits: { concurrency: 1 } }
    const other = yield* lab.another
    const first = yield* lab.start(options, () => Effect.never)
    yield* lab.until("a run", () => lab.runs.length === 1)
    yield* other.start(options)
    yield* lab.quiet()
    Check.equal("runs meanwhile", other.runs.length, 0)
    yield* first.drain(0)
    yield* other.untilEvents("Succeeded", 2)
  }),
  test("no more messages of a share are delivered in any window than the limit allows, over two consumers", function* (lab) {
    const [per, count] = [2 * lab.unit, 5]
    yield* sendShared(lab, ...manyOf("a", count), ...manyOf("b", count))
    const options = { concurrency: 4, shareLimits: { rateLimit: { max: 2, per } } }
    const other = yield* lab.another
    yield* lab.start(options)
    yield* other.start(options)
    const runs = () => [...lab.runs, ...other.runs]
    yield* lab.until("all", () => runs().length === 2 * count)
    for (const share of ["a", "b"]) {
      const times = runs()
        .flatMap(({ at, id }) => (shareOf(id) === share ? [at] : []))
        .toSorted((x, y) => x - y)
      for (const [index, at] of times.entries())
        if (index >= 2) lab.checkNotEarly(`run ${index + 1} of ${share}`, per, times[index - 2]!, at)
    }
  }),
  test("messages without fairBy have no limit of shares", function* (lab) {
    yield* lab.send("n0", "n1", "n2")
    const gate = yield* Deferred.make<void>()
    yield* lab.start({ concurrency: 3, shareLimits: { concurrency: 1 } }, () => Deferred.await(gate))
    yield* lab.until("three runs", () => lab.runs.length === 3)
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEmpty
  }),
  test(
    "a rate of a share with immediate retries is refused, before a message is delivered",
    ...refused({ shareLimits: { rateLimit: { max: 1, per: 1000 } }, retry: RetryPolicy.make({ immediate: 1 }) })
  ),
  Case.inGroup("share limits")(
    "a broker without fair shares refuses their limits, before a message is delivered",
    ...refused({ shareLimits: { concurrency: 1 } }, Needs.lacks("fairShares"))
  )
]
