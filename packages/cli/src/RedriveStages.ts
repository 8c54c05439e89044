/** Reads the stages of a redrive from the command line. */
import { Broker, Delay, RetryPolicy } from "@requeue/core"
import { Capabilities } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import * as DeadLetterTarget from "./DeadLetterTarget.ts"
import * as DurationFlag from "./DurationFlag.ts"
import { Output } from "./Output.ts"
import type * as Target from "./Target.ts"

const sizesOf = (text: string): ReadonlyArray<number> => {
  const sizes = text.split(",").map((part) => (/^\s*\d{1,9}\s*$/.test(part) ? Number(part) : 0))
  if (sizes.every((size) => size >= 1)) return sizes
  throw new Error(`must be whole numbers from 1, with commas between them, such as 1,10,100, got ${text}`)
}

const partOf = (text: string): number => {
  const percent = Number(/^(\d+(?:\.\d+)?)%$/.exec(text.trim())?.[1] ?? Number.NaN)
  if (percent >= 0 && percent <= 100) return percent / 100
  throw new Error(`must be a percentage from 0% to 100%, such as 10%, got ${text}`)
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const flags = {
  stages: Flag.String("stages").pipe(
    Flag.withMetavar("N,N,..."),
    Flag.mapTryCatch(sizesOf, messageOf),
    Flag.withDescription(
      "Sizes of the first stages in letters; the last stage takes the rest. Default: 1,10,100 with --stop-at or --wait, else all at once"
    ),
    Flag.optional
  ),
  stopAt: Flag.String("stop-at").pipe(
    Flag.withMetavar("PERCENT"),
    Flag.mapTryCatch(partOf, messageOf),
    Flag.withDescription("Stop if more than this share of a stage comes back. Default: 10% with --stages or --wait"),
    Flag.optional
  ),
  wait: DurationFlag.make("wait", Delay.max).pipe(
    Flag.withDescription(
      "The longest wait after each stage for the outcome of its letters. Default: 1m more than the retries of the queue take"
    ),
    Flag.optional
  ),
  operation: Flag.String("operation").pipe(
    Flag.withMetavar("ID"),
    Flag.filter(
      (id) => /^[\w.-]{1,32}$/.test(id),
      (id) => `must be 1 to 32 letters, digits, ".", "_" or "-", got ${id.slice(0, 40)}${id.length > 40 ? "…" : ""}`
    ),
    Flag.withDescription(
      "Continue the redrive with this id: letters that came back from it are passed over. Default: a new id"
    ),
    Flag.optional
  )
}

/** The values of the stage flags. `wait` is in milliseconds. */
export interface Flags extends Target.Flags {
  readonly stages: Option.Option<ReadonlyArray<number>>
  readonly stopAt: Option.Option<number>
  readonly wait: Option.Option<number>
  readonly operation: Option.Option<string>
}

const policyOf = ({ options: { retry = RetryPolicy.make() } }: Target.Queue) => retry

type Staged = Pick<DeadLetters.RedriveOptions, "stages" | "stopAt" | "wait" | "watch">

/**
 * Returns the options of a redrive that watches its letters, because a flag asks for it or always. It returns none if
 * the redrive does not watch.
 */
export const of = (
  flags: Flags,
  { configured, of: named, queues: letters }: DeadLetterTarget.DeadLetterTarget,
  to: Option.Option<string>,
  isWatched: boolean
): Staged => {
  const isStaged = isWatched || [flags.stages, flags.stopAt, flags.wait].some((given) => Option.isSome<unknown>(given))
  if (!isStaged) return {}
  // With --broker, a queue of the config file may be on another broker than its own.
  const known = [...named, ...configured]
  // Queues that are not in the config file have the default policy.
  const queueOf = (queue: string): Target.Queue =>
    known.find(({ name }) => name === queue) ?? { name: queue, options: {} }
  const isOrigin = (queue: Target.Queue) => DeadLetterTarget.of(queue).some((name) => letters.includes(name))
  const origins = known.filter(isOrigin)
  const queues = Option.match(to, {
    onNone: () => (origins.length > 0 ? origins : flags.queue.map(queueOf)),
    onSome: (name) => [queueOf(name)]
  })
  return {
    stages: Option.getOrUndefined(flags.stages),
    stopAt: Option.getOrElse(flags.stopAt, () => DeadLetters.standardStages.stopAt),
    wait: Option.getOrElse(flags.wait, () => DeadLetters.waitFor(queues.map(policyOf))),
    // Each letter may come from another queue, also in a queue of --dlq.
    watch: (queue) => [...letters, ...DeadLetterTarget.of(queueOf(queue))]
  }
}

/** Prints a note before a watched redrive if the broker needs an option to report the outcome of the letters. */
export const tellUntold = Effect.gen(function* () {
  const message = Capabilities.untold((yield* Broker.Broker).capabilities)
  if (message === undefined) return
  const { json } = yield* Output
  yield* Console.error(json ? JSON.stringify({ note: message }) : `requeue: note: ${message}`)
})
