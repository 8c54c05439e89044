/** Sends dead letters back to work: publish, confirm, then remove; what is passed over is given back at the end. */
import * as Effect from "effect/Effect"
import type { Service } from "../../port/Broker.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Outgoing from "../../message/Outgoing.ts"
import * as QueueDefinition from "../../message/QueueDefinition.ts"
import * as Telemetry from "../../observe/Telemetry.ts"
import * as Sweep from "./sweep.ts"

export interface Options {
  /** Where to. Default: the queue each letter came from; letters without one are passed over. */
  readonly to?: string | undefined
  /** How many at most. Default: all that wait when it begins. */
  readonly limit?: number | undefined
  /** Only letters for which it answers true. */
  readonly filter?: ((letter: Delivery) => boolean) | undefined
  /** Count what would be redriven, and leave everything where it is. */
  readonly dryRun?: boolean | undefined
  /** Letters per second at most. Default: no limit. */
  readonly rate?: number | undefined
  /** Letters that have been redriven so often already are passed over: they would only come back. Default 3. */
  readonly maxRedrives?: number | undefined
  /** Stops between two steps; what was redriven until then stays redriven. */
  readonly signal?: AbortSignal | undefined
  /** Called after each step with the report so far. */
  readonly onProgress?: ((report: Report) => void) | undefined
}

export interface Report {
  readonly redriven: number
  /** Passed over because the filter rejected them. */
  readonly filtered: number
  /** Passed over because they have been redriven too often. */
  readonly guarded: number
  /** Passed over because nobody knows where they came from. */
  readonly homeless: number
}

type Answer = keyof Report

const judge = (letter: Delivery, options: Options): Answer => {
  if (!Sweep.isMeant(letter, options.filter)) return "filtered"
  if (letter.metadata.redrives >= (options.maxRedrives ?? 3)) return "guarded"
  return target(letter, options) === undefined ? "homeless" : "redriven"
}

const target = (letter: Delivery, { to }: Options): string | undefined => to ?? letter.metadata.deadLetter?.queue

const validate = (queue: string, { limit, maxRedrives, rate, to }: Options): void => {
  const check = (field: string, value: number | undefined, min: number) => {
    if (value !== undefined && !(value >= min)) {
      throw new RangeError(`DeadLetters.redrive: ${field} must be a number >= ${min}, got ${value}`)
    }
  }
  check("limit", limit, 1)
  check("maxRedrives", maxRedrives, 0)
  check("rate", rate, 0.001)
  if (to === undefined) return
  QueueDefinition.make(to)
  if (to === queue) {
    throw new RangeError(`DeadLetters.redrive: to must be another queue, got ${JSON.stringify(to)}`)
  }
}

/**
 * @throws RangeError when a number is out of its range, or `to` is the queue of dead letters itself
 */
export const redrive = (broker: Service, queue: string, options: Options = {}): Effect.Effect<Report, BrokerError> =>
  Effect.gen(function* () {
    validate(queue, options)
    const publish = Telemetry.publisher(yield* Telemetry.Telemetry, broker.capabilities.broker, broker.publish)
    const report = { redriven: 0, filtered: 0, guarded: 0, homeless: 0 }
    yield* Sweep.run(broker, queue, options, {
      choose: (letter) => {
        const answer = judge(letter, options)
        report[answer]++
        return answer === "redriven"
      },
      before: (letters) => publish(letters.map((letter) => Outgoing.redrive(letter, target(letter, options)!))),
      onStep: () => options.onProgress?.({ ...report })
    })
    return { ...report }
  })
