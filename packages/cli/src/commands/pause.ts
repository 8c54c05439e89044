/** `requeue pause` and `requeue resume`: the broker stops and resumes the delivery of a queue's messages. */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { BrokerError } from "@requeue/core"
import * as Operating from "../Operating.ts"
import { Output } from "../Output.ts"
import * as Partial from "../Partial.ts"
import * as Target from "../Target.ts"

const setPaused = (flags: Target.Flags, isPaused: boolean) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { result } = yield* Output
      const target = yield* Target.resolve(flags)
      const operator = yield* Operating.open(target)
      const { broker } = operator.capabilities
      const done = yield* Effect.forEach(target.queues, ({ name }) =>
        Effect.gen(function* () {
          if (operator.setPaused !== undefined) return { name, missing: yield* operator.setPaused(name, isPaused) }
          return yield* new BrokerError.BrokerError({
            broker,
            operation: isPaused ? "pause" : "resume",
            queue: name,
            reason: "Unsupported",
            detail: "this broker cannot hold back the messages of a queue",
            remedy: "Stop the queue's consumers; messages sent meanwhile wait"
          })
        })
      )
      const word = isPaused ? "paused" : "resumed"
      yield* result({ broker: target.name, queues: done.map(({ name }) => ({ queue: name, paused: isPaused })) }, () =>
        done.map(({ name }) => `${name}: ${word}`).join("\n")
      )
      yield* Partial.tell(done.flatMap(({ missing }) => missing))
    })
  )

export const pause = Command.make("pause", Target.flags, (flags) => setPaused(flags, true)).pipe(
  Command.withDescription(
    "Pauses queues at the broker: it accepts messages, and delivers none to any consumer until requeue " +
      "resume. Consumers finish the messages that they have. Only NSQ supports this."
  ),
  Command.withShortDescription("Hold back the messages of a queue, if the broker can"),
  Command.withExamples([{ command: "requeue pause --queue orders/billing", description: "Until resume" }])
)

export const resume = Command.make("resume", Target.flags, (flags) => setPaused(flags, false)).pipe(
  Command.withDescription(
    "Ends a pause of requeue pause. On NSQ, a topic that was paused by other means stays paused."
  ),
  Command.withShortDescription("End a pause"),
  Command.withExamples([{ command: "requeue resume --queue orders/billing", description: "Consumers resume" }])
)
