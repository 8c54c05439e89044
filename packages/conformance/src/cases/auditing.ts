/** Audits: the audit records each letter before it leaves; if the audit fails, no letter leaves. */
import type { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import { bury, left } from "./redriving.ts"

const test = Case.inGroup("redriving")

const ids = Array.from({ length: 10 }, (_, index) => `m${index}`)

/** An audit that records its calls; `early` are letters that were published before the audit had them. */
const keeper = (lab: Lab, calls: number) => {
  const told: Array<string> = []
  const early: Array<string> = []
  let asked = 0
  const before = lab.entriesOf("Publishing").length
  const audit: DeadLetters.Audit = async (letters) => {
    const since = lab.entriesOf("Publishing").slice(before)
    const published = new Set(since.flatMap(({ messages }) => messages.map(({ metadata }) => metadata.id)))
    early.push(...letters.map(({ id }) => id).filter((id) => published.has(id)))
    // A write takes several turns of the event loop.
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    if (++asked > calls) throw new Error("the disk is full")
    told.push(...letters.map(({ id }) => id))
  }
  return { audit, told, early, asked: () => asked }
}

/** The message of the error with which it ends. */
const failure = <E extends Error>(effect: Effect.Effect<unknown, E>) =>
  Effect.match(effect, { onSuccess: () => "it went well", onFailure: ({ message }) => message })

export const cases: ReadonlyArray<Case.Case> = [
  test("an audit is told of each letter before it is redriven or removed, and where it fails, the others stay", function* (lab) {
    yield* bury(lab, ids)
    const letters = yield* lab.letters
    const full = keeper(lab, 0)
    for (const work of [
      letters.redrive({ audit: full.audit }),
      letters.redrive({ audit: full.audit, stages: [1, 2] }),
      letters.purge({ audit: full.audit, filter: () => true })
    ]) {
      Check.isTrue("it says why", (yield* failure(work)).includes("the disk is full"))
      yield* lab.untilPending({ ready: ids.length, inFlight: 0 }, lab.dlq)
    }
    Check.equal("asked, once for each", full.asked(), 3)

    const torn = keeper(lab, 1)
    yield* failure(letters.purge({ audit: torn.audit, filter: () => true }))
    yield* lab.untilPending({ ready: ids.length - torn.told.length, inFlight: 0 }, lab.dlq)
    Check.equal(
      "gone are those that it was told of",
      yield* left(lab),
      ids.filter((id) => !torn.told.includes(id))
    )

    const kept = keeper(lab, Number.POSITIVE_INFINITY)
    const rest = yield* left(lab)
    const { redriven } = yield* letters.redrive({ audit: kept.audit })
    Check.equal("redriven", redriven, rest.length)
    Check.equal("told, each once", kept.told.toSorted(), rest)
    Check.equal("told after they had gone", kept.early, [])
  })
]
