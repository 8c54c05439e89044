/**
 * Queues that letters go to, or come back to, must exist: no consumer would read the letters in a misspelt or deleted one.
 * If only the letters name a queue, other evidence must confirm it: any program that can publish to a dead-letter queue can
 * write any name.
 */
import { type Broker, BrokerError, RetryPolicy } from "@requeue/core"
import { KnownQueues, type Outgoing } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/**
 * The dead-letter queues to which letters may come back: an array of names, or a function that returns those of a target
 * queue.
 */
export type Watched = ReadonlyArray<string> | ((queue: string) => ReadonlyArray<string>)

/** Fails if the broker reports that it does not have the queue. It creates none. */
const exists = (
  { admin, capabilities: { broker } }: Broker.Service,
  queue: string,
  operation: string,
  remedy: string
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    // A user may have permission to publish to a queue, but not to count it.
    const isMissing = yield* Effect.catchIf(
      Effect.map(admin.counts(queue), (counts) => counts.isMissing === true),
      ({ reason }: BrokerError.BrokerError) => reason === "AccessRefused",
      () => Effect.succeed(false)
    )
    if (!isMissing) return
    const detail = "there is no such queue"
    return yield* new BrokerError.BrokerError({ broker, operation, queue, reason: "QueueMissing", detail, remedy })
  })

/** The options that decide where the letters of a call go. */
export interface Options {
  /** The dead-letter queue that has the letters. */
  readonly queue: string
  readonly create?: boolean | undefined
  readonly to?: string | undefined
  readonly watch?: Watched | undefined
  /** Whether letters of the dead-letter queue may come from this queue, by evidence other than the letters. */
  readonly isOrigin: (queue: string) => Effect.Effect<boolean, BrokerError.BrokerError>
}

const unknown = (
  { capabilities: { broker } }: Broker.Service,
  origin: string,
  queue: string
): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker,
    operation: "publish",
    queue: origin,
    reason: "QueueMismatch",
    detail: `only the letters in ${queue} name ${origin} as their origin: no policy known here sends dead letters of ${origin} to ${queue}`,
    remedy: `If the letters came from ${origin}, use { origin: ${JSON.stringify(origin)} } or --origin ${origin}. If not, use another queue: { to: "NAME" } or --to NAME`
  })

const own = ({ capabilities: { broker } }: Broker.Service, to: string, queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker,
    operation: "publish",
    queue: to,
    reason: "QueueMismatch",
    detail: `${to} is another name of ${queue}, which already has the letters`,
    remedy: 'Use another queue: { to: "NAME" } or --to NAME'
  })

/** Whether a queue may be created. */
const mayCreate = ({ create = false }: Pick<Options, "create">): boolean => create

/**
 * Returns a message that creates its queue only if the options allow it, because the queue may be deleted after the check.
 */
export const bound = (message: Outgoing.Outgoing, options: Pick<Options, "create">): Outgoing.Outgoing =>
  mayCreate(options) ? message : { ...message, create: false }

/**
 * Fails if letters must not go to the queue `to`: the letters are already there, the queue is missing, or only the letters
 * name it.
 */
export const check = (
  broker: Broker.Service,
  to: string,
  options: Options
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { isOrigin, queue, to: given } = options
    if (yield* KnownQueues.isSame(broker, to, queue)) return yield* own(broker, to, queue)
    if (given === undefined && !(yield* isOrigin(to))) return yield* unknown(broker, to, queue)
    if (mayCreate(options)) return
    yield* exists(
      broker,
      to,
      "publish",
      "Correct the name of the target queue, or create the queue: { create: true } or --create"
    )
  })

/** Returns the queues that `watch` names, which must all exist. */
export const named = (
  broker: Broker.Service,
  watch: Watched | undefined
): Effect.Effect<ReadonlyArray<string>, BrokerError.BrokerError> => {
  const names = typeof watch === "object" ? watch : []
  return Effect.as(
    Effect.forEach(names, (name) => exists(broker, name, "watch", "Name only existing queues in watch")),
    names
  )
}

/**
 * Returns the dead-letter queues of a target queue: those that `watch` returns for it, or else those of the default policy.
 */
export const deadLetterQueues = (queue: string, watch: Watched | undefined): ReadonlyArray<string> => {
  if (watch === undefined) return RetryPolicy.deadLetterQueues(RetryPolicy.make(), queue)
  return typeof watch === "function" ? watch(queue) : []
}

