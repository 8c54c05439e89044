/** Finds the dead-letter queues that a command acts on: those of the queues in `--queue`, or those in `--dlq`. */
import { Broker, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import { KnownQueues } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Flag from "effect/cli/Flag"
import * as Existing from "./Existing.ts"
import { Output } from "./Output.ts"
import * as Target from "./Target.ts"
import * as TextFlag from "./TextFlag.ts"
import { UsageError } from "./UsageError.ts"

export const flags = {
  ...Target.flags,
  dlq: TextFlag.make("dlq").pipe(
    Flag.withMetavar("NAME"),
    Flag.withDescription("The name of a dead-letter queue, instead of --queue; can be repeated"),
    Flag.atLeast(0)
  )
}

/** The flags of commands that move or remove letters. */
export const actingFlags = {
  ...flags,
  force: TextFlag.make("force").pipe(
    Flag.withMetavar("NAME"),
    Flag.withDescription(
      "The name of a queue, as confirmation that it is a dead-letter queue, or that letters of other queues than --queue are included; can be repeated"
    ),
    Flag.atLeast(0)
  )
}

export interface Flags extends Target.Flags {
  readonly dlq: ReadonlyArray<string>
  readonly force?: ReadonlyArray<string>
}

/** A broker, and the dead-letter queues that a command acts on. */
export interface DeadLetterTarget extends Target.Place {
  /** The dead-letter queues, at least one. */
  readonly queues: ReadonlyArray<string>
  /** The queues of `--queue`, whose policies name the dead-letter queues; none with `--dlq`. */
  readonly of: ReadonlyArray<Target.Queue>
  /** Returns the option `force` for a queue that `--force` confirms; otherwise no option. */
  readonly forced: (queue: string) => { readonly force?: string }
}

/** Returns the dead-letter queues that a queue's policy names. */
export const of = ({ name, options }: Target.Queue): ReadonlyArray<string> =>
  RetryPolicy.deadLetterQueues(options.retry ?? RetryPolicy.make(), name)

/** Finds the dead-letter queues that the flags name. Does not connect. */
export const resolve = ({ dlq, force = [], ...flags }: Flags) =>
  Effect.gen(function* () {
    if (dlq.length > 0 && flags.queue.length > 0) {
      const remedy = "Give --dlq with dead-letter queues, or --queue with the queue that they belong to"
      return yield* new UsageError({ detail: "--queue and --dlq do not go together", remedy })
    }
    const forced = (queue: string) => (force.includes(queue) ? { force: queue } : {})
    const target = dlq.length > 0 ? { ...(yield* Target.place(flags)), queues: [] } : yield* Target.resolve(flags)
    const queues = dlq.length > 0 ? dlq : [...new Set(target.queues.flatMap(of))]
    const stray = force.find((name) => !queues.includes(name))
    if (stray !== undefined) {
      const remedy = `Give --dlq ${stray}, or leave --force out`
      return yield* new UsageError({
        detail: `--force: this command does not act on the dead-letter queue ${stray}`,
        remedy
      })
    }
    const found: DeadLetterTarget = { ...target, queues, of: target.queues, forced }
    return found
  })

/** Opens the dead letters of all queues. Fails if the broker does not have one of them, and creates none. */
export const open = ({ configured, of: named, queues }: DeadLetterTarget) =>
  Effect.gen(function* () {
    yield* Existing.check(queues, { known: configured.flatMap(of), isDead: true })
    const broker = yield* Broker.Broker
    const { note } = yield* Output
    const live = configured.filter(({ name }) => named.length === 0 && queues.includes(name))
    for (const { name } of live)
      yield* note(`${name} is a live queue, not a dead-letter queue. Give --queue ${name} for its dead letters`)
    for (const { name, options } of named) {
      KnownQueues.add(broker, name, options.retry ?? RetryPolicy.make())
    }
    return yield* Effect.forEach(queues, (queue) =>
      named.length === 0
        ? DeadLetters.make(queue)
        : DeadLetters.foundFor(
            queue,
            named.filter((each) => of(each).includes(queue)).map(({ name }) => name)
          )
    )
  })

/** Refuses a target queue that already has the letters, or that is missing and must not be created. */
export const destination = Effect.fnUntraced(function* (
  { configured, queues }: DeadLetterTarget,
  to: string | undefined,
  mayCreate: boolean
) {
  if (to === undefined) return
  if (queues.includes(to)) {
    return yield* new UsageError({
      detail: `--to: ${to} is the dead-letter queue itself`,
      remedy: "Give another queue with --to"
    })
  }
  if (to === "discard") {
    return yield* new UsageError({
      detail: "--to: discard is not a queue; in a policy it means that no dead letter is kept",
      remedy: "Give a queue with --to, or remove letters with requeue dead-letters purge"
    })
  }
  if (mayCreate) return
  const known = configured.map(({ name }) => name)
  yield* Existing.check([to], { known, besides: "Give --create to create a queue that no consumer reads yet" })
})

/** Formats the queues with their numbers of letters, for a question. */
export const waiting = (all: ReadonlyArray<DeadLetters.DeadLetters>) =>
  Effect.map(
    Effect.forEach(all, ({ count, queue }) => Effect.map(count, (n) => `${queue} (${n ?? "unknown"} wait)`)),
    (each) => each.join(", ")
  )

/** Returns the errors of the parts of the broker that do not answer. The command did nothing there. */
export const missing = (all: ReadonlyArray<DeadLetters.DeadLetters>) =>
  Effect.map(
    Effect.forEach(all, (letters) => letters.missing),
    (each) => each.flat()
  )
