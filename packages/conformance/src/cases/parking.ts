/** Parked letters: they are unchanged, and can be sent back. */
import { Broker } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { bury, left } from "./redriving.ts"

const test = Case.inGroup("redriving")

const ids = ["m0", "m1", "m2", "m3"]

/** All that is known of a letter. */
const known = ({ body, headers, history, id, origin, redrives }: DeadLetters.DeadLetter) => ({
  id,
  body: new TextDecoder().decode(body),
  headers,
  history,
  origin,
  redrives
})

const all = ({ list }: DeadLetters.DeadLetters) =>
  Effect.map(list(), (letters) => letters.map(known).toSorted((one, other) => one.id.localeCompare(other.id)))

export const cases: ReadonlyArray<Case.Case> = [
  test("parked letters are aside as they were, and come back to the others or to work", function* (lab) {
    yield* bury(lab, ids)
    const letters = yield* lab.letters
    const before = yield* all(letters)
    const aside = `${lab.queue}.aside`
    const parked = yield* Effect.provideService(DeadLetters.make(aside), Broker.Broker, lab.broker)
    const isFirst = (id: string) => id === "m0" || id === "m1"
    const { filtered, redriven } = yield* letters.park({
      to: aside,
      create: true,
      filter: ({ metadata }) => isFirst(metadata.id)
    })
    Check.equal("parked and passed over", [redriven, filtered], [2, 2])
    yield* lab.untilPending({ ready: 2, inFlight: 0 }, lab.dlq)
    Check.equal("left", yield* left(lab), ["m2", "m3"])
    yield* lab.untilPending({ ready: 2, inFlight: 0 }, aside)
    Check.equal("aside, as they were", yield* all(parked), before.slice(0, 2))

    yield* lab.untilPending({ ready: 2, inFlight: 0 }, aside)
    const back = yield* parked.park({ to: lab.dlq, filter: ({ metadata }) => metadata.id === "m0" })
    Check.equal("parked back", back.redriven, 1)
    yield* lab.untilPending({ ready: 3, inFlight: 0 }, lab.dlq)
    Check.equal("among the others", (yield* all(letters))[0], before[0])

    Check.equal("to work from aside", (yield* parked.redrive({ origin: lab.queue })).redriven, 1)
    yield* lab.start()
    yield* lab.untilRuns(1)
    Check.equal("at work", [lab.runs.at(-1)!.id, lab.runs.at(-1)!.attempts], ["m1", 1])
  }),
  test("what a filter or an audit writes into its letter changes no message", function* (lab) {
    yield* bury(lab, ids)
    const letters = yield* lab.letters
    const before = yield* all(letters)
    const aside = `${lab.queue}.aside`
    const parked = yield* Effect.provideService(DeadLetters.make(aside), Broker.Broker, lab.broker)
    const write = ({ body, metadata, origin }: DeadLetters.DeadLetter): void => {
      body.fill(66)
      Object.assign(metadata, { id: "written", redrives: 99 })
      Object.assign(origin!, { queue: "written" })
    }
    const { redriven } = yield* letters.park({
      create: true,
      to: aside,
      filter: (letter) => {
        write(letter)
        return letter.id === "m0" || letter.id === "m1"
      },
      audit: (told) => told.forEach(write)
    })
    Check.equal("parked", redriven, 2)
    yield* lab.untilPending({ ready: 2, inFlight: 0 }, lab.dlq)
    Check.equal("left, as they were", yield* all(letters), before.slice(2))
    yield* lab.untilPending({ ready: 2, inFlight: 0 }, aside)
    Check.equal("aside, as they were", yield* all(parked), before.slice(0, 2))
  })
]
