/** Redrives that do, or tell, something else. */
import type { DeadLetters } from "@requeue/core"
import * as Effect from "effect/Effect"
import { decorate } from "../internal/decorate.ts"
import type { Mutant } from "../Mutant.ts"

/** Changes what a redrive is asked for, or what it reports. */
const redrives = (
  name: string,
  kills: string,
  change: (redrive: DeadLetters.DeadLetters["redrive"]) => DeadLetters.DeadLetters["redrive"]
): Mutant => ({
  name,
  kills,
  subject: (subject) => ({
    ...subject,
    makeDeadLetters: (queue) =>
      Effect.map(subject.makeDeadLetters(queue), (letters) => ({ ...letters, redrive: change(letters.redrive) }))
  })
})

export const mutants: ReadonlyArray<Mutant> = [
  redrives(
    "a redrive that says that all is well",
    "a letter that cannot be redriven holds up no other, and none is redriven twice",
    (redrive) => (options) =>
      Effect.map(redrive(options), (report) => ({
        ...report,
        redriven: report.redriven + report.refused,
        refused: 0,
        failures: []
      }))
  ),
  redrives(
    "a redrive that passes over what another reader has",
    "a redrive beside another reader says what that one has, and another redrive takes it",
    (redrive) => (options) => Effect.map(redrive(options), (report) => ({ ...report, held: 0 }))
  ),
  redrives(
    "a redrive that hears no abort",
    "a redrive that is aborted ends at once, and another one goes on with the others",
    (redrive) => (options) => redrive({ ...options, signal: undefined })
  ),
  {
    name: "removes no letter of a queue whose connection was lost once",
    kills: "a redrive whose connections break decides on each letter once, loses none, and its report balances",
    broker: (broker) => {
      let isLost = false
      return decorate(broker, {
        onReconnect: (options) => {
          isLost = true
          options.onReconnect()
        },
        settle: ({ settlement }) => (isLost && settlement._tag === "Ack" ? Effect.succeed([]) : undefined)
      })
    }
  }
]
