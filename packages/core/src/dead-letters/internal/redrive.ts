/** Sends dead letters back to work: each is published, confirmed, and then removed. The others are given back at the end. */
import * as Effect from "effect/Effect"
import type { Service } from "../../port/Broker.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Outgoing from "../../message/Outgoing.ts"
import * as Telemetry from "../../observe/Telemetry.ts"
import * as Sweep from "./sweep.ts"

/** Options of `redrive`. */
export interface Options {
  /** The queue to redrive to. Default: the queue that each dead letter came from. */
  readonly to?: string | undefined
  /** The most dead letters to redrive. Default: all that wait when it begins. */
  readonly limit?: number | undefined
  /** Selects the dead letters to redrive: those for which it returns `true`. Default: all. */
  readonly filter?: ((letter: Delivery) => boolean) | undefined
  /** Whether to count only, and move nothing. Default: false. */
  readonly dryRun?: boolean | undefined
  /** The most dead letters per second, at least 0.001. Default: no limit. */
  readonly rate?: number | undefined
  /** Dead letters that were redriven so often already are passed over, since they would only come back. Default: 3. */
  readonly maxRedrives?: number | undefined
  /** Stops between two steps. Dead letters that were redriven stay redriven. Default: it is never stopped. */
  readonly signal?: AbortSignal | undefined
  /** Called after each step with the report so far. Default: nothing is called. */
  readonly onProgress?: ((report: Report) => void) | undefined
}

/** The number of dead letters that were redriven, and of those that were passed over. */
export interface Report {
  readonly redriven: number
  /** Passed over because the filter rejected them. */
  readonly filtered: number
  /** Passed over because they have been redriven too often. */
  readonly guarded: number
  /** Passed over because the queue that they came from is unknown. */
  readonly homeless: number
}

/** The field of the report that counts this dead letter. */
const outcomeOf = (letter: Delivery, options: Options): keyof Report => {
  if (!Sweep.matches(letter, options.filter)) return "filtered"
  if (letter.metadata.redrives >= (options.maxRedrives ?? 3)) return "guarded"
  return target(letter, options) === undefined ? "homeless" : "redriven"
}

const target = (letter: Delivery, { to }: Options): string | undefined => to ?? letter.metadata.deadLetter?.queue

/** Redrives the dead letters in a queue. The options have been checked. */
export const redrive = (broker: Service, queue: string, options: Options = {}): Effect.Effect<Report, BrokerError> =>
  Effect.gen(function* () {
    const publish = Telemetry.publisher(yield* Telemetry.Telemetry, broker.capabilities.broker, broker.publish)
    const report = { redriven: 0, filtered: 0, guarded: 0, homeless: 0 }
    yield* Sweep.run(broker, queue, options, {
      select: (letter) => {
        const outcome = outcomeOf(letter, options)
        report[outcome]++
        return outcome === "redriven"
      },
      beforeRemoval: (letters) => publish(letters.map((letter) => Outgoing.redrive(letter, target(letter, options)!))),
      onStep: () => options.onProgress?.({ ...report })
    })
    return { ...report }
  })
