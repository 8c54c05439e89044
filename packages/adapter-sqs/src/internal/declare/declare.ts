/**
 * Declares queues: finds them by name, creates missing ones if allowed, and compares them with their plan.
 *
 * Existing queues are not changed, with two exceptions in mode `create`: a queue without a redrive policy, for example
 * created by a producer, gets the planned one, and a dead-letter queue that accepts only named queues gets one more
 * name.
 */
import { BrokerError, ConfigurationError, Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Settings } from "../../SqsOptions.ts"
import * as Plan from "../../SqsPlan.ts"
import * as QueueCalls from "./queueCalls.ts"
import { adapted } from "./receivedBefore.ts"
import { allowanceOf, redriveOf } from "./verify.ts"

export type { Queue } from "./queueCalls.ts"

/** The known queues of a program. */
export interface Queues {
  /** Returns the queue of this name, requested once. Creates a missing queue as a producer does, if allowed. */
  readonly find: (queue: string) => Effect.Effect<QueueCalls.Queue, BrokerError.BrokerError>
  /** Returns the queue of this name, requested once. Fails with `QueueMissing`; never creates it. */
  readonly see: (queue: string) => Effect.Effect<QueueCalls.Queue, BrokerError.BrokerError>
  /**
   * Creates, verifies or finds all queues of a consumer. Fails if they do not fit its policy.
   *
   * @param lease longest run of a handler without a lease extension, in milliseconds. Default: 0, since
   *   consumers extend their leases
   */
  readonly ensure: (request: Plan.Request, lease?: number) => Effect.Effect<QueueCalls.Queue, BrokerError.BrokerError>
  /** Returns the plan, adapted to a queue to which SQS moves messages of other queues. */
  readonly adapted: (plan: Plan.Plan) => Effect.Effect<Plan.Plan, BrokerError.BrokerError>
  /** Returns the attributes of the plan's queues on SQS. */
  readonly inspect: (plan: Plan.Plan) => Effect.Effect<Plan.Found, BrokerError.BrokerError>
  /** Forgets a deleted queue. */
  readonly forget: (queue: string) => void
}

const mismatch = ({ attribute, detail, found, queue, remedy }: Plan.Finding): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "sqs",
    operation: "verify",
    queue,
    reason: found === undefined && attribute === "QueueName" ? "QueueMissing" : "QueueMismatch",
    detail: `${attribute}: ${detail}`,
    remedy
  })

const isMissing = ({ reason }: BrokerError.BrokerError): boolean => reason === "QueueMissing"

const isUnsupported = ({ reason }: BrokerError.BrokerError): boolean => reason === "Unsupported"

/** Repeats a call for a moment: not all servers know a new queue within a second. */
const untilKnown = <A>(effect: Effect.Effect<A, BrokerError.BrokerError>): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.retry(effect, { while: isMissing, schedule: Schedule.spaced(500), times: 6 })

const orUndefined = <A>(
  effect: Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<A | undefined, BrokerError.BrokerError> =>
  Effect.catchIf(effect, isMissing, () => Effect.succeed(undefined))

/** Creates a queue; returns false if it exists. Never creates a queue that may belong to another account. */
const createOne = Effect.fnUntraced(function* (
  calls: QueueCalls.QueueCalls,
  planned: Plan.Queue,
  tags: Plan.Attributes
) {
  const found = calls.attributes(planned)
  if ((yield* (yield* calls.isOurs(planned)) ? orUndefined(found) : found) !== undefined) return false
  yield* calls.create(planned, tags)
  yield* untilKnown(calls.attributes(planned))
  return true
})

/** Lets SQS move messages from one queue to the other. A dead-letter queue that accepts every queue is not changed. */
const connect = Effect.fnUntraced(function* (
  calls: QueueCalls.QueueCalls,
  work: Plan.Queue,
  letters: Plan.Queue,
  isNew: boolean
) {
  const source = yield* calls.attributes(work)
  if (redriveOf(source) !== undefined) return
  const target = yield* calls.attributes(letters)
  const { permission, sources } = allowanceOf(target)
  const arn = source["QueueArn"]!
  const isFull = sources.length >= Plan.allowedSources
  if ((isNew || permission === "byQueue") && !sources.includes(arn) && !isFull) {
    const policy = { RedriveAllowPolicy: Plan.redriveAllowPolicy([...sources, arn]) }
    // This policy only restricts other queues, and development servers do not support it.
    yield* Effect.catchIf(calls.change(letters, policy), isUnsupported, ({ detail }) => Log.info(detail))
  }
  yield* calls.change(work, { RedrivePolicy: Plan.redrivePolicy(work, target["QueueArn"]!) })
})

const create = Effect.fnUntraced(function* (calls: QueueCalls.QueueCalls, { queues, tags }: Plan.Plan) {
  const made = new Set<Plan.Queue>()
  for (const planned of queues) if (yield* createOne(calls, planned, tags)) made.add(planned)
  const work = queues.find(({ redrive }) => redrive !== undefined)
  const letters = queues.find(({ redriveFrom }) => redriveFrom !== undefined)
  if (work === undefined || letters === undefined || !(yield* calls.isOurs(work))) return
  yield* connect(calls, work, letters, made.has(letters))
})

/** Starts without known queues. */
export const make = (client: QueueCalls.QueueClient, settings: Settings): Queues => {
  const calls = QueueCalls.make(client)

  const planOf = (request: Plan.Request): Effect.Effect<Plan.Plan, BrokerError.BrokerError> => {
    const plan = Plan.make(request, settings)
    return plan instanceof ConfigurationError.ConfigurationError
      ? Effect.fail(BrokerError.ofPlan("sqs", plan))
      : Effect.succeed(plan)
  }

  const inspect = Effect.fnUntraced(function* ({ queues }: Plan.Plan) {
    const found = new Map<string, Plan.Attributes | undefined>()
    for (const planned of queues) found.set(planned.name.name, yield* orUndefined(calls.attributes(planned)))
    return found
  })

  const ensure = Effect.fnUntraced(function* (request: Plan.Request, lease = 0) {
    const planned = yield* planOf(request)
    const plan = planned.queues.length === 1 || planned.mode === "use" ? planned : yield* adapted(planned, calls)
    for (const note of plan.notes) yield* Log.info(note, { queue: request.queue })
    if (plan.mode === "create") yield* create(calls, plan)
    if (plan.mode === "use") yield* Effect.forEach(plan.queues, calls.locate)
    else {
      const wrong = Plan.verify(plan, yield* inspect(plan), lease).find(
        ({ isGood, mayStart }) => !isGood && mayStart !== true
      )
      if (wrong !== undefined) return yield* mismatch(wrong)
    }
    return yield* calls.locate(plan.queues.at(-1)!)
  })

  return {
    find: (queue) =>
      Effect.suspend(() => {
        const known = calls.known(queue)
        return known === undefined ? ensure({ queue }) : Effect.succeed(known)
      }),
    see: (queue) => Effect.flatMap(planOf({ queue }), ({ queues }) => calls.locate(queues.at(-1)!)),
    ensure,
    adapted: (plan) => adapted(plan, calls),
    inspect,
    forget: calls.forget
  }
}
