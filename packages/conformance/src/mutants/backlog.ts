/** Brokers that mislead those who look at what waits. */
import type { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import type { Mutant } from "../Mutant.ts"

type Sift = NonNullable<Broker.Admin["sift"]>

/** Changes how a broker goes through delayed messages. */
const sifting = (name: string, kills: string, change: (sift: Sift) => Sift): Mutant => ({
  name,
  kills,
  broker: (broker) => {
    const { sift } = broker.admin
    return sift === undefined ? broker : { ...broker, admin: { ...broker.admin, sift: change(sift) } }
  }
})

/** Changes what a broker tells of its backlog. */
const telling = (name: string, kills: string, change: Partial<NonNullable<Told>>): Mutant => ({
  name,
  kills,
  broker: (broker) => {
    const { backlog } = broker.admin
    const changed: Broker.Admin["backlog"] =
      backlog && ((request) => Effect.map(backlog(request), (told) => ({ ...told, ...change })))
    return { ...broker, admin: { ...broker.admin, backlog: changed } }
  }
})

type Told = Effect.Success<ReturnType<NonNullable<Broker.Admin["backlog"]>>>

const removes = "delayed messages that a filter selects are removed, and no others"

export const mutants: ReadonlyArray<Mutant> = [
  telling(
    "does not say why it tells no number of consumers",
    "a backlog tells what waits, and of each number that it does not tell why",
    { consumers: undefined, remarks: {} }
  ),
  telling(
    "tells nothing of messages in backoff",
    "a backlog tells a message that is in backoff: as delayed, or as in flight where the broker hides it",
    { delayed: 0, backoff: [] }
  ),
  sifting(
    "takes away what it shows",
    "delayed messages are listed, the soonest first, and each comes at its time all the same, as its first attempt",
    (sift) => (request, isRemoved) =>
      sift(request, (message) => {
        isRemoved(message)
        return true
      })
  ),
  sifting(
    "counts what it shows as an attempt",
    "a message in backoff is listed with its error, and is gone when it is removed",
    (sift) => (request, isRemoved) =>
      sift(request, ({ delivery, due }) =>
        isRemoved({ delivery: { ...delivery, attempts: delivery.attempts + 1 }, due })
      )
  ),
  sifting("says that it removed what it has kept", removes, (sift) => (request, isRemoved) => {
    let removed = 0
    return Effect.map(
      sift(request, (message) => {
        if (isRemoved(message)) removed++
        return false
      }),
      (sifted) => ({ ...sifted, removed })
    )
  }),
  sifting(
    "removes a message's neighbour as well",
    "removals while messages become due lose none that stays, and double none",
    (sift) => (request, isRemoved) => {
      let before = false
      return sift(request, (message) => {
        const isBehind = before
        before = isRemoved(message)
        return before || isBehind
      })
    }
  ),
  {
    name: "answers an empty list where it can show nothing",
    kills: "where the broker cannot show delayed messages, that is told, and they come at their time",
    broker: (broker) => ({
      ...broker,
      admin: { ...broker.admin, sift: () => Effect.succeed({ looked: 0, removed: 0, isWhole: true }) }
    })
  }
]