/** The failed lookups of a queue. */
interface Failure {
  readonly seen: number
  /** How many of the failures were not outages. */
  readonly counted: number
  /** The last failure. */
  readonly error: BrokerError.BrokerError
}

const noFailure = { seen: 0, counted: 0 }

/** How often the lookup of a queue may fail before its letters are refused. */
export const tries = 3

/** Returns the error of a queue that was not looked up. Nothing was published, so no copy can exist. */
const unasked = (error: BrokerError.BrokerError): BrokerError.BrokerError => {
  if (!BrokerError.isDoubtful(error)) return error
  const { broker, cause, operation, queue, remedy } = error
  const detail = `nothing was published, because the broker did not report whether the queue exists: ${error.detail}`
  return new BrokerError.BrokerError({ broker, operation, queue, reason: "ConnectionFailed", detail, remedy, cause })
}

/** Returns the error of a queue whose lookup failed too often. */
const givenUp = (
  { broker, cause, detail, operation, reason }: BrokerError.BrokerError,
  queue: string
): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker,
    operation,
    queue,
    reason: "Unsupported",
    detail: `the broker failed ${tries} times to look the queue up, the last time with ${reason}: ${detail}`,
    remedy: 'Use another queue, { to: "NAME" } or --to NAME, or redrive again when the broker answers',
    cause
  })

/** Runs effects one by one. */
const queueing = () => {
  let last = Deferred.makeUnsafe<void>()
  Deferred.doneUnsafe(last, Effect.void)
  return <E>(effect: Effect.Effect<void, E>): Effect.Effect<void, E> =>
    Effect.suspend(() => {
      const [before, own] = [last, Deferred.makeUnsafe<void>()]
      last = own
      // If an effect is interrupted while it waits, the next one still waits for those before it.
      const end = Effect.sync(() => void Deferred.doneUnsafe(own, Deferred.await(before)))
      // The one before goes first: it resumes this one.
      const turn = Effect.andThen(Deferred.await(before), Effect.yieldNow)
      return Effect.ensuring(Effect.andThen(turn, effect), end)
    })
}

/**
 * Admits queues as targets: call `enter` before the first letter goes to a queue. `targets` are the admitted queues.
 *
 * Without `to`, a letter names the queue, and anyone may have written that name. If the broker fails on a name, or closes
 * its connection, that affects only the letters with that name. Names are looked up one at a time, so a lookup cannot fail
 * because of another name.
 */
export const gate = (
  broker: Broker.Service,
  options: Options,
  add: (queues: ReadonlyArray<string>) => Effect.Effect<void, BrokerError.BrokerError> = () => Effect.void
) => {
  const { to, watch } = options
  const targets = new Set<string>()
  const refused = new Map<string, BrokerError.BrokerError>()
  const failures = new Map<string, Failure>()
  const oneByOne = queueing()

  const failed = (queue: string, error: BrokerError.BrokerError, isOutage: boolean): BrokerError.BrokerError => {
    const { counted, seen } = failures.get(queue) ?? noFailure
    const isGivenUp = error.isRetryable && to === undefined && !isOutage && counted + 1 >= tries
    const told = isGivenUp ? givenUp(error, queue) : unasked(error)
    failures.set(queue, { seen: seen + 1, counted: isOutage ? counted : counted + 1, error: told })
    if (!told.isRetryable) refused.set(queue, told)
    return told
  }

  /**
   * Looks a queue up. `seen` is the number of failures when the letter arrived: later failures count for this letter as
   * well.
   */
  const look = (queue: string, seen: number): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.suspend(() => {
      if (targets.has(queue)) return Effect.void
      const last = failures.get(queue)
      const error = refused.get(queue) ?? (last !== undefined && last.seen > seen ? last.error : undefined)
      if (error !== undefined) return Effect.fail(error)
      // An outage is not caused by the name.
      const isDown = broker.connection().state === "down"
      return check(broker, queue, options).pipe(
        Effect.andThen(add(deadLetterQueues(queue, watch))),
        Effect.mapError((error) => failed(queue, error, isDown)),
        Effect.tap(() => Effect.sync(() => targets.add(queue)))
      )
    })
  const enter = (queue: string): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.suspend(() => {
      if (targets.has(queue)) return Effect.void
      const { seen } = failures.get(queue) ?? noFailure
      return oneByOne(look(queue, seen))
    })
  return { enter, targets }
}
