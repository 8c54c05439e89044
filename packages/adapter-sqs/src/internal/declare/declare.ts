/**
 * Declares queues: finds them by name, creates those that are missing and may be created, and compares them with their
 * plan.
 *
 * Queues that exist are not changed, with two exceptions in mode `create`: a queue without a redrive policy, as a
 * producer makes it, gets the planned one, and a dead-letter queue that lets in named queues only gets one more name.
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

/** The queues of a program, as far as they are known. */
export interface Queues {
  /** The queue of this name, asked once. A queue that is missing is made as a producer's, where it may be. */
  readonly find: (queue: string) => Effect.Effect<QueueCalls.Queue, BrokerError.BrokerError>
  /** The queue of this name, asked once. Fails with `QueueMissing`, and makes nothing. */
  readonly see: (queue: string) => Effect.Effect<QueueCalls.Queue, BrokerError.BrokerError>
  /**
   * Makes, verifies or finds all queues of a consumer; fails when they cannot keep its policy.
   *
   * @param lease milliseconds for which a delivery stays ours without an extension. Default: 0, since
   *   consumers extend their leases
   */
  readonly ensure: (request: Plan.Request, lease?: number) => Effect.Effect<QueueCalls.Queue, BrokerError.BrokerError>
  /** The plan, as it is for a queue to which SQS moves messages of others. */
  readonly adapted: (plan: Plan.Plan) => Effect.Effect<Plan.Plan, BrokerError.BrokerError>
  /** The attributes of the plan's queues as they are on SQS. */
  readonly inspect: (plan: Plan.Plan) => Effect.Effect<Plan.Found, BrokerError.BrokerError>
  /** Forgets a queue that turned out to be deleted. */
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

/** A queue that was made just now may not be known to all servers for a second. */
const untilKnown = <A>(effect: Effect.Effect<A, BrokerError.BrokerError>): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.retry(effect, { while: isMissing, schedule: Schedule.spaced(500), times: 6 })

const orUndefined = <A>(
  effect: Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<A | undefined, BrokerError.BrokerError> =>
  Effect.catchIf(effect, isMissing, () => Effect.succeed(undefined))

/** Creates a queue, and answers false when it was there. One that may be of another account is never created. */
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

/** Lets SQS move messages from one queue to the other. A dead-letter queue that lets in every queue stays as it is. */
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
    // It only keeps others out, and servers for development do not know it.
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

/** No queue is known yet. */
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
